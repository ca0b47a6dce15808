"""What has to see the data before it is fitted to them: a head's base, a readout's curves,
how its belief grows with size.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data.dataset import GraphDataset, Stack
from ..data.randomness import Key
from ..edges import Support
from ..errors import InputError, Remedy, Setting
from ..networks import Network, Output, StochasticHead
from ..readouts import Affine, Sized
from .model import EdgeModel, check_weights
from .priors import Prior

# Of the base of a head.
BASE_STARTS = 4


def prepared(
    model: EdgeModel, data: GraphDataset, weights: Any = None, key: Key | int = 0
) -> EdgeModel:
    """The model with a network and a readout that have seen the data.

    The base of a head is trained, by `MAP`. What a readout gets to see are the network's outputs at
    its most plausible parameters under the paper's readout.
    """
    network = model.network
    if isinstance(network, StochasticHead) and not network.is_prepared:
        trained = network.trained(_base(model, network, data, weights, key))
        model = model.replace(network=trained)
    if isinstance(model.readout, Sized) and not model.readout.is_prepared:
        from .exact.growth import with_growth

        model = with_growth(model, data, check_weights(weights, len(data)))
    if not model.readout.is_prepared:
        model = _with_curves(model, data, weights)
    return model


def _base(
    model: EdgeModel, network: StochasticHead, data: GraphDataset, weights: Any, key: Key | int
) -> Any:
    """Parameters for the base of a head."""
    from .engines.map import MAP

    if data.n_labels == 0:  # for predictive checks of the prior
        return np.full(network.base.sizes["theta"], model.prior["theta"].median)
    plain = EdgeModel(network.base, prior=model.prior)
    return MAP(starts=BASE_STARTS).run(key, plain, data, weights).params["theta"][0]


def _with_curves(model: EdgeModel, data: GraphDataset, weights: Any) -> EdgeModel:
    if getattr(model.readout, "covariates", ()) is None:  # all that there are
        _check_same_covariates(data)
    params = _reference(model, data, weights)

    def run(stack: Stack) -> Output:
        return _output(model.network, params, jnp.asarray(stack.e), stack.support)

    return model.replace(readout=model.readout.prepared(data.stacks(), run))


def _check_same_covariates(data: GraphDataset) -> None:
    everything = dict.fromkeys(name for record in data for name in record.covariates)
    for t, record in enumerate(data):
        missing = [name for name in everything if name not in record.covariates]
        if missing:
            raise InputError(
                f"graph {t} has no covariate {missing}, which others have",
                remedy=[
                    "give it to every graph",
                    Remedy(
                        "say which to use: {}",
                        Setting("Additive", python="Additive(covariates=(...))"),
                    ),
                ],
            )


@eqx.filter_jit
def _output(network: Network, params: Any, e: Array, support: Support) -> Output:
    return network(params, e, support)


def _reference(model: EdgeModel, data: GraphDataset, weights: Any) -> Any:
    """The network's parameters at the mode under the paper's readout."""
    from .engines.exact import most_plausible_z
    from .gradient.optimise import most_plausible

    fields = model.network.params_type._fields
    still = all(model.prior[name].fixed for name in fields)
    if still or data.n_labels == 0:  # for predictive checks of the prior
        return model.network.params_type(*(jnp.asarray(model.prior[n].median) for n in fields))
    if len(fields) == 1:
        place = most_plausible_z(model, data, check_weights(weights, len(data)))
        return model.network.params_type(jnp.asarray(model.prior[fields[0]].from_z(place)))
    names = (*fields, "delta", "b", *model.likelihood.params_type._fields)
    prior = Prior(**{name: model.prior[name] for name in names})
    plain = EdgeModel(model.network, Affine(), prior, model.likelihood)
    found = most_plausible(plain, data, weights)
    return model.network.params_type(*(jnp.asarray(found[name]) for name in fields))
