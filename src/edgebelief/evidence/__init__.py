"""Evidence: what the data say about a pair of nodes, the whole graph considered."""

from .base import Evidence
from .choose import applicable
from .correlation import PartialCorrelation, RankCorrelation, SignedCorrelation
from .custom import Custom
from .diffusion import Diffusion
from .forest import ForestImportance
from .gather import add, check_names, compute, compute_all
from .information import MutualInformation
from .likelihood import MostLikelyGraph
from .precision import Precision, SignalPrecision
from .profile import Profile
from .smooth import SmoothStructure

__all__ = [
    "Custom",
    "Diffusion",
    "Evidence",
    "ForestImportance",
    "MostLikelyGraph",
    "MutualInformation",
    "PartialCorrelation",
    "Precision",
    "Profile",
    "RankCorrelation",
    "SignalPrecision",
    "SignedCorrelation",
    "SmoothStructure",
    "add",
    "applicable",
    "check_names",
    "compute",
    "compute_all",
]
