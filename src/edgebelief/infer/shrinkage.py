"""Many coefficients, whose scales are learned.

Given theta, logits are linear in the coefficients, and their posterior is nearly normal: a mode by
Newton's method, a covariance by the curvature there (Laplace). Coefficients of one group share a
scale tau,

    w_j ~ Normal(0, tau_g),    tau_g ~ HalfNormal(s).

The most plausible scales given the labels, the coefficients integrated out, are found by
expectation-maximisation; a lognormal around them is where scales are drawn from. For each drawn
(theta, tau) there is a normal approximation of the coefficients, and draws from that. What the
approximations leave out is put right by weighting the draws (Pareto-smoothed importance sampling,
Vehtari et al. 2024): the posterior is that of theta, scales and coefficients together.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from ..cores import n_cores
from ..data.randomness import Key, generator
from .engine import Fit
from .family import Interpolant
from .flatness import Flatness
from .logistic import Labels, LogisticPosterior, Mode
from .model import EdgeModel
from .priors import HalfNormal, Marginal, Normal
from .verdict import PARETO_K, Finding

# Rounds of expectation-maximisation; it stops when no scale changes by this share.
ROUNDS, CHANGE = 100, 0.01
# Scales do not fall below: a term of this size moves no probability.
LEAST = 1e-4
# Draws of (theta, scales), each with a normal approximation of the coefficients of its own.
PARTICLES = 64


@dataclass(frozen=True)
class Shrinkage:
    """The coefficients of a readout: those with priors of their own, and those in groups."""

    own: tuple[Marginal, ...]
    groups: Int[np.ndarray, " curves"]
    scales: Float[np.ndarray, " groups"]
    width: float
    """Of the half-normal prior of the scales."""

    @classmethod
    def of(cls, model: EdgeModel) -> Shrinkage:
        """Of a model; scales at their prior's median."""
        fields = model.readout.params_type._fields
        own = tuple(model.prior[name] for name in fields if name not in model.sizes)
        if not model.sizes:
            return cls(own, np.zeros(0, int), np.zeros(0), 1.0)
        prior = model.prior["scales"]
        if not isinstance(prior, HalfNormal):
            raise ValueError(f"Exact knows half-normal scales; their prior is {prior}. Use NUTS.")
        groups = model.readout.groups  # type: ignore[attr-defined]
        scales = np.full(model.sizes["scales"], prior.median)
        return cls(own, groups, scales, prior.scale)

    @property
    def n_scales(self) -> int:
        return self.scales.size

    def marginals(self) -> tuple[Marginal, ...]:
        """The prior of each coefficient, given the scales."""
        return (*self.own, *(Normal(0.0, float(tau)) for tau in self.scales[self.groups]))

    def learned(self, labels: Labels) -> Shrinkage:
        """With the scales that are most plausible given the labels.

        E-step: mean square m_g of the group's coefficients under the normal approximation. M-step:
        the tau that maximises -n log tau - m/(2 tau^2) - tau^2/(2 s^2),

            tau^2 = s^2 (-n + sqrt(n^2 + 4 m/s^2)) / 2.
        """
        now, start = self, None
        n = np.bincount(self.groups, minlength=self.n_scales)
        first = len(self.own)
        for _ in range(ROUNDS):
            marginals = now.marginals()
            z = np.zeros(len(marginals)) if start is None else start
            mode = LogisticPosterior(labels, marginals).climb(z)
            tau = now.scales[self.groups]
            square = tau**2 * (mode.z[first:] ** 2 + np.diag(mode.covariance)[first:])
            m = np.bincount(self.groups, square, self.n_scales)
            s = self.width
            found = np.sqrt(s**2 * (-n + np.sqrt(n**2 + 4 * m / s**2)) / 2)
            found = np.maximum(found, LEAST)
            change = np.abs(np.log(found / now.scales)).max()
            beta = tau * mode.z[first:]
            start = np.concatenate([mode.z[:first], beta / found[self.groups]])
            now = replace(now, scales=found)
            if change < CHANGE:
                break
        return now

    def around(self, squares: Float[np.ndarray, "draws groups"]) -> LogScales:
        """A lognormal around the scales: where they may be, given draws of the coefficients.

        Given the sum of squares S of a group of n, tau has the density tau^-n exp(-S/(2 tau^2) -
        tau^2/(2 s^2)); the mean and spread of its logarithm, over the draws.
        """
        n = np.bincount(self.groups, minlength=self.n_scales)
        log_tau = np.linspace(np.log(LEAST), np.log(8 * self.width), 160)
        tau2 = np.exp(2 * log_tau)
        f = (1 - n)[:, None] * log_tau - tau2 / (2 * self.width**2)
        f = f - squares[..., None] / (2 * tau2)
        share = np.exp(f - f.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        mean, second = share @ log_tau, share @ log_tau**2
        centre = mean.mean(0)
        spread = np.sqrt(second.mean(0) - centre**2)
        return LogScales(centre, np.maximum(spread, 0.05))

    def log_prior(self, scales: Float[np.ndarray, " groups"]) -> float:
        """Of the logarithms of the scales."""
        constant = np.log(2 / np.pi) / 2 - np.log(self.width)
        return float((np.log(scales) - (scales / self.width) ** 2 / 2 + constant).sum())

    def params(
        self, model: EdgeModel, z: Float[np.ndarray, "draws coefficients"]
    ) -> dict[str, Any]:
        """The readout's parameters by name, from coefficients in their prior's coordinates."""
        n = len(self.own)
        names = [name for name in model.readout.params_type._fields if name not in model.sizes]
        found: dict[str, Any] = {
            name: marginal.value_at(z[:, k])
            for k, (name, marginal) in enumerate(zip(names, self.own, strict=True))
        }
        if self.n_scales:
            found["curves"] = z[:, n:]
            found["scales"] = np.tile(self.scales, (len(z), 1))
        return found


class LogScales(NamedTuple):
    """Independent normal logarithms of the scales."""

    mean: Float[np.ndarray, " groups"]
    sd: Float[np.ndarray, " groups"]

    def draw(self, unit: Float[np.ndarray, " groups"]) -> Float[np.ndarray, " groups"]:
        return np.exp(self.mean + self.sd * unit)

    def log_density(self, unit: Float[np.ndarray, " groups"]) -> float:
        """Of the logarithms."""
        return -float((unit**2 / 2 + np.log(self.sd) + np.log(2 * np.pi) / 2).sum())


class Particle(NamedTuple):
    """A place in (theta, scales), and the coefficients around their mode there."""

    node: int
    shrinkage: Shrinkage
    posterior: LogisticPosterior
    mode: Mode
    log_weight: float
    """How much more it counts than it was drawn."""


def particles(
    rng: np.random.Generator,
    interpolant: Interpolant,
    shrinkage: Shrinkage,
    posteriors: Mapping[float, LogisticPosterior],
) -> list[Particle]:
    """Draws of theta (one of its nodes) and of the scales, with weights."""
    share, nodes = interpolant.weights(), interpolant.nodes
    modes = [node.conditional.at for node in nodes]  # type: ignore[attr-defined]
    if not shrinkage.n_scales:
        places = np.flatnonzero(share > 1e-6)
        return [
            Particle(int(k), shrinkage, posteriors[nodes[k].z], modes[k], float(np.log(share[k])))
            for k in places
        ]
    n, first = PARTICLES, len(shrinkage.own)
    chosen = np.searchsorted(np.cumsum(share), (np.arange(n) + rng.random()) / n)
    chosen = rng.permutation(np.minimum(chosen, len(share) - 1))
    # The coefficients' squares, given the most plausible scales.
    betas = []
    for k in chosen:
        unit = rng.standard_normal(modes[k].z.size)
        betas.append((modes[k].z + modes[k].factor @ unit)[first:])
    squares = (np.array(betas) * shrinkage.scales[shrinkage.groups]) ** 2
    sums = np.stack([np.bincount(shrinkage.groups, row, shrinkage.n_scales) for row in squares])
    law = shrinkage.around(sums)
    units = qmc.MultivariateNormalQMC(np.zeros(shrinkage.n_scales), rng=rng).random(n)

    def particle(k: int, unit: np.ndarray) -> Particle:
        scales = np.maximum(law.draw(unit), LEAST)
        here = replace(shrinkage, scales=scales)
        posterior = posteriors[nodes[k].z]._replace(marginals=here.marginals())
        ratio = shrinkage.scales[shrinkage.groups] / scales[shrinkage.groups]
        start = np.concatenate([modes[k].z[:first], np.clip(modes[k].z[first:] * ratio, -6, 6)])
        mode = posterior.climb(start)
        log_weight = here.log_prior(scales) - law.log_density(unit) - np.log(n)
        return Particle(k, here, posterior, mode, log_weight + mode.log_mass - modes[k].log_mass)

    with ThreadPoolExecutor(n_cores()) as pool, threadpool_limits(1):
        return list(pool.map(particle, chosen, units))


def weighted_draws(
    key: Key,
    model: EdgeModel,
    interpolant: Interpolant,
    shrinkage: Shrinkage,
    posteriors: Mapping[float, LogisticPosterior],
    n_draws: int,
    error: float,
    tol: float,
) -> Fit:
    """Draws of everything, and what they are worth."""
    from arviz_stats.base import array_stats  # slow to import

    rng = generator(key)
    found = particles(rng, interpolant, shrinkage, posteriors)
    log_share = np.array([one.log_weight for one in found])
    # Particles that count more get more draws.
    share = np.exp(log_share - log_share.max())
    share /= share.sum()
    mixed = (share + 1 / len(found)) / 2
    ticks = (np.arange(n_draws) + rng.random()) / n_draws
    counts = np.bincount(np.searchsorted(np.cumsum(mixed), ticks), minlength=len(found))
    (name,) = model.network.params_type._fields
    params: dict[str, list[np.ndarray]] = {}
    ratios = []
    for one, count, log_weight, used in zip(found, counts, log_share, mixed, strict=True):
        if count == 0:
            continue
        unit = rng.standard_normal((count, one.mode.z.size))
        z = one.mode.z + unit @ one.mode.factor.T
        log_q = -(unit**2).sum(1) / 2 - one.mode.log_det
        left_out = one.posterior.log_density(z) - log_q - one.mode.log_mass
        ratios.append(left_out + log_weight - np.log(used))
        here = {name: np.full(count, interpolant.marginal.value_at(interpolant.z[one.node]))}
        for key_, values in (here | one.shrinkage.params(model, z)).items():
            params.setdefault(key_, []).append(values)
    ratio = np.concatenate(ratios)
    smoothed, k = array_stats.psislw(-ratio)  # ArviZ takes minus the log ratio
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    figures = {
        "Pareto k": float(k),
        "effective draws": float(1 / (weights @ weights)),
        "quadrature error": error,
        f"{name} nodes": float(len(interpolant.nodes)),
    }
    nodes = list(zip(interpolant.nodes, interpolant.weights(), strict=True))
    dead = float(sum(w for node, w in nodes if node.dead))
    alike = float(sum(w for node, w in nodes if node.alike))
    return Fit(
        {name_: np.concatenate(parts) for name_, parts in params.items()},
        weights,
        figures,
        _findings(name, float(k), error, tol),
        flatness=Flatness(dead, alike - dead),
        log_evidence=interpolant.log_evidence + float(logsumexp(ratio) - np.log(ratio.size)),
    )


def _findings(name: str, k: float, error: float, tol: float) -> list[Finding]:
    found = []
    if not k <= PARETO_K:
        found.append(
            Finding(
                "Pareto k",
                k,
                f"the posterior of the coefficients is not near the normal distributions that were "
                f"found (Pareto k {k:.2f}, above {PARETO_K}): a few draws decide. Compare with "
                f"NUTS, raise n_draws, or use more labels.",
            )
        )
    if error > tol:
        found.append(
            Finding(
                "quadrature error",
                error,
                f"the estimated error along {name} is {error:.2g} posterior sd: the posterior is "
                f"too rugged for the rule. Compare with NUTS.",
            )
        )
    return found
