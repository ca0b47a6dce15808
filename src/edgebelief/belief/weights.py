"""Predict the weights of edges of new graphs from a posterior and their distances.

If a pair is an edge, its weight has the mixture density

    p(w | edge) = sum_m v_m LogNormal(w; c_m, s_m),    v_m proportional to p_m,

over draws m of the parameters, where p_m is the probability of the edge. The mean is that of the
mixture. Quantiles are computed from the distribution function of the mixture, not from samples, so
that the tails are right even with few draws. Where the mixture is so skewed that its mean lies
outside the interval between them, the interval is extended to the mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp, ndtr, ndtri
from jaxtyping import Array, ArrayLike, Bool, Float

from ..data.dataset import GraphRecord, Stack
from ..data.randomness import Key, split
from ..errors import InputError
from ..infer.batch import Batch, ForwardModel
from ..infer.posterior import Posterior
from ..readouts.curves import AnyArray
from .predict import BeliefsOf, DataLike, Predictions, as_dataset, predict, quantiles_of
from .shift import BeliefWarning

# Bisections of the interval in which a quantile lies: single precision has 24 bits.
HALVINGS = 24
# The largest number of pairs times draws to hold at once.
NUMBERS = 2**21
# Weights with larger logarithms are given as this: double precision ends at exp(709.8).
MOST = 709.0


class WeightBelief(NamedTuple):
    """Belief in the weight of each candidate edge of one graph."""

    probability: Float[np.ndarray, " edges"]
    """The probability of the edge."""
    mean: Float[np.ndarray, " edges"]
    """The mean of the weight, given that the pair is an edge."""
    median: Float[np.ndarray, " edges"]
    """The median of the weight, given that the pair is an edge."""
    low: Float[np.ndarray, " edges"]
    """The lower end of a credible interval, given that the pair is an edge. Its tails are equal,
    except that it reaches to the mean where that lies outside."""
    high: Float[np.ndarray, " edges"]
    """The upper end of that interval."""
    expected: Float[np.ndarray, " edges"]
    """The mean of the weight, which is zero for a pair that is no edge: probability times mean."""


class WeightPredictions(BeliefsOf[WeightBelief]):
    """A `WeightBelief` for each graph of a data set.

    Parameters
    ----------
    presence : Predictions
        Belief in the edges of the same data set.
    beliefs : sequence of WeightBelief
    level : float
        The probability of the intervals.
    crps, crps_given_edge : sequence of array or None
        The score of each pair, for each graph: see `edgebelief.metrics.crps`. NaN where there is
        nothing to score; None for a graph without weights.
    """

    def __init__(
        self,
        presence: Predictions,
        beliefs: Sequence[WeightBelief],
        level: float,
        crps: Sequence[np.ndarray | None],
        crps_given_edge: Sequence[np.ndarray | None],
    ):
        super().__init__(presence.data, beliefs)
        self.presence, self.level = presence, level
        self.crps, self.crps_given_edge = tuple(crps), tuple(crps_given_edge)


def predict_weights(
    key: Key | int, posterior: Posterior, data: DataLike, level: float = 0.9, n: int = 256
) -> WeightPredictions:
    """Predict the weight of every pair of every graph, given that it is an edge.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
        The posterior of a model with `WeightedEdges`.
    data : GraphDataset or array_like
        As for `predict`; known weights are scored.
    level : float
        The probability of the intervals for weights.
    n : int
        The number of draws of the parameters. Memory for `n` numbers is needed for each pair of a
        graph. For a pair that is hardly believed to be an edge few draws count, and its interval is
        rough.

    Returns
    -------
    WeightPredictions

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import belief, data, infer
    >>> drawn = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 6, n_nodes=8, n_signals=100)
    >>> rng = np.random.default_rng(0)
    >>> w = [g.a * rng.lognormal(2.0, 0.3, g.a.size) for g in drawn]
    >>> graphs = data.GraphDataset([g.e for g in drawn], w, n_signals=100, weighted=True)
    >>> model = infer.EdgeModel(likelihood=infer.WeightedEdges())
    >>> posterior = infer.Exact().run(0, model, graphs[:5])
    >>> [weights] = belief.predict_weights(0, posterior, graphs[5:])
    >>> bool((weights.low < weights.median).all() and (weights.median < weights.high).all())
    True
    """
    levels, model = jnp.array([0.5, *quantiles_of(level)]), posterior.model
    if not model.likelihood.weighted:
        raise InputError(
            "this posterior knows of no weights. Fit a model with WeightedEdges, or a "
            "GraphLearner(weighted=True), to graphs with weights."
        )
    data = as_dataset(data)
    presence = predict(posterior, data)
    params_key, weights_key = split(key, 2)
    draws = {name: jnp.asarray(x) for name, x in posterior.draws(params_key, n).items()}
    beliefs: dict[int, WeightBelief] = {}
    crps: list[np.ndarray | None] = [None] * len(data)
    crps_given_edge = crps.copy()
    too_large = 0
    for stack in data.stacks():
        for part in _parts(stack, n):
            batch = model.forward.batch(part).without_labels().as_jax()
            mixture = _mixture(model.forward, draws, batch)
            summary = _LogSummary(*(np.asarray(x, float) for x in _log_summary(mixture, levels)))
            sampled = None
            if part.w is not None and part.known.any():
                part_key = jax.random.fold_in(weights_key, part.places[0])
                sampled = _Samples(*(np.asarray(x, float) for x in _samples(part_key, mixture)))
            for row, t in enumerate(part.places):
                p, mean = presence[t].mean, _exp(summary.mean[row])
                too_large += int((summary.mean[row] > MOST).sum())
                median, low, high = _exp(summary.quantiles[:, row])
                low, high = np.minimum(low, mean), np.maximum(high, mean)
                beliefs[t] = WeightBelief(p, mean, median, low, high, p * mean)
                if sampled is not None and data[t].w is not None:
                    crps[t] = _crps(data[t], data[t].known, sampled.all_pairs[:, row])
                    crps_given_edge[t] = _crps(data[t], data[t].a > 0, sampled.given_edge[:, row])
    if too_large:
        warnings.warn(
            f"the mean weight of {too_large} pairs is beyond double precision, and given as "
            f"{np.exp(MOST):.0e}: the posterior of weight_sd, which is the spread of their "
            f"logarithms, is too wide for a mean. Use the median, or a narrower prior.",
            BeliefWarning,
            stacklevel=2,
        )
    in_order = [beliefs[t] for t in range(len(data))]
    return WeightPredictions(presence, in_order, level, crps, crps_given_edge)


def _parts(stack: Stack, n: int) -> list[Stack]:
    """Split a stack into graphs that are computed together, in equal parts but for the last."""
    n_graphs = len(stack.places)
    size = max(1, NUMBERS // (n * stack.support.n_edges))
    size = -(-n_graphs // -(-n_graphs // size))
    return [stack.part(slice(first, first + size)) for first in range(0, n_graphs, size)]


def _exp(log_weights: AnyArray) -> Float[np.ndarray, "..."]:
    return np.exp(np.minimum(np.asarray(log_weights), MOST))


class _Mixture(NamedTuple):
    """The law of the weight of each pair at each draw of the parameters."""

    logits: Float[Array, "draws graphs edges"]
    centre: Float[Array, "draws graphs edges"]
    """The mean of the log weight, given that the pair is an edge."""
    spread: Float[Array, "draws 1 1"]
    """Its standard deviation."""

    @property
    def shares(self) -> Float[Array, "draws graphs edges"]:
        """The weight v_m of each draw, in proportion to the probability of the edge."""
        return jax.nn.softmax(jax.nn.log_sigmoid(self.logits), axis=0)


@eqx.filter_jit
def _mixture(forward: ForwardModel, draws: dict[str, Array], batch: Batch) -> _Mixture:
    def at(values: dict[str, Array]) -> _Mixture:
        params = forward.split(values)
        reduced = forward.run(params, batch)
        centre, spread = forward.log_weights(params, reduced)
        return _Mixture(forward.logits(params, reduced), centre, spread[None, None])

    return lax.map(at, draws)


class _LogSummary(NamedTuple):
    """Logarithms of the mean and of quantiles of the weight, given that the pair is an edge."""

    mean: Float[AnyArray, "graphs edges"]
    quantiles: Float[AnyArray, "levels graphs edges"]


@jax.jit
def _log_summary(mixture: _Mixture, levels: Float[Array, " levels"]) -> _LogSummary:
    """Summarise the mixture by its mean and its quantiles at `levels`."""
    shares, centre, spread = mixture.shares, mixture.centre, mixture.spread

    def quantile(level: Array) -> Array:
        # The quantile of a mixture lies between the least and the largest of its components'.
        each = centre + spread * ndtri(level)

        def halve(_: ArrayLike, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) / 2
            below = (shares * ndtr((middle - centre) / spread)).sum(0) < level
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        low, high = lax.fori_loop(0, HALVINGS, halve, (each.min(0), each.max(0)))
        return (low + high) / 2

    mean = logsumexp(centre + spread**2 / 2, axis=0, b=shares)
    return _LogSummary(mean, lax.map(quantile, levels))


class _Samples(NamedTuple):
    """Logarithms of sampled weights of each pair, as many as draws."""

    all_pairs: Float[AnyArray, "draws graphs edges"]
    """-inf for no edge."""
    given_edge: Float[AnyArray, "draws graphs edges"]
    """Given that the pair is an edge."""


@jax.jit
def _samples(key: Array, mixture: _Mixture) -> _Samples:
    logits, centre, spread = mixture
    noise_key, edge_key, draw_key = jax.random.split(key, 3)
    noise = jax.random.normal(noise_key, (2, *logits.shape))
    present = jax.random.bernoulli(edge_key, jax.nn.sigmoid(logits))
    all_pairs = jnp.where(present, centre + spread * noise[0], -jnp.inf)
    # Systematic resampling of the draws, in proportion to the probability of the edge.
    n, cumulative = len(logits), jnp.cumsum(mixture.shares, axis=0)
    ticks = (jnp.arange(n) + jax.random.uniform(draw_key)) / n
    find = jax.vmap(jax.vmap(lambda column: jnp.searchsorted(column, ticks), 1, 1), 1, 1)
    chosen = jnp.minimum(find(cumulative), n - 1)
    given_edge = jnp.take_along_axis(centre, chosen, 0) + spread[chosen, 0, 0] * noise[1]
    return _Samples(all_pairs, given_edge)


def _crps(
    record: GraphRecord, which: Bool[np.ndarray, " edges"], log_weights: AnyArray
) -> Float[np.ndarray, " edges"]:
    """Score the samples of some weights of one graph, which are known; NaN for the others."""
    from scoringrules import crps_ensemble  # slow to import

    assert record.w is not None
    scores, samples = np.full(record.e.size, np.nan), _exp(log_weights[:, which]).T
    # "pwm" by probability-weighted moments: unbiased, however few the samples.
    scores[which] = crps_ensemble(record.w[which], samples, estimator="pwm")
    return scores
