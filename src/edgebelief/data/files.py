"""Graphs in files: matrices and edge lists, as CSV, Parquet or npz.

A *matrix* file has a row and a column per node, named in the header and the first column. An *edge
list* has a row per pair and the columns source, target and one of numbers. An npz file holds a
whole `GraphDataset`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..edges import Complete
from ..validate import as_floats, check_names
from .dataset import GraphDataset


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV (comma, semicolon or tab separated) or Parquet file as a data frame of columns."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty.")
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix not in (".csv", ".tsv", ".txt"):
        raise ValueError(f"{path}: a table is .csv, .tsv, .txt or .parquet, not {path.suffix!r}.")
    with path.open(encoding="utf-8-sig") as lines:
        header = lines.readline()
    separator = max(",;\t", key=header.count)
    try:
        return pd.read_csv(path, sep=separator, encoding="utf-8-sig", dtype={0: str})
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: {error}.") from None


def _write_table(frame: pd.DataFrame, path: str | Path) -> None:
    path = Path(path)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        raise ValueError(f"{path}: can be written as .csv or .parquet, not {path.suffix!r}.")


def read_matrix(path: str | Path) -> pd.DataFrame:
    """A square matrix with node names: distances, an adjacency, probabilities.

    Returns
    -------
    DataFrame
        Node names on both sides. `solve`, `GraphDataset` and `theta_for` take it as it is.
    """
    table = read_table(path)
    names = [str(name) for name in table.iloc[:, 0]]
    matrix = table.iloc[:, 1:]
    matrix.index = pd.Index(names)
    columns = [str(name) for name in matrix.columns]
    if len(names) != len(columns):
        raise ValueError(
            f"{path}: {len(names)} rows and {len(columns)} columns after the first; a matrix file "
            f"has node names in its first column and its header, the same ones."
        )
    check_names(names, len(names))
    if columns != names:
        if sorted(columns) != sorted(names):
            odd = sorted(set(columns) ^ set(names))[:5]
            raise ValueError(f"{path}: rows and columns are not the same nodes: {odd}.")
        matrix = matrix[names]
    values = _numbers(matrix, path)
    return pd.DataFrame(values, index=names, columns=names)


def write_matrix(path: str | Path, matrix: Any, names: Any = None) -> None:
    """Write a square matrix with node names, as CSV or Parquet; `read_matrix` reads it back."""
    names = getattr(matrix, "columns", None) if names is None else names
    values = as_floats(matrix, "matrix")
    names = check_names(range(len(values)) if names is None else names, len(values))
    frame = pd.DataFrame(values, columns=list(names))
    frame.insert(0, _unused("node", names), list(names))
    _write_table(frame, path)


def read_edges(path: str | Path, value: str | None = None, *, fill: float = np.nan) -> pd.DataFrame:
    """An edge list (columns source, target and a number) as a named matrix.

    Parameters
    ----------
    path : path
    value : str, optional
        The column with the numbers; by default the only other one, or 1 for every listed pair if
        there is none.
    fill : float
        What pairs that are not listed get: NaN (unknown) by default; 0 for labels where a missing
        row means no edge.
    """
    table = read_table(path)
    missing = {"source", "target"} - set(table.columns)
    if missing:
        raise ValueError(f"{path}: no column {sorted(missing)}; it has {list(table.columns)}.")
    others = [name for name in table.columns if name not in ("source", "target")]
    if value is None and len(others) > 1:
        raise ValueError(f"{path}: which of {others} is it? Say value=....")
    if value is not None and value not in others:
        raise ValueError(f"{path}: no column {value!r}; it has {others}.")
    value = value or (others[0] if others else None)
    numbers = np.ones(len(table)) if value is None else _numbers(table[[value]], path)[:, 0]
    source, target = (table[end].astype(str).to_numpy() for end in ("source", "target"))
    names, codes = np.unique(np.concatenate([source, target]), return_inverse=True)
    i, j = codes[: len(source)], codes[len(source) :]
    if (i == j).any():
        row = int(np.argmax(i == j))
        raise ValueError(f"{path}, row {row + 2}: {source[row]!r} is joined to itself.")
    pair = np.minimum(i, j) * len(names) + np.maximum(i, j)
    _, first = np.unique(pair, return_index=True)
    if len(first) < len(pair):
        row = int(np.setdiff1d(np.arange(len(pair)), first)[0])
        raise ValueError(
            f"{path}, row {row + 2}: the pair {source[row]!r}, {target[row]!r} is listed twice "
            f"(edges have no direction)."
        )
    matrix = np.full((len(names), len(names)), float(fill))
    matrix[i, j] = matrix[j, i] = numbers
    np.fill_diagonal(matrix, 0.0)
    return pd.DataFrame(matrix, index=names, columns=names)


def write_edges(
    path: str | Path, a: Any, names: Any = None, *, value: str = "weight", keep_zeros: bool = False
) -> None:
    """Write the pairs of a graph (vector or matrix) with non-zero values, as CSV or Parquet."""
    names = getattr(a, "columns", None) if names is None else names
    values = as_floats(a, "a")
    if values.ndim == 2:
        values = Complete(len(values)).to_vector(values)
    n_nodes = (1 + int(np.sqrt(1 + 8 * values.size))) // 2
    names = np.array(check_names(range(n_nodes) if names is None else names, n_nodes))
    rows, cols = Complete(n_nodes).endpoints
    kept = np.ones(values.size, bool) if keep_zeros else values != 0
    columns = {"source": names[rows[kept]], "target": names[cols[kept]], value: values[kept]}
    _write_table(pd.DataFrame(columns), path)


def save_dataset(path: str | Path, data: GraphDataset) -> None:
    """A whole data set in one npz file; `load_dataset` reads it back, exactly."""
    with Path(path).open("wb") as file:
        np.savez_compressed(
            file,
            n_nodes=np.array(data.n_nodes),
            e=np.concatenate([record.e for record in data]),
            a=np.concatenate([np.where(record.known, record.a, np.nan) for record in data]),
            names=np.array([name for record in data for name in record.names]),
        )


def load_dataset(path: str | Path) -> GraphDataset:
    """Read what `save_dataset` wrote."""
    with np.load(path, allow_pickle=False) as file:
        missing = {"n_nodes", "e", "a", "names"} - set(file)
        if missing:
            raise ValueError(f"{path}: not a data set of ours, it lacks {sorted(missing)}.")
        sizes, e, a, names = file["n_nodes"], file["e"], file["a"], file["names"]
    edges = np.cumsum(sizes * (sizes - 1) // 2)
    if e.shape != (edges[-1],) or a.shape != e.shape or names.shape != (sizes.sum(),):
        raise ValueError(f"{path}: damaged; its arrays do not have the sizes it states.")
    return GraphDataset(
        np.split(e, edges[:-1]), np.split(a, edges[:-1]), np.split(names, np.cumsum(sizes)[:-1])
    )


def _numbers(frame: pd.DataFrame, path: str | Path) -> np.ndarray:
    """The frame's values, or an error with row and column of the first that is no number."""
    columns = []
    for name in frame.columns:
        numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(float)
        bad = np.isnan(numbers) & frame[name].notna().to_numpy()
        if bad.any():
            row = int(np.argmax(bad))
            found = frame[name].iloc[row]
            hint = " Decimal commas? Write 0.5, not 0,5." if "," in str(found) else ""
            raise ValueError(f"{path}, row {row + 2}, column {name!r}: {found!r}, no number.{hint}")
        columns.append(numbers)
    return np.column_stack(columns)


def _unused(wish: str, names: Any) -> str:
    """`wish`, with underscores until no node is called so."""
    while wish in names:
        wish += "_"
    return wish
