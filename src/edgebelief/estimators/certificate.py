"""Whether the graph on some candidate pairs is the graph on all pairs.

The solution on a restricted support is the solution on all pairs if, with its duals, no pair that
was left out would have a positive weight:

    (lam_i + lam_j)/2 <= theta e_ij    for every excluded pair

(then these duals satisfy the optimality conditions of the whole problem, whose solution is unique).
A pair that breaks this is a *violator*. Let lam_i be the larger of its duals: then theta e_ij <
lam_i. So all violators are found by one search around each node i for points nearer than
lam_i / theta, a radius that is small where nodes are many. A tree does that where coordinates are
few; otherwise all pairs are computed, block by block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import cKDTree

from ..convex import Solution
from ..cores import n_cores
from ..data.neighbours import Points, suits_a_tree
from ..edges import Restricted, Support
from ..progress import progress_bar

Pairs = tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]

# Nodes whose surroundings a tree searches at once; each can have many points near it.
AT_ONCE = 512
# Entries of a block of distances, 2048 x 2048: 32 MB.
SIDE = 2048


class Certificate(NamedTuple):
    """What is known about the pairs that were left out of a support.

    Attributes
    ----------
    violators : int
        Pairs outside the support, at the nodes checked, that would have a positive weight.
    share : float
        Violators over violators and edges, at the nodes checked: where these are a sample, an
        estimate of the share of edges that the support has missed.
    nodes_checked, n_nodes : int
        Of how many nodes all pairs were checked, and how many there are.
    n_added : int
        Pairs that were added to the candidates because they were violators before.
    """

    violators: int
    share: float
    nodes_checked: int
    n_nodes: int
    n_added: int = 0

    @property
    def exact(self) -> bool:
        """Whether this proves that the solution on the support is that on all pairs."""
        return self.violators == 0 and self.nodes_checked == self.n_nodes

    def sentence(self) -> str:
        """Say it in words.

        Examples
        --------
        >>> from edgebelief.estimators.certificate import Certificate
        >>> print(Certificate(7, 0.01, 1000, 50_000).sentence())
        of the edges at 1,000 of 50,000 nodes 1 % (7) were no candidates
        >>> print(Certificate(0, 0.0, 90, 90).sentence())
        this is the graph on all pairs: none that was no candidate would be an edge
        """
        if self.exact:
            return "this is the graph on all pairs: none that was no candidate would be an edge"
        at = f"{self.nodes_checked:,} of {self.n_nodes:,} nodes"
        share = f"{100 * self.share:.2g} % ({self.violators:,})"
        return f"of the edges at {at} {share} were no candidates"


def certify(
    points: Points, solution: Solution, nodes: Int[np.ndarray, " checked"], n_added: int = 0
) -> Certificate:
    """Check all pairs of some nodes."""
    n_violators = len(violators_at(points, solution, nodes)[0])
    checked = np.zeros(points.n_nodes, bool)
    checked[nodes] = True
    is_edge = np.asarray(solution.support.is_edge(solution.weights))
    rows, cols = (np.asarray(end)[is_edge] for end in solution.support.endpoints)
    n_edges = int((checked[rows] | checked[cols]).sum())
    share = n_violators / max(n_violators + n_edges, 1)
    return Certificate(n_violators, share, len(nodes), points.n_nodes, n_added)


def violators_at(points: Points, solution: Solution, nodes: Int[np.ndarray, " checked"]) -> Pairs:
    """Return the violators with an end in `nodes`, lower node first, without repeats."""
    n_nodes = points.n_nodes
    everywhere = len(nodes) == n_nodes
    if everywhere and n_nodes > SIDE and suits_a_tree(points.searched(), 10):
        near = _near_by_tree(points, solution)
    else:
        near = _near_by_blocks(points, solution, nodes)
    return _without_candidates(near, solution.support, n_nodes)


def _violating(points: Points, solution: Solution, rows: np.ndarray, cols: np.ndarray) -> Pairs:
    """Return those of some pairs whose weight would be positive."""
    lam = solution.duals
    reach = (lam[rows] + lam[cols]) / 2
    positive = reach - float(solution.theta) * points.distances(rows, cols) > 0
    return rows[positive], cols[positive]


def _near_by_tree(points: Points, solution: Solution) -> Int[np.ndarray, "2 pairs"]:
    """Return all pairs whose weight would be positive, candidates among them."""
    lam, n_nodes = solution.duals, points.n_nodes
    tree = cKDTree(points.searched())
    # Rounding must not lose a pair that is just inside; those just outside are sorted out.
    radius = points.radius(lam / float(solution.theta)) * (1 + 1e-9)
    pairs = [np.empty((2, 0), int)]
    order = tree.indices[tree.indices < n_nodes]  # nodes near each other one after the other
    with progress_bar(desc="certificate", unit=" nodes", total=n_nodes) as bar:
        for first in range(0, n_nodes, AT_ONCE):
            some = order[first : first + AT_ONCE]
            lists = tree.query_ball_point(
                points.at[some], radius[some], workers=n_cores(), return_sorted=False
            )
            count = np.fromiter(map(len, lists), int, len(lists))
            rows = np.repeat(some, count)
            cols = np.fromiter((p for near in lists for p in near), int, count.sum()) % n_nodes
            larger = (lam[cols] < lam[rows]) | ((lam[cols] == lam[rows]) & (cols < rows))
            pairs.append(np.stack(_violating(points, solution, rows[larger], cols[larger])))
            bar.update(len(lists))
    return np.concatenate(pairs, axis=1)


def _near_by_blocks(
    points: Points, solution: Solution, nodes: Int[np.ndarray, " checked"]
) -> Int[np.ndarray, "2 pairs"]:
    """Return the pairs of `nodes` whose weight would be positive, candidates among them."""
    reach, n_nodes = solution.duals / (2 * float(solution.theta)), points.n_nodes
    pairs = [np.empty((2, 0), int)]
    with progress_bar(desc="certificate", unit=" nodes", total=len(nodes)) as bar:
        for first in range(0, len(nodes), SIDE):
            some = nodes[first : first + SIDE]
            for start in range(0, n_nodes, SIDE):
                others = np.arange(start, min(start + SIDE, n_nodes))
                least = points.at_least(some, others)
                i, j = np.nonzero(least < reach[some][:, None] + reach[others])
                different = some[i] != others[j]
                rows, cols = some[i[different]], others[j[different]]
                pairs.append(np.stack(_violating(points, solution, rows, cols)))
            bar.update(len(some))
    return np.concatenate(pairs, axis=1)


def _without_candidates(pairs: Int[np.ndarray, "2 pairs"], support: Support, n_nodes: int) -> Pairs:
    positions = np.unique(pairs.min(0) * np.int64(n_nodes) + pairs.max(0))
    rows, cols = (np.asarray(end, dtype=np.int64) for end in support.endpoints)
    outside = positions[~np.isin(positions, rows * n_nodes + cols)]
    return outside // n_nodes, outside % n_nodes


def with_pairs(
    support: Restricted, e: Float[np.ndarray, " edges"], points: Points, added: Pairs
) -> tuple[Restricted, Float[np.ndarray, " more"]]:
    """Return a support and its distances with more candidates, at the end."""
    ends = [np.concatenate([old, new]) for old, new in zip(support.endpoints, added, strict=True)]
    larger = Restricted.from_pairs(np.stack(ends, axis=1), support.n_nodes)
    return larger, np.concatenate([e, points.distances(*added)])
