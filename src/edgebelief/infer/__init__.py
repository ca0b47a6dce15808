"""Belief over parameters: priors, likelihood, the model; engines and the posterior they return."""

from .exact import Exact
from .likelihoods import BernoulliEdges
from .model import EdgeModel
from .posterior import Fingerprint, Posterior
from .priors import LogNormal, LogUniform, Marginal, Normal, Prior, lognormal, loguniform, normal
from .verdict import Finding, InferenceWarning, Verdict

__all__ = [
    "BernoulliEdges",
    "EdgeModel",
    "Exact",
    "Finding",
    "Fingerprint",
    "InferenceWarning",
    "LogNormal",
    "LogUniform",
    "Marginal",
    "Normal",
    "Posterior",
    "Prior",
    "Verdict",
    "lognormal",
    "loguniform",
    "normal",
]
