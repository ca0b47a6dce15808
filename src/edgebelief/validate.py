"""Checks of what users pass: arrays, labels, names, numbers. Errors say what to do about it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from .edges import Complete, Support, pairs_of
from .errors import (
    InputError,
    InputTypeError,
    InputWarning,
    Remedy,
    Setting,
    SettingError,
    SettingTypeError,
)

# Of signals: squares of larger ones, added up, leave double precision.
LARGEST = 1e150
# Of weights, in their unit. Their logarithms get a normal prior with sd 10, which reaches there;
# over wider ranges the mean of a lognormal, its median times exp(sd^2/2), overflows.
LIGHTEST, HEAVIEST = 1e-15, 1e15
# In Python a node is left out by hand; a shell has an option for it.
LEAVE_NODE_OUT = Remedy("leave the node out", Setting("nodes", python=""))


def as_floats(value: object, what: str) -> np.ndarray:
    """Return `value` as a float64 array (a copy only if needed); errors call it `what`."""
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
        raise InputTypeError(f"must be an array of numbers: {why}.", argument=what) from None
    if array.dtype.kind not in "biufc":  # no durations either: their gaps would become numbers
        raise InputTypeError(f"must be numbers; got dtype {array.dtype}.", argument=what)
    if array.dtype.kind == "c":
        raise InputTypeError("must be real; got complex numbers. Take the modulus?", argument=what)
    if array.size == 0:
        raise InputError(f"is empty (shape {array.shape}).", argument=what)
    with np.errstate(over="ignore"):  # beyond float64 is infinite, and refused as such
        return array.astype(float, copy=False)


def complete_support(n_edges: int, what: str = "distances") -> Complete:
    """Return the complete support whose vectors have `n_edges` entries."""
    n_nodes = (1 + isqrt(1 + 8 * n_edges)) // 2
    if n_edges < 1 or pairs_of(n_nodes) != n_edges:
        problem = f"has {n_edges} entries; a graph on N nodes has N(N-1)/2 (1, 3, 6, 10, ...)"
        remedy = "Pass the upper triangle row by row, the symmetric matrix, or a support"
        raise InputError(problem, argument=what, remedy=remedy)
    return Complete(n_nodes)


def check_distances(
    e: object, support: Support | None = None, names: Sequence[Hashable] | None = None
) -> tuple[Float[np.ndarray, " edges"], Support]:
    """Return distances as a float64 vector over their support, by default all pairs.

    `e` is such a vector, or a symmetric matrix whose diagonal is 0 or -inf. Negative entries are
    fine (log distances); NaN and infinities are not. `names` are for the messages.
    """
    check_support(support)
    if hasattr(e, "columns"):
        names = e.columns if names is None else names
        e = same_nodes(e, "distances")
    array = as_floats(e, "distances")
    if array.ndim == 2:
        _check_square(array, "distances")
        support = Complete(len(array)) if support is None else support
    elif array.ndim != 1:
        problem = f"of one graph are a vector or a matrix (N, N); got shape {array.shape}"
        remedy = "For several graphs, go through them one by one or use a GraphDataset"
        raise InputError(problem, argument="distances", remedy=remedy)
    support = complete_support(array.size) if support is None else support
    names = None if names is None else check_names(names, support.n_nodes)
    if array.ndim == 2:
        return check_symmetric(array, support, "distances", names), support
    if array.size != support.n_edges:
        problem = f"has {array.size} entries, but the support has {support.n_edges} pairs."
        raise InputError(problem, argument="distances")
    _check_finite(array, support, "distances", names)
    return array, support


def check_symmetric(
    matrix: Float[np.ndarray, "rows columns"],
    support: Support,
    what: str,
    names: Sequence[Hashable] | None = None,
    *,
    allow_nan: bool = False,
    any_diagonal: bool = False,
) -> Float[np.ndarray, " edges"]:
    """Return the entries of a symmetric matrix on `support`, averaging asymmetry by rounding."""
    _check_square(matrix, what)
    if len(matrix) != support.n_nodes:
        problem = f"has {len(matrix)} nodes, but the support has {support.n_nodes}."
        raise InputError(problem, argument=what)
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
        i, j = where = _pair(k, support, names)
        remedy = "fill in both" if np.isnan(gap[k]) else "if direction means nothing, average them"
        other = f"[{j!r}, {i!r}] is {lower[k]:g}"
        problem = f"is {upper[k]:g} but {other}: the matrix is not symmetric"
        raise InputError(problem, argument=what, where=where, remedy=remedy)
    if gap.any() or dust:
        problem = (
            f"is asymmetric, or its diagonal is off zero, by rounding (at most "
            f"{max(gap.max(), dust):.1e}); the two halves were averaged, the diagonal ignored."
        )
        warnings.warn(InputWarning(problem, argument=what), stacklevel=4)
    return np.where(unequal, upper / 2 + lower / 2, upper)


def _check_diagonal(
    diagonal: np.ndarray, rounding: float, what: str, names: Sequence[Hashable] | None
) -> float:
    """Return the largest rounding on the diagonal; refuse what is more than rounding."""
    off_zero = ~((diagonal == 0) | np.isneginf(diagonal))
    wrong = off_zero & ~(np.abs(diagonal) <= rounding)
    if wrong.any():
        i = int(np.argmax(wrong))
        problem = f"is {diagonal[i]:g}; the diagonal must be 0"
        remedy = "remove the loops from nodes to themselves"
        if what == "distances":
            problem += " (or -inf, for log distances)"
            remedy = "If these are similarities, turn them into distances first (1 - |corr|, say)"
        pair = (node_name(i, names),) * 2
        raise InputError(problem, argument=what, where=pair, remedy=remedy)
    return float(np.abs(diagonal[off_zero]).max(initial=0.0))


def same_nodes(frame: Any, what: str, names: Sequence[Hashable] | None = None) -> Any:
    """Return a square data frame with rows and columns in one order: `names`, or its columns'."""
    columns = [str(name) for name in frame.columns]
    rows = [str(name) for name in frame.index]
    wanted = columns if names is None else [str(name) for name in names]
    unnamed = rows == [str(i) for i in range(len(rows))] and sorted(rows) != sorted(columns)
    if unnamed and len(rows) == len(columns):  # then they are in the columns' order
        rows = columns
    for present, side in ((columns, "columns"), (rows, "rows")):
        if sorted(present) != sorted(wanted):
            odd = sorted(set(present) ^ set(wanted))[:5]
            reason = f"{odd or 'some repeat'}; rows and columns must carry the same node names"
            raise InputError(f"the {side} of {what} are not the nodes expected: {reason}.")
    check_names(wanted, len(wanted))
    row_of = {name: i for i, name in enumerate(rows)}
    column_of = {name: i for i, name in enumerate(columns)}
    return frame.iloc[[row_of[name] for name in wanted], [column_of[name] for name in wanted]]


def check_support(support: object) -> None:
    """Refuse what is neither None nor a `Support`."""
    if support is not None and not isinstance(support, Support):
        kind = type(support).__name__
        problem = f"must be a Support, such as edges.Restricted.from_pairs(pairs); got {kind}."
        raise InputTypeError(problem, argument="support")


def check_number(value: Any, what: str) -> float:
    """Return a setting that is one real number: not text, not a truth value, not several."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_) or np.ndim(value) != 0:
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise SettingTypeError(f"must be a number; got {value!r}.", argument=what) from None


def check_whole(value: object, what: str, least: int, most: float = np.inf) -> int:
    """Return a setting that is a whole number, at least `least` and at most `most`."""
    number = check_number(value, what)
    if not (number.is_integer() and least <= number <= most):
        bounds = f"at least {least}" + (f" and at most {most:,}" if most < np.inf else "")
        problem = f"must be a whole number, {bounds}; got {value!r}."
        raise SettingError(problem, argument=what)
    return int(number)


def check_least(settings: object, **least: int) -> None:
    """Refuse settings that are not whole numbers, or are below the least allowed."""
    for name, number in least.items():
        check_whole(getattr(settings, name), name, number)


def check_choice(value: object, what: str, values: Sequence[object], otherwise: str = "") -> None:
    """Refuse a setting that is none of the `values`; `otherwise` says what else it may be."""
    if not ((value is None or isinstance(value, str)) and value in values):
        problem = f"must be one of {values}{otherwise}; got {value!r}."
        raise SettingError(problem, argument=what)


def check_theta(theta: object) -> float:
    """Return theta, a positive finite number."""
    value = check_number(theta, "theta")
    if not (np.isfinite(value) and value > 0):
        problem = f"must be positive and finite; got {value:g}. Larger theta means fewer edges"
        finds = Setting("degree", python="theta_for(e, degree=...)")
        remedy = Remedy("{} finds one for a wanted number", finds)
        raise SettingError(problem, argument="theta", remedy=remedy)
    return value


def check_stopping(tol: object, max_iter: object) -> tuple[float, int]:
    """Return a tolerance >= 0 and a number of steps >= 0."""
    tolerance = check_number(tol, "tol")
    if not tolerance >= 0:
        raise SettingError(f"must be at least 0; got {tolerance:g}.", argument="tol")
    return tolerance, check_whole(max_iter, "max_iter", 0)


def check_labels(
    a: object, support: Support, names: Sequence[Hashable] | None = None
) -> tuple[Float[np.ndarray, " edges"], Bool[np.ndarray, " edges"]]:
    """Return edge labels 0 or 1 on `support` (0 where unknown), and which are known, not NaN."""
    array = _label_vector(a, support, names)
    known = ~np.isnan(array)
    odd = known & (array != 0) & (array != 1)
    if odd.any():
        k = int(np.argmax(odd))
        keep = Remedy("keep them", Setting("weighted", True))
        remedy: list[str | Remedy] = ["Perhaps threshold weights (weight > 0)", keep]
        if set(np.unique(array[known])) <= {-1.0, 1.0}:
            remedy = ["Perhaps map -1 to 0"]
        problem = f"is {array[k]:g}; labels must be 0 (no edge), 1 (edge) or NaN (unknown)"
        where = _pair(k, support, names)
        raise InputError(problem, argument="labels", where=where, remedy=remedy)
    return np.where(known, array, 0.0), known


def check_edge_weights(
    a: object, support: Support, names: Sequence[Hashable] | None = None
) -> Float[np.ndarray, " edges"]:
    """Return weights on `support`: above 0 for an edge, 0 for no edge, NaN for unknown.

    Above 0 means from 1e-15 to 1e15: what is less is rounding of zero, or in an odd unit.
    """
    array = _label_vector(a, support, names).copy()
    odd = np.isinf(array) | (array < 0)
    if odd.any():
        k = int(np.argmax(odd))
        remedy = ["Take its size", "leave negative edges out (0)"]
        remedy = ["Correct it", "say NaN"] if np.isinf(array[k]) else remedy
        problem = f"is {array[k]:g}; weights must be above 0 (edge), 0 (no edge) or NaN (unknown)"
        where = _pair(k, support, names)
        raise InputError(problem, argument="labels", where=where, remedy=remedy)
    extreme = (array > HEAVIEST) | ((array > 0) & (array < LIGHTEST))
    if extreme.any():
        k = int(np.argmax(extreme))
        problem = f"is {array[k]:g}; weights must be from {LIGHTEST:g} to {HEAVIEST:g}, or 0"
        remedy = [f"State them in another unit (their median is {np.median(array[array > 0]):.2g})"]
        if array[k] < LIGHTEST:
            remedy += ["say 0 where they are rounding errors"]
        where = _pair(k, support, names)
        raise InputError(problem, argument="labels", where=where, remedy=remedy)
    return array


def _label_vector(
    a: object, support: Support, names: Sequence[Hashable] | None
) -> Float[np.ndarray, " edges"]:
    array = as_floats(a, "labels")
    if array.ndim == 2:
        return check_symmetric(array, support, "labels", names, allow_nan=True, any_diagonal=True)
    if array.shape != (support.n_edges,):
        shapes = f"({support.n_edges},) or ({support.n_nodes}, {support.n_nodes})"
        problem = f"has shape {array.shape}; with these distances it must be {shapes}."
        raise InputError(problem, argument="labels")
    return array


def check_names(
    names: Iterable[object], n_nodes: int, what: str = "node names", where: str | Path | None = None
) -> tuple[str, ...]:
    """Return node names as strings: as many as nodes, none twice."""
    texts = tuple(str(name) for name in names)
    if len(texts) != n_nodes:
        raise InputError(f"{what}: {len(texts)} for {n_nodes} nodes.", where=where)
    if len(set(texts)) < n_nodes:
        twice = sorted(name for name, times in Counter(texts).items() if times > 1)
        problem = f"{what} must differ; {twice[:5]} appear more than once"
        raise InputError(problem, where=where, remedy="Rename them")
    return texts


def check_signals(
    x: object, names: Sequence[Hashable] | None = None, *, allow_nan: bool = False
) -> Float[np.ndarray, "signals nodes"]:
    """Return signals as a float64 matrix: a row per observation, a column per node."""
    names = getattr(x, "columns", names) if names is None else names
    array = as_floats(x, "signals")
    if array.ndim != 2 or array.shape[1] < 2:
        problem = f"must be a matrix (n_signals, at least two nodes); got shape {array.shape}."
        raise InputError(problem, argument="signals")
    bad = ~(np.abs(array) <= LARGEST)
    if allow_nan:
        bad &= ~np.isnan(array)
    if bad.any():
        p, i = np.argwhere(bad)[0]
        remedy: list[str | Remedy] = ["its square has no number, use another unit"]
        if np.isnan(array[p, i]):
            pairwise = Remedy("use for each pair what there is", Setting("missing", "pairwise"))
            remedy = ["fill the gaps", "drop the row or the node", pairwise]
        elif np.isinf(array[p, i]):
            remedy = ["correct it", "make it a gap (NaN)"]
        where = int(p), node_name(i, names)
        raise InputError(f"is {array[p, i]}", argument="signals", where=where, remedy=remedy)
    return array


def is_one_graph(e: object) -> bool:
    """Whether `e`, meant to hold several graphs, is a vector, a data frame or a distance matrix."""
    if hasattr(e, "columns") or getattr(e, "ndim", 3) < 2:
        return True
    if not hasattr(e, "ndim") or e.ndim > 2:
        return False
    matrix = np.asarray(e)
    return (
        matrix.ndim == 2  # which sparse ones are not
        and matrix.shape[0] == matrix.shape[1]
        and not np.diagonal(matrix).any()
        and np.array_equal(matrix, matrix.T)
    )


def _rounding_of(matrix: np.ndarray) -> float:
    """Return the difference that counts as rounding, relatively to the largest entry.

    Half the digits of float64; some ulps of float32 where all numbers fit it, as they do if they
    went through it; nothing where all are whole.
    """
    finite = matrix[np.isfinite(matrix)]
    if (finite == np.round(finite)).all():
        return 0.0
    with np.errstate(over="ignore"):
        was_float32 = (finite.astype(np.float32) == finite).all()
    return 16 * float(np.finfo(np.float32).eps) if was_float32 else np.sqrt(np.finfo(float).eps)


def node_name(i: int | np.integer, names: Sequence[Hashable] | None) -> Hashable:
    """Return what messages call a node: its name, or its number."""
    return int(i) if names is None else names[int(i)]


def _pair(k: int, support: Support, names: Sequence[Hashable] | None) -> tuple[Hashable, ...]:
    return tuple(node_name(end[k], names) for end in support.endpoints)


def _check_square(matrix: np.ndarray, what: str) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        signals = "For signals, use edgebelief.data.distances first"
        problem = f"must be a square matrix of at least 2 nodes; got shape {matrix.shape}."
        raise InputError(problem, argument=what, remedy=signals if matrix.ndim == 2 else ())


def _check_finite(
    e: np.ndarray, support: Support, what: str, names: Sequence[Hashable] | None
) -> None:
    bad = ~np.isfinite(e)
    if bad.any():
        k = int(np.argmax(bad))
        count = f" ({bad.sum()} such pairs in all)" if bad.sum() > 1 else ""
        problem = f"is {e[k]}{count}"
        leave_pair_out = Remedy("leave the pair out through a {}", Setting("", python="support"))
        remedy: list[str | Remedy] = ["fill the gap", LEAVE_NODE_OUT, leave_pair_out]
        if np.isneginf(e[k]):
            problem += ": two nodes with identical signals have log distance -inf"
            remedy = ["merge them", "add noise"]
        raise InputError(problem, argument=what, where=_pair(k, support, names), remedy=remedy)
