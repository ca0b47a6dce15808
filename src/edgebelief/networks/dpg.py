"""DPG: the dual proximal gradient iteration (the paper's Algorithm 1), unrolled."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.nn import relu
from jaxtyping import Array, Float

from ..convex.implicit import converged_state
from ..convex.iterations import DualState, dpg_dual_step
from ..edges import Support
from ..incidence import Incidence, OnEdges, Scalar
from .base import Network, Output


class DPGParams(NamedTuple):
    """The sparsity theta, the only parameter of the recursion."""

    theta: Scalar


class DPG(Network[DPGParams, DualState]):
    """The network Gamma_theta^D(e): `depth` steps of

        u   = S a - (N-1) lam
        lam = (sqrt(u^2 + 4(N-1)) - u) / (2(N-1))
        a   = max(0, S'lam/2 - theta e)

    from a = `a0`, lam = `lam0`. Multiplying e by c is the same as multiplying theta by c.

    Parameters
    ----------
    depth : int or None
        The number of layers, or None for the solution of the convex problem. A truncated network
        does not give that solution: at depth 200 it is about 9 % away at theta = 1 on the paper's
        data, and all zero at theta = 10.
    a0, lam0 : float
        The state before the first layer, on every edge and node. The defaults are the paper's; 17
        has no meaning of its own, and lam does not converge to it.

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

    def init(self, params: DPGParams, e: OnEdges, support: Incidence) -> DualState:
        d = support.degrees(jnp.full_like(e, self.a0))
        return DualState(d, support.full_nodes(e, self.lam0))

    def step(
        self, params: DPGParams, carry: DualState, e: OnEdges, support: Incidence
    ) -> DualState:
        return dpg_dual_step(carry, e, params.theta, support)

    def read(self, params: DPGParams, carry: DualState, e: OnEdges, support: Incidence) -> Output:
        z = support.endpoint_sums(carry.lam) / 2 - params.theta * e
        return Output(relu(z), carry.lam, z)

    def converged(self, params: DPGParams, e: Float[Array, " edges"], support: Support) -> Output:
        a, lam = converged_state(e, params.theta, support)[0]
        return Output(a, lam, support.endpoint_sums(lam) / 2 - params.theta * e)
