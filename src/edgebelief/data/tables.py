"""Tables in files: cells, and the numbers in them.

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
from ..errors import InputError

DECIMAL_COMMAS = "Decimal commas? Separate with semicolons"


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a CSV (comma, semicolon or tab separated) or Parquet file as a frame of text columns.

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
            raise InputError(f"cannot be read as Parquet ({error}).", where=path) from None
        named = table.index.name is not None or not isinstance(table.index, pd.RangeIndex)
        table = table.reset_index() if named else table
    elif suffix in (".csv", ".tsv", ".txt"):
        table = _read_text(path)
    else:
        problem = f"a table is .csv, .tsv, .txt or .parquet, not {path.suffix!r}."
        raise InputError(problem, where=path)
    if table.empty:
        raise InputError("the table is empty", where=path, remedy="it needs rows below its header")
    return table


def _read_text(path: Path) -> pd.DataFrame:
    with path.open("rb") as file:
        mark = file.read(2)
    try:  # with its mark, UTF-16 is what spreadsheets call Unicode text
        utf16 = mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        text = path.read_text(encoding="utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 ({error.reason} at byte {error.start})"
        remedy = "If it is a table, save it as UTF-8"
        raise InputError(problem, where=path, remedy=remedy) from None
    if not text.strip():
        raise InputError("the file is empty", where=path, remedy="a table has a header and rows")
    header_line = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])  # names may hold any
    separator = max(",;\t", key=header_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        rows = [[_unguarded(cell.strip()) for cell in row] for row in reader if row]
    except csv.Error as error:  # a cell of over 131,072 characters: a quote that is never closed
        where = f"{path}, line {reader.line_num}"
        raise InputError(f"{error}. A quote too many?", where=where) from None
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        odd = next(i for i, row in enumerate(rows) if len(row) != len(rows[0]))
        line = f"line {odd + 1} (blank ones not counted) has {len(rows[odd])} fields"
        problem = f"{line}, the first has {len(rows[0])}; all lines must have as many."
        raise InputError(problem, where=path, remedy=DECIMAL_COMMAS if separator == "," else ())
    table = pd.DataFrame(rows[1:], columns=pd.Index(rows[0]), dtype=str)
    if separator == ";":  # where decimals may be written with a comma
        table.attrs["decimal_comma"] = True
    return table


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write any frame, without its index, as CSV or Parquet.

    Examples
    --------
    >>> import pathlib, tempfile, pandas as pd
    >>> from edgebelief.data import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "table.csv")
    ...     write_table(path, pd.DataFrame({"name": ["ada", "=cmd()"], "p": [0.5, 1.0]}))
    ...     print(path.read_text())
    "name","p"
    "ada",0.5
    "'=cmd()",1.0
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"can be written as .csv or .parquet, not {suffix!r}.", where=path)
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


def any_number(cells: pd.Series) -> bool:
    """Whether any of the cells is a number."""
    return pd.api.types.is_numeric_dtype(cells) or any(is_number(cell) for cell in cells.dropna())


def is_number(text: Any) -> bool:
    """Whether a cell is a number, be it with a decimal comma, which `numbers_of` may refuse."""
    try:
        float(text.replace(",", ".") if isinstance(text, str) else text)
    except (TypeError, ValueError):
        return False
    return True


def numbers_of(frame: pd.DataFrame, path: str | Path) -> np.ndarray:
    """Return the frame's values, or refuse the first that is no number, by row and column.

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
            cell, where = frame.iloc[row, k], f"{path}, row {row + 2}, column {name!r}"
            comma = "," in str(cell)
            remedy = [DECIMAL_COMMAS] if comma else ["Correct it", "leave the cell empty"]
            raise InputError(f"{cell!r}, no number", where=where, remedy=remedy)
        if not pd.api.types.is_numeric_dtype(cells):
            # `to_numeric` judges; before pandas 3.1 it loses the last digit, which `float` keeps.
            numbers = cells.where(~gaps).astype(float).to_numpy()
        columns.append(numbers)
    return np.column_stack(columns)
