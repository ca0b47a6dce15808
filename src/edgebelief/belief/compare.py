"""Which of several models best predicts graphs that it has not seen.

The unit is the graph: each is left out in turn, and its labels are scored by what the others say.
No fit is repeated where the posterior's draws can be weighted to leave the graph out
(Pareto-smoothed importance sampling, PSIS; Vehtari, Gelman and Gabry 2017); where Pareto's k says
that they cannot, the model is fitted again without the graph. For a single graph the score is the
log evidence.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

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
from .shift import held_out

# Draws that are weighted; fits that are repeated for one model at most, those of the graphs with
# the largest Pareto k.
DRAWS, REFITS = 1000, 10


class LeftOut(NamedTuple):
    """How well each graph is predicted by a model that has not seen it."""

    scores: Float[np.ndarray, " graphs"]
    """Log probability of each graph's known labels."""
    pareto_k: Float[np.ndarray, " graphs"]
    """Pareto's k of the importance weights that leave the graph out; beyond 0.7 they are not
    reliable."""
    refitted: Bool[np.ndarray, " graphs"]
    """Whether the model was fitted again without the graph, so that k does not matter."""

    @property
    def reliable(self) -> bool:
        """Whether every score can be relied on."""
        return bool((self.refitted | (self.pareto_k <= PARETO_K)).all())


def leave_one_out(
    key: Key | int,
    posterior: Posterior,
    data: GraphDataset,
    weights: ArrayLike | None = None,
    engine: Engine | None = None,
) -> LeftOut:
    """Score each labelled graph as if it had been left out.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
        The posterior of a fit to `data`.
    data : GraphDataset
    weights : array, shape (n_graphs,), optional
        The weights of the graphs in the fit.
    engine : Engine, optional
        Fits again without the graphs whose Pareto k is too large. By default no fit is repeated,
        and `pareto_k` says which scores are not reliable.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(3, data.RandomGeometric(0.5), 8, 8, n_signals=30)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> left_out = belief.leave_one_out(0, posterior, graphs)
    >>> left_out.scores.shape, left_out.reliable
    ((8,), True)
    """
    counts = check_weights(weights, len(data)) * [record.known.any() for record in data]
    draw_key, *keys = split(key, 1 + len(data))
    used = np.flatnonzero(counts)
    scores, k = np.zeros(len(data)), np.zeros(len(data))
    refitted = np.zeros(len(data), bool)
    if used.size == 1 and counts[used[0]] == 1 and posterior.log_evidence is not None:
        scores[used], refitted[used] = posterior.log_evidence, True
        return LeftOut(scores, k, refitted)
    draws = posterior.draws(draw_key, DRAWS)
    scores, k = psis_loo(posterior.model, draws, data, counts)
    for t in used[np.argsort(-k[used])][:REFITS]:
        others = np.where(np.arange(len(data)) == t, 0.0, counts)
        if engine is None or k[t] <= PARETO_K or not others.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)
            without = engine.run(keys[t], posterior.model, data, others)
        with held_out():
            scores[t], refitted[t] = predict(without, data[t : t + 1]).log_scores[0], True
    return LeftOut(scores, k, refitted)


def compare(
    key: Key | int,
    posteriors: Mapping[str, Posterior | EdgeModel],
    data: GraphDataset,
    weights: ArrayLike | None = None,
    engines: Mapping[str, Engine] | None = None,
    test: GraphDataset | None = None,
) -> pd.DataFrame:
    """Compare models of the same graphs; the one that best predicts left-out graphs comes first.

    Parameters
    ----------
    key, data, weights
        As for `leave_one_out`.
    posteriors : mapping from names to Posterior or EdgeModel
        What was fitted to `data`; or a model, which is fitted first, by its engine or by
        `edgebelief.infer.default_engine`.
    engines : mapping from names to Engine, optional
        The engine of each model: it fits the model, and fits it again without the graphs whose
        Pareto k is too large.
    test : GraphDataset, optional
        Other graphs with labels, to be scored as well.

    Returns
    -------
    DataFrame
        A row per model: elpd (the sum of the log scores of the left-out graphs) and its standard
        error se; behind (how far below the best) and its standard error se_behind, over the
        graphs; largest_k, the largest Pareto k among the graphs without a refit; refits;
        log_evidence. With `test`, the mean over its graphs of nll, brier and error, each with its
        standard error (se_nll, ...); and ece.

    Examples
    --------
    >>> from edgebelief import belief, data, infer, networks
    >>> graphs = data.GraphDataset.sample(3, data.RandomGeometric(0.5), 8, 8, n_signals=30)
    >>> models = {depth: infer.EdgeModel(networks.DPG(depth=depth)) for depth in (2, 30)}
    >>> belief.compare(0, models, graphs).index.tolist()
    [30, 2]
    """
    engines = engines or {}
    fits = {
        name: (engines.get(name) or default_engine(fit)).run(key, fit, data, weights)
        if isinstance(fit, EdgeModel)
        else fit
        for name, fit in posteriors.items()
    }
    left_out = {
        name: leave_one_out(key, fit, data, weights, engines.get(name))
        for name, fit in fits.items()
    }
    counts = check_weights(weights, len(data))
    scores = {name: counts * each.scores for name, each in left_out.items()}
    others = {
        name: {
            "largest_k": float(np.where(each.refitted, 0.0, each.pareto_k).max()),
            "refits": int(each.refitted.sum()),
            "log_evidence": fits[name].log_evidence,
            **({} if test is None else _scores(fits[name], test)),
        }
        for name, each in left_out.items()
    }
    return ranked(scores).join(pd.DataFrame.from_dict(others, orient="index"))


def ranked(scores: Mapping[Any, Float[np.ndarray, " graphs"]]) -> pd.DataFrame:
    """Return a row for each model, the best first, from its log score of each graph.

    The columns are elpd and its standard error se; behind and its standard error se_behind: see
    `compare`.
    """
    best = max(scores, key=lambda name: scores[name].sum())

    def standard_error(values: np.ndarray) -> float:
        return float(np.sqrt(values.size) * values.std(ddof=1)) if values.size > 1 else np.nan

    rows = {
        name: {
            "elpd": each.sum(),
            "se": standard_error(each),
            "behind": (scores[best] - each).sum(),
            "se_behind": standard_error(scores[best] - each),
        }
        for name, each in scores.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.sort_values("elpd", ascending=False, kind="stable")


def _scores(posterior: Posterior, test: GraphDataset) -> dict[str, float]:
    """Return the scores on graphs that no model has seen, with standard errors over them."""
    predictions, row = predict(posterior, test), {}
    for score in (nll, brier, error):
        name, value = score.__name__, score(predictions)
        each = value.per_graph[np.isfinite(value.per_graph)]
        row[name] = float(value)
        row[f"se_{name}"] = (
            float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else np.nan
        )
    return {**row, "ece": float(ece(predictions))}
