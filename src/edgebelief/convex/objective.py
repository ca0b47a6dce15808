"""The convex problem: learn a graph on which the signals are smooth.

    minimise over a >= 0:    2 theta a'e  -  sum_i log (S a)_i  +  ||a||^2

and scale the result by delta. Its general form, 2 a'e - alpha 1'log(S a) + beta ||a||^2, has the
solution delta * a with theta = 1/sqrt(alpha beta) and delta = sqrt(alpha/beta) (Kalofolias 2016;
the paper prints beta/2, see docs/paper-notes.md). Its dual is concave in one variable per node,

    maximise over lam > 0:   N + sum_i log lam_i  -  || max(0, S'lam/2 - theta e) ||^2,

and the two meet where  a = max(0, S'lam/2 - theta e)  and  lam_i (S a)_i = 1  at every node.

All functions take NumPy or JAX arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..incidence import EdgeArray, Incidence, NodeArray, Scalar, namespace


class Scaled(NamedTuple):
    """theta, which alone decides which edges there are, and delta, which scales their weights."""

    theta: Scalar
    delta: Scalar


class Penalised(NamedTuple):
    """alpha, the coefficient of the log-degree barrier, and beta, that of the squared weights."""

    alpha: Scalar
    beta: Scalar


def to_scaled(alpha: Scalar, beta: Scalar) -> Scaled:
    """Convert (alpha, beta) to (theta, delta) = (1/sqrt(alpha beta), sqrt(alpha/beta)).

    Examples
    --------
    >>> from edgebelief.convex import to_scaled
    >>> to_scaled(alpha=4.0, beta=1.0)
    Scaled(theta=0.5, delta=2.0)
    """
    return Scaled((alpha * beta) ** -0.5, (alpha / beta) ** 0.5)


def to_penalised(theta: Scalar, delta: Scalar) -> Penalised:
    """Convert (theta, delta) to (alpha, beta) = (delta/theta, 1/(theta delta)).

    This is the inverse of `to_scaled`.

    Examples
    --------
    >>> from edgebelief.convex import to_penalised
    >>> to_penalised(theta=0.5, delta=2.0)
    Penalised(alpha=4.0, beta=1.0)
    """
    return Penalised(delta / theta, 1 / (theta * delta))


def objective(a: EdgeArray, e: EdgeArray, theta: Scalar, support: Incidence) -> Scalar:
    """2 theta a'e - sum log(S a) + ||a||^2 (infinite where a node has no edge).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.convex import objective
    >>> from edgebelief.edges import Complete
    >>> objective(np.ones(1), np.ones(1), theta=1.0, support=Complete(2))  # 2 - 0 + 1
    np.float64(3.0)
    """
    xp = namespace(a)
    d = support.degrees(a)
    barrier = xp.where(d > 0, -xp.log(xp.where(d > 0, d, 1.0)), xp.inf).sum()
    return 2 * theta * (a * e).sum() + barrier + (a**2).sum()


def dual(lam: NodeArray, e: EdgeArray, theta: Scalar, support: Incidence) -> Scalar:
    """N + sum log(lam) - ||a(lam)||^2; never above `objective`, and equal to it at the solution.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import solve
    >>> from edgebelief.convex import dual, objective
    >>> e = np.array([1.0, 2.0, 3.0])
    >>> best = solve(e, 1.0)
    >>> gap = objective(best.weights, e, 1.0, best.support) - dual(best.duals, e, 1.0, best.support)
    >>> bool(abs(gap) < 1e-9)
    True
    """
    a = weights_of(lam, e, theta, support)
    return lam.shape[0] + namespace(lam).log(lam).sum() - (a**2).sum()


def weights_of(lam: NodeArray, e: EdgeArray, theta: Scalar, support: Incidence) -> EdgeArray:
    """a(lam) = max(0, S'lam/2 - theta e): the weights that the duals imply.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.convex import weights_of
    >>> from edgebelief.edges import Complete
    >>> weights_of(np.array([1.0, 3.0]), np.array([0.5]), theta=1.0, support=Complete(2))
    array([1.5])
    """
    z = support.endpoint_sums(lam) / 2 - theta * e
    return namespace(z).where(z > 0, z, 0.0)


def residual(
    a: EdgeArray, lam: NodeArray, e: EdgeArray, theta: Scalar, support: Incidence
) -> Scalar:
    """Return how far (a, lam) is from optimal: 0 at the solution and positive everywhere else.

    It is the larger of max_i |lam_i (S a)_i - 1| and max |a - a(lam)| / max(a). The change of `a`
    from one iterate to the next would not do: at large theta the first iterates of DPG are all
    zero and do not change.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.convex import residual
    >>> from edgebelief.edges import Complete
    >>> e, support = np.array([0.0]), Complete(2)  # the solution is a = 1, lam = (1, 1)
    >>> residual(np.ones(1), np.ones(2), e, theta=1.0, support=support)
    np.float64(0.0)
    """
    xp = namespace(a)
    stationary = xp.abs(lam * support.degrees(a) - 1).max()
    largest = xp.abs(support.edges_only(a)).max()
    gap = xp.abs(support.edges_only(a - weights_of(lam, e, theta, support))).max()
    return xp.maximum(stationary, gap / xp.where(largest > 0, largest, 1.0))


def rounding_floor(lam: NodeArray) -> Scalar:
    """Return the residual that rounding alone leaves, about 10 eps max(1, max(lam)^2).

    Where theta e is large, a = lam - theta e cancels: its error, eps lam, is multiplied by lam.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.convex import rounding_floor
    >>> float(rounding_floor(np.array([100.0, 1e4]))) < 3e-7
    True
    """
    return 10 * np.finfo(lam.dtype).eps * namespace(lam).maximum(1.0, lam.max() ** 2)
