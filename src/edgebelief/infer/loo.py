"""Leave-one-graph-out scores of a posterior, without fitting again.

Importance weights turn draws given all graphs into draws given all but one (Pareto-smoothed
importance sampling; Vehtari, Gelman and Gabry 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from ..data.dataset import GraphDataset
from .batch import log_likelihoods
from .model import EdgeModel

# Pareto's k is fitted to a tail of at least five draws, which fewer draws than this do not have.
ENOUGH = 25
# Most rounds of the EM iteration for stacking weights; a few hundred are usual.
ROUNDS = 10_000


class LeaveOneOut(NamedTuple):
    """Scores of graphs as if each had been left out."""

    scores: Float[np.ndarray, " graphs"]
    """Log probability of the graph's known labels."""
    pareto_k: Float[np.ndarray, " graphs"]
    """Pareto's k of the importance weights; above 0.7 the score is unreliable."""


def psis_loo(
    model: EdgeModel,
    draws: Mapping[str, Float[np.ndarray, "draws ..."]],
    data: GraphDataset,
    counts: Float[np.ndarray, " graphs"],
) -> LeaveOneOut:
    """Score each graph that counts as if it had been left out of the fit.

    `draws` are equally weighted draws of the posterior given all graphs. `counts` says how often
    each graph counted in the fit; 0 for graphs to skip.
    """
    fits = log_likelihoods(model.forward, draws, data)
    scores, k = np.zeros(len(data)), np.zeros(len(data))
    for t in np.flatnonzero(counts):
        scores[t], k[t] = _left_out(fits[:, t], counts[t])
    if len(np.unique(fits, axis=0)) < ENOUGH:
        k[counts > 0] = np.inf
    return LeaveOneOut(scores, k)


def _left_out(fits: Float[np.ndarray, " draws"], count: float) -> tuple[float, float]:
    """Return the log score of a graph that counted `count` times, as if left out; and Pareto's k.

    Draws with the same log-likelihood, such as copies of one draw, count as one value with a
    multiplicity: the tail of importance ratios is fitted to distinct values.
    """
    from arviz_stats.base import array_stats  # slow to import

    values, times = np.unique(fits, return_counts=True)
    minus_log = count * values - np.log(times)
    if len(values) >= ENOUGH:
        log_weights, k = array_stats.psislw(minus_log)
    else:
        log_weights, k = -minus_log, 0.0 if len(values) == 1 else np.inf
    return float(logsumexp(log_weights + values) - logsumexp(log_weights)), float(k)


def stacking_weights(
    scores: Float[np.ndarray, "models graphs"], counts: Float[np.ndarray, " graphs"]
) -> Float[np.ndarray, " models"]:
    """Compute the weights with which a mixture of models predicts left-out graphs, or pairs, best.

    Maximises the sum over graphs of log sum_k w_k exp(scores_kt), by the EM iteration of mixture
    weights: concave, and every round gains. (Stacking: Yao, Vehtari, Simpson and Gelman 2018.)

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.infer.loo import stacking_weights
    >>> scores = np.array([[-1.0, -9.0, -1.0], [-9.0, -1.0, -9.0]])
    >>> stacking_weights(scores, np.ones(3)).round(2)  # each graph by the model that knows it
    array([0.67, 0.33])
    """
    used = counts > 0
    share = np.full(len(scores), 1 / len(scores))
    likelihood = np.exp(scores[:, used] - scores[:, used].max(0))
    weights = counts[used] / counts[used].sum()
    for _ in range(ROUNDS):
        new = share * (likelihood @ (weights / (share @ likelihood)))
        moved, share = np.abs(new - share).max(), new
        if moved < 1e-7:
            break
    return share
