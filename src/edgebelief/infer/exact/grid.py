"""Integrals over the readout's parameters by a uniform grid.

In the coordinates that whiten the posterior at its mode. For a smooth density that vanishes at the
grid's ends the error falls exponentially in the number of points; every second point is a coarser
grid to compare with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import Akima1DInterpolator

from .conditional import Cells, Conditional, mesh
from .regression import LogisticPosterior, Mode

# The whitened grid starts with this spacing and half-width, in Laplace standard deviations. At
# twice the spacing a Gaussian is integrated to 3e-4, at the spacing itself to rounding.
SPACING, HALF_WIDTH, GROWTH = 0.75, 6, 4
# A grid is trusted below this error; never where every second point of it is off by COARSE.
TRUST, COARSE = 0.003, 0.02
# The grid grows while more than this of the mass, or of a second moment, lies on its last line.
END = 1e-3
# Lower densities than this share of the highest are not told apart between grid points.
FLOOR = 1e-20


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
        return self.to_z(mesh(*self.lines))

    def log_integral(self, density: np.ndarray) -> float:
        """Log of the integral of exp(f) over z, divided by the prior's constant."""
        volume = self.spacing**self.n_params * np.prod(np.diag(self.factor))
        return float(
            self.f_max + np.log(density.sum() * volume) - self.n_params / 2 * np.log(2 * np.pi)
        )


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
        super().__init__(log_evidence, z, weights, posterior.from_z(z), error)
        self._grid, self._density, self._coarse = grid, density, coarse

    def cells(self) -> Cells:
        """The density on a grid four times as fine.

        What is interpolated is the logarithm of its ratio to the Gaussian at the mode, which is
        smooth where the posterior is like one; by a cubic that does not overshoot (Akima's,
        modified) where it is not.
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
        mass = mass[kept]
        sides = np.broadcast_to(
            grid.spacing / fine / 2 * grid.factor.T, (len(mass), *grid.factor.shape)
        )
        return Cells(grid.to_z(points[kept]), sides, np.cumsum(mass) / mass.sum())

    def nodes(self, most: int = 1024) -> tuple[np.ndarray, np.ndarray]:
        """Every second point of the grid, where those are as good a rule."""
        step = 2 if self._coarse < TRUST else 1
        every = tuple(slice(offset % step, None, step) for offset in self._grid.offsets)
        z = self._grid.points()[every].reshape(-1, self._grid.n_params)
        weights = self._density[every].ravel()
        kept = weights > 1e-7 * weights.max()
        return z[kept], weights[kept] / weights[kept].sum()


def by_grid(posterior: LogisticPosterior, mode: Mode, spacing: float) -> Conditional:
    """The whitened grid around a mode, grown until nothing is left beyond its ends."""
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
