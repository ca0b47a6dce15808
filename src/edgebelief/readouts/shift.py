"""The paper's readout of PDS, whose weights are already on the scale of logits."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from .base import Readout


class ShiftParams(NamedTuple):
    """b: how little is believed at weight zero."""

    b: Any


class Shift(Readout):
    """logit = a - b.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.networks import PDS, PDSParams
    >>> from edgebelief.readouts import Shift, ShiftParams
    >>> output = PDS()(PDSParams(alpha=50.0, beta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> Shift()(ShiftParams(b=2.0), output, Complete(3)).round(1)
    Array([ 6.1, -0.3, -0.3], dtype=float32)
    """

    part_names = ("weight", "baseline")
    params_type = ShiftParams
    linear = False

    def reduce(self, output, support, pairs):
        return output.a

    def logits(self, params, reduced):
        return reduced - params.b

    def parts(self, params, reduced):
        return {"weight": reduced, "baseline": -params.b * jnp.ones_like(reduced)}
