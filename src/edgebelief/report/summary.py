"""The numbers that summarise a set of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..belief.predict import EdgeBelief, Predictions
from ..data.dataset import GraphRecord

# A pair is believed to be an edge if its probability is above one half, near certain from
# NEAR_CERTAIN on, and uncertain strictly between the DOUBTFUL limits. A table has LISTED pairs.
NEAR_CERTAIN, DOUBTFUL, LISTED = 0.95, (0.2, 0.8), 10


class Pair(NamedTuple):
    """A candidate edge, with its belief and its label."""

    graph: int
    """The index of its graph in the data set."""
    edge: int
    """Its index among the pairs of its graph."""
    source: str
    target: str
    distance: float
    mean: float
    total_sd: float
    epistemic_sd: float
    label: bool | None
    """None if unknown."""


class Doubtful(NamedTuple):
    """The node whose pairs have most of the variance of its graph."""

    graph: int
    name: str
    share: float
    """The variance of the node's pairs over that of all pairs of its graph."""
    even: float
    """The share if the variance were spread evenly over the nodes."""


@dataclass(frozen=True)
class Summary:
    """Counts over all pairs of all graphs; expectations are under the predicted probabilities."""

    n_graphs: int
    n_nodes: tuple[int, int]
    """The fewest and the most nodes of a graph."""
    n_pairs: int
    n_believed: int
    n_near_certain: int
    n_doubtful: int
    expected_wrong: float
    """The expected number of misclassified pairs, sum of min(p, 1 - p)."""
    epistemic_share: float
    """The epistemic variance over the total variance of the edges: what labels could remove."""
    wrong_by_graph: tuple[float, ...]
    """`expected_wrong` of each graph, over the number of its pairs."""
    doubtful_node: Doubtful | None
    """None for two nodes, where the variance is tiny, or where it is spread evenly."""
    firmest: tuple[Pair, ...]
    """The most probable edges, with a probability of one half or more."""
    weakest: tuple[Pair, ...]
    """The pairs with a probability nearest to one half."""

    @classmethod
    def of(cls, predictions: Predictions) -> Summary:
        data = predictions.data
        mean = np.concatenate([belief.mean for belief in predictions])
        total = np.concatenate([belief.total_sd for belief in predictions])
        epistemic = np.concatenate([belief.epistemic_sd for belief in predictions])
        logit = np.concatenate([belief.logit for belief in predictions])
        wrong = np.minimum(mean, 1 - mean)
        by_graph = tuple(float(np.minimum(b.mean, 1 - b.mean).mean()) for b in predictions)
        variance = float((total**2).sum())
        starts = np.cumsum([0, *(record.e.size for record in data)])

        def pairs(order: np.ndarray) -> tuple[Pair, ...]:
            graphs = np.searchsorted(starts, order, side="right") - 1
            return tuple(
                _pair(int(t), data[int(t)], predictions[int(t)], int(k - starts[t]))
                for t, k in zip(graphs, order, strict=True)
            )

        # Equally probable edges are ordered by epistemic variance, then as they come.
        firmest = np.lexsort((epistemic, -logit))[:LISTED]
        weakest = np.lexsort((-epistemic, np.round(np.abs(mean - 0.5), 9)))[:LISTED]
        worst = int(np.argmax(by_graph))
        return cls(
            n_graphs=len(data),
            n_nodes=(min(data.n_nodes), max(data.n_nodes)),
            n_pairs=mean.size,
            n_believed=int((mean > 0.5).sum()),
            n_near_certain=int((mean >= NEAR_CERTAIN).sum()),
            n_doubtful=int(((mean > DOUBTFUL[0]) & (mean < DOUBTFUL[1])).sum()),
            expected_wrong=float(wrong.sum()),
            epistemic_share=float((epistemic**2).sum()) / variance if variance else 0.0,
            wrong_by_graph=by_graph,
            doubtful_node=_doubtful_node(worst, data[worst], predictions[worst]),
            firmest=pairs(firmest[mean[firmest] >= 0.5]),
            weakest=pairs(weakest),
        )


def _pair(graph: int, record: GraphRecord, belief: EdgeBelief, k: int) -> Pair:
    source, target = (record.names[end[k]] for end in record.support.endpoints)
    beliefs = (belief.mean, belief.total_sd, belief.epistemic_sd)
    distance, mean, total, epistemic = (float(x[k]) for x in (record.e, *beliefs))
    label = bool(record.a[k]) if record.known[k] else None
    return Pair(graph, k, source, target, distance, mean, total, epistemic, label)


def _doubtful_node(graph: int, record: GraphRecord, belief: EdgeBelief) -> Doubtful | None:
    variance = np.asarray(belief.total_sd, float) ** 2
    total, n_nodes = variance.sum(), len(record.names)
    if n_nodes < 3 or total < 1e-6:
        return None
    shares = record.support.degrees(variance) / total
    most, even = int(np.argmax(shares)), 2 / n_nodes
    if shares[most] < 1.2 * even:
        return None
    return Doubtful(graph, record.names[most], float(shares[most]), even)
