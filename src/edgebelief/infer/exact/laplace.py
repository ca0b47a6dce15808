"""Readouts with a few coefficients, drawn from normal approximations with importance weights.

Given theta, logits are linear in the coefficients, and the posterior of these is nearly normal: a
mode by Newton's method, and a covariance by the curvature there (Laplace). Importance weights
correct what the approximation leaves out (Pareto-smoothed importance sampling, Vehtari et al.
2024), so that the weighted draws are of the joint posterior of theta and the coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, softmax

from ...data.randomness import Key, generator
from ..diagnostics import PARETO_K, Finding
from ..model import EdgeModel
from ..posterior import Fit
from .regression import LogisticPosterior, Mode
from .shrinkage import Shrinkage
from .weights import WeightPosterior

# A value of theta with a smaller share of the posterior does not matter.
SHARE = 1e-5

# The value of each parameter of a network; an array where the parameter is a vector.
NetworkValues = tuple[float | Float[np.ndarray, " entries"], ...]


@dataclass(frozen=True)
class ThetaMode:
    """A value of theta, with the mode of the coefficients there."""

    network: NetworkValues
    """The network's parameters: theta, or several of which at most one is not fixed."""
    z: float
    """The coordinate of theta."""
    log_share: float
    """Log of the share of theta's prior that this value stands for, up to a constant."""
    mode: Mode
    weights: WeightPosterior | None = None
    """The posterior of the parameters of edge weights, where edges have weights."""

    def network_draws(self, n: int) -> list[Float[np.ndarray, "draws ..."]]:
        """Return the network's parameters, `n` times."""
        return [np.tile(np.asarray(x, float), (n, *[1] * np.ndim(x))) for x in self.network]


def weighted_draws(
    key: Key,
    model: EdgeModel,
    shrinkage: Shrinkage,
    modes: Sequence[ThetaMode],
    posteriors: Sequence[LogisticPosterior],
    n_draws: int,
) -> Fit:
    """Draw all parameters from normal approximations around the modes, with importance weights.

    `posteriors` are those of the coefficients at each value of theta.
    """
    from arviz_stats.base import array_stats  # slow to import

    rng = generator(key)
    share = softmax([at.log_share + at.mode.log_mass for at in modes])
    ticks = (np.arange(n_draws) + rng.random()) / n_draws
    counts = np.bincount(np.searchsorted(np.cumsum(share), ticks), minlength=len(modes))

    def draw(at: ThetaMode, posterior: LogisticPosterior, n: int) -> tuple[np.ndarray, ...]:
        """Draw around one mode: the log of posterior over proposal density, and the parameters."""
        unit = rng.standard_normal((-(-n // 2), at.mode.z.size))
        unit = np.concatenate([unit, -unit])[:n]  # antithetic pairs: their noise cancels
        z = at.mode.z + unit @ at.mode.factor.T
        log_q = -(unit**2).sum(1) / 2 - at.mode.log_det
        log_ratio = posterior.log_density(z) - log_q - at.mode.log_mass
        of_weights = () if at.weights is None else at.weights.draws(rng, n)
        params = shrinkage.params(z, np.zeros((n, 0)))
        return log_ratio, *at.network_draws(n), *params, *of_weights

    each = zip(modes, posteriors, counts.tolist(), strict=True)
    drawn = [draw(*one) for one in each if one[-1] > 0]
    log_ratio, *columns = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    params = dict(zip(model.parameters, columns, strict=True))
    smoothed, k = array_stats.psislw(-log_ratio)  # ArviZ takes minus the log ratio
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    figures = {"Pareto k": float(k), "effective draws": float(1 / (weights @ weights))}
    message = (
        f"the posterior of the coefficients is not near the normal distributions that were found "
        f"(Pareto k {k:.2f}, above {PARETO_K}): a few draws decide. Compare with NUTS, or use more "
        f"draws or more labels."
    )
    findings = [] if k <= PARETO_K else [Finding("Pareto k", float(k), message)]
    total = logsumexp([at.log_share + at.mode.log_mass for at in modes])
    evidence = float(total + logsumexp(log_ratio) - np.log(log_ratio.size))
    return Fit(params, weights, figures, findings, log_evidence=evidence)
