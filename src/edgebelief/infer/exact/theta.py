"""A posterior as a one-parameter family: known at nodes, interpolated between them.

The network's parameter is looked at in the coordinate z in which its prior is standard normal. At
each node the other parameters have been integrated out (`Conditional`); between nodes

    g(z) = log p(labels | z) + log phi(z)

is a piecewise cubic. A Gaussian peak, and a plateau of the likelihood under the prior, are
quadratics in g and cost a few nodes each; kinks cost more, where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.interpolate import CubicHermiteSpline
from scipy.stats import qmc

from ..flatness import Flatness
from ..priors import Marginal
from .conditional import Cells, Conditional, Sketch

# Points per interval between nodes, at which the interpolant is added up.
FINE = 24
# Quasi-random draws behind the quantiles: their error is a few thousandths of an sd.
QUASI = 2**15
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class ThetaPoint:
    """One value of the network's parameter."""

    z: float
    conditional: Conditional
    dead: bool
    alike: bool
    weights: Any = None
    """What is independent of the labels at this value: a `WeightPosterior`, or None."""

    @property
    def log_evidence(self) -> float:
        """Of all that was observed."""
        of_weights = 0.0 if self.weights is None else self.weights.log_evidence
        return self.conditional.log_evidence + of_weights

    @property
    def g(self) -> float:
        return self.log_evidence - self.z**2 / 2 - np.log(2 * np.pi) / 2


class Interpolant:
    """g and the conditional moments between nodes, and what they add up to.

    Parameters
    ----------
    nodes : sequence of ThetaPoint
        In the order of z.
    marginal : Marginal
        The prior of the network's parameter.
    """

    def __init__(self, nodes: Sequence[ThetaPoint], marginal: Marginal):
        self.nodes, self.marginal = tuple(nodes), marginal
        self.z = np.array([node.z for node in nodes])
        self._g = _bessel(self.z, np.array([node.g for node in nodes]))
        self._moments = _bessel(self.z, np.stack([n.conditional.moments for n in nodes]))
        # Midpoints of FINE equal parts of each interval.
        part = (np.arange(FINE) + 0.5) / FINE
        self.fine = (self.z[:-1, None] + np.diff(self.z)[:, None] * part).ravel()
        g = self.g(self.fine)
        self.top = g.max()
        self.mass = np.exp(g - self.top) * np.repeat(np.diff(self.z), FINE) / FINE

    def g(self, z: np.ndarray) -> np.ndarray:
        return self._g(z)

    @property
    def log_evidence(self) -> float:
        return float(self.top + np.log(self.mass.sum()))

    def integrands(self, z: np.ndarray) -> np.ndarray:
        """theta, the others' means, theta^2, the others' second moments: (points, 2 * params)."""
        theta = self.marginal.from_z(z)[:, None]
        means, squares = np.split(self._moments(z), 2, axis=1)
        return np.concatenate([theta, means, theta**2, squares], 1)

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of each parameter, the network's first."""
        share = self.mass / self.mass.sum()
        mean, square = np.split(share @ self.integrands(self.fine), 2)
        return mean, np.sqrt(np.maximum(square - mean**2, 1e-300))

    def shares(self) -> Float[np.ndarray, " intervals"]:
        """Of the mass."""
        return self.mass.reshape(-1, FINE).sum(1) / self.mass.sum()

    def importance(self) -> Float[np.ndarray, " intervals"]:
        """The largest share that each interval has in the mass or in a moment."""
        mean, _ = self.moments
        values = self.integrands(self.fine)
        first, second = np.split(values, 2, axis=1)
        spread = np.abs(second - 2 * mean * first + mean**2)
        parts = self.mass[:, None] * np.concatenate([np.ones((len(spread), 1)), spread], 1)
        parts = np.nan_to_num(parts.reshape(-1, FINE, parts.shape[1]).sum(1), posinf=1e300)
        return (parts / np.maximum(parts.sum(0), 1e-300)).max(1)

    def surprise(self, node: ThetaPoint) -> float:
        """How far a new node is from what was expected there, as a share of its interval's part.

        Of g; and of the conditional means and second moments, relative to the posterior sd or to
        the spread that the interval itself contributes, whichever is larger (as in `importance`).
        """
        at = np.array([node.z])
        off = abs(node.g - float(self.g(at)[0]))
        if isinstance(node.conditional, Sketch):  # whose moments are not worth comparing
            return off
        centre, sd = (x[1:] for x in self.moments)
        expected_mean, expected = _spread(self._moments(at)[0], centre)
        mean, spread = _spread(node.conditional.moments, centre)
        size = np.maximum(spread, sd**2)
        means = np.abs(mean - expected_mean) / np.sqrt(size)
        squares = np.abs(spread - expected) / size / 2
        return float(max(off, means.max(), squares.max()))

    def flatness(self) -> Flatness:
        """The shares of the posterior in which the network is dead, and constant."""
        weights = self.weights()
        dead = float(weights @ [point.dead for point in self.nodes])
        alike = float(weights @ [point.alike for point in self.nodes])
        return Flatness(dead, alike - dead)

    def weights(self) -> Float[np.ndarray, " nodes"]:
        """A share for each node: a positive rule for smooth functions of theta.

        The integral of each node's cardinal cubic; if those are negative anywhere that matters,
        of its hat function.
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
    """The posterior between the nodes, as arrays: draws, quantiles, densities.

    Where it matters: nodes and cells that no draw would ever hit are left out.
    """

    names: tuple[str, ...]
    """The network's parameter, then the readout's."""
    marginals: tuple[Marginal, ...]
    mean: Float[np.ndarray, " all_params"]
    sd: Float[np.ndarray, " all_params"]
    ends: Float[np.ndarray, " parts+1"]
    """Values of the network's coordinate z, in order."""
    cumulative: Float[np.ndarray, " parts+1"]
    """Its distribution function there."""
    nodes: Float[np.ndarray, " nodes"]
    """The nodes' z; they reach as far as `ends`."""
    means: Float[np.ndarray, "nodes params"]
    """Of the readout's coordinates, at each node."""
    factors: Float[np.ndarray, "nodes params params"]
    """The Cholesky factors of their covariances."""
    cells: tuple[Cells, ...]
    """Their posterior at each node, standardised by mean and factor."""

    n_uniforms: ClassVar[int] = 5

    @classmethod
    def of(
        cls, names: tuple[str, ...], marginals: tuple[Marginal, ...], interpolant: Interpolant
    ) -> ThetaPosterior:
        """What an interpolant says."""
        mean, sd = interpolant.moments
        z = interpolant.z
        ends = np.concatenate(
            [np.linspace(a, b, FINE, endpoint=False) for a, b in pairwise(z)] + [z[-1:]]
        )
        first, last = np.flatnonzero(interpolant.mass > 1e-14 * interpolant.mass.max())[[0, -1]]
        ends = ends[first : last + 2]
        cumulative = np.concatenate([[0], np.cumsum(interpolant.mass[first : last + 1])])
        low = max(np.searchsorted(z, ends[0], side="right") - 1, 0)
        high = min(np.searchsorted(z, ends[-1]), len(z) - 1)
        used = [node.conditional for node in interpolant.nodes[low : high + 1]]
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

    def draws(self, uniforms: Float[np.ndarray, "draws 5"]) -> dict[str, np.ndarray]:
        """Uniform points of the unit cube to parameters.

        theta by its inverse distribution function; one of the two nodes beside it by distance; a
        standardised draw from that node's conditional posterior, given the mean and covariance
        interpolated to theta.
        """
        z = self.place(uniforms[:, 0])
        left, share = self.beside(z)
        chosen = left + (uniforms[:, 1] < share)
        y = np.empty((len(z), len(self.names) - 1))
        for k in np.unique(chosen):
            y[chosen == k] = self.cells[k].at(uniforms[chosen == k, 2:])
        others = _bessel(self.nodes, self.means)(z) + np.einsum("nij,nj->ni", self._factor(z), y)
        values = [self.marginals[0].from_z(z)]
        values += [m.from_z(others[:, k]) for k, m in enumerate(self.marginals[1:])]
        return dict(zip(self.names, values, strict=True))

    def place(self, uniform: Float[np.ndarray, " draws"]) -> Float[np.ndarray, " draws"]:
        """The network's coordinate z, by its inverse distribution function."""
        return np.interp(uniform, self.cumulative, self.ends)

    def beside(self, z: Float[np.ndarray, " draws"]) -> tuple[np.ndarray, np.ndarray]:
        """The place of the node to the left of each z, and how far it is on the way to the next."""
        left = np.clip(np.searchsorted(self.nodes, z, side="right") - 1, 0, len(self.nodes) - 2)
        return left, (z - self.nodes[left]) / (self.nodes[left + 1] - self.nodes[left])

    def _factor(self, z: np.ndarray) -> Float[np.ndarray, "draws params params"]:
        size = self.factors.shape[-1]
        factor = np.empty((len(z), size, size))
        for i in range(size):
            for j in range(size):
                factor[:, i, j] = np.interp(z, self.nodes, self.factors[:, i, j])
        return factor

    @cached_property
    def _quasi(self) -> dict[str, np.ndarray]:
        return self.draws(qmc.Sobol(self.n_uniforms, seed=0).random(QUASI))

    def summary(self) -> pd.DataFrame:
        """A row per parameter: mean and sd by the rule; quantiles by quasi-random draws."""
        rows = {
            name: [self.mean[k], self.sd[k], *np.quantile(self._quasi[name], QUANTILES)]
            for k, name in enumerate(self.names)
        }
        columns = ["mean", "sd", *(f"q{100 * q:.0f}" for q in QUANTILES)]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def density(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Points, and the marginal density there."""
        return density_of(self._quasi[name])


def density_of(values: Float[np.ndarray, " draws"]) -> tuple[np.ndarray, np.ndarray]:
    """Points, and the density of draws there: the slope of the distribution function.

    Taken over 200 parts of the range that holds all but a few thousandths of the mass.
    """
    values = np.sort(values)
    low, high = np.quantile(values, [0.001, 0.999])
    ends = np.linspace(low, high, 201)
    share = np.searchsorted(values, ends) / len(values)
    middle, height = (ends[1:] + ends[:-1]) / 2, np.diff(share) / np.diff(ends)
    width = 9  # neighbours are averaged: a part holds some hundred draws
    kernel = np.hanning(2 * width + 1)[1:-1]
    ones = np.convolve(np.ones_like(height), kernel, "same")
    return middle, np.convolve(height, kernel, "same") / ones


def _standardised(conditional: Conditional) -> Cells:
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


def _spread(moments: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From first and second moments to the first, and the second around `centre`."""
    mean, square = np.split(moments, 2)
    return mean, np.abs(square - 2 * centre * mean + centre**2)


def _bessel(z: np.ndarray, y: np.ndarray) -> CubicHermiteSpline:
    """A cubic through the nodes with the slope of the parabola through each three: local, and
    exact for quadratics however the nodes lie.
    """
    if len(z) == 2:
        slope = (y[1] - y[0]) / (z[1] - z[0])
        return CubicHermiteSpline(z, y, np.stack([slope, slope]))
    width = np.diff(z).reshape(-1, *[1] * (y.ndim - 1))
    secant = np.diff(y, axis=0) / width
    inner = (width[:-1] * secant[1:] + width[1:] * secant[:-1]) / (width[:-1] + width[1:])
    first = 2 * secant[:1] - inner[:1]
    last = 2 * secant[-1:] - inner[-1:]
    return CubicHermiteSpline(z, y, np.concatenate([first, inner, last]))
