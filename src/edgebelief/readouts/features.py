"""Features of pairs, computed from the network's output and from the distances.

Every feature is symmetric in the two nodes of a pair, so that permuting the nodes permutes the
features. From the network's output:

    z                 S'lam/2 - theta e: how far above or below the threshold a pair is
    lam sum, lam gap  lam_i + lam_j, |lam_i - lam_j|

From the distances alone, where a sum is x_i + x_j and a gap is |x_i - x_j|:

    distance          e_ij
    mean sum, gap     x_i is the mean distance of node i to the others
    minimum sum, gap  x_i is the smallest of these distances
    spread sum, gap   x_i is their standard deviation
    rank sum, gap     of the logarithms of the rank of j among i's neighbours, and of i among j's

Where only some pairs are candidates, "the others" are those with which a node is a candidate.

Features that are relative to their graph divide distances by the median of their absolute values,
ranks by N - 1, z by its root mean square, and lam by its mean. If the number of edges at a node is
proportional to N, weights and duals fall as 1/sqrt(N - 1), and distances must be scaled alike for
theta to keep its meaning. These factors are one at N = 20, as in the paper's graphs.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..edges import Complete, Support
from ..networks import Output

# By name, the features that are computed from the network's output.
OF_OUTPUT: dict[str, Callable[[Output, Support], Array]] = {
    "z": lambda output, support: output.z,
    "lam sum": lambda output, support: jnp.add(*_at_ends(output.lam, support)),
    "lam gap": lambda output, support: jnp.abs(jnp.subtract(*_at_ends(output.lam, support))),
}
# What has a value at either end of a pair; the features are the sum and the gap of the two.
AT_ENDS = ("mean", "minimum", "spread", "rank")
OF_DISTANCES = ("distance", *(f"{name} {how}" for name in AT_ENDS for how in ("sum", "gap")))
OF_NETWORK = tuple(OF_OUTPUT)
ALL = (*OF_NETWORK, *OF_DISTANCES)


def _at_ends(lam: Float[Array, "... nodes"], support: Support) -> tuple[Array, Array]:
    """Return the values of `lam` at the first and at the second node of each pair."""
    rows, cols = support.endpoints
    return lam[..., rows], lam[..., cols]


def size_of(n_nodes: int) -> float:
    """Return the factor on weights in `relative_output`: sqrt((N - 1)/19), which is 1 at N = 20."""
    return float(np.sqrt((n_nodes - 1) / 19))


def relative_output(output: Output, support: Support) -> Output:
    """Scale a network's output relative to its graph."""
    rms = jnp.sqrt(jnp.mean(output.z**2, -1, keepdims=True))
    mean = output.lam.mean(-1, keepdims=True)
    tiny = jnp.finfo(output.z.dtype).tiny
    return Output(
        output.a * size_of(support.n_nodes),
        output.lam / jnp.maximum(mean, tiny),
        output.z / jnp.maximum(rms, tiny),
    )


def of_distances(
    e: Float[np.ndarray, " edges"], support: Support, relative: bool = False
) -> dict[str, Float[np.ndarray, " edges"]]:
    """Compute the features in `OF_DISTANCES` of one graph.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.edges import Complete
    >>> from edgebelief.readouts.features import of_distances
    >>> features = of_distances(np.array([1.0, 2.0, 4.0]), Complete(3))
    >>> features["mean sum"], features["minimum gap"]
    (array([4. , 4.5, 5.5]), array([0., 1., 1.]))
    """
    e = np.asarray(e, float)
    if relative:
        e = e / max(float(np.median(np.abs(e))), 1e-300)
    of_nodes = _of_all if isinstance(support, Complete) else _of_candidates
    rows, cols = support.endpoints
    node, (rank, rank_back) = of_nodes(e, support)
    ends = {name: (value[rows], value[cols]) for name, value in node.items()}
    largest = 2 * support.n_edges / support.n_nodes if relative else 1  # N - 1 where all are
    ends["rank"] = np.log(rank / largest), np.log(rank_back / largest)
    features = {"distance": e}
    for name, (first, second) in ends.items():
        features |= {f"{name} sum": first + second, f"{name} gap": np.abs(first - second)}
    return features


OfNodes = dict[str, Float[np.ndarray, " nodes"]]
Ranks = tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]


def _of_all(e: Float[np.ndarray, " edges"], support: Support) -> tuple[OfNodes, Ranks]:
    """Return mean, minimum and spread of each node's distances, and ranks within each end's."""
    matrix, n_nodes = support.to_matrix(e), support.n_nodes
    others = matrix[~np.eye(n_nodes, dtype=bool)].reshape(n_nodes, n_nodes - 1)
    rows, cols = support.endpoints
    ranks = _ranks(matrix)
    of_nodes = {"mean": others.mean(1), "minimum": others.min(1), "spread": others.std(1)}
    return of_nodes, (ranks[rows, cols], ranks[cols, rows])


def _of_candidates(e: Float[np.ndarray, " edges"], support: Support) -> tuple[OfNodes, Ranks]:
    """Return the same over the candidates at each node, in memory O(edges)."""
    rows, cols = (np.asarray(ends) for ends in support.endpoints)
    node, value = np.concatenate([rows, cols]), np.concatenate([e, e])
    order = np.lexsort((value, node))
    node, value = node[order], value[order]
    count = np.bincount(node, minlength=support.n_nodes)
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    mean = np.bincount(node, value, support.n_nodes) / count
    squares = np.bincount(node, (value - mean[node]) ** 2, support.n_nodes)
    of_nodes = {"mean": mean, "minimum": value[first], "spread": np.sqrt(squares / count)}
    # Positions from 1 within each node; those of a run of equal distances get their mean.
    position = np.arange(len(node)) - first[node] + 1.0
    run = np.cumsum(np.r_[True, (np.diff(value) != 0) | (np.diff(node) != 0)]) - 1
    ranks = np.empty(len(node))
    ranks[order] = (np.bincount(run, position) / np.bincount(run))[run]
    return of_nodes, (ranks[: len(e)], ranks[len(e) :])


def _ranks(matrix: Float[np.ndarray, "nodes nodes"]) -> Float[np.ndarray, "nodes nodes"]:
    """Rank the other nodes by their distance to each node (a row), from 1; ties get their mean."""
    from scipy.stats import rankdata

    itself = np.eye(len(matrix), dtype=bool)
    return np.maximum(rankdata(np.where(itself, -np.inf, matrix), axis=1) - 1, 1)


def pair_features(
    e: Float[np.ndarray, "graphs edges"],
    support: Support,
    names: tuple[str, ...],
    relative: bool = False,
) -> Float[np.ndarray, "graphs edges features"]:
    """Compute features of the distances of several graphs of one size, in the order of `names`."""
    table = np.empty((*e.shape, len(names)))
    for t, distances in enumerate(e if names else ()):
        features = of_distances(distances, support, relative)
        table[t] = np.stack([features[name] for name in names], -1)
    return table
