"""The contestants of the paper, fitted to the same graphs, and their scores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edgebelief import metrics
from edgebelief.belief.predict import Predictions, predict
from edgebelief.data.dataset import GraphDataset
from edgebelief.infer import MAP, NUTS, EdgeModel, Exact, InferenceWarning, Posterior, fixed
from edgebelief.infer.posterior import Fingerprint
from edgebelief.networks import DPG, MIMO, PDS, StochasticHead
from edgebelief.readouts import Additive

# Those of the paper's tables, and ours.
PAPERS = ("DPG", "PDS", "MIMO", "MIMO-E")
ADDITIVE = "DPG, additive"
SCORES = ("NLL", "Brier x100", "error %", "ECE")
# Of the starts 0 to 4 of MIMO on the authors' graphs the one with the highest density at its end;
# one of them ends in a poor maximum.
START = 4
# A gradient of eight channels takes five times as long as one of four: their training is stopped.
ROUNDS = {8: 60}


def authors_graphs(path: Path) -> dict[str, GraphDataset]:
    """The published RG(1/3) graphs: train, validation, test."""
    with np.load(path) as file:
        parts = {name.partition("_")[0] for name in file.files}
        return {
            part: GraphDataset(list(file[f"{part}_distances"]), list(file[f"{part}_adjacency"]))
            for part in sorted(parts)
        }


@contextmanager
def quietly() -> Iterator[None]:
    """Findings of a verdict are figures here, not warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        yield


def fitted(
    name: str, train: GraphDataset, depth: int = 200, seed: int = 0, n_draws: int = 1000
) -> Posterior:
    """A contestant by its name: those of `PAPERS`, `ADDITIVE`, or "DPG-U".

    MIMO is trained from one start with four channels ("MIMO, 8": eight, for `ROUNDS`); MIMO-E
    puts heads on two of them ("MIMO-E, 4": on all).
    `n_draws` are those of a chain, or of an additive readout.
    """
    kind, _, detail = name.partition(", ")
    # Few draws are a rehearsal: it need not go far.
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
            # On the authors' graphs every draw goes as far as it may: these had not ended after 13
            # minutes.
            chains = replace(chains, n_warmup=n_draws // 4, n_draws=n_draws // 2, max_tree_depth=6)
        return chains.run(seed, EdgeModel(head), train)


def _trained(network: MIMO, train: GraphDataset) -> Posterior:
    """The maximum of a network with channels, for all that build on it."""
    key = Fingerprint.of(train), network.channels, network.depth
    if key not in _bases:
        engine = MAP(starts=1, rounds=ROUNDS.get(network.channels))
        _bases[key] = engine.run(START, EdgeModel(network), train)
    return _bases[key]


_bases: dict[tuple[Fingerprint, int, int | None], Posterior] = {}


def with_readout_in_doubt(base: Posterior, train: GraphDataset) -> Posterior:
    """Theta where a fit has put it, the readout's parameters added up."""
    model = base.model
    still = model.replace(prior=model.prior.replace(theta=fixed(base.params["theta"][0])))
    with quietly():
        return Exact().run(0, still, train)


def thinned(posterior: Posterior, n: int) -> Posterior:
    """At most `n` of the draws of chains, evenly: predictions cost as much as there are draws."""
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


def scores(found: Predictions) -> dict[str, float]:
    """The paper's four, and the standard deviations over graphs that it prints with them."""
    each = {
        "NLL": metrics.nll(found),
        "Brier x100": metrics.brier(found),
        "error %": metrics.error(found),
    }
    values = {name: float(score) for name, score in each.items()}
    spreads = {f"{name}, sd": float(np.std(score.per_graph)) for name, score in each.items()}
    for table in (values, spreads):
        for name in table:
            table[name] *= 1.0 if name.startswith("NLL") else 100.0
    return values | spreads | {"ECE": float(metrics.ece(found))}


def scores_on(posterior: Posterior, tests: dict[str, GraphDataset]) -> dict[str, dict[str, float]]:
    """On several test sets."""
    with warnings.catch_warnings():
        # Inputs that are not like those fitted are the point of some items.
        warnings.simplefilter("ignore", UserWarning)
        return {name: scores(predict(posterior, test)) for name, test in tests.items()}


def timed(work: Any, *arguments: Any) -> tuple[Any, float]:
    """What a function returns, and how many seconds it took."""
    begin = time.perf_counter()
    return work(*arguments), time.perf_counter() - begin
