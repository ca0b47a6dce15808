"""Does the predictive sd tell where the errors are, and how much of that needs a posterior?

The sd of an edge is sqrt(p (1 - p)): a function of its probability, for belief and for a point
estimate alike. If p is calibrated, |p - a| has the mean 2 p (1 - p) and the mean square p (1 - p),
so that the correlation of the two follows from the probabilities alone: `if_calibrated`. A forecast
that is nearly certain of more pairs has another correlation, and need not be worse.
"""

from __future__ import annotations

import numpy as np

from edgebelief import metrics
from edgebelief.belief import Predictions
from edgebelief.data import GraphDataset
from edgebelief.infer import MAP, EdgeModel, Posterior
from edgebelief.networks import DPG

from .averages import column, deviation
from .item import Answer
from .models import fitted, labels_and_means, log_score, quietly

# The two that are compared: averaged over the posterior, and at its maximum.
BELIEF, POINT = "belief (DPG)", "point estimate (DPG)"
# Correlations are over these, in this order.
OVER = ("all pairs", "edges", "non-edges")


def fit_contestant(
    name: str, train: GraphDataset, depth: int, seed: int = 0, n_draws: int = 1000
) -> Posterior:
    """Fit `BELIEF`, `POINT` (DPG at the maximum of its posterior) or a model of `models.fitted`."""
    if name == POINT:
        with quietly():
            return MAP(starts=2).run(seed, EdgeModel(DPG(depth)), train)
    return fitted("DPG" if name == BELIEF else name, train, depth, seed, n_draws)


def measured(predictions: Predictions) -> Answer:
    """Return scores, and the correlation of error and predictive sd.

    Returns
    -------
    dict
        Correlations over all pairs, edges and non-edges, each with its standard error over graphs
        (leaving out one at a time; null for one graph) and with the value that it has if these
        probabilities are calibrated; the correlation within each graph; the share of the variance
        that is epistemic, and the correlation of error with the epistemic sd.
    """
    a, mean = labels_and_means(predictions)
    epistemic, total = (
        np.concatenate([getattr(belief, name) for belief in predictions])
        for name in ("epistemic_sd", "total_sd")
    )
    error = np.abs(mean - a)
    return {
        "NLL": float(metrics.nll(predictions)),
        "NLL of each graph": metrics.nll(predictions).per_graph,
        "NLL, pairs apart": -log_score(a, mean) / len(predictions),
        "error %": 100 * float(metrics.error(predictions)),
        "ECE": float(metrics.ece(predictions)),
        "correlation": list(metrics.uncertainty_error_correlation(predictions)),
        "standard error": _standard_errors(predictions),
        "if calibrated": if_calibrated(mean),
        "of each graph": [within_graph(predictions, t) for t in range(len(predictions))],
        "epistemic share": float(np.sum(epistemic**2) / np.sum(total**2)),
        "epistemic correlation": _correlation(error, epistemic) if np.ptp(epistemic) else None,
    }


def within_graph(predictions: Predictions, t: int) -> float:
    """Return the correlation over the pairs of one graph."""
    return metrics.uncertainty_error_correlation(_part(predictions, np.array([t]))).all


def _part(predictions: Predictions, kept: np.ndarray) -> Predictions:
    """Return the predictions of some of the graphs."""
    beliefs = [predictions[t] for t in kept]
    return Predictions(predictions.data[kept], beliefs, predictions.log_scores[kept])


def if_calibrated(p: np.ndarray) -> list[float]:
    """Return the correlation of |p - a| with sqrt(p (1 - p)) for labels drawn with probability p.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.correlation import if_calibrated
    >>> p = np.random.default_rng(0).beta(0.3, 0.7, 100_000)
    >>> a = np.random.default_rng(1).random(p.size) < p
    >>> measured = np.corrcoef(np.abs(p - a), np.sqrt(p * (1 - p)))[0, 1]
    >>> bool(abs(if_calibrated(p)[0] - measured) < 0.01)
    True
    """
    p = np.clip(p, 1e-12, 1 - 1e-12)
    # Each pair twice: as an edge, with weight p, and as none, with weight 1 - p.
    error, weights = np.concatenate([1 - p, p]), np.concatenate([p, 1 - p])
    sd = np.tile(np.sqrt(p * (1 - p)), 2)
    edges = np.arange(2 * p.size) < p.size
    kinds = (np.ones_like(error), edges, ~edges)
    return [_correlation(error, sd, weights * kind) for kind in kinds]


def _correlation(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> float:
    covariance = np.cov(x, y, aweights=weights)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def _standard_errors(predictions: Predictions) -> list[float | None]:
    """Return jackknife standard errors: one graph is left out at a time."""
    n = len(predictions)
    if n < 2:
        return [None] * len(OVER)
    without = [
        metrics.uncertainty_error_correlation(_part(predictions, np.delete(np.arange(n), t)))
        for t in range(n)
    ]
    return list(np.sqrt((n - 1) * np.var(np.array(without), axis=0)))


def correlations(answers: list[Answer]) -> np.ndarray:
    """Return the correlations of several answers of `measured`, one row for each."""
    return column(answers, "correlation")


def averaged(answers: list[Answer], keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the correlations and of further entries."""
    numbers = np.array([[*x["correlation"], *(x[key] for key in keys)] for x in answers], float)
    return numbers.mean(0), deviation(numbers)
