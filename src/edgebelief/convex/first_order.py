"""The first-order iterations run to convergence: plain alternatives to `solve`, same result type.

Each is a few lines on top of a step in `iterations.py`. They need hundreds to hundreds of thousands
of steps where Newton's method needs ten (`benchmarks/solvers.py`). They serve as a reference to
check the solver against, and as the definition of the networks, which unroll the same steps.
"""

import abc
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int
from numpy.typing import ArrayLike

from ..edges import Support
from ..incidence import Incidence, OnEdges, Scalar
from ..validate import check_distances, check_stopping
from .iterations import AcceleratedState, PDSState, State, accelerated_dpg_step, dpg_step, pds_step
from .objective import residual, rounding_floor, weights_of
from .solve import Solution, check_theta_for, warn_unless_converged

# Stopping at the rounding floor counts as convergence only if the floor is at most this.
WORST_FLOOR = 1e-6

# The residual costs as much as a step, so it is computed once in this many steps.
STEPS_PER_CHECK = 10

Carry = TypeVar("Carry")  # the state that one step passes to the next
Loop = tuple[Carry, int | Int[Array, ""], tuple[Scalar, Scalar]]  # with steps, (residual, floor)


class FirstOrder(eqx.Module, Generic[Carry]):
    """An iteration to run until optimal. It holds settings; the state is passed and returned."""

    @abc.abstractmethod
    def init(self, e: OnEdges, support: Incidence) -> Carry:
        """Return the state before the first step."""

    @abc.abstractmethod
    def step(self, carry: Carry, e: OnEdges, theta: Scalar, support: Incidence) -> Carry:
        """Return the next state."""

    @abc.abstractmethod
    def read(self, carry: Carry, e: OnEdges, theta: Scalar, support: Incidence) -> State:
        """Return the weights and duals of a state."""

    def solve(
        self,
        e: ArrayLike,
        theta: Scalar,
        *,
        tol: float = 1e-9,
        max_iter: int = 1_000_000,
        support: Support | None = None,
    ) -> Solution:
        """Solve the problem of `edgebelief.solve` by this iteration, compiled, in float64.

        Examples
        --------
        >>> from edgebelief.convex import AcceleratedDPG
        >>> AcceleratedDPG().solve([1.0, 1.0, 1.0], theta=1.0).weights.round(6)
        array([0.366025, 0.366025, 0.366025])
        """
        tol, max_iter = check_stopping(tol, max_iter)
        e, support = check_distances(e, support)
        theta = check_theta_for(theta, e, support)
        with jax.enable_x64(True):
            # Arrays, because every new Python number would be compiled anew.
            arguments = jax.tree.map(jnp.asarray, (e, theta, support, tol, max_iter))
            (a, lam), (error, steps, floor) = jax.device_get(_run(self, *arguments))
        converged = bool(error <= max(tol, min(floor, WORST_FLOOR)))
        solution = Solution(a, lam, float(error), int(steps), converged, theta, support)
        warn_unless_converged(solution, tol, max_iter)
        return solution


@eqx.filter_jit
def _run(
    method: FirstOrder[Carry], e: Array, theta: Array, support: Support, tol: Array, max_iter: Array
) -> tuple[State, tuple[Scalar, int | Int[Array, ""], Scalar]]:
    """Run until the residual is below `tol`; return the state and (residual, steps, floor)."""
    inner, e_inner = support.inner, support.to_inner(e)

    def measure(carry: Carry) -> tuple[Scalar, Scalar]:
        a, lam = method.read(carry, e_inner, theta, inner)
        return residual(a, lam, e_inner, theta, inner), rounding_floor(lam)

    def unfinished(loop: Loop[Carry]) -> Bool[Array, ""]:
        _, steps, (error, floor) = loop
        return (error > jnp.maximum(tol, floor)) & (steps < max_iter)

    def advance(loop: Loop[Carry]) -> Loop[Carry]:
        carry, steps, _ = loop
        count = jnp.minimum(STEPS_PER_CHECK, max_iter - steps)
        carry = lax.fori_loop(0, count, lambda _, c: method.step(c, e_inner, theta, inner), carry)
        return carry, steps + count, measure(carry)

    start: Loop[Carry] = method.init(e_inner, inner), 0, (jnp.inf, 0.0)
    carry, steps, (error, floor) = lax.while_loop(unfinished, advance, start)
    a, lam = method.read(carry, e_inner, theta, inner)
    return State(support.from_inner(a), lam), (error, steps, floor)


class DPG(FirstOrder[State]):
    """Dual proximal gradient, the paper's Algorithm 1: no step size, slow at large theta."""

    def init(self, e: OnEdges, support: Incidence) -> State:
        return State(jnp.full_like(e, 0.5), jnp.ones(support.n_nodes, e.dtype))

    def step(self, carry: State, e: OnEdges, theta: Scalar, support: Incidence) -> State:
        return dpg_step(carry, e, theta, support)

    def read(self, carry: State, e: OnEdges, theta: Scalar, support: Incidence) -> State:
        return carry


class AcceleratedDPG(FirstOrder[AcceleratedState]):
    """DPG with momentum and restarts: about the square root of the steps on hard problems."""

    def init(self, e: OnEdges, support: Incidence) -> AcceleratedState:
        lam = jnp.ones(support.n_nodes, e.dtype)
        return AcceleratedState(State(jnp.full_like(e, 0.5), lam), lam, jnp.ones((), e.dtype))

    def step(
        self, carry: AcceleratedState, e: OnEdges, theta: Scalar, support: Incidence
    ) -> AcceleratedState:
        return accelerated_dpg_step(carry, e, theta, support)

    def read(self, carry: AcceleratedState, e: OnEdges, theta: Scalar, support: Incidence) -> State:
        return State(weights_of(carry.lam, e, theta, support), carry.lam)


class PDS(FirstOrder[PDSState]):
    """Primal-dual splitting, the paper's Algorithm 2, at alpha = beta = 1/theta (so delta = 1).

    Parameters
    ----------
    gamma : float, optional
        The step size; by default 0.99/(2 beta + sqrt(2L)). Above about 1/(2 beta + sqrt(2L)) the
        iteration diverges; the best value depends on the problem.
    """

    gamma: float | None = None

    def init(self, e: OnEdges, support: Incidence) -> PDSState:
        return PDSState(jnp.zeros_like(e), jnp.zeros(support.n_nodes, e.dtype))

    def step(self, carry: PDSState, e: OnEdges, theta: Scalar, support: Incidence) -> PDSState:
        limit = 0.99 / (2 / theta + jnp.sqrt(2.0 * support.max_degree))
        gamma = limit if self.gamma is None else self.gamma
        return pds_step(carry, e, 1 / theta, 1 / theta, gamma, support)

    def read(self, carry: PDSState, e: OnEdges, theta: Scalar, support: Incidence) -> State:
        return State(carry.a, -theta * carry.v)
