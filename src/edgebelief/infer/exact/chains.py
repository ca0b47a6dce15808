"""Readouts with many coefficients on scales that are learned, by chains side by side.

Given theta, the labels are a logistic regression with coefficients w_j = tau_g u_j (`shrinkage`).
Each chain has a value of theta, and a round of it has two steps, which leave the posterior given
theta as it is:

1. a Hamiltonian trajectory of (u, tau), in coordinates in which their prior is standard normal, in
   units of the posterior at the mode (`target`, `hamiltonian`);
2. new scales given w = tau u, which the labels do not see: without this step, chains are slow where
   a scale is well determined (interweaving, Yu and Meng 2011).

Theta is a handful of the quadrature points that `scan` has found, each for the part of the
posterior around it. How much posterior each has is not left to Laplace's approximation: the ratio
of the evidence at neighbouring values follows from draws of the chains at both (Bennett 1976). A
first, short run of the chains finds out where the posterior is, and in which directions it is wide;
then values are chosen anew. So theta is not a coordinate of chains, in which they would move
slowly, and a prediction needs one run of the network for each of these values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

from ...data.randomness import Key, generator
from ...progress import progress_bar
from ...threads import Workers, check
from ..diagnostics import EFFECTIVE_DRAWS, Finding
from ..model import EdgeModel
from ..posterior import Fit
from .hamiltonian import States, StepSize, evaluated, move
from .laplace import ThetaMode
from .regression import Labels
from .shrinkage import Shrinkage
from .target import Metric, Rows, Target

# Values of theta at the most, and chains at each, which must agree; a value that stands for much of
# the posterior counts as several. Chains run in two threads.
VALUES, CHAINS, THREADS = 12, 2, 2
# Rounds of the first run, and those of them that are not counted; then rounds in which chains at
# the values that are chosen anew learn their step sizes.
SCOUTING, ARRIVING, SETTLING = 100, 30, 60
# Rounds that are kept: at the least, and at the most, where draws are not yet worth
# EFFECTIVE_DRAWS. Chains run in parts of this many rounds.
ROUNDS, MOST_ROUNDS, PART = 170, 2000, 20
# Rounds that are added should make draws worth this many times what is asked for; they are at most
# this many times those before.
SPARE, GROWTH = 1.2, 2.0
# The first step size of trajectories.
FIRST_STEP = 0.1
# In this share of the rounds steps are shorter by this factor, which frees a chain from where the
# density is steeper than at the mode.
SOMETIMES, SHORT = 0.2, 0.2
# Labelled pairs whose log odds are monitored.
MONITORED = 100
# Chains disagree beyond this R-hat. With draws worth 400 it is about 1.02 for the worst pair.
RHAT = 1.05
# The largest standard error of the share of the posterior that a value of theta has, in logarithms.
EVIDENCE_ERROR = 0.2


# For each chain, which of the values of theta it has.
Places = Int[np.ndarray, " chains"]


class Round(NamedTuple):
    """What is known of a round; of several, stacked along a first axis."""

    states: Float[np.ndarray, "*rounds dimensions chains"]
    log_odds: Float[np.ndarray, "*rounds pairs chains"]
    to_next: Float[np.ndarray, "*rounds chains"]
    """The log of the density at the next value of theta, over that at the chain's own."""
    to_last: Float[np.ndarray, "*rounds chains"]
    acceptance: Float[np.ndarray, "*rounds chains"]
    divergent: Bool[np.ndarray, "*rounds chains"]


class Values(NamedTuple):
    """The values of theta that have chains."""

    places: Int[np.ndarray, " values"]
    """Which of the quadrature points they are."""
    log_shares: Float[np.ndarray, " values"]
    """Log of the share of theta's prior that each stands for, up to a constant."""
    n_chains: Int[np.ndarray, " values"]

    @classmethod
    def of(
        cls, modes: Sequence[ThetaMode], log_evidence: Float[np.ndarray, " modes"] | None = None
    ) -> Values:
        """Choose values among the points `modes`, and the points that each stands for.

        They are quantiles of the root of the posterior, which is wider than the posterior: where
        the evidence, at first Laplace's approximation, is wrong, there are still chains nearby.
        """
        if log_evidence is None:
            log_evidence = np.array([at.mode.log_mass for at in modes])
        log_mass = log_evidence + [at.log_share for at in modes]
        ends = np.concatenate([[0.0], np.cumsum(softmax(log_mass / 2))])
        cuts = np.linspace(0, 1, VALUES + 1)
        middles = (cuts[1:] + cuts[:-1]) / 2
        nearest = np.clip(np.searchsorted(ends, middles) - 1, 0, len(modes) - 1)
        places, part_of, counts = np.unique(nearest, return_inverse=True, return_counts=True)
        # The share of each point (column) between each two cuts.
        shared = np.minimum(ends[1:], cuts[1:, None]) - np.maximum(ends[:-1], cuts[:-1, None])
        parts = np.maximum(shared, 0) / np.diff(ends)
        of_values = np.stack([parts[part_of == k].sum(0) for k in range(len(places))])
        masses = logsumexp(np.broadcast_to(log_mass, of_values.shape), axis=1, b=of_values)
        return cls(places, masses - log_evidence[places], CHAINS * counts)

    def of_chains(self) -> Places:
        """Return the index of the value that each chain has."""
        return np.repeat(np.arange(len(self.places)), self.n_chains)


class Walk:
    """Chains that move together, each with the step size that it learns."""

    def __init__(
        self, rng: np.random.Generator, target: Target, at: Values, of: Places, unit: States
    ) -> None:
        """Start chains at `unit`; `of` is the value that each chain has."""
        last, following = np.maximum(of - 1, 0), np.minimum(of + 1, len(at.places) - 1)
        self._rng, self._step = rng, StepSize(np.full(len(of), FIRST_STEP))
        self._target = target.at(at.places[of])
        self._neighbours = [target.at(at.places[k]) for k in (following, last)]
        self._monitored = self._target.rows.sample(np.random.default_rng(0), MONITORED)
        self._chains = evaluated(unit, self._target.density)

    def advance(self, n_rounds: int, learning: bool) -> list[Round]:
        """Run some rounds."""
        return [self._round(learning) for _ in range(n_rounds)]

    def _round(self, learning: bool) -> Round:
        check()
        rng, target = self._rng, self._target
        short = SHORT if rng.random() < SOMETIMES else 1.0
        moved = move(rng, target.density, self._chains, self._step.size, short)
        if learning and short == 1:
            self._step.update(moved.acceptance)
        v = target.with_new_scales(rng, target.from_unit(moved.chains.x))
        here = self._chains = evaluated(target.to_unit(v), target.density)
        to_next, to_last = (
            evaluated(here.x, each.density).value - here.value for each in self._neighbours
        )
        log_odds = self._monitored.margins(target.beta(target.split(v))).T
        return Round(v, log_odds, to_next, to_last, moved.acceptance, moved.divergent)


class Run:
    """Walks in threads."""

    def __init__(
        self, rng: np.random.Generator, target: Target, values: Values, unit: States
    ) -> None:
        """Start chains at `unit`, in the order of `Values.of_chains`."""
        groups = [np.arange(unit.shape[1])[g::THREADS] for g in range(THREADS)]
        self.values, self.of = values, values.of_chains()
        self.walks = [
            Walk(each, target, values, self.of[g], unit[:, g])
            for each, g in zip(rng.spawn(THREADS), groups, strict=True)
        ]
        self._order = np.argsort(np.concatenate(groups))
        self._kept: list[list[Round]] = [[] for _ in self.walks]

    def advance(self, workers: Workers, n_rounds: int, bar: Any, learning: bool = False) -> None:
        """Run all chains for some rounds."""
        while n_rounds > 0:
            n = min(PART, n_rounds)
            parts = workers.map(partial(Walk.advance, n_rounds=n, learning=learning), self.walks)
            for rounds, added in zip(self._kept, parts, strict=True):
                rounds += added
            n_rounds -= n
            bar.update(n)

    def together(self, first: int) -> Round:
        """Stack the rounds from `first` on, and put the chains of all walks side by side."""
        walks = [
            Round(*(np.stack(part) for part in zip(*rounds[first:], strict=True)))
            for rounds in self._kept
        ]
        parts = (np.concatenate(part, -1) for part in zip(*walks, strict=True))
        return Round(*(part[..., self._order] for part in parts))


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
    best = int(np.argmax([at.log_share + at.mode.log_mass for at in modes]))
    target = Target.of(shrinkage, modes, Rows.of(labels)).with_spreads(best)
    total = SCOUTING + SETTLING + ROUNDS
    with progress_bar(total=total, desc="Exact: chains", delay=3) as bar, Workers() as workers:
        target, values, unit = _scouted(rng, workers, bar, target, modes)
        run = Run(rng, target, values, unit)
        run.advance(workers, SETTLING, bar, learning=True)
        n_kept = -(-n_draws // len(run.of))
        kept, worst = _enough(run, workers, bar, max(ROUNDS, n_kept))
    of, evidence = run.of, Evidence.of(kept, values, run.of)
    figures = _figures(kept, worst, target, of, evidence)
    # Evenly spaced rounds, if fewer draws are asked for than are made.
    kept = Round(*(x[np.linspace(0, len(x) - 1, n_kept).round().astype(int)] for x in kept))
    n = target.n_coefficients
    states = kept.states.transpose(2, 0, 1).reshape(-1, kept.states.shape[1])  # chain after chain
    readout = shrinkage.params(states[:, :n], shrinkage.prior.from_z(states[:, n:]))
    places = np.repeat(values.places[of], n_kept)
    columns = [
        np.stack([np.asarray(mode.network[k], float) for mode in modes])[places]
        for k in range(len(modes[0].network))
    ]
    of_weights = _weight_draws(rng, modes, places)
    params = dict(zip(model.parameters, [*columns, *readout, *of_weights], strict=True))
    shares = np.repeat((evidence.shares / np.bincount(of))[of], n_kept) / n_kept
    return Fit(params, shares / shares.sum(), figures, _findings(figures))


def _scouted(
    rng: np.random.Generator,
    workers: Workers,
    bar: Any,
    target: Target,
    modes: Sequence[ThetaMode],
) -> tuple[Target, Values, States]:
    """Run chains for a while; return better coordinates and values, and where to start there."""
    values = Values.of(modes)
    dimensions = target.n_coefficients + target.shrinkage.n_scales
    scouts = Run(rng, target, values, rng.standard_normal((dimensions, len(values.of_chains()))))
    scouts.advance(workers, SCOUTING, bar, learning=True)
    kept, there = scouts.together(ARRIVING), target.at(values.places[scouts.of])
    unit = np.stack([there.to_unit(v) for v in kept.states])
    metric = Metric.of(unit.transpose(0, 2, 1).reshape(-1, dimensions))
    # What Laplace's approximation of the log evidence lacks, between the values that were visited.
    approximate = np.array([at.mode.log_mass for at in modes])
    lacking = log_evidence(kept, values, scouts.of) - approximate[values.places]
    z = np.array([at.z for at in modes])
    better = Values.of(modes, approximate + np.interp(z, z[values.places], lacking))
    # Each chain goes on from where another was, at the nearest value that was visited.
    near = np.abs(z[better.places, None] - z[values.places]).argmin(1)
    starts = [rng.choice(np.flatnonzero(scouts.of == near[k])) for k in better.of_chains()]
    return replace(target, metric=metric), better, metric.from_unit(unit[-1][:, starts])


def _enough(run: Run, workers: Workers, bar: Any, n_rounds: int) -> tuple[Round, Worst]:
    """Run chains for `n_rounds` or more; diagnose the log odds.

    Others follow, up to `MOST_ROUNDS`, until the log odds of all monitored pairs are worth
    `EFFECTIVE_DRAWS` independent draws.
    """
    n, most = 0, max(MOST_ROUNDS, n_rounds)
    while True:
        bar.total = SCOUTING + SETTLING + n_rounds
        run.advance(workers, n_rounds - n, bar)
        n, kept = n_rounds, run.together(SETTLING)
        worst = _worst(kept.log_odds, run.of, Evidence.of(kept, run.values, run.of).shares)
        if n >= most or worst.effective >= EFFECTIVE_DRAWS:
            return kept, worst
        needed = SPARE * EFFECTIVE_DRAWS / max(np.nan_to_num(worst.effective), 1.0)
        n_rounds = min(int(np.ceil(n * min(needed, GROWTH))), most)


class Evidence(NamedTuple):
    """How much of the posterior each value of theta has."""

    shares: Float[np.ndarray, " values"]
    error: float
    """An estimate of the standard error of the logarithm of a share."""

    @classmethod
    def of(cls, kept: Round, values: Values, of: Places) -> Evidence:
        """Estimate the shares from draws at each value."""
        n = len(kept.states) // 2
        first, second = (Round(*(x[part] for x in kept)) for part in (slice(n), slice(n, None)))
        shares = softmax(values.log_shares + log_evidence(kept, values, of))
        # Half the difference between halves has the standard error of the whole.
        difference = log_evidence(first, values, of) - log_evidence(second, values, of)
        difference -= shares @ difference
        return cls(shares, float(np.sqrt(shares @ difference**2)) / 2)


def log_evidence(kept: Round, values: Values, of: Places) -> Float[np.ndarray, " values"]:
    """Add up the log ratios of the evidence at neighbouring values."""
    ratios = [
        log_ratio(kept.to_next[:, of == k], kept.to_last[:, of == k + 1])
        for k in range(len(values.places) - 1)
    ]
    return np.concatenate([[0.0], np.cumsum(ratios)])


def log_ratio(forward: Float[np.ndarray, "..."], backward: Float[np.ndarray, "..."]) -> float:
    """Estimate log Z_1/Z_0 of two densities from draws of both (Bennett 1976).

    `forward` has log f_1/f_0 at draws of the first, `backward` log f_0/f_1 at draws of the second.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.infer.exact.chains import log_ratio
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.standard_normal(4000), 2 * rng.standard_normal(4000) + 1
    >>> def ratio(x):  # of a density with mean 1 and sd 2, whose integral is twice as large
    ...     return -((x - 1) ** 2) / 8 + x**2 / 2
    >>> bool(abs(log_ratio(ratio(x), -ratio(y)) - np.log(2)) < 0.05)
    True
    """
    # Where the other density overflows, it is zero.
    forward, backward = (np.where(np.isnan(x), -np.inf, x) for x in (forward, backward))
    seen = np.concatenate([forward[np.isfinite(forward)], -backward[np.isfinite(backward)]])
    if not (np.isfinite(forward).any() and np.isfinite(backward).any()):
        return float("nan")
    more = np.log(backward.size / forward.size)
    low, high = seen.min() - 1 - abs(more), seen.max() + 1 + abs(more)
    root = brentq(lambda c: expit(forward - c).sum() - expit(backward + c).sum(), low, high)
    return float(root + more)


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


def _worst(
    series: Float[np.ndarray, "rounds series chains"],
    of: Places,
    shares: Float[np.ndarray, " values"],
) -> Worst:
    """Diagnose the mean over the chains at all values of theta.

    With shares s_k, and variances v_k of which n_k effective draws are at hand, that mean has the
    variance sum_k s_k^2 v_k/n_k; draws of all values together would be worth the variance of the
    series over it. For R-hat, chains are dealt into two sets which both have all values, and each
    set is split into an earlier and a later half: how much do the four means differ?
    """
    from arviz_stats.base import array_stats  # slow to import

    error, within, means = 0.0, 0.0, []
    for k, share in enumerate(shares):
        each = np.ascontiguousarray(series[:, :, of == k].transpose(1, 2, 0), float)
        with np.errstate(divide="ignore", invalid="ignore"):
            n_effective = array_stats.ess(each, method="bulk")
        variance = each.var((1, 2))
        error, within = error + share**2 * variance / n_effective, within + share * variance
        half, n_chains = each.shape[2] // 2, each.shape[1]
        parts = [each[:, :, :half], each[:, :, half:]]
        means.append(
            [x[:, np.arange(n_chains) % 2 == g].mean((1, 2)) for x in parts for g in (0, 1)]
        )
    of_values = np.array(means)  # (values, 4, series)
    of_sets = np.tensordot(shares, of_values, 1)
    total = within + shares @ (of_values.mean(1) - of_sets.mean(0)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):  # where a series is constant
        rhat = np.sqrt(1 + of_sets.var(0, ddof=1) / total)
        return Worst(float(np.max(rhat)), float(np.min(total / error)))


def _figures(
    kept: Round, of_log_odds: Worst, target: Target, of: Places, evidence: Evidence
) -> dict[str, float]:
    """Compute the convergence diagnostics of log odds, and of parameters and scales."""
    first = kept.states[:, : len(target.shrinkage.marginals)]
    parameters = np.concatenate([first, kept.states[:, target.n_coefficients :]], 1)
    of_parameters = _worst(parameters, of, evidence.shares)
    figures = {
        "R-hat": of_log_odds.rhat,
        "effective draws": of_log_odds.effective,
        "R-hat (parameters)": of_parameters.rhat,
        "effective draws (parameters)": of_parameters.effective,
        "divergences": float(kept.divergent.sum()),
        "acceptance": float(kept.acceptance.mean()),
    }
    return figures | ({"evidence error": evidence.error} if evidence.shares.size > 1 else {})


def _findings(figures: dict[str, float]) -> list[Finding]:
    """Return a finding for each figure beyond its threshold; NaN is beyond."""
    rhat, effective = figures["R-hat"], figures["effective draws"]
    error = figures.get("evidence error", 0.0)
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
    if not error <= EVIDENCE_ERROR:
        message = (
            f"how much of the posterior each value of theta has is known to {error:.0%} only, more "
            f"than {EVIDENCE_ERROR:.0%}. Raise n_draws, or compare with NUTS."
        )
        findings.append(Finding("evidence error", error, message))
    return findings
