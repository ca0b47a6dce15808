"""Amortised belief: a network trained once, on a simulated world, for graphs without labels.

Names are imported when first used: training needs less than prediction, and the other way round.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .networkfile import load_network, save_network
    from .predict import PairBeliefs, beliefs
    from .train import Bucket, Plan, Trainer
    from .weights import pretrained
    from .world import WORLDS, Cell, Response, World, draw

__all__ = [
    "WORLDS",
    "Bucket",
    "Cell",
    "PairBeliefs",
    "Plan",
    "Response",
    "Trainer",
    "World",
    "beliefs",
    "draw",
    "load_network",
    "pretrained",
    "save_network",
]

_HOMES = {
    **dict.fromkeys(["load_network", "save_network"], "networkfile"),
    **dict.fromkeys(["PairBeliefs", "beliefs"], "predict"),
    **dict.fromkeys(["Bucket", "Plan", "Trainer"], "train"),
    "pretrained": "weights",
    **dict.fromkeys(["WORLDS", "Cell", "Response", "World", "draw"], "world"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'edgebelief.amortise' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
