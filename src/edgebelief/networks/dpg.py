"""DPG: the dual proximal gradient iteration (the paper's Algorithm 1), unrolled."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.nn import relu

from ..convex.implicit import converged_state
from ..convex.iterations import DualState, dpg_dual_step
from .base import Network, Output


class DPGParams(NamedTuple):
    """theta: sparsity. It alone enters the recursion."""

    theta: Any


class DPG(Network):
    """Gamma_theta^D(e): `depth` steps of

        u   = S a - (N-1) lam
        lam = (sqrt(u^2 + 4(N-1)) - u) / (2(N-1))
        a   = max(0, S'lam/2 - theta e)

    from a = `a0`, lam = `lam0`. Multiplying e by c is the same as multiplying theta by c.

    Parameters
    ----------
    depth : int or None
        Layers. The truncated output is not the solution of the convex problem: at depth 200 it
        is some 9 % away at theta = 1 on the paper's data, and dead (all zero) at theta = 10. None
        is the solution.
    a0, lam0 : float
        The state before the first layer, on every edge and node; the paper's values. (17 is just
        a constant: the limit of lam is another.)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.networks import DPG, DPGParams
    >>> e = jnp.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0])  # nodes 0, 1 are near; so are 2, 3
    >>> DPG(depth=200)(DPGParams(theta=1.0), e).a.round(2)
    Array([0.62, 0.  , 0.  , 0.  , 0.  , 0.62], dtype=float32)
    """

    depth: int | None = eqx.field(static=True, default=200)
    a0: float = eqx.field(static=True, default=0.5)
    lam0: float = eqx.field(static=True, default=17.0)

    params_type = DPGParams
    nonnegative = True
    scale_law = True
    stable = True

    def init(self, params, e, support):
        d = support.degrees(jnp.full_like(e, self.a0))
        return DualState(d, support.full_nodes(e, self.lam0))

    def step(self, params, carry, e, support):
        return dpg_dual_step(carry, e, params.theta, support)

    def read(self, params, carry, e, support):
        z = support.endpoint_sums(carry.lam) / 2 - params.theta * e
        return Output(relu(z) if self.depth else jnp.full_like(e, self.a0), carry.lam, z)

    def converged(self, params, e, support):
        a, lam = converged_state(e, params.theta, support)[0]
        return Output(a, lam, support.endpoint_sums(lam) / 2 - params.theta * e)
