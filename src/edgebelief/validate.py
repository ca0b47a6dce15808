"""The door: what comes in is checked once, here, and every message says what to do about it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from math import isqrt
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from .edges import Complete, Support, pairs_of

# Of signals: squares of larger ones, added up, leave double precision.
LARGEST = 1e150


def as_floats(value: Any, what: str) -> np.ndarray:
    """`value` as a float64 array (a copy only if needed), or a `TypeError` that names `what`."""
    try:
        if value is None:
            raise TypeError("got None")
        if isinstance(value, np.ma.MaskedArray):
            value = np.ma.filled(value.astype(float), np.nan)  # masked: a gap, not a number
        array = np.asarray(value)
        if array.dtype == object:  # the mixed columns of a data frame
            if any(isinstance(entry, (str, bytes)) for entry in array.flat):
                raise TypeError("it holds text")
            from pandas import isna  # here, for the convex part does not need it otherwise

            array = np.where(isna(array), np.nan, array).astype(float)  # None and pandas.NA: gaps
    except (TypeError, ValueError, OverflowError) as error:
        why = str(error).rstrip(".")
        raise TypeError(f"{what} must be an array of numbers: {why}.") from None
    if array.dtype.kind not in "biufc":  # no durations either: their gaps would become numbers
        raise TypeError(f"{what} must be numbers; got dtype {array.dtype}.")
    if np.issubdtype(array.dtype, np.complexfloating):
        raise TypeError(f"{what} must be real; got complex numbers. Take their modulus?")
    if array.size == 0:
        raise ValueError(f"{what} is empty (shape {array.shape}).")
    with np.errstate(over="ignore"):  # beyond float64 is infinite, and refused as such
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
    check_support(support)
    if hasattr(e, "columns"):
        names, e = e.columns if names is None else names, same_nodes(e, "distances")
    array = as_floats(e, "distances")
    if array.ndim == 2:
        _check_square(array, "distances")
        support = Complete(len(array)) if support is None else support
    elif array.ndim != 1:
        raise ValueError(
            f"distances of one graph are a vector (n_edges,) or a matrix (N, N); got shape "
            f"{array.shape}. For several graphs, go through them one by one or use a GraphDataset."
        )
    support = complete_support(array.size) if support is None else support
    names = None if names is None else check_names(names, support.n_nodes)
    if array.ndim == 2:
        return check_symmetric(array, support, "distances", names), support
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
    any_diagonal: bool = False,
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
    rounding = _rounding_of(matrix) * np.abs(upper[np.isfinite(upper)]).max(initial=0.0)
    dust = 0.0 if any_diagonal else _check_diagonal(np.diagonal(matrix), rounding, what, names)
    unequal = (upper != lower) & ~(np.isnan(upper) & np.isnan(lower))
    gap = np.zeros_like(upper)  # not where both are the same infinity, which have no difference
    np.subtract(upper, lower, out=gap, where=unequal)
    gap = np.abs(gap)
    if not (gap <= rounding).all():
        k = int(np.argmax(np.where(np.isnan(gap), np.inf, gap)))
        i, j = _label(rows[k], names), _label(cols[k], names)
        remedy = "fill in both" if np.isnan(gap[k]) else "if direction means nothing, average them"
        raise ValueError(
            f"{what} is not symmetric: [{i}, {j}] is {upper[k]:g} but [{j}, {i}] is {lower[k]:g}; "
            f"{remedy}."
        )
    if gap.any() or dust:
        warnings.warn(
            f"{what} is asymmetric, or its diagonal is off zero, by rounding (at most "
            f"{max(gap.max(), dust):.1e}); the two halves were averaged and the diagonal ignored.",
            stacklevel=4,
        )
    return np.where(unequal, upper / 2 + lower / 2, upper)


def _check_diagonal(
    diagonal: np.ndarray, rounding: float, what: str, names: Sequence[Hashable] | None
) -> float:
    """The largest rounding on the diagonal; an error if something there is more than that."""
    off_zero = ~((diagonal == 0) | np.isneginf(diagonal))
    wrong = off_zero & ~(np.abs(diagonal) <= rounding)
    if wrong.any():
        i = int(np.argmax(wrong))
        remedy = (
            "must be 0 (or -inf, for log distances). If these are similarities, turn them into "
            "distances first (1 - |corr|, for instance)"
            if what == "distances"
            else "must be 0; remove the loops from nodes to themselves"
        )
        name = _label(i, names)
        raise ValueError(f"{what}[{name}, {name}] is {diagonal[i]:g}; the diagonal {remedy}.")
    return float(np.abs(diagonal[off_zero]).max(initial=0.0))


def same_nodes(frame: Any, what: str, names: Sequence[Hashable] | None = None) -> Any:
    """A square data frame with rows and columns in one order: `names`, or that of its columns."""
    columns = [str(name) for name in frame.columns]
    rows = [str(name) for name in frame.index]
    wanted = columns if names is None else [str(name) for name in names]
    unnamed = rows == [str(i) for i in range(len(rows))] and sorted(rows) != sorted(columns)
    if unnamed and len(rows) == len(columns):  # then they are in the columns' order
        rows = columns
    for found, side in ((columns, "columns"), (rows, "rows")):
        if sorted(found) != sorted(wanted):
            odd = sorted(set(found) ^ set(wanted))[:5]
            raise ValueError(
                f"the {side} of {what} are not the nodes expected: {odd or 'some repeat'}; rows "
                f"and columns must carry the same node names."
            )
    check_names(wanted, len(wanted))
    row_of = {name: i for i, name in enumerate(rows)}
    column_of = {name: i for i, name in enumerate(columns)}
    return frame.iloc[[row_of[name] for name in wanted], [column_of[name] for name in wanted]]


def check_support(support: Any) -> None:
    """None, or a `Support`."""
    if support is not None and not isinstance(support, Support):
        raise TypeError(
            f"support must be a Support, such as edges.Restricted.from_pairs(pairs); "
            f"got {type(support).__name__}."
        )


def check_number(value: Any, what: str) -> float:
    """One real number: not text, not a truth value, not several."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_) or np.ndim(value) != 0:
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{what} must be a number; got {value!r}.") from None


def check_theta(theta: Any) -> float:
    """A positive finite number."""
    value = check_number(theta, "theta")
    if not (np.isfinite(value) and value > 0):
        raise ValueError(
            f"theta must be positive and finite; got {value:g}. Larger theta means fewer edges; "
            f"theta_for(e, degree=...) finds one for a wanted number."
        )
    return value


def check_stopping(tol: Any, max_iter: Any) -> tuple[float, int]:
    """A tolerance >= 0 and a number of steps >= 0."""
    tol = check_number(tol, "tol")
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0; got {tol:g}.")
    steps = check_number(max_iter, "max_iter")
    if not (np.isfinite(steps) and steps >= 0 and steps == int(steps)):
        raise ValueError(f"max_iter must be a whole number, at least 0; got {max_iter}.")
    return tol, int(steps)


def check_labels(
    a: Any, support: Support, names: Sequence[Hashable] | None = None
) -> tuple[Float[np.ndarray, " edges"], Bool[np.ndarray, " edges"]]:
    """Edge labels 0 or 1 on `support`, and which are known: NaN means unknown.

    Returns the labels (0 where unknown) and the mask of the known ones.
    """
    array = _label_vector(a, support, names)
    known = ~np.isnan(array)
    odd = known & (array != 0) & (array != 1)
    if odd.any():
        k = int(np.argmax(odd))
        i, j = (_label(end[k], names) for end in support.endpoints)
        values = np.unique(array[known])
        hint = "threshold weights (weight > 0), or keep them (weighted=True)"
        hint = "map -1 to 0" if set(values) <= {-1.0, 1.0} else hint
        raise ValueError(
            f"labels must be 0 (no edge), 1 (edge) or NaN (unknown); [{i}, {j}] is {array[k]:g}. "
            f"Perhaps {hint}."
        )
    return np.where(known, array, 0.0), known


def check_edge_weights(
    a: Any, support: Support, names: Sequence[Hashable] | None = None
) -> Float[np.ndarray, " edges"]:
    """Weights on `support`: above 0 for an edge, 0 for no edge, NaN for unknown."""
    array = _label_vector(a, support, names).copy()
    odd = np.isinf(array) | (array < 0)
    if odd.any():
        k = int(np.argmax(odd))
        i, j = (_label(end[k], names) for end in support.endpoints)
        cure = "Take its size, or leave negative edges out (0)"
        cure = "Correct it, or say NaN" if np.isinf(array[k]) else cure
        raise ValueError(
            f"weights must be finite: above 0 (edge), 0 (no edge) or NaN (unknown); [{i}, {j}] is "
            f"{array[k]:g}. {cure}."
        )
    return array


def _label_vector(
    a: Any, support: Support, names: Sequence[Hashable] | None
) -> Float[np.ndarray, " edges"]:
    array = as_floats(a, "labels")
    if array.ndim == 2:
        return check_symmetric(array, support, "labels", names, allow_nan=True, any_diagonal=True)
    if array.shape != (support.n_edges,):
        raise ValueError(
            f"labels has shape {array.shape}; with these distances it must be "
            f"({support.n_edges},) or ({support.n_nodes}, {support.n_nodes})."
        )
    return array


def check_names(names: Any, n_nodes: int, what: str = "node names") -> tuple[str, ...]:
    """Node names: as many as nodes, none twice, as strings."""
    names = tuple(str(name) for name in names)
    if len(names) != n_nodes:
        raise ValueError(f"{what}: {len(names)} for {n_nodes} nodes.")
    if len(set(names)) < n_nodes:
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{what} must differ; {twice[:5]} appear more than once. Rename them.")
    return names


def check_signals(
    x: Any, names: Sequence[Hashable] | None = None, *, allow_nan: bool = False
) -> Float[np.ndarray, "signals nodes"]:
    """Signals as a float64 matrix: a row per observation, a column per node."""
    names = getattr(x, "columns", names) if names is None else names
    array = as_floats(x, "signals")
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"signals must be a matrix (n_signals, n_nodes) with at least two nodes (columns); "
            f"got shape {array.shape}."
        )
    bad = ~(np.abs(array) <= LARGEST)
    if allow_nan:
        bad &= ~np.isnan(array)
    if bad.any():
        p, i = np.argwhere(bad)[0]
        if np.isnan(array[p, i]):
            cure = (
                "fill the gaps, drop the row or the node, or use for each pair what there is "
                "(missing='pairwise')"
            )
        elif np.isinf(array[p, i]):
            cure = "correct it, or make it a gap (NaN)"
        else:
            cure = "its square has no number, use another unit"
        raise ValueError(f"signals[{p}, {_label(i, names)}] is {array[p, i]}; {cure}.")
    return array


def is_one_graph(e: Any) -> bool:
    """Whether `e`, meant to hold several graphs, is a vector, a data frame or a distance matrix."""
    if hasattr(e, "columns"):
        return True
    if not hasattr(e, "ndim") or e.ndim > 2:
        return False
    if e.ndim < 2:
        return True
    matrix = np.asarray(e)
    return (
        matrix.ndim == 2  # which sparse ones are not
        and matrix.shape[0] == matrix.shape[1]
        and not np.diagonal(matrix).any()
        and np.array_equal(matrix, matrix.T)
    )


def _rounding_of(matrix: np.ndarray) -> float:
    """What counts as rounding, relatively to the largest entry.

    Half the digits of float64; some ulps of float32 where all numbers fit it, as they do if they
    went through it; nothing where all are whole.
    """
    finite = matrix[np.isfinite(matrix)]
    if (finite == np.round(finite)).all():
        return 0.0
    with np.errstate(over="ignore"):
        was_float32 = (finite.astype(np.float32) == finite).all()
    return 16 * float(np.finfo(np.float32).eps) if was_float32 else np.sqrt(np.finfo(float).eps)


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
