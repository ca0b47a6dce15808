"""Parquet files as frames, of which no more is unpacked than the bounds allow.

A Parquet file of some kilobytes can hold billions of cells. How many it states at its end; how many
bytes each of its pages unpacks to, in front of the page (a header in Thrift's compact protocol):
pyarrow makes a buffer of that size and fills it, so this is the real size, whatever the rest of the
file states. Texts are read as numbers into a list of the different ones, so a long text that each
row repeats is in memory once. What pandas adds to a file, for frames, may be damaged: of that only
the columns that were an index are looked at.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..bounds import check_bytes, check_cells
from ..errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# The end of the file, which pyarrow turns into some ten times as many bytes of C++ objects. What
# pandas writes has 470 bytes for each column: 35,000 columns.
MAX_FOOTER_BYTES = 2**24
# A page header takes Python some 10 microseconds; a column has a page or two for each megabyte.
MAX_PAGES = 2**18
# The longest that a number, a decimal, takes; longer ones are texts of a fixed length.
MAX_FIXED_BYTES = 32
# Texts of which each repeats a part of the one before: a kilobyte can unpack to a terabyte.
_DELTA_BYTE_ARRAY = 7


class _Damaged(ValueError):
    """Bytes that are no page header."""


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file of numbers and texts; the index of a pandas frame comes as columns."""
    import pyarrow.parquet as pq

    with path.open("rb") as raw:
        content = _mapped(raw)
    try:
        _check_ends(content, path)
        limits: dict[str, Any] = {"thrift_container_size_limit": 2**17}
        metadata = pq.ParquetFile(_reader(content), **limits).metadata
        texts = _check_columns(metadata, path)
        _check_pages(content, metadata, path)
        file = pq.ParquetFile(_reader(content), read_dictionary=texts, **limits)
        return _frame(file.read())
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        # pyarrow's ArrowInvalid is a ValueError; what damage makes of a file, it reports by all.
        raise InputError(f"cannot be read as Parquet ({error}).", where=path) from None


def _mapped(file: IO[bytes]) -> mmap.mmap | bytes:
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file
        return b""


def _reader(content: Any) -> Any:
    import pyarrow as pa

    return pa.BufferReader(pa.py_buffer(content))


def _check_ends(content: mmap.mmap | bytes, path: Path) -> None:
    if len(content) < 12 or content[:4] != b"PAR1" or content[-4:] != b"PAR1":
        raise InputError("not a Parquet file, or cut off, or encrypted.", where=path)
    footer = int.from_bytes(content[-8:-4], "little")
    if footer > MAX_FOOTER_BYTES:
        problem = f"its description of columns takes {footer:,} bytes; at most {MAX_FOOTER_BYTES:,}"
        raise InputError(problem, where=path, remedy="write it as CSV, or with fewer columns")


def _check_columns(metadata: pq.FileMetaData, path: Path) -> list[str]:
    """Refuse what is too large, or no table, by what the file states; return columns of texts."""
    groups = [metadata.row_group(i) for i in range(min(metadata.num_row_groups, MAX_PAGES))]
    sizes = [group.num_rows for group in groups]
    if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
        raise InputError("damaged: its parts have not the rows that it states.", where=path)
    shape = f"has {metadata.num_rows:,} rows and {metadata.num_columns:,} columns, which are"
    check_cells(metadata.num_rows * metadata.num_columns, path, shape)
    check_bytes(sum(group.total_byte_size for group in groups), path, "unpacks to")
    texts = []
    for k in range(metadata.num_columns):
        column = metadata.schema.column(k)
        fixed = column.physical_type == "FIXED_LEN_BYTE_ARRAY" and column.length > MAX_FIXED_BYTES
        if column.max_repetition_level or column.path != column.name or fixed:
            problem = f"column {column.path!r} holds lists, records or bytes"
            raise InputError(problem, where=path, remedy="A cell is a number or a text")
        if column.physical_type == "BYTE_ARRAY":
            texts.append(column.path)
    return texts


def _check_pages(content: mmap.mmap | bytes, metadata: pq.FileMetaData, path: Path) -> None:
    """Refuse what is too large by the pages, whose headers pyarrow goes by."""
    size = n_pages = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for k in range(metadata.num_columns):
            for unpacked, encoding in _pages(content, group.column(k)):
                size, n_pages = size + unpacked, n_pages + 1
                check_bytes(size, path, "unpacks to at least")
                if n_pages > MAX_PAGES:
                    problem = f"it has more than {MAX_PAGES:,} pages"
                    raise InputError(problem, where=path, remedy="write it with larger ones")
                if encoding == _DELTA_BYTE_ARRAY:
                    problem = f"column {group.column(k).path_in_schema!r} is in DELTA_BYTE_ARRAY"
                    remedy = "write it in a plain or dictionary encoding"
                    raise InputError(f"{problem}, which is not read", where=path, remedy=remedy)


def _pages(
    content: mmap.mmap | bytes, chunk: pq.ColumnChunkMetaData
) -> Iterator[tuple[int, int | None]]:
    """Yield the unpacked size and the encoding of the pages of a column, by their headers."""
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        starts.append(chunk.dictionary_page_offset)
    place = min(starts)
    end = place + chunk.total_compressed_size
    if not 4 <= place <= end <= len(content):
        raise _Damaged("a column lies outside of the file")
    while place < end:
        header, place = _struct(content, place)
        unpacked, packed = header.get(2), header.get(3)
        if not (type(unpacked) is type(packed) is int and min(unpacked, packed) >= 0):
            raise _Damaged("a page has no size")
        place += packed
        data, data_2 = header.get(5), header.get(8)
        encoding = data.get(2) if data else data_2.get(4) if data_2 else None
        yield unpacked, encoding


def _struct(content: mmap.mmap | bytes, place: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a structure, by number, and where it ends.

    Of the compact protocol, what page headers have: flags, whole numbers, bytes and structures.
    """
    if depth > 4:  # of the format's own, the deepest are the statistics in a header of data
        raise _Damaged("a page header is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    try:
        while kind := content[place]:
            place += 1
            step, kind = kind >> 4, kind & 15
            if step:
                number += step
            else:
                number, place = _integer(content, place)
            if kind in (1, 2):
                fields[number] = kind == 1
            elif kind in (4, 5, 6):
                fields[number], place = _integer(content, place)
            elif kind == 8:
                length, place = _varint(content, place)
                place += length
            elif kind == 12:
                fields[number], place = _struct(content, place, depth + 1)
            else:
                raise _Damaged("a page header has a field of an unknown kind")
    except IndexError:
        raise _Damaged("a page lies outside of the file") from None
    return fields, place + 1


def _varint(content: mmap.mmap | bytes, place: int) -> tuple[int, int]:
    value = 0
    for k in range(10):  # 64 bits, seven in a byte
        byte = content[place + k]
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value, place + k + 1
    raise _Damaged("a page header has a number of more than 64 bits")


def _integer(content: mmap.mmap | bytes, place: int) -> tuple[int, int]:
    value, place = _varint(content, place)
    return value >> 1 ^ -(value & 1), place


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return the columns as pandas has them, those first that were an index."""
    import pyarrow as pa

    names = table.column_names
    if len(set(names)) < len(names):
        raise _Damaged("two columns have one name")
    columns = {}
    for name, column in zip(names, table.columns, strict=True):
        is_text = pa.types.is_dictionary(column.type)
        columns[name] = _shared(column) if is_text else column.to_pandas().reset_index(drop=True)
    index = [name for name in _index_of(table) if name in columns]
    frame = pd.DataFrame(columns, columns=[*index, *(name for name in names if name not in index)])
    unnamed = [name for name in index if re.fullmatch(r"__index_level_\d+__", name)]
    called = ["index"] if len(index) == 1 else [f"level_{k}" for k in range(len(unnamed))]
    return frame.rename(columns=dict(zip(unnamed, called, strict=False)))


def _shared(column: pa.ChunkedArray) -> pd.Series:
    """Return texts, each of the different ones an object that all of its cells share."""
    parts = [np.zeros(0, object)]
    for chunk in column.chunks:
        texts = np.array([*chunk.dictionary.to_pylist(), None], object)
        parts.append(texts[chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    return pd.Series(np.concatenate(parts), dtype=object)


def _index_of(table: pa.Table) -> list[str]:
    """Return the columns that were the index of a pandas frame, as far as the file says so."""
    try:
        said = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
        return [name for name in said["index_columns"] if isinstance(name, str)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
