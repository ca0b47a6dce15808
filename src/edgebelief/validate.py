"""The door: what comes in is checked once, here, and every message says what to do about it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from math import isqrt
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from .edges import Complete, Support, pairs_of


def as_floats(value: Any, what: str) -> np.ndarray:
    """`value` as a float64 array (a copy only if needed), or a `TypeError` that names `what`."""
    try:
        if value is None:
            raise TypeError("got None")
        array = np.asarray(value)
        if array.dtype == object:  # the mixed columns of a data frame, None for a gap
            if any(isinstance(entry, (str, bytes)) for entry in array.flat):
                raise TypeError("it holds text")
            array = array.astype(float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be an array of numbers: {error}.") from None
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise TypeError(f"{what} must be numbers; got dtype {array.dtype}.")
    if np.issubdtype(array.dtype, np.complexfloating):
        raise TypeError(f"{what} must be real; got complex numbers. Take their modulus?")
    if array.size == 0:
        raise ValueError(f"{what} is empty (shape {array.shape}).")
    return array.astype(float, copy=False)


def complete_support(n_edges: int, what: str = "distances") -> Complete:
    """The complete support whose vectors have `n_edges` entries."""
    n_nodes = (1 + isqrt(1 + 8 * n_edges)) // 2
    if n_edges < 1 or pairs_of(n_nodes) != n_edges:
        raise ValueError(
            f"{what} has {n_edges} entries; a graph on N nodes has N(N-1)/2 (1, 3, 6, 10, ...). "
            f"Pass the upper triangle row by row, the symmetric matrix, or a support."
        )
    return Complete(n_nodes)


def check_distances(
    e: Any, support: Support | None = None, names: Sequence[Hashable] | None = None
) -> tuple[Float[np.ndarray, " edges"], Support]:
    """Distances as a float64 vector over their support.

    Parameters
    ----------
    e : array_like, shape (n_edges,) or (N, N)
        A vector over the candidate edges, or a symmetric matrix whose diagonal is 0 or -inf.
        Negative entries are fine (log distances); NaN and infinities are not.
    support : Support, optional
        The candidate edges; by default all pairs.
    names : sequence, optional
        Node names for the messages; a data frame brings its own.

    Returns
    -------
    e : ndarray, shape (n_edges,)
    support : Support
    """
    names = getattr(e, "columns", names) if names is None else names
    array = as_floats(e, "distances")
    if array.ndim == 2:
        if support is None:
            _check_square(array, "distances")
            support = Complete(len(array))
        return check_symmetric(array, support, "distances", names), support
    if array.ndim != 1:
        raise ValueError(
            f"distances of one graph are a vector (n_edges,) or a matrix (N, N); got shape "
            f"{array.shape}. For several graphs, go through them one by one or use a GraphDataset."
        )
    support = complete_support(array.size) if support is None else support
    if array.size != support.n_edges:
        raise ValueError(
            f"distances has {array.size} entries, but the support has {support.n_edges} candidate "
            f"edges; they must match one to one (or pass the full symmetric matrix)."
        )
    _check_finite(array, support, "distances", names)
    return array, support


def check_symmetric(
    matrix: Float[np.ndarray, "nodes nodes"],
    support: Support,
    what: str,
    names: Sequence[Hashable] | None = None,
    *,
    allow_nan: bool = False,
) -> Float[np.ndarray, " edges"]:
    """The entries of a symmetric matrix on `support`; asymmetry of rounding size is averaged."""
    _check_square(matrix, what)
    if len(matrix) != support.n_nodes:
        raise ValueError(f"{what} has {len(matrix)} nodes, but the support has {support.n_nodes}.")
    rows, cols = (np.asarray(end) for end in support.endpoints)
    upper, lower = matrix[rows, cols], matrix[cols, rows]
    if not allow_nan:
        _check_finite(upper, support, what, names)
        _check_finite(lower, support, what, names)
    scale = np.abs(upper[np.isfinite(upper)]).max(initial=0.0)
    # Half the digits of the type the numbers were computed in, which may have been float32.
    rounding = np.sqrt(np.finfo(np.float32 if _is_float32(matrix) else float).eps) * scale
    diagonal = np.diagonal(matrix)
    ignored = (diagonal == 0) | np.isneginf(diagonal) | (allow_nan & np.isnan(diagonal))
    if (~ignored & ~(np.abs(diagonal) <= rounding)).any():
        i = int(np.argmax(~ignored & ~(np.abs(diagonal) <= rounding)))
        raise ValueError(
            f"{what}[{_label(i, names)}, {_label(i, names)}] is {diagonal[i]:g}; the diagonal must "
            f"be 0 (or -inf, for log distances). If these are similarities, turn them into "
            f"distances first (1 - |corr|, for instance)."
        )
    unequal = (upper != lower) & ~(np.isnan(upper) & np.isnan(lower))
    gap = np.where(unequal, np.abs(upper - lower), 0.0)
    if not (gap <= rounding).all():
        k = int(np.nanargmax(np.where(np.isnan(gap), np.inf, gap)))
        from_, to = _label(rows[k], names), _label(cols[k], names)
        raise ValueError(
            f"{what} is not symmetric: [{from_}, {to}] is {upper[k]:g} but [{to}, {from_}] is "
            f"{lower[k]:g}. "
            f"If the direction means nothing, pass (M + M.T) / 2."
        )
    if gap.any() or (~ignored).any():
        warnings.warn(
            f"{what} is asymmetric, or its diagonal is off zero, by rounding "
            f"(at most {max(gap.max(), np.abs(diagonal[~ignored]).max(initial=0)):.1e}); "
            f"the two halves were averaged and the diagonal ignored.",
            stacklevel=3,
        )
    return np.where(unequal, (upper + lower) / 2, upper)


def check_theta(theta: Any, what: str = "theta") -> float:
    """A positive finite number."""
    try:
        value = float(theta)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number; got {type(theta).__name__}.") from None
    if not (np.isfinite(value) and value > 0):
        raise ValueError(
            f"{what} must be positive and finite; got {value:g}. Larger {what} means fewer edges; "
            f"theta_for(e, degree=...) finds one for a wanted number."
        )
    return value


def check_labels(
    a: Any, support: Support, names: Sequence[Hashable] | None = None
) -> tuple[Float[np.ndarray, " edges"], Bool[np.ndarray, " edges"]]:
    """Edge labels 0 or 1 on `support`, and which are known: NaN means unknown.

    Returns the labels (0 where unknown) and the mask of the known ones.
    """
    array = as_floats(a, "labels")
    if array.ndim == 2:
        array = check_symmetric(array, support, "labels", names, allow_nan=True)
    elif array.shape != (support.n_edges,):
        raise ValueError(
            f"labels has shape {array.shape}; with these distances it must be "
            f"({support.n_edges},) or ({support.n_nodes}, {support.n_nodes})."
        )
    known = ~np.isnan(array)
    odd = known & (array != 0) & (array != 1)
    if odd.any():
        k = int(np.argmax(odd))
        i, j = (_label(end[k], names) for end in support.endpoints)
        values = np.unique(array[known])
        hint = "map -1 to 0" if set(values) <= {-1.0, 1.0} else "threshold weights (weight > 0)"
        raise ValueError(
            f"labels must be 0 (no edge), 1 (edge) or NaN (unknown); [{i}, {j}] is {array[k]:g}. "
            f"Perhaps {hint}."
        )
    return np.where(known, array, 0.0), known


def check_names(names: Any, n_nodes: int) -> tuple[str, ...]:
    """Node names: as many as nodes, none twice, as strings."""
    names = tuple(str(name) for name in names)
    if len(names) != n_nodes:
        raise ValueError(f"{len(names)} names for {n_nodes} nodes.")
    if len(set(names)) < n_nodes:
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"node names must differ; {twice[:5]} appear more than once.")
    return names


def check_signals(x: Any, names: Sequence[Hashable] | None = None) -> Float[np.ndarray, "p nodes"]:
    """Signals as a float64 matrix: a row per observation, a column per node."""
    names = getattr(x, "columns", names) if names is None else names
    array = as_floats(x, "signals")
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"signals must be a matrix (n_signals, n_nodes) with at least two nodes (columns); "
            f"got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        p, i = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"signals[{p}, {_label(i, names)}] is {array[p, i]}; fill or drop the gaps first."
        )
    return array


def _is_float32(matrix: np.ndarray) -> bool:
    """Whether every entry is a float32 number, as in data that went through float32 files."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(matrix.astype(np.float32), matrix, equal_nan=True))


def _label(i: Any, names: Sequence[Hashable] | None) -> str:
    return str(int(i)) if names is None else f"{names[int(i)]!r}"


def _check_square(matrix: np.ndarray, what: str) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(
            f"{what} must be a square matrix of at least 2 nodes; got shape {matrix.shape}."
            + (" For signals, use edgebelief.data.distances first." if matrix.ndim == 2 else "")
        )


def _check_finite(
    e: np.ndarray, support: Support, what: str, names: Sequence[Hashable] | None
) -> None:
    bad = ~np.isfinite(e)
    if bad.any():
        k = int(np.argmax(bad))
        i, j = (_label(end[k], names) for end in support.endpoints)
        more = f" ({bad.sum()} such pairs in all)" if bad.sum() > 1 else ""
        why = (
            "two nodes with identical signals have log distance -inf; merge them or add noise"
            if np.isneginf(e[k])
            else "fill the gap, leave the node out, or leave the pair out through a support"
        )
        raise ValueError(f"{what}[{i}, {j}] is {e[k]}{more}: {why}.")
