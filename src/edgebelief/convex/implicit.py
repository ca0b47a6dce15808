"""The converged solution as a JAX function: float64 on the host, implicit differentiation.

The solution satisfies a = max(0, S'lam/2 - theta e) and S a = 1/lam. With m the 0/1 pattern of the
active edges, differentiating gives a symmetric linear system for (da, dlam),

    [ 1         -m S'/2         ] [ da   ]   [ -m (e dtheta + theta de) ]
    [ -S m/2    -1/(2 lam^2)    ] [ dlam ] = [  0                       ]

which is solved on the host as well, in float64: da is a small difference where theta e is large.
With M = diag(1/lam^2) + S m S'/2 (minus the Hessian of the dual), the solution for a right-hand
side (r, s) is M dlam = -2 s - S m r, da = r + m S'dlam/2.

The rule is linear in (de, dtheta) and M is symmetric, so JAX transposes it: forward and reverse
mode both work, at the cost of one more factorisation. (In float32 and at large theta forward mode
is the accurate one: reverse mode ends in a sum over edges in float32, which cancels.) At a kink,
where an edge is just about to appear, it gives the derivative from the side where it is absent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree
from scipy.linalg import LinAlgError

from ..edges import Support
from ..incidence import OnEdges, Scalar
from .iterations import State
from .newton import Outcome, newton_solve
from .systems import Edges, Nodes, hessian_solve


def converged_state(
    e: OnEdges, theta: Scalar, support: Support, *, tol: float = 1e-9, max_iter: int = 1000
) -> tuple[State, Float[Array, "3"]]:
    """Return the solution, and (residual, iterations, converged) as numbers.

    The solution is NaN where theta e is not finite or theta is not positive. It is for one graph;
    `jax.vmap` runs the graphs one after the other.
    """
    dtype = jnp.result_type(e, theta, jnp.float32)
    return _converged(tol, max_iter, jnp.asarray(e, dtype), jnp.asarray(theta, dtype), support)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _converged(
    tol: float, max_iter: int, e: Array, theta: Array, support: Support
) -> tuple[State, Array]:
    shapes = State((support.n_edges,), (support.n_nodes,)), (3,)
    return _on_host(partial(_solve_on_host, tol, max_iter), shapes, support, e, theta)


@_converged.defjvp
def _converged_jvp(
    tol: float, max_iter: int, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]
) -> tuple[tuple[State, Array], tuple[State, Array]]:
    e, theta, support = primals
    de, dtheta, _ = tangents
    state, info = _converged(tol, max_iter, e, theta, support)
    a, lam = state
    active = a > 0

    def restrict(x: Array) -> Array:
        return jnp.where(active, x, 0)

    def matvec(x: Array) -> Array:
        da, dlam = x[: a.size], x[a.size :]
        top = da - restrict(support.endpoint_sums(dlam)) / 2
        bottom = -support.degrees(restrict(da)) / 2 - dlam / (2 * lam**2)
        return jnp.concatenate([top, bottom])

    def solve(_: object, rhs: Array) -> Array:
        return _on_host(_tangent_on_host, rhs.shape, support, a, lam, rhs)

    top = -restrict(e * dtheta + theta * de)
    rhs = jnp.concatenate([top, jnp.zeros_like(lam)])
    x = lax.custom_linear_solve(matvec, rhs, solve, symmetric=True)
    return (state, info), (State(x[: a.size], x[a.size :]), jnp.zeros_like(info))


def _solve_on_host(
    tol: float, max_iter: int, support: Support, e: Edges, theta: Float[np.ndarray, ""]
) -> tuple[State, Float[np.ndarray, "3"]]:
    with np.errstate(over="ignore"):
        valid = theta > 0 and np.isfinite(theta * e).all()
    if valid:
        outcome = newton_solve(e, float(theta), support, None, tol, max_iter)
    else:
        edges, nodes = np.full(support.n_edges, np.nan), np.full(support.n_nodes, np.nan)
        outcome = Outcome(edges, nodes, np.nan, 0, False)
    info = np.array([outcome.residual, outcome.iterations, outcome.converged], float)
    return State(outcome.a, outcome.lam), info


def _tangent_on_host(
    support: Support, a: Edges, lam: Nodes, rhs: Float[np.ndarray, " edges+nodes"]
) -> Float[np.ndarray, " edges+nodes"]:
    active = a > 0
    r, s = rhs[: a.size], rhs[a.size :]
    try:
        dlam = hessian_solve(lam, active, -2 * s - support.degrees(np.where(active, r, 0)), support)
    except (LinAlgError, RuntimeError, ValueError):  # lam is NaN, or beyond 1e7: no derivative
        dlam = np.full_like(lam, np.nan)
    da = r + np.where(active, support.endpoint_sums(dlam) / 2, 0)
    return np.concatenate([da, dlam])


def _on_host(
    function: Callable[..., PyTree], shapes: PyTree, support: Support, *arrays: Array
) -> PyTree:
    """Call ``function(support, *arrays)`` in NumPy, with float64 arrays in and out.

    JAX may run the callback in another thread, and there it rounds arguments and results to the
    precision set in *that* thread, which a `jax.enable_x64` context does not change. So float64 is
    passed as pairs of 32-bit integers, which are never rounded.
    """
    dtype = arrays[0].dtype
    wide = dtype == np.float64

    def pack(x: Array) -> Array:
        return lax.bitcast_convert_type(x, np.uint32) if wide else x

    def unpack(x: Array) -> Array:
        return lax.bitcast_convert_type(x, dtype) if wide else x

    def pack_on_host(x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype)
        return np.ascontiguousarray(x[..., None]).view(np.uint32) if wide else x

    def unpack_on_host(x: Array) -> np.ndarray:
        raw = np.asarray(x)
        return np.ascontiguousarray(raw).view(np.float64)[..., 0] if wide else raw.astype(float)

    def host(support: Support, *packed: Array) -> PyTree:
        support = jax.tree.map(np.asarray, support)
        results = function(support, *(unpack_on_host(x) for x in packed))
        return jax.tree.map(pack_on_host, results)

    def layout(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*shape, 2) if wide else shape, np.uint32 if wide else dtype)

    layouts = jax.tree.map(layout, shapes, is_leaf=lambda shape: isinstance(shape[0], int))
    packed = (pack(x) for x in arrays)
    out = jax.pure_callback(host, layouts, support, *packed, vmap_method="sequential")
    return jax.tree.map(unpack, out)
