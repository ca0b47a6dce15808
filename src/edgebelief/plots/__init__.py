"""Displays: objects that hold the data of a figure; `.plot()` draws it, without showing it."""

from .check import CheckDisplay
from .edges import EdgesDisplay
from .graph import GraphDisplay
from .marginals import MarginalsDisplay
from .reliability import ReliabilityDisplay
from .sweep import SweepDisplay
from .terms import TermsDisplay
from .trace import PairDisplay, TraceDisplay

__all__ = [
    "CheckDisplay",
    "EdgesDisplay",
    "GraphDisplay",
    "MarginalsDisplay",
    "PairDisplay",
    "ReliabilityDisplay",
    "SweepDisplay",
    "TermsDisplay",
    "TraceDisplay",
]
