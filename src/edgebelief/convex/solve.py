"""`solve` and `solve_path`: the graph on which signals are smooth, to full precision."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from ..edges import Complete, Support
from ..errors import InputError, Remedy, Setting, SettingError, SettingTypeError
from ..incidence import Array, Scalar
from ..validate import (
    as_floats,
    check_distances,
    check_stopping,
    check_support,
    check_theta,
    complete_support,
)
from .implicit import converged_state
from .newton import newton_solve
from .systems import Edges, Nodes

# The matrix of a Newton step, diag(1/lam^2) + (D + A)/2, is singular to working precision where the
# duals are larger; they grow like theta times the distance from a node to its nearest.
LARGEST_DUAL = 1 / np.sqrt(np.finfo(float).eps)


class ConvergenceWarning(UserWarning):
    """A solver stopped before its residual reached the tolerance."""


class Solution(eqx.Module):
    """A learned graph, and how far from optimal it is.

    Attributes
    ----------
    weights : array (n_edges,)
        Edge weights; from `solve`, exactly zero where there is no edge.
    duals : array (N,)
        One dual variable per node; at the solution the inverse of its weighted degree.
    residual : float
        How far from optimal, see `edgebelief.convex.residual`.
    iterations : int
        Steps taken.
    converged : bool
        Whether the residual is below the tolerance, or as low as rounding allows.
    theta : float
    support : Support
        The candidate edges, in the order of `weights`.
    """

    weights: Float[Array, " edges"]
    duals: Float[Array, " nodes"]
    residual: Scalar
    iterations: int | Int[Array, ""]
    converged: bool | Bool[Array, ""]
    theta: Scalar
    support: Support

    def adjacency(self) -> Float[Array, "nodes nodes"]:
        """Return the weights as a symmetric matrix with zero diagonal."""
        return self.support.to_matrix(self.weights)

    @property
    def n_edges(self) -> Int[Array, ""]:
        """The number of edges: weights above 1e-5 of the largest."""
        return self.support.is_edge(self.weights).sum()


def solve(
    e: ArrayLike,
    theta: ArrayLike,
    *,
    tol: float = 1e-9,
    max_iter: int = 1000,
    support: Support | None = None,
    start: ArrayLike | None = None,
) -> Solution:
    """Learn a graph from distances, without labels.

    Minimises  2 theta a'e - sum_i log(S a)_i + ||a||^2  over a >= 0, by Newton's method on the
    dual (`edgebelief.convex.newton`), in float64 whatever the precision of JAX.

    Parameters
    ----------
    e : array_like, shape (n_edges,) or (N, N)
        Distances between nodes, as a vector over the candidate edges or a symmetric matrix.
    theta : float
        Sparsity: larger means fewer edges. `theta_for` finds it from a wanted degree or density.
        Multiplying `e` by c is the same as multiplying `theta` by c. It is refused outside the
        range in which float64 can hold the solution, `edgebelief.convex.theta_range`.
    tol : float
        Stop when max_i |lam_i d_i - 1| is below this.
    max_iter : int
        The largest number of Newton steps.
    support : Support, optional
        The candidate edges; by default all pairs.
    start : array_like, shape (N,), optional
        Duals to start from, such as ``solve(e, nearby_theta).duals``.

    Returns
    -------
    Solution

    Notes
    -----
    Under `jax.jit`, `jax.vmap` and differentiation (with respect to `e` and `theta`, both modes)
    the same solver runs on the host, and derivatives come from implicit differentiation. Traced
    values can be neither checked nor warned about, so look at `converged`.

    This is a point estimate: it has no measure of uncertainty about an edge.

    Examples
    --------
    >>> from edgebelief import solve
    >>> e = [1.0, 9.0, 9.0, 9.0, 9.0, 1.0]  # nodes 0, 1 are near; so are 2, 3
    >>> solve(e, theta=1.0).adjacency().round(3)
    array([[0.   , 0.618, 0.   , 0.   ],
           [0.618, 0.   , 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.618],
           [0.   , 0.   , 0.618, 0.   ]])
    """
    tol, max_iter = check_stopping(tol, max_iter)
    if any(map(_is_traced, jax.tree.leaves((e, theta, support, start)))):
        if start is not None:
            raise SettingTypeError("start= cannot be used inside jit, vmap or differentiation.")
        return _solve_traced(e, theta, tol, max_iter, support)
    e, support = check_distances(e, support)
    theta = check_theta_for(theta, e, support)
    lam = None if start is None else _check_start(start, support)
    return _solve(e, theta, support, lam, tol, max_iter)


def theta_range(e: Edges, support: Support) -> tuple[float, float]:
    """Return the smallest and the largest theta whose solution float64 can hold.

    Below the smallest, theta e is lost in the rounding of weights of 1/sqrt(L), with L candidate
    edges at a node: they are all the same, whatever the distances. At the largest, theta times the
    distance from a node to its nearest is 1/sqrt(eps) = 6.7e7. The duals are about as large, and
    beyond it Newton's equations are singular to working precision; the residual, which cannot be
    below about 10 eps max(lam)^2 in plain float64, then grows without bound.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.convex import theta_range
    >>> from edgebelief.edges import Complete
    >>> low, high = theta_range(np.array([1.0, 2.0, 3.0]), Complete(3))
    >>> f"{low:.1e} {high:.1e}"  # node 2 is at 2 from its nearest
    '5.2e-17 3.4e+07'
    """
    nearest = np.full(support.n_nodes, np.inf)
    for ends in support.endpoints:
        np.minimum.at(nearest, np.asarray(ends), e)
    farthest_nearest, largest = float(nearest.max()), float(np.abs(e).max())
    with np.errstate(divide="ignore", over="ignore"):
        high = LARGEST_DUAL / np.float64(farthest_nearest) if farthest_nearest > 0 else np.inf
        low = np.finfo(float).eps / np.float64(largest) / np.sqrt(support.max_degree)
    return (float(low) if largest > 0 else 0.0), float(high)


def check_theta_for(theta: object, e: Edges, support: Support) -> float:
    """Return theta; refuse one at which float64 cannot hold the solution for these distances."""
    value, largest = check_theta(theta), float(np.abs(e).max())
    low, high = theta_range(e, support)
    if low <= value <= high:
        if max(value, largest) > 1e290 or value * largest > 1e290:
            problem = f"theta times the distances overflows ({value:g} x {largest:g}); rescale."
            raise InputError(problem)
        return value
    why = "all pairs get the same weight, whatever their distances"
    if value > high:
        why = f"the duals, as large as theta times distances, pass {LARGEST_DUAL:.1e}"
    problem = (
        f"must be from {low:.2g} to {high:.2g} with these distances; got {value:g}, at which "
        f"{why}, and double precision cannot hold the solution"
    )
    finds = Setting("degree", python="theta_for(e, degree=...)")
    remedy = Remedy("{} finds a theta for a wanted number of edges", finds)
    raise SettingError(problem, argument="theta", remedy=remedy)


def solve_path(
    e: ArrayLike,
    thetas: Iterable[float],
    *,
    tol: float = 1e-9,
    max_iter: int = 1000,
    support: Support | None = None,
) -> list[Solution]:
    """Solve at each of `thetas`, warm-started from the nearest solutions; returned in that order.

    Examples
    --------
    >>> from edgebelief.convex import solve_path
    >>> [int(s.n_edges) for s in solve_path([1.0, 2.0, 3.0], thetas=[0.01, 1.0, 10.0])]
    [3, 2, 2]
    """
    tol, max_iter = check_stopping(tol, max_iter)
    e, support = check_distances(e, support)
    thetas = [check_theta_for(theta, e, support) for theta in thetas]
    solutions: dict[float, Solution] = {}
    before = latest = None
    for theta in sorted(set(thetas)):
        lam = None if latest is None else _extrapolate(before, latest, theta)
        solutions[theta] = _solve(e, theta, support, lam, tol, max_iter)
        before, latest = latest, solutions[theta]
    return [solutions[theta] for theta in thetas]


def _extrapolate(before: Solution | None, latest: Solution, theta: float) -> np.ndarray:
    """Extrapolate duals to start from at `theta`: linear in the logarithms of two solutions."""
    if before is None:
        return latest.duals
    ahead = np.log(theta / latest.theta) / np.log(latest.theta / before.theta)
    return latest.duals * (latest.duals / before.duals) ** min(ahead, 1.0)


def _solve(
    e: Edges, theta: float, support: Support, lam: Nodes | None, tol: float, max_iter: int
) -> Solution:
    """Solve with checked arguments, and warn if it does not converge."""
    solution = Solution(*newton_solve(e, theta, support, lam, tol, max_iter), theta, support)
    warn_unless_converged(solution, tol, max_iter)
    return solution


def warn_unless_converged(solution: Solution, tol: float, max_iter: int) -> None:
    """Warn, with the reason, if a solver stopped before its residual reached the tolerance."""
    if solution.converged:
        return
    why = "rounding allows no further progress"
    if solution.iterations >= max_iter:
        why = "raise max_iter, or start from a nearby solution"
    warnings.warn(
        f"stopped at residual {solution.residual:.1e}, above the tolerance {tol:g}, after "
        f"{solution.iterations} steps: {why}.",
        ConvergenceWarning,
        stacklevel=4,
    )


def _solve_traced(
    e: ArrayLike, theta: ArrayLike, tol: float, max_iter: int, support: Support | None
) -> Solution:
    """Solve with traced arguments: check the shape of these, and the values of all others."""
    check_support(support)
    traced_support = any(map(_is_traced, jax.tree.leaves(support)))
    if _is_traced(e) or traced_support:
        e = e if _is_traced(e) else as_floats(e, "distances")
        if support is None:
            support = Complete(e.shape[0]) if e.ndim == 2 else complete_support(e.size)
        square, flat = (support.n_nodes, support.n_nodes), (support.n_edges,)
        if e.shape not in (square, flat):
            problem = f"must have shape {flat} or {square}; got {e.shape}."
            raise InputError(problem, argument="distances")
        if not _is_traced(e) and np.isnan(e).any():
            raise InputError("has gaps (NaN); fill them first.", argument="distances")
        e = support.to_vector(e) if e.ndim == 2 else jnp.asarray(e)
    else:
        e, support = check_distances(e, support)
    if not _is_traced(theta):
        theta = check_theta(theta)
    elif theta.shape:
        problem = f"must be one number; got shape {theta.shape}. Use jax.vmap."
        raise SettingError(problem, argument="theta")
    (a, lam), info = converged_state(e, theta, support, tol=tol, max_iter=max_iter)
    residual, iterations, converged = info
    return Solution(a, lam, residual, iterations.astype(int), converged > 0, theta, support)


def _is_traced(x: object) -> TypeGuard[jax.Array]:
    return isinstance(x, jax.core.Tracer)


def _check_start(start: ArrayLike, support: Support) -> Nodes:
    lam = as_floats(start, "start")
    if lam.shape != (support.n_nodes,) or not (np.isfinite(lam).all() and (lam > 0).all()):
        duals = f"{support.n_nodes} positive duals, one per node, such as another solution's"
        problem = f"must be {duals}; got shape {lam.shape}, smallest {lam.min():g}."
        raise SettingError(problem, argument="start")
    return lam
