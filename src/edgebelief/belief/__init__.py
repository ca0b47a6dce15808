"""What a posterior says about graphs, and what a prior does."""

from .calibration import CalibrationReport
from .checks import PredictiveCheck, posterior_predictive, prior_predictive
from .decide import decide
from .elicit import Elicited, ThetaSweep, elicit_prior, theta_sweep
from .explain import TermCurve, explain, term_curves, term_table
from .likeness import BeliefWarning
from .predict import EdgeBelief, Predictions, intervals, predict, sample_graphs
from .propagate import propagate, to_networkx

__all__ = [
    "BeliefWarning",
    "CalibrationReport",
    "EdgeBelief",
    "Elicited",
    "PredictiveCheck",
    "Predictions",
    "TermCurve",
    "ThetaSweep",
    "decide",
    "elicit_prior",
    "explain",
    "intervals",
    "posterior_predictive",
    "predict",
    "prior_predictive",
    "propagate",
    "sample_graphs",
    "term_curves",
    "term_table",
    "theta_sweep",
    "to_networkx",
]
