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
    shapes = State((support.n_edges,), (support.n_nodes,)), (3,)
    return _on_host(partial(_solve_on_host, settings), shapes, support, e, theta)


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

    def solve(_, rhs):
        return _on_host(_hessian_solve_on_host, rhs.shape, support, a, lam, rhs)

    cost_dot = e * dtheta + theta * de
    rhs = support.degrees(restrict(cost_dot))
    dlam = lax.custom_linear_solve(minus_hessian, rhs, solve, symmetric=True)
    da = restrict(support.endpoint_sums(dlam) / 2 - cost_dot)
    return (state, info), (State(da, dlam), jnp.zeros_like(info))


def _solve_on_host(settings, support, e, theta):
    theta = float(theta)
    with np.errstate(over="ignore"):
        valid = theta > 0 and np.isfinite(theta * e).all()
    if valid:
        found = newton_solve(e, theta, support, None, settings.tol, settings.max_iter)
    else:
        edges, nodes = np.full(support.n_edges, np.nan), np.full(support.n_nodes, np.nan)
        found = Outcome(edges, nodes, np.nan, 0, False)
    info = np.array([found.residual, found.iterations, found.converged], float)
    return State(found.a, found.lam), info


def _hessian_solve_on_host(support, a, lam, rhs):
    if not np.isfinite(lam).all():
        return np.full(rhs.shape, np.nan)
    return hessian_solve(lam, a > 0, rhs, support)


def _on_host(function, shapes, support, *arrays):
    """``function(support, *arrays)`` in NumPy, with float64 arrays on both sides.

    JAX may run the callback in another thread, and there it rounds what goes in and out to the
    precision set in *that* thread: a `jax.enable_x64` context does not reach it. So float64 travels
    as pairs of 32-bit integers, which nothing rounds.
    """
    dtype = arrays[0].dtype
    wide = dtype == np.float64

    def pack(x):
        return lax.bitcast_convert_type(x, np.uint32) if wide else x

    def unpack(x):
        return lax.bitcast_convert_type(x, dtype) if wide else x

    def pack_on_host(x):
        x = np.asarray(x, dtype)
        return np.ascontiguousarray(x[..., None]).view(np.uint32) if wide else x

    def unpack_on_host(x):
        x = np.asarray(x)
        return np.ascontiguousarray(x).view(np.float64)[..., 0] if wide else x.astype(float)

    def host(support, *packed):
        support = jax.tree.map(np.asarray, support)
        results = function(support, *(unpack_on_host(x) for x in packed))
        return jax.tree.map(pack_on_host, results)

    def layout(shape):
        return jax.ShapeDtypeStruct((*shape, 2) if wide else shape, np.uint32 if wide else dtype)

    layouts = jax.tree.map(layout, shapes, is_leaf=_is_shape)
    packed = (pack(x) for x in arrays)
    out = jax.pure_callback(host, layouts, support, *packed, vmap_method="sequential")
    return jax.tree.map(unpack, out)


def _is_shape(x):
    return isinstance(x, tuple) and all(isinstance(n, int) for n in x)
