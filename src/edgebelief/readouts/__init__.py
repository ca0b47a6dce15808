"""From what a network knows to the logit of each edge."""

from .additive import Additive, AdditiveParams
from .affine import Affine, AffineParams
from .base import Readout
from .features import OF_NETWORK
from .two_slope import TwoSlope, TwoSlopeParams

__all__ = [
    "OF_NETWORK",
    "Additive",
    "AdditiveParams",
    "Affine",
    "AffineParams",
    "Readout",
    "TwoSlope",
    "TwoSlopeParams",
]
