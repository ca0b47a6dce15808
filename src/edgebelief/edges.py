"""A graph as a vector.

A graph on N nodes is a vector with one entry per *candidate edge*. The set of candidate edges is a
`Support`: every pair of nodes (`Complete`, in row-major upper-triangular order), or a list of pairs
(`Restricted`). Two linear maps connect edges and nodes, and neither is ever built as a matrix:

    degrees         (S a)_i     = sum of a over the candidate edges at node i
    endpoint sums   (S' lam)_ij = lam_i + lam_j

Every call takes NumPy arrays (and answers in NumPy, so float64 stays float64 whatever JAX is set
to) or JAX arrays, traced ones included.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .errors import InputError, SettingError
from .incidence import Array, Incidence, Square, namespace

# A weight counts as an edge when it exceeds this share of the graph's largest weight.
EDGE_THRESHOLD = 1e-5


def pairs_of(n_nodes: int) -> int:
    """How many pairs `n_nodes` nodes have: N(N-1)/2."""
    return n_nodes * (n_nodes - 1) // 2


class Support(Incidence):
    """The candidate edges of a graph on `n_nodes` nodes. Abstract: see `Complete`, `Restricted`."""

    @property
    @abc.abstractmethod
    def n_edges(self) -> int:
        """How many candidate edges there are."""

    @property
    @abc.abstractmethod
    def endpoints(self) -> tuple[Int[Array, " edges"], Int[Array, " edges"]]:
        """The lower and the higher node of each candidate edge."""

    @abc.abstractmethod
    def to_matrix(self, a: Float[Array, " edges"]) -> Float[Array, "nodes nodes"]:
        """The symmetric matrix of `a`: zero on the diagonal and where there is no candidate."""

    @abc.abstractmethod
    def relabel(self, order: Int[Array, " nodes"]) -> "tuple[Support, Int[Array, ' edges']]":
        """Renumber the nodes: new node k is old node ``order[k]``.

        Returns the support of the renumbered graph and the positions of its edges in the old one:
        ``a[positions]`` is the graph `a` after renumbering.
        """

    def to_vector(self, matrix: Float[Array, "nodes nodes"]) -> Float[Array, " edges"]:
        """The entries of a symmetric matrix at the candidate edges; the rest is not looked at."""
        return matrix[self.endpoints]

    @property
    def inner(self) -> Incidence:
        """The same candidate edges in the layout that is fastest inside a loop."""
        return self

    def to_inner(self, a: Float[Array, " edges"]) -> Array:
        """An edge vector in the layout of `inner`."""
        return a

    def from_inner(self, a: Array) -> Float[Array, " edges"]:
        """Back from the layout of `inner`."""
        return a

    def is_edge(self, a: Float[Array, " edges"]) -> Bool[Array, " edges"]:
        """Which weights count as edges: those above 1e-5 of the largest (so none is, of zeros)."""
        return a > EDGE_THRESHOLD * namespace(a).maximum(a.max(), 0)

    def density(self, a: Float[Array, " edges"]) -> Float[Array, ""]:
        """Edges (see `is_edge`) as a share of all N(N-1)/2 pairs, candidates or not."""
        return self.is_edge(a).sum() / pairs_of(self.n_nodes)

    def n_components(self, a: Float[Array, " edges"]) -> Int[Array, ""]:
        """How many connected components the edges (see `is_edge`) leave."""
        rows, cols = self.endpoints
        present = self.is_edge(a)
        if isinstance(a, jax.Array) or isinstance(rows, jax.core.Tracer):
            return _n_components_traced(self.n_nodes, rows, cols, present)
        links = np.asarray(rows)[present], np.asarray(cols)[present]
        graph = coo_array((np.ones(links[0].size), links), shape=(self.n_nodes, self.n_nodes))
        return connected_components(graph, directed=False)[0]


class Complete(Support):
    """Every pair of `n_nodes` nodes is a candidate edge, in `np.triu_indices(n_nodes, k=1)` order.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.edges import Complete
    >>> support = Complete(3)
    >>> support.degrees(np.array([1.0, 2.0, 4.0]))  # edges (0, 1), (0, 2), (1, 2)
    array([3., 5., 6.])
    """

    @property
    def n_edges(self) -> int:
        return pairs_of(self.n_nodes)

    @property
    def max_degree(self) -> int:
        return self.n_nodes - 1

    @property
    def endpoints(self) -> tuple[np.ndarray, np.ndarray]:
        rows, cols = np.triu_indices(self.n_nodes, k=1)
        return rows, cols

    def degrees(self, a: Float[Array, " edges"]) -> Float[Array, " nodes"]:
        return self.inner.degrees(self.to_inner(a))

    def endpoint_sums(self, lam: Float[Array, " nodes"]) -> Float[Array, " edges"]:
        _check_length(lam, self.n_nodes, "nodes")
        rows, cols = self.endpoints
        return lam[rows] + lam[cols]

    def to_matrix(self, a: Float[Array, " edges"]) -> Float[Array, "nodes nodes"]:
        _check_length(a, self.n_edges, "candidate edges")
        if isinstance(a, jax.Array):  # a gather: scatters are slow in XLA
            return jnp.where(~np.eye(self.n_nodes, dtype=bool), a[self._positions()], 0)
        matrix = np.zeros((self.n_nodes, self.n_nodes), a.dtype)
        matrix[self._above_diagonal()] = a
        return matrix + matrix.T

    def to_vector(self, matrix: Float[Array, "nodes nodes"]) -> Float[Array, " edges"]:
        if isinstance(matrix, jax.Array):
            return matrix[self.endpoints]
        return matrix[self._above_diagonal()]

    def relabel(self, order: Int[Array, " nodes"]) -> "tuple[Complete, Int[Array, ' edges']]":
        _check_order(order, self.n_nodes)
        rows, cols = self.endpoints
        return self, namespace(order).asarray(self._positions())[order[rows], order[cols]]

    @property
    def inner(self) -> Incidence:
        return Square(self.n_nodes)

    def to_inner(self, a: Float[Array, " edges"]) -> Float[Array, "nodes nodes"]:
        return self.to_matrix(a)

    def from_inner(self, a: Float[Array, "nodes nodes"]) -> Float[Array, " edges"]:
        return self.to_vector(a)

    def _above_diagonal(self) -> Bool[np.ndarray, "nodes nodes"]:
        """As a mask, which NumPy takes in row-major order: the order of the vector."""
        return np.tri(self.n_nodes, k=-1, dtype=bool).T

    def _positions(self) -> Int[np.ndarray, "nodes nodes"]:
        """Where pair (i, j) stands in the vector; the diagonal says 0."""
        positions = np.zeros((self.n_nodes, self.n_nodes), dtype=np.int32)
        rows, cols = self.endpoints
        positions[rows, cols] = positions[cols, rows] = np.arange(self.n_edges)
        return positions


class Restricted(Support):
    """Only the listed pairs are candidate edges: k nearest neighbours, a road map, a mask.

    Edge vectors run in the order in which the pairs were listed. Build it with
    `Restricted.from_pairs` or `Restricted.nearest`, which check the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.edges import Restricted
    >>> ring = Restricted.from_pairs([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> ring.endpoint_sums(np.array([1.0, 10.0, 100.0, 1000.0]))
    array([  11.,  110., 1100., 1001.])
    """

    rows: Int[Array, " edges"]
    cols: Int[Array, " edges"]
    most_at_a_node: int = eqx.field(static=True)

    def __hash__(self) -> int:  # so that its methods can be compiled as they are
        pairs = np.asarray(self.rows).tobytes(), np.asarray(self.cols).tobytes()
        return hash((self.n_nodes, *pairs))

    @classmethod
    def from_pairs(cls, pairs: Any, n_nodes: int | None = None) -> "Restricted":
        """The support with these pairs of node numbers, in the order given, each named once.

        Parameters
        ----------
        pairs : array_like of int, shape (n_edges, 2)
        n_nodes : int, optional
            The number of nodes; by default one more than the largest number in `pairs`.
        """
        pairs = np.asarray(pairs)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
            raise InputError(
                f"a support is a list of pairs of node numbers, an integer array of shape "
                f"(n_edges, 2); got shape {pairs.shape}, dtype {pairs.dtype}."
            )
        n_nodes = int(pairs.max(initial=-1)) + 1 if n_nodes is None else int(n_nodes)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= n_nodes):
            raise InputError(
                f"the support names nodes {pairs.min()} to {pairs.max()}; "
                f"with n_nodes={n_nodes} they must lie in 0 to {n_nodes - 1}."
            )
        low, high = np.sort(pairs, axis=1).T
        if (low == high).any():
            raise InputError(
                f"the support joins node {low[low == high][0]} to itself; remove that pair."
            )
        low, high = low.astype(np.int32), high.astype(np.int32)
        order = np.lexsort((high, low))
        twice = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
        if twice.any():
            first = order[int(np.argmax(twice))]
            raise InputError(
                f"the support names the pair ({low[first]}, {high[first]}) more than once "
                f"((i, j) and (j, i) are one pair); remove the repeats."
            )
        per_node = np.bincount(np.concatenate([low, high]), minlength=n_nodes)
        if n_nodes < 2 or (per_node == 0).any():
            lonely = np.flatnonzero(per_node == 0)[:5]
            raise InputError(
                f"every node needs a candidate edge (the log of its degree is minus infinity "
                f"without one), but {lonely.tolist() or 'this support'} has none; "
                f"add pairs for it, or leave the node out."
            )
        return cls(n_nodes, low, high, int(per_node.max()))

    @classmethod
    def nearest(cls, distances: Float[Array, "nodes nodes"], k: int) -> "Restricted":
        """Each node's `k` nearest neighbours, and every node it is a near neighbour of."""
        matrix = np.array(distances, dtype=float)
        n_nodes = len(matrix)
        if matrix.shape != (n_nodes, n_nodes) or np.isnan(matrix).any():
            raise InputError(
                f"must be a square matrix without gaps; got shape {matrix.shape}, "
                f"{np.isnan(matrix).sum()} of them NaN.",
                argument="distances",
            )
        if not 1 <= k < n_nodes:
            raise SettingError(
                f"must lie between 1 and {n_nodes - 1}, the others; got {k}.", argument="k"
            )
        np.fill_diagonal(matrix, np.inf)
        near = np.argpartition(matrix, k - 1, axis=1)[:, :k]
        pairs = np.stack([np.repeat(np.arange(n_nodes), k), near.ravel()], axis=1)
        return cls.from_pairs(np.unique(np.sort(pairs, axis=1), axis=0), n_nodes)

    @property
    def n_edges(self) -> int:
        return self.rows.shape[-1]

    @property
    def max_degree(self) -> int:
        return self.most_at_a_node

    @property
    def endpoints(self) -> tuple[Int[Array, " edges"], Int[Array, " edges"]]:
        return self.rows, self.cols

    def degrees(self, a: Float[Array, " edges"]) -> Float[Array, " nodes"]:
        _check_length(a, self.n_edges, "candidate edges")
        if self._in_jax(a):
            a = jnp.asarray(a)
            zero = jnp.zeros(self.n_nodes, a.dtype)
            return zero.at[self.rows].add(a).at[self.cols].add(a)
        total = np.bincount(self.rows, a, self.n_nodes) + np.bincount(self.cols, a, self.n_nodes)
        return total.astype(a.dtype)

    def endpoint_sums(self, lam: Float[Array, " nodes"]) -> Float[Array, " edges"]:
        _check_length(lam, self.n_nodes, "nodes")
        lam = jnp.asarray(lam) if self._in_jax(lam) else lam
        return lam[self.rows] + lam[self.cols]

    def to_matrix(self, a: Float[Array, " edges"]) -> Float[Array, "nodes nodes"]:
        _check_length(a, self.n_edges, "candidate edges")
        shape = (self.n_nodes, self.n_nodes)
        if self._in_jax(a):
            a = jnp.asarray(a)
            above = jnp.zeros(shape, a.dtype).at[self.rows, self.cols].set(a)
            return above + above.T
        matrix = np.zeros(shape, a.dtype)
        matrix[self.rows, self.cols] = a
        return matrix + matrix.T

    def to_vector(self, matrix: Float[Array, "nodes nodes"]) -> Float[Array, " edges"]:
        matrix = jnp.asarray(matrix) if self._in_jax(matrix) else matrix
        return matrix[self.rows, self.cols]

    def relabel(self, order: Int[Array, " nodes"]) -> "tuple[Restricted, Int[Array, ' edges']]":
        """As `Support.relabel`; the edges keep their order. Not for traced values."""
        order = np.asarray(order)
        _check_order(order, self.n_nodes)
        new_of_old = np.argsort(order)
        pairs = np.stack([new_of_old[self.rows], new_of_old[self.cols]], axis=1)
        return Restricted.from_pairs(pairs, self.n_nodes), np.arange(self.n_edges)

    def _in_jax(self, x: Array) -> bool:
        """Whether to answer in JAX: for its arrays, or when this support itself is traced."""
        return isinstance(x, jax.Array) or isinstance(self.rows, jax.core.Tracer)


def _check_length(x: Array, length: int, what: str) -> None:
    """Where NumPy would raise on a wrong length, JAX's gathers would quietly clamp."""
    if x.shape[-1] != length:
        raise InputError(f"expected one number for each of {length} {what}; got shape {x.shape}.")


def _check_order(order: Array, n_nodes: int) -> None:
    if isinstance(order, jax.core.Tracer):
        return
    if sorted(np.asarray(order).tolist()) != list(range(n_nodes)):
        raise InputError(
            f"must hold each of 0 to {n_nodes - 1} once; got {order}.", argument="order"
        )


def _n_components_traced(n_nodes: int, rows: Array, cols: Array, present: Array) -> jax.Array:
    """Components by spreading the smallest label along edges until nothing changes."""

    def spread(labels: jax.Array) -> jax.Array:
        low = jnp.minimum(labels[rows], labels[cols])
        low = jnp.where(present, low, n_nodes)  # n_nodes is above every label: no effect
        labels = labels.at[rows].min(low).at[cols].min(low)
        return labels[labels]  # the jump to a label's own label shortens long chains

    def body(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return carry[1], spread(carry[1])

    start = jnp.arange(n_nodes)
    _, labels = lax.while_loop(lambda c: (c[0] != c[1]).any(), body, (start, spread(start)))
    return (labels == start).sum()
