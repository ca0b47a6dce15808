"""The posterior of the readout's parameters, given the network: the result of a rule."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .regression import LogisticPosterior, Mode


class MeanSd(NamedTuple):
    """The mean and the standard deviation of each parameter."""

    mean: Float[np.ndarray, " params"]
    sd: Float[np.ndarray, " params"]


class WeightedPoints(NamedTuple):
    """Points with weights that add up to one."""

    z: Float[np.ndarray, "points params"]
    weights: Float[np.ndarray, " points"]


class Cells(NamedTuple):
    """The posterior as small boxes of constant density, from which continuous draws are made."""

    centre: Float[np.ndarray, "cells params"]
    sides: Float[np.ndarray, "cells params params"]
    """The half-axes of each box, one per row."""
    cumulative: Float[np.ndarray, " cells"]
    """The cumulative probability of the boxes."""

    def at(self, uniforms: Float[np.ndarray, "draws 3"]) -> Float[np.ndarray, "draws params"]:
        """Map uniform numbers to draws: the first picks a box, the others a point inside it."""
        cell = np.searchsorted(self.cumulative, uniforms[:, 0], side="right")
        cell = np.minimum(cell, len(self.cumulative) - 1)
        inside = 2 * uniforms[:, 1 : 1 + self.centre.shape[1]] - 1
        return self.centre[cell] + np.einsum("ni,nij->nj", inside, self.sides[cell])


@dataclass(eq=False)
class Conditional(abc.ABC):
    """The posterior of the readout's parameters at one value of the network's parameter."""

    log_evidence: float
    """Log of the integral of likelihood times prior."""
    z: Float[np.ndarray, "points params"]
    """The quadrature points, in the coordinates where the prior is standard normal."""
    weights: Float[np.ndarray, " points"]
    """Their weights, which add up to one."""
    value: Float[np.ndarray, "points params"]
    """The parameters at `z`."""
    error: float
    """The larger of the error of `log_evidence` and those of mean and sd in units of the sd."""
    n_terms: int = field(default=0, kw_only=True)
    """What adaptive cells have cost: points times labels (a grid costs little)."""
    out_of_budget: bool = field(default=False, kw_only=True)
    """Whether cells ran out of their budget before their error was small enough."""

    @property
    def mode_z(self) -> Float[np.ndarray, " params"]:
        """The z of the mode, or of the quadrature point with the largest weight."""
        return self.z[np.argmax(self.weights)]

    @cached_property
    def moments(self) -> Float[np.ndarray, " moments"]:
        """E[beta] and then E[beta^2], in the parameters' own units."""
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

    @abc.abstractmethod
    def cells(self) -> Cells:
        """Return the posterior as small boxes, to draw from."""

    def weighted_points(self, most: int = 1024) -> WeightedPoints:
        """Return at most about `most` weighted points that stand for this posterior."""
        kept = self.weights > 1e-7 * self.weights.max()
        z, weights = self.z[kept], self.weights[kept]
        if len(z) > most:
            # Systematic resampling along a space-filling curve: neighbours stand for each other.
            order = np.argsort(_morton(z))
            cumulative = np.cumsum(weights[order])
            ticks = (np.arange(most) + 0.5) / most * cumulative[-1]
            z = z[order][np.searchsorted(cumulative, ticks)]
            weights = np.full(most, 1 / most)
        return WeightedPoints(z, weights / weights.sum())


class Sketch(Conditional):
    """Laplace's approximation, which is enough to find out where it is worth integrating.

    Its error is not known, and is counted as 1.
    """

    def __init__(self, posterior: LogisticPosterior, mode: Mode) -> None:
        n_params = mode.z.size
        if n_params > 4:  # a point on either side along each axis: mean and covariance are right
            y = np.sqrt(n_params) * np.concatenate([np.eye(n_params), -np.eye(n_params)])
            weights = np.full(len(y), 1 / len(y))
        else:  # Gauss-Hermite quadrature with three points in each dimension
            line, share = np.array([-1, 0, 1]) * np.sqrt(3), np.array([1, 4, 1]) / 6
            y = mesh(*[line] * n_params).reshape(-1, n_params)
            weights = mesh(*[share] * n_params).prod(-1).ravel()
        z = mode.z + y @ mode.factor.T
        super().__init__(mode.log_mass, z, weights, posterior.from_z(z), 1.0)
        self.mode = mode

    @property
    def mode_z(self) -> Float[np.ndarray, " params"]:
        return self.mode.z

    def cells(self) -> Cells:
        """Return the normal approximation as small boxes."""
        n_params, step = self.mode.z.size, 0.25
        line = np.arange(-20, 21) * step
        y = mesh(*[line] * n_params).reshape(-1, n_params)
        mass = np.exp(-(y**2).sum(1) / 2)
        factor = self.mode.factor
        sides = np.broadcast_to(step / 2 * factor.T, (len(y), n_params, n_params))
        return Cells(self.mode.z + y @ factor.T, sides, np.cumsum(mass) / mass.sum())


def mesh(*lines: Float[np.ndarray, " ..."]) -> Float[np.ndarray, "..."]:
    """Return the points of a tensor grid, an array of shape (length of each line, ..., lines)."""
    return np.stack(np.meshgrid(*lines, indexing="ij"), -1)


def _morton(z: Float[np.ndarray, "points params"]) -> Int[np.ndarray, " points"]:
    """Return each point's position on a space-filling curve: its coordinates' bits interleaved."""
    scaled = (z - z.min(0)) / np.maximum(np.ptp(z, axis=0), 1e-300)
    whole = (scaled * (2**16 - 1)).astype(np.int64)
    code = np.zeros(len(z), np.int64)
    for bit in range(16):
        for k in range(z.shape[1]):
            code |= ((whole[:, k] >> bit) & 1) << (bit * z.shape[1] + k)
    return code
