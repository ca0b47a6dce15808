"""What is known of pairs besides their distances.

The covariates of one graph come as one of

    a frame of pairs    columns source, target, and one per covariate; a row per pair
    a frame of nodes    its index names the nodes; numbers become "age gap", |x_i - x_j|, and
                        categories "same sector", whether both are of one
    a mapping           from names to symmetric matrices (N, N), or to vectors over the pairs

and become vectors over the pairs by name: of numbers, or of text for categories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..edges import Complete, Support
from ..errors import InputError, InputTypeError
from ..validate import as_floats, check_names, same_nodes

ENDS = ["source", "target"]
# Each is a curve with some ten coefficients, and a fit inverts matrices of all of them: beyond a
# few dozen it takes minutes, and no number of edges that people have tells them apart.
MAX_COVARIATES = 100


def pair_covariates(
    given: object, names: Sequence[str], support: Support | None = None
) -> dict[str, np.ndarray]:
    """Return the covariates of one graph as vectors over its pairs, by name.

    Parameters
    ----------
    given : DataFrame, mapping or None
        In one of the forms above. Every pair needs a value; gaps are refused.
    names : sequence of str
        The graph's nodes.
    support : Support, optional
        The candidate pairs; by default all.

    Examples
    --------
    >>> import pandas as pd
    >>> from edgebelief.data import pair_covariates
    >>> nodes = pd.DataFrame({"age": [30, 34, 50], "team": list("xyx")}, ["ada", "bob", "cy"])
    >>> covariates = pair_covariates(nodes, ["ada", "bob", "cy"])
    >>> covariates["age gap"], covariates["same team"]
    (array([ 4., 20., 16.]), array([0., 1., 0.]))
    """
    if given is None:
        return {}
    support = Complete(len(names)) if support is None else support
    if isinstance(given, pd.DataFrame | Mapping):
        width = len(given.keys()) - 2 * (set(ENDS) <= set(given.keys()))
        if width > MAX_COVARIATES:
            problem = f"are {width:,}; a fit takes at most {MAX_COVARIATES}"
            raise InputError(problem, argument="covariates", remedy="Choose those that may matter")
    if isinstance(given, pd.DataFrame):
        of_pairs = set(ENDS) <= {str(name) for name in given.columns}
        vectors = (_from_pairs if of_pairs else _from_nodes)(given, names, support)
    elif isinstance(given, Mapping):
        vectors = {
            str(name): _from_matrix(str(name), x, names, support) for name, x in given.items()
        }
    else:
        forms = "a data frame (a row per pair with source and target, or per node), or a mapping"
        problem = f"are {forms} from names to matrices; got {type(given).__name__}."
        raise InputTypeError(problem, argument="covariates")
    if not vectors:
        raise InputError("covariates: there are none in it.")
    for values in vectors.values():
        values.flags.writeable = False
    return vectors


def _from_pairs(
    frame: pd.DataFrame, names: Sequence[str], support: Support
) -> dict[str, np.ndarray]:
    check_names(frame.columns, frame.shape[1], "covariates: columns")
    place = {name: i for i, name in enumerate(names)}
    ends = [[place.get(str(name), -1) for name in frame[end]] for end in ENDS]
    low, high = np.sort(np.array(ends, int).reshape(2, -1), axis=0)
    if (low < 0).any():
        row = int(np.argmax(low < 0))
        pair = tuple(str(frame[end].iloc[row]) for end in ENDS)
        problem = f"the pair {pair} is not among the nodes, {list(names[:5])} ..."
        raise InputError(f"covariates: {problem}")
    if (low == high).any():
        row = int(np.argmax(low == high))
        raise InputError(f"covariates: {names[low[row]]!r} is paired with itself.")
    keys = low * len(names) + high
    order = np.argsort(keys, kind="stable")
    twice = np.diff(keys[order]) == 0
    if twice.any():
        i, j = divmod(int(keys[order][int(np.argmax(twice))]), len(names))
        raise InputError(f"covariates: the pair {names[i]!r}, {names[j]!r} has two rows.")
    rows, cols = (np.asarray(ends, np.int64) for ends in support.endpoints)
    wanted = rows * len(names) + cols
    place_of = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    chosen = order[place_of] if len(keys) else np.zeros(len(wanted), int)
    absent = keys[chosen] != wanted if len(keys) else np.ones(len(wanted), bool)
    if absent.any():
        k = int(np.argmax(absent))
        i, j, n_missing = int(rows[k]), int(cols[k]), int(absent.sum())
        problem = f"the pair {names[i]!r}, {names[j]!r} has no row; every pair needs a value"
        raise InputError(f"covariates: {problem} ({n_missing} have none).")
    where = frame[ENDS].astype(str).agg(", ".join, axis=1)
    return {
        str(name): _values(frame[name], str(name), where)[chosen]
        for name in frame.columns
        if str(name) not in ENDS
    }


def _from_nodes(
    frame: pd.DataFrame, names: Sequence[str], support: Support
) -> dict[str, np.ndarray]:
    check_names(frame.columns, frame.shape[1], "covariates: columns")
    index = list(check_names(frame.index, len(frame), "covariates: node names"))
    known = set(index)
    if missing := [name for name in names if name not in known]:
        raise InputError(
            f"covariates: no row for nodes {missing[:5]}; a frame without the columns source and "
            f"target has a row per node, named in its index. It has {index[:5]} ..."
        )
    frame = frame.set_axis(index).loc[list(names)]
    rows, cols = support.endpoints
    vectors = {}
    for name in frame.columns:
        x = _values(frame[name], str(name), pd.Series(names))
        if x.dtype.kind == "U":
            vectors[f"same {name}"] = (x[rows] == x[cols]).astype(float)
        else:
            vectors[f"{name} gap"] = np.abs(x[rows] - x[cols])
    return vectors


def _from_matrix(name: str, given: object, names: Sequence[str], support: Support) -> np.ndarray:
    if isinstance(given, pd.DataFrame):
        given = same_nodes(given, f"covariate {name!r}", names).to_numpy()
    array, n = np.asarray(given), len(names)
    rows, cols = support.endpoints
    if array.shape not in ((n, n), (rows.size,)):
        wanted = f"of {n} nodes it must be a matrix ({n}, {n}) or a vector of {rows.size} pairs"
        raise InputError(f"covariate {name!r} has shape {array.shape}; {wanted}.")
    pairs = pd.Series([f"{names[i]}, {names[j]}" for i, j in zip(rows, cols, strict=True)])
    if array.ndim == 1:
        return _values(pd.Series(array), name, pairs)
    both = array[rows, cols], array[cols, rows]
    upper, lower = (_values(pd.Series(x), name, pairs) for x in both)
    unequal = upper != lower
    if upper.dtype.kind != "U":
        unequal = np.abs(upper - lower) > 1e-8 * np.abs(upper).max(initial=0.0)
    if unequal.any():
        k = int(np.argmax(unequal))
        both_ways = f"of the pair {pairs[k]} it is {upper[k]} one way and {lower[k]} the other"
        raise InputError(f"covariate {name!r} is not symmetric: {both_ways}.")
    return upper


def _values(column: pd.Series, name: str, where: pd.Series) -> np.ndarray:
    """Return a column as numbers, or text for categories; refuse gaps."""
    if column.isna().any():
        at = where.iloc[int(np.argmax(column.isna()))]
        remedy = "fill the gap (a category of its own, say)"
        raise InputError(f"covariate {name!r} is missing for {at}", remedy=remedy)
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    if is_category or any(isinstance(cell, str) for cell in column):
        return np.array([str(cell) for cell in column])
    values = as_floats(column.to_numpy(), f"covariate {name!r}").copy()
    if not np.isfinite(values).all():
        at = where.iloc[int(np.argmax(~np.isfinite(values)))]
        raise InputError(f"covariate {name!r} is infinite for {at}.")
    return values
