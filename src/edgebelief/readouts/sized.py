"""Sized: the paper's readout for graphs of any size."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from ..edges import Support
from ..errors import InputError, SettingError
from ..networks import Output
from .base import Columns, Pairs, PerEdge, Readout

# The number of nodes of the paper's graphs; in graphs of that size this is the paper's readout.
REFERENCE = 20


class SizedParams(NamedTuple):
    """delta, b: those of `Affine` in graphs of 20 nodes."""

    delta: Float[ArrayLike, ""]
    b: Float[ArrayLike, ""]


class Sized(Readout):
    """logit = s^growth (delta s a - b), with s = (N - 1) / 19.

    If every node is joined to a fixed share of all others, and distances are divided by their
    median (`GraphLearner` does that), the weights of edges fall as 1/s. The product s a and the
    threshold b/delta then do not depend on the size. How steeply the logit rises beyond the
    threshold does, by an amount that depends on the noise: that is `growth`. For expected distances
    it is 1; the fewer the signals, the lower it is, down to -2. See `docs/sizes.md`.

    Parameters
    ----------
    growth : float, optional
        By default estimated from the data if their graphs have several sizes, else 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief import edges, networks, readouts
    >>> output = networks.DPG()(networks.DPGParams(theta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> params = readouts.SizedParams(delta=10.0, b=0.5)
    >>> readouts.Sized(growth=0.0)(params, output, edges.Complete(3)).round(1)  # s = 2/19
    Array([ 0.3, -0.4, -0.4], dtype=float32)
    """

    growth: float | None = eqx.field(static=True, default=None)

    part_names = ("weight", "baseline")
    params_type = SizedParams
    scale = "median"

    def __check_init__(self) -> None:
        number = isinstance(self.growth, int | float) and not isinstance(self.growth, bool)
        if self.growth is not None and not (number and np.isfinite(self.growth)):
            raise SettingError(
                f"must be a number, or None to find it in the data; got {self.growth!r}.",
                argument="growth",
            )

    @property
    def is_prepared(self) -> bool:
        return self.growth is not None

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> Columns:
        """Compute the two columns that the logits are linear in."""
        if self.growth is None:
            raise InputError(
                "this readout has not seen data yet, so it has no growth. Every engine's run "
                "prepares it, by edgebelief.infer.prepare.prepare; or pass growth=..."
            )
        size = (support.n_nodes - 1) / (REFERENCE - 1)
        grown = size**self.growth
        return jnp.stack([grown * size * output.a, jnp.full_like(output.a, -grown)], -1)

    def logits(self, params: SizedParams, reduced: Columns) -> PerEdge:
        return reduced[..., 0] * params.delta + reduced[..., 1] * params.b

    def columns(self, reduced: Columns) -> Columns:
        return reduced
