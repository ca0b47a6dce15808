"""The dual of one problem and its Newton equations, on all pairs (`Dense`) or a list (`Sparse`).

With a(lam) = max(0, S'lam/2 - theta e), the 0/1 matrix A of its active (positive) edges, and the
diagonal matrix D of their number at each node,

    gradient            1/lam - S a(lam)
    minus the Hessian   diag(1/lam^2) + (D + A)/2,   positive definite

Where theta e is large, S'lam/2 - theta e cancels. So duals are written lam = base + x, and the
*slack* S'base/2 - theta e is computed once, in twice the working precision: near a base, x is small
and a = max(0, slack + S'x/2) keeps its digits.

All computations are in NumPy and SciPy, in float64, whatever the precision of JAX.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg, splu

from ..edges import Complete, Support

# Pairs in a block, whose temporary arrays (2 MB each) stay in a processor's cache.
BLOCK = 2**18
# Where conjugate gradients fail, a factorisation of so many nodes takes a second whatever the
# graph, and one of any number if the active pairs are nearly a forest, which hardly fills in.
FACTORISED, NEARLY_FOREST = 10_000, 1.2

Edges = Float[np.ndarray, " edges"]
Nodes = Float[np.ndarray, " nodes"]
Counts = Real[np.ndarray, " nodes"]


class Dual(NamedTuple):
    """The dual at lam = base + x."""

    x: Nodes
    lam: Nodes
    value: float
    d: Nodes
    gradient: Nodes

    @property
    def residual(self) -> float:
        return float(np.abs(self.lam * self.d - 1).max())


@runtime_checkable
class System(Protocol):
    """What Newton's method needs of a problem. It keeps the weights of the last point."""

    a: np.ndarray
    """The weights at the last point evaluated by `at`, in the layout of the system; it may leave
    out zeros."""

    def nearest(self) -> Nodes:
        """Return the smallest theta e at each node (with base zero)."""

    def degrees_if_all_had(self, lam: Nodes) -> tuple[Nodes, Counts]:
        """Return the degree and the number of edges of each node if all had its dual."""

    def at(self, x: Nodes) -> Dual:
        """Evaluate the dual at lam = base + `x`, and keep the weights."""

    def weights(self) -> Edges:
        """Return a(lam) at the last point."""

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for the active edges at the last point."""

    def rebase(self, base: Nodes) -> None:
        """Change the base from which x is measured."""


def system_for(e: Edges, theta: float, support: Support) -> System:
    """Return `Dense` for the complete support, `Sparse` for a restricted one, with base zero."""
    return (Dense if isinstance(support, Complete) else Sparse)(e, theta, support)


class Dense:
    """The system of all pairs. It works on (N, N) buffers that are allocated once."""

    def __init__(self, e: Edges, theta: float, support: Support):
        self.e, self.theta, self.support = e, theta, support
        self.base = np.zeros(support.n_nodes)
        self._set_slack(-theta * e)
        self.a = np.empty_like(self.slack)
        self.hessian = np.empty_like(self.slack)

    def _set_slack(self, slack: Edges) -> None:
        self.slack = self.support.to_matrix(slack)
        np.fill_diagonal(self.slack, -np.inf)  # no node is its own neighbour

    def degrees_if_all_had(self, lam: Nodes) -> tuple[Nodes, Counts]:
        surplus = np.add(self.slack, lam[:, None], out=self.a)
        np.maximum(surplus, 0, out=surplus)
        return surplus.sum(1), np.count_nonzero(surplus, axis=1)

    def nearest(self) -> Nodes:
        return -self.slack.max(1)

    def at(self, x: Nodes) -> Dual:
        half = x / 2
        a = np.add(self.slack, half[:, None], out=self.a)
        a += half
        np.maximum(a, 0, out=a)
        # Not np.vdot: NumPy and SciPy have a BLAS each, and the threads of one, still spinning
        # after a call, slow the other down (ten times slower at N = 200 on two cores).
        norm2 = np.square(a, out=self.hessian).sum() / 2  # `a` holds each edge twice
        return _dual(x, self.base + x, a.sum(1), norm2)

    def weights(self) -> Edges:
        return self.support.to_vector(self.a)

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        return _dense_solve(lam, np.multiply(self.a > 0, 0.5, out=self.hessian), rhs)

    def rebase(self, base: Nodes) -> None:
        self.base = base
        self._set_slack(_slack(self.e, self.theta, self.support, base))


class Sparse:
    """The system of a list of candidate pairs. It allocates no N x N array.

    Few candidates are active, and only those are summed and stored: a step costs one pass over the
    candidates, in blocks, and a few dozen over the active ones.
    """

    def __init__(self, e: Edges, theta: float, support: Support):
        self.e, self.theta, self.support = e, theta, support
        self.rows, self.cols = (np.asarray(end) for end in support.endpoints)
        self.base = np.zeros(support.n_nodes)
        self.slack = -theta * e
        self.active = np.empty(0, dtype=int)
        """The positions of the active pairs among the candidates; `a` has their weights."""
        self.a = np.empty(0)

    def nearest(self) -> Nodes:
        most = np.full(self.support.n_nodes, -np.inf)
        for end in (self.rows, self.cols):
            np.maximum.at(most, end, self.slack)
        return -most

    def degrees_if_all_had(self, lam: Nodes) -> tuple[Nodes, Counts]:
        d, k = np.zeros_like(lam), np.zeros_like(lam)
        for block in _blocks(len(self.e)):
            for end in (self.rows[block], self.cols[block]):
                surplus = lam[end] + self.slack[block]
                positive = np.flatnonzero(surplus > 0)
                self._add(d, end[positive], surplus[positive])
                self._add(k, end[positive], None)
        return d, k

    def at(self, x: Nodes) -> Dual:
        half, d = x / 2, np.zeros_like(x)
        actives, weights = [], []
        for block in _blocks(len(self.e)):
            rows, cols = self.rows[block], self.cols[block]
            a = half[rows]
            a += half[cols]
            a += self.slack[block]
            positive = np.flatnonzero(a > 0)
            a = a[positive]
            self._add(d, rows[positive], a)
            self._add(d, cols[positive], a)
            actives.append(positive + block.start)
            weights.append(a)
        self.active, self.a = np.concatenate(actives), np.concatenate(weights)
        return _dual(x, self.base + x, d, np.square(self.a).sum())

    def _add(self, total: Nodes, end: np.ndarray, values: np.ndarray | None) -> None:
        """Add values, or 1, to the nodes at one end of some pairs."""
        first = int(end.min(initial=len(total)))  # ends that are sorted touch few nodes
        sums = np.bincount(end - first, values)
        total[first : first + len(sums)] += sums

    def weights(self) -> Edges:
        a = np.zeros(len(self.e))
        a[self.active] = self.a
        return a

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        # A Newton step doubles the number of correct digits: its direction needs no more than that.
        residual = np.abs(lam * rhs).max()
        rtol = min(max(residual**2, 1e-13), 1e-2)
        # Cut short, conjugate gradients give a direction that ascends nevertheless.
        return sparse_solve(lam, self.rows[self.active], self.cols[self.active], rhs, rtol)[0]

    def rebase(self, base: Nodes) -> None:
        self.base = base
        self.slack = _slack(self.e, self.theta, self.support, base)


def _blocks(n: int) -> Iterator[slice]:
    for first in range(0, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))


def _dual(x: Nodes, lam: Nodes, d: Nodes, norm2: float) -> Dual:
    return Dual(x, lam, len(lam) + float(np.log(lam).sum()) - float(norm2), d, 1 / lam - d)


def hessian_solve(
    lam: Nodes, active: Bool[np.ndarray, " edges"], rhs: Nodes, support: Support
) -> Nodes:
    """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for these active edges."""
    if isinstance(support, Complete):
        return _dense_solve(lam, support.to_matrix(active / 2), rhs)
    rows, cols = (np.asarray(end)[active] for end in support.endpoints)
    x, failed = sparse_solve(lam, rows, cols, rhs)
    if failed:
        raise LinAlgError("conjugate gradients did not converge on the Hessian of the dual")
    return x


def sparse_solve(
    lam: Nodes,
    rows: Int[np.ndarray, " active"],
    cols: Int[np.ndarray, " active"],
    rhs: Nodes,
    rtol: float = 1e-13,
) -> tuple[Nodes, bool]:
    """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for these active pairs; and whether it was cut short."""
    n, n_active = len(lam), len(rows)
    upper = csr_array((np.full(n_active, 0.5), (rows, cols)), shape=(n, n))
    lower = upper.T  # the same numbers, read by columns
    diagonal = (np.bincount(rows, minlength=n) + np.bincount(cols, minlength=n)) / 2 + lam**-2
    # Unless theta e is large 1/lam^2 dominates, and conjugate gradients need few steps however
    # much a factorisation would fill in.
    factorises = n <= FACTORISED or n_active <= NEARLY_FOREST * n
    product = LinearOperator((n, n), matvec=lambda x: upper @ x + lower @ x + diagonal * x)
    divide = LinearOperator((n, n), matvec=lambda x: x / diagonal)
    steps = 200 if factorises else 1000
    x, failed = cg(product, rhs, rtol=rtol, atol=0.0, maxiter=steps, M=divide)
    if not (failed and factorises):
        return x, bool(failed)
    # Symmetric positive definite: pivoting for stability is not needed, ordering for fill is.
    factor = splu(
        (upper + lower + diags_array(diagonal)).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factor.solve(rhs), False


def _dense_solve(lam: Nodes, half_pattern: Float[np.ndarray, "nodes nodes"], rhs: Nodes) -> Nodes:
    """Solve by Cholesky factorisation, overwriting `half_pattern` = A/2."""
    diagonal = half_pattern.sum(1) + lam**-2
    half_pattern.flat[:: len(lam) + 1] = diagonal
    # The matrix is symmetric, so its transpose is itself in LAPACK's column order, without a copy.
    _, x, failed = dposv(half_pattern.T, rhs, overwrite_a=True)
    if failed:
        raise LinAlgError("the Hessian of the dual is singular to working precision")
    return x


def _slack(e: Edges, theta: float, support: Support, base: Nodes) -> Edges:
    """Compute S'base/2 - theta e with compensated sums and products, rounded once at the end."""
    rows, cols = support.endpoints
    ends, ends_error = _two_sum(base[rows] / 2, base[cols] / 2)
    cost, cost_error = _two_product(theta, e)
    slack, slack_error = _two_sum(ends, -cost)
    return slack + (slack_error + ends_error - cost_error)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a + b and its rounding error, exactly (Knuth)."""
    s = a + b
    b_part = s - a
    return s, (a - (s - b_part)) + (b - b_part)


def _two_product(a: float, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a b and its rounding error, exactly (Dekker; factors split in halves of 26 bits)."""

    def halves(x: float | np.ndarray) -> tuple[float | np.ndarray, float | np.ndarray]:
        scaled = 134217729.0 * x  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    p = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)
