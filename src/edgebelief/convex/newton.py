"""Damped Newton on the dual: the converged solver.

The dual has one variable per node, however many edges there are, so a step costs one factorisation
of an N x N matrix; five to fifteen steps are usual. When theta e is large every edge that becomes
active is a wall to the quadratic model and steps are short: `continuation` then climbs to theta
through smaller ones. The last steps run on duals in two parts (`systems`), so that the residual
falls to the tolerance even where a plain float64 evaluation could not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import ThreadpoolController

from ..edges import Support
from .objective import rounding_floor
from .systems import Dual, Edges, Nodes, System, system_for

# Where rounding leaves more than this of the largest weight, the solution is computed from a base.
WEIGHT_DIGITS = 1e-13

# A start this far from the solution is made larger: from duals too large, edges leave and Newton
# goes down in few steps; from too small ones it goes up, and each edge that enters is a wall.
# Fewest steps over random graphs of 20 to 1000 nodes, among 1, 1.1, 1.2, 1.3, 1.5.
FAR, STRETCH = 0.9, 1.5


# Near the solution Newton squares the residual; if it has not halved in this many steps, what is
# left is rounding.
PATIENCE = 20


class Outcome(NamedTuple):
    """What `newton_solve` found."""

    a: Edges
    lam: Nodes
    residual: float
    iterations: int
    converged: bool


def newton_solve(
    e: Edges, theta: float, support: Support, lam: Nodes | None, tol: float, max_iter: int
) -> Outcome:
    """Solve from the duals `lam`, or, without them, by continuation from `start`."""
    with _calm_blas(support.n_nodes):
        return _newton_solve(e, theta, support, lam, tol, max_iter)


def _calm_blas(n_nodes: int) -> AbstractContextManager[object]:
    """One BLAS thread for matrices of a few hundred rows.

    Two are no faster there, and twenty times slower when something else wants the second core:
    they wait for each other by spinning.
    """
    if 64 <= n_nodes < 512:
        return _thread_pools().limit(limits=1, user_api="blas")
    return nullcontext()


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def _newton_solve(
    e: Edges, theta: float, support: Support, lam: Nodes | None, tol: float, max_iter: int
) -> Outcome:
    stages = list(continuation(e, theta)) if lam is None else [theta]
    system, steps = system_for(e, stages[0], support), 0
    lam = start(system) if lam is None else lam
    for stage, after in pairwise(stages):
        # Optimal duals grow like theta once theta is large; on the way a rough solution is enough.
        point, taken = maximise_dual(system, lam, 1e-2, max_iter - steps)
        steps += taken
        system, lam = system_for(e, after, support), point.lam * (after / stage)
    point, taken = maximise_dual(system, lam, tol, max_iter - steps)
    steps += taken
    # One base is usually enough; when theta e is huge the first ones are only the way there.
    for _ in range(10):
        if steps >= max_iter or _keeps_its_digits(system, point, tol):
            break
        system.rebase(point.lam)
        point, taken = maximise_dual(system, np.zeros_like(lam), tol, max_iter - steps)
        steps += taken
        point, taken = maximise_dual(system, point.x, 1e-13, min(3, max_iter - steps))
        steps += taken
    system.at(point.x)  # the last point looked at may be one that the line search refused
    return Outcome(system.weights(), point.lam, point.residual, steps, bool(point.residual <= tol))


def _keeps_its_digits(system: System, point: Dual, tol: float) -> bool:
    """Whether the tolerance is met and the largest weight is known to some thirteen digits."""
    system.at(point.x)
    error = np.finfo(float).eps * np.abs(point.x).max()
    return point.residual <= tol and error <= WEIGHT_DIGITS * system.a.max()


def start(system: System) -> Nodes:
    """Duals that would be right if each node's neighbours had the same one, or larger.

    That is lam sum_j max(0, lam - theta e_ij) = 1 for each node by itself: convex and increasing in
    lam, so Newton goes down to the root from the root with one neighbour, the nearest. Exact
    where all distances, and all numbers of candidates, are equal.
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
    """Newton from lam = base + `x` until the residual is below `tol` or lost in rounding.

    Returns the last point, whose residual tells whether that was reached, and the steps taken.
    """
    here = system.at(x)
    best, best_step = here.residual, 0
    for step in range(max_iter):
        if here.residual < best / 2:
            best, best_step = here.residual, step
        if step - best_step > PATIENCE and here.residual < 1e-3:
            return here, step
        # A hundred floors: near one, steps are noise; another base is the way on.
        if here.residual <= max(tol, 100 * rounding_floor(here.x)):
            return here, step
        try:
            direction = system.solve(here.lam, here.gradient)
        except (LinAlgError, RuntimeError):  # singular to working precision: lam is beyond 1e7
            return here, step
        there = _line_search(system, here, direction)
        if there is None:  # rounding: no step improves on this point
            return here, step
        here = there
    return here, max_iter


def _line_search(system: System, here: Dual, direction: Nodes) -> Dual | None:
    """The first of 1, 1/2, 1/4, ... steps that keeps lam > 0 and passes one of two tests.

    Armijo (the dual rises by 1e-4 of what the slope promises), or, where that difference drowns in
    rounding, the slope along the direction shrinks to 0.9 (approximate Wolfe, Hager and Zhang
    2005): the dual is concave, so a flatter slope means a nearer maximum.
    """
    slope = here.gradient @ direction
    shrinking = direction < 0
    to_boundary = np.min(-here.lam[shrinking] / direction[shrinking], initial=np.inf)
    t = min(1.0, 0.99 * to_boundary)
    noise = 1e-10 * (abs(here.value) + 1)
    while t > 1e-12:
        there = system.at(here.x + t * direction)
        if there.value >= here.value + 1e-4 * t * slope:
            return there
        if there.value >= here.value - noise and abs(there.gradient @ direction) <= 0.9 * slope:
            return there
        t /= 2
    return None


def continuation(e: Edges, theta: float) -> Iterator[float]:
    """The thetas to climb through, ending at `theta`: steps of at most 4x from theta mean(e) = 100.

    Below that the start is good enough. Negative mean distances need no climb: most edges are
    active there and the dual is smooth.
    """
    ratio = max(theta * e.mean() / 100, 1.0)
    stages = int(np.ceil(np.log(ratio) / np.log(4)))
    yield from theta * ratio ** -np.linspace(1, 0, stages + 1)[: stages + 1]
