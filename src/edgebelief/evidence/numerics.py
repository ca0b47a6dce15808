"""What several kinds of evidence need: scales, correlations with gaps, checks of settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ..errors import SettingError
from .base import OnPairs, Values

# Relative to the size of its terms, a variance below this is rounding.
ROUNDING = 1e-12


def check_positive(values: Sequence[float], what: str) -> None:
    """Refuse settings that are not a sequence of finite numbers above zero."""
    ok = np.ndim(values) == 1 and len(values) > 0
    if not ok or not all(np.isfinite(v) and v > 0 for v in values):
        raise SettingError(f"must be numbers above 0; got {values!r}.", argument=what)


def off_diagonal(matrix: OnPairs) -> Float[np.ndarray, " entries"]:
    """Return the values of the pairs, each once."""
    return matrix[np.triu_indices(len(matrix), k=1)]


def typical(e: OnPairs) -> float:
    """Return the median absolute distance; the mean where that is 0; 1 where all are."""
    size = np.abs(off_diagonal(e))
    return float(np.median(size) or size.mean() or 1.0)


def over_roots(matrix: OnPairs) -> OnPairs:
    """Return M_ij / sqrt(M_ii M_jj); 0 where a diagonal entry is 0."""
    root = np.sqrt(np.diagonal(matrix))
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return matrix * np.outer(inverse, inverse)


def correlation(x: Values) -> OnPairs:
    """Return correlations of columns, each over the rows that have both; 0 where undefined.

    Undefined is the correlation with a column that is constant over these rows.
    """
    there = ~np.isnan(x)
    means = np.where(there, x, 0.0).sum(0) / np.maximum(there.sum(0), 1)
    centred = np.where(there, x - means, 0.0)  # near zero mean: sums of products keep their digits
    m = there.astype(float)
    n = np.maximum(m.T @ m, 1.0)
    first, square = centred.T @ m, (centred**2).T @ m  # of i over the rows that i and j have
    cross = centred.T @ centred - first * first.T / n
    variance = square - first**2 / n
    flat = variance <= ROUNDING * n * (means**2)[:, None]
    variance = np.where(flat | (variance <= ROUNDING * square), 0.0, variance)
    scale = np.sqrt(variance) * np.sqrt(variance.T)
    result = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0)
    return np.clip((result + result.T) / 2, -1.0, 1.0)


def standardised(x: Values) -> Float[np.ndarray, "rows nodes"]:
    """Fill gaps by means; return columns with mean 0 and variance 1, constant ones as 0."""
    x = np.ascontiguousarray(x)  # one order of summation, so that permuted columns are the same
    there = ~np.isnan(x)
    means = np.where(there, x, 0.0).sum(0) / np.maximum(there.sum(0), 1)
    centred = np.where(there, x - means, 0.0)
    sd = np.sqrt((centred**2).mean(0))
    sd[sd <= np.sqrt(ROUNDING) * np.abs(means)] = 0.0
    return np.divide(centred, sd, out=np.zeros_like(centred), where=sd > 0)
