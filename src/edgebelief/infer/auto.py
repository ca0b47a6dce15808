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
    >>> from edgebelief.networks import DPG, MIMO, PDS
    >>> from edgebelief.readouts import Additive
    >>> models = EdgeModel(DPG()), EdgeModel(DPG(), Additive()), EdgeModel(MIMO()), EdgeModel(PDS())
    >>> [type(default_engine(model)).__name__ for model in models]
    ['Exact', 'Exact', 'Modes', 'NUTS']
    """
    if applies(model):
        return Exact()
    return NUTS() if model.network.forward else Modes()
