"""Graphs in the forms people have them: arrays, data frames, lists, NetworkX, sparse matrices.

`graphs_from` turns any of them into a `GraphDataset`. Which of an array's axes mean what is decided
here and nowhere else:

    distances   (N, N) one graph, (T, N, N) several       metric="precomputed"
    signals     (P, N) one graph, (T, P, N) several       any other metric
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import networkx as nx
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.sparse import coo_array

from ..edges import Restricted, Support
from ..errors import InputError, InputTypeError, InputWarning, Remedy, Setting, SettingError
from ..room import check_room
from ..validate import (
    as_floats,
    check_choice,
    check_names,
    check_signals,
    check_whole,
    same_nodes,
)
from .covariates import pair_covariates
from .dataset import GraphDataset, GraphRecord, Outside, frozen, with_labels
from .doubts import warn_of_doubts
from .files import edge_entries, edges_to_matrix
from .neighbours import Neighbors, listed_pairs, nearest_in, nearest_pairs
from .signals import Metric, Missing, Preprocess, distances, graph_matrix, transformed

TRANSPOSE = Remedy("Transpose them", Setting("transpose", True, python="X.T"))


class Graphs(NamedTuple):
    """A data set, whether it was given as one graph, and the signals if it was given as signals."""

    data: GraphDataset
    single: bool
    signals: tuple[Float[np.ndarray, "signals nodes"], ...] | None = None
    """Of each graph, as distances were computed from them, NaN where missing; the columns are in
    the order of the nodes."""

    def shaped(self, parts: Sequence[Any]) -> Any:
        """Return the array of one graph, or several stacked; a list of unlike or sparse ones."""
        if self.single:
            return parts[0]
        dense = all(isinstance(part, np.ndarray) for part in parts)
        alike = len({part.shape for part in parts}) == 1
        return np.stack(parts) if dense and alike else list(parts)


@dataclass(frozen=True)
class Nearest:
    """Only pairs of near neighbours may be edges.

    Parameters
    ----------
    n_neighbors : int
        How many each node chooses; a pair is a candidate if either node chooses the other.
    search : object with ``fit_transform(X)``, optional
        What finds them: see `data.nearest_pairs`.
    """

    n_neighbors: int = 20
    search: Neighbors | None = None

    def check(self, metric: object, missing: object) -> None:
        """Refuse what has no neighbours to be found."""
        check_whole(self.n_neighbors, "n_neighbors", 1)
        all_pairs = Remedy("take all pairs: {}", Setting("support", "complete"))
        if callable(metric):
            problem = "is a function of all pairs, and candidates are near neighbours"
            raise SettingError(problem, argument="metric", remedy=["Name a metric", all_pairs])
        if missing != "error":
            problem = "goes with all pairs: neighbours are of signals without gaps"
            raise SettingError(problem, argument="missing", remedy=["Fill the gaps", all_pairs])

    def among(self, given: Any) -> tuple[Restricted, Float[np.ndarray, " edges"]]:
        """Return the candidates of distances, and their values.

        The entries of a sparse matrix are the candidates; of a dense one, near neighbours are.
        """
        if hasattr(given, "tocoo"):
            return listed_pairs(given)
        matrix = same_nodes(given, "distances") if _is_frame(given) else given
        return nearest_in(as_floats(_checked_shape(matrix), "distances"), self.n_neighbors)

    def restricted(self, record: GraphRecord) -> GraphRecord:
        """Return a graph with near neighbours alone for candidates, if all pairs were."""
        if record.candidates is not None:
            return record
        support, _ = nearest_in(record.distance_matrix(), self.n_neighbors)
        near = record.support.to_vector(support.to_matrix(np.ones(support.n_edges))) > 0
        beyond = record.known & ~near
        return record._replace(
            e=frozen(record.e[near]),
            a=frozen(record.a[near]),
            known=frozen(record.known[near]),
            w=None if record.w is None else frozen(record.w[near]),
            covariates={name: frozen(x[near]) for name, x in record.covariates.items()},
            candidates=support,
            outside=Outside(int(beyond.sum()), int(record.a[beyond].sum())),
        )


def graphs_from(
    x: object,
    a: object = None,
    covariates: object = None,
    *,
    metric: Metric | str | Callable[[np.ndarray], object] = "precomputed",
    missing: Missing = "error",
    preprocess: Preprocess | None = None,
    weighted: bool = False,
    nearest: Nearest | None = None,
) -> Graphs:
    """Make a data set of whatever holds one graph or several.

    `x` holds distances or signals, by `metric`; the columns of a frame are node names. A
    `GraphDataset`, or a list of its records, holds distances whatever the metric. A function as
    `metric` takes an array (P, N) and returns distances, (n_edges,) or (N, N). For `missing` and
    `preprocess` see `distances` and `transformed`.

    `a` holds labels (0, 1, NaN for unknown), or weights if `weighted` (above 0 for an edge, 0 for
    none, NaN for unknown). A frame is an adjacency (node names on both sides) or an edge list:
    columns source, target and, if wanted, one of labels; pairs that are not listed are no edges.
    Weights are the attribute weight of a `networkx.Graph`; in an edge list the column weight, or
    the only one beside source and target. An entry of a sequence may be None: no labels.

    For `covariates` see `pair_covariates`; they are added to those that a `GraphDataset` has.

    With `nearest` only pairs of near neighbours may be edges. Nothing is then of the size N x N:
    distances are a sparse matrix, whose entries are the candidates, or come from signals.

    Examples
    --------
    >>> import networkx as nx
    >>> from edgebelief.data.coerce import graphs_from
    >>> signals = [[0.0, 1.0, 3.0], [0.0, 1.0, 1.0]]
    >>> graphs_from(signals, nx.path_graph(3), metric="sqeuclidean").data
    <GraphDataset: 1 graphs of 3 nodes, 3 of 3 labels known>
    """
    check_form(metric, missing, preprocess)
    if nearest is not None:
        nearest.check(metric, missing)
    data, signals = _records(x), None
    if data is not None and nearest is not None:
        data = GraphDataset._of([nearest.restricted(record) for record in data])
    several = partial(_parts, sparse=nearest is not None)
    parts, single = several(x) if data is None else (list(data), isinstance(x, GraphRecord))
    try:
        labels = None if a is None else _label_parts(a, len(parts), single)
        if data is None:
            label_of = [None] * len(parts) if labels is None else labels
            how = metric, missing, preprocess, nearest
            measured = (
                _measured(None if single else t, part, label_of[t], *how)
                for t, part in enumerate(parts)
            )
            e, names, counts, tables, supports = zip(*measured, strict=True)
            data = GraphDataset(e, names=names, n_signals=counts, supports=supports)
            signals = None if any(table is None for table in tables) else tables
        data = data if labels is None else _labelled(data, labels, weighted)
        data = data if covariates is None else _informed(data, covariates)
        return Graphs(data, single, signals)
    except InputError as error:
        if not single or error.graph is None:
            raise
        raise error.but(graph=None) from None  # it is the only one, and needs no number


def check_form(metric: object, missing: object, preprocess: object) -> None:
    """Refuse settings of `graphs_from` that there are not."""
    if not callable(metric):
        check_choice(metric, "metric", ("precomputed", *get_args(Metric)), ", or a function")
    check_choice(missing, "missing", get_args(Missing))
    check_choice(preprocess, "preprocess", (None, *get_args(Preprocess)))
    if preprocess is not None and isinstance(metric, str) and metric == "precomputed":
        problem = "is for signals; the metric 'precomputed' says that X holds distances."
        raise SettingError(problem, argument="preprocess")


def rescaled(data: GraphDataset, factors: Sequence[float]) -> GraphDataset:
    """Multiply the distances of each graph by its factor."""
    with np.errstate(over="ignore"):  # infinite ones are for the caller to refuse
        scaled = [frozen(record.e * factor) for record, factor in zip(data, factors, strict=True)]
    return GraphDataset._of([record._replace(e=e) for record, e in zip(data, scaled, strict=True)])


@contextmanager
def _in_graph(t: int | None) -> Iterator[None]:
    """Have errors say which graph they are about."""
    try:
        yield
    except InputError as error:
        raise error.but(graph=t) from None


def _records(x: object) -> GraphDataset | None:
    """Return the data set, if that is what came (cross-validation hands over its records)."""
    if isinstance(x, GraphDataset):
        return x
    if isinstance(x, GraphRecord):
        return GraphDataset._of([x])
    if isinstance(x, list | tuple) and x and all(isinstance(one, GraphRecord) for one in x):
        return GraphDataset._of(list(x))
    return None


def _parts(x: Any, sparse: bool = False) -> tuple[list[Any], bool]:
    """Return the matrices of the graphs, and whether there was one that stood alone."""
    wrong = partial(InputTypeError, argument="X")
    if x is None:
        raise wrong("is None; it must hold the distances or the signals of graphs.")
    if isinstance(x, dict):
        raise wrong("is a dict; pass a list of its values, or one graph at a time.")
    if isinstance(x, nx.Graph):
        raise wrong("is a graph; it must hold what was measured. Graphs are the labels, A.")
    if hasattr(x, "toarray"):
        if sparse:
            return [x], True
        remedy = Remedy("say that its entries are the candidates: {}", Setting("support", "knn"))
        problem = "is sparse, and distances of all pairs are not"
        raise wrong(problem, remedy=["Pass X.toarray()", remedy])
    if isinstance(x, str | bytes):
        raise wrong(f"is text ({x[:40]!r}); read the file first (edgebelief.data).")
    if _is_frame(x):
        return [x], True
    if isinstance(x, list | tuple):
        if len(x) == 0:
            raise InputError("is empty: no graphs.", argument="X")
        several = any(_is_frame(one) or getattr(one, "ndim", 0) > 0 for one in x)
        nested = all(isinstance(one, list | tuple) for one in x)
        if several or (nested and any(isinstance(one[0], list | tuple) for one in x if one)):
            return list(x), False
    array = as_floats(x, "X")
    if array.ndim == 3:
        return list(array), False
    if array.ndim in (1, 2):
        return [array], True
    problem = "one graph has 2, (N, N) distances or (P, N) signals, and several have 3."
    raise InputError(f"has {array.ndim} axes, shape {array.shape}; {problem}", argument="X")


def _is_frame(x: object) -> bool:
    if hasattr(x, "columns") and not isinstance(x, pd.DataFrame):
        name = type(x).__name__
        raise InputTypeError(f"a {name} is no pandas data frame; convert it (to_pandas).")
    return isinstance(x, pd.DataFrame)


class Measured(NamedTuple):
    """What was measured of one graph."""

    e: Any
    names: Any
    n_signals: float | None = None
    signals: Float[np.ndarray, "signals nodes"] | None = None
    support: Support | None = None


def _measured(
    t: int | None,
    part: Any,
    label: object,
    metric: Any,
    missing: Missing,
    preprocess: Preprocess | None,
    nearest: Nearest | None,
) -> Measured:
    """Return the distances, names, number of signals, signals and candidates of one graph.

    `t` says which graph it is, of several.
    """
    names = part.columns if _is_frame(part) else None
    if isinstance(metric, str) and metric == "precomputed":
        with _in_graph(t):
            if nearest is not None:
                candidates, values = nearest.among(part)
                return Measured(values, names, support=candidates)
            return Measured(
                _checked_shape(part if _is_frame(part) else as_floats(part, "X")), names
            )
    with _in_graph(t):
        try:
            x = check_signals(part, names, allow_nan=missing == "pairwise")
        except InputError as error:
            raise error if nearest is None else _without_pairwise(error) from None
        _check_orientation(x.shape, label)
        if nearest is None:
            check_room(x.shape[1])  # N columns become N(N-1)/2 pairs
        if preprocess is not None:
            part = transformed(part, preprocess)
            x = check_signals(part, names, allow_nan=missing == "pairwise")
        names = check_names(range(x.shape[1]) if names is None else names, x.shape[1])
        support: Restricted | None = None
        e: Any = None
        if nearest is not None:
            support, e = nearest_pairs(part, nearest.n_neighbors, metric, nearest.search)
        elif not callable(metric):
            e = distances(part, metric, missing)
    if e is None:
        e = metric(x)  # what a user's function raises is not reworded
        with _in_graph(t):
            e = as_floats(e, "what the metric returned")
            if e.shape not in ((len(names),) * 2, (len(names) * (len(names) - 1) // 2,)):
                wanted = f"of {len(names)} nodes it must be a matrix, or a vector over the pairs"
                raise InputError(f"the metric returned shape {e.shape}; {wanted}.")
    with _in_graph(t):
        sides = (part.index, part.columns) if _is_frame(part) else None
        warn_of_doubts(x, metric, sides, graph=t, stacklevel=5)
    return Measured(e, names, float(np.mean((~np.isnan(x)).sum(0))), x, support)


def _without_pairwise(error: InputError) -> InputError:
    """Leave out the remedy that neighbours do not have: pairs that use the signals of both."""
    listed = [error.remedy] if isinstance(error.remedy, str | Remedy) else error.remedy
    of_missing = (isinstance(r, Remedy) and r.setting.name == "missing" for r in listed)
    return error.but(remedy=[r for r, is_it in zip(listed, of_missing, strict=True) if not is_it])


def _checked_shape(distances: Any) -> Any:
    shape = np.shape(distances)
    if len(shape) == 2 and shape[0] != shape[1]:
        remedy = Remedy(
            "If these are signals (rows observations, columns nodes), say which distance: {}, "
            "sqeuclidean or log-euclidean",
            Setting("metric", "correlation"),
        )
        problem = f"must be a square matrix; got shape {shape}"
        raise InputError(problem, argument="distances", remedy=remedy)
    return distances


def _check_orientation(shape: tuple[int, ...], label: Any) -> None:
    """Refuse signals that lie on their side, where the labels' size tells."""
    n_nodes = 0
    remedy: list[str | Remedy] = [TRANSPOSE]
    if isinstance(label, nx.Graph):
        n_nodes = label.number_of_nodes()
        remedy += ["give the label graph all of its nodes, those without edges too"]
    elif np.ndim(label) == 2 and not is_edge_list(label):
        n_nodes = label.shape[0]
    if n_nodes == shape[0] != shape[1]:
        problem = (
            f"have a column per node; these have shape {shape}, and the labels {n_nodes} nodes"
        )
        raise InputError(problem, argument="signals", remedy=remedy)


def _label_parts(a: Any, n_graphs: int, single: bool) -> list[Any]:
    """Return the labels of each graph."""
    if isinstance(a, list | tuple):  # of graphs, or the rows or the entries of one
        one = single and not (len(a) == 1 and not np.isscalar(a[0]))
    else:
        whole = isinstance(a, nx.Graph) or hasattr(a, "toarray") or _is_frame(a)
        one = whole or np.ndim(a) in (1, 2)
    iterable = hasattr(a, "__iter__") and not isinstance(a, str | bytes | dict)
    if not one and not (iterable and getattr(a, "ndim", 1) > 0):
        forms = "arrays, sparse matrices, NetworkX graphs or data frames, one or a list of them"
        problem = f"must hold the labels of graphs ({forms}); got {type(a).__name__}."
        raise InputTypeError(problem, argument="A")
    parts = [a] if one else list(a)
    if len(parts) != n_graphs:
        problem = f"has the labels of {len(parts)} graphs and X has {n_graphs}"
        raise InputError(problem, argument="A", remedy="one for each, None where there are none")
    for t, part in enumerate(parts):
        if isinstance(part, list | tuple):
            with _in_graph(t):
                parts[t] = as_floats(part, "labels")
    return parts


def is_edge_list(label: Any) -> bool:
    """Whether labels are a table with a row per edge, not one with a row per node."""
    return _is_frame(label) and {"source", "target"} <= set(label.columns)


def _labelled(data: GraphDataset, labels: Sequence[object], weighted: bool) -> GraphDataset:
    """Return the graphs with other labels."""
    records = []
    for t, (record, label) in enumerate(zip(data, labels, strict=True)):
        with _in_graph(t):
            form = _adjacency if record.candidates is None else _sparse_adjacency
            matrix = None if label is None else form(label, record.names, weighted)
            records.append(with_labels(record, matrix, weighted))
    return GraphDataset._of(records)


def _informed(data: GraphDataset, covariates: Any) -> GraphDataset:
    """Return the graphs with more known of their pairs."""
    whole = _is_frame(covariates) or isinstance(covariates, Mapping)
    parts = [covariates] if whole else list(covariates)
    if len(parts) != len(data):
        problem = f"are those of {len(parts)} graphs and X has {len(data)}; one for each."
        raise InputError(problem, argument="covariates")
    records = []
    for t, (record, given) in enumerate(zip(data, parts, strict=True)):
        with _in_graph(t):
            known = {**record.covariates, **pair_covariates(given, record.names, record.support)}
            records.append(record._replace(covariates=known))
    return GraphDataset._of(records)


def _adjacency(label: Any, names: tuple[str, ...], weighted: bool) -> pd.DataFrame | np.ndarray:
    """Return labels as a matrix in the order of `names`, or as a vector, not yet checked."""
    if isinstance(label, nx.Graph):
        if weighted:
            check_has_weights(label)
        return _graph_matrix(label, names)
    if is_edge_list(label):
        value = weight_column(label) if weighted else None
        return edges_to_matrix(label, value, names=names, fill=0.0)
    if _is_frame(label):
        return label
    return as_floats(label.toarray() if hasattr(label, "toarray") else label, "labels")


def _sparse_adjacency(label: Any, names: tuple[str, ...], weighted: bool) -> Any:
    """Return labels of a large graph as a sparse matrix, without one of the size N x N."""
    if hasattr(label, "tocsr"):
        return label.tocsr()
    if isinstance(label, nx.Graph):
        if weighted:
            check_has_weights(label)
        label = _edge_list(label, names)
    if not is_edge_list(label):
        return _adjacency(label, names, weighted)
    value = weight_column(label) if weighted else None
    _, i, j, values = edge_entries(label, value, names=names)
    both = np.concatenate([i, j]), np.concatenate([j, i])
    shape = len(names), len(names)
    return coo_array((np.concatenate([values, values]), both), shape=shape).tocsr()


def same_group(groups: object, names: Sequence[object] | None = None) -> pd.DataFrame:
    """Return labels that join the nodes of one group: 1 within a group, 0 between two.

    A node without a group (absent, None, NaN or empty) says nothing: its pairs are NaN, unknown.
    Nor does a node that is alone in its group in all of `groups`: "other" and "none" are often
    spelled so. A group with other members, of which `names` has one, does say that it is apart.

    Parameters
    ----------
    groups : mapping, Series or sequence
        The group of each node: by node, or in the order of the nodes. It may have more nodes.
    names : sequence, optional
        The nodes of the graph, in their order; by default those of `groups`, or 0, 1, ...

    Returns
    -------
    DataFrame
        An adjacency with names, which `GraphLearner.fit` takes for A.

    Examples
    --------
    >>> from edgebelief.data import same_group
    >>> same_group({"AAPL": "tech", "MSFT": "tech", "XOM": "oil", "CVX": "oil", "new": None})
          AAPL  MSFT  XOM  CVX  new
    AAPL   0.0   1.0  0.0  0.0  NaN
    MSFT   1.0   0.0  0.0  0.0  NaN
    XOM    0.0   0.0  0.0  1.0  NaN
    CVX    0.0   0.0  1.0  0.0  NaN
    new    NaN   NaN  NaN  NaN  0.0
    """
    by_node = isinstance(groups, Mapping | pd.Series)
    listed: list[Any] = list(groups.items() if by_node else enumerate(groups))  # type: ignore
    if not by_node and names is not None:
        if len(listed) != len(names):
            problem = f"are {len(listed)} for {len(names)} nodes; one for each, or by name."
            raise InputError(problem, argument="groups")
        listed = [(name, group) for name, (_, group) in zip(names, listed, strict=True)]
    nodes = [str(name) for name in ([name for name, _ in listed] if names is None else names)]
    check_names([str(name) for name, _ in listed], len(listed), "the nodes of the groups")
    named = {str(n): str(g).strip() for n, g in listed if not pd.isna(g) and str(g).strip()}
    sizes = Counter(named.values())
    said = {name: group for name, group in named.items() if sizes[group] > 1}
    group = np.array([said.get(name, "") for name in nodes], dtype=object)
    known = group != ""
    same = np.where(known[:, None] & known, (group[:, None] == group).astype(float), np.nan)
    np.fill_diagonal(same, 0.0)
    if known.sum() < 2:
        least = "at least two must be in groups of two or more"
        problem = f"no pair is known: {known.sum()} of {len(nodes)} nodes have a group; {least}."
        raise InputError(problem, argument="groups")
    return pd.DataFrame(same, index=nodes, columns=nodes)


def check_has_weights(graph: nx.Graph) -> None:
    """Refuse a graph with edges that have no attribute weight, which would count as one."""
    for i, j, weight in graph.edges(data="weight"):
        if weight is None:
            without = Remedy("leave {} out for a graph without weights", Setting("weighted"))
            problem = f"the edge {i!r}, {j!r} has no attribute weight"
            raise InputError(problem, remedy=["give it one", without])


def weight_column(table: pd.DataFrame, where: str | Path = "the edge list") -> str:
    """Return the column of an edge list with the weights: that called weight, or the only one."""
    others = [str(name) for name in table.columns if name not in ("source", "target")]
    if "weight" not in others and len(others) != 1:
        problem = f"no column weight beside source and target; it has {list(table.columns)}."
        raise InputError(problem, where=where)
    return "weight" if "weight" in others else others[0]


def _edge_list(graph: nx.Graph, names: tuple[str, ...]) -> pd.DataFrame:
    """Return the edges of a graph whose nodes are among these, with a weight each."""
    if graph.is_directed():
        raise InputError("the label graph must be undirected; see networkx.Graph.to_undirected.")
    _check_label_graph(graph, names)
    rows = [(str(i), str(j), w) for i, j, w in graph.edges(data="weight", default=1.0)]
    return pd.DataFrame(rows, columns=["source", "target", "weight"])


def _graph_matrix(graph: nx.Graph, names: tuple[str, ...]) -> Float[np.ndarray, "nodes nodes"]:
    """Return the adjacency by node name; a node that the graph does not have has no edges."""
    weights = graph_matrix(graph)
    named = _check_label_graph(graph, names)
    matrix = pd.DataFrame(weights, named, named, dtype=float)
    return matrix.reindex(index=names, columns=names, fill_value=0.0).to_numpy()


def _check_label_graph(graph: nx.Graph, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a label graph's nodes, which must be among these."""
    named = check_names(graph.nodes, len(graph), "the label graph's nodes")
    if unknown := sorted(set(named) - set(names)):
        raise InputError(
            f"the label graph has nodes {unknown[:5]} that X has not; X's are {list(names[:5])} ..."
        )
    return named


def warn_if_alike(data: GraphDataset) -> None:
    """Warn of graphs whose distances are all equal: they do not tell which edges are there."""
    for t, record in enumerate(data):
        if record.e.size > 1 and np.ptp(record.e) == 0:
            problem = f"all its distances are {record.e[0]:g}; every edge will be believed alike."
            warnings.warn(InputWarning(problem, graph=_number(t, data)), stacklevel=3)


def warn_if_on_their_side(data: GraphDataset, fitted: Sequence[int]) -> None:
    """Warn of new graphs with as many signals as the fitted graphs have nodes, and other nodes."""
    for t, record in enumerate(data):
        n_nodes = len(record.names)
        if n_nodes not in fitted and record.n_signals in fitted:
            problem = (
                f"it has {n_nodes} nodes and {record.n_signals:g} signals, and the model was fitted"
                f" to graphs of {record.n_signals:g} nodes: do the signals lie on their side?"
            )
            warning = InputWarning(problem, graph=_number(t, data), remedy=TRANSPOSE)
            warnings.warn(warning, stacklevel=4)


def _number(t: int, data: GraphDataset) -> int | None:
    """Return the index of a graph, for a message; the only one needs none."""
    return t if len(data) > 1 else None
