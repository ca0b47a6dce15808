"""Belief over parameters: priors, likelihood, the model; engines and the posterior they return."""

from .auto import default_engine
from .engine import Engine
from .exact import Exact
from .likelihoods import BernoulliEdges, Likelihood, WeightedEdges
from .map import MAP
from .model import EdgeModel
from .modes import Modes
from .nuts import NUTS
from .posterior import Fingerprint, Posterior
from .priors import (
    Fixed,
    HalfNormal,
    LogNormal,
    LogUniform,
    Marginal,
    Normal,
    Prior,
    fixed,
    half_normal,
    lognormal,
    loguniform,
    normal,
)
from .verdict import Finding, InferenceWarning, Verdict
from .vi import VI

__all__ = [
    "BernoulliEdges",
    "EdgeModel",
    "Engine",
    "Exact",
    "Finding",
    "Fixed",
    "Fingerprint",
    "InferenceWarning",
    "Likelihood",
    "HalfNormal",
    "LogNormal",
    "LogUniform",
    "MAP",
    "Marginal",
    "Modes",
    "NUTS",
    "Normal",
    "Posterior",
    "Prior",
    "VI",
    "Verdict",
    "WeightedEdges",
    "default_engine",
    "fixed",
    "half_normal",
    "lognormal",
    "loguniform",
    "normal",
]
