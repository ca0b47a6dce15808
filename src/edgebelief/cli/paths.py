"""What can be checked before any work: files, and options that do not go together.

A command that cannot run says so in a fraction of a second, before it waits for NumPy, pandas and
JAX. So nothing here imports them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..bounds import check_file
from ..errors import InputError
from .session import Misused

EDGES = (".csv", ".parquet", ".graphml", ".npz")
TABLES = (".csv", ".parquet")
READ_TABLES = (".csv", ".tsv", ".txt", ".parquet")
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
# What is said beside "no such file" of --nodes, which may have been meant as a name.
NOT_NODES = "; --nodes is a file with node names"

# What is said where GraphML is asked for of several tables, or of a data set of several graphs.
ONE_GRAPH = "GraphML holds one graph; use .csv, .parquet or .npz for several."


def check_target(
    path: Path, force: bool, suffixes: Sequence[str], read: Sequence[Path] = ()
) -> None:
    """Refuse what may not be written; `read` is what the command reads."""
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{path}: must end in {wanted}, not {path.suffix!r}.")
    if path.suffix.lower() == ".parquet":
        need_parquet(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file.")
    target = os.path.realpath(path)  # not `resolve`, which raises RuntimeError in a loop
    if os.path.islink(target):
        raise InputError(f"{path}: is a symbolic link that leads to itself; give another name.")
    if any(target == os.path.realpath(other) for other in read):
        raise InputError(f"{path}: is read by this command; write to another file.")
    if path.exists() and not force:
        raise InputError(f"{path}: is there already; --force replaces it.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: nothing can be written in the folder {path.parent}.")


def check_folder(path: Path, force: bool) -> None:
    """Refuse what can be no folder of results; whose it is the job finds out."""
    if path.suffix.lower() in (*EDGES, ".eb"):
        raise Misused(f"{path}: of a folder of graphs the results are a folder; name one.")
    if force:
        raise Misused(
            "--force replaces a file; results in a folder go on where they ended. To begin anew, "
            "remove the folder."
        )
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; the results are a folder.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first.")
    if not os.access(path if path.is_dir() else path.parent, os.W_OK):
        raise InputError(f"{path}: nothing can be written there.")


def need_parquet(path: Path) -> None:
    """Refuse Parquet where pyarrow, an extra, is not installed."""
    if find_spec("pyarrow") is None:
        raise ImportError(
            f"{path}: Parquet needs pyarrow: pip install 'edgebelief[data]'; or use .csv."
        )


def check_readable(path: Path) -> None:
    """Refuse what is no file, or of no kind that edgebelief knows."""
    check_file(path)
    if path.suffix.lower() not in (".eb", ".npz", ".graphml", ".json", *READ_TABLES):
        raise InputError(
            f"{path}: of no known kind; edgebelief reads a model (.eb), a data set (.npz), a table "
            f"({', '.join(READ_TABLES)}), a graph (.graphml) or a prior (.json)."
        )


def split_key(source: str) -> tuple[Path, str | None]:
    """Return the path in FILE.json:KEY, and the key."""
    path = Path(source)
    if path.exists() or ".json:" not in source:
        return path, None
    before, key = source.split(".json:", 1)
    return Path(f"{before}.json"), key


def check_kinds(
    metric: str, transpose: bool, groups: Path | None = None, weighted: bool = False
) -> None:
    """Refuse what does not go with the distances, or the labels, that a model wants."""
    if transpose and metric == "precomputed":
        raise Misused("--transpose is for signals; distances are the same on their side.")
    if groups is not None and weighted:
        raise Misused("--groups says which nodes are joined, not by how much; give --labels.")


def check_at_most_one(options: Mapping[str, object]) -> None:
    """Refuse two options of which each says the same thing in its own way."""
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if len(flags) > 1:
        raise Misused(f"give one of {' and '.join(flags)}, not both.")
