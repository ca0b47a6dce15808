"""Which models `Exact` and `Laplace` can fit."""

from __future__ import annotations

from ...errors import DoesNotApply
from ..likelihoods import BernoulliEdges, WeightedEdges
from ..model import EdgeModel
from .slices import free_network_parameters
from .weights import WeightPrior


def applies(model: EdgeModel) -> bool:
    """Whether `Exact` can fit this model."""
    try:
        check_model(model)
    except DoesNotApply:
        return False
    return True


def check_model(model: EdgeModel) -> None:
    """Refuse models that `Exact` cannot fit, with the reason."""
    network = free_network_parameters(model)
    n_free = sum(model.network.sizes.get(name, 1) for name in network)
    if n_free > 1:
        raise DoesNotApply(
            f"Exact adds up over one network parameter; this network has {n_free} in doubt "
            f"({', '.join(network)}). Use NUTS, or fix the others."
        )
    readout = type(model.readout).__name__
    if not model.readout.linear:
        raise DoesNotApply(
            f"Exact needs a readout with a coefficient for each column; {readout} has "
            f"none for the weight. Use NUTS."
        )
    if any(model.prior[name].fixed for name in model.readout.params_type._fields):
        raise DoesNotApply(
            f"Exact adds up over all parameters of {readout}; some are fixed. Use NUTS."
        )
    if not isinstance(model.likelihood, BernoulliEdges | WeightedEdges):
        raise DoesNotApply(
            f"Exact knows Bernoulli edges, with or without weights; the likelihood is "
            f"{type(model.likelihood).__name__}. Use NUTS."
        )
    if model.likelihood.weighted:
        WeightPrior.of(model)
    if network and not model.prior[network[0]].positive:
        raise DoesNotApply(
            f"{network[0]} must be positive, so its prior must be lognormal or loguniform; it is "
            f"{model.prior[network[0]]}."
        )
