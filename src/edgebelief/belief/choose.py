"""Compare models, or mix them, by how well they predict labels which their fits have not seen.

Each candidate is fitted in a moment (`infer.exact.plugin`) to all but some of the graphs, and
predicts those; where there are few graphs, to all but some of the nodes. The score is what a user
reads: the log score of each pair's probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from ..data.dataset import GraphDataset
from ..data.randomness import Key, generator, split
from ..infer.exact.plugin import PlugIn
from ..infer.exact.recalibrate import Recalibration
from ..infer.loo import stacking_weights
from ..infer.prepare import Problem
from ..threads import Workers
from .compare import ranked
from .crossfit import Fold, HeldOut, folds, together
from .metrics import LEAST, edge_nll
from .predict import EdgeBelief, Predictions

# Draws of coefficients over which a probability is averaged.
DRAWS = 200
# With fewer labelled graphs, what differs between graphs cannot be seen.
FEWEST_GRAPHS = 3


class Choice(NamedTuple):
    """Candidates, the best first, and what they say of labels that they have not seen."""

    table: pd.DataFrame
    """elpd (the sum of the log scores of all pairs), behind (how far below the best), and their
    standard errors over graphs."""
    predictions: Mapping[Any, Predictions]

    @property
    def best(self) -> Any:
        return self.table.index[0]


def cross_fitted(key: Key | int, problem: Problem, cv: HeldOut) -> Predictions:
    """Predict each label by a quick fit of a prepared model that has not seen it."""
    plug_in = PlugIn(problem.model, problem.data, problem.counts, problem.network_z)
    return cross_predicted(key, plug_in, problem.data, cv)


def cross_predicted(
    key: Key | int, quick: PlugIn | Recalibration, data: GraphDataset, cv: HeldOut
) -> Predictions:
    """Predict each label by a quick fit that has not seen it."""
    fold_key, draw_key = split(key, 2)

    def fit_and_predict(fold: Fold) -> Predictions:
        fitted: Any = quick.fit([record.known for record in fold.train])
        p = quick.probabilities(fitted, generator(draw_key), DRAWS)
        beliefs = [EdgeBelief.of(each) for each in p]
        return Predictions(fold.test, beliefs, np.zeros(len(fold.test)))

    made = folds(fold_key, data, cv)
    with Workers() as workers, threadpool_limits(1):
        return together(data, made, workers.map(fit_and_predict, made))


def shares_of(
    predictions: Mapping[Any, Predictions], counts: Float[np.ndarray, " graphs"]
) -> dict[Any, float]:
    """Return the shares with which a mixture of cross-fitted predictions has the best log score.

    The score is that of the probability of each pair; `counts` says how often each graph counts.
    """
    log_scores = np.stack([_log_scores(each) for each in predictions.values()])
    data = next(iter(predictions.values())).data
    known = np.concatenate([record.known for record in data])
    of_pairs = np.concatenate([np.full(r.e.size, c) for r, c in zip(data, counts, strict=True)])
    shares = stacking_weights(log_scores[:, known], of_pairs[known])
    return dict(zip(predictions, map(float, shares), strict=True))


def gain(
    predictions: Mapping[Any, Predictions],
    shares: Mapping[Any, float],
    alone: Any,
    counts: Float[np.ndarray, " graphs"],
) -> tuple[float, float]:
    """Return how much better than one candidate alone a mixture predicts, and its standard error.

    Both of the sum of the log scores of all pairs. The error is that over graphs; of fewer than
    three, that over pairs, as if they were independent.
    """
    data = predictions[alone].data
    together = Predictions(data, mixed(predictions, shares), np.zeros(len(data)))
    of_pairs = _log_scores(together) - _log_scores(predictions[alone])
    known = np.concatenate([record.known for record in data])
    graph = np.repeat(np.arange(len(data)), [record.e.size for record in data])
    each = np.where(known, counts[graph] * of_pairs, 0.0)
    if np.count_nonzero(np.bincount(graph, known) * counts) >= FEWEST_GRAPHS:
        each = np.bincount(graph, each)
    return float(each.sum()), float(np.sqrt(each.size) * each.std())


def mixed(predictions: Mapping[Any, Predictions], shares: Mapping[Any, float]) -> list[EdgeBelief]:
    """Return the mean belief, with these shares."""
    each = [predictions[name] for name in shares]
    weights = np.array(list(shares.values()))
    return [
        EdgeBelief.of(weights @ [b.mean for b in beliefs]) for beliefs in zip(*each, strict=True)
    ]


def _log_scores(predictions: Predictions) -> Float[np.ndarray, " edges"]:
    """Return the log probability of the label of each pair of all graphs."""
    each = [
        np.where(record.a == 1, belief.mean, 1 - belief.mean)
        for record, belief in zip(predictions.data, predictions, strict=True)
    ]
    return np.log(np.maximum(np.concatenate(each), LEAST))


def compared(
    predictions: Mapping[Any, Predictions], counts: Float[np.ndarray, " graphs"]
) -> Choice:
    """Compare cross-fitted predictions; `counts` says how often each graph counts.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.choose import compared, cross_fitted
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.prepare import prepare
    >>> from edgebelief.networks import DPG
    >>> graphs = GraphDataset.sample(3, RandomGeometric(0.5), 6, 8, n_signals=30)
    >>> problems = {depth: prepare(0, EdgeModel(DPG(depth)), graphs) for depth in (1, 30)}
    >>> predictions = {depth: cross_fitted(0, p, "graphs") for depth, p in problems.items()}
    >>> compared(predictions, np.ones(6)).table.index.tolist()
    [30, 1]
    """
    scores = {
        name: -counts * np.nan_to_num(edge_nll(each).per_graph)
        for name, each in predictions.items()
    }
    return Choice(ranked(scores), predictions)
