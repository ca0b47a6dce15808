"""CalibrationReport: all scores of a set of predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import metrics
from .metrics import CalibrationCurve, Correlation, Score
from .predict import Predictions


@dataclass(frozen=True)
class CalibrationReport:
    """Scores of belief against labels, and the reliability curve behind them.

    Examples
    --------
    >>> from edgebelief import belief, data
    >>> graph = data.GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]])
    >>> of_edges = belief.EdgeBelief.of([0.8, 0.1, 0.1])
    >>> print(belief.CalibrationReport.of(belief.Predictions(graph, [of_edges], [-0.4339])))
    NLL 0.4339 a graph
    edge by edge 0.4339 a graph, 0.1446 a pair
    Brier 0.02 (of the mean 0.02)
    error 0.00%
    ECE 0.1333
    correlation of error and sd 1.000 (edges there nan, not there nan)
    """

    nll: Score
    edge_nll: Score
    brier: Score
    brier_of_mean: Score
    error: Score
    ece: Score
    correlation: Correlation
    curve: CalibrationCurve

    @classmethod
    def of(cls, predictions: Predictions, n_bins: int = 10) -> CalibrationReport:
        """Compute all scores of predictions of graphs with labels."""
        return cls(
            metrics.nll(predictions),
            metrics.edge_nll(predictions),
            metrics.brier(predictions),
            metrics.brier_of_mean(predictions),
            metrics.error(predictions),
            metrics.ece(predictions, n_bins=n_bins),
            metrics.uncertainty_error_correlation(predictions),
            metrics.calibration_curve(predictions, n_bins=n_bins),
        )

    def as_dict(self) -> dict[str, float]:
        """Return the scores by name."""
        names = "nll", "edge_nll", "brier", "brier_of_mean", "error", "ece"
        return {name: float(getattr(self, name)) for name in names} | {
            f"error-sd correlation, {name} edges": float(value)
            for name, value in self.correlation._asdict().items()
        }

    def __str__(self) -> str:
        all_edges, present, absent = self.correlation
        return (
            f"NLL {self.nll:.4g} a graph{_spread(self.nll)}\n"
            f"edge by edge {self.edge_nll:.4g} a graph{_spread(self.edge_nll)}, "
            f"{np.nansum(self.edge_nll.per_graph) / self.curve.count.sum():.4g} a pair\n"
            f"Brier {self.brier:.4g} (of the mean {self.brier_of_mean:.4g})\n"
            f"error {self.error:.2%}\n"
            f"ECE {self.ece:.4g}\n"
            f"correlation of error and sd {all_edges:.3f} "
            f"(edges there {present:.3f}, not there {absent:.3f})"
        )


def _spread(score: Score) -> str:
    """Return the sd over the graphs, where there are several with labels."""
    return f" (sd {score.std:.3g})" if np.isfinite(score.per_graph).sum() > 1 else ""
