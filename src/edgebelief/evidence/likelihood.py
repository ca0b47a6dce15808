"""MostLikelyGraph: the weighted graph under which the distances are most likely."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from ..convex import ConvergenceWarning
from ..edges import Complete
from ..validate import check_least
from .base import Evidence, OnPairs, Values
from .numerics import over_roots, typical

# Distances below this fraction of the typical one count as this fraction: a distance of zero has no
# finite weight. Distances below zero, as logarithms are, have no likelihood at all.
NEAREST = 1e-3
# What weight times distance is at least: so little keeps the graph connected, and its determinant
# above zero.
LEAST = 1e-9
# Stop when |1 - R/e| is below this for all pairs with a weight; 20 to 150 iterations.
TOL = 1e-5


@dataclass(frozen=True)
class MostLikelyGraph(Evidence):
    """The graph whose effective resistances are the distances: the likelihood's maximum.

    Smooth signals x ~ N(0, L+) have the log-likelihood P/2 (log det(L + 11'/N) - tr L C), and
    tr L C is the weighted sum of the distances:

        maximise over w >= 0:   log det(L(w) + 11'/N) - w'e

    At the maximum the resistance R_ij = e_ij where w_ij > 0, and R_ij <= e_ij elsewhere. With
    A the matrix of w, d = A 1, three channels:

        common     (B^2)_ij / sqrt((B^2)_ii (B^2)_jj),  B = D^-1/2 A D^-1/2
        leverage   w_ij R_ij    in [0, 1]: how much the likelihood would lose without the edge
        slack      1 - R_ij / e_ij    in [0, 1]: how far a pair without an edge is from having one

    The distances should be squared ones. Those below a thousandth of the median, or negative, are
    raised to it. If they are expected distances of smooth signals, A is the graph itself.

    The weight is no channel: the leverage says the same (their correlation is 0.98). A prior by
    which few terms matter would give the posterior a mode for either of them.

    Time is that of 20 to 200 inverses: O(N^3).

    Parameters
    ----------
    max_iter : int
        The largest number of iterations.

    References
    ----------
    Egilmez, Pavez, Ortega: Graph learning from data under Laplacian and structural constraints.
    IEEE Journal of Selected Topics in Signal Processing 11 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import MostLikelyGraph
    >>> path = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])  # resistances
    >>> common, leverage, slack = MostLikelyGraph().of(path)
    >>> leverage.round(3)
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """

    max_iter: int = 1000

    name = "likelihood"

    def __post_init__(self) -> None:
        check_least(self, max_iter=1)

    @property
    def channels(self) -> tuple[str, ...]:
        kinds = ("common", "leverage", "slack")
        return tuple(f"likelihood {kind}" for kind in kinds)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        support = Complete(len(values))
        scale = typical(values)
        e = np.maximum(support.to_vector(values) / scale, NEAREST)
        w, r = most_likely(e, len(values), self.max_iter)
        a = support.to_matrix(w)
        d = a.sum(0)
        b = a / np.sqrt(np.outer(d, d))
        slack = support.to_matrix(np.maximum(1 - r / e, 0.0))
        return over_roots(b @ b), support.to_matrix(w * r), slack

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 2e-2 + 6e-8 * n_nodes**3


class Maximum(NamedTuple):
    """The weights that maximise the likelihood, and their effective resistances."""

    w: Float[np.ndarray, " edges"]
    r: Float[np.ndarray, " edges"]


def most_likely(e: Float[np.ndarray, " edges"], n_nodes: int, max_iter: int) -> Maximum:
    """Maximise log det(L(w) + 11'/N) - w'e over w >= 0, by quasi-Newton steps in u = w e.

    The second derivative along u_ij is (R_ij/e_ij)^2, which is 1 for an edge at the maximum: in u
    all directions are on one scale.
    """
    support = Complete(n_nodes)
    above = np.tri(n_nodes, k=-1, dtype=bool).T

    def loss(u: Float[np.ndarray, " edges"]) -> tuple[float, Float[np.ndarray, " edges"]]:
        log_det, r = _resistances(support.to_matrix(u / e))
        return u.sum() - log_det, 1 - r[above] / e

    # At the maximum the sum of u is N - 1, whatever e.
    start = np.full(e.size, 2 / n_nodes)
    result = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(LEAST, None)] * e.size,
        options={"maxiter": max_iter, "maxfun": 10 * max_iter, "ftol": 0.0, "gtol": TOL},
    )  # fmt: skip
    if result.nit >= max_iter:
        problem = f"the most likely graph has not converged in {max_iter} iterations (max_iter)."
        warnings.warn(problem, ConvergenceWarning, stacklevel=3)
    w = result.x / e
    return Maximum(w, _resistances(support.to_matrix(w))[1][above])


def _resistances(a: OnPairs) -> tuple[float, OnPairs]:
    """Return log det(L + 11'/N) and the effective resistances of a connected graph."""
    system = np.diag(a.sum(0)) - a + 1 / len(a)
    factor, failed = dpotrf(system)
    assert not failed, "a connected graph has a positive definite L + 11'/N"
    inverse, _ = dpotri(factor)  # its upper triangle
    k = np.diagonal(inverse)
    return 2 * float(np.log(np.diagonal(factor)).sum()), k[:, None] + k - 2 * inverse
