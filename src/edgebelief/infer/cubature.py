"""Integrals over the readout's parameters, given the network.

Two rules, each with an estimate of its own error:

- a uniform grid in the coordinates that whiten the posterior at its mode. For a smooth density
  that vanishes at the grid's ends the error falls exponentially in the number of points; every
  second point is a coarser grid to compare with;
- where that does not work (separable labels, several modes, wedges), cells that are split until
  the Gauss and the Kronrod rule agree.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import Akima1DInterpolator

from .logistic import LogisticPosterior, Mode

# The whitened grid starts with this spacing and half-width, in Laplace standard deviations. At
# twice the spacing a Gaussian is integrated to 3e-4, at the spacing itself to rounding.
SPACING, HALF_WIDTH, GROWTH = 0.75, 6, 4
# A grid is trusted below this error; never where every second point of it is off by COARSE.
TRUST, COARSE = 0.003, 0.02
# The grid grows while more than this of the mass, or of a second moment, lies on its last line.
END = 1e-3
# Lower densities than this share of the highest are not told apart between grid points.
FLOOR = 1e-20
# A second mode matters when it is less than this below the first.
APART = 14.0
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


class Cells(NamedTuple):
    """The posterior as small boxes of constant density: what continuous draws are made from."""

    centre: Float[np.ndarray, "cells params"]
    sides: Float[np.ndarray, "cells params params"]
    """Half-axes, a row each."""
    cumulative: Float[np.ndarray, " cells"]

    def at(self, uniforms: Float[np.ndarray, "draws 3"]) -> Float[np.ndarray, "draws params"]:
        """The point of each set of uniform numbers: one picks the cell, the others the place."""
        cell = np.searchsorted(self.cumulative, uniforms[:, 0], side="right")
        cell = np.minimum(cell, len(self.cumulative) - 1)
        place = 2 * uniforms[:, 1:] - 1
        return self.centre[cell] + np.einsum("ni,nij->nj", place, self.sides[cell])


class Conditional:
    """The posterior of the readout's parameters at one value of the network's parameter.

    Parameters
    ----------
    log_evidence : float
        log of the integral of likelihood times prior.
    z, weights : arrays
        The rule's points, in the coordinates where the prior is standard normal, and their shares.
    value : array, shape (points, params)
        The parameters at `z`.
    error : float
        The larger of the error of `log_evidence` and those of mean and sd in units of the sd.
    """

    def __init__(
        self,
        log_evidence: float,
        z: np.ndarray,
        weights: np.ndarray,
        value: np.ndarray,
        error: float,
    ):
        self.log_evidence, self.z, self.weights = log_evidence, z, weights
        self.value, self.error = value, error
        self.mode = z[np.argmax(weights)]

    @cached_property
    def moments(self) -> Float[np.ndarray, " 2*params"]:
        """E[beta] and E[beta^2], in the parameters' own units."""
        return np.concatenate([self.weights @ self.value, self.weights @ self.value**2])

    @cached_property
    def mean(self) -> Float[np.ndarray, " params"]:
        """E[z]."""
        return self.weights @ self.z

    @cached_property
    def factor(self) -> Float[np.ndarray, "params params"]:
        """The Cholesky factor of Cov[z]."""
        centred = self.z - self.mean
        covariance = np.einsum("p,pi,pj->ij", self.weights, centred, centred)
        return np.linalg.cholesky(covariance + 1e-14 * np.eye(len(covariance)))

    def cells(self) -> Cells:
        raise NotImplementedError

    def nodes(self, most: int = 1024) -> tuple[np.ndarray, np.ndarray]:
        """At most about `most` weighted points (z, weights) that stand for this posterior."""
        kept = self.weights > 1e-7 * self.weights.max()
        z, weights = self.z[kept], self.weights[kept]
        if len(z) > most:
            # Systematic resampling along a space-filling curve: neighbours stand for each other.
            order = np.argsort(_morton(z))
            cumulative = np.cumsum(weights[order])
            ticks = (np.arange(most) + 0.5) / most * cumulative[-1]
            z = z[order][np.searchsorted(cumulative, ticks)]
            weights = np.full(most, 1 / most)
        return z, weights / weights.sum()


class GridConditional(Conditional):
    """By the whitened grid."""

    def __init__(
        self,
        grid: Grid,
        density: np.ndarray,
        posterior: LogisticPosterior,
        error: float,
        coarse: float,
    ):
        z = grid.points().reshape(-1, grid.n_params)
        weights = density.ravel() / density.sum()
        log_evidence = grid.log_integral(density)
        super().__init__(log_evidence, z, weights, posterior.value_at(z), error)
        self._grid, self._density, self._coarse = grid, density, coarse

    def cells(self) -> Cells:
        """The density on a grid four times as fine.

        What is interpolated is the logarithm of its ratio to the Gaussian at the mode, which is
        smooth where the posterior is like one; by a cubic that does not overshoot (Akima's,
        modified) where it is not.
        """
        grid, fine = self._grid, 4
        lines = [np.linspace(line[0], line[-1], (len(line) - 1) * fine + 1) for line in grid.lines]
        coarse, mesh = (np.stack(np.meshgrid(*x, indexing="ij"), -1) for x in (grid.lines, lines))
        values = np.log(np.maximum(self._density, FLOOR)) + (coarse**2).sum(-1) / 2
        for axis, (line, finer) in enumerate(zip(grid.lines, lines, strict=True)):
            values = Akima1DInterpolator(line, values, axis=axis, method="makima")(finer)
        values -= (mesh**2).sum(-1) / 2
        mesh = mesh.reshape(-1, grid.n_params)
        mass = np.exp(values - values.max()).ravel()
        kept = mass > 1e-8
        mass = mass[kept]
        sides = np.broadcast_to(
            grid.spacing / fine / 2 * grid.factor.T, (len(mass), *grid.factor.shape)
        )
        return Cells(grid.to_z(mesh[kept]), sides, np.cumsum(mass) / mass.sum())

    def nodes(self, most: int = 1024) -> tuple[np.ndarray, np.ndarray]:
        """Every second point of the grid, where those are as good a rule."""
        step = 2 if self._coarse < TRUST else 1
        every = tuple(slice(offset % step, None, step) for offset in self._grid.offsets)
        z = self._grid.points()[every].reshape(-1, self._grid.n_params)
        weights = self._density[every].ravel()
        kept = weights > 1e-7 * weights.max()
        return z[kept], weights[kept] / weights[kept].sum()


class Grid(NamedTuple):
    """z = mode + factor y, y on a uniform grid that contains 0."""

    mode: np.ndarray
    factor: np.ndarray
    lines: tuple[np.ndarray, ...]
    f_max: float

    @property
    def n_params(self) -> int:
        return self.mode.size

    @property
    def spacing(self) -> float:
        return self.lines[0][1] - self.lines[0][0]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The place of 0 in each line."""
        return tuple(int(np.argmin(np.abs(line))) for line in self.lines)

    def to_z(self, y: np.ndarray) -> np.ndarray:
        return self.mode + y @ self.factor.T

    def points(self) -> np.ndarray:
        return self.to_z(np.stack(np.meshgrid(*self.lines, indexing="ij"), -1))

    def log_integral(self, density: np.ndarray) -> float:
        """Log of the integral of exp(f) over z, divided by the prior's constant."""
        volume = self.spacing**self.n_params * np.prod(np.diag(self.factor))
        return float(
            self.f_max + np.log(density.sum() * volume) - self.n_params / 2 * np.log(2 * np.pi)
        )


class Sketch(Conditional):
    """Laplace's approximation: to find out where it is worth integrating. Its error is not
    known, and counted as one.
    """

    def __init__(self, posterior: LogisticPosterior, mode: Mode):
        n_params = mode.z.size
        line, share = np.array([-1, 0, 1]) * np.sqrt(3), np.array([1, 4, 1]) / 6
        y = np.stack(np.meshgrid(*[line] * n_params, indexing="ij"), -1).reshape(-1, n_params)
        weights = np.ones(len(y))
        for part in np.meshgrid(*[share] * n_params, indexing="ij"):
            weights = weights * part.ravel()
        z = mode.z + y @ np.linalg.cholesky(mode.covariance).T
        super().__init__(mode.log_mass, z, weights, posterior.value_at(z), 1.0)
        self._at = mode

    def cells(self) -> Cells:
        """Of the Gaussian."""
        n_params, step = self._at.z.size, 0.25
        line = np.arange(-20, 21) * step
        y = np.stack(np.meshgrid(*[line] * n_params, indexing="ij"), -1).reshape(-1, n_params)
        mass = np.exp(-(y**2).sum(1) / 2)
        factor = np.linalg.cholesky(self._at.covariance)
        sides = np.broadcast_to(step / 2 * factor.T, (len(y), n_params, n_params))
        return Cells(self._at.z + y @ factor.T, sides, np.cumsum(mass) / mass.sum())


def sketch(posterior: LogisticPosterior, start: np.ndarray | None = None) -> Sketch:
    """Laplace's approximation at the mode uphill from `start`, or from the best of a grid."""
    simple = posterior.simplified()
    near = simple.climb(simple.starts()[0] if start is None else start)
    return Sketch(posterior, posterior.climb(near.z))


def integrate(posterior: LogisticPosterior, start: np.ndarray) -> Conditional:
    """By the grid if it can be trusted, else by cells. `start` is where a mode may be."""
    simple = posterior.simplified()
    near = simple.modes([start, *simple.starts()[:4]])
    best, *others = posterior.modes([mode.z for mode in near])
    rivals = [mode for mode in others if mode.log_mass > best.log_mass - APART]
    if not rivals:
        for spacing in (SPACING, SPACING / 2):
            found = _by_grid(posterior, best, spacing)
            if found.error < TRUST:
                return found
    return _by_cells(posterior, [best, *rivals])


def _by_grid(posterior: LogisticPosterior, mode: Mode, spacing: float) -> Conditional:
    n_params, f_max = mode.z.size, mode.f
    steps = round(HALF_WIDTH * SPACING / spacing)
    reach = np.full((n_params, 2), steps)
    factor = np.linalg.cholesky(mode.covariance)
    for _ in range(GROWTH + 1):
        lines = tuple(np.arange(-low, high + 1) * spacing for low, high in reach)
        grid = Grid(mode.z, factor, lines, f_max)
        z = grid.points()
        f = posterior.log_density(z.reshape(-1, n_params)).reshape(z.shape[:-1])
        density = np.exp(f - f_max)
        value = posterior.value_at(z)
        ends = _weight_at_ends(density, value)
        if (ends < END).all():
            break
        reach = reach + np.where(ends >= END, steps // 2, 0)
    every = tuple(slice(offset % 2, None, 2) for offset in grid.offsets)
    coarse_mean, coarse_sd = _mean_and_sd(density[every], value[every])
    mean, sd = _mean_and_sd(density, value)
    coarse = max(
        abs(np.log(2**n_params * density[every].sum() / density.sum())),
        np.abs((coarse_mean - mean) / sd).max(),
        np.abs((coarse_sd - sd) / sd).max(),
    )
    # When the spacing halves the error is squared, or better; beyond an end lies less than half of
    # what lies on its line.
    error = TRUST if coarse > COARSE else max(10 * coarse**2, ends.max() / 2)
    return GridConditional(grid, density, posterior, float(error), coarse)


def _mean_and_sd(density: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    share = (density / density.sum()).ravel()
    flat = value.reshape(-1, value.shape[-1])
    mean = share @ flat
    return mean, np.sqrt(share @ (flat - mean) ** 2)


def _weight_at_ends(density: np.ndarray, value: np.ndarray) -> np.ndarray:
    """What lies on the first and the last line of each axis, as a share of mass or of a moment."""
    n_params = density.ndim
    centre = (density[..., None] * value).sum(tuple(range(n_params))) / density.sum()
    shares = [density / density.sum()]
    for k in range(n_params):
        square = density * (value[..., k] - centre[k]) ** 2
        shares.append(square / square.sum())
    ends = np.empty((n_params, 2))
    for axis in range(n_params):
        for side, place in enumerate((0, -1)):
            ends[axis, side] = max(np.take(share, place, axis).sum() for share in shares)
    return ends


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


def _by_cells(posterior: LogisticPosterior, modes: list[Mode]) -> Conditional:
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
    low = np.stack(np.meshgrid(*[c[:-1] for c in cuts], indexing="ij"), -1).reshape(-1, n_params)
    high = np.stack(np.meshgrid(*[c[1:] for c in cuts], indexing="ij"), -1).reshape(-1, n_params)
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
        rule = np.stack(np.meshgrid(*[KRONROD] * n_params, indexing="ij"), -1).reshape(-1, n_params)
        weights = [np.ones(len(rule)), np.ones(len(rule))]
        for which, line in enumerate((KRONROD_WEIGHTS, GAUSS_WEIGHTS)):
            for part in np.meshgrid(*[line] * n_params, indexing="ij"):
                weights[which] = weights[which] * part.ravel()
        z = (low + high)[:, None] / 2 + rule * (high - low)[:, None] / 2
        flat = z.reshape(-1, n_params)
        f = posterior.log_density(flat).reshape(z.shape[:-1])
        density = np.exp(f - f_max) * ((high - low) / 2).prod(1)[:, None]
        value = posterior.value_at(flat).reshape(z.shape)
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
        mesh = [
            np.stack(np.meshgrid(*[x] * n_params, indexing="ij"), -1).reshape(-1, n_params)
            for x in (half, middle)
        ]
        size = (self.high - self.low)[:, None] / 2
        sides = (mesh[0] * size).reshape(-1, n_params)
        centres = ((self.low + self.high)[:, None] / 2 + mesh[1] * size).reshape(-1, n_params)
        return CellConditional(
            float(f_max + np.log(total) - n_params / 2 * np.log(2 * np.pi)),
            z[kept],
            weights[kept] / weights[kept].sum(),
            posterior.value_at(z[kept]),
            error / 10,  # Gauss-Kronrod differences are the Gauss rule's error, not Kronrod's
            (centres[kept], sides[kept]),
        )


def _morton(z: np.ndarray) -> np.ndarray:
    """The place of each point on a space-filling curve: bits of its coordinates in turns."""
    scaled = (z - z.min(0)) / np.maximum(np.ptp(z, axis=0), 1e-300)
    whole = (scaled * (2**16 - 1)).astype(np.int64)
    code = np.zeros(len(z), np.int64)
    for bit in range(16):
        for k in range(z.shape[1]):
            code |= ((whole[:, k] >> bit) & 1) << (bit * z.shape[1] + k)
    return code
