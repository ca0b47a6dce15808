"""Predict labels by fits that have not seen them: hold out some nodes of every graph, or graphs.

With one labelled graph there is no other graph to test on. Its nodes are dealt into folds, and for
each fold the model is fitted without the labels of all pairs that touch a node of the fold. A pair
of nodes from two folds is held out twice; it is predicted once, by the fit without the fold of its
first node. So each label is predicted once, by a fit that has seen no label of one of its nodes.
The distances of the whole graph are given to every fit, as they are to every prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from ..data.dataset import GraphDataset, GraphRecord, frozen
from ..data.randomness import Key, as_key, generator
from ..errors import InputError, SettingError
from ..validate import check_choice
from .predict import EdgeBelief, Predictions
from .shift import held_out

HeldOut = Literal["nodes", "graphs"]
# Five folds of nodes leave 64 % of the labels of a graph to each fit.
FOLDS = 5

Predictor = Callable[[GraphDataset, GraphDataset], Predictions]
"""Fits to the first data set, and predicts the second."""


class Fold(NamedTuple):
    """The labels that a fit may see, and those that it is to predict; the graphs are the same."""

    train: GraphDataset
    test: GraphDataset


def cross_predict(
    key: Key | int,
    data: GraphDataset,
    fit_and_predict: Predictor,
    cv: HeldOut = "nodes",
    n_folds: int = FOLDS,
) -> Predictions:
    """Predict every known label by a fit that has not seen it.

    Parameters
    ----------
    key : JAX key or int
        Deals nodes, or graphs, into folds.
    data : GraphDataset
        Graphs with labels.
    fit_and_predict : callable
        Takes the data with the labels to learn from, and the data with the labels to score; fits
        to the first, and returns the `Predictions` of the second.
    cv : "nodes" or "graphs"
        What is held out: some nodes of every graph, with all labels that touch them; or some of
        the graphs, with all their labels.
    n_folds : int
        The number of fits; fewer where there are fewer nodes or graphs.

    Returns
    -------
    Predictions
        Of `data`. A belief is that of the fit that has not seen the label; a graph's log score is
        the sum over the folds of the joint log predictive probability of the labels in each.

    Examples
    --------
    >>> from edgebelief import belief, data, infer, metrics
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 2, n_nodes=12, n_signals=300)
    >>> def fit_and_predict(train, test):
    ...     return belief.predict(infer.Exact().run(0, infer.EdgeModel(), train), test)
    >>> held_out = belief.cross_predict(0, graphs, fit_and_predict, n_folds=2)
    >>> fitted = fit_and_predict(graphs, graphs)
    >>> bool(metrics.edge_nll(held_out) > metrics.edge_nll(fitted))
    True
    """
    made = folds(key, data, cv, n_folds)
    with held_out():
        return together(data, made, (fit_and_predict(*fold) for fold in made))


def together(
    data: GraphDataset, made: Iterable[Fold], predicted: Iterable[Predictions]
) -> Predictions:
    """Put the predictions of all folds together, as `cross_predict` does."""
    rows = [np.full((len(EdgeBelief._fields), record.e.size), np.nan) for record in data]
    log_scores = np.zeros(len(data))
    for fold, predictions in zip(made, predicted, strict=True):
        log_scores += np.where([r.known.any() for r in fold.test], predictions.log_scores, 0.0)
        for t, (record, belief) in enumerate(zip(fold.test, predictions, strict=True)):
            unseen = record.known | np.isnan(rows[t][0])  # pairs without a label: any fit will do
            rows[t][:, unseen] = np.stack(belief)[:, unseen]
    return Predictions(data, [EdgeBelief(*of_graph) for of_graph in rows], log_scores)


def folds(
    key: Key | int, data: GraphDataset, cv: HeldOut = "nodes", n_folds: int = FOLDS
) -> list[Fold]:
    """Split the known labels into folds; each is scored once, by a fit that has not seen it.

    Folds without a label to score, or to learn from, are left out; see `cross_predict`.
    """
    check_choice(cv, "cv", ("nodes", "graphs"))
    if not (isinstance(n_folds, int | np.integer) and n_folds >= 2):
        raise SettingError(f"must be a number from 2 on; got {n_folds!r}.", argument="n_folds")
    rng = generator(as_key(key))
    if cv == "graphs":
        dealt = _dealt(len(data), n_folds, rng)
        first = second = [np.full(record.e.size, dealt[t]) for t, record in enumerate(data)]
    else:
        by_node = [_dealt(len(record.names), n_folds, rng) for record in data]
        ends = [record.support.endpoints for record in data]
        first = [of[rows] for of, (rows, _) in zip(by_node, ends, strict=True)]
        second = [of[cols] for of, (_, cols) in zip(by_node, ends, strict=True)]
    made = []
    for k in range(n_folds):
        touched = [(i == k) | (j == k) for i, j in zip(first, second, strict=True)]
        train = _with_known(data, [~out for out in touched])
        test = _with_known(data, [i == k for i in first])
        if test.n_labels:
            if not train.n_labels:
                raise InputError(
                    f"{len(data)} graph{'s' if len(data) > 1 else ''} with {data.n_labels} labels "
                    f"cannot be split by {cv}: a fold would have no label to learn from. Give more "
                    f"labels, or {'hold out nodes' if cv == 'graphs' else 'more nodes'}."
                )
            made.append(Fold(train, test))
    return made


def _dealt(n: int, n_folds: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """Deal n things into folds of nearly equal size."""
    return rng.permutation(np.arange(n) % n_folds)


def _with_known(data: GraphDataset, kept: list[Bool[np.ndarray, " edges"]]) -> GraphDataset:
    """Return the data without the labels of the other pairs."""

    def masked(record: GraphRecord, keep: Bool[np.ndarray, " edges"]) -> GraphRecord:
        known = record.known & keep
        w = None if record.w is None else frozen(np.where(known, record.w, np.nan))
        return record._replace(a=frozen(np.where(known, record.a, 0.0)), known=frozen(known), w=w)

    return GraphDataset._of([masked(*each) for each in zip(data, kept, strict=True)])
