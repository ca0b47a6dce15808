"""The paper's readout: p = sigmoid(delta a - b)."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from .base import Readout


class AffineParams(NamedTuple):
    """delta: how fast belief grows with the weight. b: how little is believed at weight zero."""

    delta: Any
    b: Any


class Affine(Readout):
    """logit = delta a - b.

    Every pair that the network gives weight zero gets the same probability, sigmoid(-b).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.networks import DPG, DPGParams
    >>> from edgebelief.readouts import Affine, AffineParams
    >>> output = DPG()(DPGParams(theta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> Affine()(AffineParams(delta=10.0, b=2.0), output, Complete(3)).round(1)
    Array([ 5.4, -1.4, -1.4], dtype=float32)
    """

    part_names = ("weight", "baseline")
    params_type = AffineParams

    def reduce(self, output, support, pairs):
        return output.a

    def logits(self, params, reduced):
        return params.delta * reduced - params.b

    def columns(self, reduced):
        return jnp.stack([reduced, -jnp.ones_like(reduced)], -1)

    def parts(self, params, reduced):
        return {"weight": params.delta * reduced, "baseline": -params.b * jnp.ones_like(reduced)}
