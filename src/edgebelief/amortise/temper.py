"""Belief that is tempered where the network may be lost, and Bayes' rule for a stated density.

With the logits l_ijk of heads k, the graph's level c (the logit of its mean probability), a slope t
between 0 and 1, and a doubt u about the level that all pairs share:

    p_ij = mean over k and u of sigmoid(c + t (l_ijk - c) + u),        u ~ N(0, tau^2)

At t = 1 and tau = 0 this is the mean of the heads; at t = 0 all pairs are alike, and what is known
of the share of edges is its order of magnitude. (t, tau) are functions of how unlike the training
world an input is (`Rule`).

A statement about the density changes the law of u by Bayes' rule. With d(u), the graph's density
under u,

    weight(u)  is proportional to  N(u; 0, tau^2) stated(logit d(u)) / world(logit d(u)):

the network has learned with the world's law of densities, which the stated one replaces. Where tau
is small, the statement changes little; where it is large, it decides the level.

A statement is also evidence of being lost: a network that is sure of another density than the
stated one reads the data in another way than who asks. With the stated law N(m, s^2), the distance

    z = |c - m| / sqrt(s^2 + TRUSTED^2)

counts as surprise as far as it is above 1 (`contradiction`, `by_rule`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit

from ..errors import SettingError

# Quadrature points of u, equally spaced: with 33 over the bulk of a smooth law, the trapezoid rule
# is exact to single precision.
LEVELS = 33
# So many points of the grid on which the bulk is looked for, over so many standard deviations.
FINE, WIDTH = 801, 5.0
# At so many points the density under u is computed; it is interpolated between them.
ANCHORS = 33
# A point beyond which the law of u is this share of its maximum is not in the bulk.
NEGLIGIBLE = 1e-6
# Standard deviations from the middle to the end of a 90 % interval.
NINETY = 1.6449
# A single number is read as a range of a tenth of the odds to both sides.
ROUNDED = 1.1
# The standard deviation of the network's own density, as a logit, about the true one, where it is
# not lost and data are plenty.
TRUSTED = 0.3
# Of probabilities: their logits are finite.
SMALLEST = 1e-12
# Of sums of probabilities: beyond it logarithms would be infinite.
TINY = 1e-300


class Law(NamedTuple):
    """A normal distribution of the logit of the density."""

    mean: float
    sd: float

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density, up to a constant.

        Examples
        --------
        >>> import numpy as np
        >>> from edgebelief.amortise.temper import Law
        >>> Law(0.0, 1.0).log_density(np.array([0.0, 2.0]))
        array([-0., -2.])
        """
        return -0.5 * ((x - self.mean) / self.sd) ** 2


class Tempering(NamedTuple):
    """How logits become probabilities."""

    slope: float
    """t: 1 where the network is trusted, 0 where it is not."""
    centre: float
    """c: the logit of the mean probability of the network."""
    levels: Float[np.ndarray, " levels"]
    """Values of u, which is added to the logits of all pairs."""
    level_weights: Float[np.ndarray, " levels"]
    """Their probabilities."""


class Rule(NamedTuple):
    """Slope and doubt about the level as functions of the surprise, linear between knots."""

    surprise: Float[np.ndarray, " knots"]
    slope: Float[np.ndarray, " knots"]
    doubt: Float[np.ndarray, " knots"]

    def at(self, surprise: float) -> tuple[float, float]:
        """Return (t, tau).

        Examples
        --------
        >>> import numpy as np
        >>> from edgebelief.amortise.temper import Rule
        >>> rule = Rule(np.array([1.0, 3.0]), np.array([1.0, 0.5]), np.array([0.0, 2.0]))
        >>> rule.at(0.5), rule.at(2.0), rule.at(9.0)
        ((1.0, 0.0), (0.75, 1.0), (0.5, 2.0))
        """
        return (
            float(np.interp(surprise, self.surprise, self.slope)),
            float(np.interp(surprise, self.surprise, self.doubt)),
        )


def stated_law(density: float | tuple[float, float]) -> Law:
    """Return the law of a stated density: a number, or a range that holds it with 90 %.

    Parameters
    ----------
    density : float or (float, float)
        Between 0 and 1, exclusive. A number is read as a range of a tenth of the odds to both
        sides.

    Returns
    -------
    Law

    Examples
    --------
    >>> from edgebelief.amortise.temper import stated_law
    >>> law = stated_law((0.1, 0.3))
    >>> round(law.mean, 2), round(law.sd, 2)
    (-1.52, 0.41)
    """
    try:
        ends = np.atleast_1d(np.asarray(density, float))
    except (TypeError, ValueError):
        ends = np.full(1, np.nan)
    if ends.shape not in ((1,), (2,)) or not ((ends > 0) & (ends < 1)).all():
        problem = f"must be a number between 0 and 1, or two of them; got {density!r}."
        raise SettingError(problem, argument="density")
    if len(ends) == 1 or ends[0] == ends[1]:
        return Law(float(logit(ends[0])), float(np.log(ROUNDED) / NINETY))
    low, high = logit(ends)
    if low > high:
        problem = f"must be a range from low to high; got {density!r}."
        raise SettingError(problem, argument="density")
    return Law(float((low + high) / 2), float((high - low) / 2 / NINETY))


def temper(
    logits: Float[np.ndarray, "edges heads"],
    slope: float = 1.0,
    doubt: float = 0.0,
    stated: Law | None = None,
    world: Law | None = None,
) -> Tempering:
    """Return slope, centre and law of the level for the logits of one graph.

    Parameters
    ----------
    logits : array, shape (edges, heads)
    slope, doubt : float
        t and tau.
    stated, world : Law, optional
        What the user says of the density, and what the network has learned with.

    Returns
    -------
    Tempering

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.temper import Law, moments, temper
    >>> logits = np.array([[4.0], [-4.0]])
    >>> mean, sd = moments(logits, temper(logits))
    >>> mean.round(3)
    array([0.982, 0.018])
    >>> lost = temper(logits, 0.0, 2.0, stated=Law(-2.0, 0.1), world=Law(0.0, 1.0))
    >>> mean, sd = moments(logits, lost)
    >>> mean.round(2)
    array([0.12, 0.12])
    """
    logits = logits.astype(float)
    centre = centre_of(logits)
    if not doubt > 0:
        return Tempering(slope, centre, np.zeros(1), np.ones(1))
    u = np.linspace(-WIDTH, WIDTH, FINE) * doubt
    log_weight = -0.5 * (u / doubt) ** 2
    if stated is not None and world is not None:
        shrunk = centre + slope * (logits - centre)
        anchors = np.linspace(u[0], u[-1], ANCHORS)
        density = np.array([expit(shrunk + a).mean() for a in anchors])
        at = np.interp(u, anchors, logit(np.clip(density, SMALLEST, 1 - SMALLEST)))
        # A statement that is vaguer than what the world says must not make extremes likely.
        world = world._replace(sd=max(world.sd, stated.sd))
        log_weight = log_weight + stated.log_density(at) - world.log_density(at)
    weight = np.exp(log_weight - log_weight.max())
    bulk = u[weight > NEGLIGIBLE]
    levels = np.linspace(bulk[0], bulk[-1], LEVELS)
    weights = np.exp(np.interp(levels, u, log_weight - log_weight.max()))
    return Tempering(slope, centre, levels, weights / weights.sum())


def centre_of(logits: Float[np.ndarray, "edges heads"]) -> float:
    """Return the logit of the mean probability."""
    mean = expit(logits.astype(float)).mean()
    return float(logit(np.clip(mean, SMALLEST, 1 - SMALLEST)))


def contradiction(logits: Float[np.ndarray, "edges heads"], stated: Law | None) -> float:
    """Return how many standard deviations beyond one the network's density is from the stated one.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.temper import Law, contradiction
    >>> logits = np.zeros((3, 4))
    >>> contradiction(logits, Law(0.3, 0.4)), contradiction(logits, Law(-1.5, 0.4))
    (0.0, 2.0)
    """
    if stated is None:
        return 0.0
    apart = abs(centre_of(logits) - stated.mean) / np.hypot(stated.sd, TRUSTED)
    return float(max(apart - 1, 0.0))


def by_rule(
    logits: Float[np.ndarray, "edges heads"],
    rule: Rule,
    surprise: float,
    stated: Law | None = None,
    world: Law | None = None,
) -> Tempering:
    """Return how a rule tempers the logits of one graph; a contradiction adds to the surprise.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.temper import Law, Rule, by_rule
    >>> rule = Rule(np.array([0.0, 2.0]), np.array([1.0, 0.5]), np.array([0.3, 1.0]))
    >>> logits, world = np.array([[4.0], [-4.0]]), Law(0.0, 1.0)
    >>> [by_rule(logits, rule, 0.0, Law(m, 0.4), world).slope for m in (0.0, 1.0, -1.5)]
    [1.0, 0.75, 0.5]
    """
    surprise = max(surprise, 0.0) + contradiction(logits, stated)
    return temper(logits, *rule.at(surprise), stated, world)


def moments(
    logits: Float[np.ndarray, "edges heads"], tempering: Tempering
) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
    """Return the mean and the standard deviation of each probability over heads and levels."""
    shrunk = _shrunk(logits, tempering)
    points = list(zip(tempering.levels, tempering.level_weights, strict=True))
    mean, variance = np.zeros(len(logits)), np.zeros(len(logits))
    for level, weight in points:
        mean += weight * expit(shrunk + level).mean(1)
    for level, weight in points:
        variance += weight * ((expit(shrunk + level) - mean[:, None]) ** 2).mean(1)
    return mean, np.sqrt(variance)


def log_moments(
    logits: Float[np.ndarray, "edges heads"], tempering: Tempering
) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
    """Return the logarithms of the mean probability and of its complement, precise where tiny.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.temper import log_moments, temper
    >>> logits = np.array([[-80.0, -80.0], [0.0, 0.0]])
    >>> yes, no = log_moments(logits, temper(logits))
    >>> yes.round(2)
    array([-80.  ,  -0.69])
    """
    shrunk = _shrunk(logits, tempering)
    yes, no = np.zeros(len(logits)), np.zeros(len(logits))
    for level, weight in zip(tempering.levels, tempering.level_weights, strict=True):
        yes += weight * expit(shrunk + level).mean(1)
        no += weight * expit(-shrunk - level).mean(1)
    return np.log(np.maximum(yes, TINY)), np.log(np.maximum(no, TINY))


def nll(
    logits: Float[np.ndarray, "edges heads"],
    labels: Float[np.ndarray, " edges"],
    tempering: Tempering,
) -> float:
    """Return the negative log-likelihood of labels, mean over pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.temper import nll, temper
    >>> logits = np.zeros((3, 4))
    >>> round(nll(logits, np.ones(3), temper(logits)), 3)
    0.693
    """
    x = _shrunk(logits, tempering) * np.where(labels > 0, 1.0, -1.0)[:, None]
    u = np.where(labels > 0, 1.0, -1.0)[:, None] * tempering.levels
    likelihood = expit(x[:, :, None] + u[:, None]).mean(1) @ tempering.level_weights
    return float(-np.log(np.maximum(likelihood, TINY)).mean())


def _shrunk(logits: np.ndarray, tempering: Tempering) -> np.ndarray:
    c, t = tempering.centre, tempering.slope
    return logits.astype(float) if t == 1 else c + t * (logits.astype(float) - c)
