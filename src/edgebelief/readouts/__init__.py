"""Readouts turn the output of a network into the logit of each edge."""

from ..networks import Network
from .additive import Additive, AdditiveParams
from .affine import Affine, AffineParams
from .base import Readout
from .channels import Channels, ChannelsParams
from .features import OF_NETWORK
from .given import Given, GivenParams
from .shift import Shift, ShiftParams
from .sized import Sized, SizedParams
from .two_slope import TwoSlope, TwoSlopeParams

__all__ = [
    "OF_NETWORK",
    "Additive",
    "AdditiveParams",
    "Affine",
    "AffineParams",
    "Channels",
    "ChannelsParams",
    "Given",
    "GivenParams",
    "Readout",
    "Shift",
    "ShiftParams",
    "Sized",
    "SizedParams",
    "TwoSlope",
    "TwoSlopeParams",
    "papers_readout",
]


def papers_readout(network: Network) -> Readout:
    """Return the readout that the paper uses with a network.

    Examples
    --------
    >>> from edgebelief.networks import DPG, PDS
    >>> from edgebelief.readouts import papers_readout
    >>> papers_readout(DPG()), papers_readout(PDS())
    (Affine(), Shift())
    """
    if network.n_channels is not None:
        return Channels(network.n_channels)
    return Shift() if network.kind == "pds" else Affine()
