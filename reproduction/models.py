"""The contestants of the paper, fitted to the same graphs, and their scores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from edgebelief import metrics
from edgebelief.belief import Predictions, predict
from edgebelief.data import Ensemble, GraphDataset, RandomGeometric
from edgebelief.infer import (
    MAP,
    NUTS,
    EdgeModel,
    Exact,
    Fingerprint,
    InferenceWarning,
    Posterior,
    fixed,
)
from edgebelief.networks import DPG, MIMO, PDS, StochasticHead
from edgebelief.readouts import Additive

# The models of the paper's tables, and ours.
PAPERS = ("DPG", "PDS", "MIMO", "MIMO-E")
ADDITIVE = "DPG, additive"
SCORES = ("NLL", "Brier x100", "error %", "ECE")
# The paper's RG(1/3).
PAPERS_GRAPHS = RandomGeometric(0.32)
# Of the starts 0 to 4 of MIMO on the authors' graphs, the one that ends at the highest density;
# one of them ends in a poor maximum.
START = 4
# A gradient of eight channels takes five times as long as one of four: their training is stopped.
ROUNDS = {8: 60}
# Probabilities are clipped at this distance from 0 and 1, so that their logarithms are finite.
SMALLEST = 1e-12

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def authors_graphs(path: Path) -> dict[str, GraphDataset]:
    """Read the published RG(1/3) graphs: train, validation, test."""
    with np.load(path) as file:
        parts = {name.partition("_")[0] for name in file.files}
        return {
            part: GraphDataset(list(file[f"{part}_distances"]), list(file[f"{part}_adjacency"]))
            for part in sorted(parts)
        }


def train_and_test(
    n_train: int,
    n_test: int,
    n_nodes: int,
    seed: int | None = 0,
    authors: Path | None = None,
    ensemble: Ensemble = PAPERS_GRAPHS,
) -> tuple[GraphDataset, GraphDataset]:
    """Return training and test graphs: the authors' if `authors` names their file, else sampled."""
    if authors is not None:
        graphs = authors_graphs(authors)
        return graphs["train"][:n_train], graphs["test"][:n_test]
    sampled = GraphDataset.sample(seed or 0, ensemble, n_train + n_test, n_nodes)
    return sampled[:n_train], sampled[n_train:]


@contextmanager
def quietly() -> Iterator[None]:
    """Ignore the warnings of an engine: here the findings of a verdict are results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        yield


def fitted(
    name: str, train: GraphDataset, depth: int = 200, seed: int = 0, n_draws: int = 1000
) -> Posterior:
    """Fit the contestant of that name: one of `PAPERS`, `ADDITIVE`, or "DPG-U".

    MIMO is trained from one start with four channels ("MIMO, 8": eight, for `ROUNDS`); MIMO-E
    puts heads on two of them ("MIMO-E, 4": on all).
    `n_draws` is the number of draws of a chain, or of an additive readout.
    """
    kind, _, detail = name.partition(", ")
    # Few draws only show that everything runs, and need no long trajectories.
    deepest = 10 if n_draws >= 100 else 3
    chains = NUTS(n_draws // 2, n_draws, target_accept=0.8, max_tree_depth=deepest)
    with quietly():
        if name == ADDITIVE:
            return Exact(n_draws=n_draws).run(seed, EdgeModel(DPG(depth), Additive()), train)
        if kind in ("DPG", "DPG-U"):
            prior = "flat" if kind == "DPG-U" else "altered"
            return Exact().run(seed, EdgeModel(DPG(depth), prior=prior), train)
        if kind == "PDS":
            return chains.run(seed, EdgeModel(PDS(depth)), train)
        network = MIMO(4 if kind == "MIMO-E" else int(detail or 4), depth)
        base = _trained(network, train)
        if kind == "MIMO":
            return base
        theta = base.params["theta"][0]
        head = StochasticHead(base=network, theta=theta, heads=int(detail or 2))
        if head.n_heads == network.channels:
            # On the authors' graphs every trajectory is as long as allowed: full chains had not
            # ended after 13 minutes.
            chains = replace(chains, n_warmup=n_draws // 4, n_draws=n_draws // 2, max_tree_depth=6)
        return chains.run(seed, EdgeModel(head), train)


def _trained(network: MIMO, train: GraphDataset) -> Posterior:
    """Train a network with channels once, for all models that build on it."""
    key = Fingerprint.of(train), network.channels, network.depth
    if key not in _bases:
        engine = MAP(starts=1, rounds=ROUNDS.get(network.channels))
        _bases[key] = engine.run(START, EdgeModel(network), train)
    return _bases[key]


_bases: dict[tuple[Fingerprint, int, int | None], Posterior] = {}


def with_fixed_theta(model: EdgeModel, theta: Any, train: GraphDataset) -> Posterior:
    """Fix theta, and integrate over the parameters of the readout."""
    prior = model.prior.replace(theta=fixed(theta))
    with quietly():
        return Exact().run(0, model.replace(prior=prior), train)


def thinned(posterior: Posterior, n: int) -> Posterior:
    """Keep at most `n` draws of chains, evenly spaced, since each draw makes predictions slower."""
    if posterior.continuum is not None or posterior.n_draws <= n:
        return posterior
    kept = np.linspace(0, posterior.n_draws - 1, n).round().astype(int)
    weights = posterior.weights[kept]
    params = {name: values[kept] for name, values in posterior.params.items()}
    stats = {name: np.ravel(values)[kept] for name, values in posterior.sample_stats.items()}
    return replace(
        posterior,
        params=params,
        weights=weights / weights.sum(),
        n_chains=1,
        sample_stats=stats,
    )


def moments(posterior: Posterior) -> dict[str, dict[str, float]]:
    """Return the mean and the standard deviation of each parameter."""
    table = posterior.summary()
    return {
        str(name): {moment: float(table.loc[name, moment]) for moment in ("mean", "sd")}
        for name in table.index
    }


def scores(predictions: Predictions) -> dict[str, float]:
    """Return the paper's four scores, and the standard deviations over graphs that it prints."""
    by_name = {
        "NLL": metrics.nll(predictions),
        "Brier x100": metrics.brier(predictions),
        "error %": metrics.error(predictions),
    }
    values = {name: float(score) for name, score in by_name.items()}
    spreads = {f"{name}, sd": float(np.std(score.per_graph)) for name, score in by_name.items()}
    for table in (values, spreads):
        for name in table:
            table[name] *= 1.0 if name.startswith("NLL") else 100.0
    return values | spreads | {"ECE": float(metrics.ece(predictions))}


def scores_on(posterior: Posterior, tests: dict[str, GraphDataset]) -> dict[str, dict[str, float]]:
    """Return the scores on several test sets."""
    with warnings.catch_warnings():
        # Some items are about inputs unlike the training graphs, of which predictions warn.
        warnings.simplefilter("ignore", UserWarning)
        return {name: scores(predict(posterior, test)) for name, test in tests.items()}


def four_scores(posterior: Posterior, test: GraphDataset) -> dict[str, float]:
    """Return the scores on one test set, without their standard deviations over graphs."""
    by_name = scores_on(posterior, {"test": test})["test"]
    return {score: by_name[score] for score in SCORES}


def log_score(a: np.ndarray, p: np.ndarray) -> float:
    """Return the log probability of the labels if pairs are independent with probabilities p."""
    p = np.clip(p, SMALLEST, 1 - SMALLEST)
    return float(np.log(np.where(a > 0, p, 1 - p)).sum())


def labels_and_means(predictions: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and the mean probabilities of all pairs of all graphs."""
    return (
        np.concatenate([record.a for record in predictions.data]),
        np.concatenate([belief.mean for belief in predictions]),
    )


def timed(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> tuple[Result, float]:
    """Call a function; return its result and the seconds it took."""
    begin = time.perf_counter()
    return work(*arguments, **options), time.perf_counter() - begin
