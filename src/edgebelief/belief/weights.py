"""From a posterior and new distances to the weight of each edge.

If the pair is an edge, its weight has the density

    p(w | edge) = sum_m v_m LogNormal(w; c_m, s_m),    v_m ~ p_m,

over draws m of the parameters: those that believe in the edge count more. Its mean is a sum; its
quantiles are where the distribution function, which is a sum too, has risen far enough, so that few
draws make no tail too short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp, ndtr, ndtri
from jaxtyping import Array, Float

from ..data.dataset import GraphDataset, GraphRecord, Stack
from ..data.randomness import Key, split
from ..errors import InputError, SettingError
from ..infer.batch import Batch, ForwardModel
from ..infer.posterior import Posterior
from .predict import Predictions, as_dataset, predict

# Halvings of the interval in which a quantile is known to lie: to single precision.
HALVINGS = 24
# Pairs times draws that are worked on at a time.
NUMBERS = 2**21


class WeightBelief(NamedTuple):
    """Belief in the weight of each candidate edge of one graph."""

    probability: Float[np.ndarray, " edges"]
    """Of the edge."""
    mean: Float[np.ndarray, " edges"]
    """Of its weight, if it is an edge; as are the next three."""
    median: Float[np.ndarray, " edges"]
    low: Float[np.ndarray, " edges"]
    """The ends of an interval with equal tails."""
    high: Float[np.ndarray, " edges"]
    expected: Float[np.ndarray, " edges"]
    """The mean of the weight where no edge counts as zero: probability times mean."""


class WeightPredictions(Sequence[WeightBelief]):
    """A `WeightBelief` per graph, with the data set they are about.

    Parameters
    ----------
    presence : Predictions
        Belief in the edges; its data set is the one this is about.
    beliefs : sequence of WeightBelief
    level : float
        Of the intervals.
    crps, crps_given_edge : sequence of array, or of None for a graph without weights
        Of each pair: see `edgebelief.metrics.crps`. NaN where there is nothing to score.
    """

    def __init__(
        self,
        presence: Predictions,
        beliefs: Sequence[WeightBelief],
        level: float,
        crps: Sequence[np.ndarray | None],
        crps_given_edge: Sequence[np.ndarray | None],
    ):
        self.presence, self._beliefs, self.level = presence, tuple(beliefs), level
        self.crps, self.crps_given_edge = tuple(crps), tuple(crps_given_edge)

    @property
    def data(self) -> GraphDataset:
        return self.presence.data

    def __len__(self) -> int:
        return len(self._beliefs)

    def __getitem__(self, index: Any) -> Any:
        return self._beliefs[index]

    def __iter__(self) -> Iterator[WeightBelief]:
        return iter(self._beliefs)

    def __repr__(self) -> str:
        return f"<WeightPredictions of {self.data!r}>"


def predict_weights(
    key: Key | int, posterior: Posterior, data: Any, level: float = 0.9, n: int = 256
) -> WeightPredictions:
    """The weight of every edge of every graph, should it be one; with an interval.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
        Of a model with `WeightedEdges`.
    data : GraphDataset or array_like
        As for `predict`; known weights are scored.
    level : float
        The probability with which the interval holds the weight of an edge.
    n : int
        Draws of the parameters; `n` numbers are held for each pair of a graph. Of a pair that is
        hardly believed to be an edge, few of them count, and its interval is rough.

    Returns
    -------
    WeightPredictions

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief import predict_weights
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact, WeightedEdges
    >>> from edgebelief.networks import DPG
    >>> drawn = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=100)
    >>> rng = np.random.default_rng(0)
    >>> w = [g.a * rng.lognormal(2.0, 0.3, g.a.size) for g in drawn]
    >>> data = GraphDataset([g.e for g in drawn], w, n_signals=100, weighted=True)
    >>> model = EdgeModel(DPG(depth=50), likelihood=WeightedEdges())
    >>> posterior = Exact().run(0, model, data[:5])
    >>> belief = predict_weights(0, posterior, data[5:])[0]
    >>> bool((belief.low < belief.median).all() and (belief.median < belief.high).all())
    True
    """
    if not 0 < level < 1:
        raise SettingError(f"must lie between 0 and 1; got {level!r}.", argument="level")
    model = posterior.model
    if not model.likelihood.weighted:
        raise InputError(
            "this posterior knows of no weights. Fit a model with WeightedEdges, or a "
            "GraphLearner(weighted=True), to graphs with weights."
        )
    data = as_dataset(data)
    presence = predict(posterior, data)
    of_params, of_members = split(key, 2)
    draws = {name: jnp.asarray(x) for name, x in posterior.draws(of_params, n).items()}
    tails = jnp.array([0.5, (1 - level) / 2, (1 + level) / 2])
    beliefs: list[Any] = [None] * len(data)
    scores: list[Any] = [(None, None)] * len(data)
    for stack in data.stacks():
        for part in _together(stack, n):
            batch = model.forward.batch(part).without_labels().as_jax()
            laws = _laws(model.forward, draws, batch)
            told = np.exp(np.asarray(_told(*laws, tails), float))
            members = None
            if part.w is not None and part.known.any():
                members_key = jax.random.fold_in(of_members, part.places[0])
                members = [np.asarray(x, float) for x in _members(members_key, *laws)]
            for row, place in enumerate(part.places):
                p, (mean, median, low, high) = presence[place].mean, told[:, row]
                beliefs[place] = WeightBelief(p, mean, median, low, high, p * mean)
                if members is not None and data[place].w is not None:
                    scores[place] = _scored(data[place], *(x[:, row] for x in members))
    return WeightPredictions(presence, beliefs, level, *zip(*scores, strict=True))


def _together(stack: Stack, n: int) -> list[Stack]:
    """Graphs that are done together, in equal parts but for the last."""
    n_graphs = len(stack.places)
    size = max(1, NUMBERS // (n * stack.support.n_edges))
    size = -(-n_graphs // -(-n_graphs // size))
    return [stack.part(slice(first, first + size)) for first in range(0, n_graphs, size)]


@eqx.filter_jit
def _laws(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch
) -> tuple[Array, Array, Array]:
    """Compute logits, and mean and sd of log weights, at each draw."""

    def at(values: dict[str, Array]) -> tuple[Array, Array, Array]:
        params = forward.split(values)
        reduced = forward.run(params, batch)
        centre, spread = forward.log_weights(params, reduced)
        return forward.logits(params, reduced), centre, spread[None, None]

    return lax.map(at, draws)


@jax.jit
def _told(
    logits: Float[Array, "draws graphs edges"],
    centre: Float[Array, "draws graphs edges"],
    spread: Float[Array, "draws 1 1"],
    tails: Float[Array, " tails"],
) -> Float[Array, "1+tails graphs edges"]:
    """The logarithms of the mean and of quantiles of the weight, if there is an edge."""
    share = jax.nn.softmax(jax.nn.log_sigmoid(logits), axis=0)
    mean = logsumexp(centre + spread**2 / 2, axis=0, b=share)

    def quantile(tail: Array) -> Array:
        each = centre + spread * ndtri(tail)  # the mixture's lies between those of its parts

        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) / 2
            below = (share * ndtr((middle - centre) / spread)).sum(0) < tail
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        low, high = lax.fori_loop(0, HALVINGS, halve, (each.min(0), each.max(0)))
        return (low + high) / 2

    return jnp.concatenate([mean[None], lax.map(quantile, tails)])


@jax.jit
def _members(
    key: Array,
    logits: Float[Array, "draws graphs edges"],
    centre: Float[Array, "draws graphs edges"],
    spread: Float[Array, "draws 1 1"],
) -> tuple[Array, Array]:
    """Logarithms of weights drawn from the prediction, -inf for no edge; and if there is one."""
    of_noise, of_edge, of_draw = jax.random.split(key, 3)
    noise = jax.random.normal(of_noise, (2, *logits.shape))
    there = jax.random.bernoulli(of_edge, jax.nn.sigmoid(logits))
    all_pairs = jnp.where(there, centre + spread * noise[0], -jnp.inf)
    # Draws that believe in the edge come more often.
    rising = jnp.cumsum(jax.nn.softmax(jax.nn.log_sigmoid(logits), axis=0), axis=0)
    n = len(logits)
    ticks = (jnp.arange(n) + jax.random.uniform(of_draw)) / n
    find = jax.vmap(jax.vmap(lambda one: jnp.searchsorted(one, ticks), 1, 1), 1, 1)
    chosen = jnp.minimum(find(rising), n - 1)
    again = jnp.take_along_axis(centre, chosen, 0) + spread[chosen, 0, 0] * noise[1]
    return all_pairs, again


def _scored(
    record: GraphRecord, all_pairs: np.ndarray, of_edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The CRPS of each known pair, and of each edge; NaN for others."""
    from scoringrules import crps_ensemble  # slow to import

    found = []
    for which, members in ((record.known, all_pairs), (record.a > 0, of_edges)):
        each = np.full(record.e.size, np.nan)
        # "pwm" by probability-weighted moments: unbiased, however few the members.
        each[which] = crps_ensemble(
            record.w[which],  # type: ignore[index]
            np.exp(members[:, which]).T,
            estimator="pwm",
        )
        found.append(each)
    return found[0], found[1]
