"""The same models on the same graphs: the items on generalisation and on shifts share them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgebelief import metrics
from edgebelief.belief import predict
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    GraphDataset,
    RandomGeometric,
    distances,
    smooth_signals,
)

from .averages import mean_and_deviation
from .item import FAR, Answer, Row, Work
from .models import ADDITIVE, SCORES, fitted, moments, scores_on, thinned, timed, train_and_test

EXPECTED = "expected"
OTHERS = {
    "RG(1/2)": RandomGeometric(0.5),
    "ER(1/2)": ErdosRenyi(0.5),
    "BA(1)": BarabasiAlbert(1),
}


@dataclass(frozen=True)
class Contest:
    """The graphs and the settings of every model."""

    n_train: int = 50
    n_test: int = 100
    n_nodes: int = 20
    depth: int = 200
    signals: tuple[int, ...] = (10, 20, 100, 1000, 10000)
    n_draws: int = 400
    predict_with: int = 200
    """How many draws of chains predictions use."""


@dataclass(frozen=True)
class Contestants:
    """Which models compete, and how often."""

    seeds: int = 8
    """How often DPG is fitted, to graphs of our own."""
    additive_seeds: int = 3
    """How often the additive readout is fitted, to graphs of our own."""
    slow: tuple[str, ...] = ("PDS", "MIMO, 2", "MIMO", "MIMO, 8", "MIMO-E", "MIMO-E, 4")
    """Models fitted once, to the authors' graphs if these exist."""


FULL, EVERYONE = Contest(), Contestants()
SMALL = Contest(6, 6, 8, 10, signals=(10, 1000), n_draws=60, predict_with=50)
SOME = Contestants(2, 1, ("MIMO",))  # each further model takes half a minute to compile


class Entry(NamedTuple):
    """A model, the seed of its graphs (None: the authors' graphs), and the answer of `scored`."""

    name: str
    seed: int | None
    answer: Answer


def entries(work: Work) -> list[Entry]:
    """Return every model with its scores."""
    s, who = work.settings(FULL, SMALL), work.settings(EVERYONE, SOME)
    path = work.authors
    cases: list[tuple[str, int | None]] = [("DPG", seed) for seed in range(who.seeds)]
    cases += [(ADDITIVE, seed) for seed in range(who.additive_seeds)]
    cases += [(name, None) for name in ("DPG", ADDITIVE) if path]
    cases += [(name, None if path else 0) for name in who.slow]
    return [
        Entry(name, seed, work.once(scored, name, seed, s, using=(path,))) for name, seed in cases
    ]


def graphs(seed: int | None, s: Contest, path: Path | None) -> tuple[GraphDataset, GraphDataset]:
    """Return training and test graphs: our own of a seed, or without one the authors'."""
    return train_and_test(s.n_train, s.n_test, s.n_nodes, seed, path if seed is None else None)


def shifted(test: GraphDataset, signals: tuple[int, ...], key: int) -> dict[str, GraphDataset]:
    """Return the graphs with distances from fewer signals: the first of one set of signals."""
    by_number: dict[str, list[np.ndarray]] = {str(p): [] for p in signals}
    for t, record in enumerate(test):
        x = smooth_signals(100_000 * (key + 1) + t, record.label_matrix(), max(signals))
        for p in signals:
            by_number[str(p)].append(distances(x[:p]))
    a = [record.a for record in test]
    return {p: GraphDataset(e, a, n_signals=float(p)) for p, e in by_number.items()}


def others(seed: int | None, s: Contest) -> dict[str, GraphDataset]:
    """Sample test graphs from other ensembles."""
    key = 10_000 + (seed or 0)
    return {
        name: GraphDataset.sample(key + k, kind, s.n_test, s.n_nodes)
        for k, (name, kind) in enumerate(OTHERS.items())
    }


def scored(name: str, seed: int | None, s: Contest, path: Path | None) -> Answer:
    """Return a model's scores on every test set, its parameters, and its seconds."""
    train, test = graphs(seed, s, path)
    posterior, seconds = timed(fitted, name, train, s.depth, seed or 0, s.n_draws)
    fewer_draws = thinned(posterior, s.predict_with)
    tests = {EXPECTED: test, **shifted(test, s.signals, seed or 0), **others(seed, s)}
    predictions = predict(fewer_draws, test)
    curve = metrics.calibration_curve(predictions)
    return {
        "scores": scores_on(fewer_draws, tests),
        "per graph": metrics.nll(predictions).per_graph,
        "curve": {"confidence": curve.confidence, "accuracy": curve.accuracy, "count": curve.count},
        "parameters": {} if name.startswith(("MIMO", ADDITIVE)) else moments(posterior),
        "figures": dict(posterior.verdict.figures),
        "findings": list(posterior.verdict.names),
        "seconds": seconds,
    }


def matched(p: int, seed: int, s: Contest) -> dict[str, float]:
    """Return the scores of DPG trained and tested on distances from `p` signals."""
    train, test = (
        shifted(part, (p,), key)[str(p)]
        for key, part in zip((50 + seed, seed), graphs(seed, s, None), strict=True)
    )
    return scores_on(fitted("DPG", train, s.depth), {"matched": test})["matched"]


def values(models: list[Entry], name: str, test: str) -> np.ndarray:
    """Return a model's scores on a test set: one row for each seed of our own graphs."""
    return np.array(
        [
            [entry.answer["scores"][test][score] for score in SCORES]
            for entry in models
            if entry.name == name and entry.seed is not None
        ]
    ).reshape(-1, len(SCORES))


def on_authors_graphs(models: list[Entry], name: str, test: str) -> np.ndarray | None:
    """Return the scores of a model trained on the authors' graphs, or None if there is none."""
    for entry in models:
        if entry.name == name and entry.seed is None:
            return np.array([entry.answer["scores"][test][score] for score in SCORES])
    return None


def best_known(models: list[Entry], name: str, test: str) -> np.ndarray | None:
    """Return the scores on the authors' graphs, else the mean over our seeds, else None."""
    on_authors, ours = on_authors_graphs(models, name, test), values(models, name, test)
    if on_authors is None and len(ours):
        return ours.mean(0)
    return on_authors


def rows_of(models: list[Entry], name: str, test: str, published: tuple[float, ...]) -> list[Row]:
    """Compare with the published scores, in standard deviations over seeds of our own graphs."""
    ours = values(models, name, test)
    on_authors = on_authors_graphs(models, name, test)
    if on_authors is None and not len(ours):
        return []  # did not compete
    rows = []
    for k, score in enumerate(SCORES):
        what, note = f"{name}, {score}", ""
        if len(ours) > 1:
            mean, spread = mean_and_deviation(ours[:, k])
            note = "" if on_authors is None else f"on the authors' graphs {on_authors[k]:.4g}"
            row = Row(what, mean, spread, published[k], note)
        elif on_authors is not None:
            row = Row(what, on_authors[k], None, published[k], "the authors' graphs")
        else:
            row = Row(what, ours[0, k], None, published[k], "one draw of graphs")
        rows.append(row)
    return rows


def inside(rows: list[Row]) -> bool:
    """Tell whether every published score is within two standard deviations over seeds of ours."""
    return all(abs(row.away) <= FAR for row in rows if row.away is not None)
