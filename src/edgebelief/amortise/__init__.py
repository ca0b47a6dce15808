"""Amortised belief: a network trained once, on a simulated world, for graphs without labels.

Names are imported when first used: training needs less than prediction, and the other way round.
"""

from typing import TYPE_CHECKING

from ..lazy import lazily

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

__getattr__, __dir__ = lazily(
    __name__,
    {
        "alarm": ["Alarm", "load_alarm", "save_alarm"],
        "networkfile": ["load_network", "save_network"],
        "predict": ["LostWarning", "PairBeliefs", "beliefs"],
        "train": ["Bucket", "Plan", "Trainer"],
        "typical": ["Typicality"],
        "weights": ["pretrained"],
        "world": ["WORLDS", "Cell", "Response", "World", "draw"],
    },
)
