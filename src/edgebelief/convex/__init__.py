"""The convex problem without labels: learn the graph on which signals are smooth."""

from .first_order import DPG, PDS, AcceleratedDPG, FirstOrder
from .objective import (
    Penalised,
    Scaled,
    dual,
    objective,
    residual,
    rounding_floor,
    to_penalised,
    to_scaled,
    weights_of,
)
from .solve import ConvergenceWarning, Solution, solve, solve_path, theta_range
from .sparsity import Jump, SparsityTheta, theta_for

__all__ = [
    "DPG",
    "PDS",
    "AcceleratedDPG",
    "FirstOrder",
    "Jump",
    "ConvergenceWarning",
    "Penalised",
    "Scaled",
    "Solution",
    "SparsityTheta",
    "dual",
    "objective",
    "residual",
    "rounding_floor",
    "solve",
    "solve_path",
    "theta_for",
    "theta_range",
    "to_penalised",
    "to_scaled",
    "weights_of",
]
