"""PDS: primal-dual splitting (the paper's Algorithm 2), unrolled."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..convex.implicit import converged_state
from ..convex.iterations import PDSState, pds_step
from ..convex.objective import to_scaled
from .base import Network, Output


class PDSParams(NamedTuple):
    """alpha, beta: the weights of the log-degree barrier and of the squared edge weights."""

    alpha: Any
    beta: Any


class PDS(Network):
    """`depth` steps of `edgebelief.convex.iterations.pds_step` from a = 0, v = 0.

    Tends to delta times the graph of `DPG` at theta, (theta, delta) = `to_scaled(alpha, beta)`, so
    its `a` needs no delta of its own; `lam` = -v/sqrt(alpha beta) are the duals of `DPG`. Before
    convergence `a` is not projected: a good part of its entries are slightly negative.

    Parameters
    ----------
    depth : int or None
        Layers; None for the converged solution.
    gamma : float
        Step size. Above about 1/(2 beta + sqrt(2(N-1))) the layers diverge.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.networks import PDS, PDSParams
    >>> e = jnp.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0])
    >>> jnp.abs(PDS(depth=500)(PDSParams(alpha=1.0, beta=1.0), e).a).round(2)
    Array([0.62, 0.  , 0.  , 0.  , 0.  , 0.62], dtype=float32)
    """

    depth: int | None = eqx.field(static=True, default=200)
    gamma: float = eqx.field(static=True, default=0.1)

    params_type = PDSParams
    nonnegative = False
    scale_law = False
    stable = False
    kind = "pds"

    def init(self, params, e, support):
        return PDSState(jnp.zeros_like(e), support.full_nodes(e, 0.0))

    def step(self, params, carry, e, support):
        return pds_step(carry, e, params.alpha, params.beta, self.gamma, support)

    def read(self, params, carry, e, support):
        theta = to_scaled(*params).theta
        lam = -carry.v * theta
        return Output(carry.a, lam, support.endpoint_sums(lam) / 2 - theta * e)

    def converged(self, params, e, support):
        theta, delta = to_scaled(*params)
        a, lam = converged_state(e, theta, support)[0]
        return Output(delta * a, lam, support.endpoint_sums(lam) / 2 - theta * e)
