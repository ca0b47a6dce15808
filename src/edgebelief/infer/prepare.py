"""A readout whose curves are made for the data gets to see them before it is fitted."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..data.dataset import GraphDataset
from ..readouts import Affine
from .model import EdgeModel, check_weights
from .priors import Prior


def prepared(model: EdgeModel, data: GraphDataset, weights: Any = None) -> EdgeModel:
    """The model with a readout that has seen the data.

    What a network puts out depends on its parameters; the outputs that are shown are those at the
    most plausible ones under the paper's readout.
    """
    if not model.sizes_unknown:
        return model
    params = _reference(model, data, weights)
    seen = []
    for stack in data.stacks():
        output = model.network(params, jnp.asarray(stack.e), stack.support)
        seen.append((output, stack.support, model.pairs(stack)))
    return model.with_readout(model.readout.prepared(seen))


def _reference(model: EdgeModel, data: GraphDataset, weights: Any) -> Any:
    """The network's parameters at the mode under the paper's readout."""
    from .exact import likely_place
    from .peaks import most_plausible

    fields = model.network.params_type._fields
    if data.n_labels == 0:  # for predictive checks of the prior
        return model.network.params_type(*(model.prior[name].median for name in fields))
    if len(fields) == 1:
        place = likely_place(model, data, check_weights(weights, len(data)))
        return model.network.params_type(float(model.prior[fields[0]].value_at(place)))
    names = (*fields, "delta", "b")
    prior = Prior(**{name: model.prior[name] for name in names})
    plain = EdgeModel(model.network, Affine(), prior, model.likelihood)
    found = most_plausible(plain, data, weights)
    return model.network.params_type(*(found[name] for name in fields))
