"""GraphDataset: distances, labels and node names of several graphs, of one size or many."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array

from .. import validate
from ..edges import Complete, Restricted, Support, pairs_of
from ..errors import InputError, InputIndexError, InputTypeError
from ..room import check_simulation
from . import signals
from .covariates import pair_covariates
from .ensembles import Ensemble
from .randomness import Key, split


class Outside(NamedTuple):
    """What is known of the pairs of a graph that are no candidates."""

    n_labels: int
    """The number of those pairs whose label is known."""
    n_edges: int
    """The number of edges among them, which no model of the candidates can find."""


class GraphRecord(NamedTuple):
    """One graph: what was measured, what is known of its edges, what its nodes are called."""

    e: Float[np.ndarray, " edges"]
    """Distances."""
    a: Float[np.ndarray, " edges"]
    """Labels, 0 or 1; 0 where unknown."""
    known: Bool[np.ndarray, " edges"]
    """Which labels are known."""
    names: tuple[str, ...]
    """Node names."""
    n_signals: float | None = None
    """How many signals are behind the distances: inf for expected ones, None if not known."""
    covariates: Mapping[str, np.ndarray] = MappingProxyType({})
    """What else is known of each pair, by name: numbers, or text for categories."""
    w: Float[np.ndarray, " edges"] | None = None
    """Weights: above 0 where there is an edge, 0 where there is none, NaN where unknown. None in a
    data set without weights."""
    candidates: Restricted | None = None
    """The pairs that may be edges; None if all may."""
    outside: Outside | None = None
    """What is known of all other pairs; None if nothing is."""

    @property
    def support(self) -> Support:
        return Complete(len(self.names)) if self.candidates is None else self.candidates

    def distance_matrix(self) -> Float[np.ndarray, "nodes nodes"]:
        return self.support.to_matrix(self.e)

    def label_matrix(self) -> Float[np.ndarray, "nodes nodes"]:
        """Return the labels as a matrix, NaN where unknown."""
        return self.support.to_matrix(np.where(self.known, self.a, np.nan))

    def weight_matrix(self) -> Float[np.ndarray, "nodes nodes"]:
        """Return the weights as a matrix, NaN where unknown."""
        if self.w is None:
            raise InputError("this graph has no weights; GraphDataset(..., weighted=True) has.")
        return self.support.to_matrix(self.w)


class Stack(NamedTuple):
    """The graphs of one size in a data set, as arrays; or one graph with its own candidates."""

    places: Int[np.ndarray, " graphs"]
    """Their places in the data set."""
    e: Float[np.ndarray, "graphs edges"]
    a: Float[np.ndarray, "graphs edges"]
    known: Bool[np.ndarray, "graphs edges"]
    support: Support
    covariates: Mapping[str, np.ndarray]
    """(graphs, edges), those that every graph of the stack has."""
    w: Float[np.ndarray, "graphs edges"] | None = None
    """NaN in graphs without weights; None if there are no others."""

    @property
    def log_w(self) -> Float[np.ndarray, "graphs edges"] | None:
        """The logarithms of the weights of the edges; NaN elsewhere."""
        return None if self.w is None else np.log(np.where(self.w > 0, self.w, np.nan))

    def part(self, graphs: slice | np.ndarray) -> Stack:
        """Return the stack of some of its graphs."""
        places, e, a, known = (array[graphs] for array in self[:4])
        covariates = {name: values[graphs] for name, values in self.covariates.items()}
        w = None if self.w is None else self.w[graphs]
        return Stack(places, e, a, known, self.support, covariates, w)


class GraphDataset(Sequence[GraphRecord]):
    """Graphs with distances, and labels where they are known. Checked when made; never changed.

    Parameters
    ----------
    e : sequence of array_like
        For each graph its distances, (n_edges,) or (N, N); N may differ. A data frame's columns
        become node names.
    a : sequence of array_like, optional
        For each graph its labels in the same form, 0 or 1, NaN for unknown; or None for a graph
        without labels.
    names : sequence of sequences of str, optional
        Node names for each graph; by default those of data frames, else "0", "1", ...
    n_signals : float or sequence of float, optional
        How many signals the distances were computed from, in all graphs or in each. Kept so that
        predicting from another number can be noticed.
    covariates : sequence of DataFrame or mapping, optional
        For each graph what else is known of its pairs: see `pair_covariates`.
    weighted : bool
        Whether `a` holds weights: above 0 for an edge, 0 for none, NaN for unknown. A record then
        keeps them as `w`, and which edges are there as `a`.
    supports : sequence of Support or None, optional
        For each graph the pairs that may be edges, such as `data.nearest_pairs` finds them; `e` and
        `a` then are vectors over these, or matrices, of which the other entries are ignored but for
        one thing: labels of pairs that are no candidates are counted (`GraphRecord.outside`).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data import GraphDataset
    >>> data = GraphDataset(
    ...     e=[np.array([1.0, 2.0, 2.0]), np.array([3.0])],
    ...     a=[np.array([1, 0, np.nan]), np.array([1])],
    ...     names=[["ada", "bob", "cy"], ["dee", "eve"]],
    ... )
    >>> len(data), data.n_nodes, data.n_labels
    (2, (3, 2), 3)
    >>> data[0].names
    ('ada', 'bob', 'cy')
    >>> roads = GraphDataset([[1.0, 2.0, 2.0]], [[7.5, 0, np.nan]], weighted=True)
    >>> roads[0].a, roads[0].w
    (array([1., 0., 0.]), array([7.5, 0. , nan]))
    """

    def __init__(
        self,
        e: Iterable[object],
        a: Iterable[object] | None = None,
        names: Iterable[object] | None = None,
        n_signals: Any = None,
        covariates: Iterable[object] | None = None,
        *,
        weighted: bool = False,
        supports: Iterable[object] | None = None,
    ):
        if validate.is_one_graph(e) and supports is None:
            problem = "holds the distances of several graphs; for one graph pass [e]."
            raise InputTypeError(problem, argument="e")
        e = list(e)
        if not e:
            raise InputError("a data set needs at least one graph; e is empty.")
        a = _one_for_each(a, len(e), "a (labels)")
        names = _one_for_each(names, len(e), "names")
        counts = [n_signals] * len(e) if np.ndim(n_signals) == 0 else n_signals
        counts = _one_for_each(counts, len(e), "n_signals")
        if isinstance(covariates, Mapping) or hasattr(covariates, "columns"):
            problem = "hold those of several graphs; for one graph pass [them]."
            raise InputTypeError(problem, argument="covariates")
        covariates = _one_for_each(covariates, len(e), "covariates")
        supports = _one_for_each(supports, len(e), "supports")
        given = zip(e, a, names, counts, covariates, supports, strict=True)
        self._records = tuple(_record(t, weighted, *parts) for t, parts in enumerate(given))

    @classmethod
    def sample(
        cls,
        key: Key | int,
        ensemble: Ensemble,
        n_graphs: int,
        n_nodes: int,
        *,
        n_signals: int | None = None,
        filter: signals.Filter = signals.SquareRootInverse(),
    ) -> GraphDataset:
        """Draw graphs from an ensemble, with the distances of smooth signals on them.

        Parameters
        ----------
        key : JAX key or int
        ensemble : Ensemble
        n_graphs, n_nodes : int
            At most 100,000 graphs, and 100 million pairs of nodes in all.
        n_signals : int, optional
            Signals per graph; by default infinitely many (`expected_distances`).
        filter : Filter

        Examples
        --------
        >>> from edgebelief.data import ErdosRenyi, GraphDataset
        >>> len(GraphDataset.sample(0, ErdosRenyi(p=0.5), n_graphs=3, n_nodes=8, n_signals=50))
        3
        """
        n_graphs = validate.check_whole(n_graphs, "n_graphs", 1)
        n_nodes = validate.check_whole(n_nodes, "n_nodes", 2)
        if n_signals is not None:
            n_signals = validate.check_whole(n_signals, "n_signals", 1)
        check_simulation(n_nodes, n_signals or 0, n_graphs)
        e, a = [], []
        for graph_key, signal_key in (split(k, 2) for k in split(key, n_graphs)):
            graph = ensemble.sample(graph_key, n_nodes)
            if n_signals is None:
                e.append(signals.expected_distances(graph, filter))
            else:
                x = signals.smooth_signals(signal_key, graph, n_signals, filter)
                e.append(signals.distances(x))
            a.append(signals.adjacency_of(graph))
        return cls(e, a, n_signals=np.inf if n_signals is None else n_signals)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        """Return a graph by its place; a data set by a slice, or an array of places or booleans."""
        if np.ndim(index) == 0 and not isinstance(index, slice):
            place, n_graphs = operator.index(index), len(self)
            if not -n_graphs <= place < n_graphs:
                raise InputIndexError(f"there is no graph {place}; there are 0 to {n_graphs - 1}.")
            return self._records[place]
        if isinstance(index, slice):
            return self._of(self._records[index])
        index = np.asarray(index)
        places = np.arange(len(self))[index if index.size else index.astype(int)]
        return self._of([self._records[t] for t in places])

    def __iter__(self) -> Iterator[GraphRecord]:
        return iter(self._records)

    @classmethod
    def _of(cls, records: Sequence[GraphRecord]) -> GraphDataset:
        if not records:
            raise InputIndexError("a data set needs at least one graph; this selection has none.")
        new = cls.__new__(cls)
        new._records = tuple(records)
        return new

    def __add__(self, other: GraphDataset) -> GraphDataset:
        return self._of([*self, *other])

    @property
    def n_nodes(self) -> tuple[int, ...]:
        return tuple(len(record.names) for record in self)

    @property
    def n_labels(self) -> int:
        """How many labels are known, over all graphs."""
        return sum(int(record.known.sum()) for record in self)

    @property
    def weighted(self) -> bool:
        """Whether any graph has weights."""
        return any(record.w is not None for record in self)

    def stacks(self) -> list[Stack]:
        """Return the graphs as arrays, one `Stack` per number of nodes.

        Each graph whose candidates are restricted has a stack of its own.
        """
        sizes = np.array(self.n_nodes)
        restricted = np.array([record.candidates is not None for record in self])
        groups = [np.flatnonzero((sizes == n) & ~restricted) for n in np.unique(sizes)]
        groups += [np.array([t]) for t in np.flatnonzero(restricted)]
        stacks = []
        for places in (group for group in groups if group.size):
            members = [self._records[t] for t in places]
            e, a, known = map(np.stack, zip(*((r.e, r.a, r.known) for r in members), strict=True))
            covariates = {
                name: _stacked(name, [record.covariates[name] for record in members])
                for name in members[0].covariates
                if all(name in record.covariates for record in members)
            }
            support, w = members[0].support, _stacked_weights(members)
            stacks.append(Stack(places, e, a, known, support, covariates, w))
        return stacks

    def __repr__(self) -> str:
        low, high = min(self.n_nodes), max(self.n_nodes)
        size = f"{low}" if low == high else f"{low} to {high}"
        total = sum(record.e.size for record in self)
        return (
            f"<GraphDataset: {len(self)} graphs of {size} nodes, "
            f"{self.n_labels} of {total} labels known>"
        )


def _stacked(name: str, columns: list[np.ndarray]) -> np.ndarray:
    if len({column.dtype.kind == "U" for column in columns}) > 1:
        raise InputError(f"the covariate {name!r} is a category in one graph, numbers in another.")
    return np.stack(columns)


def _stacked_weights(members: list[GraphRecord]) -> np.ndarray | None:
    if all(record.w is None for record in members):
        return None
    return np.stack([np.full(r.e.size, np.nan) if r.w is None else r.w for r in members])


def _one_for_each(parts: Iterable[object] | None, n_graphs: int, what: str) -> list[object]:
    parts = [None] * n_graphs if parts is None else list(parts)
    if len(parts) != n_graphs:
        problem = f"has {len(parts)} entries for {n_graphs} graphs; one for each."
        raise InputError(problem, argument=what)
    return parts


def _record(
    t: int,
    weighted: bool,
    e: object,
    a: object,
    names: Any,
    n_signals: Any,
    covariates: object,
    support: Any,
) -> GraphRecord:
    try:
        if n_signals is not None:
            n_signals = validate.check_number(n_signals, "n_signals")
        if n_signals is not None and not n_signals >= 1:
            raise InputError(f"must be at least 1; got {n_signals:g}.", argument="n_signals")
        names = getattr(e, "columns", None) if names is None else names
        vector, support = validate.check_distances(e, support, names)
        names = range(support.n_nodes) if names is None else names
        names = validate.check_names(names, support.n_nodes)
        vector = frozen(vector.copy())  # the caller's array stays the caller's
        unlabelled = GraphRecord(vector, vector, vector, names, n_signals)
        if isinstance(support, Restricted):
            unlabelled = unlabelled._replace(candidates=support)
        record = with_labels(unlabelled, a, weighted)
        return record._replace(covariates=pair_covariates(covariates, names, support))
    except InputError as error:
        raise error.but(graph=t) from None


def with_labels(record: GraphRecord, a: Any, weighted: bool) -> GraphRecord:
    """Return the graph with these labels, or weights if `weighted`; without any if None."""
    support, names, outside = record.support, record.names, None
    a = np.full(support.n_edges, np.nan) if a is None else a
    if hasattr(a, "columns"):  # by name, whatever order it comes in
        a = validate.same_nodes(a, "labels", names)
    if record.candidates is not None and np.ndim(a) == 2:
        a, outside = on_candidates(a, record.candidates)
    w = frozen(validate.check_edge_weights(a, support, names)) if weighted else None
    present = a if w is None else np.where(np.isnan(w), np.nan, w > 0)
    label, known = validate.check_labels(present, support, names)
    return record._replace(a=frozen(label), known=frozen(known), w=w, outside=outside)


def on_candidates(a: Any, support: Restricted) -> tuple[Float[np.ndarray, " edges"], Outside]:
    """Return the labels, or weights, of candidates, and what is known of the other pairs.

    Parameters
    ----------
    a : ndarray or sparse matrix, shape (N, N)
        Symmetric; NaN for unknown. What a sparse matrix does not list is no edge.
    support : Restricted

    Returns
    -------
    ndarray, shape (n_edges,)
    Outside

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data.dataset import on_candidates
    >>> from edgebelief.edges import Restricted
    >>> path = Restricted.from_pairs([(0, 1), (1, 2)])
    >>> on_candidates(np.array([[0, 1, 1], [1, 0, np.nan], [1, np.nan, 0]]), path)
    (array([ 1., nan]), Outside(n_labels=1, n_edges=1))
    """
    n = support.n_nodes
    if a.shape != (n, n):
        problem = f"has shape {a.shape}; on these nodes it must be {(n, n)}."
        raise InputError(problem, argument="labels")
    stored = coo_array(a)
    kept = (stored.row != stored.col) & (stored.data != 0)
    entries = stored.data[kept].astype(float), (stored.row[kept], stored.col[kept])
    listed = coo_array(entries, shape=(n, n)).tocsr()  # a copy: the matrix stays the caller's
    mirrored = listed.T.tocsr()
    for each in (listed, mirrored):
        each.sort_indices()
    same = np.array_equal(listed.indptr, mirrored.indptr)
    same = same and np.array_equal(listed.indices, mirrored.indices)
    if not (same and np.array_equal(listed.data, mirrored.data, equal_nan=True)):
        problem = "are a matrix that is not symmetric"
        raise InputError(problem, argument="labels", remedy="If direction means nothing, average")
    rows, cols = support.endpoints
    values = np.asarray(listed[rows, cols], float).ravel()
    unknown, edges = (
        (int(mask(listed.data).sum()) // 2 - int(mask(values).sum()))
        for mask in (np.isnan, lambda x: x > 0)
    )
    n_outside = pairs_of(n) - support.n_edges
    return values, Outside(n_outside - unknown, edges)


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array
