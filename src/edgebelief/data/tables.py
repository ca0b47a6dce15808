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
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..atomic import replacing
from ..bounds import check_cells, check_file
from ..errors import InputError
from .parquet import read_parquet

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
    check_file(path)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = read_parquet(path)
    elif suffix in (".csv", ".tsv", ".txt"):
        table = _read_text(path)
    else:
        problem = f"a table is .csv, .tsv, .txt or .parquet, not {path.suffix!r}."
        raise InputError(problem, where=path)
    if table.empty:
        raise InputError("the table is empty", where=path, remedy="it needs rows below its header")
    return table


def _read_text(path: Path) -> pd.DataFrame:
    content = path.read_bytes()
    # With its mark, UTF-16 is what spreadsheets call Unicode text.
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_utf16 else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 ({error.reason} at byte {error.start})"
        remedy = "If it is a table, save it as UTF-8"
        raise InputError(problem, where=path, remedy=remedy) from None
    if not text.strip():
        raise InputError("the file is empty", where=path, remedy="a table has a header and rows")
    header_line = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])  # names may hold any
    separator = max(",;\t", key=header_line.count)
    # Before cells are made: each but the last ends in a separator or with its line.
    check_cells(text.count(separator) + max(text.count("\n"), text.count("\r")), path)
    has_guards = "'" in text
    del text  # the reader decodes it a piece at a time
    lines = io.TextIOWrapper(io.BytesIO(content), encoding, newline="")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        rows = [list(map(str.strip, row)) for row in reader if row]
    except csv.Error as error:  # a cell of over 131,072 characters: a quote that is never closed
        where = f"{path}, line {reader.line_num}"
        raise InputError(f"{error}. A quote too many?", where=where) from None
    if has_guards:
        rows = [list(map(_unguarded, row)) for row in rows]
    width = len(rows[0])
    if odd := next((i for i, row in enumerate(rows) if len(row) != width), None):
        line = f"line {odd + 1} (blank ones not counted) has {len(rows[odd])} fields"
        problem = f"{line}, the first has {width}; all lines must have as many."
        raise InputError(problem, where=path, remedy=DECIMAL_COMMAS if separator == "," else ())
    # One block of objects: with a block for each column, wide tables take minutes.
    cells = np.array(rows[1:], object).reshape(-1, width)
    table = pd.DataFrame(cells, columns=pd.Index(rows[0]), dtype=object)
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


_GAPS = frozenset(["", "NA", "NaN", "nan", "None", "<NA>"])


def numbers_of(frame: pd.DataFrame, path: str | Path) -> np.ndarray:
    """Return the frame's values, or refuse the first that is no number, by row and column.

    An empty cell, NA or NaN is a gap.
    """
    numeric = np.array([pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes], bool)
    values = np.empty(frame.shape)
    values[:, numeric] = frame.loc[:, numeric].to_numpy(float, na_value=np.nan)
    cells = frame.loc[:, ~numeric].to_numpy(object)
    try:
        values[:, ~numeric] = _plain_numbers(cells)
    except _NotPlain:  # then column by column
        for k, column in zip(np.flatnonzero(~numeric), cells.T, strict=True):
            where = f"column {frame.columns[int(k)]!r}"
            values[:, k] = _numbers(column, path, where, "decimal_comma" in frame.attrs)
    return values


class _NotPlain(ValueError):
    """Cells that are not, one and all, numbers in their plain form."""


def _plain_numbers(cells: np.ndarray) -> np.ndarray:
    """Return texts as numbers; refuse them where one is a gap, or written in another way."""
    try:
        together = "".join(cells.ravel())
    except TypeError:
        raise _NotPlain("not all are texts") from None
    # Python reads 1_000 and digits of other scripts, too; in a table they are rather mistakes.
    if not together.isascii() or "_" in together:
        raise _NotPlain("not all are plain")
    try:
        numbers = cells.astype(float)  # by `float`, to the last digit
    except ValueError:
        raise _NotPlain("not all are numbers") from None
    if np.isnan(numbers).any():
        raise _NotPlain("not all are numbers")
    return numbers


def _numbers(column: np.ndarray, path: str | Path, where: str, decimal_comma: bool) -> np.ndarray:
    """Return the cells of a column as numbers, NaN for gaps; refuse what is neither."""
    with suppress(_NotPlain):
        return _plain_numbers(column)
    numbers = np.full(len(column), np.nan)
    for row, (cell, missing) in enumerate(zip(column, pd.isna(column), strict=True)):
        text = "" if missing else str(cell).strip()
        text = text.replace(",", ".") if decimal_comma else text
        if text in _GAPS:
            continue
        with suppress(ValueError):
            numbers[row] = float(text) if text.isascii() and "_" not in text else np.nan
        if np.isnan(numbers[row]):
            remedy = ["Correct it", "leave the cell empty"]
            remedy = [DECIMAL_COMMAS] if "," in str(cell) else remedy
            place = f"{path}, row {row + 2}, {where}"
            raise InputError(f"{cell!r}, no number", where=place, remedy=remedy)
    return numbers
