"""Summaries of what is known of one graph: numbers without a unit, to compare graphs by.

They tell whether new inputs are like those that a model was fitted to, or a network trained on.
They do not depend on the order of the nodes, nor on the unit of distances or signals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import kurtosis, skew

OnPairs = Float[np.ndarray, "nodes nodes"]

# What logarithms and quotients are kept away from zero by.
SMALL = 1e-6
# The ridge of partial correlations, over the largest eigenvalue.
RIDGE = 1e-2

OF_DISTANCES = {
    "spread": "standard deviation of the distances over their mean",
    "skewness": "skewness of the distances",
    "small distances": "5 % quantile of the distances over their median, logarithm",
    "large distances": "95 % quantile of the distances over their median, logarithm",
    "nearest": "distance to the nearest node over the median distance, mean over nodes",
    "node effects": "share of the variance of distances that their nodes' means explain",
    "dimensions": "effective number of dimensions over the number of nodes",
    "first dimension": "share of the first dimension",
    "negative dimensions": "share of dimensions that no points in space could have",
    "last dimensions": "10 % quantile of the eigenvalues over their mean, logarithm",
    "partial correlations": "standard deviation of the partial correlations",
    "partial tails": "kurtosis of the partial correlations, compressed",
    "partial skewness": "skewness of the partial correlations",
    "transitivity": "correlation of affinity with affinity over two steps",
}
OF_SIGNALS = {
    "tails": "kurtosis of the values of a node, median over nodes, compressed",
    "asymmetry": "skewness of the values of a node, mean modulus over nodes",
    "memory": "correlation of a value with the one in the next row, mean over nodes",
    "signs": "mean correlation over mean |correlation|",
    "common factor": "share of the first eigenvalue of the correlations",
    "unequal scales": "spread of the logarithms of the nodes' standard deviations",
    "repeated values": "share of values that a node has more than once",
}


def of_distances(e: OnPairs) -> Float[np.ndarray, " summaries"]:
    """Summarise the distances of one graph on at least three nodes.

    Parameters
    ----------
    e : array, shape (N, N)

    Returns
    -------
    array
        In the order of `OF_DISTANCES`; finite.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data.summaries import OF_DISTANCES, of_distances
    >>> points = np.random.default_rng(0).normal(size=(10, 2))
    >>> e = ((points[:, None] - points) ** 2).sum(-1)
    >>> found = dict(zip(OF_DISTANCES, of_distances(e)))
    >>> bool(found["dimensions"] < 0.3), bool(found["negative dimensions"] < 1e-9)
    (True, True)
    >>> bool(np.allclose(of_distances(e), of_distances(1000 * e)))
    True
    """
    n = len(e)
    different = ~np.eye(n, dtype=bool)
    e = e / _positive(np.abs(e[different]).mean())
    e = np.where(different, (e + e.T) / 2, 0.0)
    pairs = e[np.triu_indices(n, 1)]
    low, middle, high = np.quantile(pairs, [0.05, 0.5, 0.95])
    means = e.sum(0) / (n - 1)
    residual = pairs - (means[:, None] + means)[np.triu_indices(n, 1)]
    nearest = np.where(different, e, np.inf).min(1) / _positive(middle)
    centred = e - e.mean(0)
    g = -0.5 * (centred - centred.mean(1, keepdims=True))
    eigenvalues, vectors = np.linalg.eigh(g)
    size = np.abs(eigenvalues)
    total, largest = _positive(size.sum()), _positive(size.max())
    # The constant vector is in the null space; its eigenvalue is no dimension.
    rest = np.sort(size)[1:]
    inverse = (vectors / (size + RIDGE * largest)) @ vectors.T
    own = np.sqrt(np.diagonal(inverse))
    partial = (-inverse / own[:, None] / own)[np.triu_indices(n, 1)]
    return _finite(
        [
            pairs.std(),
            _skewness(pairs),
            _log_ratio(low, middle),
            _log_ratio(high, middle),
            nearest.mean(),
            1 - residual.var() / _positive(pairs.var()),
            total**2 / _positive((size**2).sum()) / n,
            largest / total,
            size[eigenvalues < 0].sum() / total,
            _log_ratio(np.quantile(rest, 0.1), rest.mean()),
            partial.std(),
            _tails(partial),
            _skewness(partial),
            _transitivity(e, different),
        ]
    )


def of_signals(x: Float[np.ndarray, "signals nodes"]) -> Float[np.ndarray, " summaries"]:
    """Summarise the signals of one graph; gaps (NaN) count as the mean of their node.

    Parameters
    ----------
    x : array, shape (P, N)
        At least two signals on at least two nodes.

    Returns
    -------
    array
        In the order of `OF_SIGNALS`; finite.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data.summaries import OF_SIGNALS, of_signals
    >>> x = np.random.default_rng(0).normal(size=(500, 6))
    >>> found = dict(zip(OF_SIGNALS, of_signals(x)))
    >>> bool(abs(found["memory"]) < 0.1), bool(found["repeated values"] == 0)
    (True, True)
    """
    gaps = np.isnan(x)
    there = np.maximum((~gaps).sum(0), 1)
    mean = np.where(gaps, 0.0, x).sum(0) / there
    y = np.where(gaps, 0.0, x - mean)
    sd = np.sqrt((y**2).sum(0) / there)
    varies = sd > SMALL * _positive(np.median(sd))
    if varies.sum() < 2:
        return np.zeros(len(OF_SIGNALS))
    z = y[:, varies] / sd[varies]
    p, n = z.shape
    correlation = z.T @ z / p
    different = correlation[np.triu_indices(n, 1)]
    distinct = [len(np.unique(v[~hole])) for v, hole in zip(x.T, gaps.T, strict=True)]
    with np.errstate(all="ignore"):
        tails = np.median(kurtosis(z, axis=0))
        asymmetry = np.abs(skew(z, axis=0)).mean()
    return _finite(
        [
            np.arcsinh(tails),
            asymmetry,
            (z[1:] * z[:-1]).sum() / _positive((z**2).sum()),
            different.mean() / _positive(np.abs(different).mean()),
            np.linalg.eigvalsh(correlation)[-1] / n,
            np.log(sd[varies]).std(),
            1 - sum(distinct) / _positive(float(there.sum())),
        ]
    )


def _transitivity(e: OnPairs, different: np.ndarray) -> float:
    """Return the correlation of an affinity of two nodes with their affinities to third ones."""
    off = e[different]
    nearness = -(e - np.median(off)) / _positive(off.std())
    affinity = np.exp(np.minimum(nearness, 3.0)) * different
    root = np.sqrt(_positive(affinity.sum(0)))
    s = affinity / root[:, None] / root
    upper = np.triu_indices(len(e), 1)
    first, second = s[upper], (s @ s)[upper]
    spread = first.std() * second.std()
    return float(((first - first.mean()) * (second - second.mean())).mean() / _positive(spread))


def _log_ratio(a: float, b: float) -> float:
    return float(np.log(max(a, SMALL) / max(b, SMALL)))


def _skewness(x: np.ndarray) -> float:
    return float(np.arcsinh(skew(x))) if _varies(x) else 0.0


def _tails(x: np.ndarray) -> float:
    return float(np.arcsinh(kurtosis(x))) if _varies(x) else 0.0


def _varies(x: np.ndarray) -> bool:
    """Return whether numbers differ by more than rounding may do."""
    return bool(np.ptp(x) > SMALL * np.abs(x).max())


def _positive(x: np.ndarray | float) -> np.ndarray | float:
    return np.maximum(x, SMALL**2)


def _finite(numbers: list[Any]) -> Float[np.ndarray, " summaries"]:
    return np.nan_to_num(np.array(numbers, float), nan=0.0, posinf=10.0, neginf=-10.0)
