"""From a network's last state to logits."""

from .affine import Affine, AffineParams
from .base import Readout

__all__ = ["Affine", "AffineParams", "Readout"]
