"""The paper's readout of a network with several channels."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..edges import Support
from ..networks import Output
from .base import Pairs, PerEdge, Readout
from .curves import AnyArray

# The weight of each edge in each channel, divided by the number of channels.
OfChannels = Float[Array, "... edges channels"]


class ChannelsParams(NamedTuple):
    """delta: the slope in the weight of each channel. b: minus the logit at weight zero."""

    delta: Float[AnyArray, " channels"]
    b: Float[ArrayLike, ""]


class Channels(Readout):
    """logit = mean over channels j of delta_j a_j, minus b. With one channel it is `Affine`.

    Parameters
    ----------
    channels : int
        The number of channels of the network.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief import edges, networks, readouts
    >>> output = networks.MIMO(2)(networks.MIMOParams(jnp.full(4, 0.5)), jnp.array([1.0, 9.0, 9.0]))
    >>> params = readouts.ChannelsParams(jnp.array([5.0, 15.0]), 2.0)
    >>> readouts.Channels(2)(params, output, edges.Complete(3)).round(1)
    Array([ 5.4, -1.4, -1.4], dtype=float32)
    """

    channels: int = eqx.field(static=True, default=4)

    params_type = ChannelsParams

    @property
    def sizes(self) -> dict[str, int]:
        return {"delta": self.channels}

    @property
    def n_channels(self) -> int:
        return self.channels

    @property
    def part_names(self) -> tuple[str, ...]:
        return (*(f"channel {j + 1}" for j in range(self.channels)), "baseline")

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> OfChannels:
        return jnp.moveaxis(output.a, -2, -1) / self.channels

    def logits(self, params: ChannelsParams, reduced: OfChannels) -> PerEdge:
        return reduced @ jnp.asarray(params.delta) - params.b

    def columns(self, reduced: OfChannels) -> Float[Array, "... edges channels+1"]:
        return jnp.concatenate([reduced, -jnp.ones_like(reduced[..., :1])], -1)
