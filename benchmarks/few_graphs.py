"""With few labelled graphs, is the default as safe as the paper's readout?

    python benchmarks/few_graphs.py [--data FOLDER] [--graphs 1 2 5] [--signals 50] [--subsets 20]
                                    [--tests 10] [--jobs N] [--json FILE]

Twenty times, from each of four ensembles: T training graphs of 20 nodes with smooth signals on
them, and fresh test graphs of the same kind; and from the authors' graphs (rg032.npz in FOLDER) T
training graphs, with the first test graphs. The table has the edge NLL of a test graph
(`metrics.edge_nll`) by `GraphLearner()`, by `GraphLearner(readout="affine")` and by
`GraphLearner.pretrained()`, which sees no label; the mean differences of the first from either with
their standard errors over the subsets, the mean ratio to "affine", and the slope of calibration of
the first two (of labels by logits, all subsets together: 1 is best, above 1 is too unsure).
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import parser
from joblib import Parallel, delayed
from reproduction.averages import mean_and_error
from reproduction.item import AUTHORS_GRAPHS
from reproduction.models import authors_graphs, labels_and_means

from edgebelief import GraphLearner, metrics
from edgebelief.belief import BeliefWarning
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    GraphDataset,
    RandomGeometric,
    StochasticBlock,
)
from edgebelief.data.signals import adjacency_of, smooth_signals
from edgebelief.infer import InferenceWarning

N_NODES = 20
ENSEMBLES = {
    "RG": RandomGeometric(0.32),
    "ER": ErdosRenyi(0.2),
    "BA": BarabasiAlbert(2),
    "SBM": StochasticBlock(2, 0.4, 0.05),
}
READOUTS = ("auto", "affine")
ZERO = "pretrained"


class Job(NamedTuple):
    """A subset of training graphs."""

    folder: Path | None
    name: str
    n_graphs: int
    n_signals: int
    n_tests: int
    subset: int


class Given(NamedTuple):
    """Graphs: signals or distances, and labels."""

    x: list[np.ndarray]
    a: list[np.ndarray]


def drawn(job: Job) -> tuple[Given, Given, str]:
    """Draw training and test graphs; say what the inputs are."""
    rng = np.random.default_rng([job.subset, job.n_graphs, len(job.name)])
    if job.name == "rg032":
        assert job.folder is not None
        graphs = authors_graphs(job.folder / AUTHORS_GRAPHS)
        train = graphs["train"][sorted(rng.permutation(len(graphs["train"]))[: job.n_graphs])]
        return _matrices(train), _matrices(graphs["test"][: job.n_tests]), "precomputed"
    made = Given([], [])
    for key in rng.integers(2**31, size=(job.n_graphs + job.n_tests, 2)):
        graph = ENSEMBLES[job.name].sample(int(key[0]), N_NODES)
        made.x.append(smooth_signals(int(key[1]), graph, job.n_signals))
        made.a.append(adjacency_of(graph))
    t = job.n_graphs
    return Given(made.x[:t], made.a[:t]), Given(made.x[t:], made.a[t:]), "sqeuclidean"


def _matrices(graphs: GraphDataset) -> Given:
    return Given([r.distance_matrix() for r in graphs], [r.label_matrix() for r in graphs])


def run(job: Job) -> list[dict]:
    """Fit and score each readout."""
    train, test, metric = drawn(job)
    rows = []
    for readout in (*READOUTS, ZERO):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)
            warnings.simplefilter("ignore", BeliefWarning)
            if readout == ZERO:
                learner = GraphLearner.pretrained(metric=metric)
            else:
                learner = GraphLearner(metric=metric, readout=readout, random_state=0).fit(*train)
            beliefs = learner.predictions(*test)
        a, p = labels_and_means(beliefs)
        chosen = readout if learner.comparison_ is None else learner.comparison_.index[0]
        nll = float(metrics.edge_nll(beliefs))
        print(f"{job.name} T={job.n_graphs} {job.subset} {readout}: {nll:.2f} {chosen}", flush=True)
        rows.append(
            {"data": job.name, "graphs": job.n_graphs, "subset": job.subset, "readout": readout}
            | {
                "chosen": chosen,
                "nll": nll,
                "a": a.astype(int).tolist(),
                "p": [float(f"{x:.3g}") for x in p],
            }
        )
    return rows


def slope(rows: pd.DataFrame) -> float:
    """Regress labels on logits."""
    from scipy.optimize import minimize

    a = np.concatenate(rows["a"].to_list())
    p = np.clip(np.concatenate(rows["p"].to_list()), 1e-12, 1 - 1e-12)
    logit = np.log(p) - np.log1p(-p)

    def loss(x: np.ndarray) -> float:
        return float(np.logaddexp(0, (1 - 2 * a) * (x[0] + x[1] * logit)).sum())

    return float(minimize(loss, np.array([0.0, 1.0]), method="Nelder-Mead").x[1])


def table(rows: Sequence[dict]) -> pd.DataFrame:
    """Compare the readouts, set by set."""
    lines = []
    for (data, n), part in pd.DataFrame(rows).groupby(["data", "graphs"], sort=False):
        nll = part.pivot(index="subset", columns="readout", values="nll")
        gap, error = mean_and_error((nll["auto"] - nll["affine"]).to_numpy())
        over, error_over = mean_and_error((nll["auto"] - nll[ZERO]).to_numpy())
        of = {readout: part[part["readout"] == readout] for readout in READOUTS}
        lines.append(
            {
                **{"data": data, "T": n, "subsets": len(nll), "default": nll["auto"].mean()},
                **{"affine": nll["affine"].mean(), "difference": gap, "se": error},
                **{ZERO: nll[ZERO].mean(), "over it": over, "se of that": error_over},
                "ratio": (nll["auto"] / nll["affine"]).mean(),
                **{f"slope, {readout}": slope(of[readout]) for readout in READOUTS},
                "chosen": of["auto"]["chosen"].value_counts().to_dict(),
            }
        )
    return pd.DataFrame(lines)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", nargs="*", default=["rg032", *ENSEMBLES], metavar="NAME")
    options.add_argument("--graphs", nargs="*", type=int, default=[1, 2, 5], metavar="T")
    options.add_argument("--signals", type=int, default=50, metavar="P")
    options.add_argument("--subsets", type=int, default=20, metavar="N")
    options.add_argument("--first", type=int, default=0, metavar="K", help="the first subset")
    options.add_argument("--tests", type=int, default=10, metavar="N")
    options.add_argument("--jobs", type=int, default=1, metavar="N")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    names = [name for name in given.only if name in ENSEMBLES or given.data is not None]
    jobs = [
        Job(given.data, name, t, given.signals, given.tests, given.first + k)
        for k in range(given.subsets)
        for name in names
        for t in given.graphs
    ]
    rows: list[dict] = []
    for added in Parallel(given.jobs, return_as="generator_unordered")(
        delayed(run)(j) for j in jobs
    ):
        rows += added
        if given.json:
            given.json.write_text(json.dumps(rows))
    with pd.option_context("display.width", 250, "display.max_columns", 20, "display.precision", 3):
        print(table(rows).to_string(index=False, max_colwidth=60))


if __name__ == "__main__":
    main()
