"""Integrals over the readout's parameters by adaptive cells, for posteriors that defeat a grid.

Such are those of separable labels, with several modes, or shaped like a wedge. Cells are split
until the Gauss and the Kronrod rule agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .conditional import Cells, Conditional, mesh
from .regression import LogisticPosterior, Mode

# Outside |z|^2/2 = DEPTH - f_max nothing matters, not even for second moments.
DEPTH = 35.0
# The adaptive rule stops at this sum of Gauss-Kronrod differences, or when its budget is spent.
CELL_ERROR = 4e-3
# Cells near the prior's centre are at most so wide at first: in wider ones both rules may overlook
# a narrow ridge.
WIDEST, CENTRAL = 1.0, 8.0

# Gauss-Legendre with 3 points inside Kronrod's 7, on [-1, 1].
KRONROD = np.array([-0.9604912687080202, -0.7745966692414834, -0.4342437493468026, 0.0])
KRONROD = np.concatenate([KRONROD, -KRONROD[-2::-1]])
KRONROD_WEIGHTS = np.array([0.1046562260264673, 0.2684880898683334, 0.4013974147759622])
KRONROD_WEIGHTS = np.concatenate([KRONROD_WEIGHTS, [0.4509165386584741], KRONROD_WEIGHTS[::-1]])
GAUSS_WEIGHTS = np.array([0, 5 / 9, 0, 8 / 9, 0, 5 / 9, 0])


@dataclass(eq=False)
class CellConditional(Conditional):
    """The posterior by adaptive cells; each quadrature point stands for a box around it."""

    centre: Float[np.ndarray, "points params"]
    half_width: Float[np.ndarray, "points params"]

    def cells(self) -> Cells:
        kept = self.weights > 1e-9
        weights = self.weights[kept]
        sides = np.zeros((len(weights), *[self.z.shape[1]] * 2))
        index = np.arange(self.z.shape[1])
        sides[:, index, index] = self.half_width[kept]
        return Cells(self.centre[kept], sides, np.cumsum(weights) / weights.sum())


def integrate_by_cells(
    posterior: LogisticPosterior, modes: list[Mode], most_terms: float
) -> Conditional:
    """Integrate over cells that cover all that matters, cut first around the modes.

    Stops splitting cells after `most_terms` terms of the likelihood (points times labels); then the
    result says that it is out of budget, and its error how far it got.
    """
    n_params = modes[0].z.size
    f_max = max(mode.f for mode in modes)
    radius = np.sqrt(2 * (DEPTH - f_max))
    cuts = []
    for k in range(n_params):
        sds = np.array([-4.5, -1.5, 0, 1.5, 4.5])
        near = [mode.z[k] + sds * np.sqrt(mode.covariance[k, k]) for mode in modes]
        central = np.arange(-CENTRAL, CENTRAL + WIDEST, WIDEST)
        line = np.concatenate([np.linspace(-radius, radius, 9), central, *near])
        line = np.unique(line[np.abs(line) <= radius])
        cuts.append(line[np.diff(line, prepend=-np.inf) > 1e-9 * radius])
    low = mesh(*(line[:-1] for line in cuts)).reshape(-1, n_params)
    high = mesh(*(line[1:] for line in cuts)).reshape(-1, n_params)
    partition = _Partition.of(posterior, low, high, f_max)
    n_terms = partition.mass.size * len(posterior.labels.rows)
    halves = np.array(list(product((0, 1), repeat=n_params)))
    while True:
        total = partition.kronrod.sum(0)
        errors = (np.abs(partition.kronrod - partition.gauss) / np.abs(total)).max(1)
        converged = errors.sum() < CELL_ERROR
        if converged or n_terms > most_terms:
            break
        order = np.argsort(errors)
        split = np.zeros(len(errors), bool)
        split[order[np.cumsum(errors[order]) > CELL_ERROR / 2]] = True
        middle = (partition.low[split] + partition.high[split]) / 2
        corners = np.stack([partition.low[split], middle, partition.high[split]], 1)
        take = np.arange(n_params)
        low = np.concatenate([corners[:, h, take] for h in halves])
        high = np.concatenate([corners[:, h + 1, take] for h in halves])
        fresh = _Partition.of(posterior, low, high, f_max)
        n_terms += fresh.mass.size * len(posterior.labels.rows)
        partition = partition.without(split).plus(fresh)
    conditional = partition.conditional(posterior, f_max, float(errors.sum()))
    return replace(conditional, n_terms=n_terms, out_of_budget=not converged)


class _Partition(NamedTuple):
    """Cells that cover what matters, with the integrals over each by both rules."""

    low: Float[np.ndarray, "cells params"]
    high: Float[np.ndarray, "cells params"]
    mass: Float[np.ndarray, "cells points"]
    """Density times Kronrod weight at each point."""
    kronrod: Float[np.ndarray, "cells integrands"]
    """Integrals of 1, |beta| and beta^2 by Kronrod's rule."""
    gauss: Float[np.ndarray, "cells integrands"]
    """The same integrals by Gauss's rule."""
    rule: Float[np.ndarray, "points params"]
    """The Kronrod points of the cell [-1, 1]^params."""

    @classmethod
    def of(
        cls,
        posterior: LogisticPosterior,
        low: Float[np.ndarray, "all_cells params"],
        high: Float[np.ndarray, "all_cells params"],
        f_max: float,
    ) -> _Partition:
        """Integrate over the cells that are not too far from the prior's centre to matter."""
        n_params = low.shape[1]
        nearest = np.clip(0, low, high)
        possible = -(nearest**2).sum(1) / 2 > f_max - DEPTH - 5
        low, high = low[possible], high[possible]
        rule = mesh(*[KRONROD] * n_params).reshape(-1, n_params)
        kronrod_weights, gauss_weights = (
            mesh(*[line] * n_params).prod(-1).ravel() for line in (KRONROD_WEIGHTS, GAUSS_WEIGHTS)
        )
        z = (low + high)[:, None] / 2 + rule * (high - low)[:, None] / 2
        flat = z.reshape(-1, n_params)
        f = posterior.log_density(flat).reshape(z.shape[:-1])
        density = np.exp(f - f_max) * ((high - low) / 2).prod(1)[:, None]
        value = posterior.from_z(flat).reshape(z.shape)
        integrands = np.concatenate([np.ones((*f.shape, 1)), np.abs(value), value**2], -1)
        mass = density * kronrod_weights
        kronrod = np.einsum("cp,cpv->cv", mass, integrands)
        gauss = np.einsum("cp,cpv->cv", density * gauss_weights, integrands)
        return cls(low, high, mass, kronrod, gauss, rule)

    def without(self, split: Bool[np.ndarray, " cells"]) -> _Partition:
        """Leave out some of the cells."""
        return _Partition._make([*(x[~split] for x in self[:-1]), self.rule])

    def plus(self, other: _Partition) -> _Partition:
        """Join the cells of two partitions."""
        both = [np.concatenate(pair) for pair in zip(self[:-1], other[:-1], strict=True)]
        return _Partition._make([*both, self.rule])

    def conditional(
        self, posterior: LogisticPosterior, f_max: float, error: float
    ) -> CellConditional:
        """Return the posterior that these cells add up to; `error` is the sum of differences."""
        n_params = self.low.shape[1]
        z = (self.low + self.high)[:, None] / 2 + self.rule * (self.high - self.low)[:, None] / 2
        z = z.reshape(-1, n_params)
        total = self.mass.sum()
        weights = self.mass.ravel() / total
        kept = weights > 1e-12
        # Each Kronrod point stands for a box as wide as its weight, side by side.
        ends = np.concatenate([[-1], -1 + np.cumsum(KRONROD_WEIGHTS)])
        half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
        size = (self.high - self.low)[:, None] / 2
        halves, middles = (mesh(*[x] * n_params).reshape(-1, n_params) for x in (half, middle))
        half_width = (halves * size).reshape(-1, n_params)
        centre = ((self.low + self.high)[:, None] / 2 + middles * size).reshape(-1, n_params)
        return CellConditional(
            float(f_max + np.log(total) - n_params / 2 * np.log(2 * np.pi)),
            z[kept],
            weights[kept] / weights[kept].sum(),
            posterior.from_z(z[kept]),
            error / 10,  # Gauss-Kronrod differences are the Gauss rule's error, not Kronrod's
            centre[kept],
            half_width[kept],
        )
