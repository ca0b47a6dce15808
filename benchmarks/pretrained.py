"""The pretrained network without any label, on the test graphs of the race and beyond.

    python benchmarks/pretrained.py [--data FOLDER] [--weights FILE] [--only NAME ...]
                                    [--draws K ...] [--json FILE]
    python benchmarks/pretrained.py --speed [N ...]

The graphs are those of `quality.py`: the same draws, test graphs alone. In addition Watts-Strogatz
graphs, and each ensemble with 50 signals instead of 200. Nothing is fitted. The network is told the
number of signals where there are any (infinity for expected distances); "given" says whether it got
the signals too, or their distances alone. Digits have no signals here: the network is told nothing.

"edge nll" is the sum over the pairs of a graph of the log score of the mean probability; "base nll"
is that of a rival that knows the share of edges in all test graphs of the draw, and nothing else.
"error" is in percent; "ece" has 10 bins, over all edges of a draw; "aupr" is the mean over graphs
of the average precision; "seconds" are those of a graph, after compilation. Means over draws, with
standard errors; the table is Markdown.

FOLDER holds the authors' rg032.npz, sp500_*, mnist_1_2.npz and syntren/; without it these are left
out. `--speed` measures seconds and peak memory, each N in a process of its own.
"""

import json
import re
import subprocess
import sys
import time
from argparse import SUPPRESS, Namespace
from pathlib import Path

import numpy as np
from common import parser
from quality import DATA, Maker, metric_of
from reproduction.averages import mean_and_error
from reproduction.rivals import Problem, as_predictions, from_signals, labels

from edgebelief import metrics
from edgebelief.amortise import PairBeliefs, beliefs, load_network, pretrained
from edgebelief.data import (
    BarabasiAlbert,
    Ensemble,
    ErdosRenyi,
    RandomGeometric,
    StochasticBlock,
    WattsStrogatz,
)
from edgebelief.networks import PairNetwork

ENSEMBLES: dict[str, Ensemble] = {
    "RG": RandomGeometric(0.32),
    "ER": ErdosRenyi(0.2),
    "BA": BarabasiAlbert(2),
    "SBM": StochasticBlock(2, 0.4, 0.05),
    "WS": WattsStrogatz(4, 0.1),
}
REAL = ("S&P 500", "S&P 500, half of each sector", "MNIST 1-2", "digits 1-2", "SynTReN")
WITH_FOLDER = ("rg032", *(name for name in REAL if name != "digits 1-2"))
SCORES = ("edge nll", "base nll", "error", "ece", "aupr", "seconds")


def fresh(ensemble: Ensemble, n_signals: int) -> Maker:
    """Draw the test graphs of the race, with so many signals each."""
    return lambda folder, draw: from_signals(ensemble, draw, 20, 50, 20, n_signals)


PROBLEMS: dict[str, tuple[Maker, int]] = {
    **{
        f"{name}, {p} signals": (fresh(e, p), 5) for p in (200, 50) for name, e in ENSEMBLES.items()
    },
    **{name: DATA[name] for name in ("rg032", *REAL)},
}


def believe(network: PairNetwork, name: str, problem: Problem, given: bool) -> list[PairBeliefs]:
    """Return the beliefs in the test graphs of a problem."""
    result = []
    for k, record in enumerate(problem.test):
        signals = problem.signals[1][k] if problem.signals else None
        number = np.inf if name == "rg032" else None if signals is None else len(signals)
        shown = signals if given else None
        result.append(beliefs(record.e, shown, number, metric_of(name), network=network))
    return result


def scores_of(problem: Problem, believed: list[PairBeliefs]) -> dict[str, float]:
    from sklearn.metrics import average_precision_score

    test = problem.test
    a = labels(test)
    share = a.mean()
    nll = [
        -np.where(record.a > 0, *belief.log_probabilities).sum()
        for record, belief in zip(test, believed, strict=True)
    ]
    base = -(a.sum() * np.log(share) + (1 - a).sum() * np.log1p(-share)) / len(test)
    predictions = as_predictions(test, np.concatenate([belief.probability for belief in believed]))
    precisions = [
        average_precision_score(record.a, belief.logit)
        for record, belief in zip(test, believed, strict=True)
    ]
    return {
        "edge nll": float(np.mean(nll)),
        "base nll": float(base),
        "error": 100 * float(metrics.error(predictions)),
        "ece": float(metrics.ece(predictions)),
        "aupr": float(np.mean(precisions)),
    }


def run(options: Namespace) -> list[dict[str, object]]:
    """Score the network on every draw, and print the table row by row."""
    network = load_network(options.weights) if options.weights else pretrained()
    rows: list[dict[str, object]] = []
    print(f"| data | signals given | {' | '.join(SCORES)} |\n|---|---|{'---|' * len(SCORES)}")
    for name in options.only or PROBLEMS:
        make, n_draws = PROBLEMS[name]
        if options.data is None and name in WITH_FOLDER:
            print(f"{name}: needs --data", file=sys.stderr, flush=True)
            continue
        draws = [draw for draw in options.draws or range(n_draws) if draw < n_draws]
        problems = [make(options.data, draw) for draw in draws]
        for problem in problems:  # compiled before time is taken
            believe(network, name, problem._replace(test=problem.test[:1]), given=False)
        for given in (True, False):
            if given and any(problem.signals is None for problem in problems):
                continue
            scored = []
            for draw, problem in zip(draws, problems, strict=True):
                start = time.perf_counter()
                believed = believe(network, name, problem, given)
                seconds = (time.perf_counter() - start) / len(believed)
                scored.append(scores_of(problem, believed) | {"seconds": seconds})
                rows.append({"data": name, "draw": draw, "given": given, **scored[-1]})
            cells = [_cell([row[score] for row in scored]) for score in SCORES]
            print(f"| {name} | {'yes' if given else 'no'} | {' | '.join(cells)} |", flush=True)
    return rows


def _cell(values: list[float]) -> str:
    mean, error = mean_and_error(np.asarray(values))
    return f"{mean:.3g}" + ("" if np.isnan(error) else f" ± {error:.2g}")


# Seconds and memory.


def measure(n_nodes: int) -> tuple[float, float, float]:
    """Return the seconds of the first call, of the next one, and the peak memory in GB (Linux)."""
    x = np.random.default_rng(0).normal(size=(100, n_nodes)).cumsum(1)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        beliefs(signals=x)
        seconds.append(time.perf_counter() - start)
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    return seconds[0], seconds[1], int(peak[1]) / 2**20


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--weights", type=Path, help="by default those of the package")
    options.add_argument("--only", nargs="+", choices=list(PROBLEMS), metavar="NAME")
    options.add_argument("--draws", nargs="+", type=int)
    options.add_argument("--json", type=Path)
    options.add_argument("--speed", nargs="*", type=int, metavar="N")
    options.add_argument("--child", type=int, help=SUPPRESS)
    arguments = options.parse_args()
    if arguments.child is not None:
        print(
            "| {} | {:.2f} | {:.3f} | {:.2f} |".format(arguments.child, *measure(arguments.child))
        )
    elif arguments.speed is not None:
        print("| nodes | first call, s | next call, s | peak GB |\n|---|---|---|---|", flush=True)
        for n_nodes in arguments.speed or (20, 50, 100, 200, 400, 500):
            subprocess.run([sys.executable, __file__, "--child", str(n_nodes)], check=True)
    else:
        rows = run(arguments)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=0))


if __name__ == "__main__":
    main()
