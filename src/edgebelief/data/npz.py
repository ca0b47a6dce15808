"""Arrays of npz files, of which no more is unpacked than the bounds allow.

An npz file is a zip archive with a .npy file for each array. A megabyte can hold gigabytes of
zeros. So an array is described first, by its own header; then it is read, if it is wanted, for just
as many bytes as its header and the archive both state.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ..bounds import check_bytes, check_file
from ..errors import InputError

# The list of arrays at the end of the archive, some 100 bytes for each; Python makes objects of it.
MAX_LIST_BYTES = 2**16
_PIECE = 2**20  # of an array, read at once


class _Damaged(ValueError):
    """What is no array, or not the array that was stated."""


class Described(NamedTuple):
    """An array as its header describes it."""

    dtype: np.dtype
    shape: tuple[int, ...]
    in_columns: bool

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class NpzFile:
    """The arrays of an npz file: `described` without a look at their contents, read by `array`."""

    def __init__(self, archive: zipfile.ZipFile, path: Path):
        self._archive, self._path, self._n_bytes = archive, path, 0
        self.described: dict[str, Described] = {}
        for name in archive.namelist():
            if not name.endswith(".npy") or name.removesuffix(".npy") in self.described:
                raise _Damaged("a member is no array, or there twice")
            with self._opened(name) as (_, header):
                self.described[name.removesuffix(".npy")] = header

    def array(self, name: str) -> np.ndarray:
        """Return an array; all that are read may have `MAX_BYTES` together."""
        with self._opened(f"{name}.npy") as (file, header):
            self._n_bytes += header.n_bytes
            check_bytes(self._n_bytes, self._path, f"unpacks, up to its array {name!r}, to")
            content = bytearray()
            while len(content) < header.n_bytes:
                piece = file.read(min(_PIECE, header.n_bytes - len(content)))
                if not piece:
                    raise _Damaged("an array ends early")
                content += piece
            if file.read(1):  # and at the end of a member its checksum is compared
                raise _Damaged("an array goes on")
        return np.ndarray(
            header.shape, header.dtype, content, order="F" if header.in_columns else "C"
        )

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], Described]]:
        """Open a member behind its header."""
        entry = self._archive.getinfo(name)
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _Damaged("it is packed as numpy packs none")
        with self._archive.open(entry) as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise _Damaged("an array has a format that is not read")
            first, second = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
            read = first if version == (1, 0) else second
            shape, in_columns, dtype = read(file)
            header = Described(dtype, shape, in_columns)
            if dtype.hasobject or min(shape, default=0) < 0:
                raise _Damaged("an array holds Python objects")
            if file.tell() + header.n_bytes != entry.file_size:
                raise _Damaged("an array has not the size that it states")
            yield file, header


@contextmanager
def open_npz(path: str | Path) -> Iterator[NpzFile]:
    """Open an npz file; whatever is wrong with it is an `InputError`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from edgebelief.data.npz import open_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "arrays.npz")
    ...     np.savez_compressed(path, zeros=np.zeros(10**6), ones=np.ones(2))
    ...     with open_npz(path) as file:
    ...         print(file.described["zeros"].n_bytes, file.array("ones"))
    8000000 [1. 1.]
    """
    check_file(path)
    with open(path, "rb") as raw:
        try:
            _check_list(raw)
            with zipfile.ZipFile(raw) as archive:
                yield NpzFile(archive, Path(path))
        except (InputError, MemoryError):
            raise
        except Exception:  # zipfile, zlib and numpy have a dozen of their own
            problem = "not an npz file, or damaged, or with Python objects, which are not read."
            raise InputError(problem, where=path) from None


def _check_list(file: IO[bytes]) -> None:
    """Refuse an archive whose list of members is too long, as it would be read at once.

    The record at its end says so. zipfile takes it for the last 22 bytes where these look like it.
    """
    size = file.seek(0, 2)
    file.seek(max(size - 42, 0))
    end = file.read()
    record, before = end[-22:], end[:-22]
    if record[:4] != b"PK\x05\x06" or record[-2:] != b"\x00\x00" or before[:4] == b"PK\x06\x07":
        raise _Damaged("its end is not what numpy writes")
    if int.from_bytes(record[12:16], "little") > MAX_LIST_BYTES:
        raise _Damaged("it has too many members")
    file.seek(0)
