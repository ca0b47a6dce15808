"""What each kind of evidence, and a second pass, are worth to our own belief.

By quick fits (`infer.exact.plugin`) of the additive readout to the training graphs of a draw of the
race (`benchmarks/quality.py`): the edge NLL of the test graphs, how much it rises where a kind of
evidence is left out, where all are, and falls with a second pass on cross-fitted beliefs. The time
of each kind is that for the training graphs.

    OMP_NUM_THREADS=1 python benchmarks/ablation.py [--data FOLDER] [--only NAME ...]
                                                    [--draws K ...] [--out FILE]
"""

import time
import warnings
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import quality
from common import parser
from reproduction.averages import mean_and_error
from threadpoolctl import threadpool_limits

from edgebelief import evidence, metrics
from edgebelief.belief import EdgeBelief, Predictions
from edgebelief.belief.choose import cross_fitted
from edgebelief.belief.structure import with_structure
from edgebelief.data import GraphDataset
from edgebelief.infer import EdgeModel
from edgebelief.infer.exact.plugin import PlugIn
from edgebelief.infer.prepare import Problem, prepare
from edgebelief.networks import DPG
from edgebelief.readouts import Additive


def without(data: GraphDataset, names: Collection[str]) -> GraphDataset:
    """Leave covariates out."""
    return GraphDataset._of(
        [
            r._replace(covariates={k: v for k, v in r.covariates.items() if k not in names})
            for r in data
        ]
    )


def beliefs(train: Problem, test: GraphDataset) -> list[EdgeBelief]:
    """Predict graphs by a quick fit to the others."""
    both = GraphDataset._of([*train.data, *test])
    known = [r.known for r in train.data] + [np.zeros_like(r.known) for r in test]
    quick = PlugIn(train.model, both, np.ones(len(both)), train.network_z)
    p = quick.probabilities(quick.fit(known), np.random.default_rng(0), 200)
    return [EdgeBelief.of(each) for each in p[len(train.data) :]]


def nll(test: GraphDataset, of: Iterable[EdgeBelief]) -> float:
    """Return the edge NLL of a test graph."""
    return float(metrics.edge_nll(Predictions(test, list(of), np.zeros(len(test)))))


def run(name: str, folder: Path | None, draw: int) -> dict:
    """Return the edge NLL with all, and the differences."""
    given, metric = quality.DATA[name][0](folder, draw), quality.metric_of(name)
    kinds = quality.kinds_for(given, metric)
    train, test, _ = quality.informed(given, metric)
    problem = prepare(0, EdgeModel(DPG(), Additive()), train)
    z = problem.network_z
    whole = beliefs(problem, test)
    row = {"all": nll(test, whole)}
    every = [name for kind in kinds for name in kind.channels]
    for label, names in [*((kind.name, kind.channels) for kind in kinds), ("no evidence", every)]:
        less = replace(prepare(0, EdgeModel(DPG(), Additive()), without(train, names)), network_z=z)
        row[label] = nll(test, beliefs(less, without(test, names))) - row["all"]
    if len(train) >= 3:
        informed = with_structure(train, cross_fitted(0, problem, "graphs"))
        second = replace(prepare(0, EdgeModel(DPG(), Additive()), informed), network_z=z)
        tested = with_structure(test, whole)
        row["second pass"] = nll(test, beliefs(second, tested)) - row["all"]
    return row


def seconds(name: str, folder: Path | None) -> dict:
    """Time each kind of evidence on the training graphs of the first draw."""
    given = quality.DATA[name][0](folder, 0)
    signals = given.signals[0] if given.signals else None
    taken = {}
    for kind in quality.kinds_for(given, quality.metric_of(name)):
        start = time.perf_counter()
        evidence.compute_all([kind], given.train, signals)
        taken[kind.name] = time.perf_counter() - start
    return taken


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", nargs="*", default=[], choices=list(quality.DATA))
    options.add_argument("--draws", nargs="*", type=int, default=[0, 1, 2])
    options.add_argument("--out", type=Path)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    lines: dict[str, dict[str, str]] = {}
    with threadpool_limits(1):
        for name in arguments.only or quality.DATA:
            n_draws = quality.DATA[name][1]
            if arguments.data is None and name in quality.WITH_FOLDER:
                print(f"{name}: needs --data")
                continue
            draws = [draw for draw in arguments.draws if draw < n_draws]
            rows = pd.DataFrame([run(name, arguments.data, draw) for draw in draws])
            shown = {}
            for label in rows:
                mean, error = mean_and_error(rows[label].to_numpy())
                sign = "" if label == "all" else "+"
                shown[label] = f"{mean:{sign}.2f}" + (f" ± {error:.2f}" if len(rows) > 1 else "")
            taken = seconds(name, arguments.data)
            lines[f"{name} ({len(draws)})"] = shown
            lines[f"{name}, s"] = {label: f"{taken[label]:.2f}" for label in taken}
            table = pd.DataFrame(lines).fillna("")
            print(table.to_string(), flush=True)
            if arguments.out:
                arguments.out.write_text(_markdown(table))


def _markdown(table: pd.DataFrame) -> str:
    head = "| | " + " | ".join(table.columns) + " |\n|---|" + "---|" * table.shape[1]
    rows = ("| " + " | ".join([str(label), *row]) + " |" for label, row in table.iterrows())
    return "\n".join([head, *rows]) + "\n"


if __name__ == "__main__":
    main()
