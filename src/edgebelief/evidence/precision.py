"""Precision: partial correlations from the double-centred distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..edges import Complete, Support
from .base import Evidence, OnEdges, OnPairs, Values
from .numerics import check_positive, partial_at, with_few_rows


@dataclass(frozen=True)
class Precision(Evidence):
    """Partial correlations by ridge inverses of the double-centred distances.

        G = -1/2 J E J,   J = I - 11'/N        the covariance that has these squared distances
        K = (|G| + r s I)^-1                   on the complement of the constant vector
        channel r:  -K_ij / sqrt(K_ii K_jj)    in [-1, 1]

    s is the largest eigenvalue. If E are the expected distances of smooth signals, G is the
    pseudo-inverse of the Laplacian, K with a small ridge is the Laplacian, and the channel is
    a_ij / sqrt(d_i d_j): the graph itself. From few signals K is noisy, and different ridges err
    differently. Distances that are not squared Euclidean (logarithms, 1 - |correlation|) give G
    negative eigenvalues; |G| has their absolute values.

    Time is that of one eigendecomposition and, for each ridge, a product: O(N^3).

    Parameters
    ----------
    ridges : tuple of float
        Relative ridges r, one channel each.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import Precision
    >>> path = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])  # resistances
    >>> (channel,) = Precision(ridges=(1e-6,)).of(path)
    >>> abs(channel).round(3)
    array([[1.   , 0.707, 0.   ],
           [0.707, 1.   , 0.707],
           [0.   , 0.707, 1.   ]])
    """

    ridges: tuple[float, ...] = (1e-4, 1e-2, 1e-1)

    name = "precision"

    def __post_init__(self) -> None:
        check_positive(self.ridges, "ridges")

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"precision {r:g}" for r in self.ridges)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        eigenvalues, vectors = centred_spectrum(values)
        s = eigenvalues.max(initial=0.0) or 1.0
        return tuple(
            partial_correlation((vectors / (eigenvalues + r * s)) @ vectors.T) for r in self.ridges
        )

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 2e-9 * n_nodes**3


@dataclass(frozen=True)
class SignalPrecision(Evidence):
    """Partial correlations by ridge inverses of the signals' Gram matrix: for large graphs.

    What `Precision` computes from squared Euclidean distances, from the signals behind them:

        X     the signals, (P, N), each less its mean over the nodes
        K     (X'X/P + r s I)^-1, on the complement of the constant vector

    s is the largest eigenvalue of X'X/P. It is the same whatever the metric. With fewer signals
    than nodes it takes time O(N P^2 + edges P) and memory O(N P), by Woodbury's identity.

    Missing values: taken to be the node's mean. It depends on the units of the nodes' signals,
    where these differ, as squared distances do.

    Parameters
    ----------
    ridges : tuple of float
        Relative ridges r, one channel each.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data import distances
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.evidence import Precision, SignalPrecision
    >>> x = np.random.default_rng(0).normal(size=(3, 6))
    >>> e = Complete(6).to_matrix(distances(x))
    >>> one, other = SignalPrecision((0.1,)).of(x)[0], Precision((0.1,)).of(e)[0]
    >>> np.allclose(one, other)
    True
    """

    ridges: tuple[float, ...] = (1e-4, 1e-2, 1e-1)

    name = "signal-precision"
    needs_signals = True

    def __post_init__(self) -> None:
        check_positive(self.ridges, "ridges")

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"signal precision {r:g}" for r in self.ridges)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        support = Complete(values.shape[1])
        vectors = self.of_candidates(np.zeros(0), support, values)
        return tuple(support.to_matrix(vector) - np.eye(support.n_nodes) for vector in vectors)

    def of_candidates(self, e: OnEdges, support: Support, signals: Any) -> tuple[OnEdges, ...]:
        there = ~np.isnan(signals)
        filled = np.where(there, signals, 0.0)
        means = filled.sum(0) / np.maximum(there.sum(0), 1)
        x = np.where(there, filled, means)
        x = with_few_rows(x - x.mean(1, keepdims=True))
        s = float(np.linalg.norm(x, 2)) ** 2 / len(x) or 1.0
        ends = support.endpoints
        return tuple(partial_at(x, r * s, *ends, without_constant=True) for r in self.ridges)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        few = min(n_nodes, n_signals)
        return 1e-3 + 1e-9 * len(self.ridges) * n_nodes * few**2


def centred_spectrum(e: Values) -> tuple[np.ndarray, np.ndarray]:
    """Return |eigenvalues| and eigenvectors of -1/2 J E J but for the constant vector.

    G has the constant vector in its null space, which may be larger. G + c 11'/N moves it alone, to
    an eigenvalue c that is larger in modulus than all others, so that it can be told from them.
    """
    n_nodes = len(e)
    means = e.mean(0)
    g = -0.5 * (e - means - means[:, None] + means.mean())
    above = 2 * np.linalg.norm(g) or 1.0  # Frobenius: at least any |eigenvalue|
    eigenvalues, vectors = np.linalg.eigh(g + above / n_nodes)
    return np.abs(eigenvalues[:-1]), vectors[:, :-1]


def partial_correlation(k: OnPairs) -> OnPairs:
    """Return -K_ij / sqrt(K_ii K_jj) of a positive definite K."""
    root = np.sqrt(np.diagonal(k))
    return -k / np.outer(root, root)
