"""Belief over parameters: priors, likelihood, the model; engines and the posterior they return."""

from ..errors import DoesNotApply
from .diagnostics import Finding, InferenceWarning, Verdict
from .engines.auto import default_engine
from .engines.base import Engine
from .engines.exact import Exact
from .engines.laplace import Laplace
from .engines.map import MAP
from .engines.mixture import Mixture
from .engines.modes import Modes
from .engines.nuts import NUTS
from .engines.vi import VI
from .likelihoods import BernoulliEdges, Likelihood, WeightedEdges
from .model import EdgeModel
from .posterior import Fingerprint, Posterior
from .priors import (
    Fixed,
    HalfNormal,
    HalfT,
    LogNormal,
    LogUniform,
    Marginal,
    Normal,
    Prior,
    fixed,
    half_normal,
    half_t,
    lognormal,
    loguniform,
    normal,
)

__all__ = [
    "BernoulliEdges",
    "DoesNotApply",
    "EdgeModel",
    "Engine",
    "Exact",
    "Finding",
    "Fixed",
    "Fingerprint",
    "InferenceWarning",
    "Laplace",
    "Likelihood",
    "HalfNormal",
    "HalfT",
    "LogNormal",
    "LogUniform",
    "MAP",
    "Marginal",
    "Mixture",
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
    "half_t",
    "lognormal",
    "loguniform",
    "normal",
]
