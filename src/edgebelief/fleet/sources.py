"""Which files of a folder hold graphs, and how many nodes these have, by their headers alone.

Ten thousand files are planned in seconds, so nothing but the head of a file is read. A number of
nodes that is wrong (a table on its side, say) costs time, and changes no result.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..data.npz import open_npz
from ..errors import InputError

TABLES = (".csv", ".tsv", ".txt", ".parquet")
SUFFIXES = (*TABLES, ".npz", ".npy")
# Of a text file, what is read to count the columns: 10,000 names of 25 characters.
HEAD = 2**18


# Size and time of change (in nanoseconds) of each of some files.
Stamp = tuple[tuple[int, int], ...]


class Source(NamedTuple):
    """A file with a graph (an npz data set may hold several), and the files that go with it."""

    name: str
    """The name of the file in its folder, which is also what results call it."""
    files: Mapping[str, str]
    """Paths by what they hold: "data", and where there are some "labels" or "covariates"."""
    stamp: Stamp
    """Of each file."""
    n_nodes: int
    """Of the largest graph, as far as the header tells; 0 where it does not."""
    n_pairs: int
    """Pairs of nodes of all its graphs together."""

    @property
    def data(self) -> Path:
        """The file with the graph."""
        return Path(self.files["data"])

    def as_json(self) -> dict[str, Any]:
        """Return the source in JSON's types."""
        return self._replace(files=dict(self.files))._asdict()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Source:
        """Make a source of what `as_json` returned."""
        stamp = tuple((size, time) for size, time in content["stamp"])
        return cls(**{**content, "stamp": stamp})


class Listing(NamedTuple):
    """What a folder holds."""

    sources: tuple[Source, ...]
    """In the order of their names."""
    left_out: tuple[str, ...]
    """The names of files of other kinds, and of folders; hidden ones are not listed."""


def list_folder(folder: Path, companions: Mapping[str, Path] | None = None) -> Listing:
    r"""List the graphs in a folder, with the files of the same stem in the companions' folders.

    Folders within it are not looked into, and hidden files are left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgebelief.fleet.sources import list_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "ada.csv").write_text("a,b,c\n1,2,3\n")
    ...     _ = pathlib.Path(folder, "notes.md").write_text("of Monday")
    ...     listing = list_folder(pathlib.Path(folder))
    >>> [(source.name, source.n_nodes) for source in listing.sources], listing.left_out
    ([('ada.csv', 3)], ('notes.md',))
    """
    beside = {what: _by_name(Path(place)) for what, place in (companions or {}).items()}
    sources, left_out = [], []
    for name in sorted(os.listdir(folder)):
        path = Path(os.path.abspath(folder), name)
        if name.startswith("."):
            continue
        if path.suffix.lower() not in SUFFIXES or path.is_dir():
            left_out.append(name)
            continue
        files = {"data": str(path)}
        for what, paths in beside.items():
            with suppress(KeyError):
                files[what] = _companion(name, what, paths)
        n_nodes, n_pairs = size_of(path)
        sources.append(Source(name, files, stamp_of(files), n_nodes, n_pairs))
    return Listing(tuple(sources), tuple(left_out))


def stamp_of(files: Mapping[str, str]) -> Stamp:
    """Return size and time of change of each file; (-1, -1) of one that is not there."""
    stamps = []
    for path in files.values():
        try:
            status = os.stat(path)
        except OSError:
            stamps.append((-1, -1))
        else:
            stamps.append((status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def _by_name(folder: Path) -> dict[str, list[str]]:
    """Return the paths in a folder by their whole names and by their stems."""
    paths: dict[str, list[str]] = {}
    for name in sorted(os.listdir(folder)):
        if not name.startswith("."):
            path = os.path.abspath(folder / name)
            for key in {name, Path(name).stem}:
                paths.setdefault(key, []).append(path)
    return paths


def _companion(name: str, what: str, paths: Mapping[str, list[str]]) -> str:
    """Return the file that goes with a graph: of the same name, else of the same stem."""
    same = paths[name] if name in paths else paths[Path(name).stem]
    if len(same) > 1:
        files = " and ".join(map(repr, same[:2]))
        raise InputError(f"which holds the {what} of {name!r}? There are {files}. Keep one.")
    return same[0]


def size_of(path: Path) -> tuple[int, int]:
    """Return the nodes of a file's largest graph and all its pairs by its header, or zeros.

    What cannot be read is found out, and reported, when the graph's turn comes.
    """
    with suppress(OSError, ValueError, ImportError, IndexError):
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return _of_data_set(path)
        if suffix == ".npy":
            return _of_array(path)
        n_nodes = _columns_of_parquet(path) if suffix == ".parquet" else _columns_of_text(path)
        return n_nodes, _pairs(n_nodes)
    return 0, 0


def _pairs(n_nodes: int) -> int:
    return n_nodes * (n_nodes - 1) // 2


def _columns_of_text(path: Path) -> int:
    with path.open("rb") as file:
        line = file.readline(HEAD)
    if not line.strip():
        return 0
    count = Counter(line)
    return 1 + max(count[ord(separator)] for separator in ",;\t")


def _columns_of_parquet(path: Path) -> int:
    import pyarrow.parquet as pq

    return len(pq.read_schema(path).names)


def _of_data_set(path: Path) -> tuple[int, int]:
    with open_npz(path) as file:
        sizes = [int(n) for n in file.array("n_nodes").ravel()]
    return max(sizes), sum(map(_pairs, sizes))


def _of_array(path: Path) -> tuple[int, int]:
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        first, second = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, _ = (first if version == (1, 0) else second)(file)
    n_nodes = int(shape[-1])
    return n_nodes, _pairs(n_nodes) * (int(shape[0]) if len(shape) == 3 else 1)
