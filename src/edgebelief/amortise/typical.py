"""Is an input like those that the network was trained on?

    r = (features - expected) / spread       both given the facts: size, signals, metric
    unlike = max(|W r|, trees(r, facts))     each relative to what the training world has there

The first is a Mahalanobis distance: it grows in every direction, and counts where it is extreme.
The second are the log odds of a discriminant between the training world and strangers
(`strangers.FIT`), boosted trees: it is sharp in the directions that have mattered. Each is compared
with draws of the training world that neither has seen, the NEAREST to the input in their facts:

    surprise = (unlike - their median) / (their 95 % quantile - their median)

so that 5 % of the inputs of the training world have a surprise above 1, of any size. The p-value is
the share of those draws that are as unlike as the input.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .features import FEATURES, FROM_SIGNALS, READABLE
from .temper import Law
from .trees import Trees

# So many draws of the training world, the nearest in their facts, are what an input is compared
# with: their 95 % quantile has ten above it.
NEAREST = 200
# A difference of facts that counts as 1: half as many nodes again, twice as many signals. Another
# metric, or signals that are not given, are further away than most sizes.
NODES_APART, SIGNALS_APART, KIND_APART = 0.4, 0.8, 3.0
# Above this, one input of the training world in twenty.
ALARM = 1.0
# Beyond this many spreads a feature is compressed: one extreme one must not decide alone.
BEND = 2.0
# The quantile that a score is compared with: the alarm is due above it. The distance is less sharp
# than the discriminant, so it must be rarer to count.
ALARM_AT, DISTANCE_AT = 0.95, 0.99


class Summary(NamedTuple):
    """A summary of an input, and what the network expects of such data."""

    name: str
    """A key of `features.FEATURES`, which has a description."""
    value: float
    low: float
    high: float
    """What nine in ten inputs of the training world have that are like it in size and kind."""

    @property
    def beyond(self) -> float:
        """How far outside of that range the value is, in widths of the range; 0 inside."""
        outside = max(self.value - self.high, self.low - self.value, 0.0)
        return outside / max(self.high - self.low, 1e-6)


class Typicality(NamedTuple):
    """How like the training world an input is."""

    surprise: float
    """0 for a typical one; above 1 for 5 % of the training world; unbounded."""
    p_value: float
    """The share of the training world, given size and kind of data, that is as unlike."""
    summaries: tuple[Summary, ...]
    """All that say something to people."""

    @property
    def unusual(self) -> tuple[Summary, ...]:
        """The summaries outside the range of nine in ten, the most unusual first."""
        outside = [each for each in self.summaries if each.beyond > 0]
        return tuple(sorted(outside, key=lambda each: -each.beyond))

    @property
    def is_lost(self) -> bool:
        """Whether the alarm is due."""
        return self.surprise > ALARM


class Reference(NamedTuple):
    """What inputs are compared with: arrays, made by `alarm.make`."""

    middle: Float[np.ndarray, " width"]
    directions: Float[np.ndarray, "width directions"]
    """The principal directions of the network's states."""
    expected: Float[np.ndarray, "basis features"]
    log_spread: Float[np.ndarray, "basis features"]
    """Regressions of the features, and of their spreads, on the facts."""
    whitening: Float[np.ndarray, "features features"]
    """W; the features are centred by `shift` before."""
    shift: Float[np.ndarray, " features"]
    trees: Trees
    """The discriminant."""
    facts: Float[np.ndarray, "draws facts"]
    """Of held-out draws of the training world, as all that follow."""
    readable: Float[np.ndarray, "draws readable"]
    distance: Float[np.ndarray, " draws"]
    odds: Float[np.ndarray, " draws"]
    unlike: Float[np.ndarray, " draws"]
    density: Float[np.ndarray, " coefficients"]
    """The law of the logit of the density: three coefficients of its mean in log N, and the sd."""

    def world_law(self, n_nodes: int) -> Law:
        """Return the law of densities with which the network has learned."""
        *mean, sd = self.density.astype(float)
        return Law(float(np.polyval(mean, np.log(n_nodes))), float(sd))


def basis(facts: Float[np.ndarray, "draws facts"]) -> Float[np.ndarray, "draws basis"]:
    """Return what features are regressed on: squares and products of the facts.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.typical import basis
    >>> basis(np.zeros((2, 6))).shape
    (2, 19)
    """
    n, p, infinite, unknown, correlation, given = np.atleast_2d(facts).astype(float).T
    n = n - 3.0
    p = np.where(p > 0, (p - 5.0) / 1.5, 0.0)
    columns = [np.ones_like(n), n, n**2, p, p**2, n * p, infinite, unknown, correlation, given]
    columns += [correlation * given, n * correlation, n * given, p * correlation, p * given]
    columns += [n * infinite, n * unknown, unknown * correlation, infinite * correlation]
    return np.stack(columns, 1)


def residuals(
    reference: Reference, facts: np.ndarray, rows: np.ndarray
) -> Float[np.ndarray, "draws features"]:
    """Return r: how many spreads each feature is from what is expected, compressed."""
    b = basis(facts)
    r = (rows - b @ reference.expected) / np.exp(b @ reference.log_spread)
    r = BEND * np.arcsinh(r / BEND)
    r[np.atleast_2d(facts)[:, -1] == 0, FROM_SIGNALS] = 0.0
    return r


def columns_of(r: np.ndarray, facts: np.ndarray) -> Float[np.ndarray, "draws columns"]:
    """Return what the discriminant asks about."""
    return np.hstack([r, np.atleast_2d(facts)])


def scores(
    reference: Reference, facts: np.ndarray, r: np.ndarray
) -> tuple[Float[np.ndarray, " draws"], Float[np.ndarray, " draws"]]:
    """Return |W r| and the log odds of the discriminant."""
    distance = np.sqrt((((r - reference.shift) @ reference.whitening) ** 2).sum(1))
    return distance, reference.trees.log_odds(columns_of(r, facts))


def nearest(known: np.ndarray, facts: np.ndarray, count: int = NEAREST) -> np.ndarray:
    """Return the positions of the draws whose facts are nearest to those of one input."""
    apart = known.astype(float) - facts
    scale = np.array([NODES_APART, SIGNALS_APART, *np.full(4, 1 / KIND_APART)])
    order = np.argsort(((apart / scale) ** 2).sum(1), kind="stable")
    return order[:count]


def surprise(known: np.ndarray, value: float, at: float = ALARM_AT) -> float:
    """Return how far a value is above the median of others: 1 at their quantile `at`."""
    middle, high = np.quantile(known.astype(float), [0.5, at])
    return float((value - middle) / max(high - middle, 1e-9))


def larger(reference: Reference, near: np.ndarray, distance: float, odds: float) -> float:
    """Return the larger surprise of the two scores, over some draws."""
    return max(
        surprise(reference.distance[near], distance, DISTANCE_AT),
        surprise(reference.odds[near], odds),
    )


def typicality(
    reference: Reference, facts: Float[np.ndarray, " facts"], row: Float[np.ndarray, " features"]
) -> Typicality:
    """Compare an input with the training world.

    Parameters
    ----------
    reference : Reference
    facts, row : arrays
        See `features.facts` and `features.features`.

    Returns
    -------
    Typicality
    """
    near = nearest(reference.facts, facts)
    r = residuals(reference, facts[None], row[None])
    distance, odds = (float(x[0]) for x in scores(reference, facts[None], r))
    unlike = larger(reference, near, distance, odds)
    known = reference.unlike[near].astype(float)
    p_value = (1 + (known >= unlike).sum()) / (1 + len(known))
    return Typicality(
        surprise(known, unlike), float(p_value), _summaries(reference, near, facts, row)
    )


def _summaries(
    reference: Reference, near: np.ndarray, facts: np.ndarray, row: np.ndarray
) -> tuple[Summary, ...]:
    """List the readable features, with the range of nine in ten."""
    low, high = np.quantile(reference.readable[near].astype(float), [0.05, 0.95], axis=0)
    names = list(enumerate(list(FEATURES)[:READABLE]))
    if not facts[-1]:  # signals are not given
        del names[FROM_SIGNALS]
    return tuple(Summary(name, *map(float, (row[k], low[k], high[k]))) for k, name in names)
