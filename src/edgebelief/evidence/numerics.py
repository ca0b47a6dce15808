"""What several kinds of evidence need: scales, correlations with gaps, checks of settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from ..errors import SettingError
from .base import OnPairs, Values

# Relative to the size of its terms, a variance below this is rounding.
ROUNDING = 1e-12
# The numbers in a block of pairs of columns: 16 MB.
BLOCK = 2**21
# A diagonal entry of an inverse, relative to its largest possible value, is above this.
TINY = 1e-12


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


def at_pairs(
    x: Float[np.ndarray, "rows nodes"], rows: np.ndarray, cols: np.ndarray
) -> Float[np.ndarray, " pairs"]:
    """Return the inner products of some pairs of columns, a block of pairs at a time."""
    points = np.ascontiguousarray(x.T)
    result = np.empty(len(rows))
    step = max(BLOCK // max(x.shape[0], 1), 1)
    for first in range(0, len(rows), step):
        block = slice(first, first + step)
        result[block] = np.einsum("ep,ep->e", points[rows[block]], points[cols[block]])
    return result


def ridge_factor(x: Float[np.ndarray, "rows nodes"], c: float) -> Float[np.ndarray, "rows nodes"]:
    """Return Y with (X'X/P + c I)^-1 = (I - Y'Y)/c, for X with P rows.

    Woodbury's identity: Y = L^-1 X with LL' = P c I + XX'. It costs O(N P^2) where all of the
    inverse costs O(N^3).
    """
    gram = x @ x.T
    gram[np.diag_indices(len(gram))] += len(x) * c
    return solve_triangular(np.linalg.cholesky(gram), x, lower=True)


def partial_at(
    x: Float[np.ndarray, "rows nodes"],
    c: float,
    rows: np.ndarray,
    cols: np.ndarray,
    *,
    without_constant: bool = False,
) -> Float[np.ndarray, " pairs"]:
    """Return -K_ij / sqrt(K_ii K_jj) of some pairs, with K = (X'X/P + c I)^-1.

    Or K on the complement of the constant vector, where X is zero: (J - Y'Y)/c, J = I - 11'/N.
    """
    y = ridge_factor(x, c)
    constant = 1 / x.shape[1] if without_constant else 0.0
    diagonal = np.maximum(1 - constant - np.einsum("pn,pn->n", y, y), TINY)
    return (constant + at_pairs(y, rows, cols)) / np.sqrt(diagonal[rows] * diagonal[cols])


def with_few_rows(x: Float[np.ndarray, "rows nodes"]) -> Float[np.ndarray, "few nodes"]:
    """Return at most N rows with the same X'X/P."""
    n_rows, n_nodes = x.shape
    if n_rows <= n_nodes:
        return x
    return np.linalg.qr(x, mode="r") * np.sqrt(n_nodes / n_rows)
