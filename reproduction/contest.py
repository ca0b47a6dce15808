"""The same models on the same graphs: what items on generalisation and shifts share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgebelief import metrics
from edgebelief.belief.predict import predict
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    GraphDataset,
    RandomGeometric,
    distances,
    smooth_signals,
)

from .item import FAR, Row, Work
from .models import ADDITIVE, SCORES, authors_graphs, fitted, scores_on, thinned, timed

EXPECTED = "expected"
OTHERS = {
    "RG(1/2)": RandomGeometric(0.5),
    "ER(1/2)": ErdosRenyi(0.5),
    "BA(1)": BarabasiAlbert(1),
}


@dataclass(frozen=True)
class Contest:
    """What a model is put through."""

    n_train: int = 50
    n_test: int = 100
    n_nodes: int = 20
    depth: int = 200
    signals: tuple[int, ...] = (10, 20, 100, 1000, 10000)
    n_draws: int = 400
    predict_with: int = 200
    """Draws of chains that predictions use."""


@dataclass(frozen=True)
class Who:
    """Who competes."""

    seeds: int = 8
    """Of DPG, on graphs of our own."""
    additive_seeds: int = 3
    slow: tuple[str, ...] = ("PDS", "MIMO, 2", "MIMO", "MIMO, 8", "MIMO-E", "MIMO-E, 4")
    """Once, on the authors' graphs where they are at hand."""


FULL, EVERYONE = Contest(), Who()
SMALL = Contest(6, 6, 8, 10, signals=(10, 1000), n_draws=60, predict_with=50)
SOME = Who(2, 1, ("MIMO",))  # each further model is half a minute of compiling


class Entry(NamedTuple):
    """A model, the seed of the graphs it saw (None: the authors'), and what `scored` found."""

    name: str
    seed: int | None
    found: dict[str, Any]


def entries(work: Work) -> Iterator[Entry]:
    """Every model with what it scored, once ever."""
    s, who = work.settings(FULL, SMALL), work.settings(EVERYONE, SOME)
    at_hand = work.has("rg032.npz")
    path = (work.file("rg032.npz"),) if at_hand else (None,)
    for seed in range(who.seeds):
        yield Entry("DPG", seed, work.once(scored, "DPG", seed, s, using=path))
    for seed in range(who.additive_seeds):
        yield Entry(ADDITIVE, seed, work.once(scored, ADDITIVE, seed, s, using=path))
    once = None if at_hand else 0
    for name in (("DPG", ADDITIVE) if at_hand else ()) + who.slow:
        yield Entry(name, once, work.once(scored, name, once, s, using=path))


def graphs(seed: int | None, s: Contest, path: Path | None) -> tuple[GraphDataset, GraphDataset]:
    """To train on, to test on: our own by their seed, or the authors'."""
    if path is not None and seed is None:
        found = authors_graphs(path)
        return found["train"][: s.n_train], found["test"][: s.n_test]
    both = GraphDataset.sample(seed or 0, RandomGeometric(0.32), s.n_train + s.n_test, s.n_nodes)
    return both[: s.n_train], both[s.n_train :]


def shifted(test: GraphDataset, signals: tuple[int, ...], key: int) -> dict[str, GraphDataset]:
    """The same graphs, with distances from so many signals; of few, the first of many."""
    found: dict[str, list[np.ndarray]] = {str(p): [] for p in signals}
    for t, record in enumerate(test):
        x = smooth_signals(100_000 * (key + 1) + t, record.label_matrix(), max(signals))
        for p in signals:
            found[str(p)].append(distances(x[:p]))
    a = [record.a for record in test]
    return {p: GraphDataset(e, a, n_signals=float(p)) for p, e in found.items()}


def others(seed: int | None, s: Contest) -> dict[str, GraphDataset]:
    """Graphs of other kinds."""
    key = 10_000 + (seed or 0)
    return {
        name: GraphDataset.sample(key + k, kind, s.n_test, s.n_nodes)
        for k, (name, kind) in enumerate(OTHERS.items())
    }


def scored(name: str, seed: int | None, s: Contest, path: Path | None) -> dict[str, Any]:
    """A model's scores on every test set, its parameters, and its seconds."""
    train, test = graphs(seed, s, path)
    posterior, seconds = timed(fitted, name, train, s.depth, seed or 0, s.n_draws)
    less = thinned(posterior, s.predict_with)
    tests = {EXPECTED: test, **shifted(test, s.signals, seed or 0), **others(seed, s)}
    found = scores_on(less, tests)
    predictions = predict(less, test)
    curve = metrics.calibration_curve(predictions)
    moments = posterior.summary() if not name.startswith(("MIMO", ADDITIVE)) else None
    return {
        "scores": found,
        "per graph": metrics.nll(predictions).per_graph,
        "curve": {"confidence": curve.confidence, "accuracy": curve.accuracy, "count": curve.count},
        "parameters": {} if moments is None else moments[["mean", "sd"]].to_dict("index"),
        "figures": dict(posterior.verdict.figures),
        "findings": list(posterior.verdict.names),
        "seconds": seconds,
    }


def matched(p: int, seed: int, s: Contest) -> dict[str, float]:
    """DPG trained and tested on distances from `p` signals."""
    train, test = (
        shifted(part, (p,), key)[str(p)]
        for key, part in zip((50 + seed, seed), graphs(seed, s, None), strict=True)
    )
    return scores_on(fitted("DPG", train, s.depth), {"matched": test})["matched"]


def table_of(work: Work) -> list[Entry]:
    """All entries."""
    return list(entries(work))


def values(found: list[Entry], name: str, test: str) -> np.ndarray:
    """A model's scores on a test set, a row per seed of ours."""
    return np.array(
        [
            [one.found["scores"][test][score] for score in SCORES]
            for one in found
            if one.name == name and one.seed is not None
        ]
    ).reshape(-1, len(SCORES))


def of_authors(found: list[Entry], name: str, test: str) -> np.ndarray | None:
    """A model's scores after training on the authors' graphs; None if that was not done."""
    for one in found:
        if one.name == name and one.seed is None:
            return np.array([one.found["scores"][test][score] for score in SCORES])
    return None


def rows_of(found: list[Entry], name: str, test: str, published: tuple[float, ...]) -> list[Row]:
    """Ours over seeds beside the published; the standard deviation over seeds is the yardstick."""
    own = values(found, name, test)
    theirs = of_authors(found, name, test)
    if theirs is None and not len(own):
        return []  # did not compete
    rows = []
    for k, score in enumerate(SCORES):
        note = "" if theirs is None else f"on the authors' graphs {theirs[k]:.4g}"
        if len(own) > 1:
            spread = float(own[:, k].std(ddof=1))
            row = Row(f"{name}, {score}", float(own[:, k].mean()), spread, published[k], note)
        elif theirs is not None:
            row = Row(f"{name}, {score}", theirs[k], None, published[k], "the authors' graphs")
        else:
            row = Row(f"{name}, {score}", own[0, k], None, published[k], "one draw of graphs")
        rows.append(row)
    return rows


def inside(rows: list[Row]) -> bool:
    """Whether every published figure is within two standard deviations over seeds."""
    return all(abs(row.away) <= FAR for row in rows if row.away is not None)
