"""A graph learned on some candidate pairs: where they come from, and the check of all others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse import coo_array, csr_array, diags_array

from ..convex import Solution, solve, theta_for
from ..data.neighbours import (
    Neighbors,
    Points,
    listed_pairs,
    nearest_in,
    nearest_pairs_of,
)
from ..data.signals import Metric
from ..edges import Restricted, Support
from ..errors import InputError
from ..progress import Stage, timed_stage
from ..validate import check_distances
from .certificate import Certificate, certify, violators_at, with_pairs

# Nodes whose pairs are all checked where not those of all nodes are.
CHECKED = 1_000


class Candidates(NamedTuple):
    """Candidate pairs, their distances, and the points by which others can be checked."""

    support: Restricted
    e: Float[np.ndarray, " edges"]
    points: Points | None


class Wanted(NamedTuple):
    """Which graph is wanted: at one theta, of a degree, or of a density."""

    theta: float | None
    degree: float | None
    density: float | None
    tol: float

    def solve(
        self, e: Float[np.ndarray, " edges"], support: Support | None, stages: list[Stage]
    ) -> Solution:
        """Return the graph on these candidates."""
        if self.degree is not None or self.density is not None:
            with timed_stage("theta and solve", stages):
                return theta_for(
                    e, degree=self.degree, density=self.density, support=support, tol=self.tol
                ).solution
        with timed_stage("solve", stages):
            theta = 1.0 if self.theta is None else self.theta
            return solve(e, theta, support=support, tol=self.tol)


def from_signals(
    x: Any,
    metric: Metric,
    support: Restricted | None,
    n_neighbors: int,
    neighbors: Neighbors | None,
) -> Candidates:
    """Return the given candidates, or the nearest neighbours of each node."""
    points = Points(x, metric)
    if support is None:
        return Candidates(*nearest_pairs_of(points, n_neighbors, neighbors), points)
    if support.n_nodes != points.n_nodes:
        problem = f"is on {support.n_nodes} nodes, and there are signals of {points.n_nodes}."
        raise InputError(problem, argument="support")
    return Candidates(support, points.distances(*support.endpoints), points)


def from_matrix(
    matrix: Float[np.ndarray, "nodes nodes"], support: Restricted | None, n_neighbors: int
) -> Candidates:
    """Return the given candidates, or the nearest neighbours, by a matrix of distances."""
    if support is None:
        return Candidates(*nearest_in(matrix, n_neighbors), None)
    check_distances(matrix)
    return Candidates(support, check_distances(matrix, support)[0], None)


def from_sparse(matrix: Any) -> Candidates:
    """Return the stored entries of a sparse matrix of distances: see `listed_pairs`."""
    return Candidates(*listed_pairs(matrix), None)


def learned_on(
    candidates: Candidates,
    wanted: Wanted,
    exact: bool,
    random: np.random.RandomState,
    stages: list[Stage],
) -> tuple[Solution, Certificate | None]:
    """Solve on candidates; with `exact` add the pairs that were missing until there are none.

    Without points, the other pairs are unknown and there is no certificate.
    """
    support, e, points = candidates
    solution = wanted.solve(e, support, stages)
    if points is None:
        return solution, None
    n_nodes, n_candidates = support.n_nodes, support.n_edges
    everywhere = np.arange(n_nodes)
    if not exact:
        nodes = everywhere
        if n_nodes > CHECKED:
            nodes = np.sort(random.choice(n_nodes, CHECKED, replace=False))
        with timed_stage("certificate", stages):
            return solution, certify(points, solution, nodes)
    while True:
        with timed_stage("certificate", stages):
            added = violators_at(points, solution, everywhere)
        if not len(added[0]):
            n_added = support.n_edges - n_candidates
            return solution, Certificate(0, 0.0, n_nodes, n_nodes, n_added)
        support, e = with_pairs(support, e, points, added)
        solution = wanted.solve(e, support, stages)


def symmetric(support: Support, values: Float[np.ndarray, " edges"]) -> csr_array:
    """Return the values above zero as a symmetric sparse matrix."""
    positive = np.flatnonzero(values > 0)
    rows, cols = (np.asarray(end)[positive] for end in support.endpoints)
    shape = (support.n_nodes, support.n_nodes)
    upper = coo_array((values[positive], (rows, cols)), shape=shape)
    return csr_array(upper + upper.T)


def laplacian(adjacency: csr_array) -> csr_array:
    """Return minus the weights, with the degrees on the diagonal."""
    return csr_array(diags_array(adjacency.sum(axis=1)) - adjacency)
