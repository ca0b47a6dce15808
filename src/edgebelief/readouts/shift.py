"""The paper's readout of PDS, whose weights are already on the scale of logits."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import ArrayLike, Float

from ..edges import Support
from ..networks import Output
from .base import Pairs, PerEdge, Readout


class ShiftParams(NamedTuple):
    """b: minus the logit at weight zero."""

    b: Float[ArrayLike, ""]


class Shift(Readout):
    """logit = a - b.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief import edges, networks, readouts
    >>> params = networks.PDSParams(alpha=50.0, beta=0.5)
    >>> output = networks.PDS()(params, jnp.array([1.0, 9.0, 9.0]))
    >>> readouts.Shift()(readouts.ShiftParams(b=2.0), output, edges.Complete(3)).round(1)
    Array([ 6.1, -0.3, -0.3], dtype=float32)
    """

    part_names = ("weight", "baseline")
    params_type = ShiftParams
    linear = False

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> PerEdge:
        return output.a

    def logits(self, params: ShiftParams, reduced: PerEdge) -> PerEdge:
        return reduced - params.b

    def parts(self, params: ShiftParams, reduced: PerEdge) -> dict[str, PerEdge]:
        return {"weight": reduced, "baseline": -jnp.ones_like(reduced) * params.b}
