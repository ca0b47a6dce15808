"""One graph as matrices: distances, edge probabilities, their uncertainty, and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..belief.predict import EdgeBelief
from ..data.dataset import GraphRecord
from .style import INK, PALE, AxesLike, axes_for

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

# With at most this many nodes, their names are legible beside a matrix.
NAMED = 24


@dataclass(frozen=True)
class EdgesDisplay:
    """Distances, mean belief, its standard deviation, and the labels of one graph, as matrices.

    The epistemic standard deviation is shown by default; the total is sqrt(p(1-p)), which can be
    read off the mean.

    Parameters
    ----------
    record : GraphRecord
        A graph of a data set, ``data[0]``.
    belief : EdgeBelief
        The belief about the same graph, ``predict(posterior, data)[0]``.
    spread : {"epistemic", "total", "aleatoric"}

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief import EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.plots import EdgesDisplay
    >>> data = GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, np.nan]], [["ada", "bob", "cy"]])
    >>> belief = EdgeBelief.of([0.9, 0.2, 0.1], [0.05, 0.1, 0.02])
    >>> panels = EdgesDisplay(data[0], belief).plot()
    """

    record: GraphRecord
    belief: EdgeBelief
    spread: str = "epistemic"

    @property
    def panels(self) -> dict[str, Float[np.ndarray, "nodes nodes"]]:
        """The symmetric matrices by title; NaN on the diagonal and where the label is unknown."""
        support = self.record.support
        shown = {
            "distance": self.record.e,
            "belief (mean)": np.asarray(self.belief.mean, float),
            f"{self.spread} sd": np.asarray(getattr(self.belief, f"{self.spread}_sd"), float),
            "label": np.where(self.record.known, self.record.a, np.nan),
        }
        diagonal = np.where(np.eye(support.n_nodes, dtype=bool), np.nan, 0.0)
        return {title: support.to_matrix(values) + diagonal for title, values in shown.items()}

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw on four axes (new ones by default), and return them."""
        n_nodes = len(self.record.names)
        named = n_nodes <= NAMED and self.record.names != tuple(map(str, range(n_nodes)))
        axes = axes_for(axes, 2, 2, (10.5, 9))
        settings: tuple[dict[str, Any], ...] = (
            {"cmap": "cividis"},
            {"cmap": "YlGnBu", "vmin": 0, "vmax": 1},
            {"cmap": "YlOrBr", "vmin": 0},
            {"cmap": _colours("#f4f6f7", INK), "vmin": 0, "vmax": 1},
        )
        for axis, (title, matrix), setting in zip(axes, self.panels.items(), settings, strict=True):
            if title == "label" and not self.record.known.all():
                title = "label (grey: unknown)"
                unknown = np.isnan(matrix) & ~np.eye(n_nodes, dtype=bool)
                axis.imshow(np.where(unknown, 1.0, np.nan), cmap=_colours(PALE))
            picture = axis.imshow(np.ma.masked_invalid(matrix), interpolation="nearest", **setting)
            bar = axis.figure.colorbar(picture, ax=axis, shrink=0.8)
            if title.startswith("label"):
                bar.set_ticks([0.25, 0.75], labels=["no edge", "edge"])
            axis.set_title(title)
            if named:
                axis.set_xticks(range(n_nodes), self.record.names, rotation=90, fontsize=9)
                axis.set_yticks(range(n_nodes), self.record.names, fontsize=9)
            else:
                axis.set_xlabel("node")
        return axes


def _colours(*colours: str) -> ListedColormap:
    from matplotlib.colors import ListedColormap

    return ListedColormap(colours)
