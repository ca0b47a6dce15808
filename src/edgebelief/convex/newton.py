"""Damped Newton's method on the dual: the solver behind `solve`.

The dual has one variable per node, however many edges there are, so a step costs one factorisation
of an N x N matrix; five to fifteen steps are usual. When theta e is large, every edge that becomes
active breaks the quadratic model and makes the step short: `continuation` then goes to theta
through smaller values. The last steps write the duals as a sum of two parts (`systems`), so that
the residual falls to the tolerance even where rounding would hide it in plain float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from ..edges import Restricted, Support
from .objective import rounding_floor
from .systems import Dual, Edges, Nodes, System, system_for

# If rounding errors exceed this fraction of the largest weight, the duals are split into two parts.
WEIGHT_DIGITS = 1e-13

# A start with a residual above FAR is multiplied by STRETCH. From duals that are too large, edges
# are removed and Newton needs few steps; from duals that are too small, each edge that enters
# shortens a step. Of 1, 1.1, 1.2, 1.3 and 1.5 this took the fewest steps over random graphs of 20
# to 1000 nodes.
FAR, STRETCH = 0.9, 1.5

# Near the solution Newton squares the residual; if it has not halved in this many steps, the rest
# is rounding error.
PATIENCE = 20


@cache  # made once, because it searches all loaded libraries
def _thread_pools() -> Any:
    # Imported here: machines that only train the pair network need not have it.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class Outcome(NamedTuple):
    """The result of `newton_solve`."""

    a: Edges
    lam: Nodes
    residual: float
    iterations: int
    converged: bool


def newton_solve(
    e: Edges, theta: float, support: Support, lam: Nodes | None, tol: float, max_iter: int
) -> Outcome:
    """Solve from the duals `lam`; without them, by continuation from `start`.

    For matrices of a few hundred rows, and the dot products of conjugate gradients, BLAS is limited
    to one thread. Two are no faster there, and twenty times slower when another process uses the
    second core, because they wait for each other by spinning.
    """
    if 64 <= support.n_nodes < 512 or isinstance(support, Restricted):
        with _thread_pools().limit(limits=1, user_api="blas"):
            return _newton_solve(e, theta, support, lam, tol, max_iter)
    return _newton_solve(e, theta, support, lam, tol, max_iter)


def _newton_solve(
    e: Edges, theta: float, support: Support, lam: Nodes | None, tol: float, max_iter: int
) -> Outcome:
    stages = list(continuation(e, theta)) if lam is None else [theta]
    system, steps = system_for(e, stages[0], support), 0
    lam = start(system) if lam is None else lam
    for stage, after in pairwise(stages):
        # Optimal duals grow like theta once theta is large; at the stages a rough one is enough.
        point, taken = maximise_dual(system, lam, 1e-2, max_iter - steps)
        steps += taken
        system, lam = system_for(e, after, support), point.lam * (after / stage)
    point, taken = maximise_dual(system, lam, tol, max_iter - steps)
    steps += taken
    # One base is usually enough; when theta e is huge, several are needed one after the other.
    for _ in range(10):
        if steps >= max_iter or _keeps_its_digits(system, point, tol):
            break
        system.rebase(point.lam)
        point, taken = maximise_dual(system, np.zeros_like(lam), tol, max_iter - steps)
        steps += taken
        point, taken = maximise_dual(system, point.x, 1e-13, min(3, max_iter - steps))
        steps += taken
    system.at(point.x)  # the last point evaluated may be one that the line search rejected
    return Outcome(system.weights(), point.lam, point.residual, steps, bool(point.residual <= tol))


def _keeps_its_digits(system: System, point: Dual, tol: float) -> bool:
    """Whether the tolerance is met and the largest weight is accurate to about 13 digits."""
    system.at(point.x)
    error = np.finfo(float).eps * np.abs(point.x).max()
    return bool(point.residual <= tol and error <= WEIGHT_DIGITS * system.a.max())


def start(system: System) -> Nodes:
    """Return duals to start from: the optimum if all neighbours of a node had the same dual.

    They solve lam sum_j max(0, lam - theta e_ij) = 1 for each node by itself. The left side is
    convex and increasing in lam, so Newton's method descends to the root from the root with one
    neighbour, the nearest. The result is exact if all distances are equal and all nodes have the
    same number of candidate edges; if its residual is large it is stretched.
    """
    nearest = system.nearest()
    # (c + sqrt(c^2 + 4))/2 without cancellation
    root = np.hypot(nearest, 2)
    lam = np.where(nearest > 0, (nearest + root) / 2, 2 / (root - np.minimum(nearest, 0)))
    for _ in range(20):
        d, k = system.degrees_if_all_had(lam)
        slope = d + lam * k
        # No neighbour at all: theta e is so large that the root is the nearest cost to rounding.
        step = np.where(slope > 0, (lam * d - 1) / np.where(slope > 0, slope, 1.0), 0.0)
        lam = lam - step
        if (step <= 1e-13 * lam).all():
            break
    return STRETCH * lam if system.at(lam).residual > FAR else lam


def maximise_dual(system: System, x: Nodes, tol: float, max_iter: int) -> tuple[Dual, int]:
    """Run Newton's method from lam = base + `x` until the residual is below `tol` or rounding.

    Returns the last point, whose residual shows whether `tol` was reached, and the steps taken.
    """
    point = system.at(x)
    best, best_step = point.residual, 0
    for step in range(max_iter):
        if point.residual < best / 2:
            best, best_step = point.residual, step
        if step - best_step > PATIENCE and point.residual < 1e-3:
            return point, step
        # Within a hundred rounding floors steps are noise, and a new base is needed.
        if point.residual <= max(tol, 100 * rounding_floor(point.x)):
            return point, step
        try:
            direction = system.solve(point.lam, point.gradient)
        except (LinAlgError, RuntimeError):  # singular to working precision: lam is beyond 1e7
            return point, step
        candidate = _line_search(system, point, direction)
        if candidate is None:  # rounding: no step improves on this point
            return point, step
        point = candidate
    return point, max_iter


def _line_search(system: System, point: Dual, direction: Nodes) -> Dual | None:
    """Return the first of the steps 1, 1/2, 1/4, ... with lam > 0 that passes one of two tests.

    Armijo: the dual rises by 1e-4 of what the slope predicts. Or, where that difference is lost in
    rounding, the slope along the direction shrinks to 0.9 (approximate Wolfe, Hager and Zhang
    2005): the dual is concave, so a flatter slope means a nearer maximum.
    """
    slope = point.gradient @ direction
    shrinking = direction < 0
    to_boundary = np.min(-point.lam[shrinking] / direction[shrinking], initial=np.inf)
    t = min(1.0, 0.99 * to_boundary)
    noise = 1e-10 * (abs(point.value) + 1)
    while t > 1e-12:
        candidate = system.at(point.x + t * direction)
        if candidate.value >= point.value + 1e-4 * t * slope:
            return candidate
        if (
            candidate.value >= point.value - noise
            and abs(candidate.gradient @ direction) <= 0.9 * slope
        ):
            return candidate
        t /= 2
    return None


def continuation(e: Edges, theta: float) -> Iterator[float]:
    """Yield the thetas to solve at, from theta mean(e) = 100 to `theta`, by factors of at most 4.

    Below that the start is good enough. Negative mean distances need no continuation: most edges
    are active there and the dual is smooth.
    """
    ratio = max(theta * e.mean() / 100, 1.0)
    stages = int(np.ceil(np.log(ratio) / np.log(4)))
    yield from theta * ratio ** -np.linspace(1, 0, stages + 1)[: stages + 1]
