"""Learn graphs from data, with calibrated belief in every edge.

Names are imported when first used, so that `import edgebelief` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import belief, convex, data, edges, infer, metrics, networks, plots, readouts
    from .convex import Solution, solve, solve_path, theta_for

__version__ = "0.1.0"

__all__ = [
    "Solution",
    "belief",
    "convex",
    "data",
    "edges",
    "infer",
    "metrics",
    "networks",
    "plots",
    "readouts",
    "solve",
    "solve_path",
    "theta_for",
]

# Where the names that are no module live.
_HOMES = {"Solution": "convex", "solve": "convex", "solve_path": "convex", "theta_for": "convex"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'edgebelief' has no attribute {name!r}")
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
