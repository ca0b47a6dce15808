"""One step each of the first-order iterations: dual proximal gradient, its accelerated form, PDS.

The same steps run to convergence as solvers (`first_order.py`) and a fixed number of times as the
layers of a network (`networks/`). All are written for one graph and any `Incidence`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.nn import relu
from jaxtyping import Array, Float

from ..incidence import Incidence, OnEdges, OnNodes, Scalar


class State(NamedTuple):
    """Edge weights and the dual variable of each node."""

    a: OnEdges
    lam: OnNodes


def positive_root(u: OnNodes, c: Scalar) -> OnNodes:
    """Return the positive root x of c x^2 + u x = 1, (sqrt(u^2 + 4c) - u) / (2c), for any u.

    With r = sqrt(u^2 + 4c) and q = |u| + r, x = 2/q where u > 0 and q/(2c) elsewhere: each form is
    free of cancellation on its side. The formula above loses all float32 digits from u = 1e5 on.
    The derivative is that of the equation, dx = -(x du + x^2 dc) / r.
    """
    return _root(u, jnp.asarray(c, u.dtype))


@jax.custom_jvp
def _root(u: Array, c: Array) -> Array:
    return _root_and_width(u, c)[0]


def _root_and_width(u: Array, c: Array) -> tuple[Array, Array]:
    r = jnp.sqrt(u**2 + 4 * c)
    q = jnp.abs(u) + r
    return jnp.where(u > 0, 2 / q, q / (2 * c)), r


def _root_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array | SymbolicZero, Array | SymbolicZero]
) -> tuple[Array, Array]:
    x, r = _root_and_width(*primals)
    du, dc = tangents
    dx: Scalar = 0.0
    if not isinstance(du, SymbolicZero):
        dx = dx - (x / r) * du
    if not isinstance(dc, SymbolicZero):
        dx = dx - (x**2 / r) * dc
    return x, jnp.broadcast_to(jnp.asarray(dx, x.dtype), x.shape)


_root.defjvp(_root_jvp, symbolic_zeros=True)


def dpg_step(state: State, e: OnEdges, theta: Scalar, support: Incidence) -> State:
    """Take one dual proximal gradient step (the paper's Algorithm 1), of size 1/L on the dual:

    u   = S a - L lam
    lam = (sqrt(u^2 + 4L) - u) / (2L)
    a   = max(0, S'lam/2 - theta e)

    L = N - 1 on the complete support, else the largest number of candidate edges at a node;
    ||S||^2 <= 2L makes it a descent method with no step size to choose.
    """
    a, lam = state
    L = support.max_degree
    u = support.degrees(a) - L * lam
    lam = positive_root(u, L)
    a = relu(support.endpoint_sums(lam) / 2 - theta * e)
    return State(a, lam)


class DualState(NamedTuple):
    """Degrees and duals: the part of `State` that the next step of DPG needs."""

    d: OnNodes
    lam: OnNodes


def dpg_dual_step(state: DualState, e: OnEdges, theta: Scalar, support: Incidence) -> DualState:
    """Take one DPG step, as `dpg_step` does, without storing an array over edges:

    lam = (sqrt(u^2 + 4L) - u) / (2L),   u = d - L lam
    d   = S max(0, S'lam/2 - theta e)
    """
    d, lam = state
    L = support.max_degree
    lam = positive_root(d - L * lam, L)
    return DualState(support.positive_degrees(lam, theta, e), lam)


class AcceleratedState(NamedTuple):
    """`State` at the extrapolated duals, the duals before extrapolation, and the momentum."""

    state: State
    lam: OnNodes
    momentum: Float[Array, ""]


def accelerated_dpg_step(
    carry: AcceleratedState, e: OnEdges, theta: Scalar, support: Incidence
) -> AcceleratedState:
    """Take one DPG step from the extrapolated duals w (Beck and Teboulle 2009):

    lam' = the dual update at w
    t'   = (1 + sqrt(1 + 4 t^2)) / 2
    w'   = lam' + (t - 1)/t' (lam' - lam)

    with t reset to 1 when the step turns against the momentum, (w - lam')'(lam' - lam) > 0
    (O'Donoghue and Candes 2015): without that, momentum overshoots the strongly concave dual.
    """
    state, lam_before, t = carry
    lam = dpg_step(state, e, theta, support).lam
    t = jnp.where(jnp.vdot(state.lam - lam, lam - lam_before) > 0, 1.0, t)
    t_next = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
    w = lam + (t - 1) / t_next * (lam - lam_before)
    a = relu(support.endpoint_sums(w) / 2 - theta * e)
    return AcceleratedState(State(a, w), lam, t_next)


class PDSState(NamedTuple):
    """Edge weights `a` (in units of delta) and the dual `v` of the degrees, v = -alpha/(S a)."""

    a: OnEdges
    v: OnNodes


def pds_step(
    state: PDSState, e: OnEdges, alpha: Scalar, beta: Scalar, gamma: Scalar, support: Incidence
) -> PDSState:
    """Take one step of primal-dual splitting (the paper's Algorithm 2, sign of q2 corrected):

    y1 = a - gamma (2 beta a + 2e + S'v)       y2 = v + gamma S a
    p1 = max(0, y1)                            p2 = (y2 - sqrt(y2^2 + 4 alpha gamma)) / 2
    q1 = p1 - gamma (2 beta p1 + 2e + S'p2)    q2 = p2 + gamma S p1
    a  = a - y1 + q1                           v  = v - y2 + q2

    Converges for gamma < 1/(2 beta + ||S||), ||S|| = sqrt(2 L). The last `a` is not projected:
    before convergence some of its entries are slightly negative.
    """
    a, v = state
    y1 = a - gamma * (2 * beta * a + 2 * e + support.endpoint_sums(v))
    y2 = v + gamma * support.degrees(a)
    p1 = relu(y1)
    p2 = -alpha * gamma * positive_root(y2, alpha * gamma)
    q1 = p1 - gamma * (2 * beta * p1 + 2 * e + support.endpoint_sums(p2))
    q2 = p2 + gamma * support.degrees(p1)
    return PDSState(a - y1 + q1, v - y2 + q2)
