"""TwoSlope: a logit that has a slope below the threshold of the network too."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import ArrayLike, Float

from ..edges import Support
from ..networks import Output
from .base import Columns, Pairs, PerEdge, Readout


class TwoSlopeParams(NamedTuple):
    """delta, b: see `AffineParams`. slack: the slope in z below the threshold."""

    delta: Float[ArrayLike, ""]
    slack: Float[ArrayLike, ""]
    b: Float[ArrayLike, ""]


class TwoSlope(Readout):
    """logit = delta max(0, z) + slack min(0, z) - b, with z = S'lam/2 - theta e.

    For pairs with a positive weight it is `Affine`. Pairs with weight zero, to which `Affine` gives
    one and the same logit, differ by how far below the threshold they are.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief import edges, networks, readouts
    >>> output = networks.DPG()(networks.DPGParams(theta=0.5), jnp.array([1.0, 9.0, 10.0]))
    >>> params = readouts.TwoSlopeParams(delta=10.0, slack=1.0, b=2.0)
    >>> readouts.TwoSlope()(params, output, edges.Complete(3)).round(1)
    Array([ 5.5, -0.8, -2.3], dtype=float32)
    """

    part_names = ("weight", "slack", "baseline")
    params_type = TwoSlopeParams

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> PerEdge:
        return output.z

    def logits(self, params: TwoSlopeParams, reduced: PerEdge) -> PerEdge:
        above, below = jnp.maximum(reduced, 0), jnp.minimum(reduced, 0)
        return above * params.delta + below * params.slack - params.b

    def columns(self, reduced: PerEdge) -> Columns:
        above, below = jnp.maximum(reduced, 0), jnp.minimum(reduced, 0)
        return jnp.stack([above, below, -jnp.ones_like(reduced)], -1)
