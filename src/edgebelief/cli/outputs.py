"""What commands write: never over a file unless told to, and never half of one."""

from __future__ import annotations

import re
from collections.abc import Callable
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

# What XML 1.0 cannot hold.
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


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
