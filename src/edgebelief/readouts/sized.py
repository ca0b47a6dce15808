"""Sized: the paper's readout for graphs of any size."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, SettingError
from .base import Readout

# Where it is the paper's readout: as many nodes as the paper's graphs have.
REFERENCE = 20


class SizedParams(NamedTuple):
    """delta, b: as of `Affine`, in graphs of 20 nodes."""

    delta: Any
    b: Any


class Sized(Readout):
    """logit = s^growth (delta s a - b), with s = (N - 1) / 19.

    In a graph where every node is joined to a share of all others, the weights of edges fall as
    1/s, if distances are relative to their median (`GraphLearner` sees to that): s a and the
    threshold b/delta stay where they are. How sure one can be beyond the threshold, which is
    what `growth` says, depends on the noise. Of expected distances growth is 1; the fewer the
    signals, the lower it is, down to -2. See `docs/sizes.md`.

    Parameters
    ----------
    growth : float, optional
        By default found in the data, where graphs are of several sizes; 0 where they are not.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.networks import DPG, DPGParams
    >>> from edgebelief.readouts import Sized, SizedParams
    >>> output = DPG()(DPGParams(theta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> readout = Sized(growth=0.0)
    >>> readout(SizedParams(delta=10.0, b=0.5), output, Complete(3)).round(1)  # s = 2/19
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

    def reduce(self, output, support, pairs):
        """The columns that the logits are linear in."""
        if self.growth is None:
            raise InputError(
                "this readout has not seen data yet, so it has no growth: see EdgeModel.prepared."
            )
        size = (support.n_nodes - 1) / (REFERENCE - 1)
        grown = size**self.growth
        return jnp.stack([grown * size * output.a, jnp.full_like(output.a, -grown)], -1)

    def logits(self, params, reduced):
        return params.delta * reduced[..., 0] + params.b * reduced[..., 1]

    def columns(self, reduced):
        return reduced

    def parts(self, params, reduced):
        return {"weight": params.delta * reduced[..., 0], "baseline": params.b * reduced[..., 1]}
