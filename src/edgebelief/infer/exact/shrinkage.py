"""The coefficients of a readout, and the scales that groups of them share.

Coefficients of one group share a scale tau,

    w_j ~ Normal(0, tau_g),    tau_g ~ HalfNormal(s) or HalfT(s).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from ...errors import InputError
from ..model import EdgeModel
from ..priors import HalfNormal, Marginal, ScalePrior
from .regression import LogisticPosterior, Mode, Vector

Scales = Float[np.ndarray, " groups"]
# The smallest scale that is used: a term on a smaller one changes no probability.
LEAST = 1e-4
# Typical scales: rounds of the EM iteration at most, and the change of a logarithm that ends it.
# They only say where chains start and how long their steps are.
ROUNDS, CHANGE = 20, 0.05
# Typical scales are at least this share of s: where a chain's scale is much larger than the typical
# one, the density is steeper than at the mode, and its steps would be too long.
FLOOR = 0.3


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
    prior: ScalePrior
    """The prior of the scales."""

    @classmethod
    def of(cls, model: EdgeModel) -> Shrinkage:
        """Describe the coefficients of a model, with the scales at their prior's median."""
        readout = model.readout
        names = [name for name in readout.params_type._fields if name not in readout.unlisted]
        sizes = tuple(readout.sizes.get(name) for name in names)
        each = zip(names, sizes, strict=True)
        marginals = tuple(model.prior[name] for name, size in each for _ in range(size or 1))
        if "scales" not in model.sizes:
            return cls(marginals, sizes, np.zeros(0, int), np.zeros(0), HalfNormal())
        prior = model.prior["scales"]
        if not isinstance(prior, ScalePrior):
            raise InputError(
                f"Exact knows half-normal and half-t scales; their prior is {prior}. Use NUTS."
            )
        scales = np.full(model.sizes["scales"], prior.median)
        return cls(marginals, sizes, readout.groups, scales, prior)

    @property
    def n_scales(self) -> int:
        return self.scales.size

    @property
    def sds(self) -> Float[np.ndarray, " curves"]:
        """The prior standard deviations of the coefficients in groups."""
        return self.scales[self.groups]

    def typical(self, posterior: LogisticPosterior) -> Shrinkage:
        """Return typical scales given the labels, by the EM iteration.

        The expectation of w_j^2 is that of the normal approximation around the mode, and log tau
        is at its mode given these.
        """
        shrinkage, n_first = self, len(self.marginals)
        counts = np.bincount(self.groups, minlength=self.n_scales)
        start: Vector = posterior.starts()[0]
        for _ in range(ROUNDS):
            mode = posterior._replace(sds=shrinkage.sds).climb(start)
            variance = (mode.factor**2).sum(1)
            squares = (mode.z**2 + variance)[n_first:] * shrinkage.sds**2
            total = np.bincount(self.groups, squares, self.n_scales)
            new = np.maximum(self.prior.typical(total, counts), FLOOR * self.prior.scale)
            moved = np.abs(np.log(new / shrinkage.scales)).max()
            before, shrinkage = shrinkage, replace(shrinkage, scales=new)
            start = shrinkage.start_near(mode, before)
            if moved < CHANGE:
                break
        return shrinkage

    def start_near(self, mode: Mode, before: Shrinkage) -> Vector:
        """Convert a mode at the scales `before` to these, as the start of a climb."""
        n = len(self.marginals)
        moved = np.clip(mode.z[n:] * (before.sds / self.sds), -6, 6)
        return np.concatenate([mode.z[:n], moved])

    def params(
        self, z: Float[np.ndarray, "draws coefficients"], scales: Float[np.ndarray, "draws groups"]
    ) -> list[Float[np.ndarray, "draws ..."]]:
        """Convert coefficients in the coordinates z to the readout's parameters, in order."""
        n, params, start = len(self.marginals), [], 0
        values = np.stack([m.from_z(z[:, k]) for k, m in enumerate(self.marginals)], 1)
        for size in self.sizes:
            params.append(values[:, start] if size is None else values[:, start : start + size])
            start += size or 1
        return [*params, z[:, n:], scales] if self.n_scales else params
