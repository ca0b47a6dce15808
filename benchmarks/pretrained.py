"""The pretrained network without any label, on the test graphs of the race and beyond.

    python benchmarks/pretrained.py [--data FOLDER] [--weights FILE] [--only NAME ...]
                                    [--draws K ...] [--json FILE]
    python benchmarks/pretrained.py --speed [N ...]

The graphs are those of `quality.py`: the same draws, test graphs alone. In addition Watts-Strogatz
graphs, and each ensemble with 50 signals instead of 200. Nothing is fitted. The network is told the
number of signals where there are any (infinity for expected distances); "given" says whether it got
the signals too, or their distances alone. Digits have no signals here: the network is told nothing.

"raw nll" is the sum over the pairs of a graph of the log score of the network's own mean
probability, "edge nll" that of the tempered one, and "stated nll" with the density stated as the
range from two thirds to three halves of the share of edges of the data set. "base nll" is that of a
rival that knows this share, and nothing else. "alarm" is the share of graphs with an alarm;
"caught" is that share among the graphs on which the network's own NLL is above the rival's;
"contradicted" is the share with a warning that the stated density contradicts the network. "error"
is in percent; "ece" has 10 bins, over all edges of a draw, untempered and tempered; "aupr" is the
mean over graphs of the average precision; "seconds" are those of a graph, after compilation. Means
over draws, with standard errors; the table is Markdown.

The strangers are those of `amortise.strangers.TEST`, which nothing was fitted to, and "world" fresh
draws of the training world.

FOLDER holds the authors' rg032.npz, sp500_*, mnist_1_2.npz and syntren/; without it these are left
out. `--speed` measures seconds and peak memory, each N in a process of its own.
"""

import json
import re
import subprocess
import sys
import time
import warnings
from argparse import SUPPRESS, Namespace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import parser
from quality import DATA, Maker, metric_of
from reproduction.averages import mean_and_error
from reproduction.rivals import Problem, as_predictions, from_signals, labels

from edgebelief import metrics
from edgebelief.amortise import Alarm, LostWarning, PairBeliefs, beliefs, load_network, pretrained
from edgebelief.amortise.alarm import shipped
from edgebelief.amortise.calibrate import range_about
from edgebelief.amortise.cases import Case, world_cases
from edgebelief.amortise.strangers import TEST, draw_stranger
from edgebelief.amortise.temper import (
    Tempering,
    by_rule,
    contradiction,
    moments,
    nll,
    stated_law,
    temper,
)
from edgebelief.amortise.typical import ALARM
from edgebelief.data import (
    BarabasiAlbert,
    Ensemble,
    ErdosRenyi,
    GraphDataset,
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
STRANGERS = tuple(f"stranger: {name}" for name in TEST)
# Draws of each stranger; graphs of the world by size.
EACH, WORLD_SIZES = 50, ((300, (5, 20)), (150, (20, 40)), (30, (41, 90)))
SCORES = (
    "raw nll",
    "edge nll",
    "stated nll",
    "base nll",
    "alarm",
    "caught",
    "contradicted",
    "error",
    "raw ece",
    "ece",
    "aupr",
    "seconds",
)


def fresh(ensemble: Ensemble, n_signals: int) -> Maker:
    """Draw the test graphs of the race, with so many signals each."""
    return lambda folder, draw: from_signals(ensemble, draw, 20, 50, 20, n_signals)


class Cases(NamedTuple):
    """Graphs of several sizes and metrics: as `Problem`, for the network alone."""

    cases: list[Case]

    @property
    def test(self) -> GraphDataset:
        """The graphs as a data set."""
        upper = [np.triu_indices(len(case.e), 1) for case in self.cases]
        return GraphDataset(
            [case.e[u] for case, u in zip(self.cases, upper, strict=True)],
            [case.labels for case in self.cases],
        )


def stranger(name: str) -> Maker:
    """Draw graphs of a world that nothing was fitted to."""
    return lambda folder, draw: Cases(
        [draw_stranger(name, 10**6 + EACH * draw + k) for k in range(EACH)]
    )


def training_world(folder: Path | None, draw: int) -> Cases:
    """Draw graphs of the training world that the reference has not seen."""
    return Cases(
        [
            case
            for k, (count, nodes) in enumerate(WORLD_SIZES)
            for case in world_cases(10**6 + 10 * draw + k, count, nodes)
        ]
    )


PROBLEMS: dict[str, tuple[Maker, int]] = {
    **{
        f"{name}, {p} signals": (fresh(e, p), 5) for p in (200, 50) for name, e in ENSEMBLES.items()
    },
    **{name: DATA[name] for name in ("rg032", *REAL)},
    **{f"stranger: {name}": (stranger(name), 2) for name in TEST},
    "world": (training_world, 1),
}


def believe(
    network: PairNetwork, name: str, problem: Problem | Cases, given: bool, alarm: Alarm | None
) -> list[PairBeliefs]:
    """Return the beliefs in the test graphs of a problem."""
    settings = {"network": network, "alarm": alarm}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWarning)
        if isinstance(problem, Cases):
            return [
                beliefs(
                    case.e,
                    case.signals,
                    None if np.isnan(case.n_signals) else case.n_signals,
                    "correlation" if case.is_correlation else "sqeuclidean",
                    **settings,
                )
                for case in problem.cases
            ]
        result = []
        for k, record in enumerate(problem.test):
            signals = problem.signals[1][k] if problem.signals else None
            number = np.inf if name == "rg032" else None if signals is None else len(signals)
            shown = signals if given else None
            result.append(beliefs(record.e, shown, number, metric_of(name), **settings))
        return result


def laws(believed: PairBeliefs, share: float, alarm: Alarm | None) -> list[Tempering]:
    """Return the law of the level untempered, tempered, and with the density stated."""
    raw = temper(believed.logits)
    if alarm is None:
        return [raw, raw, raw]
    n_nodes = round((1 + np.sqrt(1 + 8 * len(believed.logits))) / 2)
    stated = stated_law(range_about(share)), alarm.reference.world_law(n_nodes)
    by = believed.logits, alarm.rule, believed.typicality.surprise
    return [raw, by_rule(*by), by_rule(*by, *stated)]


def scores_of(
    problem: Problem | Cases, believed: list[PairBeliefs], alarm: Alarm | None
) -> dict[str, float]:
    from sklearn.metrics import average_precision_score

    test = problem.test
    a = labels(test)
    share = a.mean()
    ruled = [laws(belief, float(share), alarm) for belief in believed]
    losses = np.array(
        [
            [record.a.size * nll(belief.logits, record.a, law) for law in three]
            for record, belief, three in zip(test, believed, ruled, strict=True)
        ]
    )
    base = np.array([-np.log(np.where(record.a > 0, share, 1 - share)).sum() for record in test])
    alarms = np.array([bool(b.typicality and b.typicality.is_lost) for b in believed])
    lost = losses[:, 0] > base
    stated = stated_law(range_about(float(share)))
    contradictions = np.array([contradiction(belief.logits, stated) for belief in believed])
    raw, tempered = (
        as_predictions(
            test,
            np.concatenate(
                [moments(b.logits, three[k])[0] for b, three in zip(believed, ruled, strict=True)]
            ),
        )
        for k in (0, 1)
    )
    precisions = [
        average_precision_score(record.a, belief.logit)
        for record, belief in zip(test, believed, strict=True)
        if record.a.sum() > 0
    ]
    return {
        **dict(zip(SCORES[:3], map(float, losses.mean(0)), strict=True)),
        "base nll": float(base.mean()),
        "alarm": float(alarms.mean()),
        "caught": float(alarms[lost].mean()) if lost.any() else np.nan,
        "contradicted": float((contradictions > ALARM).mean()),
        "error": 100 * float(metrics.error(tempered)),
        "raw ece": float(metrics.ece(raw)),
        "ece": float(metrics.ece(tempered)),
        "aupr": float(np.mean(precisions)),
    }


def run(options: Namespace) -> list[dict[str, object]]:
    """Score the network on every draw, and print the table row by row."""
    network = load_network(options.weights) if options.weights else pretrained()
    alarm = None if options.weights else shipped()
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
            if isinstance(problem, Problem):
                believe(network, name, problem._replace(test=problem.test[:1]), False, alarm)
        for given in (True, False):
            if given and any(getattr(problem, "signals", None) is None for problem in problems):
                continue
            scored = []
            for draw, problem in zip(draws, problems, strict=True):
                start = time.perf_counter()
                believed = believe(network, name, problem, given, alarm)
                seconds = (time.perf_counter() - start) / len(believed)
                scored.append(scores_of(problem, believed, alarm) | {"seconds": seconds})
                rows.append({"data": name, "draw": draw, "given": given, **scored[-1]})
            cells = [_cell([row[score] for row in scored]) for score in SCORES]
            told = "half" if isinstance(problems[0], Cases) else "yes" if given else "no"
            print(f"| {name} | {told} | {' | '.join(cells)} |", flush=True)
    return rows


def _cell(values: list[float]) -> str:
    values = [value for value in values if not np.isnan(value)]
    if not values:
        return "-"
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
