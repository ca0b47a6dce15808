"""Integrals over the readout's parameters by cells, where a grid does not work.

Separable labels, several modes, wedges: cells are split until the Gauss and the Kronrod rule agree.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from .conditional import Cells, Conditional, mesh
from .regression import LogisticPosterior, Mode

# Outside |z|^2/2 = DEPTH - f_max nothing matters, not even for second moments.
DEPTH = 35.0
# The adaptive rule stops at this sum of Gauss-Kronrod differences, or at so many points.
CELL_ERROR, MOST_POINTS = 4e-3, 400_000

# Gauss-Legendre with 3 points inside Kronrod's 7, on [-1, 1].
KRONROD = np.array([-0.9604912687080202, -0.7745966692414834, -0.4342437493468026, 0.0])
KRONROD = np.concatenate([KRONROD, -KRONROD[-2::-1]])
KRONROD_WEIGHTS = np.array([0.1046562260264673, 0.2684880898683334, 0.4013974147759622])
KRONROD_WEIGHTS = np.concatenate([KRONROD_WEIGHTS, [0.4509165386584741], KRONROD_WEIGHTS[::-1]])
GAUSS_WEIGHTS = np.array([0, 5 / 9, 0, 8 / 9, 0, 5 / 9, 0])


class CellConditional(Conditional):
    """By adaptive cells."""

    def __init__(
        self,
        log_evidence: float,
        z: np.ndarray,
        weights: np.ndarray,
        value: np.ndarray,
        error: float,
        boxes: tuple[np.ndarray, np.ndarray],
    ):
        super().__init__(log_evidence, z, weights, value, error)
        self._boxes = boxes

    def cells(self) -> Cells:
        kept = self.weights > 1e-9
        weights = self.weights[kept]
        sides = np.zeros((len(weights), *[self.z.shape[1]] * 2))
        index = np.arange(self.z.shape[1])
        centres, half = self._boxes
        sides[:, index, index] = half[kept]
        return Cells(centres[kept], sides, np.cumsum(weights) / weights.sum())


def by_cells(posterior: LogisticPosterior, modes: list[Mode]) -> Conditional:
    """Cells over all that matters, cut first around the modes."""
    n_params = modes[0].z.size
    f_max = max(mode.f for mode in modes)
    radius = np.sqrt(2 * (DEPTH - f_max))
    cuts = []
    for k in range(n_params):
        near = [
            mode.z[k] + s * np.sqrt(mode.covariance[k, k])
            for mode in modes
            for s in (-4.5, -1.5, 0, 1.5, 4.5)
        ]
        line = np.concatenate([np.linspace(-radius, radius, 9), near])
        line = np.unique(line[np.abs(line) <= radius])
        keep = np.concatenate([[True], np.diff(line) > 1e-9 * radius])
        cuts.append(line[keep])
    low = mesh(*(line[:-1] for line in cuts)).reshape(-1, n_params)
    high = mesh(*(line[1:] for line in cuts)).reshape(-1, n_params)
    batch = _Batch.of(posterior, low, high, f_max)
    spent = len(batch.mass)
    halves = np.array(list(product((0, 1), repeat=n_params)))
    while True:
        total = batch.kronrod.sum(0)
        errors = (np.abs(batch.kronrod - batch.gauss) / np.abs(total)).max(1)
        if errors.sum() < CELL_ERROR or spent * len(batch.rule) > MOST_POINTS:
            break
        order = np.argsort(errors)
        split = np.zeros(len(errors), bool)
        split[order[np.cumsum(errors[order]) > CELL_ERROR / 2]] = True
        middle = (batch.low[split] + batch.high[split]) / 2
        corners = np.stack([batch.low[split], middle, batch.high[split]], 1)
        take = np.arange(n_params)
        low = np.concatenate([corners[:, h, take] for h in halves])
        high = np.concatenate([corners[:, h + 1, take] for h in halves])
        fresh = _Batch.of(posterior, low, high, f_max)
        spent += len(fresh.mass)
        batch = batch.without(split).plus(fresh)
    return batch.conditional(posterior, f_max, float(errors.sum()))


class _Batch(NamedTuple):
    """Cells with their Kronrod points."""

    low: np.ndarray
    high: np.ndarray
    f: np.ndarray
    mass: np.ndarray
    kronrod: np.ndarray
    gauss: np.ndarray
    rule: np.ndarray

    @classmethod
    def of(cls, posterior, low, high, f_max) -> _Batch:
        n_params = low.shape[1]
        nearest = np.clip(0, low, high)
        possible = -(nearest**2).sum(1) / 2 > f_max - DEPTH - 5
        low, high = low[possible], high[possible]
        rule = mesh(*[KRONROD] * n_params).reshape(-1, n_params)
        weights = [
            mesh(*[line] * n_params).prod(-1).ravel() for line in (KRONROD_WEIGHTS, GAUSS_WEIGHTS)
        ]
        z = (low + high)[:, None] / 2 + rule * (high - low)[:, None] / 2
        flat = z.reshape(-1, n_params)
        f = posterior.log_density(flat).reshape(z.shape[:-1])
        density = np.exp(f - f_max) * ((high - low) / 2).prod(1)[:, None]
        value = posterior.from_z(flat).reshape(z.shape)
        parts = np.concatenate([np.ones((*f.shape, 1)), np.abs(value), value**2], -1)
        mass = density * weights[0]
        kronrod = np.einsum("cp,cpv->cv", mass, parts)
        gauss = np.einsum("cp,cpv->cv", density * weights[1], parts)
        return cls(low, high, f, mass, kronrod, gauss, rule)

    def without(self, split: np.ndarray) -> _Batch:
        return _Batch._make([*(x[~split] for x in self[:-1]), self.rule])

    def plus(self, other: _Batch) -> _Batch:
        both = [np.concatenate(pair) for pair in zip(self[:-1], other[:-1], strict=True)]
        return _Batch._make([*both, self.rule])

    def conditional(self, posterior, f_max, error) -> Conditional:
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
        sides = (halves * size).reshape(-1, n_params)
        centres = ((self.low + self.high)[:, None] / 2 + middles * size).reshape(-1, n_params)
        return CellConditional(
            float(f_max + np.log(total) - n_params / 2 * np.log(2 * np.pi)),
            z[kept],
            weights[kept] / weights[kept].sum(),
            posterior.from_z(z[kept]),
            error / 10,  # Gauss-Kronrod differences are the Gauss rule's error, not Kronrod's
            (centres[kept], sides[kept]),
        )
