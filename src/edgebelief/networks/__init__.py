"""Networks: unrolled iterations with few parameters, and the pair network with many."""

from .base import Network, Output
from .dpg import DPG, DPGParams
from .head import HeadParams, StochasticHead
from .mimo import MIMO, MIMOParams
from .pair import PairNetwork, PairOutput, PairShape
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
    "PairNetwork",
    "PairOutput",
    "PairShape",
    "StochasticHead",
]
