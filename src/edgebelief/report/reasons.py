"""Why the listed edges have their probabilities: the parts that add up to their log odds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..belief.explain import explain_edges
from ..data.dataset import GraphDataset
from ..data.randomness import Key
from ..infer.posterior import Posterior
from .summary import Pair
from .words import number

# Descriptions of the parts that are not a curve of a feature.
PARTS = {
    "weight": "from the network",
    "slack": "how far the pair is from having a weight",
    "baseline": "the same for every pair",
}
# A table shows the LARGEST parts and the sum of the others. A part below LEAST is not a reason.
LARGEST, LEAST = 6, 0.005


class Part(NamedTuple):
    """One of the numbers that add up to the log odds."""

    name: str
    value: str
    """The value of its feature; a description if it has none."""
    contribution: float
    low: float
    """The lower end of its 90 % credible interval."""
    high: float
    share: float
    """Its size relative to that of the largest part, the length of its bar."""


class Reasons(NamedTuple):
    """The parts that raise and lower the log odds of one edge."""

    logit: float
    low: float
    high: float
    parts: tuple[Part, ...]
    """The largest parts, by size."""
    n_others: int
    others: float
    """The sum of the parts that are not listed."""

    @property
    def raised(self) -> Part | None:
        """The listed part that raises the log odds most."""
        return self._most(1)

    @property
    def lowered(self) -> Part | None:
        """The listed part that lowers them most; not the baseline, the same for every pair."""
        return self._most(-1)

    def _most(self, sign: int) -> Part | None:
        parts = [part for part in self.parts if part.name != "baseline"]
        best = max(parts, key=lambda part: sign * part.contribution, default=None)
        return best if best is not None and sign * best.contribution >= LEAST else None


def reasons(
    key: Key | int, posterior: Posterior, data: GraphDataset, pairs: Iterable[Pair], n: int
) -> dict[tuple[int, int], Reasons]:
    """Explain each pair from `n` draws; the result is by graph and index of the pair in it."""
    by_graph: dict[int, list[int]] = {}
    for graph, edge in sorted({(pair.graph, pair.edge) for pair in pairs}):
        by_graph.setdefault(graph, []).append(edge)
    most = max(map(len, by_graph.values()), default=0)
    reasons = {}
    for graph, edges in by_graph.items():
        padded = edges + edges[:1] * (most - len(edges))  # the same number, to compile once
        tables = explain_edges(key, posterior, data, padded, graph, n)
        for edge, table in zip(edges, tables, strict=False):
            reasons[graph, edge] = _reasons(posterior, table)
    return reasons


def _reasons(posterior: Posterior, table: pd.DataFrame) -> Reasons:
    levels = {term.name: term.curve.names for term in posterior.model.readout.terms}
    rows: list[Any] = list(table.itertuples(index=False))
    *parts, logit = rows
    parts.sort(key=lambda row: -abs(row.contribution))
    largest = max(abs(parts[0].contribution), 1e-300)
    # A single part left over is listed rather than called "1 others".
    shown = len(parts) if len(parts) <= LARGEST + 1 else LARGEST

    def part(row: Any) -> Part:
        value, share = _value(row, levels.get(row.part, ())), abs(row.contribution) / largest
        return Part(row.part, value, row.contribution, row.low, row.high, share)

    listed, others = tuple(map(part, parts[:shown])), sum(r.contribution for r in parts[shown:])
    whole = logit.contribution, logit.low, logit.high
    return Reasons(*whole, listed, len(parts) - shown, float(others))


def _value(row: Any, levels: tuple[str, ...]) -> str:
    """Return the value of a feature as text; for a category, the name of its level."""
    if np.isnan(row.value):
        return PARTS.get(row.part, "")
    return number(row.value) if not levels else levels[round(row.value)]
