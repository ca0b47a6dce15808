"""Graph learning in scikit-learn's conventions."""

from ..persist.learner import load
from .learner import GraphLearner
from .smooth import SmoothGraph

__all__ = ["GraphLearner", "SmoothGraph", "load"]
