"""Symmetric features of pairs: what the network and the distances know about them.

Every feature is the same from both ends, so that renaming the nodes renames the features with them.
Of the network's output

    z                 S'lam/2 - theta e: how far above or below the threshold a pair is
    lam sum, lam gap  lam_i + lam_j, |lam_i - lam_j|

and of the distances, before the network runs,

    distance          e_ij
    mean sum, gap     of each node's mean distance to the others; likewise its minimum and spread
    rank sum, gap     of the logarithms of the place of j among i's neighbours, and of i among j's

Relative to the graph, distances are over the median of their sizes, ranks over N - 1, z over its
root mean square, lam over its mean. Weights and duals of a graph with as many edges a node in
proportion fall with the root of N - 1, and so must distances for theta to mean the same; 20 nodes
are where nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..edges import Complete, Support
from ..networks import Output

OF_OUTPUT: dict[str, Callable[[Output, Support], Array]] = {
    "z": lambda output, support: output.z,
    "lam sum": lambda output, support: jnp.add(*_ends(output.lam, support)),
    "lam gap": lambda output, support: jnp.abs(jnp.subtract(*_ends(output.lam, support))),
}
OF_DISTANCES = (
    "distance",
    "mean sum",
    "mean gap",
    "minimum sum",
    "minimum gap",
    "spread sum",
    "spread gap",
    "rank sum",
    "rank gap",
)
OF_NETWORK = tuple(OF_OUTPUT)
ALL = (*OF_NETWORK, *OF_DISTANCES)


def _ends(lam: Array, support: Support) -> tuple[Array, Array]:
    rows, cols = support.endpoints
    return lam[..., rows], lam[..., cols]


def size_of(n_nodes: int) -> float:
    """How large a graph is, for `relative_output`: 1 at 20 nodes, as the paper's graphs have."""
    return float(np.sqrt((n_nodes - 1) / 19))


def relative_output(output: Output, support: Support) -> Output:
    """A network's output relative to its graph."""
    rms = jnp.sqrt(jnp.mean(output.z**2, -1, keepdims=True))
    mean = output.lam.mean(-1, keepdims=True)
    tiny = jnp.finfo(output.z.dtype).tiny
    return Output(
        output.a * size_of(support.n_nodes),
        output.lam / jnp.maximum(mean, tiny),
        output.z / jnp.maximum(rms, tiny),
    )


def of_distances(
    e: Float[np.ndarray, " edges"], n_nodes: int, relative: bool = False
) -> dict[str, Float[np.ndarray, " edges"]]:
    """The features of `OF_DISTANCES` of one graph.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.readouts.features import of_distances
    >>> found = of_distances(np.array([1.0, 2.0, 4.0]), 3)
    >>> found["mean sum"], found["minimum gap"]
    (array([4. , 4.5, 5.5]), array([0., 1., 1.]))
    """
    support = Complete(n_nodes)
    e = np.asarray(e, float)
    if relative:
        e = e / max(float(np.median(np.abs(e))), 1e-300)
    matrix = support.to_matrix(e)
    others = matrix[~np.eye(n_nodes, dtype=bool)].reshape(n_nodes, n_nodes - 1)
    rows, cols = support.endpoints
    nodes = {"mean": others.mean(1), "minimum": others.min(1), "spread": others.std(1)}
    found = {"distance": e}
    for name, value in nodes.items():
        found[f"{name} sum"] = value[rows] + value[cols]
        found[f"{name} gap"] = np.abs(value[rows] - value[cols])
    place = np.log(_ranks(matrix) / (n_nodes - 1 if relative else 1))
    found["rank sum"] = place[rows, cols] + place[cols, rows]
    found["rank gap"] = np.abs(place[rows, cols] - place[cols, rows])
    return found


def _ranks(matrix: Float[np.ndarray, "nodes nodes"]) -> Float[np.ndarray, "nodes nodes"]:
    """The place of each node among the neighbours of each other, from 1; the mean of ties."""
    from scipy.stats import rankdata

    n_nodes = len(matrix)
    off = ~np.eye(n_nodes, dtype=bool)
    ranks = np.ones_like(matrix)
    ranks[off] = rankdata(matrix[off].reshape(n_nodes, n_nodes - 1), axis=1).ravel()
    return ranks


def pair_features(
    e: Float[np.ndarray, "graphs edges"],
    n_nodes: int,
    names: tuple[str, ...],
    relative: bool = False,
) -> Float[np.ndarray, "graphs edges features"]:
    """Features of the distances of several graphs of one size, in the order of `names`."""
    out = np.empty((*e.shape, len(names)))
    for t, one in enumerate(e if names else ()):
        found = of_distances(one, n_nodes, relative)
        out[t] = np.stack([found[name] for name in names], -1)
    return out
