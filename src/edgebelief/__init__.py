"""Learn graphs from data, with calibrated belief in every edge.

Names are imported when first used, so that `import edgebelief` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import (
        belief,
        convex,
        data,
        edges,
        estimators,
        fleet,
        infer,
        metrics,
        networks,
        plots,
        readouts,
        report,
    )
    from .convex import Solution, solve, solve_path, theta_for
    from .estimators import GraphLearner, SmoothGraph, load

__all__ = [
    "GraphLearner",
    "SmoothGraph",
    "Solution",
    "belief",
    "convex",
    "data",
    "edges",
    "estimators",
    "fleet",
    "infer",
    "load",
    "metrics",
    "networks",
    "plots",
    "readouts",
    "report",
    "solve",
    "solve_path",
    "theta_for",
    "__version__",
]

# Where the names that are no module live.
_HOMES = {
    **dict.fromkeys(["Solution", "solve", "solve_path", "theta_for"], "convex"),
    **dict.fromkeys(["GraphLearner", "SmoothGraph", "load"], "estimators"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'edgebelief' has no attribute {name!r}")
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
