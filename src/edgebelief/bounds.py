"""How much is read from a file, whatever its format, and what a file must be.

Compressed formats hold a thousand times their size and more, and state how much: that is compared
with these bounds before anything is unpacked, and so is what then comes out.
"""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from .errors import InputError, legible

# Of a file, on the disk and unpacked: as much as in a model file (268 MB).
MAX_BYTES = 2**28
# Of a table, or a matrix made of a file: one of 4,096 nodes; 1,000 nodes with 16,000 signals. As
# numbers they take 134 MB; as the texts that a CSV file holds, some 70 bytes each, 1.2 GB.
MAX_CELLS = 2**24

_INSTEAD = "read it in Python, and pass an array or a data frame of what is needed"


def check_file(path: str | Path, otherwise: str = "") -> None:
    """Refuse what is no file, or is larger than any that is read; `otherwise` says what is wanted.

    Examples
    --------
    >>> from edgebelief.bounds import check_file
    >>> check_file("nowhere.csv")
    Traceback (most recent call last):
    FileNotFoundError: nowhere.csv: no such file.
    """
    path = Path(path)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the name
        raise FileNotFoundError(legible(f"{path}: no such file{otherwise}.")) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        problem = "a symbolic link that leads to itself"
        raise InputError(problem, where=path, remedy="give the file itself") from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device, pipe or socket"
        raise FileNotFoundError(f"{path}: is {kind}{otherwise}.")
    check_bytes(status.st_size, path)


def check_bytes(size: int, path: str | Path, what: str = "has", most: int = MAX_BYTES) -> None:
    """Refuse a file of too many bytes, on the disk or unpacked."""
    if size > most:
        problem = f"{what} {size:,} bytes; at most {most:,} are read from such a file"
        raise InputError(problem, where=path, remedy=_INSTEAD)


def check_cells(n_cells: int, path: str | Path, what: str = "has") -> None:
    """Refuse a table, or a matrix that is made of a file, of more than `MAX_CELLS`."""
    if n_cells > MAX_CELLS:
        problem = f"{what} {n_cells:,} cells; at most {MAX_CELLS:,} are read from a file"
        raise InputError(problem, where=path, remedy=_INSTEAD)
