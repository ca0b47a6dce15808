"""Given: log odds that come with the data, by several heads and at several levels."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..data.dataset import Stack
from ..edges import Support
from ..errors import InputError
from ..networks import Output
from .base import Columns, Pairs, PerEdge, Readout
from .curves import AnyArray


class GivenParams(NamedTuple):
    """The weight of each head, and of each level; in a draw all but one of either are 0."""

    heads: Float[AnyArray, " heads"]
    levels: Float[AnyArray, " levels"]


class Given(Readout):
    """logit = sum_k heads_k l_k + sum_j levels_j u_j, with l and u covariates of the data.

    For belief that was formed elsewhere, such as that of the pretrained network: a draw of the
    parameters picks one of its heads, and one of the levels common to all pairs of a graph. What
    the network of the model gives is not used.

    Parameters
    ----------
    heads, levels : tuple of str
        Names of pair covariates.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import edges, networks, readouts
    >>> output = networks.DPG(1)(networks.DPGParams(theta=0.5), np.ones(3))
    >>> params = readouts.GivenParams(heads=np.array([0.0, 1.0]), levels=np.array([1.0]))
    >>> pairs = np.array([[1.0, 2.0, 0.5], [-1.0, -2.0, 0.5], [3.0, 4.0, 0.5]])
    >>> readouts.Given(("first", "second"), ("level",))(params, output, edges.Complete(3), pairs)
    Array([ 2.5, -1.5,  4.5], dtype=float32)
    """

    heads: tuple[str, ...] = eqx.field(static=True)
    levels: tuple[str, ...] = eqx.field(static=True)

    params_type = GivenParams
    unlisted = ("heads", "levels")
    part_names = ("belief", "level")

    @property
    def sizes(self) -> dict[str, int]:
        return {"heads": len(self.heads), "levels": len(self.levels)}

    @property
    def covariates(self) -> tuple[str, ...]:
        return (*self.heads, *self.levels)

    def pairs(self, stack: Stack) -> Float[np.ndarray, "graphs edges features"]:
        missing = [name for name in self.covariates if name not in stack.covariates]
        if missing:
            raise InputError(f"the graphs have no covariate {missing[0]!r}.")
        return np.stack([stack.covariates[name] for name in self.covariates], -1)

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> Columns:
        if pairs is None:
            raise InputError("this readout needs the features of pairs: see EdgeModel.pairs.")
        return jnp.asarray(pairs, output.a.dtype)

    def logits(self, params: GivenParams, reduced: Columns) -> PerEdge:
        return reduced @ jnp.concatenate([jnp.asarray(params.heads), jnp.asarray(params.levels)])

    def parts(self, params: GivenParams, reduced: Columns) -> dict[str, PerEdge]:
        k = len(self.heads)
        return {
            "belief": reduced[..., :k] @ jnp.asarray(params.heads),
            "level": reduced[..., k:] @ jnp.asarray(params.levels),
        }

    def columns(self, reduced: Columns) -> Columns:
        return reduced


def one_of_each(n_heads: int, n_levels: int) -> GivenParams:
    """Return draws of the parameters: every head at every level.

    Examples
    --------
    >>> from edgebelief.readouts.given import one_of_each
    >>> one_of_each(2, 1).heads
    array([[1., 0.],
           [0., 1.]])
    """
    return GivenParams(
        np.repeat(np.eye(n_heads), n_levels, axis=0), np.tile(np.eye(n_levels), (n_heads, 1))
    )
