"""Gibbs sampling of the scales of groups of coefficients.

Coefficients w of a group share a scale tau,

    w_j ~ Normal(0, tau_g),    tau_g ~ HalfNormal(s),

and the log-likelihood is approximated by a quadratic in w. Then w given tau is normal, and tau
given w has a density in one dimension. Besides, tau is drawn given w/tau, from a truncated normal;
this step moves the scales where the labels say little. With both steps, chains do not get stuck
near tau = 0 (interweaving, Yu and Meng 2011).

The draws only locate the posterior of the scales. `ScaleProposal` is a normal distribution around
them, in the coordinates in which the prior is standard normal; what is drawn from it gets
importance weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import ndtr, ndtri

from ..priors import HalfNormal

# The range of the scales, the upper end in units of the prior's s, and the grid points within: a
# term with a smaller scale changes no probability, and a larger one the prior rules out.
LEAST, MOST, POINTS = 1e-4, 8.0, 160
# The proposal's variances are those of the draws times WIDER; its correlations are theirs less the
# share CAUTION, since the draws are few.
WIDER, CAUTION = 1.15, 0.2


Scales = Float[np.ndarray, " groups"]
Coefficients = Float[np.ndarray, " coefficients"]


class Grouped(NamedTuple):
    """Which coefficients are in groups.

    The first `n_ungrouped` are in none: they are in units in which their prior is standard normal.
    """

    n_ungrouped: int
    groups: Int[np.ndarray, " grouped"]
    """The group of each of the other coefficients."""
    width: float
    """s."""

    @property
    def sizes(self) -> Int[np.ndarray, " groups"]:
        """The number of coefficients in each group."""
        return np.bincount(self.groups)

    def precision(self, scales: Scales) -> Coefficients:
        """Return the prior precision of each coefficient."""
        return np.concatenate([np.ones(self.n_ungrouped), 1 / scales[self.groups] ** 2])

    def clip(self, scales: Scales) -> Scales:
        """Clip scales to the range in which they are drawn."""
        return np.clip(scales, LEAST, MOST * self.width)


class Quadratic(NamedTuple):
    """A log-likelihood, value + slope' (w - centre) - (w - centre)' H (w - centre)/2."""

    value: float
    centre: Coefficients
    slope: Coefficients
    curvature: Float[np.ndarray, "coefficients coefficients"]
    """H."""

    @property
    def slope_at_zero(self) -> Coefficients:
        """The gradient at w = 0."""
        return self.slope + self.curvature @ self.centre

    def log_mass(self, precision: Coefficients) -> float:
        """Return the log marginal likelihood, the coefficients integrated out."""
        at_zero = self.value - (self.slope + self.slope_at_zero) @ self.centre / 2
        root = cholesky(self.curvature + np.diag(precision), lower=True, check_finite=False)
        half = solve_triangular(root, self.slope_at_zero, lower=True, check_finite=False)
        volume = np.log(precision).sum() / 2 - np.log(np.diag(root)).sum()
        return float(at_zero + half @ half / 2 + volume)


def gibbs_rounds(
    rng: np.random.Generator, quadratic: Quadratic, grouped: Grouped, tau: Scales, n: int
) -> Float[np.ndarray, "rounds groups"]:
    """Draw scales in `n` Gibbs rounds that start at `tau`, at a fixed quadratic log-likelihood."""
    n_ungrouped, groups, s = grouped
    n_groups = len(tau)
    members = [np.flatnonzero(groups == g) + n_ungrouped for g in range(n_groups)]
    H, slope_at_zero = quadratic.curvature, quadratic.slope_at_zero
    scales = np.empty((n, n_groups))
    for t in range(n):
        # Coefficients given the scales.
        root = cholesky(H + np.diag(grouped.precision(tau)), lower=True, check_finite=False)
        w = cho_solve((root, True), slope_at_zero, check_finite=False)
        w += solve_triangular(root, rng.standard_normal(w.size), lower=True, trans=1)
        # Scales given the coefficients.
        squares = np.bincount(groups, w[n_ungrouped:] ** 2, n_groups)
        tau = _scales_given_squares(rng, squares, grouped)
        # Scales given w/tau: the coefficients of a group move with their scale.
        slope = slope_at_zero - H @ w
        for g in rng.permutation(n_groups):
            unit = w[members[g]] / tau[g]
            along = H[:, members[g]] @ unit
            steep = unit @ along[members[g]]
            # log density of a new tau: slope (tau' - tau) - steep (tau' - tau)^2/2 - tau'^2/(2 s^2)
            precision = steep + 1 / s**2
            mean = (unit @ slope[members[g]] + steep * tau[g]) / precision
            sd = 1 / np.sqrt(precision)
            low, high = (ndtr((end - mean) / sd) for end in (LEAST, MOST * s))
            if high - low < 1e-12:
                continue  # so far in a tail that rounding leaves nothing to draw from
            new = mean + sd * ndtri(low + (high - low) * rng.random())
            new = float(np.clip(new, LEAST, MOST * s))
            slope -= along * (new - tau[g])
            w[members[g]] = unit * new
            tau[g] = new
        scales[t] = tau
    return scales


def _scales_given_squares(
    rng: np.random.Generator, squares: Float[np.ndarray, " groups"], grouped: Grouped
) -> Scales:
    """Draw scales given the sum of squares S of each group's n coefficients, on a grid of log tau.

    The density is tau^(1 - n) exp(-S/(2 tau^2) - tau^2/(2 s^2)).
    """
    log_tau = np.linspace(np.log(LEAST), np.log(MOST * grouped.width), POINTS)
    tau2 = np.exp(2 * log_tau)
    f = (1 - grouped.sizes)[:, None] * log_tau - tau2 / (2 * grouped.width**2)
    f = f - squares[:, None] / (2 * tau2)
    share = np.cumsum(np.exp(f - f.max(1, keepdims=True)), 1)
    index = (share < share[:, -1:] * rng.random((len(squares), 1))).sum(1)
    inside = (rng.random(len(squares)) - 0.5) * (log_tau[1] - log_tau[0])
    return grouped.clip(np.exp(log_tau[index] + inside))


class ScaleProposal(NamedTuple):
    """A proposal for the scales, normal in the coordinates in which their prior is."""

    prior: HalfNormal
    mean: Float[np.ndarray, " groups"]
    factor: Float[np.ndarray, "groups groups"]
    """The Cholesky factor of the covariance."""

    @classmethod
    def around(cls, scales: Float[np.ndarray, "draws groups"], prior: HalfNormal) -> ScaleProposal:
        """Make a proposal that is somewhat wider than the draws, and not quite as correlated."""
        z = prior.to_z(scales)
        covariance = np.atleast_2d(np.cov(z.T))
        variances = np.diag(np.diag(covariance) + 1e-4)
        wider = WIDER * ((1 - CAUTION) * covariance + CAUTION * variances)
        return cls(prior, z.mean(0), np.linalg.cholesky(wider))

    @property
    def median(self) -> Scales:
        """The median of each scale."""
        return np.maximum(self.prior.from_z(self.mean), LEAST)

    def draw(
        self, unit: Float[np.ndarray, "draws groups"]
    ) -> tuple[Float[np.ndarray, "draws groups"], Float[np.ndarray, " draws"]]:
        """Turn standard normal numbers into draws of the scales, with log importance weights."""
        z = self.mean + unit @ self.factor.T
        log_weights = (unit**2 - z**2).sum(1) / 2 + np.log(np.diag(self.factor)).sum()
        return np.maximum(self.prior.from_z(z), LEAST), log_weights
