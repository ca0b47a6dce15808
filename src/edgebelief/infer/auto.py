"""Which engine suits a model."""

from .engine import Engine
from .exact import Exact, applies
from .model import EdgeModel
from .modes import Modes
from .nuts import NUTS


def default_engine(model: EdgeModel) -> Engine:
    """`Exact` where it applies; `Modes` for a network with many parameters; else `NUTS`.

    Examples
    --------
    >>> from edgebelief.infer import EdgeModel, default_engine
    >>> from edgebelief.networks import MIMO
    >>> type(default_engine(EdgeModel())).__name__, type(default_engine(EdgeModel(MIMO()))).__name__
    ('Exact', 'Modes')
    """
    if applies(model):
        return Exact()
    return NUTS() if model.network.forward else Modes()
