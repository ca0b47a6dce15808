"""What a posterior says about graphs."""

from .predict import BeliefWarning, EdgeBelief, Predictions, predict, sample_graphs

__all__ = [
    "BeliefWarning",
    "EdgeBelief",
    "Predictions",
    "predict",
    "sample_graphs",
]
