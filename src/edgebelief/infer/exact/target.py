"""The posterior of coefficients and scales given theta, in the coordinates of chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import wrightomega

from ..priors import LogNormal, Marginal
from .hamiltonian import PerChain, States
from .laplace import ThetaMode
from .regression import Labels
from .shrinkage import LEAST, Shrinkage

# The scale of each coefficient in a group, or another number for each.
Tau = Float[np.ndarray, "curves chains"]
# The step of the difference that tells a curvature.
STEP = 1e-2
# The random walk that draws scales given the coefficients: steps, and their length in log tau; and
# the largest scale that it goes to, in units of the prior's s: with it no probability differs from
# 0 or 1 in double precision.
WALK, STRIDE, MOST = 8, 1.0, 1e3
# Directions in which the variance of draws is above this get a factor of their own. It is above
# what chance makes of a thousand draws in a few hundred dimensions, 1 + 2 sqrt(0.2) + 0.2.
WIDE = 3.0
# Terms 1 + exp(-|x|) that are multiplied before a logarithm is taken: 2^64 does not overflow.
BLOCK = 64


class Rows(NamedTuple):
    """Signed rows of the design matrix at the value of theta of each chain, in single precision.

    Most columns do not depend on theta, and are kept once.
    """

    common: Float[np.ndarray, "rows common"]
    own: Float[np.ndarray, "chains rows own"]
    weights: Float[np.ndarray, " rows"] | None
    """None where all are equal."""
    power: float
    """What the log-likelihood is multiplied by: the weight of all rows, where it is the same."""
    is_own: Bool[np.ndarray, " columns"]
    """Whether a column depends on theta."""

    @classmethod
    def of(cls, labels: Sequence[Labels]) -> Rows:
        """Collect the rows at all values of theta, which must be in one order."""
        first = labels[0].rows
        is_own = np.zeros(first.shape[1], bool)
        for other in labels[1:]:
            is_own |= (other.rows != first).any(0)
        common = np.ascontiguousarray(first[:, ~is_own], np.float32)
        own = np.stack([each.rows[:, is_own].astype(np.float32) for each in labels])
        weights = labels[0].weights
        if np.ptp(weights) == 0:
            return cls(common, own, None, float(weights[0]), is_own)
        return cls(common, own, weights.astype(np.float32), 1.0, is_own)

    def at(self, places: Int[np.ndarray, " chains"]) -> Rows:
        """Return the rows of chains at these values of theta."""
        return self._replace(own=self.own[places])

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Return `n` rows, or all if there are fewer."""
        kept = rng.permutation(len(self.common))[:n]
        weights = None if self.weights is None else self.weights[kept]
        return Rows(self.common[kept], self.own[:, kept], weights, self.power, self.is_own)

    def margins(self, beta: States) -> Float[np.ndarray, "chains rows"]:
        """Return the log odds of each label."""
        beta = np.ascontiguousarray(beta.T, np.float32)
        own = self.own @ beta[:, self.is_own, None]
        return beta[:, ~self.is_own] @ self.common.T + own[:, :, 0]

    def log_likelihood(self, beta: States) -> tuple[PerChain, States]:
        """Return the log-likelihood of all labels, and its gradient."""
        x = self.margins(beta)
        small = np.exp(-np.abs(x))
        above = 1 + small  # log sigmoid(x) = min(x, 0) - log(1 + exp(-|x|))
        score = np.where(x >= 0, small, np.float32(1)) / above
        low = np.minimum(x, 0)
        if self.weights is None:
            starts = np.arange(0, above.shape[1], BLOCK)
            products = np.multiply.reduceat(above, starts, axis=1)
            value = low.sum(1, dtype=float) - np.log(products).sum(1, dtype=float)
        else:
            value = ((low - np.log(above)) * self.weights).sum(1, dtype=float)
            score *= self.weights
        gradient = np.empty(beta.shape)
        gradient[~self.is_own] = (score @ self.common).T
        gradient[self.is_own] = (score[:, None, :] @ self.own)[:, 0].T
        return self.power * value, self.power * gradient


class Metric(NamedTuple):
    """A linear map of the coordinates, unit = origin + x + V (s - 1) V'x, that all chains share.

    In a few directions V the posterior is wider than its approximation at the mode, by factors s.
    """

    origin: Float[np.ndarray, "dimensions 1"]
    directions: Float[np.ndarray, "dimensions wide"]
    factors: Float[np.ndarray, "wide 1"]

    @classmethod
    def of(cls, unit: Float[np.ndarray, "draws dimensions"]) -> Metric:
        """Learn the map from draws in the coordinates before it."""
        mean = unit.mean(0)
        variances, axes = np.linalg.eigh(np.cov(unit.T))
        wide = variances > WIDE
        return cls(mean[:, None], axes[:, wide], np.sqrt(variances[wide])[:, None])

    def to_unit(self, x: States) -> States:
        """Apply the map."""
        return self.origin + self.stretched(x)

    def stretched(self, x: States) -> States:
        """Apply the linear part, which is symmetric."""
        return x + self.directions @ ((self.factors - 1) * (self.directions.T @ x))

    def from_unit(self, unit: States) -> States:
        """Invert the map."""
        x = unit - self.origin
        return x + self.directions @ ((1 / self.factors - 1) * (self.directions.T @ x))


class Parts(NamedTuple):
    """The parts of a state, all in coordinates in which their prior is standard normal."""

    first: Float[np.ndarray, "first chains"]
    """The coefficients in no group."""
    curves: Float[np.ndarray, "curves chains"]
    """The coefficients in groups, over their scales."""
    scales: Float[np.ndarray, "groups chains"]


@dataclass(frozen=True)
class Target:
    """The posterior of coefficients and scales, for chains that each have a value of theta.

    Coefficients are in units of their posterior at the mode, y = centre + root unit. Where the
    labels determine w = tau u, the density of u is the steeper the larger tau is. So the
    coordinates of curves are y = u sqrt((1 + h tau^2) / (1 + h t^2)), with the curvature h of the
    likelihood along w, and typical scales t: those of u where h tau^2 is small, and those of w
    where it is large, so that one step size fits all scales. Other coefficients beta are `bent` for
    the same reason, where their prior is lognormal.
    """

    shrinkage: Shrinkage
    rows: Rows
    centres: Float[np.ndarray, "coefficients chains"]
    roots: Float[np.ndarray, "chains coefficients coefficients"]
    """Cholesky factors, which change smoothly with theta."""
    curvatures: Float[np.ndarray, "curves chains"]
    """h, of each coefficient in a group."""
    bends: Float[np.ndarray, "first chains"]
    """The root of h, of each coefficient in no group; 0 where it is not bent."""
    spreads: Float[np.ndarray, "groups 1"]
    """The units of the coordinates of scales."""
    metric: Metric | None = None
    """Learned while chains warm up."""

    @classmethod
    def of(cls, shrinkage: Shrinkage, modes: Sequence[ThetaMode], rows: Rows) -> Target:
        """Take the coordinates from the modes of the coefficients at typical scales.

        There is a chain for each value of theta; see `at`.
        """
        n = len(shrinkage.marginals)
        bends, centres, roots, curvatures = [], [], [], []
        for at in modes:
            centre, covariance = at.mode.z.copy(), at.mode.covariance
            slopes = _derivatives(shrinkage.marginals, centre[:n, None])[0][:, 0]
            by_labels = np.maximum(np.diagonal(np.linalg.inv(covariance)) - 1, 0)
            is_lognormal = [isinstance(marginal, LogNormal) for marginal in shrinkage.marginals]
            bend = np.where(is_lognormal, np.sqrt(by_labels[:n]) / slopes, 0.0)
            unit = np.ones(centre.size)
            unit[:n] += bend * slopes
            centre[:n] = bent(shrinkage.marginals, bend[:, None], centre[:n, None])[:, 0]
            bends.append(bend)
            centres.append(centre)
            roots.append(np.linalg.cholesky(unit[:, None] * covariance * unit))
            curvatures.append(by_labels[n:] / shrinkage.sds**2)
        return cls(
            shrinkage,
            rows,
            np.stack(centres, 1),
            np.stack(roots),
            np.stack(curvatures, 1),
            np.stack(bends, 1),
            np.ones((shrinkage.n_scales, 1)),
        )

    def at(self, places: Int[np.ndarray, " chains"]) -> Target:
        """Return the target of chains at these values of theta."""
        return replace(
            self,
            rows=self.rows.at(places),
            centres=self.centres[:, places],
            roots=self.roots[places],
            curvatures=self.curvatures[:, places],
            bends=self.bends[:, places],
        )

    def with_spreads(self, k: int) -> Target:
        """Take the units of scales from the curvature at the `k`-th value of theta.

        At most 1, the prior's: a scale that says little there may say more elsewhere.
        """
        n = self.n_coefficients
        there, curvature = self.at(np.array([k, k])), np.ones((self.shrinkage.n_scales, 1))
        for g in range(len(curvature)):
            unit = np.zeros((n + len(curvature), 2))
            unit[n + g] = STEP, -STEP
            below, above = there.density(unit)[1][n + g]
            curvature[g] = (above - below) / (2 * STEP)
        return replace(self, spreads=1 / np.sqrt(np.maximum(curvature, 1.0)))

    @property
    def n_coefficients(self) -> int:
        return len(self.centres)

    @cached_property
    def inverses(self) -> Float[np.ndarray, "chains coefficients coefficients"]:
        """The inverses of the roots."""
        return np.linalg.inv(self.roots)

    @cached_property
    def transposed(self) -> Float[np.ndarray, "chains coefficients coefficients"]:
        """The transposes of the roots."""
        return np.ascontiguousarray(self.roots.swapaxes(1, 2))

    @cached_property
    def log_dets(self) -> Float[np.ndarray, " chains"]:
        """The logarithms of the determinants of the roots."""
        return np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(1)

    @cached_property
    def middle(self) -> Float[np.ndarray, "groups 1"]:
        """The coordinates of the typical scales."""
        return self.shrinkage.prior.to_z(self.shrinkage.scales)[:, None]

    @cached_property
    def starts(self) -> Int[np.ndarray, " groups"]:
        """The index of the first coefficient of each group."""
        return np.searchsorted(self.shrinkage.groups, np.arange(self.shrinkage.n_scales))

    def split(self, v: States) -> Parts:
        """Split a state into its parts."""
        n = len(self.shrinkage.marginals)
        return Parts(v[:n], v[n : self.n_coefficients], v[self.n_coefficients :])

    def from_unit(self, unit: States) -> States:
        """Map the coordinates of chains to a state."""
        return self._state(unit)[0]

    def _state(self, unit: States) -> tuple[States, Tau, Tau]:
        """Map the coordinates of chains to a state; return also tau and u / y of each curve."""
        n, n_first = self.n_coefficients, len(self.bends)
        unit = unit if self.metric is None else self.metric.to_unit(unit)
        y = self.centres + _multiplied(self.roots, unit[:n])
        scales = self.middle + self.spreads * unit[n:]
        first = unbent(self.shrinkage.marginals, self.bends, y[:n_first])
        tau = self.shrinkage.prior.from_z(scales)[self.shrinkage.groups]
        stretch = self._stretch(tau)
        return np.concatenate([first, y[n_first:] * stretch, scales]), tau, stretch

    def to_unit(self, v: States) -> States:
        """Map a state to the coordinates of chains."""
        first, curves, scales = self.split(v)
        first = bent(self.shrinkage.marginals, self.bends, first)
        stretch = self._stretch(self.shrinkage.prior.from_z(scales)[self.shrinkage.groups])
        y = _multiplied(self.inverses, np.concatenate([first, curves / stretch]) - self.centres)
        unit = np.concatenate([y, (scales - self.middle) / self.spreads])
        return unit if self.metric is None else self.metric.from_unit(unit)

    def _stretch(self, tau: Tau) -> Tau:
        """Return u / y, given the scale of each coefficient."""
        typical, h = self.shrinkage.sds[:, None], self.curvatures
        return np.sqrt((1 + h * typical**2) / (1 + h * tau**2))

    def beta(self, parts: Parts) -> States:
        """Return the coefficients of the columns."""
        tau = self.shrinkage.prior.from_z(parts.scales)[self.shrinkage.groups]
        return self._beta(parts, tau)

    def _beta(self, parts: Parts, tau: Tau) -> States:
        marginals = zip(self.shrinkage.marginals, parts.first, strict=True)
        first = [marginal.from_z(z)[None] for marginal, z in marginals]
        return np.concatenate([*first, tau * parts.curves])

    def density(self, unit: States) -> tuple[PerChain, States]:
        """Return the log density in the coordinates of chains, and its gradient."""
        v, of_each, stretch = self._state(unit)
        parts, prior = self.split(v), self.shrinkage.prior
        value, by_beta = self.rows.log_likelihood(self._beta(parts, of_each))
        slopes, curvatures = _derivatives(self.shrinkage.marginals, parts.first)
        bend, n = self.bends, len(slopes)
        pace = 1 / (1 + bend * slopes)  # of z along its bent coordinate
        slope_of_tau, u = prior.from_z_derivatives(parts.scales)[0], parts.curves
        by_u = by_beta[n:] * of_each - u
        # With y held, u falls as tau rises, and so does the log of the stretch.
        fall = self.curvatures * of_each / (1 + self.curvatures * of_each**2)
        by_tau = self._by_group(by_beta[n:] * u - fall * (by_u * u + 1))
        by_z = by_beta[:n] * slopes - parts.first - bend * curvatures * pace
        by_y = np.concatenate([by_z * pace, by_u * stretch])
        by_scale = by_tau * slope_of_tau - parts.scales
        value = value - (v**2).sum(0) / 2 + np.log(stretch).sum(0) + np.log(pace).sum(0)
        by_unit = np.concatenate([_multiplied(self.transposed, by_y), self.spreads * by_scale])
        if self.metric is not None:
            by_unit = self.metric.stretched(by_unit)
        return value + self.log_dets, by_unit

    def with_new_scales(self, rng: np.random.Generator, v: States) -> States:
        """Draw scales given the coefficients, by random walks in log tau.

        The density of log tau is tau^(1 - n) exp(-S/(2 tau^2)) p(tau), where S is the sum of
        squares of the group's n coefficients, and p the prior.
        """
        shrinkage, parts = self.shrinkage, self.split(v)
        most = MOST * shrinkage.prior.scale
        tau = np.clip(shrinkage.prior.from_z(parts.scales), LEAST, most)
        w = tau[shrinkage.groups] * parts.curves
        squares, n = self._by_group(w**2), self._by_group(np.ones((len(w), 1)))

        def log_density(log_tau: Float[np.ndarray, "groups chains"]) -> np.ndarray:
            tau = np.exp(log_tau)
            value = (1 - n) * log_tau - squares / (2 * tau**2) + shrinkage.prior.log_kernel(tau)
            outside = (log_tau < np.log(LEAST)) | (log_tau > np.log(most))
            return np.where(outside, -np.inf, value)

        log_tau, value = np.log(tau), log_density(np.log(tau))
        for _ in range(WALK):
            new = log_tau + STRIDE * rng.standard_normal(log_tau.shape)
            new_value = log_density(new)
            taken = np.log(rng.random(log_tau.shape)) < new_value - value
            log_tau, value = np.where(taken, new, log_tau), np.where(taken, new_value, value)
        tau = np.exp(log_tau)
        curves = w / tau[shrinkage.groups]
        return np.concatenate([parts.first, curves, shrinkage.prior.to_z(tau)])

    def _by_group(
        self, values: Float[np.ndarray, "curves chains"]
    ) -> Float[np.ndarray, "groups chains"]:
        """Sum over the coefficients of each group, which are in the order of the groups."""
        return np.add.reduceat(values, self.starts, axis=0)


def bent(
    marginals: Sequence[Marginal],
    bend: Float[np.ndarray, "first chains"],
    z: Float[np.ndarray, "first chains"],
) -> Float[np.ndarray, "first chains"]:
    """Map coordinates z of coefficients beta(z) to y = z + bend beta(z).

    Labels see beta, on which their log-likelihood has the curvature h = bend^2. In z it is
    h beta'(z)^2, which grows without bound; in y it is at most 1, and so is the prior's.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.infer import lognormal
    >>> from edgebelief.infer.exact.target import bent, unbent
    >>> y = bent([lognormal(2, 1)], np.array([[3.0]]), np.array([[1.0]]))
    >>> unbent([lognormal(2, 1)], np.array([[3.0]]), y).round(6)
    array([[1.]])
    """
    return z + bend * np.stack([m.from_z(x) for m, x in zip(marginals, z, strict=True)])


def unbent(
    marginals: Sequence[Marginal],
    bend: Float[np.ndarray, "first chains"],
    y: Float[np.ndarray, "first chains"],
) -> Float[np.ndarray, "first chains"]:
    """Invert `bent`, for lognormal marginals; where others are not bent, z is y.

    With beta = m exp(s z), q = s bend beta solves q + log q = s y + log(s bend m): Wright's omega.
    """
    z = y.copy()
    for k, marginal in enumerate(marginals):
        if isinstance(marginal, LogNormal):
            s, m = marginal.log_sd, marginal.median
            is_bent = bend[k] > 0
            log = np.log(s * m * bend[k][is_bent])
            z[k][is_bent] -= wrightomega(s * y[k][is_bent] + log) / s
    return z


def _derivatives(
    marginals: Sequence[Marginal], z: Float[np.ndarray, "first chains"]
) -> tuple[Float[np.ndarray, "first chains"], Float[np.ndarray, "first chains"]]:
    """Return the first and the second derivatives of the coefficients by their coordinates."""
    each = [m.from_z_derivatives(x) for m, x in zip(marginals, z, strict=True)]
    return np.stack([first for first, _ in each]), np.stack([second for _, second in each])


def _multiplied(
    matrices: Float[np.ndarray, "chains n n"], x: Float[np.ndarray, "n chains"]
) -> Float[np.ndarray, "n chains"]:
    """Multiply each chain by its matrix."""
    return (matrices @ x.T[:, :, None])[:, :, 0].T
