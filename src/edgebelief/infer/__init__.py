"""Belief over parameters: priors, likelihood, the model."""

from .likelihoods import BernoulliEdges
from .model import EdgeModel
from .priors import LogNormal, LogUniform, Marginal, Normal, Prior, lognormal, loguniform, normal

__all__ = [
    "BernoulliEdges",
    "EdgeModel",
    "LogNormal",
    "LogUniform",
    "Marginal",
    "Normal",
    "Prior",
    "lognormal",
    "loguniform",
    "normal",
]
