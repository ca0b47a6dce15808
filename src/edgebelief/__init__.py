"""Learn graphs from data, with calibrated belief in every edge.

Names are imported when first used, so that `import edgebelief` costs nothing.
"""

from typing import TYPE_CHECKING

from .lazy import lazily
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

__getattr__, __dir__ = lazily(
    __name__,
    {
        "convex": ["Solution", "solve", "solve_path", "theta_for"],
        "estimators": ["GraphLearner", "SmoothGraph", "load"],
    },
    modules=[
        *("belief", "convex", "data", "edges", "estimators", "fleet", "infer", "metrics"),
        *("networks", "plots", "readouts", "report"),
    ],
)
