"""The paper's readout of a network with several channels."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from .base import Readout


class ChannelsParams(NamedTuple):
    """delta: one for each channel. b: how little is believed at weight zero."""

    delta: Any
    b: Any


class Channels(Readout):
    """logit = mean over channels j of delta_j a_j, less b. With one channel it is `Affine`.

    Parameters
    ----------
    channels : int
        As many as the network's.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.networks import MIMO, MIMOParams
    >>> from edgebelief.readouts import Channels, ChannelsParams
    >>> output = MIMO(2)(MIMOParams(jnp.full(4, 0.5)), jnp.array([1.0, 9.0, 9.0]))
    >>> Channels(2)(ChannelsParams(jnp.array([5.0, 15.0]), 2.0), output, Complete(3)).round(1)
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

    def reduce(self, output, support, pairs):
        return jnp.moveaxis(output.a, -2, -1) / self.channels

    def logits(self, params, reduced):
        return reduced @ jnp.asarray(params.delta) - params.b

    def columns(self, reduced):
        return jnp.concatenate([reduced, -jnp.ones_like(reduced[..., :1])], -1)

    def parts(self, params, reduced):
        each = {f"channel {j + 1}": params.delta[j] * reduced[..., j] for j in range(self.channels)}
        return each | {"baseline": -params.b * jnp.ones_like(reduced[..., 0])}
