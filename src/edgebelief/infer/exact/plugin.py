"""A normal approximation at one theta: the quick fit behind `Laplace` and the choice of readouts.

At the most plausible theta, under the paper's readout, the labels are one logistic regression. Its
scales, where some are learned, are at typical values (empirical Bayes), and its coefficients are
normal around their mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from ...data.dataset import GraphDataset
from ..model import EdgeModel
from .laplace import NetworkValues
from .regression import Labels, LogisticPosterior, Mode
from .scan import most_plausible_z
from .shrinkage import Shrinkage
from .slices import Slices, free_network_parameters
from .weights import WeightPosterior


class Approximation(NamedTuple):
    """A normal distribution of the coefficients."""

    shrinkage: Shrinkage
    """With typical scales."""
    mode: Mode

    def draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "draws coefficients"]:
        """Draw coefficients, in the coordinates z; in antithetic pairs, whose noise cancels."""
        half = rng.standard_normal((-(-n // 2), self.mode.z.size))
        return self.mode.z + np.concatenate([half, -half])[:n] @ self.mode.factor.T


class PlugIn:
    """The regression at the most plausible theta, for fits to any part of the labels."""

    def __init__(
        self,
        model: EdgeModel,
        data: GraphDataset,
        counts: Float[np.ndarray, " graphs"],
        z: float | None = None,
    ) -> None:
        """Compute the columns at `z`, the coordinate of theta; by default the most plausible."""
        self._data, self._counts, self._shrinkage = data, counts, Shrinkage.of(model)
        if not free_network_parameters(model):
            z = 0.0
        z = most_plausible_z(model, data, counts) if z is None else z
        sds = self._shrinkage.sds
        slices = Slices(model, data, counts, self._shrinkage.marginals, sds)
        self.network: NetworkValues = slices.network_at(z)
        self.weights: WeightPosterior | None = slices.slice_at(z).weights
        """The posterior of the parameters of edge weights, where edges have weights."""
        self.columns = slices.columns_at(z)
        """The design matrix of each graph, with a row for every pair."""

    def fit(self, known: Sequence[Bool[np.ndarray, " edges"]]) -> Approximation:
        """Fit the labels of the pairs that are `known` in each graph."""
        each = zip(self.columns, self._data, known, self._counts, strict=True)
        labels = Labels.join([Labels.of(x, r.a, k * count) for x, r, k, count in each])
        shrinkage = self._shrinkage
        posterior = LogisticPosterior(labels, shrinkage.marginals, shrinkage.sds)
        if shrinkage.n_scales:
            shrinkage = shrinkage.typical(posterior)
            posterior = posterior._replace(sds=shrinkage.sds)
        return Approximation(shrinkage, posterior.climb(posterior.starts()[0]))

    def probabilities(
        self, fitted: Approximation, rng: np.random.Generator, n_draws: int
    ) -> list[Float[np.ndarray, " edges"]]:
        """Return the mean probability of every pair of each graph."""
        beta = coefficients(fitted.shrinkage, fitted.draws(rng, n_draws)).T
        return [expit(columns @ beta).mean(1) for columns in self.columns]


def coefficients(
    shrinkage: Shrinkage, z: Float[np.ndarray, "draws coefficients"]
) -> Float[np.ndarray, "draws coefficients"]:
    """Map the coordinates z to the coefficients of the columns, at the scales of `shrinkage`."""
    nothing = Labels(np.zeros((0, 0)), np.zeros(0))
    return LogisticPosterior(nothing, shrinkage.marginals, shrinkage.sds).from_z(z)
