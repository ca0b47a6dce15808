"""Scores of predictions against labels.

Each takes `Predictions` (from `predict`, of graphs with labels), or a posterior and a data set, and
returns a `Score`: a number for all graphs together, and one for each graph. Unknown labels are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from sklearn.metrics import brier_score_loss, zero_one_loss

from ..data.dataset import GraphDataset
from ..errors import InputError, InputTypeError
from ..infer.posterior import Posterior
from .predict import EdgeBelief, Predictions, predict
from .weights import WeightPredictions

# A number for each edge.
PerEdge = Float[np.ndarray, " edges"]
# Networks count in single precision, where the largest number below 1 is 1 - LEAST.
LEAST = 2.0**-24


class Score(float):
    """A score of all graphs together, which also has the score of each graph."""

    per_graph: Float[np.ndarray, " graphs"]
    """NaN for a graph without known labels."""

    def __new__(cls, value: float, per_graph: ArrayLike) -> Score:
        new = super().__new__(cls, value)
        new.per_graph = np.asarray(per_graph, float)
        return new

    def __reduce__(self) -> tuple[type[Score], tuple[float, np.ndarray]]:
        return (Score, (float(self), self.per_graph))

    @property
    def std(self) -> float:
        """The standard deviation over the graphs."""
        return float(np.nanstd(self.per_graph))


class CalibrationCurve(NamedTuple):
    """The accuracy of predictions by their confidence, in bins. NaN in empty bins."""

    confidence: Float[np.ndarray, " bins"]
    """The mean of max(p, 1 - p)."""
    accuracy: Float[np.ndarray, " bins"]
    """The share of edges whose label is the more probable one."""
    count: Float[np.ndarray, " bins"]  # type: ignore[assignment]
    """The number of edges in each bin."""
    edges: Float[np.ndarray, " bins+1"]
    """The edges of the bins, from 0.5 to 1; each bin contains its upper edge."""


class Correlation(NamedTuple):
    """The correlation of |p - a| with the predictive sd."""

    all: float
    """Over all edges."""
    present: float
    """Over edges with label 1."""
    absent: float
    """Over edges with label 0."""


def nll(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the negative log of the joint predictive probability of a graph's known labels.

    It is -log sum_m w_m prod_i p(a_i | draw m): the edges of a graph share the draw. The score of
    all graphs is the mean. In a graph with many labels few of the draws carry nearly all of the
    sum, so it is noisy there (by several units at 100,000 labels); `edge_nll` is not.

    Parameters
    ----------
    predictions : Predictions, or Posterior
    data : GraphDataset, optional
        The data set to predict and score; with a posterior only.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.5, 0.5, 0.5])], [-2.08])
    >>> metrics.nll(predictions)  # three labels, each of probability 0.5: -3 log 0.5
    2.08
    """
    predictions = _with_labels(predictions, data)
    known = [record.known.any() for record in predictions.data]
    per_graph = np.where(known, -predictions.log_scores, np.nan)
    return Score(float(np.nanmean(per_graph)), per_graph)


def edge_nll(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the sum over a graph's known labels of the negative log of their probability.

    It is -sum_i log p(a_i), with p the mean over the posterior: each edge alone, where `nll` scores
    all edges of a graph together. A mean over draws is precise where the joint probability is not,
    so this is the score to compare models of large graphs by. The score of all graphs is the mean.

    Networks count in single precision: a label of probability below 2^-24 (6e-8) counts as 2^-24.
    Of weights, the presence alone is scored.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.8, 0.1, 0.1])], [0.0])
    >>> round(metrics.edge_nll(predictions), 4)  # -log 0.8 - 2 log 0.9
    0.4339
    """
    predictions = _with_labels(predictions, data)
    per_graph = [
        -np.log(np.maximum(np.where(a == 1, p.mean, 1 - p.mean), LEAST)).sum() if a.size else np.nan
        for a, p in _each_graph(predictions)
    ]
    return Score(float(np.nanmean(per_graph)), per_graph)


def edge_scorer(learner: Any, X: Any, A: Any = None, **of_graphs: Any) -> float:
    """Score a fitted learner by `edge_nll`, for scikit-learn's ``scoring=``; higher is better.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from edgebelief import GraphLearner, metrics
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=8, n_signals=100)
    >>> learner = GraphLearner(readout="affine", depth=50)
    >>> cross_val_score(learner, data, cv=2, scoring=metrics.edge_scorer).shape
    (2,)
    """
    return float(learner.score(X, A, scoring="edges", **of_graphs))


def brier(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the paper's Brier score: the mean over the posterior of the squared error of p.

    E[(p - a)^2] is `brier_of_mean` plus the epistemic variance. As a score of the predictive
    probability it is therefore not proper. All known edges have equal weight.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.8, 0.1, 0.1], 0.1)], [0.0])
    >>> round(metrics.brier(predictions), 3)
    0.03
    """
    return _over_edges(
        predictions, data, lambda a, p: np.mean((p.mean - a) ** 2 + p.epistemic_sd**2)
    )


def brier_of_mean(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the mean squared error of the predictive mean, (E[p] - a)^2: a proper score.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.8, 0.1, 0.1])], [0.0])
    >>> round(metrics.brier_of_mean(predictions), 3)
    0.02
    """
    return _over_edges(predictions, data, lambda a, p: brier_score_loss(a, p.mean, pos_label=1))


def error(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the share of known edges with p on the wrong side of one half.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.8, 0.1, 0.7])], [0.0])
    >>> round(metrics.error(predictions), 3)
    0.333
    """
    return _over_edges(
        predictions, data, lambda a, p: zero_one_loss(a.astype(int), (p.mean > 0.5) * 1)
    )


def calibration_curve(
    predictions: Predictions | Posterior, data: GraphDataset | None = None, *, n_bins: int = 10
) -> CalibrationCurve:
    """Compute the accuracy of predictions by their confidence, over all known edges of the set.

    The confidence max(p, 1 - p) is binned: bin k is (0.5 + 0.5 (k-1)/n, 0.5 + 0.5 k/n], and the
    first bin contains 0.5 too.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.8, 0.1, 0.6])], [0.0])
    >>> curve = metrics.calibration_curve(predictions, n_bins=2)
    >>> curve.count, curve.accuracy
    (array([1., 2.]), array([0., 1.]))
    """
    return _curve(*_pooled(_with_labels(predictions, data)), n_bins)


def ece(
    predictions: Predictions | Posterior, data: GraphDataset | None = None, *, n_bins: int = 10
) -> Score:
    """Compute the expected calibration error: the mean of |accuracy - confidence| over edges.

    Accuracy and confidence are those of the bins of `calibration_curve`, of all known edges of the
    set together. The score of a single graph, with few edges, is mostly noise.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 1, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.75, 0.75, 0.75])], [0.0])
    >>> round(metrics.ece(predictions), 3)
    0.083
    """

    def score(a: PerEdge, belief: EdgeBelief) -> np.floating:
        curve = _curve(a, belief, n_bins)
        gaps = np.abs(curve.accuracy - curve.confidence)
        return np.nansum(gaps * curve.count) / a.size

    return _over_edges(predictions, data, score)


def uncertainty_error_correlation(
    predictions: Predictions | Posterior, data: GraphDataset | None = None
) -> Correlation:
    """Compute the correlation of |p - a| with the predictive sd, over edges with known labels.

    It is NaN where either of the two does not vary.

    Examples
    --------
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 1, 0]])
    >>> predictions = belief.Predictions(graph, [belief.EdgeBelief.of([0.9, 0.6, 0.0])], [0.0])
    >>> round(metrics.uncertainty_error_correlation(predictions).all, 3)
    0.917
    """
    a, belief = _pooled(_with_labels(predictions, data))
    errors = np.abs(belief.mean - a)

    def over(which: Bool[np.ndarray, " edges"]) -> float:
        x, y = errors[which], belief.total_sd[which]
        if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
            return float("nan")
        return float(np.corrcoef(x, y)[0, 1])

    return Correlation(over(np.ones(a.size, bool)), over(a == 1), over(a == 0))


def crps(predictions: WeightPredictions) -> Score:
    """Compute the continuous ranked probability score of weights, over all known pairs.

    A pair that is no edge has weight 0, so this is a proper score of presence and weight together.
    It is in the unit of the weights: if the prediction is one number it is the absolute error. The
    library scoringrules computes it from samples of the prediction, by an unbiased estimator.

    Parameters
    ----------
    predictions : WeightPredictions
        What `predict_weights` returns for graphs with weights.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, 0.0]], weighted=True)
    >>> presence = belief.Predictions(graph, [belief.EdgeBelief.of([0.5, 0.5, 0.5])], [0.0])
    >>> scores = [np.array([0.5, 2.0, 0.5])]  # of each pair, as `predict_weights` computes them
    >>> metrics.crps(belief.WeightPredictions(presence, [], 0.9, scores, [None]))
    1.0
    """
    return _over_weights(predictions.crps)


def crps_given_edge(predictions: WeightPredictions) -> Score:
    """Compute the `crps` of the weights of edges, given that they are edges.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, 0.0]], weighted=True)
    >>> presence = belief.Predictions(graph, [belief.EdgeBelief.of([0.5, 0.5, 0.5])], [0.0])
    >>> scores = [np.array([0.5, 2.0, np.nan])]  # NaN for the pair that is no edge
    >>> metrics.crps_given_edge(belief.WeightPredictions(presence, [], 0.9, [None], scores))
    1.25
    """
    return _over_weights(predictions.crps_given_edge)


def weight_coverage(predictions: WeightPredictions) -> Score:
    """Compute the share of edges whose weight lies in its interval; it should be near the level.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import belief, data, metrics
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, 0.0]], weighted=True)
    >>> presence = belief.Predictions(graph, [belief.EdgeBelief.of([0.5, 0.5, 0.5])], [0.0])
    >>> low, high, half = np.full(3, 1.0), np.full(3, 4.0), np.full(3, 0.5)
    >>> weights = belief.WeightBelief(half, low, low, low, high, low)
    >>> metrics.weight_coverage(belief.WeightPredictions(presence, [weights], 0.9, [None], [None]))
    0.5
    """
    covered = [
        np.where(record.a > 0, (belief.low <= record.w) & (record.w <= belief.high), np.nan)
        if record.w is not None
        else None
        for record, belief in zip(predictions.data, predictions, strict=True)
    ]
    return _over_weights(covered)


def _over_weights(scores: Sequence[np.ndarray | None]) -> Score:
    """Average scores of pairs: an array for each graph, NaN for pairs that do not count."""
    kept = [np.zeros(0) if x is None else x[~np.isnan(x)] for x in scores]
    if not sum(x.size for x in kept):
        raise InputError(
            "no weight is known in this data set, so there is nothing to score. Weights are labels "
            "of GraphDataset(..., weighted=True)."
        )
    per_graph = [x.mean() if x.size else np.nan for x in kept]
    return Score(float(np.concatenate(kept).mean()), per_graph)


def _with_labels(predictions: Predictions | Posterior, data: GraphDataset | None) -> Predictions:
    """Return predictions of a data set with labels; compute them if a posterior is given."""
    if isinstance(predictions, Posterior):
        if data is None:
            raise InputTypeError("with a posterior, give the data set to score too.")
        predictions = predict(predictions, data)
    elif not isinstance(predictions, Predictions):
        expected = "expected what `predict` returns, or a posterior and a data set"
        raise InputTypeError(f"{expected}; got {type(predictions).__name__}.")
    if predictions.data.n_labels == 0:
        raise InputError("no label is known in this data set, so there is nothing to score.")
    return predictions


def _each_graph(predictions: Predictions) -> list[tuple[PerEdge, EdgeBelief]]:
    """Return the known labels of each graph, and the belief in these edges."""
    return [
        (record.a[record.known], EdgeBelief(*(x[record.known] for x in belief)))
        for record, belief in zip(predictions.data, predictions, strict=True)
    ]


def _pooled(predictions: Predictions) -> tuple[PerEdge, EdgeBelief]:
    """Concatenate the labelled edges of all graphs."""
    labels, beliefs = zip(*_each_graph(predictions), strict=True)
    fields = zip(*beliefs, strict=True)
    return np.concatenate(labels), EdgeBelief(*(np.concatenate(values) for values in fields))


def _over_edges(
    predictions: Predictions | Posterior,
    data: GraphDataset | None,
    score: Callable[[PerEdge, EdgeBelief], float | np.floating],
) -> Score:
    """Score the edges of all graphs together, and those of each graph."""
    predictions = _with_labels(predictions, data)
    per_graph = [score(a, belief) if a.size else np.nan for a, belief in _each_graph(predictions)]
    return Score(float(score(*_pooled(predictions))), np.array(per_graph))


def _curve(a: PerEdge, belief: EdgeBelief, n_bins: int) -> CalibrationCurve:
    mean, edges = belief.mean, 0.5 + 0.5 * np.arange(n_bins + 1) / n_bins
    confidence = np.maximum(mean, 1 - mean)
    right = (mean > 0.5) == (a == 1)
    bin_of = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)
    count = np.bincount(bin_of, minlength=n_bins).astype(float)
    with np.errstate(invalid="ignore"):
        return CalibrationCurve(
            np.bincount(bin_of, confidence, n_bins) / count,
            np.bincount(bin_of, right, n_bins) / count,
            count,
            edges,
        )
