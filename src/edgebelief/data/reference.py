"""Reference: summaries of the graphs that a model was fitted to, to compare new graphs with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from threadpoolctl import threadpool_limits

from ..threads import Workers
from .dataset import GraphDataset, GraphRecord
from .summaries import OF_DISTANCES, SMALL, of_distances

SCALE = "scale"
# What each statistic is, in words.
MEANINGS = {**OF_DISTANCES, SCALE: "median distance, logarithm"}
# Below five nodes the quantiles of pairs and of eigenvalues are single pairs and eigenvalues; above
# a thousand an eigendecomposition takes many seconds.
FEWEST_NODES, MOST_NODES = 5, 1000
# At most so many graphs are summarised at once: more would hardly sharpen a p-value, and each of 20
# nodes takes a millisecond.
MOST_GRAPHS = 200
# And the cubes of their numbers of nodes add up to no more than that of so many graphs of 1000
# nodes, each of which takes half a second: ten in a fit, which takes minutes, one in a prediction.
OF_FIT, OF_PREDICTION = 1e10, 1e9


@dataclass(frozen=True)
class Reference:
    """Summaries of the graphs of a data set.

    Parameters
    ----------
    names : tuple of str
        The names of the statistics.
    n_nodes : tuple of int
        The number of nodes of each graph.
    values : tuple of tuples of float
        The statistics of each graph.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.data.reference import Reference
    >>> graphs = GraphDataset.sample(0, ErdosRenyi(0.4), 3, n_nodes=8)
    >>> of_graphs = Reference.of(graphs, range(3))
    >>> of_graphs.n_nodes, of_graphs.names[-1], of_graphs.array.shape
    ((8, 8, 8), 'scale', (3, 15))
    """

    names: tuple[str, ...] = ()
    n_nodes: tuple[int, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(cls, data: GraphDataset, indices: Iterable[int]) -> Reference:
        """Summarise some graphs of a data set."""
        records = [data[t] for t in indices]
        # Cores are busy with graphs; libraries that use all of them for each would wait for each
        # other.
        with Workers() as workers, threadpool_limits(1):
            values = [tuple(each.tolist()) for each in workers.map(_statistics, records)]
        return cls(tuple(MEANINGS), tuple(len(r.names) for r in records), tuple(values))

    @property
    def array(self) -> Float[np.ndarray, "graphs statistics"]:
        return np.array(self.values, float).reshape(len(self.n_nodes), len(self.names))

    def __len__(self) -> int:
        return len(self.n_nodes)


def has_size(n_nodes: Sequence[int]) -> Bool[np.ndarray, " graphs"]:
    """Return which graphs have a number of nodes for which they are summarised."""
    n = np.asarray(n_nodes)
    return (n >= FEWEST_NODES) & (n <= MOST_NODES)


def affordable(
    indices: Int[np.ndarray, " graphs"], n_nodes: Sequence[int], most_work: float = OF_PREDICTION
) -> Int[np.ndarray, " some"]:
    """Return the graphs at these indices, or evenly spaced ones of them if they are too many."""
    if not len(indices):
        return indices
    work = float((np.asarray(n_nodes, float)[indices] ** 3).mean())
    most = int(min(MOST_GRAPHS, max(most_work // work, 1)))
    if len(indices) <= most:
        return indices
    return indices[np.linspace(0, len(indices) - 1, most).round().astype(int)]


def _statistics(record: GraphRecord) -> Float[np.ndarray, " statistics"]:
    middle = max(float(np.median(record.e)), SMALL**2)
    return np.append(of_distances(record.distance_matrix()), np.log(middle))
