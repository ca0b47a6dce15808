"""Scores of predictions against labels: the public name of `edgebelief.belief.metrics`."""

from .belief.metrics import (
    CalibrationCurve,
    Correlation,
    Score,
    brier,
    brier_of_mean,
    calibration_curve,
    crps,
    crps_given_edge,
    ece,
    edge_nll,
    edge_scorer,
    error,
    nll,
    uncertainty_error_correlation,
    weight_coverage,
)

__all__ = [
    "CalibrationCurve",
    "Correlation",
    "Score",
    "brier",
    "brier_of_mean",
    "calibration_curve",
    "crps",
    "crps_given_edge",
    "ece",
    "edge_nll",
    "edge_scorer",
    "error",
    "nll",
    "uncertainty_error_correlation",
    "weight_coverage",
]
