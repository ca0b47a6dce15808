"""Which of several models predicts graphs best that it has not seen.

The unit is the graph: each is left out in turn, and its labels scored by what the others say. No
fit is repeated where the posterior's draws can be weighted to forget the graph (Pareto-smoothed
importance sampling, PSIS; Vehtari, Gelman and Gabry 2017); where Pareto's k says that they cannot,
the model is fitted again without the graph. Of a single graph what is left is its evidence.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from ..data.dataset import GraphDataset
from ..data.randomness import Key, split
from ..infer.diagnostics import PARETO_K, InferenceWarning
from ..infer.engines.auto import default_engine
from ..infer.engines.base import Engine
from ..infer.loo import psis_loo
from ..infer.model import EdgeModel, check_weights
from ..infer.posterior import Posterior
from .metrics import brier, ece, error, nll
from .predict import predict

# Draws that are weighted; fits that are repeated for one model at most, the worst graphs first.
DRAWS, REFITS = 1000, 10


class LeftOut(NamedTuple):
    """How well each graph is predicted by a model that has not seen it."""

    scores: Float[np.ndarray, " graphs"]
    """Log probability of its known labels."""
    pareto_k: Float[np.ndarray, " graphs"]
    """How hard it was to forget the graph; beyond 0.7, too hard."""
    refitted: Bool[np.ndarray, " graphs"]
    """Whether that was not needed, for the model was fitted without it."""

    @property
    def reliable(self) -> bool:
        return bool((self.refitted | (self.pareto_k <= PARETO_K)).all())


def leave_one_out(
    key: Key | int,
    posterior: Posterior,
    data: GraphDataset,
    weights: Any = None,
    engine: Engine | None = None,
) -> LeftOut:
    """Score each labelled graph as if it had been left out.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
        Of a fit to `data`.
    data : GraphDataset
    weights : array, shape (n_graphs,), optional
        Those of the fit.
    engine : Engine, optional
        To fit again without the graphs that are hard to forget; without one, `pareto_k` is all
        that is said about them.

    Examples
    --------
    >>> from edgebelief.belief import leave_one_out
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=10)), data)
    >>> found = leave_one_out(0, posterior, data)
    >>> found.scores.shape, found.reliable
    ((8,), True)
    """
    counts = check_weights(weights, len(data))
    counts = counts * [record.known.any() for record in data]
    draw_key, *keys = split(key, 1 + len(data))
    used = np.flatnonzero(counts)
    scores, k = np.zeros(len(data)), np.zeros(len(data))
    refitted = np.zeros(len(data), bool)
    if used.size == 1 and counts[used[0]] == 1 and posterior.log_evidence is not None:
        scores[used], refitted[used] = posterior.log_evidence, True
        return LeftOut(scores, k, refitted)
    draws = posterior.draws(draw_key, DRAWS)
    scores, k = psis_loo(posterior.model, draws, data, counts)
    hard = used[np.argsort(-k[used])][:REFITS]
    for t in hard:
        others = np.where(np.arange(len(data)) == t, 0.0, counts)
        if engine is None or k[t] <= PARETO_K or not others.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)
            again = engine.run(keys[t], posterior.model, data, others)
        scores[t], refitted[t] = predict(again, data[t : t + 1]).log_scores[0], True
    return LeftOut(scores, k, refitted)


def compare(
    key: Key | int,
    posteriors: Mapping[str, Posterior | EdgeModel],
    data: GraphDataset,
    weights: Any = None,
    engines: Mapping[str, Engine] | None = None,
    test: GraphDataset | None = None,
) -> pd.DataFrame:
    """Models of the same graphs, the one that predicts left-out graphs best first.

    Parameters
    ----------
    key, data, weights
        As for `leave_one_out`.
    posteriors : mapping from names to Posterior or EdgeModel
        What was fitted to `data`; or a model, which is fitted first, by its engine or by
        `edgebelief.infer.default_engine`.
    engines : mapping from names to Engine, optional
        To fit, and to fit again where a graph is hard to forget.
    test : GraphDataset, optional
        Other graphs with labels, to be scored as well.

    Returns
    -------
    DataFrame
        A row per model: elpd (log score of the left-out graphs, added up) and its standard error;
        behind (how far below the best) and its standard error, over the graphs; the largest Pareto
        k of the graphs for which it was relied on; refits; log evidence. With `test`, the mean
        over its graphs of NLL, Brier score and error, each with its standard error; and ECE.

    Examples
    --------
    >>> from edgebelief.belief import compare
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> fits = {d: Exact().run(0, EdgeModel(DPG(depth=d)), data) for d in (1, 30)}
    >>> compare(0, fits, data).index.tolist()
    [30, 1]
    """
    engines = engines or {}
    fits = {
        name: (engines.get(name) or default_engine(one)).run(key, one, data, weights)
        if isinstance(one, EdgeModel)
        else one
        for name, one in posteriors.items()
    }
    found = {
        name: leave_one_out(key, fit, data, weights, engines.get(name))
        for name, fit in fits.items()
    }
    counts = check_weights(weights, len(data))
    scores = {name: counts * one.scores for name, one in found.items()}
    best = max(scores, key=lambda name: scores[name].sum())

    def spread(values: np.ndarray) -> float:
        return float(np.sqrt(values.size) * values.std(ddof=1)) if values.size > 1 else np.nan

    rows = {
        name: {
            "elpd": scores[name].sum(),
            "se": spread(scores[name]),
            "behind": (scores[best] - scores[name]).sum(),
            "se of behind": spread(scores[best] - scores[name]),
            "largest k": float(np.where(one.refitted, 0.0, one.pareto_k).max()),
            "refits": int(one.refitted.sum()),
            "log evidence": fits[name].log_evidence,
            **({} if test is None else _scores(fits[name], test)),
        }
        for name, one in found.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.sort_values("elpd", ascending=False, kind="stable")


def _scores(posterior: Posterior, test: GraphDataset) -> dict[str, float]:
    """On graphs that no model has seen, with standard errors over them."""
    found, row = predict(posterior, test), {}
    for name, score in (("NLL", nll), ("Brier", brier), ("error", error)):
        value = score(found)
        each = value.per_graph[np.isfinite(value.per_graph)]
        row[name] = float(value)
        row[f"se of {name}"] = (
            float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else np.nan
        )
    return {**row, "ECE": float(ece(found))}
