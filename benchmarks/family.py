"""The paper's other networks on its own graphs, and the cost of training them.

    python benchmarks/family.py mimo  --data FOLDER --seed 0      train MIMO, then its readout alone
    python benchmarks/family.py modes --data FOLDER               an ensemble of modes
                                      [--starts 8 --rounds 1200]  not the default numbers
                                      [--fresh 1000]              test on new graphs as well
                                      [--bases FILE ...]          start from files of `mimo`
    python benchmarks/family.py head  --data FOLDER --heads 2 --base FILE | --stop 8.27
    python benchmarks/family.py pds   --data FOLDER
    python benchmarks/family.py flat  --subsets 20                DPG-U against DPG

FOLDER holds rg032.npz. Each prints a line of JSON, and with --out writes it. The published training
of MIMO is 50,000 steps of Adam, which end at a training NLL of 8.27 a graph; `mimo` reports after
how many gradients ours gets there. `head` is MIMO-E on a base that `mimo` wrote (theta in its
JSON), or on one whose training stops at a training NLL.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from common import parser
from reproduction.item import AUTHORS_GRAPHS, Answer, write_json
from reproduction.models import (
    PAPERS_GRAPHS,
    authors_graphs,
    fitted,
    four_scores,
    moments,
    quietly,
    timed,
    with_fixed_theta,
)

from edgebelief.data import GraphDataset
from edgebelief.data.randomness import Key
from edgebelief.infer import MAP, NUTS, EdgeModel, Modes, Posterior
from edgebelief.infer.gradient import optimise
from edgebelief.infer.posterior import Fit
from edgebelief.infer.prepare import Problem
from edgebelief.networks import DPG, MIMO, PDS, StochasticHead

PUBLISHED_TRAINING_NLL = 8.27
# Figures of the verdict on chains.
FIGURES = ("R-hat", "effective draws (bulk)", "effective draws (tail)", "divergences")


def authors_split(folder: Path) -> tuple[GraphDataset, GraphDataset]:
    """Read the authors' training and test graphs."""
    graphs = authors_graphs(folder / AUTHORS_GRAPHS)
    return graphs["train"], graphs["test"]


def training_nll(model: EdgeModel, z: np.ndarray, data: GraphDataset) -> float:
    """Return the NLL of a graph at parameters that are given in the coordinates z."""
    values = {name: jnp.asarray(x[0]) for name, x in model.from_z(z[None]).items()}
    return -float(model.log_likelihood(values, data).sum()) / len(data)


class Reached(Exception):
    """An optimisation has reached its training NLL."""


class Watch:
    """Makes objectives that count gradients and note the training NLL as it improves."""

    def __init__(self, model: EdgeModel, train: GraphDataset, until: float = -np.inf) -> None:
        self.model, self.train, self.until = model, train, until
        self.best, self.z, self.gradients = -np.inf, np.zeros(0), 0
        self.reached: int | None = None
        self.make = optimise._objective

    def __call__(self, *arguments: Any) -> optimise.Objective:
        """Make the objective that `optimise` would, and watch it."""
        objective = self.make(*arguments)

        def watched(z: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = objective(z)
            self.gradients += 1
            if value > self.best:
                self.best, self.z = value, z.copy()
                if self.reached is None and self.gradients % 5 == 0:
                    loss = training_nll(self.model, z, self.train)
                    if loss <= PUBLISHED_TRAINING_NLL:
                        self.reached = self.gradients
                    if loss <= self.until:
                        raise Reached
            return value, gradient

        return watched


def trained(
    seed: int, train: GraphDataset, until: float = -np.inf
) -> tuple[Posterior | None, Watch]:
    """Train MIMO; the posterior is None if training stopped at the training NLL `until`."""
    watch = Watch(EdgeModel(MIMO()), train, until)
    with patch.object(optimise, "_objective", watch):
        try:
            return MAP(starts=1).run(seed, watch.model, train), watch
        except Reached:
            return None, watch


def mimo(arguments: argparse.Namespace) -> Answer:
    train, test = authors_split(arguments.data)
    (posterior, watch), seconds = timed(trained, arguments.seed, train)
    assert posterior is not None
    theta = posterior.params["theta"][0]
    readout, readout_seconds = timed(with_fixed_theta, watch.model, theta, train)
    return {
        "seed": arguments.seed,
        "MIMO": four_scores(posterior, test),
        "stochastic readout": four_scores(readout, test),
        "training NLL": training_nll(watch.model, watch.z, train),
        "log density": posterior.verdict.figures["log density"],
        "gradients": watch.gradients,
        "gradients to 8.27": watch.reached,
        "seconds": seconds,
        "seconds of the readout": readout_seconds,
        "theta": theta.tolist(),
    }


@dataclass(frozen=True)
class ModesFrom(Modes):
    """The ensemble of modes, around modes that earlier runs have written."""

    bases: tuple[Path, ...] = ()

    def _fit(self, key: Key, problem: Problem) -> Fit:
        if not self.bases:
            return super()._fit(key, problem)
        model, data, weights = problem.model, problem.data, problem.counts
        bases = [json.loads(base.read_text()) for base in self.bases]
        to_z = model.prior["theta"].to_z
        # Only theta is used of these: five numbers of the readout follow it.
        ends = [np.r_[to_z(base["theta"]), np.zeros(5)] for base in bases]
        values = np.array([base["log density"] for base in bases])
        return self.around(key, model, ends, values, data, weights)


def modes(arguments: argparse.Namespace) -> Answer:
    train, test = authors_split(arguments.data)
    results: Answer = {}
    for weights in ("stacking", "evidence", "equal") if arguments.bases else ("stacking",):
        engine = ModesFrom(
            arguments.starts, arguments.rounds, weights, bases=tuple(arguments.bases)
        )
        posterior, seconds = timed(engine.run, arguments.seed, EdgeModel(MIMO()), train)
        fresh = arguments.fresh
        results[weights] = four_scores(posterior, test) | {
            "seconds": seconds,
            "fresh": four_scores(posterior, fresh_graphs(fresh)) if fresh else None,
            **{k: posterior.verdict.figures[k] for k in ("modes", "effective modes", "Pareto k")},
        }
    settings = {name: getattr(arguments, name) for name in ("seed", "starts", "rounds")}
    return settings | results


def fresh_graphs(n: int) -> GraphDataset:
    """Sample graphs like the authors', without the 1,000 on which starts and rounds were chosen."""
    return GraphDataset.sample(12345, PAPERS_GRAPHS, 1000 + n, n_nodes=20)[1000:]


def head(arguments: argparse.Namespace) -> Answer:
    train, test = authors_split(arguments.data)
    if arguments.stop is not None:
        with jax.default_device(jax.devices("cpu")[0]):
            _, watch = trained(arguments.seed, train, arguments.stop)
        theta = np.asarray(watch.model.from_z(watch.z[None])["theta"][0])
    else:
        theta = np.array(json.loads(arguments.base.read_text())["theta"])
    base = with_fixed_theta(EdgeModel(MIMO()), theta, train)
    network = StochasticHead(base=MIMO(), theta=tuple(theta), heads=arguments.heads)
    engine = NUTS(n_warmup=arguments.warmup, n_draws=arguments.draws, target_accept=0.85)
    posterior, seconds = timed(engine.run, arguments.seed, EdgeModel(network), train)
    return {
        "heads": arguments.heads,
        "stopped at": arguments.stop,
        "base": four_scores(base, test),
        "MIMO-E": four_scores(posterior, test),
        **{name: posterior.verdict.figures[name] for name in FIGURES},
        "findings": list(posterior.verdict.names),
        "seconds": seconds,
    }


def pds(arguments: argparse.Namespace) -> Answer:
    train, test = authors_split(arguments.data)
    posterior, seconds = timed(NUTS().run, arguments.seed, EdgeModel(PDS()), train)
    alpha, beta = posterior.params["alpha"], posterior.params["beta"]
    mapped = {"theta": 1 / np.sqrt(alpha * beta), "delta": np.sqrt(alpha / beta)}
    return {
        "PDS": four_scores(posterior, test),
        "posterior": moments(posterior),
        "mapped": {name: [float(x.mean()), float(x.std())] for name, x in mapped.items()},
        "DPG": moments(fitted("DPG", train)),
        **{name: posterior.verdict.figures[name] for name in FIGURES},
        "seconds": seconds,
    }


def flat(arguments: argparse.Namespace) -> Answer:
    """Fit the same training graphs under both priors."""
    train = GraphDataset.sample(1, PAPERS_GRAPHS, 200, n_nodes=20)
    test = GraphDataset.sample(2, PAPERS_GRAPHS, 100, n_nodes=20)
    rng = np.random.default_rng(0)
    rows = []
    for size in arguments.sizes:
        for subset in range(arguments.subsets):
            chosen = train[np.sort(rng.choice(len(train), size, replace=False))]
            for prior, name in (("altered", "DPG"), ("flat", "DPG-U")):
                posterior, seconds = timed(fitted, name, chosen, 30)
                row = {"T": size, "subset": subset, "prior": prior}
                row |= {**four_scores(posterior, test), "seconds": seconds}
                if subset < arguments.chains:
                    model = EdgeModel(DPG(depth=30), prior=prior)
                    NUTS(n_draws=50).run(1, model, chosen)  # compiles
                    chains, seconds = timed(NUTS().run, 0, model, chosen)
                    figures = chains.verdict.figures
                    row["effective draws a second"] = figures["effective draws (bulk)"] / seconds
                    row["NUTS findings"] = list(chains.verdict.names)
                rows.append(row)
                print(json.dumps(row), flush=True)
    return {"rows": rows}


COMMANDS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "mimo": mimo,
    "modes": modes,
    "head": head,
    "pds": pds,
    "flat": flat,
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("what", choices=tuple(COMMANDS))
    options.add_argument("--data", type=Path)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--starts", type=int, default=Modes.starts)
    options.add_argument("--rounds", type=int, default=Modes.rounds)
    options.add_argument("--fresh", type=int, default=0)
    options.add_argument("--bases", type=Path, nargs="+", default=[])
    options.add_argument("--heads", type=int, default=4)
    options.add_argument("--base", type=Path)
    options.add_argument("--stop", type=float)
    options.add_argument("--warmup", type=int, default=500)
    options.add_argument("--draws", type=int, default=1000)
    options.add_argument("--subsets", type=int, default=20)
    options.add_argument("--chains", type=int, default=3, help="subsets on which NUTS runs as well")
    options.add_argument("--sizes", type=int, nargs="+", default=[50, 5, 2, 1])
    options.add_argument("--out", type=Path)
    arguments = options.parse_args()
    with quietly():
        results = COMMANDS[arguments.what](arguments)
    print(json.dumps(results))
    if arguments.out:
        write_json(arguments.out, results)


if __name__ == "__main__":
    main()
