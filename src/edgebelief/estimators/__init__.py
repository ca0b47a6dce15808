"""Graph learning in scikit-learn's conventions."""

from .learner import GraphLearner, load
from .smooth import SmoothGraph

__all__ = ["GraphLearner", "SmoothGraph", "load"]
