"""Unrolled iterations: from distances to edge weights and duals, with few parameters."""

from .base import Network, Output
from .dpg import DPG, DPGParams
from .pds import PDS, PDSParams

__all__ = ["DPG", "PDS", "DPGParams", "Network", "Output", "PDSParams"]
