"""What a posterior says about graphs, and what a prior does."""

from .checks import PredictiveCheck, posterior_predictive, prior_predictive
from .elicit import Elicited, ThetaSweep, elicit_prior, theta_sweep
from .predict import BeliefWarning, EdgeBelief, Predictions, predict, sample_graphs

__all__ = [
    "BeliefWarning",
    "EdgeBelief",
    "Elicited",
    "PredictiveCheck",
    "Predictions",
    "ThetaSweep",
    "elicit_prior",
    "posterior_predictive",
    "predict",
    "prior_predictive",
    "sample_graphs",
    "theta_sweep",
]
