"""Belief over parameters: priors, likelihood, the model; engines and the posterior they return."""

from .engine import Engine
from .exact import Exact
from .likelihoods import BernoulliEdges
from .map import MAP
from .model import EdgeModel
from .nuts import NUTS
from .posterior import Fingerprint, Posterior
from .priors import (
    HalfNormal,
    LogNormal,
    LogUniform,
    Marginal,
    Normal,
    Prior,
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
    "Fingerprint",
    "InferenceWarning",
    "HalfNormal",
    "LogNormal",
    "LogUniform",
    "MAP",
    "Marginal",
    "NUTS",
    "Normal",
    "Posterior",
    "Prior",
    "VI",
    "Verdict",
    "half_normal",
    "lognormal",
    "loguniform",
    "normal",
]
