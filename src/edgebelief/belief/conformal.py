"""Conformal p-values: how unusual new rows are among reference rows, and all of them together."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2

Rows = Float[np.ndarray, "rows statistics"]

# The weight of independence in the correlations of the statistics. With 0.01 distances of 100
# signals are noticed more often, with 0.1 graphs of another radius, if few were fitted.
SHRINKAGE = 0.02
# Differences below a thousandth do not matter: no statistic has a smaller standard deviation.
LEAST_SD = 1e-3


def p_values(reference: Rows, new: Rows, size: Float[np.ndarray, " all"]) -> np.ndarray:
    """Compute a p-value for each new row, by leaving out each reference row in turn.

    Let s(x; R) be the squared Mahalanobis distance of x from the rows R, after a regression of each
    statistic on the size::

        p(x) = (1 + #{i: s(x; R without i) <= s(r_i; R without i)}) / (n + 1).

    If x and the n rows of R are exchangeable, p is uniform on 1/(n + 1), ..., 1, but for the
    difference between leaving out one row and two (the jackknife+ of Barber, Candes, Ramdas and
    Tibshirani 2021, who prove a factor of two, and see none).

    Parameters
    ----------
    reference : array, shape (n, statistics)
    new : array, shape (m, statistics)
    size : array, shape (n + m,)
        What statistics may depend on linearly, of all rows; a constant changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.conformal import p_values
    >>> rows = np.random.default_rng(0).normal(size=(20, 3))
    >>> new = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
    >>> p_values(rows[:19], new, np.zeros(21)).tolist()
    [1.0, 0.05]
    """
    n, n_columns = reference.shape
    rows = np.concatenate([reference, new])
    beside = np.stack([np.ones(len(rows)), size - size[:n].mean()], axis=1)
    if np.ptp(size[:n]) == 0:
        beside = beside[:, :1]
    at_least = np.zeros(len(new))
    for i in range(n):
        kept = np.delete(np.arange(n), i)
        slopes = np.linalg.lstsq(beside[kept], rows[kept], rcond=None)[0]
        residual = rows - beside @ slopes
        z = residual / np.sqrt((residual[kept] ** 2).mean(0) + LEAST_SD**2)
        correlation = z[kept].T @ z[kept] / len(kept)
        shrunk = (1 - SHRINKAGE) * correlation + SHRINKAGE * np.eye(n_columns)
        distance = (z * np.linalg.solve(shrunk, z.T).T).sum(1)
        at_least += distance[n:] <= distance[i]
    return (1 + at_least) / (n + 1)


def together(p: Float[np.ndarray, " new"], n: int) -> float:
    """Combine conformal p-values that share n reference rows into one.

    Fisher's -2 sum log p, whose variance is larger by the factor 1 + m/n for m p-values because
    they share the reference (Bates, Candes, Lei, Romano and Sesia 2023, eq. 8)::

        s = sqrt(1 + m/n);   p = P(chi2(2m) > (-2 sum log p + 2m (s - 1)) / s).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.conformal import together
    >>> together(np.array([0.3]), 20)
    0.3
    >>> together(np.full(10, 0.05), 19) < 0.001 < 0.2 < together(np.full(10, 0.4), 19)
    True
    """
    m = len(p)
    if m == 1:
        return float(p[0])
    s = np.sqrt(1 + m / n)
    return float(chi2.sf((-2 * np.log(p).sum() + 2 * m * (s - 1)) / s, 2 * m))
