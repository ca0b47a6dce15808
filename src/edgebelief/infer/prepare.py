"""What must see the data before an engine runs: a head's base, a readout's curves or growth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..data.dataset import GraphDataset
from ..data.randomness import Key
from ..errors import InputError, Remedy, Setting
from ..networks import StochasticHead
from ..readouts import Affine, Sized
from .batch import run_network
from .diagnostics import Verdict
from .exact.growth import with_growth
from .exact.scan import most_plausible_z
from .gradient.density import LogDensity, values_of
from .gradient.optimise import highest_peak, most_plausible, not_converged
from .model import EdgeModel, check_weights
from .priors import Prior

# Climbs that train the base of a head.
BASE_STARTS = 4


@dataclass(frozen=True)
class Problem:
    """What an engine computes the posterior of."""

    model: EdgeModel
    """A model whose network and readout have seen the data."""
    data: GraphDataset
    counts: Float[np.ndarray, " graphs"]
    """How often each graph counts."""
    network_z: float | None = None
    """The most plausible coordinate of a network with one parameter, under the paper's readout,
    where preparation has computed it."""


def prepare(key: Key | int, model: EdgeModel, data: GraphDataset, weights: Any = None) -> Problem:
    """Show the data to network and readout, where they need to see it.

    The base of a head is trained to its most plausible parameters. A readout sees the network's
    outputs at their most plausible parameters under the paper's readout.
    """
    counts = check_weights(weights, len(data))
    network = model.network
    if isinstance(network, StochasticHead) and not network.is_prepared:
        theta = _trained_base(key, model, network, data, counts)
        model = model.replace(network=network.trained(theta))
    if isinstance(model.readout, Sized) and not model.readout.is_prepared:
        model = with_growth(model, data, counts)
    if model.readout.is_prepared:
        return Problem(model, data, counts)
    if model.readout.covariates is None:  # all that there are
        _check_same_covariates(data)
    params, z = _most_plausible_network(model, data, counts)
    stacks = data.stacks()
    outputs = [run_network(model.network, params, jnp.asarray(s.e), s.support) for s in stacks]
    readout = model.readout.prepared(stacks, outputs)
    return Problem(model.replace(readout=readout), data, counts, z)


def _trained_base(
    key: Key | int,
    model: EdgeModel,
    head: StochasticHead,
    data: GraphDataset,
    counts: Float[np.ndarray, " graphs"],
) -> Float[np.ndarray, " entries"]:
    """The most plausible parameters of the base of a head."""
    if data.n_labels == 0:  # for predictive checks of the prior
        return np.full(head.base.sizes["theta"], model.prior["theta"].median)
    base = EdgeModel(head.base, prior=model.prior)
    peak = highest_peak(key, LogDensity.of(base, data, counts), "constrained", BASE_STARTS)
    Verdict(findings=not_converged(peak)).warn()
    return values_of(base, peak.z[None])["theta"][0]


def _check_same_covariates(data: GraphDataset) -> None:
    everything = dict.fromkeys(name for record in data for name in record.covariates)
    named = Setting("Additive", python="Additive(covariates=(...))")
    for t, record in enumerate(data):
        missing = [name for name in everything if name not in record.covariates]
        if missing:
            raise InputError(
                f"graph {t} has no covariate {missing}, which others have",
                remedy=["give it to every graph", Remedy("say which to use: {}", named)],
            )


def _most_plausible_network(
    model: EdgeModel, data: GraphDataset, counts: Float[np.ndarray, " graphs"]
) -> tuple[Any, float | None]:
    """The network's parameters at the mode under the paper's readout; of one, its z too."""
    params_type = model.network.params_type
    fields = params_type._fields
    still = all(model.prior[name].fixed for name in fields)
    if still or data.n_labels == 0:  # for predictive checks of the prior
        return params_type(*(jnp.asarray(model.prior[name].median) for name in fields)), None
    if len(fields) == 1:
        z = most_plausible_z(model, data, counts)
        return params_type(jnp.asarray(model.prior[fields[0]].from_z(z))), z
    names = (*fields, "delta", "b", *model.likelihood.params_type._fields)
    prior = Prior(**{name: model.prior[name] for name in names})
    plain = EdgeModel(model.network, Affine(), prior, model.likelihood)
    values = most_plausible(plain, data, counts)
    return params_type(*(jnp.asarray(values[name]) for name in fields)), None
