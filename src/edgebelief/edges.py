"""A graph as a vector over its candidate edges.

A graph on N nodes is a vector with one entry per *candidate edge*. The set of candidate edges is a
`Support`: every pair of nodes (`Complete`, in row-major upper-triangular order), or a list of pairs
(`Restricted`). The maps between edges and nodes (see `incidence`) are never built as matrices.

Every function takes NumPy arrays and returns NumPy arrays, so that float64 stays float64 whatever
the precision of JAX; or it takes and returns JAX arrays, traced ones included.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from .errors import InputError, SettingError
from .incidence import Array, Incidence, OnEdges, Square, namespace

# A weight counts as an edge if it is more than this fraction of the graph's largest weight.
EDGE_THRESHOLD = 1e-5


def pairs_of(n_nodes: int) -> int:
    """Return the number of pairs of `n_nodes` nodes, N(N-1)/2."""
    return n_nodes * (n_nodes - 1) // 2


class Support(Incidence):
    """The candidate edges of a graph on `n_nodes` nodes. Abstract: see `Complete`, `Restricted`."""

    @property
    @abc.abstractmethod
    def n_edges(self) -> int:
        """The number of candidate edges."""

    @property
    @abc.abstractmethod
    def endpoints(self) -> tuple[Int[Array, " edges"], Int[Array, " edges"]]:
        """The lower and the higher node of each candidate edge."""

    @abc.abstractmethod
    def to_matrix(self, a: Shaped[Array, " edges"]) -> Shaped[Array, "nodes nodes"]:
        """Return `a` as a symmetric matrix, zero on the diagonal and off the candidate edges."""

    @abc.abstractmethod
    def relabel(self, order: Int[Array, " nodes"]) -> "tuple[Support, Int[Array, ' edges']]":
        """Renumber the nodes: new node k is old node ``order[k]``.

        Returns the support of the renumbered graph and the positions of its edges in the old one:
        ``a[positions]`` is the graph `a` after renumbering.
        """

    def to_vector(self, matrix: Shaped[Array, "nodes nodes"]) -> Shaped[Array, " edges"]:
        """Return the entries of a symmetric matrix at the candidate edges; ignore the others."""
        return matrix[self.endpoints]

    def to_sparse(self, a: Shaped[np.ndarray, " edges"]) -> csr_array:
        """Return `a` as a symmetric sparse matrix, with an entry for every candidate, zeros too."""
        rows, cols = (np.asarray(ends) for ends in self.endpoints)
        places = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        shape = self.n_nodes, self.n_nodes
        return coo_array((np.concatenate([a, a]), places), shape=shape).tocsr()

    @property
    def inner(self) -> Incidence:
        """The same candidate edges in the layout that is fastest inside a loop."""
        return self

    def to_inner(self, a: Float[Array, " edges"]) -> OnEdges:
        """Convert an edge vector to the layout of `inner`."""
        return a

    def from_inner(self, a: OnEdges) -> Float[Array, " edges"]:
        """Convert an edge array in the layout of `inner` to an edge vector."""
        return a

    def is_edge(self, a: Float[Array, " edges"]) -> Bool[Array, " edges"]:
        """Return which weights are more than 1e-5 of the largest (none, if all are zero)."""
        return a > EDGE_THRESHOLD * namespace(a).maximum(a.max(), 0)

    def density(self, a: Float[Array, " edges"]) -> Float[Array, ""]:
        """Return the number of edges (see `is_edge`) over N(N-1)/2, the number of all pairs."""
        return self.is_edge(a).sum() / pairs_of(self.n_nodes)

    def n_components(self, a: Float[Array, " edges"]) -> int | Int[Array, ""]:
        """Return the number of connected components of the edges (see `is_edge`)."""
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
    def endpoints(self) -> tuple[Int[np.ndarray, " edges"], Int[np.ndarray, " edges"]]:
        rows, cols = np.triu_indices(self.n_nodes, k=1)
        return rows, cols

    def degrees(self, a: Float[Array, " edges"]) -> Float[Array, " nodes"]:
        return self.inner.degrees(self.to_inner(a))

    def endpoint_sums(self, lam: Float[Array, " nodes"]) -> Float[Array, " edges"]:
        _check_length(lam, self.n_nodes, "nodes")
        rows, cols = self.endpoints
        return lam[rows] + lam[cols]

    def to_matrix(self, a: Shaped[Array, " edges"]) -> Shaped[Array, "nodes nodes"]:
        _check_length(a, self.n_edges, "candidate edges")
        if isinstance(a, jax.Array):  # a gather: scatters are slow in XLA
            return jnp.where(~np.eye(self.n_nodes, dtype=bool), a[self._positions()], 0)
        matrix = np.zeros((self.n_nodes, self.n_nodes), a.dtype)
        matrix[self._above_diagonal()] = a
        return matrix + matrix.T

    def to_vector(self, matrix: Shaped[Array, "nodes nodes"]) -> Shaped[Array, " edges"]:
        in_jax = isinstance(matrix, jax.Array)
        return matrix[self.endpoints if in_jax else self._above_diagonal()]

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
        """Return the mask of the upper triangle; NumPy indexes by it in the order of the vector."""
        return np.tri(self.n_nodes, k=-1, dtype=bool).T

    def _positions(self) -> Int[np.ndarray, "nodes nodes"]:
        """Return the position of pair (i, j) in the vector as entry [i, j]; 0 on the diagonal."""
        positions = np.zeros((self.n_nodes, self.n_nodes), dtype=np.int32)
        rows, cols = self.endpoints
        positions[rows, cols] = positions[cols, rows] = np.arange(self.n_edges)
        return positions


class Restricted(Support):
    """Only the listed pairs are candidate edges: k nearest neighbours, a road map, a mask.

    Edge vectors have the order in which the pairs were listed. Build it with
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

    def __hash__(self) -> int:  # so that `jax.jit` takes its bound methods
        pairs = np.asarray(self.rows).tobytes(), np.asarray(self.cols).tobytes()
        return hash((self.n_nodes, *pairs))

    @classmethod
    def from_pairs(cls, pairs: ArrayLike, n_nodes: int | None = None) -> "Restricted":
        """Build the support with these pairs of node numbers, in this order, without repeats.

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
            named = f"nodes {pairs.min()} to {pairs.max()}"
            raise InputError(f"the support names {named}; they must lie in 0 to {n_nodes - 1}.")
        low, high = np.minimum(*pairs.T), np.maximum(*pairs.T)
        if (low == high).any():
            loop = low[low == high][0]
            raise InputError(f"the support joins node {loop} to itself; remove that pair.")
        low, high = low.astype(np.int32), high.astype(np.int32)
        position = low.astype(np.int64) * n_nodes + high
        if not (np.diff(position) > 0).all():  # else they are sorted, and all different
            order = np.argsort(position, kind="stable")
            twice = np.diff(position[order]) == 0
            if twice.any():
                first = order[int(np.argmax(twice))]
                pair = f"the pair ({low[first]}, {high[first]}) more than once, in either order"
                raise InputError(f"the support names {pair}; remove the repeats.")
        per_node = np.bincount(low, minlength=n_nodes) + np.bincount(high, minlength=n_nodes)
        if n_nodes < 2 or (per_node == 0).any():
            lonely = np.flatnonzero(per_node == 0)[:5]
            raise InputError(
                f"every node needs a candidate edge (the log of its degree must be finite), but "
                f"{lonely.tolist() or 'this support'} has none; add pairs, or leave the node out."
            )
        return cls(n_nodes, low, high, int(per_node.max()))

    @classmethod
    def nearest(cls, distances: ArrayLike, k: int) -> "Restricted":
        """Join each node to its `k` nearest neighbours; a node can have more than `k` pairs."""
        matrix = np.array(distances, dtype=float)
        n_nodes = len(matrix)
        if matrix.shape != (n_nodes, n_nodes) or np.isnan(matrix).any():
            problem = f"must be a square matrix without gaps (NaN); got shape {matrix.shape}."
            raise InputError(problem, argument="distances")
        if not 1 <= k < n_nodes:
            problem = f"must lie between 1 and {n_nodes - 1}, the others; got {k}."
            raise SettingError(problem, argument="k")
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

    def to_matrix(self, a: Shaped[Array, " edges"]) -> Shaped[Array, "nodes nodes"]:
        _check_length(a, self.n_edges, "candidate edges")
        above: Array = np.zeros((self.n_nodes, self.n_nodes), a.dtype)
        if self._in_jax(a):
            above = jnp.asarray(above).at[self.rows, self.cols].set(a)
        else:
            above[self.rows, self.cols] = a
        return above + above.T

    def to_vector(self, matrix: Shaped[Array, "nodes nodes"]) -> Shaped[Array, " edges"]:
        matrix = jnp.asarray(matrix) if self._in_jax(matrix) else matrix
        return matrix[self.rows, self.cols]

    def relabel(self, order: Int[Array, " nodes"]) -> "tuple[Restricted, Int[Array, ' edges']]":
        """Renumber the nodes (see `Support.relabel`); the edges keep their order. Not traceable."""
        order = np.asarray(order)
        _check_order(order, self.n_nodes)
        new_of_old = np.argsort(order)
        pairs = np.stack([new_of_old[self.rows], new_of_old[self.cols]], axis=1)
        return Restricted.from_pairs(pairs, self.n_nodes), np.arange(self.n_edges)

    def _in_jax(self, x: Array) -> bool:
        """Whether to compute in JAX: `x` is a JAX array, or the support itself is traced."""
        return isinstance(x, jax.Array) or isinstance(self.rows, jax.core.Tracer)


def _check_length(x: Array, length: int, what: str) -> None:
    """Raise on a wrong length: NumPy would, but a gather in JAX silently clamps its indices."""
    if x.shape[-1] != length:
        raise InputError(f"expected one number for each of {length} {what}; got shape {x.shape}.")


def _check_order(order: Array, n_nodes: int) -> None:
    if isinstance(order, jax.core.Tracer):
        return
    if sorted(np.asarray(order).tolist()) != list(range(n_nodes)):
        problem = f"must hold each of 0 to {n_nodes - 1} once; got {order}."
        raise InputError(problem, argument="order")


def _n_components_traced(n_nodes: int, rows: Array, cols: Array, present: Array) -> jax.Array:
    """Count components by spreading the smallest label along edges until nothing changes."""

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
