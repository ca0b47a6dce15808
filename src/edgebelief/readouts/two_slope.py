"""Two slopes: belief that also falls with how far a pair is from having a weight."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from .base import Readout


class TwoSlopeParams(NamedTuple):
    """delta, b: as of `Affine`. slack: how fast belief falls below the threshold."""

    delta: Any
    slack: Any
    b: Any


class TwoSlope(Readout):
    """logit = delta max(0, z) + slack min(0, z) - b, with z = S'lam/2 - theta e.

    As `Affine` for pairs with a weight; those without are told apart by how much they lack.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.networks import DPG, DPGParams
    >>> from edgebelief.readouts import TwoSlope, TwoSlopeParams
    >>> output = DPG()(DPGParams(theta=0.5), jnp.array([1.0, 9.0, 10.0]))
    >>> params = TwoSlopeParams(delta=10.0, slack=1.0, b=2.0)
    >>> TwoSlope()(params, output, Complete(3)).round(1)
    Array([ 5.5, -0.8, -2.3], dtype=float32)
    """

    part_names = ("weight", "slack", "baseline")
    params_type = TwoSlopeParams

    def reduce(self, output, support, pairs):
        return output.z

    def logits(self, params, reduced):
        up, down = jnp.maximum(reduced, 0), jnp.minimum(reduced, 0)
        return params.delta * up + params.slack * down - params.b

    def columns(self, reduced):
        up, down = jnp.maximum(reduced, 0), jnp.minimum(reduced, 0)
        return jnp.stack([up, down, -jnp.ones_like(reduced)], -1)

    def parts(self, params, reduced):
        return {
            "weight": params.delta * jnp.maximum(reduced, 0),
            "slack": params.slack * jnp.minimum(reduced, 0),
            "baseline": -params.b * jnp.ones_like(reduced),
        }
