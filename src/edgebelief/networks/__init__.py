"""Unrolled iterations: from distances to edge weights and duals, with few parameters."""

from ..convex.iterations import State
from .base import Network
from .dpg import DPG, DPGParams
from .pds import PDS, PDSParams

__all__ = ["DPG", "PDS", "DPGParams", "Network", "PDSParams", "State"]
