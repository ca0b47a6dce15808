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

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Real
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg, splu

from ..edges import Complete, Support

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
    """The weights at the last point evaluated by `at`, in the layout of the system."""

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


class HalfEdges:
    """The candidate edges of a restricted support, each listed at both ends, sorted by node."""

    def __init__(self, support: Support):
        rows, cols = (np.asarray(end) for end in support.endpoints)
        order = np.argsort(np.concatenate([rows, cols]), kind="stable")
        self.edge = order % support.n_edges
        self.other = np.concatenate([cols, rows])[order]
        self.count = np.bincount(rows, minlength=support.n_nodes)
        self.count += np.bincount(cols, minlength=support.n_nodes)
        self.ends = np.concatenate([[0], np.cumsum(self.count)])

    def sums(self, at_edge_ends: np.ndarray) -> Nodes:
        """Sum the values at each node. (Every node has a candidate edge: no segment is empty.)"""
        return np.add.reduceat(at_edge_ends, self.ends[:-1])

    def hessian_solve(
        self, lam: Nodes, active: Bool[np.ndarray, " edges"], rhs: Nodes, rtol: float = 1e-13
    ) -> Nodes:
        """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for these active edges."""
        n = len(lam)
        half = active[self.edge] / 2
        # A copy, because SciPy changes the pattern in place.
        pattern = csr_array((half, self.other, self.ends), shape=(n, n), copy=True)
        diagonal = self.sums(half) + lam**-2
        # Unless theta e is large 1/lam^2 dominates, and conjugate gradients need few steps however
        # much a factorisation would fill in.
        product = LinearOperator((n, n), matvec=lambda x: pattern @ x + diagonal * x)
        divide = LinearOperator((n, n), matvec=lambda x: x / diagonal)
        x, failed = cg(product, rhs, rtol=rtol, atol=0.0, maxiter=200, M=divide)
        if not failed:
            return x
        # Symmetric positive definite: pivoting for stability is not needed, ordering for fill is.
        pattern.eliminate_zeros()
        factor = splu(
            (pattern + diags_array(diagonal)).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return factor.solve(rhs)


class Sparse:
    """The system of a list of candidate pairs. It allocates no N x N array."""

    def __init__(self, e: Edges, theta: float, support: Support):
        self.e, self.theta, self.support = e, theta, support
        self.half_edges = HalfEdges(support)
        self.base = np.zeros(support.n_nodes)
        self.slack = -theta * e
        self.a = np.empty_like(self.slack)

    def nearest(self) -> Nodes:
        half = self.half_edges
        return -np.maximum.reduceat(self.slack[half.edge], half.ends[:-1])

    def degrees_if_all_had(self, lam: Nodes) -> tuple[Nodes, Counts]:
        half = self.half_edges
        surplus = np.maximum(self.slack[half.edge] + np.repeat(lam, half.count), 0)
        return half.sums(surplus), half.sums((surplus > 0).astype(float))

    def at(self, x: Nodes) -> Dual:
        self.a = np.maximum(self.slack + self.support.endpoint_sums(x) / 2, 0)
        d = self.half_edges.sums(self.a[self.half_edges.edge])
        return _dual(x, self.base + x, d, (self.a**2).sum())

    def weights(self) -> Edges:
        return self.a

    def solve(self, lam: Nodes, rhs: Nodes) -> Nodes:
        # A Newton step doubles the number of correct digits: its direction needs no more than that.
        residual = np.abs(lam * rhs).max()
        rtol = min(max(residual**2, 1e-13), 1e-2)
        return self.half_edges.hessian_solve(lam, self.a > 0, rhs, rtol)

    def rebase(self, base: Nodes) -> None:
        self.base = base
        self.slack = _slack(self.e, self.theta, self.support, base)


def _dual(x: Nodes, lam: Nodes, d: Nodes, norm2: float) -> Dual:
    return Dual(x, lam, len(lam) + float(np.log(lam).sum()) - float(norm2), d, 1 / lam - d)


def hessian_solve(
    lam: Nodes, active: Bool[np.ndarray, " edges"], rhs: Nodes, support: Support
) -> Nodes:
    """(diag(1/lam^2) + (D + A)/2)^-1 rhs, for these active edges."""
    if isinstance(support, Complete):
        return _dense_solve(lam, support.to_matrix(active / 2), rhs)
    return HalfEdges(support).hessian_solve(lam, active, rhs)


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
