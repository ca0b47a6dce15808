"""Why the listed edges are believed in as they are: what their log odds are the sum of."""

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

# What the parts are that are no curve of a feature.
PARTS = {
    "weight": "that the network gives it",
    "slack": "for what it lacks to have a weight",
    "baseline": "where every pair starts",
}
# Parts that a table shows; the rest are added up. What is less than this is no reason.
LARGEST, LEAST = 6, 0.005


class Part(NamedTuple):
    """One of the numbers that add up to the log odds."""

    name: str
    value: str
    """Of the feature that it is a curve of; else what it is."""
    contribution: float
    low: float
    """The ends of the interval that holds it with probability 0.9."""
    high: float
    share: float
    """Its size over that of the largest: how long its bar is."""


class Reasons(NamedTuple):
    """What raised and what lowered belief in one edge."""

    logit: float
    low: float
    high: float
    parts: tuple[Part, ...]
    """The largest, by size."""
    n_others: int
    others: float
    """What the parts that are not listed add up to."""

    @property
    def raised(self) -> Part | None:
        """What raised it most, of those listed."""
        return self._most(1)

    @property
    def lowered(self) -> Part | None:
        """What lowered it most; not the baseline, which is the same for every pair."""
        return self._most(-1)

    def _most(self, sign: int) -> Part | None:
        parts = [part for part in self.parts if part.name != "baseline"]
        best = max(parts, key=lambda part: sign * part.contribution, default=None)
        return best if best is not None and sign * best.contribution >= LEAST else None


def reasons(
    key: Key | int, posterior: Posterior, data: GraphDataset, pairs: Iterable[Pair], n: int
) -> dict[tuple[int, int], Reasons]:
    """For each pair, by its graph and its place among the pairs there, from `n` draws."""
    wanted: dict[int, list[int]] = {}
    for graph, edge in sorted({(pair.graph, pair.edge) for pair in pairs}):
        wanted.setdefault(graph, []).append(edge)
    most = max(map(len, wanted.values()), default=0)
    found = {}
    for graph, edges in wanted.items():
        filled = edges + edges[:1] * (most - len(edges))  # as many of each, to compile once
        tables = explain_edges(key, posterior, data, filled, graph, n)
        for edge, table in zip(edges, tables, strict=False):
            found[graph, edge] = _reasons(posterior, table)
    return found


def _reasons(posterior: Posterior, table: pd.DataFrame) -> Reasons:
    levels = {term.name: term.curve.names for term in posterior.model.readout.terms}
    rows: list[Any] = list(table.itertuples(index=False))
    *parts, logit = rows
    parts.sort(key=lambda row: -abs(row.contribution))
    largest = max(abs(parts[0].contribution), 1e-300)
    # Better one more row than a row for the only one left.
    shown = len(parts) if len(parts) <= LARGEST + 1 else LARGEST
    listed = tuple(
        Part(
            row.part,
            _value(row, levels.get(row.part, ())),
            row.contribution,
            row.low,
            row.high,
            abs(row.contribution) / largest,
        )
        for row in parts[:shown]
    )
    others = sum(row.contribution for row in parts[shown:])
    return Reasons(
        logit.contribution, logit.low, logit.high, listed, len(parts) - shown, float(others)
    )


def _value(row: Any, levels: tuple[str, ...]) -> str:
    """Of a category, the name of the level."""
    if np.isnan(row.value):
        return PARTS.get(row.part, "")
    return number(row.value) if not levels else levels[round(row.value)]
