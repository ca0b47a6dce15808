"""Graphs in files: signals, matrices and edge lists, as CSV, Parquet or npz.

*Signals* have a row per observation and a column per node, named in the header. A *matrix* file has
a row and a column per node, named in the header and the first column. An *edge list* has a row per
pair and the columns source, target and one of numbers. An npz file holds a whole `GraphDataset`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from ..atomic import replacing
from ..bounds import check_bytes, check_cells
from ..edges import Complete, Restricted
from ..errors import InputError, Remedy, Setting, SettingError
from ..validate import as_floats, check_names, check_symmetric, complete_support, same_nodes
from .dataset import GraphDataset, Outside
from .npz import Described, open_npz
from .tables import any_number, is_number, numbers_of, read_table, write_table

# Of a data set; each graph is some kilobytes of Python objects, and checked in a millisecond.
MAX_GRAPHS = 2**15


def read_signals(path: str | Path, *, transpose: bool = False) -> pd.DataFrame:
    r"""Read signals: a row per observation, a column per node, names in the header.

    A first column that holds no numbers (dates, say), or whose header is empty, names the rows and
    is left out. A header of numbers other than 0, 1, 2, ... or 1, 2, 3, ... is a row like the
    others, and nodes are then called 0, 1, ...

    Parameters
    ----------
    path : path
        CSV or Parquet.
    transpose : bool
        For files with a row per node instead, named in the first column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.data import read_signals
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "signals.csv")
    ...     _ = path.write_text("day;ada;bob\nMon;0,5;1\nTue;;2\n")
    ...     read_signals(path)
         ada  bob
    Mon  0.5  1.0
    Tue  NaN  2.0
    """
    table = read_table(path)
    body, rows = table, [str(i) for i in range(len(table))]
    names = [str(name) for name in table.columns]
    counts = [[str(i + first) for i in range(len(names))] for first in (0, 1)]
    if table.shape[1] > 1 and (names[0] == "" or not any_number(table.iloc[:, 0])):
        rows, names = [str(cell) for cell in table.iloc[:, 0]], names[1:]
        body = table.iloc[:, 1:]
    elif all(is_number(name) for name in names) and names not in counts:
        body = _with_first_row(table, names)
        names, rows = [str(i) for i in range(len(names))], [str(i) for i in range(len(body))]
    body.attrs = table.attrs
    nodes = rows if transpose else names
    check_names(nodes, len(nodes), "node names", path)
    values = numbers_of(body.set_axis(names, axis=1), path)
    signals = pd.DataFrame(values, index=rows, columns=names)
    return signals.T if transpose else signals


def _with_first_row(table: pd.DataFrame, row: list[Any]) -> pd.DataFrame:
    """Return the cells of a table below one more row, which was taken for its header."""
    cells = np.vstack([np.array([row], object), table.to_numpy(object)])
    return pd.DataFrame(cells, dtype=object)


def read_matrix(path: str | Path) -> pd.DataFrame:
    r"""Read a square matrix with node names: distances, an adjacency, probabilities.

    Parameters
    ----------
    path : path
        CSV or Parquet, names in the header and the first column; or a CSV of numbers alone, whose
        nodes are then called 0, 1, ...

    Returns
    -------
    DataFrame
        Node names on both sides. `solve`, `GraphDataset` and `theta_for` take it as it is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.data import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "distances.csv")
    ...     _ = path.write_text("node,ada,bob\nada,0,1.5\nbob,1.5,0\n")
    ...     read_matrix(path)
         ada  bob
    ada  0.0  1.5
    bob  1.5  0.0
    """
    table = read_table(path)
    rows, width = table.shape
    if all(is_number(name) for name in table.columns) and rows in (width, width - 1):
        if rows == width:  # numbers for names, in the header alone
            body, names = table, [str(name) for name in table.columns]
        else:  # no header: the first line is a row
            body = _with_first_row(table, list(table.columns))
            names = [str(i) for i in range(width)]
        columns, body.attrs = names, table.attrs
    else:
        names = [str(name) for name in table.iloc[:, 0]]
        body = table.iloc[:, 1:]
        columns = [str(name) for name in body.columns]
        if len(names) != len(columns):
            came = f"{len(names)} rows and {len(columns)} columns after the first"
            wanted = "a matrix file has the same node names in its first column and its header"
            raise InputError(f"{came}; {wanted}.", where=path)
    check_names(names, len(names), "node names", path)
    if sorted(columns) != sorted(names):
        odd = sorted(set(columns) ^ set(names))[:5]
        raise InputError(f"rows and columns are not the same nodes: {odd}.", where=path)
    values = pd.DataFrame(numbers_of(body, path), index=names, columns=columns)
    return values[names]


def write_matrix(path: str | Path, matrix: Any, names: Sequence[Hashable] | None = None) -> None:
    """Write a square matrix with node names, as CSV or Parquet; `read_matrix` reads it back.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.data import write_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "m.csv")
    ...     write_matrix(path, [[0, 1], [1, 0]], names=["ada", "bob"])
    ...     print(path.read_text())
    "node","ada","bob"
    "ada",0.0,1.0
    "bob",1.0,0.0
    """
    if hasattr(matrix, "columns"):
        matrix = same_nodes(matrix, "matrix", names)
        names = matrix.columns
    values = as_floats(matrix, "matrix")
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InputError(f"must be square; got shape {values.shape}.", argument="matrix")
    names = check_names(range(len(values)) if names is None else names, len(values))
    frame = pd.DataFrame(values, columns=pd.Index(names))
    header = "node"  # of the first column, unlike any node
    while header in names:
        header += "_"
    frame.insert(0, header, list(names))
    write_table(path, frame)


def read_edges(
    path: str | Path,
    value: str | None = None,
    *,
    names: Iterable[str] | None = None,
    fill: float = np.nan,
) -> pd.DataFrame:
    r"""Read an edge list (columns source, target and a number) as a named matrix.

    Parameters
    ----------
    path : path
    value : str, optional
        The column with the numbers; by default the only other one, or 1 for every listed pair if
        there is none.
    names : sequence of str, optional
        All nodes, in the wanted order; by default those listed, in order of appearance (so a node
        without a row is not there).
    fill : float
        What pairs that are not listed get: NaN (unknown) by default; 0 for labels where a missing
        row means no edge.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.data import read_edges
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "edges.csv")
    ...     _ = path.write_text("source,target\nada,bob\nbob,cy\n")
    ...     read_edges(path, fill=0)
         ada  bob   cy
    ada  0.0  1.0  0.0
    bob  1.0  0.0  1.0
    cy   0.0  1.0  0.0
    """
    return edges_to_matrix(read_table(path), value, names=names, fill=fill, where=path)


def edges_to_matrix(
    table: pd.DataFrame,
    value: str | None = None,
    *,
    names: Iterable[str] | None = None,
    fill: float = np.nan,
    where: str | Path = "the edge list",
) -> pd.DataFrame:
    """Make the matrix that `read_edges` returns of a table; `where` is what messages call it."""
    entries = edge_entries(table, value, names=names, where=where)
    names, i, j, numbers = entries
    check_cells(len(names) ** 2, where, f"as a matrix of {len(names):,} nodes has")
    matrix = np.full((len(names), len(names)), float(fill))
    matrix[i, j] = matrix[j, i] = numbers
    np.fill_diagonal(matrix, 0.0)
    return pd.DataFrame(matrix, index=names, columns=names)


class EdgeEntries(NamedTuple):
    """The rows of an edge list, as positions in a matrix."""

    names: list[str]
    i: Int[np.ndarray, " rows"]
    j: Int[np.ndarray, " rows"]
    values: Float[np.ndarray, " rows"]


def edge_entries(
    table: pd.DataFrame,
    value: str | None = None,
    *,
    names: Iterable[str] | None = None,
    where: str | Path = "the edge list",
) -> EdgeEntries:
    """Return where in a matrix the rows of an edge list go; see `edges_to_matrix`."""
    check_names(table.columns, table.shape[1], "columns", where)
    if missing := {"source", "target"} - set(table.columns):
        problem = f"no column {sorted(missing)}; it has {list(table.columns)}."
        raise InputError(problem, where=where)
    others = [name for name in table.columns if name not in ("source", "target")]
    if value is None and len(others) > 1:
        say, keep = Remedy("say {}", Setting("value", ...)), "keep one beside source and target"
        raise InputError(f"which of {others} is it?", where=where, remedy=[say, keep])
    if value is not None and value not in others:
        raise InputError(f"no column {value!r}; it has {others}.", where=where)
    value = value or next(iter(others), None)
    numbers = np.ones(len(table)) if value is None else numbers_of(table[[value]], where)[:, 0]
    pairs = table[["source", "target"]].astype(object)
    ends = pairs.where(pairs.notna(), "").astype(str).to_numpy()
    if (ends == "").any():
        row = int(np.argmax((ends == "").any(1)))
        raise InputError("an end of the edge has no name.", where=f"{where}, row {row + 2}")
    listed = list(dict.fromkeys(ends.ravel()))
    names = listed if names is None else list(names)
    names = list(check_names(names, len(names)))
    place = {name: i for i, name in enumerate(names)}
    if unknown := [name for name in listed if name not in place]:
        raise InputError(f"{unknown[:5]} are not among the given names.", where=where)
    i, j = np.array([[place[name] for name in pair] for pair in ends], int).reshape(-1, 2).T
    if (i == j).any():
        row = int(np.argmax(i == j))
        raise InputError(f"{ends[row, 0]!r} is joined to itself.", where=f"{where}, row {row + 2}")
    _, first = np.unique(np.minimum(i, j) * len(names) + np.maximum(i, j), return_index=True)
    if len(first) < len(ends):
        row = int(np.setdiff1d(np.arange(len(ends)), first)[0])
        source, target = ends[row]
        problem = f"the pair {source!r}, {target!r} is listed twice (edges have no direction)"
        raise InputError(problem, where=f"{where}, row {row + 2}", remedy="Keep one of the rows")
    return EdgeEntries(names, i, j, numbers)


def write_edges(
    path: str | Path,
    a: Any,
    names: Sequence[Hashable] | None = None,
    *,
    value: str = "weight",
    keep_zeros: bool = False,
) -> None:
    """Write the pairs of a graph (vector or matrix) with non-zero values, as CSV or Parquet.

    With ``keep_zeros=True`` every pair gets a row, and `read_edges` reads the same graph back.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.data import write_edges
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "edges.csv")
    ...     write_edges(path, [0.5, 0.0, 0.25], names=["ada", "bob", "cy"])
    ...     print(path.read_text())
    "source","target","weight"
    "ada","bob",0.5
    "bob","cy",0.25
    """
    if value in ("source", "target"):
        raise SettingError(f"{value!r} is the name of another column.", argument="value")
    if hasattr(a, "columns"):
        a = same_nodes(a, "a", names)
        names = a.columns
    values = as_floats(a, "a")
    if values.ndim == 2:
        support = Complete(len(values))
        values = check_symmetric(values, support, "a", names, allow_nan=True)
    else:
        support = complete_support(values.size, "a")
    names = check_names(range(support.n_nodes) if names is None else names, support.n_nodes)
    nodes, (rows, cols) = np.array(names), support.endpoints
    kept = np.ones(values.size, bool) if keep_zeros else values != 0
    columns = {"source": nodes[rows[kept]], "target": nodes[cols[kept]], value: values[kept]}
    write_table(path, pd.DataFrame(columns))


def read_covariates(path: str | Path) -> pd.DataFrame:
    r"""Read what is known of pairs (columns source, target, ...) or of nodes (the first column).

    Columns of numbers become numbers, others categories. `fit(X, A, covariates=...)` takes it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.data import read_covariates
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("name,age,team\nada,30,x\nbob,34,y\n")
    ...     read_covariates(path).to_dict("list")
    {'age': [30.0, 34.0], 'team': ['x', 'y']}
    """
    table = read_table(path)
    check_names(table.columns, table.shape[1], "columns", path)
    is_end = table.columns.isin(["source", "target"])
    of_pairs = is_end.sum() == 2
    index = table.index if of_pairs else pd.Index(table.iloc[:, 0])
    known = ~is_end if of_pairs else np.arange(table.shape[1]) > 0
    covariates = table.columns[known]
    if covariates.empty:
        raise InputError(f"no covariates; it has the columns {list(table.columns)}.", where=path)
    # All columns at once: one at a time, thousands take minutes.
    cells = table.to_numpy(object)[:, known]
    cells[pd.isna(cells) | (cells == "")] = None
    numeric = np.array([all(map(is_number, filter(None, column))) for column in cells.T], bool)
    whole = pd.DataFrame(cells, index, covariates, dtype=object)
    numbers = whole.loc[:, numeric]
    numbers.attrs = table.attrs
    values = pd.DataFrame(numbers_of(numbers, path), index, numbers.columns)
    parts = [values, whole.loc[:, ~numeric]]
    if of_pairs:
        return pd.concat([table.loc[:, is_end], *parts], axis=1)[list(table.columns)]
    return pd.concat(parts, axis=1)[list(covariates)]


def save_dataset(path: str | Path, data: GraphDataset) -> None:
    """Write a whole data set to one npz file; `load_dataset` reads it back, exactly.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import GraphDataset, load_dataset, save_dataset
    >>> with TemporaryDirectory() as folder:
    ...     save_dataset(f"{folder}/data.npz", GraphDataset([[1.0, 2.0, 3.0]]))
    ...     load_dataset(f"{folder}/data.npz")
    <GraphDataset: 1 graphs of 3 nodes, 0 of 3 labels known>
    """
    weighted = [record.w is not None for record in data]
    if any(weighted) != all(weighted):
        raise InputError("a data set file holds the weights of every graph, or of none.")
    labels = [np.where(r.known, r.a, np.nan) if r.w is None else r.w for r in data]
    if len(data) > MAX_GRAPHS:
        raise InputError(f"a data set file holds at most {MAX_GRAPHS:,} graphs; save parts of it.")
    arrays = {
        "n_nodes": np.array(data.n_nodes),
        "e": np.concatenate([record.e for record in data]),
        "a": np.concatenate(labels),
        "weighted": np.array(all(weighted)),
        "names": np.array([name for record in data for name in record.names]),
        "n_signals": np.array([np.nan if r.n_signals is None else r.n_signals for r in data]),
        **_candidate_arrays(data),
        **_covariate_arrays(data),
    }
    check_bytes(sum(array.nbytes for array in arrays.values()), path, "would unpack to")
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _candidate_arrays(data: GraphDataset) -> dict[str, np.ndarray]:
    """Return the candidates of graphs in which only some pairs may be edges; nothing if all may."""
    if all(record.candidates is None for record in data):
        return {}
    lists = [record.candidates for record in data]
    pairs = [np.stack(support.endpoints, 1) for support in lists if support is not None]
    outside = [(-1, -1) if record.outside is None else record.outside for record in data]
    return {
        "n_candidates": np.array([-1 if each is None else each.n_edges for each in lists]),
        "pairs": np.concatenate(pairs),
        "outside": np.array(outside),
    }


def _covariate_arrays(data: GraphDataset) -> dict[str, np.ndarray]:
    """Return the covariates of all graphs in a row; their names, which may be anything, apart."""
    names = list(data[0].covariates)
    if any(set(record.covariates) != set(names) for record in data):
        raise InputError("a data set file holds the same covariates of every graph.")
    columns = [np.concatenate([record.covariates[name] for record in data]) for name in names]
    arrays = {f"covariate.{k}": column for k, column in enumerate(columns)}
    return {"covariates": np.array(names, str), **arrays} if names else {}


def load_dataset(path: str | Path) -> GraphDataset:
    """Read what `save_dataset` wrote.

    Examples
    --------
    >>> from edgebelief.data import load_dataset
    >>> load_dataset("nowhere.npz")
    Traceback (most recent call last):
    FileNotFoundError: nowhere.npz: no such file.
    """
    with open_npz(path) as file:
        there = file.described
        if missing := {"n_nodes", "e", "a", "names"} - set(there):
            raise InputError(f"not a data set of ours, it lacks {sorted(missing)}.", where=path)
        if there["n_nodes"].n_bytes > 8 * MAX_GRAPHS:
            problem = f"states more than {MAX_GRAPHS:,} graphs, the most that a data set file holds"
            raise InputError(problem, where=path, remedy="Save them in several files")
        sizes = file.array("n_nodes")
        # In Python's integers, which do not run over.
        whole = sizes.dtype.kind in "iu"
        edges = [int(n) * (int(n) - 1) // 2 for n in sizes.ravel()] if whole else []
        listed = np.full(len(edges), -1)
        if "n_candidates" in there and there["n_candidates"].shape == (len(edges),):
            listed = file.array("n_candidates").astype(int)
            edges = [int(k) if k >= 0 else n for k, n in zip(listed, edges, strict=True)]
            n_listed = sum(max(int(k), 0) for k in listed)
            shapes_of = {"pairs": (n_listed, 2), "outside": (len(edges), 2)}
            for name, shape in shapes_of.items():
                if name not in there or there[name].shape != shape:
                    problem = "damaged; its candidates do not have the sizes it states."
                    raise InputError(problem, where=path)
        n_signals = there.get("n_signals", there["n_nodes"])
        sound = (
            len(edges) > 0
            and sizes.shape == n_signals.shape == (len(edges),)
            and sizes.min() >= 2
            and there["e"].shape == there["a"].shape == (sum(edges),)
            and there["names"].shape == (sum(map(int, sizes)),)
            and {there[k].dtype.kind for k in ("e", "a")} | {n_signals.dtype.kind} <= set("fiu")
        )
        if not sound:
            raise InputError("damaged; its arrays do not have the sizes it states.", where=path)
        called = []
        if "covariates" in there:
            called = [str(name) for name in file.array("covariates").ravel()]
        columns = [f"covariate.{k}" for k in range(len(called))]
        nothing = Described(np.dtype(float), (0,), False)
        shapes = {there.get(column, nothing).shape for column in columns}
        if len(set(called)) < len(called) or shapes - {there["e"].shape}:
            raise InputError("damaged; its covariates do not have the sizes it states.", where=path)
        # Now that all of them fit together, and only those.
        known = [name for name in ("n_signals", "weighted", "pairs", "outside") if name in there]
        arrays = {name: file.array(name) for name in ["e", "a", "names", *known, *columns]}
    ends = np.cumsum(edges)[:-1]
    each = [np.split(arrays[column], ends) for column in columns]
    counts = arrays.get("n_signals", np.full(len(edges), np.nan))
    supports = _supports_in(arrays, listed, sizes)
    data = GraphDataset(
        np.split(arrays["e"], ends),
        np.split(arrays["a"], ends),
        np.split(arrays["names"], np.cumsum(sizes)[:-1]),
        [None if np.isnan(count) else float(count) for count in counts],
        [dict(zip(called, parts, strict=True)) for parts in zip(*each, strict=True)] or None,
        weighted=bool(arrays.get("weighted", np.array(False)).all()),
        supports=supports,
    )
    outside = arrays.get("outside", np.full((len(data), 2), -1))
    records = [
        record._replace(outside=Outside(*map(int, counts))) if counts[0] >= 0 else record
        for record, counts in zip(data, outside, strict=True)
    ]
    return GraphDataset._of(records)


def _supports_in(
    arrays: dict[str, np.ndarray], listed: Int[np.ndarray, " graphs"], sizes: np.ndarray
) -> list[Restricted | None]:
    """Return the candidates of each graph; None where all pairs are."""
    pairs, supports, first = arrays.get("pairs"), list[Restricted | None](), 0
    for count, n_nodes in zip(listed, sizes, strict=True):
        if count < 0 or pairs is None:
            supports.append(None)
            continue
        supports.append(Restricted.from_pairs(pairs[first : first + count], int(n_nodes)))
        first += count
    return supports
