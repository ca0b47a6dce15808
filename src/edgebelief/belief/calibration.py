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
    Brier 0.02 (of the mean 0.02)
    error 0.00%
    ECE 0.1333
    correlation of error and sd 1.000 (edges there nan, not there nan)
    """

    nll: Score
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
            metrics.brier(predictions),
            metrics.brier_of_mean(predictions),
            metrics.error(predictions),
            metrics.ece(predictions, n_bins=n_bins),
            metrics.uncertainty_error_correlation(predictions),
            metrics.calibration_curve(predictions, n_bins=n_bins),
        )

    def as_dict(self) -> dict[str, float]:
        """Return the scores by name."""
        names = "nll", "brier", "brier_of_mean", "error", "ece"
        return {name: float(getattr(self, name)) for name in names} | {
            f"error-sd correlation, {name} edges": float(value)
            for name, value in self.correlation._asdict().items()
        }

    def __str__(self) -> str:
        all_edges, present, absent = self.correlation
        several = np.isfinite(self.nll.per_graph).sum() > 1
        spread = f" (sd {self.nll.std:.3g})" if several else ""
        return (
            f"NLL {self.nll:.4g} a graph{spread}\n"
            f"Brier {self.brier:.4g} (of the mean {self.brier_of_mean:.4g})\n"
            f"error {self.error:.2%}\n"
            f"ECE {self.ece:.4g}\n"
            f"correlation of error and sd {all_edges:.3f} "
            f"(edges there {present:.3f}, not there {absent:.3f})"
        )
