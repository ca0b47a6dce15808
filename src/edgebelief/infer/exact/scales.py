"""What the scales of groups of coefficients may be.

Coefficients w of a group share a scale tau,

    w_j ~ Normal(0, tau_g),    tau_g ~ HalfNormal(s),

and the log-likelihood is taken to be quadratic in w, around the mode at the latest scales. Then
everything can be drawn in turns (Gibbs): w given tau is normal; tau given w has a density in one
dimension; and tau given w/tau, which moves where the labels say little, is a normal cut off at
zero. Both ways round, chains do not get stuck near tau = 0 (interweaving, Yu and Meng 2011).

The draws say where to look, not what is there: a normal is put around them (`ScaleLaw`), in the
coordinates in which the prior is standard normal, and what is drawn from that gets weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import ndtr, ndtri

from ..priors import HalfNormal

# Scales between these are told apart: a term of the least moves no probability, and the prior's
# width times the most is beyond belief.
LEAST, MOST, POINTS = 1e-4, 8.0, 160
# Rounds between two expansions of the log-likelihood.
EVERY = 10
# How much more variance a law of the scales has than the draws; the share of their covariances
# that is not believed.
WIDER, CAUTION = 1.15, 0.2


class Grouped(NamedTuple):
    """Which coefficients are in groups: the first `n_own` have a standard normal prior instead."""

    n_own: int
    groups: Int[np.ndarray, " grouped"]
    width: float
    """s."""

    @property
    def sizes(self) -> Int[np.ndarray, " groups"]:
        return np.bincount(self.groups)

    def precision(self, scales: Float[np.ndarray, " groups"]) -> Float[np.ndarray, " coefficients"]:
        """Of each coefficient in its prior."""
        return np.concatenate([np.ones(self.n_own), 1 / scales[self.groups] ** 2])


class Quadratic(NamedTuple):
    """A log-likelihood, value + slope' (w - centre) - (w - centre)' H (w - centre)/2."""

    value: float
    centre: Float[np.ndarray, " coefficients"]
    slope: Float[np.ndarray, " coefficients"]
    curvature: Float[np.ndarray, "coefficients coefficients"]
    """H."""

    @property
    def pull(self) -> Float[np.ndarray, " coefficients"]:
        """The slope at w = 0."""
        return self.slope + self.curvature @ self.centre

    def log_mass(self, precision: Float[np.ndarray, " coefficients"]) -> float:
        """Log of the likelihood, the coefficients integrated out."""
        at_zero = self.value - (self.slope + self.pull) @ self.centre / 2
        root = cholesky(self.curvature + np.diag(precision), lower=True, check_finite=False)
        half = solve_triangular(root, self.pull, lower=True, check_finite=False)
        volume = np.log(precision).sum() / 2 - np.log(np.diag(root)).sum()
        return float(at_zero + half @ half / 2 + volume)


def draw_scales(
    rng: np.random.Generator,
    expand: Callable[[Float[np.ndarray, " groups"]], Quadratic],
    grouped: Grouped,
    start: Float[np.ndarray, " groups"],
    n_warm: int,
    n_draws: int,
) -> Float[np.ndarray, "draws groups"]:
    """Scales, given the labels.

    `expand` gives the quadratic around the mode at some scales; it is asked every few rounds.
    """
    own, groups, s = grouped
    n_groups = len(start)
    member = [np.flatnonzero(groups == g) + own for g in range(n_groups)]
    tau = np.clip(start, LEAST, MOST * s)
    scales = np.empty((n_draws, n_groups))
    for t in range(-n_warm, n_draws):
        if (t + n_warm) % EVERY == 0:
            quadratic = expand(tau)
            H, pull = quadratic.curvature, quadratic.pull
        # Coefficients given the scales.
        root = cholesky(H + np.diag(grouped.precision(tau)), lower=True, check_finite=False)
        w = cho_solve((root, True), pull, check_finite=False)
        w += solve_triangular(root, rng.standard_normal(w.size), lower=True, trans=1)
        # Scales given them,
        square = np.bincount(groups, w[own:] ** 2, n_groups)
        tau = _given_squares(rng, square, grouped)
        # and again given the coefficients in units of the scales, which they move with them.
        force = pull - H @ w
        for g in rng.permutation(n_groups):
            unit = w[member[g]] / tau[g]
            along = H[:, member[g]] @ unit
            steep = unit @ along[member[g]]
            # log density of a new tau: force (tau' - tau) - steep (tau' - tau)^2/2 - tau'^2/(2 s^2)
            narrow = steep + 1 / s**2
            middle = (unit @ force[member[g]] + steep * tau[g]) / narrow
            sd = 1 / np.sqrt(narrow)
            low, high = (ndtr((end - middle) / sd) for end in (LEAST, MOST * s))
            if high - low < 1e-12:
                continue  # so far in a tail that it has no numbers: leave it
            new = middle + sd * ndtri(low + (high - low) * rng.random())
            new = float(np.clip(new, LEAST, MOST * s))
            force -= along * (new - tau[g])
            w[member[g]] = unit * new
            tau[g] = new
        if t >= 0:
            scales[t] = tau
    return scales


def _given_squares(
    rng: np.random.Generator, squares: Float[np.ndarray, " groups"], grouped: Grouped
) -> Float[np.ndarray, " groups"]:
    """Scales given the sums of squares S of the groups' n coefficients each, by a grid of log tau:

    its density is tau^(1 - n) exp(-S/(2 tau^2) - tau^2/(2 s^2)).
    """
    log_tau = np.linspace(np.log(LEAST), np.log(MOST * grouped.width), POINTS)
    tau2 = np.exp(2 * log_tau)
    f = (1 - grouped.sizes)[:, None] * log_tau - tau2 / (2 * grouped.width**2)
    f = f - squares[:, None] / (2 * tau2)
    share = np.cumsum(np.exp(f - f.max(1, keepdims=True)), 1)
    place = (share < share[:, -1:] * rng.random((len(squares), 1))).sum(1)
    inside = (rng.random(len(squares)) - 0.5) * (log_tau[1] - log_tau[0])
    return np.clip(np.exp(log_tau[place] + inside), LEAST, MOST * grouped.width)


class ScaleLaw(NamedTuple):
    """Normal in the places of the scales in their prior."""

    prior: HalfNormal
    mean: Float[np.ndarray, " groups"]
    factor: Float[np.ndarray, "groups groups"]

    @classmethod
    def around(cls, scales: Float[np.ndarray, "draws groups"], prior: HalfNormal) -> ScaleLaw:
        """Somewhat wider than the draws, and not quite as correlated: they are few."""
        places = prior.to_z(scales)
        covariance = np.atleast_2d(np.cov(places.T))
        alone = np.diag(np.diag(covariance) + 1e-4)
        return cls(
            prior,
            places.mean(0),
            np.linalg.cholesky(WIDER * ((1 - CAUTION) * covariance + CAUTION * alone)),
        )

    @property
    def typical(self) -> Float[np.ndarray, " groups"]:
        """The scales in the middle."""
        return np.maximum(self.prior.from_z(self.mean), LEAST)

    def draw(
        self, unit: Float[np.ndarray, "draws groups"]
    ) -> tuple[Float[np.ndarray, "draws groups"], Float[np.ndarray, " draws"]]:
        """Scales from standard normal numbers, and the log of prior over density at them."""
        places = self.mean + unit @ self.factor.T
        gain = (unit**2 - places**2).sum(1) / 2 + np.log(np.diag(self.factor)).sum()
        return np.maximum(self.prior.from_z(places), LEAST), gain
