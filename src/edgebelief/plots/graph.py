"""A drawing of one graph, with each edge as wide and opaque as it is probable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from jaxtyping import Float
from scipy.sparse import diags_array, eye_array

from ..belief.predict import EdgeBelief
from ..data.dataset import GraphRecord
from .style import BLUE, INK, ORANGE, PALE, Axes, axes_for

# With at most this many nodes, their names are legible.
NAMED = 40
# With more, springs take minutes.
MOST_SPRINGS = 1500


@dataclass(frozen=True)
class GraphDisplay:
    """A graph whose edges are as wide and opaque as they are probable, coloured by label.

    Parameters
    ----------
    record, belief
        See `EdgesDisplay`.
    least : float
        The smallest probability of an edge that is drawn; labelled edges are always drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief import EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.plots import GraphDisplay
    >>> data = GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, np.nan]], [["ada", "bob", "cy"]])
    >>> display = GraphDisplay(data[0], EdgeBelief.of([0.9, 0.4, 0.7]))
    >>> display.graph.edges["bob", "cy"]
    {'belief': 0.7, 'kind': 'believed, no label'}
    >>> axis = display.plot()
    """

    record: GraphRecord
    belief: EdgeBelief
    least: float = 0.1

    @cached_property
    def graph(self) -> nx.Graph:
        """The drawn edges as a NetworkX graph, with attributes `belief` and `kind` (the legend)."""
        graph = nx.Graph()
        graph.add_nodes_from(self.record.names)
        rows, cols = self.record.support.endpoints
        mean, names = np.asarray(self.belief.mean, float), self.record.names
        for k in map(int, np.flatnonzero((mean >= self.least) | (self.record.a > 0))):
            pair = names[rows[k]], names[cols[k]]
            graph.add_edge(*pair, belief=float(mean[k]), kind=self._kind(k))
        return graph

    def _kind(self, k: int) -> str:
        if not self.record.known[k]:
            return "believed, no label"
        if self.record.a[k] == 0:
            return "believed, labelled no edge"
        return "believed, labelled edge" if self.belief.mean[k] >= self.least else "missed"

    @cached_property
    def positions(self) -> dict[str, Float[np.ndarray, " 2"]]:
        """The positions of the nodes: close to each other where an edge is probable."""
        if len(self.record.names) > MOST_SPRINGS:
            return self._spectral()
        if len(self.record.names) > 100:  # the better layout is slow for so many
            return nx.spring_layout(self.graph, weight="belief", seed=0, iterations=100)
        # Of length 1/belief, at most 5 so that no component is far away.
        lengths = 1 / np.maximum(np.asarray(self.belief.mean, float), 1 / 5)
        matrix, names = self.record.support.to_matrix(lengths), dict(enumerate(self.record.names))
        pairs = nx.relabel_nodes(nx.from_numpy_array(matrix, edge_attr="length"), names)
        return nx.kamada_kawai_layout(pairs, weight="length")

    def _spectral(self) -> dict[str, Float[np.ndarray, " 2"]]:
        """Return slow eigenvectors of the walk along edges, as ranks: nodes spread evenly."""
        support, n_nodes = self.record.support, len(self.record.names)
        w = support.to_sparse(np.asarray(self.belief.mean, float) + 1e-6)
        root = np.sqrt(w.sum(0))
        walk = diags_array(1 / root) @ w @ diags_array(1 / root) + eye_array(n_nodes)
        start = np.random.default_rng(0).normal(size=(n_nodes, 6))
        start[:, 0] = root  # the constant one, known exactly
        for _ in range(200):
            start, _ = np.linalg.qr(walk @ start)
        ranks = np.argsort(np.argsort(start[:, 1:3] / root[:, None], axis=0), axis=0)
        return dict(zip(self.record.names, ranks / n_nodes, strict=True))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (a new axis by default), and return it."""
        (axis,) = axes_for(ax, 1, 1, (7, 6.4))
        graph, positions = self.graph, self.positions
        widest = 3 * min(1.0, np.sqrt(200 / max(graph.number_of_edges(), 1)))
        for kind, color, style in (
            ("missed", PALE, (0, (2, 2))),
            ("believed, no label", INK, "solid"),
            ("believed, labelled edge", BLUE, "solid"),
            ("believed, labelled no edge", ORANGE, "solid"),
        ):
            drawn = {(i, j): d["belief"] for i, j, d in graph.edges(data=True) if d["kind"] == kind}
            if not drawn:
                continue
            firm = np.full(len(drawn), 0.5) if kind == "missed" else np.array([*drawn.values()])
            nx.draw_networkx_edges(
                graph, positions, ax=axis, edgelist=list(drawn), edge_color=color, style=style,
                width=(0.4 + widest * firm).tolist(), alpha=(0.15 + 0.85 * firm).tolist(),
            )  # fmt: skip
            axis.plot([], [], color=color, lw=2.5, ls=style, label=f"{kind} ({len(drawn)})")
        longest = max(map(len, self.record.names))
        named = len(self.record.names) <= NAMED
        size = 60 if not named or longest > 6 else 110 + 80 * longest  # names of 6 fit a node
        nx.draw_networkx_nodes(
            graph, positions, ax=axis, node_size=size, node_color="white",
            edgecolors=INK, linewidths=1.0,
        )  # fmt: skip
        if named:
            away = 0.05 * np.ptp([y for _, y in positions.values()]) if longest > 6 else 0.0
            nx.draw_networkx_labels(
                graph, {node: (x, y + away) for node, (x, y) in positions.items()}, ax=axis,
                font_size=8, font_color=INK,
                bbox={"color": "white", "alpha": 0.75, "pad": 0.4} if longest > 6 else None,
            )  # fmt: skip
        axis.set_axis_off()
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2, frameon=False)
        return axis
