"""Scores of predictions against labels.

Each takes `Predictions` (from `predict`, of graphs with labels), or a posterior and a data set, and
returns a `Score`: a number for all graphs together, and one for each graph. Unknown labels are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from sklearn.metrics import brier_score_loss, zero_one_loss

from ..data.dataset import GraphDataset
from ..errors import InputError, InputTypeError
from ..infer.posterior import Posterior
from .predict import EdgeBelief, Predictions, predict
from .weights import WeightPredictions


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
    all graphs is the mean.

    Parameters
    ----------
    predictions : Predictions, or Posterior
    data : GraphDataset, optional
        The data set to predict and score; with a posterior only.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import nll
    >>> import numpy as np
    >>> half, data = np.full(3, 0.5), GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> nll(Predictions(data, [EdgeBelief.of(half)], np.log([0.125])))
    2.0794415416798357
    """
    predictions = _with_labels(predictions, data)
    known = [record.known.any() for record in predictions.data]
    per_graph = np.where(known, -predictions.log_scores, np.nan)
    return Score(float(np.nanmean(per_graph)), per_graph)


def brier(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the paper's Brier score: the mean over the posterior of the squared error of p.

    E[(p - a)^2] is `brier_of_mean` plus the epistemic variance. As a score of the predictive
    probability it is therefore not proper. All known edges have equal weight.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import brier
    >>> import numpy as np
    >>> p, data = np.array([0.8, 0.1, 0.1]), GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> round(brier(Predictions(data, [EdgeBelief.of(p, 0.1)], np.zeros(1))), 3)
    0.03
    """
    return _over_edges(
        predictions,
        data,
        lambda x: float(np.mean((x.belief.mean - x.a) ** 2 + x.belief.epistemic_sd**2)),
    )


def brier_of_mean(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the mean squared error of the predictive mean, (E[p] - a)^2: a proper score.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import brier_of_mean
    >>> import numpy as np
    >>> p, data = np.array([0.8, 0.1, 0.1]), GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> round(brier_of_mean(Predictions(data, [EdgeBelief.of(p)], np.zeros(1))), 3)
    0.02
    """
    return _over_edges(
        predictions, data, lambda x: float(brier_score_loss(x.a, x.belief.mean, pos_label=1))
    )


def error(predictions: Predictions | Posterior, data: GraphDataset | None = None) -> Score:
    """Compute the share of known edges with p on the wrong side of one half.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import error
    >>> import numpy as np
    >>> p, data = np.array([0.8, 0.1, 0.7, 0.1, 0, 0]), GraphDataset([np.ones(6)], [np.eye(6)[0]])
    >>> round(error(Predictions(data, [EdgeBelief.of(p)], np.zeros(1))), 3)
    0.167
    """
    return _over_edges(
        predictions,
        data,
        lambda x: float(zero_one_loss(x.a.astype(int), (x.belief.mean > 0.5) * 1)),
    )


def calibration_curve(
    predictions: Predictions | Posterior, data: GraphDataset | None = None, *, n_bins: int = 10
) -> CalibrationCurve:
    """Compute the accuracy of predictions by their confidence, over all known edges of the set.

    The confidence max(p, 1 - p) is binned: bin k is (0.5 + 0.5 (k-1)/n, 0.5 + 0.5 k/n], and the
    first bin contains 0.5 too.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import calibration_curve
    >>> import numpy as np
    >>> p, data = np.array([0.8, 0.1, 0.6]), GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> curve = calibration_curve(
    ...     Predictions(data, [EdgeBelief.of(p)], np.zeros(1)), n_bins=2
    ... )
    >>> curve.count, curve.accuracy
    (array([1., 2.]), array([0., 1.]))
    """
    return _curve(_pooled(_with_labels(predictions, data)), n_bins)


def ece(
    predictions: Predictions | Posterior, data: GraphDataset | None = None, *, n_bins: int = 10
) -> Score:
    """Compute the expected calibration error: the mean of |accuracy - confidence| over edges.

    Accuracy and confidence are those of the bins of `calibration_curve`, of all known edges of the
    set together. The score of a single graph, with few edges, is mostly noise.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import ece
    >>> import numpy as np
    >>> p, data = np.array([0.75, 0.75, 0.75]), GraphDataset([[1.0, 2.0, 3.0]], [[1, 1, 0]])
    >>> round(ece(Predictions(data, [EdgeBelief.of(p)], np.zeros(1))), 3)
    0.083
    """

    def score(labelled: _Labelled) -> float:
        curve = _curve(labelled, n_bins)
        gaps = np.abs(curve.accuracy - curve.confidence)
        return float(np.nansum(gaps * curve.count) / labelled.a.size)

    return _over_edges(predictions, data, score)


def uncertainty_error_correlation(
    predictions: Predictions | Posterior, data: GraphDataset | None = None
) -> Correlation:
    """Compute the correlation of |p - a| with the predictive sd, over edges with known labels.

    It is NaN where either of the two does not vary.

    Examples
    --------
    >>> from edgebelief.belief import Predictions, EdgeBelief
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import uncertainty_error_correlation
    >>> import numpy as np
    >>> p, data = np.array([0.9, 0.6, 0.0]), GraphDataset([[1.0, 2.0, 3.0]], [[1, 1, 0]])
    >>> belief = EdgeBelief.of(p)
    >>> round(uncertainty_error_correlation(Predictions(data, [belief], np.zeros(1))).all, 3)
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
    >>> from edgebelief.belief import EdgeBelief, Predictions, WeightBelief, WeightPredictions
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import crps
    >>> import numpy as np
    >>> data = GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, 0.0]], weighted=True)
    >>> presence = Predictions(data, [EdgeBelief.of(np.full(3, 0.5))], np.zeros(1))
    >>> low, high = np.full(3, 1.0), np.full(3, 4.0)
    >>> belief = WeightBelief(np.full(3, 0.5), low, low, low, high, low)
    >>> each = [np.array([0.5, 2.0, 0.5])]
    >>> crps(WeightPredictions(presence, [belief], 0.9, each, each))
    1.0
    """
    return _over_weights(predictions.crps)


def crps_given_edge(predictions: WeightPredictions) -> Score:
    """Compute the `crps` of the weights of edges, given that they are edges.

    Examples
    --------
    >>> from edgebelief.belief import EdgeBelief, Predictions, WeightBelief, WeightPredictions
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import crps_given_edge
    >>> import numpy as np
    >>> data = GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, 0.0]], weighted=True)
    >>> presence = Predictions(data, [EdgeBelief.of(np.full(3, 0.5))], np.zeros(1))
    >>> low, high = np.full(3, 1.0), np.full(3, 4.0)
    >>> belief = WeightBelief(np.full(3, 0.5), low, low, low, high, low)
    >>> each = [np.array([0.5, 2.0, np.nan])]
    >>> crps_given_edge(WeightPredictions(presence, [belief], 0.9, each, each))
    1.25
    """
    return _over_weights(predictions.crps_given_edge)


def weight_coverage(predictions: WeightPredictions) -> Score:
    """Compute the share of edges whose weight lies in its interval; it should be near the level.

    Examples
    --------
    >>> from edgebelief.belief import EdgeBelief, Predictions, WeightBelief, WeightPredictions
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.metrics import weight_coverage
    >>> import numpy as np
    >>> data = GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, 0.0]], weighted=True)
    >>> presence = Predictions(data, [EdgeBelief.of(np.full(3, 0.5))], np.zeros(1))
    >>> low, high = np.full(3, 1.0), np.full(3, 4.0)
    >>> belief = WeightBelief(np.full(3, 0.5), low, low, low, high, low)
    >>> weight_coverage(WeightPredictions(presence, [belief], 0.9, [None], [None]))
    0.5
    """
    covered: list[np.ndarray | None] = []
    for record, belief in zip(predictions.data, predictions, strict=True):
        if record.w is None:
            covered.append(None)
            continue
        inside = (belief.low <= record.w) & (record.w <= belief.high)
        covered.append(np.where(record.a > 0, inside, np.nan))
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
        raise InputTypeError(
            f"expected what `predict` returns, or a posterior and a data set; got "
            f"{type(predictions).__name__}."
        )
    if predictions.data.n_labels == 0:
        raise InputError("no label is known in this data set, so there is nothing to score.")
    return predictions


class _Labelled(NamedTuple):
    """Edges with known labels."""

    a: Float[np.ndarray, " edges"]
    belief: EdgeBelief


def _each_graph(predictions: Predictions) -> list[_Labelled]:
    return [
        _Labelled(record.a[record.known], EdgeBelief(*(x[record.known] for x in belief)))
        for record, belief in zip(predictions.data, predictions, strict=True)
    ]


def _pooled(predictions: Predictions) -> _Labelled:
    """Concatenate the labelled edges of all graphs."""
    graphs = _each_graph(predictions)
    fields = zip(*(graph.belief for graph in graphs), strict=True)
    belief = EdgeBelief(*(np.concatenate(values) for values in fields))
    return _Labelled(np.concatenate([graph.a for graph in graphs]), belief)


def _over_edges(
    predictions: Predictions | Posterior,
    data: GraphDataset | None,
    score: Callable[[_Labelled], float],
) -> Score:
    """Score the edges of all graphs together, and those of each graph."""
    predictions = _with_labels(predictions, data)
    per_graph = [score(graph) if graph.a.size else np.nan for graph in _each_graph(predictions)]
    return Score(score(_pooled(predictions)), per_graph)


def _curve(labelled: _Labelled, n_bins: int) -> CalibrationCurve:
    a, mean = labelled.a, labelled.belief.mean
    edges = 0.5 + 0.5 * np.arange(n_bins + 1) / n_bins
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
