"""Whether doubt tells where the errors are, and how much of that takes a posterior.

The sd of an edge is sqrt(p (1 - p)): a function of its probability, for belief and for a point
estimate alike. If p means what it says, |p - a| has the mean 2 p (1 - p) and the mean square
p (1 - p), so that the correlation of the two is known from the probabilities alone:
`if_calibrated`. A forecast that is sure of more pairs has another one, and need not be worse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgebelief import metrics
from edgebelief.belief.predict import Predictions, predict
from edgebelief.data.dataset import GraphDataset
from edgebelief.infer import MAP, EdgeModel, Posterior
from edgebelief.networks import DPG

from .models import quietly

# The two that are compared: averaged over the posterior, and at its maximum.
BELIEF, POINT = "belief (DPG)", "point estimate (DPG)"
# Correlations are over these, in this order.
OVER = ("all pairs", "edges", "non-edges")


def plug_in(train: GraphDataset, depth: int, seed: int = 0) -> Posterior:
    """DPG at the maximum of its posterior: the point estimate."""
    with quietly():
        return MAP(starts=2).run(seed, EdgeModel(DPG(depth)), train)


def measured(found: Predictions) -> dict[str, Any]:
    """Scores, and how error and doubt go together.

    Returns
    -------
    dict
        Correlations over all pairs, edges and non-edges, each with its standard error over graphs
        (leaving out one at a time; null for one graph) and with the one that these probabilities
        have if they are calibrated; that of each graph; the share of the variance that is
        epistemic, and the correlation of error with that part.
    """
    parts = [(record.a, belief) for record, belief in zip(found.data, found, strict=True)]
    a, mean, epistemic, total = (
        np.concatenate(column)
        for column in zip(*((a, b.mean, b.epistemic_sd, b.total_sd) for a, b in parts), strict=True)
    )
    off = np.abs(mean - a)
    return {
        "NLL": float(metrics.nll(found)),
        "NLL of each graph": metrics.nll(found).per_graph,
        "NLL, pairs apart": _apart(a, mean) / len(found),
        "error %": 100 * float(metrics.error(found)),
        "ECE": float(metrics.ece(found)),
        "correlation": list(metrics.uncertainty_error_correlation(found)),
        "standard error": _errors(found),
        "if calibrated": if_calibrated(mean),
        "of each graph": [metrics.uncertainty_error_correlation(one).all for one in each(found)],
        "epistemic share": float(np.sum(epistemic**2) / np.sum(total**2)),
        "epistemic correlation": _correlation(off, epistemic) if np.ptp(epistemic) else None,
    }


def predicted(posterior: Posterior, data: GraphDataset) -> dict[str, Any]:
    """`measured`, of predictions made for it."""
    return measured(predict(posterior, data))


def each(found: Predictions) -> list[Predictions]:
    """Graph by graph."""
    return [
        Predictions(found.data[t : t + 1], [found[t]], found.log_scores[t : t + 1])
        for t in range(len(found))
    ]


def if_calibrated(p: np.ndarray) -> list[float]:
    """The correlation of |p - a| with sqrt(p (1 - p)), for labels that p is the probability of.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.doubt import if_calibrated
    >>> p = np.random.default_rng(0).beta(0.3, 0.7, 100_000)
    >>> a = np.random.default_rng(1).random(p.size) < p
    >>> measured = np.corrcoef(np.abs(p - a), np.sqrt(p * (1 - p)))[0, 1]
    >>> bool(abs(if_calibrated(p)[0] - measured) < 0.01)
    True
    """
    p = np.clip(p, 1e-12, 1 - 1e-12)
    off, weights = np.concatenate([1 - p, p]), np.concatenate([p, 1 - p])
    sd = np.tile(np.sqrt(p * (1 - p)), 2)
    edges = np.arange(2 * p.size) < p.size
    return [_correlation(off, sd, weights * kind) for kind in (np.ones_like(off), edges, ~edges)]


def _correlation(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> float:
    covariance = np.cov(x, y, aweights=weights)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def _errors(found: Predictions) -> list[float | None]:
    """Standard errors by leaving out one graph at a time."""
    n = len(found)
    if n < 2:
        return [None] * len(OVER)
    without = np.array(
        [
            metrics.uncertainty_error_correlation(
                Predictions(found.data[kept], [found[t] for t in kept], found.log_scores[kept])
            )
            for kept in (np.delete(np.arange(n), t) for t in range(n))
        ]
    )
    return list(np.sqrt((n - 1) * np.var(without, axis=0)))


def _apart(a: np.ndarray, mean: np.ndarray) -> float:
    """As if the pairs of a graph were independent: that of the mean probabilities."""
    p = np.clip(mean, 1e-12, 1 - 1e-12)
    return float(-np.log(np.where(a > 0, p, 1 - p)).sum())
