"""The paper's readout: p = sigmoid(delta a - b)."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import ArrayLike, Float

from ..edges import Support
from ..networks import Output
from .base import Columns, Pairs, PerEdge, Readout


class AffineParams(NamedTuple):
    """delta: the slope in the weight. b: minus the logit at weight zero."""

    delta: Float[ArrayLike, ""]
    b: Float[ArrayLike, ""]


class Affine(Readout):
    """logit = delta a - b.

    Every pair that the network gives weight zero gets the same probability, sigmoid(-b).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief import edges, networks, readouts
    >>> output = networks.DPG()(networks.DPGParams(theta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> params = readouts.AffineParams(delta=10.0, b=2.0)
    >>> readouts.Affine()(params, output, edges.Complete(3)).round(1)
    Array([ 5.4, -1.4, -1.4], dtype=float32)
    """

    part_names = ("weight", "baseline")
    params_type = AffineParams

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> PerEdge:
        return output.a

    def logits(self, params: AffineParams, reduced: PerEdge) -> PerEdge:
        return reduced * params.delta - params.b

    def columns(self, reduced: PerEdge) -> Columns:
        return jnp.stack([reduced, -jnp.ones_like(reduced)], -1)
