"""The converged solution as a JAX function: float64 on the host, derivatives by the implicit rule.

The solution is where F(lam; e, theta) = 1/lam - S a(lam) = 0. With m the 0/1 pattern of the active
edges and M = diag(1/lam^2) + S m S'/2 (minus the Hessian of the dual), differentiating gives

    M dlam = S m (e dtheta + theta de),      da = m (S'dlam/2 - e dtheta - theta de).

The rule is linear in (de, dtheta) and M is symmetric, so JAX transposes it: forward and reverse
mode both work, at the cost of one more factorisation. At a kink, where an edge is just about to
appear, it gives the derivative from the side where the edge is absent.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..edges import Support
from .iterations import State
from .newton import Outcome, newton_solve
from .systems import hessian_solve


class _Settings(NamedTuple):
    tol: float
    max_iter: int


def converged_state(
    e: Float[Array, " edges"],
    theta: Any,
    support: Support,
    *,
    tol: float = 1e-9,
    max_iter: int = 1000,
) -> tuple[State, Float[Array, "3"]]:
    """The solution, and (residual, iterations, converged) as numbers. NaN where `theta` e is NaN.

    For one graph; `jax.vmap` runs the graphs one after the other.
    """
    dtype = jnp.result_type(e, theta, jnp.float32)
    return _converged(
        _Settings(tol, max_iter), jnp.asarray(e, dtype), jnp.asarray(theta, dtype), support
    )


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _converged(settings, e, theta, support):
    sizes = State(support.n_edges, support.n_nodes), 3
    shapes = jax.tree.map(lambda size: jax.ShapeDtypeStruct((size,), e.dtype), sizes)
    host = partial(_solve_on_host, settings)
    return jax.pure_callback(host, shapes, e, theta, support, vmap_method="sequential")


@_converged.defjvp
def _converged_jvp(settings, primals, tangents):
    e, theta, support = primals
    de, dtheta, _ = tangents
    state, info = _converged(settings, e, theta, support)
    a, lam = state
    active = a > 0

    def restrict(x):
        return jnp.where(active, x, 0)

    def minus_hessian(x):
        return x / lam**2 + support.degrees(restrict(support.endpoint_sums(x))) / 2

    def solve_on_host(_, rhs):
        shape = jax.ShapeDtypeStruct(rhs.shape, rhs.dtype)
        host = _hessian_solve_on_host
        return jax.pure_callback(host, shape, lam, active, rhs, support, vmap_method="sequential")

    cost_dot = e * dtheta + theta * de
    rhs = support.degrees(restrict(cost_dot))
    dlam = lax.custom_linear_solve(minus_hessian, rhs, solve_on_host, symmetric=True)
    da = restrict(support.endpoint_sums(dlam) / 2 - cost_dot)
    return (state, info), (State(da, dlam), jnp.zeros_like(info))


def _solve_on_host(settings, e, theta, support):
    e, dtype, support = np.asarray(e, float), e.dtype, jax.tree.map(np.asarray, support)
    theta = float(theta)
    with np.errstate(over="ignore"):
        valid = theta > 0 and np.isfinite(theta * e).all()
    if valid:
        found = newton_solve(e, theta, support, None, settings.tol, settings.max_iter)
    else:
        edges, nodes = np.full(support.n_edges, np.nan), np.full(support.n_nodes, np.nan)
        found = Outcome(edges, nodes, np.nan, 0, False)
    info = [found.residual, found.iterations, found.converged]
    return jax.tree.map(lambda x: np.asarray(x, dtype), (State(found.a, found.lam), np.array(info)))


def _hessian_solve_on_host(lam, active, rhs, support):
    dtype, support = rhs.dtype, jax.tree.map(np.asarray, support)
    lam, active, rhs = np.asarray(lam, float), np.asarray(active), np.asarray(rhs, float)
    if not np.isfinite(lam).all():
        return np.full(rhs.shape, np.nan, dtype)
    return hessian_solve(lam, active, rhs, support).astype(dtype)
