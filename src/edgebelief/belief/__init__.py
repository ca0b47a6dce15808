"""Predict, score, decide on and explain edges, from a posterior or from a prior."""

from .calibration import CalibrationReport
from .checks import PredictiveCheck, posterior_predictive, prior_predictive
from .compare import LeftOut, compare, leave_one_out
from .crossfit import HeldOut, cross_predict
from .decide import decide
from .elicit import Elicited, elicit_prior
from .explain import TermCurve, explain, explain_edges, term_curves, term_table
from .importance import term_importance
from .predict import EdgeBelief, Predictions, intervals, predict, sample_graphs
from .propagate import propagate, to_networkx
from .shift import BeliefWarning, UnlikeWarning
from .sweep import ThetaSweep, theta_sweep
from .typicality import typicality
from .weights import WeightBelief, WeightPredictions, predict_weights

__all__ = [
    "BeliefWarning",
    "CalibrationReport",
    "EdgeBelief",
    "Elicited",
    "HeldOut",
    "LeftOut",
    "PredictiveCheck",
    "Predictions",
    "TermCurve",
    "ThetaSweep",
    "UnlikeWarning",
    "WeightBelief",
    "WeightPredictions",
    "compare",
    "cross_predict",
    "decide",
    "elicit_prior",
    "explain",
    "explain_edges",
    "intervals",
    "leave_one_out",
    "posterior_predictive",
    "predict",
    "predict_weights",
    "prior_predictive",
    "propagate",
    "sample_graphs",
    "term_curves",
    "term_importance",
    "term_table",
    "theta_sweep",
    "to_networkx",
    "typicality",
]
