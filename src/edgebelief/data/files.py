"""Graphs in files: signals, matrices and edge lists, as CSV, Parquet or npz.

*Signals* have a row per observation and a column per node, named in the header. A *matrix* file has
a row and a column per node, named in the header and the first column. An *edge list* has a row per
pair and the columns source, target and one of numbers. An npz file holds a whole `GraphDataset`.

What is written appears whole or not at all. In CSV files, text that a spreadsheet would run (it
begins with =, +, -, @, a tab or a carriage return) gets an apostrophe in front, which reading takes
off again.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..atomic import replacing
from ..edges import Complete
from ..validate import as_floats, check_names, check_symmetric, complete_support, same_nodes
from .dataset import GraphDataset


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV (comma, semicolon or tab separated) or Parquet file as a frame of text columns.

    Nothing is guessed: "NA", "01" and "1e3" stay what they are until a number is asked for. In
    semicolon files, 0,5 is a number.

    Examples
    --------
    >>> from edgebelief.data import read_table
    >>> read_table("nowhere.csv")
    Traceback (most recent call last):
    FileNotFoundError: nowhere.csv: no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}.")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        try:
            table = pd.read_parquet(path)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            raise ValueError(f"{path}: cannot be read as Parquet ({error}).") from None
        named = table.index.name is not None or not isinstance(table.index, pd.RangeIndex)
        table = table.reset_index() if named else table
    elif suffix in (".csv", ".tsv", ".txt"):
        table = _read_text(path)
    else:
        raise ValueError(f"{path}: a table is .csv, .tsv, .txt or .parquet, not {path.suffix!r}.")
    if table.empty:
        raise ValueError(f"{path}: the table is empty; it needs rows below its header.")
    return table


def _read_text(path: Path) -> pd.DataFrame:
    with path.open("rb") as file:
        mark = file.read(2)
    try:  # with its mark, UTF-16 is what spreadsheets call Unicode text
        utf16 = mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        text = path.read_text(encoding="utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: not UTF-8 ({error.reason} at byte {error.start}). If it is a table, save it "
            f"as UTF-8."
        ) from None
    if not text.strip():
        raise ValueError(f"{path}: the file is empty; a table has a header, and rows below it.")
    header_line = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])  # names may hold any
    separator = max(",;\t", key=header_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        rows = [[_unguarded(cell.strip()) for cell in row] for row in reader if row]
    except csv.Error as error:  # a cell of over 131,072 characters: a quote that is never closed
        raise ValueError(f"{path}, line {reader.line_num}: {error}. A quote too many?") from None
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        odd = next(i for i, row in enumerate(rows) if len(row) != len(rows[0]))
        raise ValueError(
            f"{path}: line {odd + 1} (blank ones not counted) has {len(rows[odd])} fields, the "
            f"first has {len(rows[0])}; all lines must have as many."
            f"{' Decimal commas? Separate with semicolons.' if separator == ',' else ''}"
        )
    table = pd.DataFrame(rows[1:], columns=pd.Index(rows[0]), dtype=str)
    if separator == ";":  # where decimals may be written with a comma
        table.attrs["decimal_comma"] = True
    return table


def read_signals(path: str | Path, *, transpose: bool = False) -> pd.DataFrame:
    r"""Signals: a row per observation, a column per node, names in the header.

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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import read_signals
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "signals.csv"
    ...     _ = path.write_text("day;ada;bob\nMon;0,5;1\nTue;;2\n")
    ...     read_signals(path)
         ada  bob
    Mon  0.5  1.0
    Tue  NaN  2.0
    """
    table = read_table(path)
    body, rows = table, [str(i) for i in range(len(table))]
    names = [str(name) for name in table.columns]
    if table.shape[1] > 1 and (names[0] == "" or not _any_number(table.iloc[:, 0])):
        rows, names = [str(cell) for cell in table.iloc[:, 0]], names[1:]
        body = table.iloc[:, 1:]
    elif all(_is_number(name) for name in names) and names not in _counted(len(names)):
        body = pd.DataFrame(np.vstack([pd.DataFrame([names]), table]))
        names, rows = [str(i) for i in range(len(names))], [str(i) for i in range(len(body))]
    body.attrs = table.attrs
    if transpose:
        check_names(rows, len(rows), f"{path}: node names")
        values = _numbers(body.set_axis(names, axis=1), path)
        return pd.DataFrame(values.T, index=names, columns=rows)
    check_names(names, len(names), f"{path}: node names")
    return pd.DataFrame(_numbers(body.set_axis(names, axis=1), path), index=rows, columns=names)


def read_matrix(path: str | Path) -> pd.DataFrame:
    r"""A square matrix with node names: distances, an adjacency, probabilities.

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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import read_matrix
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "distances.csv"
    ...     _ = path.write_text("node,ada,bob\nada,0,1.5\nbob,1.5,0\n")
    ...     read_matrix(path)
         ada  bob
    ada  0.0  1.5
    bob  1.5  0.0
    """
    table = read_table(path)
    rows, width = table.shape
    if all(_is_number(name) for name in table.columns) and rows in (width, width - 1):
        if rows == width:  # numbers for names, in the header alone
            body, names = table, [str(name) for name in table.columns]
        else:  # no header: the first line is a row
            body = pd.DataFrame(np.vstack([pd.DataFrame([list(table.columns)]), table]))
            names = [str(i) for i in range(width)]
        columns, body.attrs = names, table.attrs
    else:
        names = [str(name) for name in table.iloc[:, 0]]
        body = table.iloc[:, 1:]
        columns = [str(name) for name in body.columns]
        if len(names) != len(columns):
            raise ValueError(
                f"{path}: {len(names)} rows and {len(columns)} columns after the first; a matrix "
                f"file has node names in its first column and its header, the same ones."
            )
    check_names(names, len(names), f"{path}: node names")
    if sorted(columns) != sorted(names):
        odd = sorted(set(columns) ^ set(names))[:5]
        raise ValueError(f"{path}: rows and columns are not the same nodes: {odd}.")
    values = pd.DataFrame(_numbers(body, path), index=names, columns=columns)
    return values[names]


def write_matrix(path: str | Path, matrix: Any, names: Any = None) -> None:
    """Write a square matrix with node names, as CSV or Parquet; `read_matrix` reads it back.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import write_matrix
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "m.csv"
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
        raise ValueError(f"matrix must be square; got shape {values.shape}.")
    names = check_names(range(len(values)) if names is None else names, len(values))
    frame = pd.DataFrame(values, columns=pd.Index(names))
    frame.insert(0, _unused("node", names), list(names))
    write_table(path, frame)


def read_edges(
    path: str | Path, value: str | None = None, *, names: Any = None, fill: float = np.nan
) -> pd.DataFrame:
    r"""An edge list (columns source, target and a number) as a named matrix.

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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import read_edges
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     _ = path.write_text("source,target\nada,bob\nbob,cy\n")
    ...     read_edges(path, fill=0)
         ada  bob   cy
    ada  0.0  1.0  0.0
    bob  1.0  0.0  1.0
    cy   0.0  1.0  0.0
    """
    return edges_to_matrix(read_table(path), value, names=names, fill=fill, where=str(path))


def edges_to_matrix(
    table: pd.DataFrame,
    value: str | None = None,
    *,
    names: Any = None,
    fill: float = np.nan,
    where: str = "the edge list",
) -> pd.DataFrame:
    """As `read_edges`, of a table that is at hand; `where` is what messages call it."""
    check_names(table.columns, table.shape[1], f"{where}: columns")
    missing = {"source", "target"} - set(table.columns)
    if missing:
        raise ValueError(f"{where}: no column {sorted(missing)}; it has {list(table.columns)}.")
    others = [name for name in table.columns if name not in ("source", "target")]
    if value is None and len(others) > 1:
        raise ValueError(f"{where}: which of {others} is it? Say value=....")
    if value is not None and value not in others:
        raise ValueError(f"{where}: no column {value!r}; it has {others}.")
    value = value or (others[0] if others else None)
    numbers = np.ones(len(table)) if value is None else _numbers(table[[value]], where)[:, 0]
    pairs = table[["source", "target"]].astype(object)
    ends = pairs.where(pairs.notna(), "").astype(str).to_numpy()
    if (ends == "").any():
        row = int(np.argmax((ends == "").any(1)))
        raise ValueError(f"{where}, row {row + 2}: an end of the edge has no name.")
    listed = list(dict.fromkeys(ends.ravel()))
    names = listed if names is None else list(names)
    names = list(check_names(names, len(names)))
    place = {name: i for i, name in enumerate(names)}
    unknown = [name for name in listed if name not in place]
    if unknown:
        raise ValueError(f"{where}: {unknown[:5]} are not among the given names.")
    i, j = np.array([[place[name] for name in pair] for pair in ends], int).reshape(-1, 2).T
    if (i == j).any():
        row = int(np.argmax(i == j))
        raise ValueError(f"{where}, row {row + 2}: {ends[row, 0]!r} is joined to itself.")
    _, first = np.unique(np.minimum(i, j) * len(names) + np.maximum(i, j), return_index=True)
    if len(first) < len(ends):
        row = int(np.setdiff1d(np.arange(len(ends)), first)[0])
        raise ValueError(
            f"{where}, row {row + 2}: the pair {ends[row, 0]!r}, {ends[row, 1]!r} is listed twice "
            f"(edges have no direction)."
        )
    matrix = np.full((len(names), len(names)), float(fill))
    matrix[i, j] = matrix[j, i] = numbers
    np.fill_diagonal(matrix, 0.0)
    return pd.DataFrame(matrix, index=names, columns=names)


def write_edges(
    path: str | Path, a: Any, names: Any = None, *, value: str = "weight", keep_zeros: bool = False
) -> None:
    """Write the pairs of a graph (vector or matrix) with non-zero values, as CSV or Parquet.

    With ``keep_zeros=True`` every pair gets a row, and `read_edges` reads the same graph back.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import write_edges
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     write_edges(path, [0.5, 0.0, 0.25], names=["ada", "bob", "cy"])
    ...     print(path.read_text())
    "source","target","weight"
    "ada","bob",0.5
    "bob","cy",0.25
    """
    if value in ("source", "target"):
        raise ValueError(f"value={value!r} is the name of another column.")
    if hasattr(a, "columns"):
        a = same_nodes(a, "a", names)
        names = a.columns
    values = as_floats(a, "a")
    if values.ndim == 2:
        support = Complete(len(values))
        values = check_symmetric(values, support, "a", names, allow_nan=True)
    else:
        support = complete_support(values.size, "a")
    names = range(support.n_nodes) if names is None else names
    names = np.array(check_names(names, support.n_nodes))
    rows, cols = support.endpoints
    kept = np.ones(values.size, bool) if keep_zeros else values != 0
    columns = {"source": names[rows[kept]], "target": names[cols[kept]], value: values[kept]}
    write_table(path, pd.DataFrame(columns))


def save_dataset(path: str | Path, data: GraphDataset) -> None:
    """A whole data set in one npz file; `load_dataset` reads it back, exactly.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief.data import GraphDataset, load_dataset, save_dataset
    >>> with TemporaryDirectory() as folder:
    ...     save_dataset(Path(folder) / "data.npz", GraphDataset([[1.0, 2.0, 3.0]]))
    ...     load_dataset(Path(folder) / "data.npz")
    <GraphDataset: 1 graphs of 3 nodes, 0 of 3 labels known>
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            n_nodes=np.array(data.n_nodes),
            e=np.concatenate([record.e for record in data]),
            a=np.concatenate([np.where(record.known, record.a, np.nan) for record in data]),
            names=np.array([name for record in data for name in record.names]),
            n_signals=np.array([np.nan if r.n_signals is None else r.n_signals for r in data]),
        )


def load_dataset(path: str | Path) -> GraphDataset:
    """Read what `save_dataset` wrote.

    Examples
    --------
    >>> from edgebelief.data import load_dataset
    >>> load_dataset("nowhere.npz")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.npz'
    """
    with open(path, "rb") as raw:
        try:
            with np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file}
        except Exception as error:  # zipfile, zlib and numpy have a dozen of their own
            raise ValueError(f"{path}: not an npz file, or damaged ({error}).") from None
    missing = {"n_nodes", "e", "a", "names"} - set(arrays)
    if missing:
        raise ValueError(f"{path}: not a data set of ours, it lacks {sorted(missing)}.")
    sizes, e, a, names = (arrays[name] for name in ("n_nodes", "e", "a", "names"))
    n_signals = arrays.get("n_signals", np.full(sizes.size, np.nan))
    # In Python's integers, which do not run over.
    edges = [int(n) * (int(n) - 1) // 2 for n in sizes.ravel()] if sizes.dtype.kind in "iu" else []
    sound = (
        len(edges) > 0
        and sizes.shape == n_signals.shape == (len(edges),)
        and sizes.min() >= 2
        and e.shape == a.shape == (sum(edges),)
        and names.shape == (sum(map(int, sizes)),)
        and {e.dtype.kind, a.dtype.kind, n_signals.dtype.kind} <= set("fiu")
    )
    if not sound:
        raise ValueError(f"{path}: damaged; its arrays do not have the sizes it states.")
    ends = np.cumsum(edges)[:-1]
    return GraphDataset(
        np.split(e, ends),
        np.split(a, ends),
        np.split(names, np.cumsum(sizes)[:-1]),
        [None if np.isnan(count) else float(count) for count in n_signals],
    )


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Any frame, without its index, as CSV or Parquet.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from edgebelief.data import write_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     write_table(path, pd.DataFrame({"name": ["ada", "=cmd()"], "p": [0.5, 1.0]}))
    ...     print(path.read_text())
    "name","p"
    "ada",0.5
    "'=cmd()",1.0
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: can be written as .csv or .parquet, not {suffix!r}.")
    with replacing(path) as temporary:
        if suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
            return
        safe = frame.rename(columns=lambda name: _guarded(str(name)))
        for name in safe.columns[~safe.dtypes.map(pd.api.types.is_numeric_dtype)]:
            safe[name] = safe[name].map(lambda cell: _guarded(cell) if type(cell) is str else cell)
        # Quotes, for names may hold anything.
        safe.to_csv(temporary, index=False, quoting=csv.QUOTE_NONNUMERIC)


# What spreadsheets take for a formula, perhaps already guarded.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def _guarded(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def _unguarded(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _counted(n: int) -> list[list[str]]:
    """The headers that are names although they are numbers."""
    return [[str(i + first) for i in range(n)] for first in (0, 1)]


def _any_number(cells: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(cells) or any(_is_number(cell) for cell in cells.dropna())


def _is_number(text: Any) -> bool:
    """Also with a decimal comma: whether those may be is for `_numbers` to say."""
    try:
        float(text.replace(",", ".") if isinstance(text, str) else text)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(frame: pd.DataFrame, path: str | Path) -> np.ndarray:
    """The frame's values, or an error with row and column of the first that is no number.

    An empty cell, NA or NaN is a gap.
    """
    columns = []
    for k, name in enumerate(frame.columns):  # by place: two may have one name
        cells = frame.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(cells):
            cells = cells.astype(str).str.strip()
            cells = cells.str.replace(",", ".") if "decimal_comma" in frame.attrs else cells
        gaps = cells.isin(["", "NA", "NaN", "nan", "None", "<NA>"]).to_numpy()
        numbers = pd.to_numeric(cells.where(~gaps), errors="coerce").to_numpy(float)
        bad = np.isnan(numbers) & ~gaps & cells.notna().to_numpy()
        if bad.any():
            row = int(np.argmax(bad))
            found = frame.iloc[row, k]
            hint = "Correct it, or leave the cell empty."
            if "," in str(found):
                hint = "Decimal commas? Separate with semicolons."
            raise ValueError(
                f"{path}, row {row + 2}, column {name!r}: {found!r}, no number. {hint}"
            )
        columns.append(numbers)
    return np.column_stack(columns)


def _unused(wish: str, names: Any) -> str:
    """`wish`, with underscores until no node is called so."""
    while wish in names:
        wish += "_"
    return wish
