"""Readouts with many coefficients on scales that are learned, by chains side by side.

Given theta, the labels are a logistic regression with coefficients w_j = tau_g u_j (`shrinkage`).
A round of a chain has three steps, each of which leaves the posterior as it is:

1. a Hamiltonian trajectory of (u, tau) given theta, in coordinates in which their prior is standard
   normal, in units of the posterior at the mode (`hamiltonian`);
2. new scales given w = tau u, which the labels do not see: without this step, chains are slow where
   a scale is well determined (interweaving, Yu and Meng 2011);
3. jumps to other values of theta, with u moved and stretched as its mode and covariance are.

Theta has the values of the quadrature points that `scan` has found, each with its share of the
prior, so that predictions need one run of the network for each of them, not for each draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from ...data.randomness import Key, generator
from ...progress import progress_bar
from ...threads import check
from ..diagnostics import EFFECTIVE_DRAWS, Finding
from ..model import EdgeModel
from ..posterior import Fit
from .hamiltonian import Chains, PerChain, States, StepSize, evaluated, move
from .laplace import ThetaMode
from .regression import Labels
from .shrinkage import LEAST, Shrinkage

# Chains, rounds of warm-up, in which the step size is learned, and rounds after it: at the least,
# and at the most, where draws are not yet worth EFFECTIVE_DRAWS.
N_CHAINS, WARMUP, ROUNDS, MOST_ROUNDS = 16, 150, 250, 2000
# Rounds that are added should make draws worth this many times what is asked for.
SPARE = 1.2
# The first step size of trajectories; the step of the difference that tells a curvature.
FIRST_STEP, STEP = 0.1, 1e-2
# In this share of the rounds steps are shorter by this factor, which frees a chain from where the
# density is steeper than at the mode.
SOMETIMES, SHORT = 0.2, 0.2
# The random walk that draws scales given the coefficients: steps, and their length in log tau; and
# the largest scale that it goes to, in units of the prior's s.
WALK, STRIDE, MOST = 8, 1.0, 8.0
# Proposals of another theta in a round: this share of them is any of the points, since another mode
# may be far away, and the others are at most this many points away.
JUMPS, ANYWHERE, FARTHEST = 4, 0.5, 5
# Labelled pairs whose log odds are monitored.
MONITORED = 100
# Draws worth 400 have an R-hat of about 1.02 with 16 chains; beyond this value they disagree.
RHAT = 1.05

# The index of a value of theta for each chain.
Places = Int[np.ndarray, " chains"]


class Rows(NamedTuple):
    """Signed rows of the design matrix at each value of theta, in single precision.

    Most columns do not depend on theta, and are kept once.
    """

    common: Float[np.ndarray, "rows common"]
    own: Float[np.ndarray, "values rows own"]
    weights: Float[np.ndarray, "rows 1"]
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
        return cls(common, own, labels[0].weights[:, None].astype(np.float32), is_own)

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Return `n` rows, or all if there are fewer."""
        kept = rng.permutation(len(self.common))[:n]
        return Rows(self.common[kept], self.own[:, kept], self.weights[kept], self.is_own)

    def margins(self, beta: States, at: Places) -> Float[np.ndarray, "rows chains"]:
        """Return the log odds of each label."""
        beta = beta.astype(np.float32)
        x, own = self.common @ beta[~self.is_own], beta[self.is_own]
        for k in np.unique(at):
            x[:, at == k] += self.own[k] @ own[:, at == k]
        return x

    def log_likelihood(self, beta: States, at: Places) -> tuple[PerChain, States]:
        """Return the log-likelihood of all labels, and its gradient."""
        x = self.margins(beta, at)
        small = np.exp(-np.abs(x))
        value = (self.weights * (np.minimum(x, 0) - np.log1p(small))).sum(0, dtype=float)
        score = self.weights * np.where(x >= 0, small, 1) / (1 + small)
        gradient = np.empty(beta.shape)
        gradient[~self.is_own] = self.common.T @ score
        for k in np.unique(at):
            gradient[np.ix_(self.is_own, at == k)] = self.own[k].T @ score[:, at == k]
        return value, gradient


class Parts(NamedTuple):
    """The parts of a state, all in coordinates in which their prior is standard normal."""

    first: Float[np.ndarray, "first chains"]
    """The coefficients in no group."""
    curves: Float[np.ndarray, "curves chains"]
    """The coefficients in groups, over their scales."""
    scales: Float[np.ndarray, "groups chains"]


@dataclass(frozen=True)
class Target:
    """The posterior of coefficients and scales at each value of theta.

    A chain moves in the coordinates of its value of theta: those of coefficients are in units of
    their posterior at the mode, y = centre + root unit. So a jump to another theta, at the same
    unit, moves and stretches the coefficients as the mode and its covariance do.

    Where the labels determine w = tau u, the density of u is the steeper the larger tau is. So the
    coordinates of curves are y = u sqrt((1 + h tau^2) / (1 + h t^2)), with the curvature h of the
    likelihood along w, and typical scales t: those of u where h tau^2 is small, and those of w
    where it is large, so that one step size fits all scales.
    """

    shrinkage: Shrinkage
    rows: Rows
    log_shares: Float[np.ndarray, " values"]
    """The log of each value's share of the prior."""
    centres: Float[np.ndarray, "values coefficients"]
    roots: Float[np.ndarray, "values coefficients coefficients"]
    """Cholesky factors, which change smoothly with theta."""
    curvature: Float[np.ndarray, "curves 1"]
    """h, of each coefficient in a group."""
    spreads: Float[np.ndarray, "groups 1"]
    """The units of the coordinates of scales."""

    @classmethod
    def of(cls, shrinkage: Shrinkage, modes: Sequence[ThetaMode], rows: Rows) -> Target:
        """Take the coordinates from the modes of the coefficients at typical scales."""
        best = max(modes, key=lambda at: at.log_share + at.mode.log_mass).mode
        in_units = np.diagonal(np.linalg.inv(best.covariance))[len(shrinkage.marginals) :] - 1
        return cls(
            shrinkage,
            rows,
            np.array([at.log_share for at in modes]),
            np.stack([at.mode.z for at in modes]),
            np.stack([np.linalg.cholesky(at.mode.covariance) for at in modes]),
            (np.maximum(in_units, 0) / shrinkage.sds**2)[:, None],
            np.ones((shrinkage.n_scales, 1)),
        )

    def with_spreads(self, k: int) -> Target:
        """Take the units of scales from the curvature at the `k`-th value of theta.

        At most 1, the prior's: a scale that says little there may say more elsewhere.
        """
        n = self.shrinkage.n_scales
        steps = np.concatenate([np.zeros((self.n_coefficients, n)), STEP * np.eye(n)])
        both = np.concatenate([steps, -steps], 1)
        _, gradient = self.density(both, np.full(2 * n, k))
        of_scales = gradient[self.n_coefficients :]
        curvature = np.diagonal(of_scales[:, n:] - of_scales[:, :n]) / (2 * STEP)
        return replace(self, spreads=1 / np.sqrt(np.maximum(curvature, 1.0))[:, None])

    @property
    def n_coefficients(self) -> int:
        return self.centres.shape[1]

    @cached_property
    def inverses(self) -> Float[np.ndarray, "values coefficients coefficients"]:
        """The inverses of the roots."""
        return np.linalg.inv(self.roots)

    @cached_property
    def log_dets(self) -> Float[np.ndarray, " values"]:
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

    def from_unit(self, unit: States, at: Places) -> States:
        """Map the coordinates of chains to a state."""
        n = self.n_coefficients
        y = self.centres[at].T + _multiplied(self.roots, unit[:n], at)
        scales = self.middle + self.spreads * unit[n:]
        y[len(self.shrinkage.marginals) :] *= self._stretch(scales)
        return np.concatenate([y, scales])

    def to_unit(self, v: States, at: Places) -> States:
        """Map a state to the coordinates of chains."""
        n = self.n_coefficients
        y, scales = v[:n].copy(), v[n:]
        y[len(self.shrinkage.marginals) :] /= self._stretch(scales)
        y = _multiplied(self.inverses, y - self.centres[at].T, at)
        return np.concatenate([y, (scales - self.middle) / self.spreads])

    def _stretch(
        self, scales: Float[np.ndarray, "groups chains"]
    ) -> Float[np.ndarray, "curves chains"]:
        """Return u / y."""
        shrinkage, h = self.shrinkage, self.curvature
        tau = shrinkage.prior.from_z(scales)[shrinkage.groups]
        return np.sqrt((1 + h * shrinkage.sds[:, None] ** 2) / (1 + h * tau**2))

    def beta(self, parts: Parts) -> States:
        """Return the coefficients of the columns."""
        marginals = zip(self.shrinkage.marginals, parts.first, strict=True)
        tau = self.shrinkage.prior.from_z(parts.scales)
        first = [marginal.from_z(z)[None] for marginal, z in marginals]
        return np.concatenate([*first, tau[self.shrinkage.groups] * parts.curves])

    def density(self, unit: States, at: Places) -> tuple[PerChain, States]:
        """Return the log density in the coordinates of chains, and its gradient."""
        v = self.from_unit(unit, at)
        parts, prior, groups = self.split(v), self.shrinkage.prior, self.shrinkage.groups
        value, by_beta = self.rows.log_likelihood(self.beta(parts), at)
        marginals = zip(self.shrinkage.marginals, parts.first, strict=True)
        slopes = np.stack([marginal.from_z_derivatives(z)[0] for marginal, z in marginals])
        n = len(slopes)
        tau, slope_of_tau = prior.from_z(parts.scales), prior.from_z_derivatives(parts.scales)[0]
        of_each, u, stretch = tau[groups], parts.curves, self._stretch(parts.scales)
        by_u = by_beta[n:] * of_each - u
        # With y held, u falls as tau rises, and so does the log of the stretch.
        fall = self.curvature * of_each / (1 + self.curvature * of_each**2)
        by_tau = self._by_group(by_beta[n:] * u - fall * (by_u * u + 1))
        by_y = np.concatenate([by_beta[:n] * slopes - parts.first, by_u * stretch])
        by_scale = by_tau * slope_of_tau - parts.scales
        value = value - (v**2).sum(0) / 2 + np.log(stretch).sum(0)
        value += self.log_shares[at] + self.log_dets[at]
        by_unit = _multiplied(self.roots.swapaxes(1, 2), by_y, at)
        return value, np.concatenate([by_unit, self.spreads * by_scale])

    def with_new_scales(self, rng: np.random.Generator, v: States) -> States:
        """Draw scales given the coefficients, by random walks in log tau.

        The density of log tau is tau^(1 - n) exp(-S/(2 tau^2) - tau^2/(2 s^2)), where S is the sum
        of squares of the group's n coefficients.
        """
        shrinkage, parts = self.shrinkage, self.split(v)
        most = MOST * shrinkage.width
        tau = np.clip(shrinkage.prior.from_z(parts.scales), LEAST, most)
        w = tau[shrinkage.groups] * parts.curves
        squares, n = self._by_group(w**2), self._by_group(np.ones((len(w), 1)))

        def log_density(log_tau: Float[np.ndarray, "groups chains"]) -> np.ndarray:
            tau2 = np.exp(2 * log_tau)
            value = (1 - n) * log_tau - squares / (2 * tau2) - tau2 / (2 * shrinkage.width**2)
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


class Round(NamedTuple):
    """What is kept of a round after warm-up; of several, stacked along a first axis."""

    states: Float[np.ndarray, "*rounds dimensions chains"]
    at: Int[np.ndarray, "*rounds chains"]
    log_odds: Float[np.ndarray, "*rounds pairs chains"]
    value: Float[np.ndarray, "*rounds chains"]
    acceptance: Float[np.ndarray, "*rounds chains"]
    divergent: Bool[np.ndarray, "*rounds chains"]
    jumped: Float[np.ndarray, "*rounds chains"]


def chain_draws(
    key: Key,
    model: EdgeModel,
    shrinkage: Shrinkage,
    modes: Sequence[ThetaMode],
    labels: Sequence[Labels],
    n_draws: int,
) -> Fit:
    """Draw all parameters by chains that start around the modes.

    `shrinkage` has typical scales, and `modes` are those at these; `labels` are the rows at each
    value of theta, in one order.
    """
    rng = generator(key)
    log_mass = [at.log_share + at.mode.log_mass for at in modes]
    target = Target.of(shrinkage, modes, Rows.of(labels)).with_spreads(int(np.argmax(log_mass)))
    at = rng.choice(len(modes), N_CHAINS, p=softmax(log_mass))
    n_kept = -(-n_draws // N_CHAINS)
    kept = _rounds(rng, target, at, max(ROUNDS, n_kept))
    figures = _figures(kept, target, np.array([at.z for at in modes]))
    # Evenly spaced rounds, if fewer draws are asked for than are made.
    kept = Round(*(x[np.linspace(0, len(x) - 1, n_kept).round().astype(int)] for x in kept))
    n = target.n_coefficients
    states = kept.states.transpose(2, 0, 1).reshape(-1, kept.states.shape[1])  # chain after chain
    readout = shrinkage.params(states[:, :n], shrinkage.prior.from_z(states[:, n:]))
    places = kept.at.T.ravel()
    columns = [
        np.stack([np.asarray(mode.network[k], float) for mode in modes])[places]
        for k in range(len(modes[0].network))
    ]
    of_weights = _weight_draws(rng, modes, places)
    params = dict(zip(model.parameters, [*columns, *readout, *of_weights], strict=True))
    shares = np.full(len(states), 1 / len(states))
    return Fit(params, shares, figures, _findings(figures), n_chains=N_CHAINS)


def _rounds(
    rng: np.random.Generator,
    target: Target,
    at: Places,
    n_rounds: int,
) -> Round:
    """Run all chains from values of theta `at`: warm-up, and then `n_rounds` or more.

    As many again follow, up to `MOST_ROUNDS`, until the log odds of all monitored pairs are worth
    `EFFECTIVE_DRAWS` independent draws.
    """
    sample, step = target.rows.sample(rng, MONITORED), StepSize(FIRST_STEP)
    kept: list[Round] = []
    dimensions = target.n_coefficients + target.shrinkage.n_scales
    chains = evaluated(rng.standard_normal((dimensions, N_CHAINS)), partial(target.density, at=at))
    for t in _until_enough(kept, n_rounds):
        check()
        short = SHORT if rng.random() < SOMETIMES else 1.0
        moved = move(rng, partial(target.density, at=at), chains, step.size, short)
        if t < WARMUP and short == 1:
            step.update(float(moved.acceptance.mean()))
        v = target.with_new_scales(rng, target.from_unit(moved.chains.x, at))
        unit = target.to_unit(v, at)
        chains = evaluated(unit, partial(target.density, at=at))
        jumped = np.zeros(N_CHAINS)
        for _ in range(JUMPS if len(target.centres) > 1 else 0):
            chains, at, taken = _jump(rng, target, chains, at)
            jumped += taken / JUMPS
        if t >= WARMUP:
            v = target.from_unit(chains.x, at)
            log_odds = sample.margins(target.beta(target.split(v)), at)
            diagnostics = moved.acceptance, moved.divergent, jumped
            kept.append(Round(v, at, log_odds, chains.value, *diagnostics))
    return Round(*(np.stack(part) for part in zip(*kept, strict=True)))


def _until_enough(kept: list[Round], n_rounds: int) -> Iterator[int]:
    """Count rounds until those that are `kept` are enough; see `_rounds`."""
    end, most, t = WARMUP + n_rounds, WARMUP + max(MOST_ROUNDS, n_rounds), 0
    with progress_bar(total=end, desc="Exact: chains", delay=3) as bar:
        while t < end:
            yield t
            bar.update()
            t += 1
            if t == end < most:
                effective = _worst(np.stack([each.log_odds for each in kept])).effective
                if not effective >= EFFECTIVE_DRAWS:  # NaN is not
                    needed = SPARE * EFFECTIVE_DRAWS / max(effective, 1.0) * len(kept)
                    end = bar.total = min(WARMUP + int(needed), most)


def _jump(
    rng: np.random.Generator, target: Target, chains: Chains, at: Places
) -> tuple[Chains, Places, Bool[np.ndarray, " chains"]]:
    """Propose another value of theta to each chain; return also which of them took it."""
    n_values = len(target.centres)
    near = at + rng.choice([-1, 1], at.size) * rng.integers(1, FARTHEST + 1, at.size)
    new = np.where(rng.random(at.size) < ANYWHERE, rng.integers(0, n_values, at.size), near)
    inside = (new >= 0) & (new < n_values)
    new = np.where(inside, new, at)
    proposed = evaluated(chains.x, partial(target.density, at=new))
    taken = inside & (np.log(rng.random(at.size)) < proposed.value - chains.value)
    return chains.where(taken, proposed), np.where(taken, new, at), taken


def _multiplied(
    matrices: Float[np.ndarray, "values n n"], x: Float[np.ndarray, "n chains"], at: Places
) -> Float[np.ndarray, "n chains"]:
    """Multiply each chain by the matrix of its value of theta."""
    result = np.empty(x.shape)
    for k in np.unique(at):
        result[:, at == k] = matrices[k] @ x[:, at == k]
    return result


def _weight_draws(
    rng: np.random.Generator, modes: Sequence[ThetaMode], places: Int[np.ndarray, " draws"]
) -> list[Float[np.ndarray, " draws"]]:
    """Draw the parameters of edge weights, which depend on theta alone; none without weights."""
    if modes[0].weights is None:
        return []
    columns = np.empty((3, places.size))
    for k, mode in enumerate(modes):
        here = np.flatnonzero(places == k)
        if here.size and mode.weights is not None:
            columns[:, here] = mode.weights.draws(rng, here.size)
    return list(columns)


class Worst(NamedTuple):
    """The largest R-hat and the smallest effective number of draws of several series."""

    rhat: float
    effective: float


def _worst(series: Float[np.ndarray, "rounds series chains"]) -> Worst:
    from arviz_stats.base import array_stats  # slow to import

    each = np.ascontiguousarray(np.moveaxis(np.asarray(series, float), 1, 0).swapaxes(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = array_stats.ess(each, method="bulk")
        return Worst(float(np.max(array_stats.rhat(each))), float(np.min(effective)))


def _figures(kept: Round, target: Target, theta: Float[np.ndarray, " values"]) -> dict[str, float]:
    """Compute the convergence diagnostics of log odds, and of parameters and scales."""
    first = kept.states[:, : len(target.shrinkage.marginals)]
    parameters = [first, kept.states[:, target.n_coefficients :]]
    parameters += [theta[kept.at][:, None]] if theta.size > 1 else []
    rhat, effective = _worst(kept.log_odds)
    of_parameters = _worst(np.concatenate(parameters, 1))
    figures = {
        "R-hat": rhat,
        "effective draws": effective,
        "R-hat (parameters)": of_parameters.rhat,
        "effective draws (parameters)": of_parameters.effective,
        "divergences": float(kept.divergent.sum()),
        "acceptance": float(kept.acceptance.mean()),
    }
    return figures | ({"jumps of theta": float(kept.jumped.mean())} if theta.size > 1 else {})


def _findings(figures: dict[str, float]) -> list[Finding]:
    """Return a finding for each figure beyond its threshold; NaN is beyond."""
    rhat, effective = figures["R-hat"], figures["effective draws"]
    findings = []
    if not rhat <= RHAT:
        message = (
            f"the chains disagree about the log odds of pairs (R-hat {rhat:.3f}, above {RHAT}): "
            f"the posterior has several modes, or n_draws is too small. Raise it, or compare with "
            f"NUTS."
        )
        findings.append(Finding("R-hat", rhat, message))
    if not effective >= EFFECTIVE_DRAWS:
        message = (
            f"the draws of the log odds of a pair are worth {effective:.0f} independent ones, "
            f"fewer than {EFFECTIVE_DRAWS}. Raise n_draws."
        )
        findings.append(Finding("effective draws", effective, message))
    return findings
