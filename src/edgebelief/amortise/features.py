"""An input of the network and what it made of it, as a row of numbers.

Three parts: summaries of the distances and of the signals (`data.summaries`), summaries of the
beliefs, and means and spreads of the network's states over the pairs along their principal
directions. None depends on the order of the nodes. What is known from the start, such as the
number of nodes, is apart (`facts`): it is no surprise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit, xlogy

from ..data.summaries import OF_DISTANCES, OF_SIGNALS, of_distances, of_signals

# How many principal directions of the states: they have nine tenths of the variance.
DIRECTIONS = 10
# What logarithms and quotients are kept away from zero by.
SMALL = 1e-3
# Probabilities closer to 0 or 1 are all alike.
SURE = 1e-6

OF_BELIEFS = {
    "believed density": "log odds of the mean probability",
    "certainty": "how much less uncertain pairs are than the density alone would leave them",
    "disagreement": "standard deviation of log odds over heads, mean over pairs, logarithm",
    "low log odds": "10 % quantile of the log odds",
    "middle log odds": "median of the log odds",
    "high log odds": "95 % quantile of the log odds",
    "spread of log odds": "standard deviation of the log odds over pairs",
    "believed degrees": "standard deviation of expected degrees over their mean",
    "believed triangles": "closed paths of two edges, over what the density makes, logarithm",
}
OF_STATES = {
    f"{what} {k + 1}": f"{what} of the network's states along direction {k + 1}"
    for what in ("mean", "spread")
    for k in range(DIRECTIONS)
}
FEATURES = OF_DISTANCES | OF_SIGNALS | OF_BELIEFS | OF_STATES
# Those that say something to people.
READABLE = len(OF_DISTANCES) + len(OF_SIGNALS) + len(OF_BELIEFS)
FROM_SIGNALS = slice(len(OF_DISTANCES), len(OF_DISTANCES) + len(OF_SIGNALS))

FACTS = ("log nodes", "log signals", "infinite", "unknown", "correlation", "given")


def facts(
    n_nodes: int, n_signals: float, is_correlation: bool, is_given: bool
) -> Float[np.ndarray, " facts"]:
    """Return what is known from the start.

    Examples
    --------
    >>> from edgebelief.amortise.features import facts
    >>> facts(20, 200, True, False).round(1)
    array([3. , 5.3, 0. , 0. , 1. , 0. ])
    """
    log_signals = float(np.log(max(n_signals, 1.0))) if np.isfinite(n_signals) else 0.0
    unknown, infinite = np.isnan(n_signals), np.isinf(n_signals)
    return np.array([np.log(n_nodes), log_signals, infinite, unknown, is_correlation, is_given])


def features(
    e: Float[np.ndarray, "nodes nodes"],
    signals: Float[np.ndarray, "signals nodes"] | None,
    logits: Float[np.ndarray, "edges heads"],
    states: Float[np.ndarray, "edges directions"],
) -> Float[np.ndarray, " features"]:
    """Compute the row of one input on at least three nodes, in the order of `FEATURES`.

    Parameters
    ----------
    e : array, shape (N, N)
        Squared distances, or 1 - |correlation|.
    signals : array, shape (P, N), optional
        Without them, their summaries are 0.
    logits : array, shape (edges, heads)
    states : array, shape (edges, DIRECTIONS)
        The network's embedding of each pair along the principal directions.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.features import DIRECTIONS, FEATURES, features
    >>> e = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    >>> row = features(e, None, np.zeros((3, 4)), np.zeros((3, DIRECTIONS)))
    >>> float(dict(zip(FEATURES, row))["certainty"])
    0.0
    """
    of_x = np.zeros(len(OF_SIGNALS))
    if signals is not None and min(signals.shape) >= 2:
        # Summaries have no unit; squares of very large or small numbers are not finite.
        size = np.nanmax(np.abs(signals), initial=0.0)
        of_x = _quietly(of_signals, signals / (size if size > 0 else 1.0))
    spread = np.log(states.std(0) + SMALL)
    of_e = _quietly(of_distances, e)
    return np.concatenate([of_e, of_x, _of_beliefs(logits), states.mean(0), spread])


def _quietly(summarise: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Summarise data whose values may be all but the same: moments are then not accurate."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return summarise(x)


def _of_beliefs(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(float)
    p, middle = expit(logits).mean(1), logits.mean(1)
    density = np.clip(p.mean(), SURE, 1 - SURE)
    n = round((1 + np.sqrt(1 + 8 * len(p))) / 2)
    graph = np.zeros((n, n))
    graph[np.triu_indices(n, 1)] = p
    graph = graph + graph.T
    degrees = graph.sum(0)
    paths = (degrees**2).sum() - (graph**2).sum()
    closed = ((graph @ graph) * graph).sum()
    return np.array(
        [
            logit(density),
            1 - _entropy(p).mean() / _entropy(density),
            np.log(logits.std(1).mean() + SMALL),
            *np.quantile(middle, [0.1, 0.5, 0.95]),
            middle.std(),
            degrees.std() / (degrees.mean() + SMALL),
            np.log((closed + SMALL) / (paths * density + SMALL)),
        ]
    )


def _entropy(p: np.ndarray) -> np.ndarray:
    return -xlogy(p, p) - xlogy(1 - p, 1 - p)
