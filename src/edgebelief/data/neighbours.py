"""Candidate pairs of large graphs: the nearest neighbours of each node, from signals.

A node is a point with one coordinate per signal, moved so that the distance of a metric is a
function of the Euclidean distance r between points:

    sqeuclidean      e = r^2 / P
    log-euclidean    e = log10(r^2 / P) / 2
    correlation      e = 1 - |corr| = min(r^2, r'^2) / 2, with r' to the point mirrored at the
                     origin: points are standardised signals of unit length, searched with their
                     mirror images

So any index of Euclidean neighbours finds candidates. The distances of the pairs are computed from
the signals in float64 whatever the index, and equal those of `distances` to rounding. Memory is of
the order of the signals and the pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array, csr_array, issparse
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator
from sklearn.neighbors import KDTree, KNeighborsTransformer

from ..cores import n_cores
from ..edges import Restricted
from ..errors import InputError, Remedy, Setting, SettingError, SettingTypeError
from ..progress import progress_bar
from ..validate import check_choice, check_distances, check_signals, check_whole, node_name
from .signals import SQUARED, Metric, check_varying, zero_if_rounding

# Up to so many points an exhaustive search takes seconds.
FEW_POINTS = 20_000
# A tree finds neighbours fast if the points lie near a surface of few dimensions. How few, a tree
# of so many points tells by the number of points that a query looks at (for 15 neighbours in 20
# coordinates 1,200 if the surface has four dimensions, 2,500 if five, 11,000 if eight). At 1,200 a
# search among a million points takes two minutes of one core.
SAMPLE, QUERIES, MOST_VISITED = FEW_POINTS, 200, 3_000
# With fewer neighbours the descent misses some: of 8 in ten dimensions, 3 %.
FEWEST_IN_DESCENT = 15
# Points whose neighbours a tree finds at once, between two movements of the progress bar.
AT_ONCE = 20_000
# Numbers in a block of differences: 16 MB, near the size of a processor's cache.
BLOCK = 2**21


class Neighbors(Protocol):
    """What finds neighbours: scikit-learn's `KNeighborsTransformer`, and all that behave as it."""

    def fit_transform(self, X: Float[np.ndarray, "points coordinates"]) -> Any:
        """Return a sparse matrix with an entry in row i for each neighbour of point i."""


class Points:
    """Nodes as points, in which Euclidean distance ranks pairs as the metric does.

    Parameters
    ----------
    signals : array_like, shape (n_signals, N)
    metric : {"sqeuclidean", "log-euclidean", "correlation"}

    Attributes
    ----------
    at : ndarray, shape (N, n_signals)
        The coordinates, centred.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data import distances
    >>> from edgebelief.data.neighbours import Points
    >>> signals = np.random.default_rng(0).normal(size=(50, 4))
    >>> e = Points(signals, "correlation").distances(*np.triu_indices(4, k=1))
    >>> np.allclose(e, distances(signals, "correlation"))
    True
    """

    def __init__(self, signals: object, metric: Metric = "sqeuclidean"):
        check_choice(metric, "metric", get_args(Metric))
        self.metric = metric
        self.names: Sequence[Hashable] | None = getattr(signals, "columns", None)
        x = check_signals(signals, self.names)
        if metric == "correlation":
            check_varying(x, self.names)
        axis = 0 if metric == "correlation" else 1
        # In float64 a common offset costs digits of products, and in float32, which an index of
        # the user's may use, it costs all.
        self.at = np.ascontiguousarray((x - x.mean(axis=axis, keepdims=True)).T)
        if metric == "correlation":
            self.at /= np.linalg.norm(self.at, axis=1, keepdims=True)

    @property
    def n_nodes(self) -> int:
        return self.at.shape[0]

    @property
    def n_signals(self) -> int:
        return self.at.shape[1]

    @property
    def mirrored(self) -> bool:
        """Whether a node is near where its mirror image is."""
        return self.metric == "correlation"

    def searched(self) -> Float[np.ndarray, "points coordinates"]:
        """Return the points among which to search: those of nodes first; point p is node p % N."""
        return np.concatenate([self.at, -self.at]) if self.mirrored else self.at

    def distances(
        self, rows: Int[np.ndarray, " pairs"], cols: Int[np.ndarray, " pairs"]
    ) -> Float[np.ndarray, " pairs"]:
        """Return the distances of these pairs of nodes, block by block."""
        e = np.empty(len(rows))
        step = max(BLOCK // self.n_signals, 1)
        for first in range(0, len(rows), step):
            block = slice(first, first + step)
            e[block] = self._distances_of(self.at[rows[block]], self.at[cols[block]])
        if self.metric == "log-euclidean" and np.isneginf(e).any():
            k = int(np.argmin(e))
            i, j = (node_name(int(end[k]), self.names) for end in (rows, cols))
            problem = f"nodes {i!r} and {j!r} have identical signals: their log distance is -inf"
            raise InputError(problem, remedy=["Merge them", SQUARED])
        return e

    def _distances_of(
        self, x: Float[np.ndarray, "pairs coordinates"], y: Float[np.ndarray, "pairs coordinates"]
    ) -> Float[np.ndarray, " pairs"]:
        if self.metric == "correlation":
            return zero_if_rounding(1 - np.abs(np.einsum("ij,ij->i", x, y)))
        x -= y
        e = np.einsum("ij,ij->i", x, x) / self.n_signals
        if self.metric == "sqeuclidean":
            return e
        with np.errstate(divide="ignore"):
            return np.log10(e) / 2

    def at_least(
        self, some: Int[np.ndarray, " rows"], others: Int[np.ndarray, " cols"]
    ) -> Float[np.ndarray, "rows cols"]:
        """Return the distances of all pairs from two sets, by a matrix product, less its error."""
        x, y = self.at[some], self.at[others]
        product = x @ y.T
        if self.metric == "correlation":
            return 1 - np.abs(product) - 1e-12
        size = np.einsum("ij,ij->i", x, x)[:, None] + np.einsum("ij,ij->i", y, y)
        e = np.maximum(size - 2 * product - 1e-12 * size, 0) / self.n_signals
        if self.metric == "sqeuclidean":
            return e
        with np.errstate(divide="ignore"):
            return np.log10(e) / 2

    def radius(self, e: Float[np.ndarray, " limits"]) -> Float[np.ndarray, " limits"]:
        """Return the Euclidean distance below which pairs have a distance below `e`."""
        if self.metric == "log-euclidean":
            return np.sqrt(self.n_signals) * 10.0**e
        return np.sqrt(np.maximum(e, 0) * (2 if self.mirrored else self.n_signals))


def nearest_pairs(
    signals: object,
    n_neighbors: int,
    metric: Metric = "sqeuclidean",
    neighbors: Neighbors | None = None,
) -> tuple[Restricted, Float[np.ndarray, " edges"]]:
    """Join each node to its nearest neighbours, and return the distances of these pairs.

    Parameters
    ----------
    signals : array_like, shape (n_signals, N)
        A row per observation, a column per node, without gaps.
    n_neighbors : int
        How many neighbours each node chooses. A pair is a candidate if either node chooses the
        other, so a node can have more. On graphs with fewer nodes, all others.
    metric : {"sqeuclidean", "log-euclidean", "correlation"}
        As in `distances`.
    neighbors : object with ``fit_transform(X)``, optional
        What finds neighbours: it takes points, (n_points, n_signals), and returns a sparse matrix
        with the distance to each neighbour, as `sklearn.neighbors.KNeighborsTransformer` does. Its
        own setting must make it list at least `n_neighbors` others. By default: an exhaustive
        search up to 20,000 points; above, a tree if the signals have few dimensions, which is
        exact as well; else `pynndescent`, which misses some (``pip install edgebelief[large]``).

    Returns
    -------
    support : Restricted
        The candidate pairs, sorted.
    e : ndarray, shape (n_edges,)
        Their distances, what `distances` gives at these pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import solve
    >>> from edgebelief.data import nearest_pairs
    >>> signals = np.random.default_rng(0).normal(size=(5, 1000))
    >>> support, e = nearest_pairs(signals, n_neighbors=10)
    >>> support.n_nodes, bool(5000 < support.n_edges < 10_000)
    (1000, True)
    >>> solve(e, theta=1.0, support=support).converged
    True
    """
    return nearest_pairs_of(Points(signals, metric), n_neighbors, neighbors)


def nearest_pairs_of(
    points: Points, n_neighbors: int, neighbors: Neighbors | None = None
) -> tuple[Restricted, Float[np.ndarray, " edges"]]:
    """Join each point to its nearest neighbours; see `nearest_pairs`."""
    n_nodes = points.n_nodes
    n_neighbors = min(check_whole(n_neighbors, "n_neighbors", 1), n_nodes - 1)
    searched = points.searched()
    search = default_search(searched, n_neighbors) if neighbors is None else neighbors
    rows, cols = _listed(search, searched, n_nodes, n_neighbors, points.names)
    support = _joined(rows, cols, n_nodes)
    return support, points.distances(*support.endpoints)


def listed_pairs(matrix: Any) -> tuple[Restricted, Float[np.ndarray, " edges"]]:
    """Return the stored entries of a sparse matrix of distances; those of one side count for both.

    Zeros that are stored are distances of zero; the diagonal is ignored.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> from edgebelief.data.neighbours import listed_pairs
    >>> support, e = listed_pairs(coo_array(([2.0, 0.0], ([0, 2], [1, 1])), shape=(3, 3)))
    >>> list(zip(*(end.tolist() for end in support.endpoints))), e
    ([(0, 1), (1, 2)], array([2., 0.]))
    """
    stored = coo_array(matrix)
    if stored.shape[0] != stored.shape[1]:
        problem = f"must be a square matrix of distances; got shape {stored.shape}."
        raise InputError(problem, argument="X")
    n_nodes = stored.shape[0]
    off = stored.row != stored.col
    rows, cols, e = stored.row[off], stored.col[off], stored.data[off].astype(float)
    positions = np.minimum(rows, cols).astype(np.int64) * n_nodes + np.maximum(rows, cols)
    positions, first, entry = np.unique(positions, return_index=True, return_inverse=True)
    unequal = ~np.isclose(e, e[first][entry], rtol=1e-8, atol=0.0, equal_nan=True)
    if unequal.any():
        k = int(np.argmax(unequal))
        where = int(rows[k]), int(cols[k])
        problem = f"is {e[k]:g}, and the other way round {e[first][entry][k]:g}"
        remedy = "If direction means nothing, average them"
        raise InputError(problem, argument="X", where=where, remedy=remedy)
    pairs = np.stack([positions // n_nodes, positions % n_nodes], axis=1)
    support = Restricted.from_pairs(pairs, n_nodes)
    return support, check_distances(e[first], support)[0]


def nearest_in(
    matrix: Float[np.ndarray, "nodes nodes"], n_neighbors: int
) -> tuple[Restricted, Float[np.ndarray, " edges"]]:
    """Join each node to its nearest neighbours, by a matrix of distances."""
    check_distances(matrix)
    support = Restricted.nearest(matrix, min(n_neighbors, len(matrix) - 1))
    return support, check_distances(matrix, support)[0]


def default_search(points: Float[np.ndarray, "points coordinates"], n_neighbors: int) -> Neighbors:
    """Return the search that suits these points: exhaustive, a tree, or an approximate one."""
    if len(points) <= FEW_POINTS:
        return KNeighborsTransformer(n_neighbors=n_neighbors)
    if suits_a_tree(points, n_neighbors):
        return TreeSearch(n_neighbors)
    return DescentSearch(n_neighbors)


def suits_a_tree(points: Float[np.ndarray, "points coordinates"], n_neighbors: int) -> bool:
    """Whether a tree finds neighbours among these points by looking at few of them."""
    random = np.random.default_rng(0)
    sample = points[random.choice(len(points), min(SAMPLE, len(points)), replace=False)]
    tree = KDTree(sample)
    tree.reset_n_calls()
    tree.query(sample[:QUERIES], min(n_neighbors + 1, len(sample)))
    return bool(tree.get_n_calls() <= MOST_VISITED * QUERIES)


class TreeSearch(BaseEstimator):
    """Find exact neighbours by SciPy's k-d tree, on all cores."""

    def __init__(self, n_neighbors: int):
        self.n_neighbors = n_neighbors

    def fit_transform(self, X: Float[np.ndarray, "points coordinates"], y: None = None) -> Any:
        """Return the distances to the neighbours of each point, itself included."""
        tree, k = cKDTree(X), self.n_neighbors + 1
        distance, index = np.empty((len(X), k)), np.empty((len(X), k), np.int32)
        with progress_bar(desc="neighbours", unit=" points", total=len(X)) as bar:
            for first in range(0, len(X), AT_ONCE):
                # Points that are near each other look at the same part of the tree, which is then
                # in the processor's cache: four times faster at a million points.
                some = tree.indices[first : first + AT_ONCE]
                distance[some], index[some] = tree.query(X[some], k, workers=n_cores())
                bar.update(len(some))
        return _listing(index, distance)


class DescentSearch(BaseEstimator):
    """Find approximate neighbours by nearest-neighbour descent, with the package `pynndescent`."""

    def __init__(self, n_neighbors: int):
        self.n_neighbors = n_neighbors

    def fit_transform(self, X: Float[np.ndarray, "points coordinates"], y: None = None) -> Any:
        """Return the distances to the neighbours of each point, itself included."""
        try:
            from pynndescent import NNDescent
        except ImportError:
            problem = (
                f"a search among {len(X):,} points of {X.shape[1]} dimensions needs pynndescent"
            )
            exact = Setting("neighbors", python="neighbors=KNeighborsTransformer(n_neighbors=...)")
            raise InputError(
                problem,
                remedy=["Install it: pip install edgebelief[large]", Remedy("pass {}", exact)],
            ) from None
        # The index itself would be made ready for queries by `PyNNDescentTransformer`, which
        # takes longer than finding the neighbours, and is of no use here.
        descent = NNDescent(
            np.asarray(X, np.float32),
            n_neighbors=max(self.n_neighbors, FEWEST_IN_DESCENT) + 1,
            random_state=0,
            n_jobs=n_cores(),
            low_memory=True,
            compressed=False,
        )
        return _listing(*descent.neighbor_graph)


def _listing(
    index: Int[np.ndarray, "points k"], distance: Float[np.ndarray, "points k"]
) -> csr_array:
    """Return the neighbours of each point as a sparse matrix; -1 stands for one not found."""
    there = index >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(1))])
    return csr_array((distance[there], index[there], ends), shape=(len(index), len(index)))


def _listed(
    search: Neighbors,
    points: Float[np.ndarray, "points coordinates"],
    n_nodes: int,
    n_neighbors: int,
    names: Sequence[Hashable] | None,
) -> tuple[Int[np.ndarray, " listed"], Int[np.ndarray, " listed"]]:
    """Return the pairs of nodes that `search` lists, at most `n_neighbors` at a node.

    Of the points, those of nodes come first; the others are their mirror images.
    """
    if not hasattr(search, "fit_transform"):
        problem = f"must have fit_transform(X), which {type(search).__name__} has not"
        raise SettingTypeError(problem, argument="neighbors")
    listing = search.fit_transform(points)
    if not issparse(listing) or listing.shape != (len(points), len(points)):
        what = f"a {type(listing).__name__} of shape {getattr(listing, 'shape', None)}"
        problem = f"must turn {len(points)} points into a sparse square matrix; got {what}"
        raise SettingError(problem, argument="neighbors")
    listing = csr_array(listing)
    ends = listing.indptr[: n_nodes + 1]
    count = np.diff(ends)
    rows = np.repeat(np.arange(n_nodes, dtype=np.int32), count)
    cols = (listing.indices[: ends[-1]] % n_nodes).astype(np.int32)
    near = listing.data[: ends[-1]]
    other = rows != cols
    most = int(np.bincount(rows[other], minlength=n_nodes).max(initial=0))
    if most < n_neighbors:
        problem = f"lists at most {most} other points for a node, and {n_neighbors} were asked for"
        remedy = f"Set its n_neighbors to {n_neighbors} or more"
        raise SettingError(problem, argument="neighbors", remedy=remedy)
    rows, cols, near = rows[other], cols[other], near[other]
    if most > n_neighbors:
        order = np.lexsort((near, rows))
        rows, cols = rows[order], cols[order]
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_nodes))])
        nearest = np.arange(len(rows)) - starts[rows] < n_neighbors
        rows, cols = rows[nearest], cols[nearest]
    lonely = np.bincount(rows, minlength=n_nodes) == 0
    if lonely.any():
        name = node_name(int(np.argmax(lonely)), names)
        problem = f"lists no neighbour of node {name!r} ({lonely.sum()} such nodes in all)"
        raise SettingError(problem, argument="neighbors", remedy="Use another search")
    return rows, cols


def _joined(
    rows: Int[np.ndarray, " listed"], cols: Int[np.ndarray, " listed"], n_nodes: int
) -> Restricted:
    """Return the support of the pairs that are listed at either end, sorted."""
    low, high = np.minimum(rows, cols), np.maximum(rows, cols)
    pairs = np.unique(low.astype(np.int64) * n_nodes + high)
    ends = np.empty((len(pairs), 2), np.int32)
    np.divmod(pairs, n_nodes, out=(ends[:, 0], ends[:, 1]), casting="same_kind")
    return Restricted.from_pairs(ends, n_nodes)
