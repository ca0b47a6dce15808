"""Damped Newton on the dual: the converged solver.

The dual has one variable per node, however many edges there are. With a(lam) = max(0, S'lam/2 -
theta e) and the 0/1 pattern A of its active (positive) edges, whose degrees are D,

    gradient            1/lam - S a(lam)
    minus the Hessian   diag(1/lam^2) + (D + A)/2,   positive definite

so a step is one Cholesky factorisation of an N x N matrix (`Dense`), or a sparse factorisation on
a restricted support (`Sparse`). Five to fifteen steps are usual. When theta e is large every edge
that becomes active is a wall to the quadratic model and steps are short: `continuation` then climbs
to theta through smaller ones.

Everything here is NumPy and SciPy in float64, whatever JAX is set to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from ..edges import Complete, Support
from .objective import rounding_floor

Edges = Float[np.ndarray, " edges"]
Nodes = Float[np.ndarray, " nodes"]


class Dual(NamedTuple):
    """The dual at one `lam`."""

    lam: Nodes
    value: float
    d: Nodes
    gradient: Nodes

    @property
    def residual(self) -> float:
        return float(np.abs(self.lam * self.d - 1).max())


class System(Protocol):
    """The dual of one problem and its Newton equations."""

    def at(self, lam: Nodes) -> Dual:
        """Evaluate the dual, and keep the weights a(lam)."""

    def weights(self) -> Edges:
        """a(lam) of the last `at`."""

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for the active edges of the last `at`."""


class Dense:
    """All pairs are candidates. Works on (N, N) buffers that are made once."""

    def __init__(self, e: Edges, theta: float, support: Support):
        self.support = support
        self.cost = theta * support.to_matrix(e)
        np.fill_diagonal(self.cost, np.inf)  # no node is its own neighbour
        self.a = np.empty_like(self.cost)
        self.hessian = np.empty_like(self.cost)

    def at(self, lam: Nodes) -> Dual:
        half = lam / 2
        a = np.subtract(half[:, None], self.cost, out=self.a)
        a += half
        np.maximum(a, 0, out=a)
        # Not np.vdot: NumPy and SciPy bring a BLAS each, and their threads, still spinning after a
        # call, get in each other's way (ten times slower at N = 200 on two cores).
        norm2 = np.square(a, out=self.hessian).sum() / 2  # each edge stands in `a` twice
        return _dual(lam, a.sum(1), norm2)

    def weights(self) -> Edges:
        return self.support.to_vector(self.a)

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        return _dense_solve(lam, np.multiply(self.a > 0, 0.5, out=self.hessian), rhs)


class Sparse:
    """A list of candidate pairs. Nothing of size N x N is made."""

    def __init__(self, e: Edges, theta: float, support: Support):
        self.cost = theta * e
        self.support = support
        self.a = np.empty_like(self.cost)

    def at(self, lam: Nodes) -> Dual:
        self.a = np.maximum(self.support.endpoint_sums(lam) / 2 - self.cost, 0)
        return _dual(lam, self.support.degrees(self.a), (self.a**2).sum())

    def weights(self) -> Edges:
        return self.a

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        return hessian_solve(lam, self.a > 0, rhs, self.support)


def hessian_solve(
    lam: Nodes, active: Bool[np.ndarray, " edges"], rhs: Nodes, support: Support
) -> Nodes:
    """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for these active edges."""
    if isinstance(support, Complete):
        return _dense_solve(lam, support.to_matrix(active / 2), rhs)
    n = len(lam)
    rows, cols = (np.asarray(end)[active] for end in support.endpoints)
    nodes = np.arange(n)
    half = np.full(rows.size, 0.5)
    diagonal = support.degrees(active / 2) + lam**-2
    hessian = coo_array(
        (
            np.concatenate([half, half, diagonal]),
            (np.concatenate([rows, cols, nodes]), np.concatenate([cols, rows, nodes])),
        ),
        shape=(n, n),
    )
    # Symmetric positive definite: pivoting for stability is not needed, ordering for fill is.
    factor = splu(
        hessian.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factor.solve(rhs)


def _dense_solve(lam: Nodes, half_pattern: Float[np.ndarray, "nodes nodes"], rhs: Nodes) -> Nodes:
    """Cholesky, on top of `half_pattern` = A/2."""
    diagonal = half_pattern.sum(1) + lam**-2
    half_pattern.flat[:: len(lam) + 1] = diagonal
    # Symmetric, so the transpose is the same matrix in the order LAPACK wants: no copy.
    _, x, failed = dposv(half_pattern.T, rhs, overwrite_a=True)
    if failed:
        raise LinAlgError("the Hessian of the dual is singular to working precision")
    return x


def _dual(lam: Nodes, d: Nodes, norm2: float) -> Dual:
    return Dual(lam, len(lam) + float(np.log(lam).sum()) - float(norm2), d, 1 / lam - d)


def system_for(e: Edges, theta: float, support: Support) -> System:
    """`Dense` for the complete support, `Sparse` for a restricted one."""
    if isinstance(support, Complete):
        return Dense(e, theta, support)
    return Sparse(e, theta, support)


def maximise_dual(system: System, lam: Nodes, tol: float, max_iter: int) -> tuple[Dual, int]:
    """Newton from `lam` until the residual is below `tol` or the floor that rounding sets.

    Returns the last point, whose residual tells whether that was reached, and the steps taken.
    """
    here = system.at(lam)
    for step in range(max_iter):
        if here.residual <= max(tol, rounding_floor(here.lam)):
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
        there = system.at(here.lam + t * direction)
        if there.value >= here.value + 1e-4 * t * slope:
            return there
        if there.value >= here.value - noise and abs(there.gradient @ direction) <= 0.9 * slope:
            return there
        t /= 2
    return None


def start(e: Edges, theta: float, support: Support) -> Nodes:
    """The duals for constant distances, in closed form: a = (sqrt(c^2 + 4/L) - c)/2, lam = 1/(L a).

    c is theta times the mean distance. Where all distances equal it and all nodes have L
    candidates this is the solution. lam = (c + sqrt(c^2 + 4/L))/2 without cancellation.
    """
    c, L = theta * e.mean(), support.max_degree
    root = np.hypot(c, 2 / np.sqrt(L))
    return np.full(support.n_nodes, (c + root) / 2 if c > 0 else 2 / (L * (root - c)))


def continuation(e: Edges, theta: float) -> Iterator[float]:
    """The thetas to climb through, ending at `theta`: steps of at most 4x from theta mean(e) = 100.

    Below that the start in closed form is good enough. Negative mean distances need no climb: all
    edges are active there and the dual is smooth.
    """
    ratio = theta * max(e.mean(), 0.0) / 100
    stages = max(0, int(np.ceil(np.log(max(ratio, 1.0)) / np.log(4))))
    yield from theta * np.geomspace(1 / max(ratio, 1.0), 1, stages + 1)[: stages + 1]


class Outcome(NamedTuple):
    """What `newton_solve` found."""

    a: Edges
    lam: Nodes
    residual: float
    iterations: int
    converged: bool


# Beyond this rounding floor (lam above 2e4) float64 does not define the graph to six digits, and
# stopping at the floor is not convergence.
WORST_FLOOR = 1e-6


def newton_solve(
    e: Edges, theta: float, support: Support, lam: Nodes | None, tol: float, max_iter: int
) -> Outcome:
    """Solve from the duals `lam`, or, without them, by continuation from the closed form."""
    stages = list(continuation(e, theta)) if lam is None else [theta]
    lam = start(e, stages[0], support) if lam is None else lam
    before, steps = stages[0], 0
    for stage in stages:
        # Optimal duals grow like theta once theta is large; on the way a rough solution is enough.
        goal = tol if stage == stages[-1] else 1e-2
        system = system_for(e, stage, support)
        point, taken = maximise_dual(system, lam * (stage / before), goal, max_iter - steps)
        before, lam, steps = stage, point.lam, steps + taken
    floor = min(rounding_floor(lam), WORST_FLOOR)
    system.at(lam)
    return Outcome(
        system.weights(), lam, point.residual, steps, bool(point.residual <= max(tol, floor))
    )
