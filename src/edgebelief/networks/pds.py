"""PDS: primal-dual splitting (the paper's Algorithm 2), unrolled."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..convex.implicit import converged_state
from ..convex.iterations import PDSState, pds_step
from ..convex.objective import to_scaled
from ..edges import Support
from ..incidence import EdgeArray, Incidence, Scalar
from .base import Network, Output


class PDSParams(NamedTuple):
    """alpha, beta: the coefficients of the log-degree barrier and of the squared edge weights."""

    alpha: Scalar
    beta: Scalar


class PDS(Network[PDSParams, PDSState]):
    """A network of `depth` steps of `edgebelief.convex.iterations.pds_step` from a = 0, v = 0.

    It converges to delta times the graph of `DPG` at theta, where (theta, delta) =
    `to_scaled(alpha, beta)`, so its readout needs no delta; `lam` = -v/sqrt(alpha beta) are the
    duals of `DPG`. Before convergence `a` is not projected, and many entries are slightly negative.

    Parameters
    ----------
    depth : int or None
        The number of layers, or None for the converged solution.
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

    def init(self, params: PDSParams, e: EdgeArray, support: Incidence) -> PDSState:
        return PDSState(jnp.zeros_like(e), support.full_nodes(e, 0.0))

    def step(
        self, params: PDSParams, carry: PDSState, e: EdgeArray, support: Incidence
    ) -> PDSState:
        return pds_step(carry, e, params.alpha, params.beta, self.gamma, support)

    def read(self, params: PDSParams, carry: PDSState, e: EdgeArray, support: Incidence) -> Output:
        theta = to_scaled(*params).theta
        lam = -carry.v * theta
        return Output(carry.a, lam, support.endpoint_sums(lam) / 2 - theta * e)

    def converged(self, params: PDSParams, e: Float[Array, " edges"], support: Support) -> Output:
        theta, delta = to_scaled(*params)
        a, lam = converged_state(e, theta, support)[0]
        return Output(delta * a, lam, support.endpoint_sums(lam) / 2 - theta * e)
