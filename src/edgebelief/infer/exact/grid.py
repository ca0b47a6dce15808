"""Integrals over the readout's parameters by a uniform grid.

The grid is uniform in coordinates y that whiten the posterior: the first is z_1 in units of its sd
at the mode; the others are measured from a curve of centres, which depends on the first. The curve
is a straight line (that of the normal distribution at the mode), or follows the ridge of the
posterior: at each z_1 the mode of z_2 given z_1, with its sd. For a smooth density that vanishes at
the grid's ends the error falls exponentially in the number of points; every second point is a
coarser grid to compare with.
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


class Curve(NamedTuple):
    """z = centre + y_rest across, where both depend on the first coordinate of y."""

    centre: Float[np.ndarray, "line params"]
    across: Float[np.ndarray, "line rest params"]
    """How z changes with each of the other coordinates of y, one per row."""

    @classmethod
    def straight(cls, mode: Mode, line: Float[np.ndarray, " line"]) -> Curve:
        """Return the line of means of the normal distribution at the mode."""
        factor = np.linalg.cholesky(mode.covariance)
        across = np.broadcast_to(factor.T[1:], (len(line), *factor.T[1:].shape))
        return cls(mode.z + line[:, None] * factor[:, 0], across)

    @classmethod
    def ridge(
        cls, posterior: LogisticPosterior, mode: Mode, line: Float[np.ndarray, " line"]
    ) -> Curve:
        """Return the mode and sd of z_2 given z_1, followed from the mode to both ends."""
        curve = cls.straight(mode, line)
        centre, across = curve.centre.copy(), curve.across.copy()
        middle = int(np.argmin(np.abs(line)))
        for indices in (range(middle, len(line)), range(middle - 1, -1, -1)):
            z_2 = mode.z[1]
            for k in indices:
                z_2, sd = posterior.conditional_mode(np.array([centre[k, 0], z_2]))
                centre[k, 1], across[k, 0, 1] = z_2, sd
        return cls(centre, across)


class Grid(NamedTuple):
    """Points z = centre + y_rest across, y on a uniform grid that contains 0."""

    curve: Curve
    lines: tuple[Float[np.ndarray, " line"], ...]
    """The grid of each coordinate of y; their lengths may differ."""
    scale: float
    """The change of z_1 with the first coordinate of y."""
    f_max: float

    @property
    def n_params(self) -> int:
        return len(self.lines)

    @property
    def spacing(self) -> float:
        return self.lines[0][1] - self.lines[0][0]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The index of 0 in each line."""
        return tuple(int(np.argmin(np.abs(line))) for line in self.lines)

    @property
    def volume(self) -> Float[np.ndarray, "*grid"]:
        """The volume that a point stands for, relative to the others; it depends on y_1 alone."""
        width = np.linalg.det(self.curve.across[:, :, 1:])
        return width.reshape(-1, *[1] * (self.n_params - 1))

    def finer(self, times: int) -> Grid:
        """Return a grid with `times` as many points, on the same curve."""
        lines = tuple(
            np.linspace(line[0], line[-1], (len(line) - 1) * times + 1) for line in self.lines
        )
        curve = Curve(*(_smooth(self.lines[0], part)(lines[0]) for part in self.curve))
        return self._replace(curve=curve, lines=lines)

    def points(self) -> Float[np.ndarray, "*grid params"]:
        """Return z at the points of the grid."""
        centre, across = self.curve
        if self.n_params == 1:
            return centre
        rest = mesh(*self.lines[1:])
        z = np.einsum("...r,lrp->l...p", rest, across)
        return z + centre.reshape(len(centre), *[1] * (self.n_params - 1), -1)

    def sides(self) -> Float[np.ndarray, "*grid params params"]:
        """Return the half-axes of the box that each point stands for, one per row."""
        line, across = self.lines[0], self.curve.across
        slope = Curve(*(_smooth(line, part).derivative()(line) for part in self.curve))
        along = self._replace(curve=slope).points()[..., None, :]
        shape = (len(line), *[1] * (self.n_params - 1), *across.shape[1:])
        others = np.broadcast_to(across.reshape(shape), (*along.shape[:-2], *across.shape[1:]))
        return self.spacing / 2 * np.concatenate([along, others], -2)

    def log_integral(self, mass: Float[np.ndarray, "*grid"]) -> float:
        """Return the log of the integral of exp(f) over z, divided by the prior's constant."""
        constant = self.n_params / 2 * np.log(2 * np.pi)
        steps = self.n_params * np.log(self.spacing) + np.log(self.scale)
        return float(self.f_max + np.log(mass.sum()) + steps - constant)


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
        mass = density * grid.volume
        log_evidence = grid.log_integral(mass)
        weights = mass.ravel() / mass.sum()
        super().__init__(log_evidence, z, weights, posterior.from_z(z), error)
        self._grid, self._density, self._coarse_error = grid, density, coarse_error

    def cells(self) -> Cells:
        """Return the density on a grid four times as fine.

        The logarithm of its ratio to the normal density in y is interpolated, which is smooth where
        the posterior is nearly normal. The modified Akima cubic does not overshoot where it is not.
        """
        grid, finer = self._grid, self._grid.finer(4)
        values = np.log(np.maximum(self._density, FLOOR)) + (mesh(*grid.lines) ** 2).sum(-1) / 2
        for axis, (line, fine) in enumerate(zip(grid.lines, finer.lines, strict=True)):
            values = _smooth(line, values, axis)(fine)
        values -= (mesh(*finer.lines) ** 2).sum(-1) / 2
        density = np.exp(values - values.max())
        kept = density > 1e-8
        mass = (density * finer.volume)[kept]
        return Cells(finer.points()[kept], finer.sides()[kept], np.cumsum(mass) / mass.sum())

    def weighted_points(self, most: int = 1024) -> WeightedPoints:
        """Return every second point of the grid where those are as good a rule, else all points."""
        step = 2 if self._coarse_error < TRUST else 1
        every = tuple(slice(offset % step, None, step) for offset in self._grid.offsets)
        z = self._grid.points()[every].reshape(-1, self._grid.n_params)
        weights = (self._density * self._grid.volume)[every].ravel()
        kept = weights > 1e-7 * weights.max()
        return WeightedPoints(z[kept], weights[kept] / weights[kept].sum())


def integrate_by_grid(
    posterior: LogisticPosterior, mode: Mode, spacing: float, ridge: bool = False
) -> Conditional:
    """Integrate over a whitened grid around a mode, which grows until nothing lies beyond it.

    The grid follows the ridge of the posterior if asked to, else a straight line.
    """
    n_params, f_max = mode.z.size, mode.f
    steps = round(HALF_WIDTH * SPACING / spacing)
    reach = np.full((n_params, 2), steps)
    for _ in range(GROWTH + 1):
        lines = tuple(np.arange(-low, high + 1) * spacing for low, high in reach)
        curved = ridge and n_params == 2
        curve = Curve.ridge(posterior, mode, lines[0]) if curved else Curve.straight(mode, lines[0])
        grid = Grid(curve, lines, float(np.sqrt(mode.covariance[0, 0])), f_max)
        z = grid.points()
        f = posterior.log_density(z.reshape(-1, n_params)).reshape(z.shape[:-1])
        density = np.exp(f - f_max)
        mass, value = density * grid.volume, posterior.from_z(z)
        ends = _weight_at_ends(mass, value)
        if (ends < END).all():
            break
        reach = reach + np.where(ends >= END, steps // 2, 0)
    every = tuple(slice(offset % 2, None, 2) for offset in grid.offsets)
    coarse, full = _mean_and_sd(mass[every], value[every]), _mean_and_sd(mass, value)
    coarse_error = max(
        abs(np.log(2**n_params * mass[every].sum() / mass.sum())),
        np.abs((coarse.mean - full.mean) / full.sd).max(),
        np.abs((coarse.sd - full.sd) / full.sd).max(),
    )
    # When the spacing halves the error is squared, or better, unless the coarse grid is too far off
    # to tell; beyond an end lies less than half of what lies on its line.
    error = coarse_error if coarse_error > COARSE else 10 * coarse_error**2
    error = max(error, ends.max() / 2)
    return GridConditional(grid, density, posterior, float(error), float(coarse_error))


def _smooth(
    line: Float[np.ndarray, " line"], values: Float[np.ndarray, "..."], axis: int = 0
) -> Akima1DInterpolator:
    """Interpolate along an axis by the modified Akima cubic."""
    return Akima1DInterpolator(line, values, axis=axis, method="makima")


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
