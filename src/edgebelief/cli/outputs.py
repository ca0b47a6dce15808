"""What commands write: never over a file unless told to, and never half of one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from ..atomic import replacing
from ..data.tables import write_table
from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGES = (".csv", ".parquet", ".graphml", ".npz")
TABLES = (".csv", ".parquet")
PICTURES = (".png", ".svg", ".pdf")
# What XML 1.0 cannot hold.
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def check_target(
    path: Path, force: bool, suffixes: Sequence[str], read: Sequence[Path] = ()
) -> None:
    """Refuse, before any work, what may not be written; `read` is what the command reads."""
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


def need_parquet(path: Path) -> None:
    """Refuse Parquet where pyarrow, an extra, is not installed."""
    if find_spec("pyarrow") is None:
        raise ImportError(
            f"{path}: Parquet needs pyarrow: pip install 'edgebelief[data]'; or use .csv."
        )


def write_edge_table(path: Path, table: pd.DataFrame, graph: nx.Graph) -> None:
    """Write a table of edges in the format of the path's suffix; in GraphML, the graph."""
    if path.suffix.lower() == ".graphml":
        for name in graph:
            if _NOT_XML.search(str(name)):
                raise InputError(f"{path}: GraphML cannot hold the node name {name!r}; use .csv.")
        with replacing(path) as temporary:
            nx.write_graphml_xml(graph, temporary)
    elif path.suffix.lower() == ".npz":
        types = {"source": str, "target": str}
        columns: dict[str, Any] = {n: table[n].to_numpy(types.get(n)) for n in table.columns}
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **columns)
    else:
        write_table(path, table)


def save_picture(out: Path, draw: Callable[[], Figure]) -> None:
    """Write the figure that `draw` makes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = draw()
    with replacing(out) as temporary:
        figure.savefig(temporary, dpi=140)
    plt.close(figure)
