"""The paper's readout: p = sigmoid(delta a - b)."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..edges import Support
from ..networks import Output
from .base import Pairs, Readout


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
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.networks import DPG, DPGParams
    >>> from edgebelief.readouts import Affine, AffineParams
    >>> output = DPG()(DPGParams(theta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> Affine()(AffineParams(delta=10.0, b=2.0), output, Complete(3)).round(1)
    Array([ 5.4, -1.4, -1.4], dtype=float32)
    """

    part_names = ("weight", "baseline")
    params_type = AffineParams

    def reduce(
        self, output: Output, support: Support, pairs: Pairs | None
    ) -> Float[Array, "... edges"]:
        return output.a

    def logits(
        self, params: AffineParams, reduced: Float[Array, "... edges"]
    ) -> Float[Array, "... edges"]:
        return reduced * params.delta - params.b

    def columns(self, reduced: Float[Array, "... edges"]) -> Float[Array, "... edges 2"]:
        return jnp.stack([reduced, -jnp.ones_like(reduced)], -1)

    def parts(
        self, params: AffineParams, reduced: Float[Array, "... edges"]
    ) -> dict[str, Float[Array, "... edges"]]:
        return {"weight": reduced * params.delta, "baseline": -jnp.ones_like(reduced) * params.b}
