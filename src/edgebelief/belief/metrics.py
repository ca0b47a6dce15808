"""Scores of belief against labels.

Each takes `Predictions` (from `predict`, on graphs with labels), or a posterior and a data set, and
returns a `Score`: the figure over all graphs, with one per graph beside it. Unknown labels do not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.metrics import brier_score_loss, zero_one_loss

from ..data.dataset import GraphDataset
from ..errors import InputError, InputTypeError
from ..infer.posterior import Posterior
from .predict import EdgeBelief, Predictions, predict
from .weights import WeightPredictions


class Score(float):
    """A figure over all graphs that knows those of each graph (NaN where no label is known)."""

    per_graph: Float[np.ndarray, " graphs"]

    def __new__(cls, value: float, per_graph: Any) -> Score:
        new = super().__new__(cls, value)
        new.per_graph = np.asarray(per_graph, float)
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        return (Score, (float(self), self.per_graph))

    @property
    def std(self) -> float:
        """Standard deviation over the graphs."""
        return float(np.nanstd(self.per_graph))


class CalibrationCurve(NamedTuple):
    """How often belief of each strength was right. NaN in empty bins."""

    confidence: Float[np.ndarray, " bins"]
    """Mean of max(p, 1 - p)."""
    accuracy: Float[np.ndarray, " bins"]
    """Share of edges on the believed side."""
    count: Float[np.ndarray, " bins"]  # type: ignore[assignment]
    edges: Float[np.ndarray, " bins+1"]
    """From 0.5 to 1; a bin holds its upper edge."""


class Correlation(NamedTuple):
    """Of |p - a| with the predictive sd."""

    all: float
    present: float
    """Over edges with label 1."""
    absent: float
    """Over edges with label 0."""


def nll(predictions: Any, data: GraphDataset | None = None) -> Score:
    """Negative log predictive probability of a graph's known labels, together.

    -log sum_m w_m prod_i p(a_i | draw m): the edges of a graph share the draw. The figure is the
    mean over graphs.

    Parameters
    ----------
    predictions : Predictions, or Posterior
    data : GraphDataset, optional
        With a posterior: what to predict and score.

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
    found = _labelled(predictions, data)
    per_graph = np.where([record.known.any() for record in found.data], -found.log_scores, np.nan)
    return Score(float(np.nanmean(per_graph)), per_graph)


def brier(predictions: Any, data: GraphDataset | None = None) -> Score:
    """Mean squared error of p, averaged over the posterior: E[(p - a)^2]. The paper's.

    It is `brier_of_mean` plus the epistemic variance, so it charges for doubt; as a score of the
    prediction itself it is not proper. All known edges alike.

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
        predictions, data, lambda a, b: float(np.mean((b.mean - a) ** 2 + b.epistemic_sd**2))
    )


def brier_of_mean(predictions: Any, data: GraphDataset | None = None) -> Score:
    """Mean squared error of the predictive mean, (E[p] - a)^2: the proper score.

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
        predictions, data, lambda a, b: float(brier_score_loss(a, b.mean, pos_label=1))
    )


def error(predictions: Any, data: GraphDataset | None = None) -> Score:
    """Share of known edges on the wrong side of one half.

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
        predictions, data, lambda a, b: float(zero_one_loss(a.astype(int), (b.mean > 0.5) * 1))
    )


def calibration_curve(
    predictions: Any, data: GraphDataset | None = None, *, n_bins: int = 10
) -> CalibrationCurve:
    """How often belief of each strength was right, over all known edges of the set.

    Confidence max(p, 1 - p), in bins (0.5 + 0.5 (k-1)/n, 0.5 + 0.5 k/n], the first closed.

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
    a, belief = _pooled(_labelled(predictions, data))
    return _curve(a, belief.mean, n_bins)


def ece(predictions: Any, data: GraphDataset | None = None, *, n_bins: int = 10) -> Score:
    """Expected calibration error: |accuracy - confidence|, averaged over all known edges.

    Within the bins of `calibration_curve`, pooled over the set; per graph beside it (with few edges
    that is mostly noise).

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

    def of(a: np.ndarray, belief: EdgeBelief) -> float:
        curve = _curve(a, belief.mean, n_bins)
        return float(np.nansum(np.abs(curve.accuracy - curve.confidence) * curve.count) / a.size)

    return _over_edges(predictions, data, of)


def uncertainty_error_correlation(
    predictions: Any, data: GraphDataset | None = None
) -> Correlation:
    """Correlation of |p - a| with the predictive sd: over all edges, those there, those not.

    NaN where either does not vary.

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
    a, belief = _pooled(_labelled(predictions, data))
    off = np.abs(belief.mean - a)

    def over(which: np.ndarray) -> float:
        x, y = off[which], belief.total_sd[which]
        if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
            return float("nan")
        return float(np.corrcoef(x, y)[0, 1])

    return Correlation(over(np.ones(a.size, bool)), over(a == 1), over(a == 0))


def crps(predictions: WeightPredictions) -> Score:
    """Continuous ranked probability score of weights, over all known pairs; no edge is weight 0.

    Proper, of presence and weight together, in the unit of the weights: for a prediction that is
    one number it is the absolute error. By the library scoringrules, from draws of the prediction
    (its estimator without bias).

    Parameters
    ----------
    predictions : WeightPredictions
        From `predict_weights`, of graphs with weights.

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
    return _over_weights(predictions, predictions.crps)


def crps_given_edge(predictions: WeightPredictions) -> Score:
    """`crps` of the weights of edges, given that they are edges: the others do not count.

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
    return _over_weights(predictions, predictions.crps_given_edge)


def weight_coverage(predictions: WeightPredictions) -> Score:
    """The share of edges whose weight lies in its interval; it should be near the level.

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
    inside: list[np.ndarray | None] = []
    for record, belief in zip(predictions.data, predictions, strict=True):
        if record.w is None:
            inside.append(None)
            continue
        held = (belief.low <= record.w) & (record.w <= belief.high)
        inside.append(np.where(record.a > 0, held, np.nan))
    return _over_weights(predictions, inside)


def _over_weights(
    predictions: WeightPredictions, each: Sequence[Float[np.ndarray, " edges"] | None]
) -> Score:
    """The mean over pairs of what is known of some of them."""
    kept = [np.zeros(0) if x is None else x[~np.isnan(x)] for x in each]
    if not sum(x.size for x in kept):
        raise InputError(
            "no weight is known in this data set, so there is nothing to score. Weights are labels "
            "of GraphDataset(..., weighted=True)."
        )
    per_graph = [x.mean() if x.size else np.nan for x in kept]
    return Score(float(np.concatenate(kept).mean()), per_graph)


def _labelled(predictions: Any, data: GraphDataset | None) -> Predictions:
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


def _of_graph(predictions: Predictions, t: int) -> tuple[np.ndarray, EdgeBelief]:
    record = predictions.data[t]
    return record.a[record.known], EdgeBelief(*(x[record.known] for x in predictions[t]))


def _pooled(predictions: Predictions) -> tuple[np.ndarray, EdgeBelief]:
    parts = [_of_graph(predictions, t) for t in range(len(predictions))]
    beliefs = (np.concatenate(column) for column in zip(*(b for _, b in parts), strict=True))
    return np.concatenate([a for a, _ in parts]), EdgeBelief(*beliefs)


def _over_edges(
    predictions: Any,
    data: GraphDataset | None,
    score: Callable[[np.ndarray, EdgeBelief], float],
) -> Score:
    """A score of edges: pooled over the set, and of each graph."""
    found = _labelled(predictions, data)
    parts = [_of_graph(found, t) for t in range(len(found))]
    per_graph = [score(a, b) if a.size else np.nan for a, b in parts]
    return Score(score(*_pooled(found)), per_graph)


def _curve(a: np.ndarray, mean: np.ndarray, n_bins: int) -> CalibrationCurve:
    edges = 0.5 + 0.5 * np.arange(n_bins + 1) / n_bins
    confidence = np.maximum(mean, 1 - mean)
    right = (mean > 0.5) == (a == 1)
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)
    count = np.bincount(place, minlength=n_bins).astype(float)
    with np.errstate(invalid="ignore"):
        return CalibrationCurve(
            np.bincount(place, confidence, n_bins) / count,
            np.bincount(place, right, n_bins) / count,
            count,
            edges,
        )
