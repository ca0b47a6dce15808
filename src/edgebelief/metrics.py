"""Scores of belief against labels: `edgebelief.belief.metrics` by its public name."""

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
    "error",
    "nll",
    "uncertainty_error_correlation",
    "weight_coverage",
]
