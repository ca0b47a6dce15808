"""A posterior as a one-parameter family: computed at points along theta, interpolated between them.

The network's parameter is expressed in the coordinate z in which its prior is standard normal. At
each point the other parameters have been integrated out (`Conditional`); between points

    g(z) = log p(labels | z) + log phi(z)

is a piecewise cubic. A Gaussian peak, and a plateau of the likelihood under the prior, are
quadratics in g and take a few points each; kinks take more points around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.interpolate import CubicHermiteSpline
from scipy.stats import qmc

from ..flatness import Flatness
from ..priors import Marginal
from .conditional import Cells, Conditional, MeanSd, Sketch

# The interpolant is integrated with this many parts per interval between points.
FINE = 24
# Quasi-random draws behind the quantiles: their error is a few thousandths of an sd.
QUASI = 2**15
QUANTILES = (0.05, 0.5, 0.95)

# A number for each draw; points along a parameter, and its density at them.
PerDraw = Float[np.ndarray, " draws"]
Density = tuple[Float[np.ndarray, " parts"], Float[np.ndarray, " parts"]]


@dataclass(frozen=True)
class ThetaPoint:
    """A quadrature point: one value of the network's parameter."""

    z: float
    conditional: Conditional
    dead: bool
    """Whether every output of the network is zero."""
    flat: bool
    """Whether all outputs are alike within each graph."""
    weights: Any = None
    """The `WeightPosterior` at this value, where edges have weights."""

    @property
    def log_evidence(self) -> float:
        """Log p(labels and weights | z)."""
        of_weights = 0.0 if self.weights is None else self.weights.log_evidence
        return self.conditional.log_evidence + of_weights

    @property
    def g(self) -> float:
        return self.log_evidence - self.z**2 / 2 - np.log(2 * np.pi) / 2


class Interpolant:
    """g and the conditional moments between points, and their integrals.

    Points are in the order of z; `marginal` is the prior of the network's parameter.
    """

    def __init__(self, points: Sequence[ThetaPoint], marginal: Marginal) -> None:
        self.points, self.marginal = tuple(points), marginal
        self.z = np.array([point.z for point in points])
        self._g = _bessel(self.z, np.array([point.g for point in points]))
        self._moments = _bessel(self.z, np.stack([p.conditional.moments for p in points]))
        # Midpoints of FINE equal parts of each interval.
        part = (np.arange(FINE) + 0.5) / FINE
        self.fine = (self.z[:-1, None] + np.diff(self.z)[:, None] * part).ravel()
        g = self.g(self.fine)
        self.g_max = g.max()
        self.mass = np.exp(g - self.g_max) * np.repeat(np.diff(self.z), FINE) / FINE

    def g(self, z: Float[np.ndarray, " z"]) -> Float[np.ndarray, " z"]:
        return self._g(z)

    @property
    def log_evidence(self) -> float:
        return float(self.g_max + np.log(self.mass.sum()))

    def integrands(self, z: Float[np.ndarray, " z"]) -> Float[np.ndarray, "z integrands"]:
        """Return theta, the others' means, theta^2, the others' second moments at each z."""
        theta = self.marginal.from_z(z)[:, None]
        means, squares = np.split(self._moments(z), 2, axis=1)
        return np.concatenate([theta, means, theta**2, squares], 1)

    @cached_property
    def mean_sd(self) -> MeanSd:
        """Mean and sd of each parameter, the network's first."""
        share = self.mass / self.mass.sum()
        mean, square = np.split(share @ self.integrands(self.fine), 2)
        return MeanSd(mean, np.sqrt(np.maximum(square - mean**2, 1e-300)))

    def shares(self) -> Float[np.ndarray, " intervals"]:
        """Return the share of the mass in each interval."""
        return self.mass.reshape(-1, FINE).sum(1) / self.mass.sum()

    def importance(self) -> Float[np.ndarray, " intervals"]:
        """Return the largest share that each interval has in the mass or in a moment."""
        mean = self.mean_sd.mean
        first, second = np.split(self.integrands(self.fine), 2, axis=1)
        spread = np.abs(second - 2 * mean * first + mean**2)
        parts = self.mass[:, None] * np.concatenate([np.ones((len(spread), 1)), spread], 1)
        parts = np.nan_to_num(parts.reshape(-1, FINE, parts.shape[1]).sum(1), posinf=1e300)
        return (parts / np.maximum(parts.sum(0), 1e-300)).max(1)

    def error_at(self, point: ThetaPoint) -> float:
        """Return how far a new point is from its interpolated value, relative to its interval.

        The largest of the errors of g and of the conditional means and second moments; these are
        relative to the posterior sd or to the spread that the interval itself contributes,
        whichever is larger (as in `importance`).
        """
        z = np.array([point.z])
        error = abs(point.g - float(self.g(z)[0]))
        if isinstance(point.conditional, Sketch):  # whose moments are not worth comparing
            return error
        centre, sd = (x[1:] for x in self.mean_sd)
        expected_mean, expected = _spread(self._moments(z)[0], centre)
        mean, spread = _spread(point.conditional.moments, centre)
        size = np.maximum(spread, sd**2)
        means = np.abs(mean - expected_mean) / np.sqrt(size)
        squares = np.abs(spread - expected) / size / 2
        return float(max(error, means.max(), squares.max()))

    def flatness(self) -> Flatness:
        """Return the shares of the posterior in which the network is dead, and constant."""
        weights = self.weights()
        dead = float(weights @ [point.dead for point in self.points])
        flat = float(weights @ [point.flat for point in self.points])
        return Flatness(dead, flat - dead)

    def weights(self) -> Float[np.ndarray, " points"]:
        """Return a weight for each point: a positive quadrature rule for smooth functions of theta.

        It is the integral of the point's cardinal cubic; if those are negative anywhere that
        matters, of its hat function.
        """
        share = self.mass / self.mass.sum()
        cubic = share @ _bessel(self.z, np.eye(len(self.z)))(self.fine)
        if -cubic[cubic < 0].sum() < 1e-3:
            cubic = np.maximum(cubic, 0)
            return cubic / cubic.sum()
        hats = np.stack([np.interp(self.fine, self.z, row) for row in np.eye(len(self.z))], 1)
        return share @ hats


@dataclass(frozen=True)
class ThetaPosterior:
    """The posterior along theta, as arrays: draws, quantiles, densities.

    Points and cells that no draw would ever hit are left out. (The `nodes` of its fields, which
    saved files have too, are the quadrature points.)
    """

    names: tuple[str, ...]
    """The network's parameter, then the readout's."""
    marginals: tuple[Marginal, ...]
    mean: Float[np.ndarray, " all_params"]
    sd: Float[np.ndarray, " all_params"]
    ends: Float[np.ndarray, " ends"]
    """Values of the network's coordinate z, in order."""
    cumulative: Float[np.ndarray, " ends"]
    """The distribution function of z at `ends`."""
    nodes: Float[np.ndarray, " points"]
    """The z of the quadrature points; they reach at least as far as `ends`."""
    means: Float[np.ndarray, "points params"]
    """The conditional means of the readout's coordinates z at each point."""
    factors: Float[np.ndarray, "points params params"]
    """The Cholesky factors of their conditional covariances."""
    cells: tuple[Cells, ...]
    """Their conditional posterior at each point, standardised by mean and factor."""

    n_uniforms: ClassVar[int] = 5

    @classmethod
    def of(
        cls, names: tuple[str, ...], marginals: tuple[Marginal, ...], interpolant: Interpolant
    ) -> ThetaPosterior:
        """Evaluate an interpolant, with draws from the conditional posteriors at its points."""
        mean, sd = interpolant.mean_sd
        z = interpolant.z
        ends = np.concatenate(
            [np.linspace(a, b, FINE, endpoint=False) for a, b in pairwise(z)] + [z[-1:]]
        )
        first, last = np.flatnonzero(interpolant.mass > 1e-14 * interpolant.mass.max())[[0, -1]]
        ends = ends[first : last + 2]
        cumulative = np.concatenate([[0], np.cumsum(interpolant.mass[first : last + 1])])
        low = max(np.searchsorted(z, ends[0], side="right") - 1, 0)
        high = min(np.searchsorted(z, ends[-1]), len(z) - 1)
        used = [point.conditional for point in interpolant.points[low : high + 1]]
        return cls(
            names=names,
            marginals=marginals,
            mean=mean,
            sd=sd,
            ends=ends,
            cumulative=cumulative / cumulative[-1],
            nodes=z[low : high + 1],
            means=np.stack([conditional.mean for conditional in used]),
            factors=np.stack([conditional.factor for conditional in used]),
            cells=tuple(_standardised(conditional) for conditional in used),
        )

    def draws(self, uniforms: Float[np.ndarray, "draws 5"]) -> dict[str, PerDraw]:
        """Map uniform points of the unit cube to parameters.

        theta is drawn by its inverse distribution function. One of the two points beside it is
        chosen with a probability by distance, and the readout's parameters are a standardised draw
        from the conditional posterior there, with the mean and covariance interpolated to theta.
        """
        z = self.quantile(uniforms[:, 0])
        left, fraction = self.bracket(z)
        chosen = left + (uniforms[:, 1] < fraction)
        y = np.empty((len(z), len(self.names) - 1))
        for k in np.unique(chosen):
            y[chosen == k] = self.cells[k].at(uniforms[chosen == k, 2:])
        others = _bessel(self.nodes, self.means)(z) + np.einsum("nij,nj->ni", self._factor(z), y)
        values = [self.marginals[0].from_z(z)]
        values += [m.from_z(others[:, k]) for k, m in enumerate(self.marginals[1:])]
        return dict(zip(self.names, values, strict=True))

    def quantile(self, uniform: PerDraw) -> PerDraw:
        """Return the network's coordinate z, by its inverse distribution function."""
        return np.interp(uniform, self.cumulative, self.ends)

    def bracket(self, z: PerDraw) -> tuple[Int[np.ndarray, " draws"], PerDraw]:
        """Find the point to the left of each z, and the fraction of the way to the next point."""
        left = np.clip(np.searchsorted(self.nodes, z, side="right") - 1, 0, len(self.nodes) - 2)
        return left, (z - self.nodes[left]) / (self.nodes[left + 1] - self.nodes[left])

    def _factor(self, z: PerDraw) -> Float[np.ndarray, "draws params params"]:
        """Interpolate the Cholesky factors."""
        factor = np.empty((len(z), *self.factors.shape[1:]))
        for i, j in np.ndindex(self.factors.shape[1:]):
            factor[:, i, j] = np.interp(z, self.nodes, self.factors[:, i, j])
        return factor

    @cached_property
    def _quasi(self) -> dict[str, PerDraw]:
        return self.draws(qmc.Sobol(self.n_uniforms, seed=0).random(QUASI))

    def summary(self) -> pd.DataFrame:
        """Return a row per parameter: mean, sd by quadrature; quantiles by quasi-random draws."""
        return summary_of(self.names, self.mean, self.sd, self._quasi)

    def density(self, name: str) -> Density:
        """Return points, and the marginal density of a parameter at them."""
        return density_of(self._quasi[name])


def summary_of(
    names: Sequence[str], mean: np.ndarray, sd: np.ndarray, draws: dict[str, PerDraw]
) -> pd.DataFrame:
    """Make a table of mean, sd and the quantiles of draws, a row per parameter."""
    quantiles = np.quantile([draws[name] for name in names], QUANTILES, axis=1)
    columns = ["mean", "sd", *(f"q{100 * q:.0f}" for q in QUANTILES)]
    return pd.DataFrame(np.column_stack([mean, sd, quantiles.T]), list(names), columns)


def density_of(values: PerDraw) -> Density:
    """Return points, and the density of draws at them: the slope of the distribution function.

    It is taken over 200 parts of the range that holds all but a few thousandths of the mass.
    """
    values = np.sort(values)
    low, high = np.quantile(values, [0.001, 0.999])
    ends = np.linspace(low, high, 201)
    share = np.searchsorted(values, ends) / len(values)
    middle, height = (ends[1:] + ends[:-1]) / 2, np.diff(share) / np.diff(ends)
    width = 9  # neighbours are averaged: a part holds some hundred draws
    kernel = np.hanning(2 * width + 1)[1:-1]
    total = np.convolve(np.ones_like(height), kernel, "same")
    return middle, np.convolve(height, kernel, "same") / total


def _standardised(conditional: Conditional) -> Cells:
    """Return the cells in coordinates with mean zero and the identity as covariance."""
    cells = conditional.cells()
    mass = np.diff(cells.cumulative, prepend=0.0)
    kept = mass > 1e-10
    cumulative = np.cumsum(mass[kept])
    inverse = np.linalg.inv(conditional.factor).T
    return Cells(
        (cells.centre[kept] - conditional.mean) @ inverse,
        cells.sides[kept] @ inverse,
        cumulative / cumulative[-1],
    )


def _spread(
    moments: Float[np.ndarray, " moments"], centre: Float[np.ndarray, " params"]
) -> tuple[Float[np.ndarray, " params"], Float[np.ndarray, " params"]]:
    """Return the first moments, and the second moments around `centre`."""
    mean, square = np.split(moments, 2)
    return mean, np.abs(square - 2 * centre * mean + centre**2)


def _bessel(
    z: Float[np.ndarray, " points"], y: Float[np.ndarray, "points ..."]
) -> CubicHermiteSpline:
    """Return a cubic through the points, with the slopes of the parabolas through each three.

    It is local, and exact for quadratics whatever the distances between points.
    """
    if len(z) == 2:
        slope = (y[1] - y[0]) / (z[1] - z[0])
        return CubicHermiteSpline(z, y, np.stack([slope, slope]))
    width = np.diff(z).reshape(-1, *[1] * (y.ndim - 1))
    secant = np.diff(y, axis=0) / width
    inner = (width[:-1] * secant[1:] + width[1:] * secant[:-1]) / (width[:-1] + width[1:])
    first, last = (2 * secant[end] - inner[end] for end in (slice(1), slice(-1, None)))
    return CubicHermiteSpline(z, y, np.concatenate([first, inner, last]))
