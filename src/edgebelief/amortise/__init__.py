"""Amortised belief: a network trained once, on a simulated world, for graphs without labels.

Names are imported when first used: training needs less than prediction, and the other way round.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .alarm import Alarm, load_alarm, save_alarm
    from .networkfile import load_network, save_network
    from .predict import LostWarning, PairBeliefs, beliefs
    from .train import Bucket, Plan, Trainer
    from .typical import Typicality
    from .weights import pretrained
    from .world import WORLDS, Cell, Response, World, draw

__all__ = [
    "WORLDS",
    "Alarm",
    "Bucket",
    "Cell",
    "LostWarning",
    "PairBeliefs",
    "Plan",
    "Response",
    "Trainer",
    "Typicality",
    "World",
    "beliefs",
    "draw",
    "load_alarm",
    "load_network",
    "pretrained",
    "save_alarm",
    "save_network",
]

_HOMES = {
    **dict.fromkeys(["Alarm", "load_alarm", "save_alarm"], "alarm"),
    **dict.fromkeys(["load_network", "save_network"], "networkfile"),
    **dict.fromkeys(["LostWarning", "PairBeliefs", "beliefs"], "predict"),
    **dict.fromkeys(["Bucket", "Plan", "Trainer"], "train"),
    "Typicality": "typical",
    "pretrained": "weights",
    **dict.fromkeys(["WORLDS", "Cell", "Response", "World", "draw"], "world"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'edgebelief.amortise' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
