"""The first-order iterations run to convergence: plain alternatives to `solve`, same result type.

Each is a few lines on top of a step in `iterations.py`. They need hundreds to hundreds of thousands
of steps where Newton needs ten (`benchmarks/solvers.py`); they are here to be read, to check the
solver against, and because the networks are these steps.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..edges import Support
from ..incidence import Incidence
from ..validate import check_distances, check_stopping, check_theta
from .iterations import (
    AcceleratedState,
    PDSState,
    State,
    accelerated_dpg_step,
    dpg_step,
    pds_step,
)
from .objective import residual, rounding_floor, weights_of
from .solve import Solution, warn_unless_converged

# Stopping at the rounding floor is convergence only where the floor is low.
WORST_FLOOR = 1e-6

# The residual costs as much as a step, so it is looked at once in this many.
STEPS_PER_CHECK = 10


class FirstOrder(eqx.Module):
    """An iteration to run until optimal. Settings only; the state is passed and returned."""

    @abc.abstractmethod
    def init(self, e: Float[Array, " edges"], support: Incidence) -> Any:
        """The state before the first step."""

    @abc.abstractmethod
    def step(self, carry: Any, e: Float[Array, " edges"], theta: Any, support: Incidence) -> Any:
        """The next state."""

    @abc.abstractmethod
    def read(self, carry: Any, e: Float[Array, " edges"], theta: Any, support: Incidence) -> State:
        """The weights and duals that a state stands for."""

    def solve(
        self,
        e: Any,
        theta: Any,
        *,
        tol: float = 1e-9,
        max_iter: int = 1_000_000,
        support: Support | None = None,
    ) -> Solution:
        """As `edgebelief.solve`, by this iteration, in float64, compiled.

        Examples
        --------
        >>> import numpy as np
        >>> from edgebelief.convex import AcceleratedDPG
        >>> AcceleratedDPG().solve(np.array([1.0, 1.0, 1.0]), theta=1.0).weights.round(6)
        array([0.366025, 0.366025, 0.366025])
        """
        tol, max_iter = check_stopping(tol, max_iter)
        e, support = check_distances(e, support)
        theta = check_theta(theta)
        with jax.enable_x64(True):
            # As arrays, or every new value would be compiled anew.
            arguments = jax.tree.map(jnp.asarray, (e, theta, support, tol, max_iter))
            state, (error, steps, floor) = jax.device_get(_run(self, *arguments))
        solution = Solution(
            weights=state.a,
            duals=state.lam,
            residual=float(error),
            iterations=int(steps),
            converged=bool(error <= max(tol, min(floor, WORST_FLOOR))),
            theta=theta,
            support=support,
        )
        warn_unless_converged(solution, e, tol, max_iter)
        return solution


@eqx.filter_jit
def _run(method: FirstOrder, e, theta, support: Support, tol, max_iter):
    inner, e_inner = support.inner, support.to_inner(jnp.asarray(e))

    def measure(carry):
        a, lam = method.read(carry, e_inner, theta, inner)
        return residual(a, lam, e_inner, theta, inner), rounding_floor(lam)

    def unfinished(loop):
        _, steps, (error, floor) = loop
        return (error > jnp.maximum(tol, floor)) & (steps < max_iter)

    def advance(loop):
        carry, steps, _ = loop
        more = jnp.minimum(STEPS_PER_CHECK, max_iter - steps)
        carry = lax.fori_loop(0, more, lambda _, c: method.step(c, e_inner, theta, inner), carry)
        return carry, steps + more, measure(carry)

    start = method.init(e_inner, inner), 0, (jnp.inf, 0.0)
    carry, steps, (error, floor) = lax.while_loop(unfinished, advance, start)
    a, lam = method.read(carry, e_inner, theta, inner)
    return State(support.from_inner(a), lam), (error, steps, floor)


class DPG(FirstOrder):
    """Dual proximal gradient, the paper's Algorithm 1: no step size, slow at large theta."""

    def init(self, e, support):
        return State(jnp.full_like(e, 0.5), jnp.ones(support.n_nodes, e.dtype))

    def step(self, carry, e, theta, support):
        return dpg_step(carry, e, theta, support)

    def read(self, carry, e, theta, support):
        return carry


class AcceleratedDPG(FirstOrder):
    """DPG with momentum and restarts: square-root as many steps on hard problems."""

    def init(self, e, support):
        lam = jnp.ones(support.n_nodes, e.dtype)
        return AcceleratedState(State(jnp.full_like(e, 0.5), lam), lam, jnp.ones((), e.dtype))

    def step(self, carry, e, theta, support):
        return accelerated_dpg_step(carry, e, theta, support)

    def read(self, carry, e, theta, support):
        return State(weights_of(carry.lam, e, theta, support), carry.lam)


class PDS(FirstOrder):
    """Primal-dual splitting, the paper's Algorithm 2, at alpha = beta = 1/theta (so delta = 1).

    Parameters
    ----------
    gamma : float, optional
        The step size; above about 1/(2 beta + sqrt(2L)) the iteration diverges, and that is the
        default. The best one depends on the problem.
    """

    gamma: float | None = None

    def init(self, e, support):
        return PDSState(jnp.zeros_like(e), jnp.zeros(support.n_nodes, e.dtype))

    def step(self, carry, e, theta, support):
        limit = 0.99 / (2 / theta + jnp.sqrt(2.0 * support.max_degree))
        gamma = limit if self.gamma is None else self.gamma
        return pds_step(carry, e, 1 / theta, 1 / theta, gamma, support)

    def read(self, carry, e, theta, support):
        return State(carry.a, -theta * carry.v)
