"""Parameters at which a network says nothing: outputs all zero (dead) or all alike (constant).

There the likelihood does not depend on the network's parameters, and a posterior is a copy of the
prior that looks healthy in every ordinary diagnostic. Distances on the wrong scale are the usual
cause: multiplying them by c moves all that a network does by a factor c in theta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import qmc

from ..data.dataset import GraphDataset
from ..incidence import Array as AnyArray
from ..networks import Network
from .batch import Batch, with_precomputed
from .model import EdgeModel

# Outputs that differ by less than this share of the largest are alike.
ALIKE = 1e-3
# Graphs looked at, the first of the data set: a scale is seen in any of them.
GRAPHS = 4
# Rescalings that are tried for a cure. (Not 10.0 ** k, which some processors round the wrong way.)
FACTORS = np.array([float(f"1e{k}") for k in range(-9, 10)])
# Draws looked at in a compiled call; and of those of one parameter, in order, the first ones.
AT_ONCE, COARSE = 4, 17


class Flatness(NamedTuple):
    """The share of a distribution over parameters in which the network is flat."""

    dead: float
    """Share in which every output is zero, in every graph."""
    constant: float
    """Share in which every graph's outputs are alike, and not zero."""

    @property
    def share(self) -> float:
        return self.dead + self.constant


class Rescaling(NamedTuple):
    """A factor of the distances, and how flat the prior is with it."""

    factor: float
    flatness: Flatness


def is_dead(a: Float[AnyArray, "... edges"]) -> Bool[AnyArray, "..."]:
    """Whether all outputs of a graph are zero."""
    return (a == 0).all(-1)


def is_flat(a: Float[AnyArray, "... edges"]) -> Bool[AnyArray, "..."]:
    """Whether a graph's outputs are all alike, zero or not."""
    return a.max(-1) - a.min(-1) <= ALIKE * abs(a).max(-1)


def flatness(
    model: EdgeModel,
    params: Mapping[str, ArrayLike],
    data: GraphDataset,
    weights: Float[np.ndarray, " draws"] | None = None,
    factor: float = 1.0,
) -> Flatness:
    """Compute the share of weighted draws for which the network is dead or constant.

    The first few graphs are used, with their distances multiplied by `factor`. Draws have equal
    weights by default.
    """
    network = model.network
    drawn = {name: np.atleast_1d(params[name]) for name in network.params_type._fields}
    drawn, shares = _distinct(drawn, weights)
    batches = [
        with_precomputed(network, Batch(stack.e * factor, stack.support)).as_jax()
        for stack in data[:GRAPHS].stacks()
    ]

    def look(which: Int[np.ndarray, " some"]) -> Bool[np.ndarray, "some 2"]:
        flags = np.ones((len(which), 2), bool)
        for start in range(0, len(which), AT_ONCE):
            part = np.resize(which[start : start + AT_ONCE], AT_ONCE)  # some twice, at the end
            at = {name: jnp.asarray(values[part]) for name, values in drawn.items()}
            for batch in batches:
                of_part = np.stack(_look(network, at, batch), 1)
                flags[start : start + AT_ONCE] &= of_part[: len(which) - start]
        return flags

    one_number = sum(values[0].size for values in drawn.values()) == 1
    every = np.arange(shares.size)
    dead, alike = (_by_halving(look, shares.size) if one_number else look(every)).T
    return Flatness(float(shares @ dead), float(shares @ (alike & ~dead)))


def prior_flatness(
    model: EdgeModel, data: GraphDataset, factor: float = 1.0, n: int = 256
) -> Flatness:
    """Compute the share of the prior in which the network is dead or constant.

    By `n` quasi-random draws; with one parameter in the network the share is within 1/n.
    """
    n_own = sum(model.free_sizes[name] for name in model.network.params_type._fields)
    match n_own:
        case 0:
            places = np.zeros((1, 0))
        case 1:
            places = ndtri((np.arange(n)[:, None] + 0.5) / n)
        case _:
            places = ndtri(qmc.Sobol(n_own, seed=0).random(n))
    others = np.zeros((len(places), model.n_free - n_own))
    draws = model.from_z(np.concatenate([places, others], axis=1))
    return flatness(model, draws, data, factor=factor)


def best_rescaling(model: EdgeModel, data: GraphDataset) -> Rescaling:
    """Find the power of ten that makes the prior least flat; among equals, the nearest to 1."""
    tried = [Rescaling(f, prior_flatness(model, data, f, n=64)) for f in FACTORS]
    return min(tried, key=lambda r: (round(r.flatness.share, 2), abs(np.log(r.factor))))


def _distinct(
    drawn: dict[str, np.ndarray], weights: np.ndarray | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Collect the distinct sets of network parameters, at most 256, and their weights."""
    n = len(next(iter(drawn.values())))
    columns = [np.asarray(values, float).reshape(n, -1) for values in drawn.values()]
    table = np.concatenate(columns, axis=1)
    weights = np.full(len(table), 1 / len(table)) if weights is None else np.asarray(weights)
    table, inverse = np.unique(table, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights, len(table))
    if len(table) > 256:
        kept = np.linspace(0, len(table) - 1, 256).astype(int)
        table, weights = table[kept], weights[kept]
    parts = np.split(table, np.cumsum([column.shape[1] for column in columns])[:-1], axis=1)
    each = zip(drawn.items(), parts, strict=True)
    distinct = {name: part.reshape(-1, *np.shape(values)[1:]) for (name, values), part in each}
    return distinct, weights / weights.sum()


def _by_halving(
    look: Callable[[Int[np.ndarray, " some"]], Bool[np.ndarray, "some 2"]], n: int
) -> Bool[np.ndarray, "n 2"]:
    """Return `look` at 0, ..., n - 1, where it changes a few times only.

    It is evaluated at some points, then in the middle between neighbours that differ.
    """
    places = np.unique(np.linspace(0, n - 1, COARSE).astype(int))
    flags = look(places)
    while True:
        differ = (flags[1:] != flags[:-1]).any(1) & (np.diff(places) > 1)
        if not differ.any():
            return flags[np.searchsorted(places, np.arange(n), side="right") - 1]
        middles = (places[:-1] + places[1:])[differ] // 2
        order = np.argsort(places := np.concatenate([places, middles]))
        flags = np.concatenate([flags, look(middles)])[order]
        places = places[order]


@eqx.filter_jit
def _look(
    network: Network, draws: dict[str, Array], batch: Batch
) -> tuple[Bool[Array, " draws"], Bool[Array, " draws"]]:
    """Whether the network is dead, and whether it is flat, in all graphs, at each draw."""

    def at(values: dict[str, Array]) -> tuple[Array, Array]:
        a = network(network.params_type(**values), batch.e, batch.support, batch.precomputed).a
        return is_dead(a).all(), is_flat(a).all()

    return jax.lax.map(at, draws)
