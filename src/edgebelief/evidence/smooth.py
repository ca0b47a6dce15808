"""SmoothStructure: two nodes in the graph on which the signals are smooth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..convex import solve
from ..edges import Complete, Support
from .base import Evidence, OnEdges, OnPairs, Values
from .numerics import check_positive, off_diagonal, over_roots, typical

# What joins each node to a common ground, relative to the mean degree: it makes resistances between
# the components of a graph finite, about 2/(n GROUND) for components of n nodes. With a smaller one
# the channel of a graph with components is unlike that of a connected graph.
GROUND = 0.01

# Distances beyond this many typical ones count as this many: theta times them, squared, must leave
# digits for the weights, and no pair so far apart has one.
FARTHEST = 1e4


@dataclass(frozen=True)
class SmoothStructure(Evidence):
    """Weights, common neighbours and resistances in the converged smooth graph.

    For each theta, A solves the convex problem (`edgebelief.solve`) at theta / median |e|, d = A 1,
    and

        weight:      B_ij,  B = D^-1/2 A D^-1/2
        common:      (B^2)_ij / sqrt((B^2)_ii (B^2)_jj)
        resistance:  log R_ij - median log R,  R_ij = K_ii + K_jj - 2 K_ij,
                     K = ((D - A) / mean(d) + g I)^-1

    g = 0.01 keeps the resistance between components finite. Relative to the graph, the channels of
    graphs of unlike sizes and densities can be compared.

    Time is that of some Newton steps and an inverse for each theta: O(N^3).

    Parameters
    ----------
    thetas : tuple of float
        Relative sparsities, three channels each.
    with_resistance : bool
        Whether there are resistances, which need an inverse. Without them two channels are left for
        each theta, which large graphs with few candidates have as well.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import SmoothStructure
    >>> blocks = 9.0 * (np.arange(4)[:, None] // 2 != np.arange(4) // 2) + 1 - np.eye(4)
    >>> weight, common, resistance = SmoothStructure(thetas=(10.0,)).of(blocks)
    >>> weight.round(2)
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.]])
    """

    thetas: tuple[float, ...] = (0.1, 1.0)
    with_resistance: bool = True

    name = "smooth"

    def __post_init__(self) -> None:
        check_positive(self.thetas, "thetas")

    @property
    def channels(self) -> tuple[str, ...]:
        kinds = ("weight", "common", "resistance")[: 3 if self.with_resistance else 2]
        return tuple(f"smooth {kind} {theta:g}" for theta in self.thetas for kind in kinds)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        support = Complete(len(values))
        e = np.clip(support.to_vector(values) / typical(values), -FARTHEST, FARTHEST)
        channels: list[OnPairs] = []
        for theta in self.thetas:
            a = solve(e, theta).adjacency()
            d = a.sum(0)
            b = a / np.sqrt(np.outer(d, d))
            channels += [b, over_roots(b @ b)]
            channels += [log_resistance(a)] if self.with_resistance else []
        return tuple(channels)

    def of_candidates(self, e: OnEdges, support: Support, signals: Any) -> tuple[OnEdges, ...]:
        if self.with_resistance:
            return super().of_candidates(e, support, signals)
        e = np.clip(e / (float(np.median(np.abs(e))) or 1.0), -FARTHEST, FARTHEST)
        rows, cols = support.endpoints
        channels: list[OnEdges] = []
        for theta in self.thetas:
            solution = solve(e, theta, support=support)
            d = support.degrees(solution.weights)
            b = support.to_sparse(solution.weights / np.sqrt(d[rows] * d[cols]))
            b.eliminate_zeros()
            squared = (b @ b).tocsr()
            root = np.sqrt(squared.diagonal())
            common = np.asarray(squared[rows, cols]).ravel() / (root[rows] * root[cols])
            channels += [np.asarray(b[rows, cols]).ravel(), common]
        return tuple(channels)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return len(self.thetas) * (5e-3 + 1.2e-9 * n_nodes**3)

    def seconds_of_candidates(self, n_nodes: int, n_signals: float) -> float:
        return len(self.thetas) * (5e-3 + 2e-4 * n_nodes)


def log_resistance(a: OnPairs) -> OnPairs:
    """Return log effective resistances of a weighted graph, relative to their median."""
    r = resistances(a)
    np.fill_diagonal(r, 1.0)  # their own resistance means nothing
    log_r = np.log(r)
    return log_r - np.median(off_diagonal(log_r))


def resistances(a: OnPairs) -> OnPairs:
    """Return effective resistances of a weighted graph whose weights are relative to mean degree.

    Each node is joined to ground a little.
    """
    d = a.sum(0)
    k = np.linalg.inv((np.diag(d) - a) / d.mean() + GROUND * np.eye(len(a)))
    return np.diagonal(k)[:, None] + np.diagonal(k) - 2 * k
