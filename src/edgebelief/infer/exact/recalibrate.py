"""A belief that is trusted as it is, but for a slope and a level that labels may correct.

With the log odds l of each pair from elsewhere (a network that was trained before, say),

    logit = s l + v,    s ~ normal(1, 0.05),    v ~ normal(0, 0.15)

Without labels this is the belief itself. The priors are narrow: one labelled graph must not make
worse what was right before, as with wider ones it did on simulated graphs. Other parts of a mixture
are for beliefs that are wrong. Two coefficients under narrow priors have a posterior that is nearly
normal; it is taken as normal.

As a part of an additive readout it is the line of one term, without the network: delta = 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from ...data.dataset import GraphDataset
from ...readouts.curves import Curve, Term
from ..model import EdgeModel
from ..priors import normal
from .regression import Labels, LogisticPosterior, Mode

SLOPE, LEVEL = normal(1.0, 0.05), normal(0.0, 0.15)


class Recalibration:
    """The log odds in one covariate of a data set, to be corrected by labels."""

    def __init__(
        self, term: Term, data: GraphDataset, counts: Float[np.ndarray, " graphs"]
    ) -> None:
        self._data, self._counts, self._term = data, counts, term
        curve = _curve_of(term)
        ends = curve.knots[0], curve.knots[-1]  # beyond which the term is flat
        self._log_odds = [np.clip(record.covariates[term.name], *ends) for record in data]

    def fit(self, known: Sequence[Bool[np.ndarray, " edges"]]) -> Mode:
        """Fit the labels of the pairs that are `known` in each graph."""
        each = zip(self._log_odds, self._data, known, self._counts, strict=True)
        rows = [Labels.of(_columns(x), r.a, k * count) for x, r, k, count in each]
        posterior = LogisticPosterior(Labels.join(rows), (SLOPE, LEVEL))
        return posterior.climb(np.zeros(2))

    def probabilities(
        self, fitted: Mode, rng: np.random.Generator, n_draws: int
    ) -> list[Float[np.ndarray, " edges"]]:
        """Return the mean probability of every pair of each graph."""
        beta = draws(fitted, rng, n_draws)
        return [expit(_columns(x) @ beta.T).mean(1) for x in self._log_odds]


def draws(fitted: Mode, rng: np.random.Generator, n: int) -> Float[np.ndarray, "draws 2"]:
    """Draw slopes and levels, in antithetic pairs, whose noise cancels."""
    half = rng.standard_normal((-(-n // 2), 2))
    z = fitted.z + np.concatenate([half, -half])[:n] @ fitted.factor.T
    return np.stack([SLOPE.from_z(z[:, 0]), LEVEL.from_z(z[:, 1])], 1)


def as_params(
    model: EdgeModel, term: Term, beta: Float[np.ndarray, "draws 2"], network_z: float
) -> dict[str, Float[np.ndarray, "draws ..."]]:
    """Return slopes and levels as parameters of an additive model whose only term is `term`."""
    curve, n = _curve_of(term), len(beta)
    slope, level = beta.T
    curves, sizes = np.zeros((n, model.sizes["curves"])), model.sizes
    # The line is (x - centre) / spread, times a factor of the readout.
    ones = np.ones(sizes["scales"]), np.ones(sizes["curves"])
    factor = model.readout.coefficients(*ones)[0]
    curves[:, 0] = slope * curve.spread / factor
    values = {
        "delta": np.zeros(n),
        "b": -(slope * curve.centre + level),
        "curves": curves,
        "scales": np.ones((n, sizes["scales"])),
    }
    for name in model.network.params_type._fields:
        values[name] = np.full(n, float(model.prior[name].from_z(network_z)))
    return values


def _columns(x: Float[np.ndarray, " edges"]) -> Float[np.ndarray, "edges 2"]:
    return np.stack([x, np.ones_like(x)], 1)


def _curve_of(term: Term) -> Curve:
    assert isinstance(term.curve, Curve)  # a covariate that is a number
    return term.curve
