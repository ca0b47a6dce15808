"""Integrals over the readout's parameters by a uniform grid.

The grid is uniform in the coordinates that whiten the posterior at its mode. For a smooth density
that vanishes at the grid's ends the error falls exponentially in the number of points; every second
point is a coarser grid to compare with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import Akima1DInterpolator

from .conditional import Cells, Conditional, MeanSd, WeightedPoints, mesh
from .regression import LogisticPosterior, Mode

# The whitened grid starts with this spacing and half-width, in Laplace standard deviations. At
# twice the spacing a Gaussian is integrated to 3e-4, at the spacing itself to rounding.
SPACING, HALF_WIDTH, GROWTH = 0.75, 6, 4
# A grid is trusted below this error, but never if every second point of it is wrong by COARSE.
TRUST, COARSE = 0.003, 0.02
# The grid grows while more than this of the mass, or of a second moment, lies on its last line.
END = 1e-3
# Densities below this share of the highest are interpolated as if they were equal to it.
FLOOR = 1e-20


class Grid(NamedTuple):
    """z = mode + factor y, y on a uniform grid that contains 0."""

    mode: Float[np.ndarray, " params"]
    factor: Float[np.ndarray, "params params"]
    lines: tuple[Float[np.ndarray, " line"], ...]
    """The grid of each coordinate of y; their lengths may differ."""
    f_max: float

    @property
    def n_params(self) -> int:
        return self.mode.size

    @property
    def spacing(self) -> float:
        return self.lines[0][1] - self.lines[0][0]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The index of 0 in each line."""
        return tuple(int(np.argmin(np.abs(line))) for line in self.lines)

    def to_z(self, y: Float[np.ndarray, "*grid params"]) -> Float[np.ndarray, "*grid params"]:
        return self.mode + y @ self.factor.T

    def points(self) -> Float[np.ndarray, "*grid params"]:
        """Return z at the points of the grid."""
        return self.to_z(mesh(*self.lines))

    def log_integral(self, density: Float[np.ndarray, "*grid"]) -> float:
        """Return the log of the integral of exp(f) over z, divided by the prior's constant."""
        volume = self.spacing**self.n_params * np.prod(np.diag(self.factor))
        constant = self.n_params / 2 * np.log(2 * np.pi)
        return float(self.f_max + np.log(density.sum() * volume) - constant)


class GridConditional(Conditional):
    """The posterior on a whitened grid; every second point of it is wrong by `coarse_error`."""

    def __init__(
        self,
        grid: Grid,
        density: Float[np.ndarray, "*grid"],
        posterior: LogisticPosterior,
        error: float,
        coarse_error: float,
    ) -> None:
        z = grid.points().reshape(-1, grid.n_params)
        weights = density.ravel() / density.sum()
        log_evidence = grid.log_integral(density)
        super().__init__(log_evidence, z, weights, posterior.from_z(z), error)
        self._grid, self._density, self._coarse_error = grid, density, coarse_error

    def cells(self) -> Cells:
        """Return the density on a grid four times as fine.

        The logarithm of its ratio to the normal density at the mode is interpolated, which is
        smooth where the posterior is nearly normal. The modified Akima cubic does not overshoot
        where it is not.
        """
        grid, fine = self._grid, 4
        lines = [np.linspace(line[0], line[-1], (len(line) - 1) * fine + 1) for line in grid.lines]
        coarse, points = mesh(*grid.lines), mesh(*lines)
        values = np.log(np.maximum(self._density, FLOOR)) + (coarse**2).sum(-1) / 2
        for axis, (line, finer) in enumerate(zip(grid.lines, lines, strict=True)):
            values = Akima1DInterpolator(line, values, axis=axis, method="makima")(finer)
        values -= (points**2).sum(-1) / 2
        points = points.reshape(-1, grid.n_params)
        mass = np.exp(values - values.max()).ravel()
        kept = mass > 1e-8
        mass, side = mass[kept], grid.spacing / fine / 2 * grid.factor.T
        sides = np.broadcast_to(side, (len(mass), *side.shape))
        return Cells(grid.to_z(points[kept]), sides, np.cumsum(mass) / mass.sum())

    def weighted_points(self, most: int = 1024) -> WeightedPoints:
        """Return every second point of the grid where those are as good a rule, else all points."""
        step = 2 if self._coarse_error < TRUST else 1
        every = tuple(slice(offset % step, None, step) for offset in self._grid.offsets)
        z = self._grid.points()[every].reshape(-1, self._grid.n_params)
        weights = self._density[every].ravel()
        kept = weights > 1e-7 * weights.max()
        return WeightedPoints(z[kept], weights[kept] / weights[kept].sum())


def integrate_by_grid(posterior: LogisticPosterior, mode: Mode, spacing: float) -> Conditional:
    """Integrate over a whitened grid around a mode, which grows until nothing lies beyond it."""
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
        value = posterior.from_z(z)
        ends = _weight_at_ends(density, value)
        if (ends < END).all():
            break
        reach = reach + np.where(ends >= END, steps // 2, 0)
    every = tuple(slice(offset % 2, None, 2) for offset in grid.offsets)
    coarse, full = _mean_and_sd(density[every], value[every]), _mean_and_sd(density, value)
    coarse_error = max(
        abs(np.log(2**n_params * density[every].sum() / density.sum())),
        np.abs((coarse.mean - full.mean) / full.sd).max(),
        np.abs((coarse.sd - full.sd) / full.sd).max(),
    )
    # When the spacing halves the error is squared, or better; beyond an end lies less than half of
    # what lies on its line.
    error = TRUST if coarse_error > COARSE else max(10 * coarse_error**2, ends.max() / 2)
    return GridConditional(grid, density, posterior, float(error), float(coarse_error))


def _mean_and_sd(
    density: Float[np.ndarray, "*grid"], value: Float[np.ndarray, "*grid params"]
) -> MeanSd:
    share = (density / density.sum()).ravel()
    flat = value.reshape(-1, value.shape[-1])
    mean = share @ flat
    return MeanSd(mean, np.sqrt(share @ (flat - mean) ** 2))


def _weight_at_ends(
    density: Float[np.ndarray, "*grid"], value: Float[np.ndarray, "*grid params"]
) -> Float[np.ndarray, "params 2"]:
    """Return the share of the first and the last line of each axis in the mass or in a moment."""
    n_params = density.ndim
    centre = (density[..., None] * value).sum(tuple(range(n_params))) / density.sum()
    squares = [density * (value[..., k] - centre[k]) ** 2 for k in range(n_params)]
    shares = [part / part.sum() for part in (density, *squares)]

    def end(axis: int, index: int) -> float:
        return max(np.take(share, index, axis).sum() for share in shares)

    return np.array([[end(axis, 0), end(axis, -1)] for axis in range(n_params)])
