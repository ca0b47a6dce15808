"""Readouts with many coefficients, whose scales are learned.

Given theta, logits are linear in the coefficients, and the posterior of these is nearly normal: a
mode by Newton's method, and a covariance by the curvature there (Laplace). Coefficients of one
group share a scale tau,

    w_j ~ Normal(0, tau_g),    tau_g ~ HalfNormal(s).

The scales are first located with a quadratic approximation of the log-likelihood (`scales`). Then
(theta, tau) is drawn from there; each draw has its own normal approximation of the coefficients,
from which these are drawn. Importance weights correct what the approximations leave out
(Pareto-smoothed importance sampling, Vehtari et al. 2024), so that the weighted draws are of the
joint posterior of theta, scales and coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp, ndtr, softmax
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from ...data.randomness import Key, generator
from ...errors import InputError
from ...threads import Workers
from ..diagnostics import PARETO_K, Finding
from ..model import EdgeModel
from ..posterior import Fit
from ..priors import HalfNormal, Marginal
from .regression import LogisticPosterior, Mode
from .scales import Coefficients, Grouped, Quadratic, ScaleProposal, Scales, gibbs_rounds
from .weights import WeightPosterior

# Gibbs draws that locate the scales, roughly and well; rounds of warm-up before them.
ROUGH, DRAWS, WARM = 100, 600, 50
# Gibbs rounds between two expansions of the log-likelihood around the mode at the latest scales.
EVERY = 10
# A value of theta with a smaller share of the posterior does not matter.
SHARE = 1e-5
# Draws of (theta, scales), each with its own normal approximation of the coefficients. With MANY
# labels or more half as many are drawn: each takes longer, and the posterior is narrower.
PARTICLES, MANY = 256, 4000

# The value of each parameter of a network; an array where the parameter is a vector.
NetworkValues = tuple[float | Float[np.ndarray, " entries"], ...]


@dataclass(frozen=True)
class Shrinkage:
    """The coefficients of a readout: first those with their own priors, then those in groups."""

    marginals: tuple[Marginal, ...]
    """The priors of the coefficients that are in no group."""
    sizes: tuple[int | None, ...]
    """The parameters that those coefficients make up: None for a number, the size of a vector."""
    groups: Int[np.ndarray, " curves"]
    """The group of each of the other coefficients."""
    scales: Scales
    width: float
    """The scale s of the half-normal prior of the scales."""

    @classmethod
    def of(cls, model: EdgeModel) -> Shrinkage:
        """Describe the coefficients of a model, with the scales at their prior's median."""
        readout = model.readout
        names = [name for name in readout.params_type._fields if name not in readout.unlisted]
        sizes = tuple(readout.sizes.get(name) for name in names)
        each = zip(names, sizes, strict=True)
        marginals = tuple(model.prior[name] for name, size in each for _ in range(size or 1))
        if "scales" not in model.sizes:
            return cls(marginals, sizes, np.zeros(0, int), np.zeros(0), 1.0)
        prior = model.prior["scales"]
        if not isinstance(prior, HalfNormal):
            raise InputError(f"Exact knows half-normal scales; their prior is {prior}. Use NUTS.")
        scales = np.full(model.sizes["scales"], prior.median)
        return cls(marginals, sizes, readout.groups, scales, prior.scale)

    @property
    def n_scales(self) -> int:
        return self.scales.size

    @property
    def sds(self) -> Float[np.ndarray, " curves"]:
        """The prior standard deviations of the coefficients in groups."""
        return self.scales[self.groups]

    @property
    def grouped(self) -> Grouped:
        return Grouped(len(self.marginals), self.groups, self.width)

    def quadratic(self, mode: Mode) -> Quadratic:
        """Return the log-likelihood around a mode that was found with these scales.

        Coefficients in groups are in their own units, the others in those of z. The prior is
        standard normal in z, so its part of the posterior's curvature is the identity.
        """
        unit = np.concatenate([np.ones(len(self.marginals)), self.sds])
        inverse = np.linalg.inv(mode.factor)
        curvature = inverse.T @ inverse - np.eye(mode.z.size)
        value = mode.f + mode.z @ mode.z / 2
        return Quadratic(value, mode.z * unit, mode.z / unit, curvature / np.outer(unit, unit))

    def start_near(self, z: Coefficients, before: Shrinkage) -> Coefficients:
        """Convert coefficients from the scales `before` to these, as the start of a climb."""
        n = len(self.marginals)
        return np.concatenate([z[:n], np.clip(z[n:] * (before.sds / self.sds), -6, 6)])

    def params(
        self, z: Float[np.ndarray, "draws coefficients"]
    ) -> list[Float[np.ndarray, "draws ..."]]:
        """Convert coefficients in the coordinates z to the readout's parameters, in order."""
        n, params, start = len(self.marginals), [], 0
        values = np.stack([m.from_z(z[:, k]) for k, m in enumerate(self.marginals)], 1)
        for size in self.sizes:
            params.append(values[:, start] if size is None else values[:, start : start + size])
            start += size or 1
        return [*params, z[:, n:], np.tile(self.scales, (len(z), 1))] if self.n_scales else params


@dataclass(frozen=True)
class ThetaMode:
    """A value of theta, with the mode of the coefficients there at some scales."""

    network: NetworkValues
    """The network's parameters: theta, or several of which at most one is not fixed."""
    log_share: float
    """Log of the share of theta's prior that this value stands for, up to a constant."""
    posterior: LogisticPosterior
    shrinkage: Shrinkage
    """The coefficients, with the scales at which `mode` was found."""
    mode: Mode
    weights: WeightPosterior | None = None
    """The posterior of the parameters of edge weights, where edges have weights."""

    @cached_property
    def quadratic(self) -> Quadratic:
        """The log-likelihood around the mode."""
        return self.shrinkage.quadratic(self.mode)

    def approximate_log_mass(self, scales: Scales) -> float:
        """Return log of share times marginal likelihood at other scales, by the quadratic."""
        precision = self.shrinkage.grouped.precision(scales)
        return self.log_share + self.quadratic.log_mass(precision)

    def at_scales(self, scales: Scales) -> ThetaMode:
        """Find the mode at the same theta and other scales."""
        shrinkage = replace(self.shrinkage, scales=scales)
        posterior = self.posterior._replace(sds=shrinkage.sds)
        mode = posterior.climb(shrinkage.start_near(self.mode.z, self.shrinkage))
        return replace(self, posterior=posterior, shrinkage=shrinkage, mode=mode)


class ThetaModes(tuple[ThetaMode, ...]):
    """The values of theta that matter, each with its mode of the coefficients."""

    def approximate_log_masses(self, scales: Scales) -> Float[np.ndarray, " modes"]:
        """Return the log mass of each at other scales, by its quadratic."""
        return np.array([mode.approximate_log_mass(scales) for mode in self])

    def scale_proposal(self, rng: np.random.Generator, n_draws: int) -> ScaleProposal:
        """Locate the scales with `n_draws` Gibbs draws after warm-up."""
        typical = self[0].shrinkage
        grouped, n_rounds = typical.grouped, WARM + n_draws
        tau, draws = grouped.clip(typical.scales), []
        for start in range(0, n_rounds, EVERY):
            share = np.cumsum(softmax(self.approximate_log_masses(tau)))
            k = min(int(np.searchsorted(share, rng.random())), len(self) - 1)
            quadratic = self[k].at_scales(tau).quadratic
            draws.append(gibbs_rounds(rng, quadratic, grouped, tau, min(EVERY, n_rounds - start)))
            tau = draws[-1][-1]
        return ScaleProposal.around(np.concatenate(draws)[WARM:], HalfNormal(typical.width))

    def particles(self, rng: np.random.Generator) -> list[Particle]:
        """Draw theta and the scales, with importance weights."""
        n_scales = self[0].shrinkage.n_scales
        if not n_scales:
            return [Particle(mode, mode.log_share + mode.mode.log_mass) for mode in self]
        with threadpool_limits(1):  # the matrices are too small to share
            proposal = self.scale_proposal(rng, DRAWS)
        n = PARTICLES if len(self[0].posterior.labels.rows) < MANY else PARTICLES // 2
        unit = qmc.MultivariateNormalQMC(np.zeros(n_scales + 1), rng=rng).random(n)
        drawn = proposal.draw(unit[:, 1:])

        def particle(scales: Scales, log_weight: float, unit: float) -> Particle:
            log_masses = self.approximate_log_masses(scales)
            share = np.cumsum(softmax(log_masses))
            k = min(int(np.searchsorted(share, ndtr(unit))), len(self) - 1)
            mode = self[k].at_scales(scales)
            correction = mode.log_share + mode.mode.log_mass - log_masses[k]
            return Particle(mode, log_weight + logsumexp(log_masses) + correction - np.log(n))

        with Workers() as workers, threadpool_limits(1):
            return list(workers.map(particle, *drawn, unit[:, 0]))


class Particle(NamedTuple):
    """A draw of theta and the scales, with the mode of the coefficients there."""

    theta_mode: ThetaMode
    log_weight: float
    """The log importance weight, up to a constant."""


def weighted_draws(key: Key, model: EdgeModel, modes: ThetaModes, n_draws: int) -> Fit:
    """Draw all parameters from normal approximations around the modes, with importance weights."""
    from arviz_stats.base import array_stats  # slow to import

    rng = generator(key)
    particles = modes.particles(rng)
    log_weights = np.array([particle.log_weight for particle in particles])
    # Particles with larger weights get more draws: half of the draws are spread by weight, half
    # evenly.
    share = softmax(log_weights)
    used_shares = (share + 1 / len(particles)) / 2
    ticks = (np.arange(n_draws) + rng.random()) / n_draws
    counts = np.bincount(np.searchsorted(np.cumsum(used_shares), ticks), minlength=len(particles))

    def draw(
        particle: Particle, count: int, used_share: float, rng: np.random.Generator
    ) -> tuple[Float[np.ndarray, "draws ..."], ...]:
        """Draw around one mode: the log of posterior over proposal density, and the parameters."""
        at, mode = particle.theta_mode, particle.theta_mode.mode
        unit = rng.standard_normal((-(-count // 2), mode.z.size))
        unit = np.concatenate([unit, -unit])[:count]  # antithetic pairs: their noise cancels
        z = mode.z + unit @ mode.factor.T
        log_q = -(unit**2).sum(1) / 2 - mode.log_det
        log_ratio = at.posterior.log_density(z) - log_q - mode.log_mass
        network = (np.tile(np.asarray(x, float), (count, *[1] * np.ndim(x))) for x in at.network)
        of_weights = () if at.weights is None else at.weights.draws(rng, count)
        log_ratio = log_ratio + particle.log_weight - np.log(used_share)
        return log_ratio, *network, *at.shrinkage.params(z), *of_weights

    streams = rng.spawn(len(particles))
    with Workers() as workers, threadpool_limits(1):
        drawn = list(workers.map(draw, particles, counts.tolist(), used_shares, streams))
    log_ratio, *columns = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    params = dict(zip(model.parameters, columns, strict=True))
    smoothed, k = array_stats.psislw(-log_ratio)  # ArviZ takes minus the log ratio
    if modes[0].shrinkage.n_scales:
        # All draws of a particle share its weight, so the tail of the draws hides that of the
        # particles.
        k = max(k, array_stats.psislw(-log_weights)[1])
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    figures = {
        "Pareto k": float(k),
        "effective draws": float(1 / (weights @ weights)),
        "effective particles": float(1 / (share @ share)),
    }
    message = (
        f"the posterior of the coefficients is not near the normal distributions that were found "
        f"(Pareto k {k:.2f}, above {PARETO_K}): a few draws decide. Compare with NUTS, or use more "
        f"draws or more labels."
    )
    findings = [] if k <= PARETO_K else [Finding("Pareto k", float(k), message)]
    evidence = float(logsumexp(log_ratio) - np.log(log_ratio.size))
    return Fit(params, weights, figures, findings, log_evidence=evidence)
