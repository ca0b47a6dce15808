"""Does a fitted learner notice graphs that are unlike those it was fitted to, and no others?

    python benchmarks/alarm.py [--data FOLDER] [--draws 20] [--json FILE]

Shifts of the paper: `GraphLearner(readout="affine")` is fitted to expected distances of 50 random
geometric graphs, radius 0.32 (the authors', rg032.npz in FOLDER; else our own). It is asked about
test graphs of the same kind, the same with distances of P signals, and graphs of other kinds.
Numbers of signals are not said, as with distances from elsewhere. Ordinary use: 20 graphs of 20
nodes with distances of 200 signals are fitted, and 50 fresh ones of the same kind predicted, some
draws of each of four ensembles.

The table has the share of graphs with p at most 0.05 (`typicality`), the share of calls with one
graph that warn, the share of calls with all graphs that warn, the error, and the mean confidence.
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import parser
from reproduction.contest import OTHERS, shifted
from reproduction.item import AUTHORS_GRAPHS
from reproduction.models import authors_graphs

from edgebelief import GraphLearner, metrics
from edgebelief.belief.shift import UnlikeWarning, warn_if_unlike
from edgebelief.belief.typicality import UNUSUAL
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    GraphDataset,
    RandomGeometric,
    StochasticBlock,
)
from edgebelief.infer import InferenceWarning

N_NODES = 20
RADIUS = RandomGeometric(0.32)
SIGNALS = (10, 20, 100, 1000)
ORDINARY = {
    "RG": RADIUS,
    "ER": ErdosRenyi(0.2),
    "BA": BarabasiAlbert(2),
    "SBM": StochasticBlock(2, 0.4, 0.05),
}
# Seeds of graphs begin here: others were used to choose the settings of the alarm.
FIRST_SEED = 50_000
# That of signals, of which `shifted` makes many.
SIGNALS_SEED = 50


COLUMNS = ("p ≤ 0.05", "warned, one graph", "warned, all graphs", "error", "confidence")


class Row(NamedTuple):
    """What a learner says of one set of graphs."""

    test: str
    flagged: float
    one_graph: float
    all_graphs: float
    error: float
    confidence: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    options = parser(__doc__)
    options.add_argument("--data", type=Path, help="the folder of rg032.npz")
    options.add_argument("--draws", type=int, default=20, help="of each ensemble in ordinary use")
    options.add_argument("--json", type=Path, help="write the tables to this file, too")
    given = options.parse_args(arguments)
    warnings.simplefilter("ignore", InferenceWarning)
    tables = {"shifts": shifts(given.data), "ordinary use": ordinary(given.draws)}
    for name, rows in tables.items():
        print(f"\n| {name} | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
        for test, *numbers in rows:
            print(f"| {test} | {' | '.join(f'{x:.3f}' for x in numbers)} |")
    if given.json:
        given.json.write_text(json.dumps({k: [r._asdict() for r in v] for k, v in tables.items()}))


def shifts(folder: Path | None) -> list[Row]:
    """Ask a learner of expected distances of random geometric graphs about others."""
    if folder is not None:
        graphs = authors_graphs(folder / AUTHORS_GRAPHS)
        train, test = graphs["train"], graphs["test"]
    else:
        train = GraphDataset.sample(FIRST_SEED, RADIUS, 50, N_NODES)
        test = GraphDataset.sample(FIRST_SEED + 1, RADIUS, 100, N_NODES)
    learner = fitted(train)
    sets = {"the same kind": test}
    for p, graphs_of_p in shifted(test, SIGNALS, SIGNALS_SEED).items():
        sets[f"P = {p}"] = graphs_of_p
    for k, (name, ensemble) in enumerate(OTHERS.items()):
        sets[name] = GraphDataset.sample(FIRST_SEED + 10 + k, ensemble, 100, N_NODES)
    return [row(name, learner, anonymous(graphs)) for name, graphs in sets.items()]


def ordinary(n_draws: int) -> list[Row]:
    """Ask learners about fresh graphs of the kind that they were fitted to."""
    rows = []
    for k, (name, ensemble) in enumerate(ORDINARY.items()):
        each = []
        for draw in range(n_draws):
            key = FIRST_SEED + 1000 * (k + 1) + draw
            graphs = GraphDataset.sample(key, ensemble, 70, N_NODES, n_signals=200)
            each.append(row(name, fitted(graphs[:20]), graphs[20:]))
        rows.append(Row(name, *np.mean([one[1:] for one in each], axis=0).tolist()))
    return rows


def fitted(graphs: GraphDataset) -> GraphLearner:
    return GraphLearner(readout="affine", inference="laplace", random_state=0).fit(graphs)


def anonymous(graphs: GraphDataset) -> GraphDataset:
    """Return graphs without the number of signals behind the distances."""
    return GraphDataset([r.e for r in graphs], [r.label_matrix() for r in graphs])


def row(name: str, learner: GraphLearner, graphs: GraphDataset) -> Row:
    """Ask about all graphs in one call, and about each in one of its own."""
    p = learner.typicality(graphs)["p"].to_numpy()
    one = [warns(learner, graphs[t : t + 1]) for t in range(len(graphs))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlikeWarning)
        beliefs = learner.predictions(graphs)
    means = np.concatenate([belief.mean for belief in beliefs])
    return Row(
        name,
        float((p <= UNUSUAL).mean()),
        float(np.mean(one)),
        float(warns(learner, graphs)),
        float(metrics.error(beliefs)),
        float(np.maximum(means, 1 - means).mean()),
    )


def warns(learner: GraphLearner, graphs: GraphDataset) -> bool:
    """Return whether graphs are said to be unlike those fitted."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_unlike(learner.posterior_, graphs)
    return any(issubclass(warning.category, UnlikeWarning) for warning in caught)


if __name__ == "__main__":
    main()
