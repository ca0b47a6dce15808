"""Unrolled iterations: networks from distances to edge weights and duals, with few parameters."""

from .base import Network, Output
from .dpg import DPG, DPGParams
from .head import HeadParams, StochasticHead
from .mimo import MIMO, MIMOParams
from .pds import PDS, PDSParams

__all__ = [
    "DPG",
    "MIMO",
    "PDS",
    "DPGParams",
    "HeadParams",
    "MIMOParams",
    "Network",
    "Output",
    "PDSParams",
    "StochasticHead",
]
