"""What a learner says of graphs in which only some pairs may be edges, and of all other pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from ..belief import Predictions
from ..data.dataset import GraphDataset, GraphRecord
from ..edges import pairs_of

# The figure of a verdict: the share of all edges that are between pairs that are no candidates.
MISSED = "missed edges"
# Jeffreys' prior of a share: half an edge of either kind.
HALF = 0.5


class Missed(NamedTuple):
    """How many edges the search for candidates missed, in the labels of a fit."""

    among_candidates: float
    """The number of known edges between candidates."""
    n_labels: float
    """The number of known labels of other pairs; 0 if none was given."""
    n_edges: float
    """The number of edges among them."""

    @property
    def share(self) -> float:
        """The posterior mean of the share of all edges that are missed; NaN if nothing is known."""
        if not self.n_labels:
            return float("nan")
        return (self.n_edges + HALF) / (self.n_edges + self.among_candidates + 2 * HALF)

    def sentence(self) -> str:
        """Say what is taken for granted of pairs that are no candidates."""
        taken = "only near neighbours may be edges, and all other pairs are taken for none"
        if not self.n_labels:
            return f"{taken}; no label says how many edges that misses"
        total = self.n_edges + self.among_candidates
        share = self.n_edges / max(total, 1.0)
        return f"{taken}: that misses {self.n_edges:g} of {total:g} known edges ({share:.2%})"


def missed_by(data: GraphDataset, counts: Float[np.ndarray, " graphs"]) -> Missed | None:
    """Count edges that are no candidates, in graphs that count; None if all pairs are candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.edges import Restricted
    >>> from edgebelief.estimators.candidate_pairs import missed_by
    >>> path = Restricted.from_pairs([(0, 1), (1, 2)])
    >>> a = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    >>> data = GraphDataset([[1.0, 2.0]], [a], supports=[path])
    >>> missed_by(data, np.ones(1))
    Missed(among_candidates=2.0, n_labels=1.0, n_edges=1.0)
    """
    if all(record.candidates is None for record in data):
        return None
    total = np.zeros(3)
    for record, count in zip(data, counts, strict=True):
        if record.outside is not None:
            found = float(record.a[record.known].sum())
            total += float(count > 0) * np.array([found, *record.outside])
    return Missed(*total.tolist())


def outside_table(beliefs: Predictions, missed: float) -> pd.DataFrame:
    """Return how probable an edge is between pairs that are no candidates, a row per graph."""
    rows = []
    for t, (record, edges) in enumerate(zip(beliefs.data, beliefs, strict=True)):
        n_candidates = len(record.e)
        others = pairs_of(len(record.names)) - n_candidates
        expected = missed / (1 - missed) * float(edges.mean.sum()) if others else 0.0
        row = {"graph": t, "candidates": n_candidates, "others": others, "expected": expected}
        rows.append(row | {"probability": min(expected / others, 1.0) if others else 0.0})
    return pd.DataFrame(rows)


def as_matrix(record: GraphRecord, vector: Shaped[np.ndarray, " edges"]) -> Any:
    """Return a vector over the pairs as a matrix: a sparse one if only some pairs may be edges."""
    support = record.support
    return support.to_matrix(vector) if record.candidates is None else support.to_sparse(vector)
