"""The choice of an engine that suits a model."""

from ...networks import StochasticHead
from ..exact.applies import applies
from ..model import EdgeModel
from .base import Engine
from .exact import Exact
from .modes import Modes
from .nuts import NUTS

# On 20 graphs of 12 nodes these chains take four minutes; those of the usual length had not ended
# after nine.
HEAD = NUTS(n_warmup=300, n_draws=500, target_accept=0.9, max_tree_depth=7)


def default_engine(model: EdgeModel) -> Engine:
    """Choose `Exact` where it applies; `Modes` for a network with many parameters; else `NUTS`.

    For a stochastic head the chains are shorter: where they do not mix, longer ones would not help.

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
    if isinstance(model.network, StochasticHead):
        return HEAD
    return NUTS() if model.network.forward_mode else Modes()
