"""Many coefficients, whose scales are learned.

Given theta, logits are linear in the coefficients, and their posterior is nearly normal: a mode by
Newton's method, a covariance by the curvature there (Laplace). Coefficients of one group share a
scale tau,

    w_j ~ Normal(0, tau_g),    tau_g ~ HalfNormal(s).

Where the scales may be is found with a quadratic log-likelihood (`scales`). For each (theta, tau)
drawn from there, there is a normal approximation of the coefficients, and draws from that. What the
approximations leave out is put right by weighting the draws (Pareto-smoothed importance sampling,
Vehtari et al. 2024): the posterior is that of theta, scales and coefficients together.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp, ndtr, softmax
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from ...cores import n_cores
from ...data.randomness import Key, generator
from ...errors import InputError
from ..diagnostics import PARETO_K, Finding
from ..model import EdgeModel
from ..posterior import Fit
from ..priors import HalfNormal, Marginal
from .regression import LogisticPosterior, Mode
from .scales import Grouped, Quadratic, ScaleLaw, draw_scales
from .weights import WeightPosterior

# Draws of the scales to find out where they may be, roughly and well; rounds before.
ROUGH, DRAWS, WARM = 100, 600, 50
# A value of theta whose share is less does not matter.
SHARE = 1e-5
# Draws of (theta, scales), each with a normal approximation of the coefficients of its own: fewer
# where labels are many, each takes longer, and less is left in doubt.
PARTICLES, MANY = 256, 4000


@dataclass(frozen=True)
class Shrinkage:
    """The coefficients of a readout: those with priors of their own, and those in groups."""

    own: tuple[Marginal, ...]
    sizes: tuple[int | None, ...]
    """How many of those are one parameter that is a vector."""
    groups: Int[np.ndarray, " curves"]
    scales: Float[np.ndarray, " groups"]
    width: float
    """Of the half-normal prior of the scales."""

    @classmethod
    def of(cls, model: EdgeModel) -> Shrinkage:
        """Of a model; scales at their prior's median."""
        readout = model.readout
        names = [name for name in readout.params_type._fields if name not in readout.unlisted]
        sizes = tuple(readout.sizes.get(name) for name in names)
        each = zip(names, sizes, strict=True)
        own = tuple(model.prior[name] for name, size in each for _ in range(size or 1))
        if "scales" not in model.sizes:
            return cls(own, sizes, np.zeros(0, int), np.zeros(0), 1.0)
        prior = model.prior["scales"]
        if not isinstance(prior, HalfNormal):
            raise InputError(f"Exact knows half-normal scales; their prior is {prior}. Use NUTS.")
        groups = readout.groups
        scales = np.full(model.sizes["scales"], prior.median)
        return cls(own, sizes, groups, scales, prior.scale)

    @property
    def n_scales(self) -> int:
        return self.scales.size

    @property
    def sds(self) -> Float[np.ndarray, " curves"]:
        """Of the coefficients in groups."""
        return self.scales[self.groups]

    @property
    def grouped(self) -> Grouped:
        return Grouped(len(self.own), self.groups, self.width)

    def quadratic(self, mode: Mode) -> Quadratic:
        """The log-likelihood around a mode that was found with these scales.

        In the coefficients' own units, but for those with priors of their own. The prior is
        standard normal in z, so that of the curvature of the posterior it is the identity.
        """
        unit = np.concatenate([np.ones(len(self.own)), self.scales[self.groups]])
        inverse = np.linalg.inv(mode.factor)
        curvature = inverse.T @ inverse - np.eye(mode.z.size)
        value = mode.f + mode.z @ mode.z / 2
        return Quadratic(value, mode.z * unit, mode.z / unit, curvature / np.outer(unit, unit))

    def moved(self, z: Float[np.ndarray, " coefficients"], before: Shrinkage) -> np.ndarray:
        """The same coefficients in units of these scales: somewhere to climb from."""
        n = len(self.own)
        ratio = before.scales[self.groups] / self.scales[self.groups]
        return np.concatenate([z[:n], np.clip(z[n:] * ratio, -6, 6)])

    def params(self, z: Float[np.ndarray, "draws coefficients"]) -> list[np.ndarray]:
        """The readout's parameters, from coefficients in their prior's coordinates."""
        n, found, start = len(self.own), [], 0
        values = np.stack([m.from_z(z[:, k]) for k, m in enumerate(self.own)], 1)
        for size in self.sizes:
            found.append(values[:, start] if size is None else values[:, start : start + size])
            start += size or 1
        return [*found, z[:, n:], np.tile(self.scales, (len(z), 1))] if self.n_scales else found


@dataclass(frozen=True)
class Place:
    """A value of theta, with the coefficients' mode there at typical scales."""

    network: tuple[Any, ...]
    """The network's parameters: theta, or several of which one at most is in doubt."""
    log_share: float
    """Log of the part of theta's prior that it stands for, times a constant."""
    posterior: LogisticPosterior
    shrinkage: Shrinkage
    """With the typical scales."""
    mode: Mode
    weights: WeightPosterior | None = None
    """Of the parameters of weights, where edges have some."""

    @cached_property
    def quadratic(self) -> Quadratic:
        return self.shrinkage.quadratic(self.mode)

    def guess(self, scales: Float[np.ndarray, " groups"]) -> float:
        """Log of share times likelihood at other scales, by the quadratic."""
        precision = self.shrinkage.grouped.precision(scales)
        return self.log_share + self.quadratic.log_mass(precision)

    def at(self, scales: Float[np.ndarray, " groups"]) -> Place:
        """With another mode, at other scales."""
        here = replace(self.shrinkage, scales=scales)
        posterior = self.posterior._replace(sds=here.sds)
        mode = posterior.climb(here.moved(self.mode.z, self.shrinkage))
        return Place(self.network, self.log_share, posterior, here, mode, self.weights)


class Places(tuple[Place, ...]):
    """The values of theta that matter."""

    def guesses(self, scales: Float[np.ndarray, " groups"]) -> Float[np.ndarray, " places"]:
        return np.array([place.guess(scales) for place in self])

    def law(self, rng: np.random.Generator, n_draws: int) -> ScaleLaw:
        """Where the scales may be."""
        typical = self[0].shrinkage

        def expand(scales: Float[np.ndarray, " groups"]) -> Quadratic:
            share = np.cumsum(softmax(self.guesses(scales)))
            k = min(int(np.searchsorted(share, rng.random())), len(self) - 1)
            return self[k].at(scales).quadratic

        drawn = draw_scales(rng, expand, typical.grouped, typical.scales, WARM, n_draws)
        return ScaleLaw.around(drawn, HalfNormal(typical.width))

    def particles(self, rng: np.random.Generator) -> list[Particle]:
        """Draws of theta and of the scales, with weights."""
        n_scales = self[0].shrinkage.n_scales
        if not n_scales:
            return [Particle(place, place.log_share + place.mode.log_mass) for place in self]
        with threadpool_limits(1):  # of matrices so small
            law = self.law(rng, DRAWS)
        n = PARTICLES if len(self[0].posterior.labels.rows) < MANY else PARTICLES // 2
        unit = qmc.MultivariateNormalQMC(np.zeros(n_scales + 1), rng=rng).random(n)
        scales, gains = law.draw(unit[:, 1:])

        def particle(scales: np.ndarray, gain: float, unit: float) -> Particle:
            guesses = self.guesses(scales)
            share = np.cumsum(softmax(guesses))
            k = min(int(np.searchsorted(share, ndtr(unit))), len(self) - 1)
            place = self[k].at(scales)
            better = place.log_share + place.mode.log_mass - guesses[k]
            return Particle(place, gain + logsumexp(guesses) + better - np.log(n))

        with ThreadPoolExecutor(n_cores()) as pool, threadpool_limits(1):
            return list(pool.map(particle, scales, gains, unit[:, 0]))


class Particle(NamedTuple):
    """A draw of theta and scales, with the coefficients around their mode."""

    place: Place
    log_weight: float
    """How much more it counts than it was drawn."""


def weighted_draws(
    key: Key,
    model: EdgeModel,
    places: Places,
    n_draws: int,
) -> Fit:
    """Draws of everything, and what they are worth."""
    from arviz_stats.base import array_stats  # slow to import

    rng = generator(key)
    found = places.particles(rng)
    log_share = np.array([one.log_weight for one in found])
    # Particles that count more get more draws.
    share = softmax(log_share)
    mixed = (share + 1 / len(found)) / 2
    ticks = (np.arange(n_draws) + rng.random()) / n_draws
    counts = np.bincount(np.searchsorted(np.cumsum(mixed), ticks), minlength=len(found))

    def draws(one: Particle, count: int, used: float, rng: Any) -> tuple[np.ndarray, Any]:
        place, mode = one.place, one.place.mode
        unit = rng.standard_normal((-(-count // 2), mode.z.size))
        unit = np.concatenate([unit, -unit])[:count]  # on either side: their noise cancels
        z = mode.z + unit @ mode.factor.T
        log_q = -(unit**2).sum(1) / 2 - mode.log_det
        left_out = place.posterior.log_density(z) - log_q - mode.log_mass
        params = place.shrinkage.params(z)
        network = (np.tile(np.asarray(x, float), (count, *[1] * np.ndim(x))) for x in place.network)
        more = () if place.weights is None else place.weights.draws(rng, count)
        return left_out + one.log_weight - np.log(used), (*network, *params, *more)

    with ThreadPoolExecutor(n_cores()) as pool, threadpool_limits(1):
        drawn = list(pool.map(draws, found, counts, mixed, rng.spawn(len(found))))
    ratio = np.concatenate([ratios for ratios, _ in drawn])
    columns = [np.concatenate(parts) for parts in zip(*(p for _, p in drawn), strict=True)]
    params = dict(zip(model.parameters, columns, strict=True))
    smoothed, k = array_stats.psislw(-ratio)  # ArviZ takes minus the log ratio
    if places[0].shrinkage.n_scales:  # draws of one particle share its weight, and hide it
        k = max(k, array_stats.psislw(-log_share)[1])
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    figures = {
        "Pareto k": float(k),
        "effective draws": float(1 / (weights @ weights)),
        "effective particles": float(1 / (share @ share)),
    }
    findings = []
    if not k <= PARETO_K:
        findings.append(
            Finding(
                "Pareto k",
                float(k),
                f"the posterior of the coefficients is not near the normal distributions that were "
                f"found (Pareto k {k:.2f}, above {PARETO_K}): a few draws decide. Compare with "
                f"NUTS, or use more draws or more labels.",
            )
        )
    evidence = float(logsumexp(ratio) - np.log(ratio.size))
    return Fit(params, weights, figures, findings, log_evidence=evidence)
