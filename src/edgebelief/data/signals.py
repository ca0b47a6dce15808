"""Smooth signals on a graph, and the distances between nodes that they give.

White noise through a low-pass filter h of the graph's Laplacian L (divided by its largest
eigenvalue, so that h sees [0, 1] on every graph): x = h(L) x0. Nodes that are joined then carry
similar values. The paper's filter is h(l) = 1/sqrt(l), with 0 at l = 0.
"""

from __future__ import annotations

import abc
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.linalg import eigh
from scipy.spatial.distance import pdist

from ..edges import Complete
from ..errors import InputError, InputTypeError, Remedy, Setting
from ..room import check_simulation
from ..validate import (
    as_floats,
    check_choice,
    check_signals,
    check_symmetric,
    check_whole,
    node_name,
)
from .randomness import Key, generator

if TYPE_CHECKING:
    import networkx as nx

# Eigenvalues lie in [0, 1]; up to this they are the rounding of a zero.
ZERO = 1e-10


@dataclass(frozen=True)
class Filter(abc.ABC):
    """A spectral response h on [0, 1]. Abstract."""

    @abc.abstractmethod
    def response(self, frequency: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return h at eigenvalues of the normalised Laplacian."""


@dataclass(frozen=True)
class SquareRootInverse(Filter):
    """h(l) = l^(-1/2), and 0 at l = 0: x = (L+)^(1/2) x0, the paper's. The covariance is L+."""

    def response(self, frequency: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        live = frequency > ZERO
        return np.where(live, 1 / np.sqrt(np.where(live, frequency, 1.0)), 0.0)


@dataclass(frozen=True)
class Heat(Filter):
    """h(l) = exp(-t l): heat that has spread for a time `t`."""

    t: float = 10.0

    def response(self, frequency: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return np.exp(-self.t * frequency)


@dataclass(frozen=True)
class Tikhonov(Filter):
    """h(l) = 1/(1 + weight l): what Tikhonov denoising returns for white noise."""

    weight: float = 10.0

    def response(self, frequency: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return 1 / (1 + self.weight * frequency)


def adjacency_of(graph: object) -> Float[np.ndarray, "nodes nodes"]:
    """Return the adjacency matrix of a NetworkX graph, sparse matrix or array, with its weights.

    Examples
    --------
    >>> import networkx as nx
    >>> from edgebelief.data import adjacency_of
    >>> adjacency_of(nx.path_graph(3))
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    if is_networkx(graph):
        graph = graph_matrix(graph)
    matrix = as_floats(graph.toarray() if hasattr(graph, "toarray") else graph, "the adjacency")
    if matrix.ndim != 2 or len(matrix) < 2:
        problem = f"must be a square matrix; got shape {matrix.shape}."
        raise InputError(problem, argument="the adjacency")
    support = Complete(len(matrix))
    matrix = support.to_matrix(check_symmetric(matrix, support, "the adjacency"))
    if (matrix < 0).any():
        i, j = np.argwhere(matrix < 0)[0]
        problem, where = f"is {matrix[i, j]:g}; smoothness needs weights >= 0.", (int(i), int(j))
        raise InputError(problem, argument="the adjacency", where=where)
    return matrix


def is_networkx(graph: object) -> TypeGuard[nx.Graph]:
    """Whether it is a NetworkX graph. NetworkX is not imported: whoever made one has done so."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(graph, networkx.Graph)


def graph_matrix(graph: nx.Graph) -> Float[np.ndarray, "nodes nodes"]:
    """Return the adjacency matrix of an undirected NetworkX graph, in the order of its nodes."""
    if graph.is_directed():
        raise InputError("the graph must be undirected; see networkx.Graph.to_undirected.")
    import networkx as nx

    try:
        return nx.to_numpy_array(graph)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"a weight of the graph is no number ({error}).") from None


def smooth_signals(
    key: Key | int, graph: object, n_signals: int, filter: Filter = SquareRootInverse()
) -> Float[np.ndarray, "signals nodes"]:
    """Draw signals that vary little along the edges of a graph.

    Parameters
    ----------
    key : JAX key or int
        Same key, same signals; asking for more leaves the first ones as they were (to rounding).
    graph : networkx.Graph or array_like, shape (N, N)
    n_signals : int
    filter : Filter
        `SquareRootInverse` (the paper's), `Heat` or `Tikhonov`.

    Returns
    -------
    x : ndarray, shape (n_signals, N)
        A row per signal, a column per node.

    Examples
    --------
    >>> from edgebelief.data import RandomGeometric, smooth_signals
    >>> graph = RandomGeometric(radius=0.5).sample(key=0, n_nodes=10)
    >>> smooth_signals(1, graph, n_signals=100).shape
    (100, 10)
    """
    n_signals = check_whole(n_signals, "n_signals", 1)
    operator = _filter_matrix(graph, filter)
    check_simulation(len(operator), n_signals)
    white = generator(key).standard_normal((n_signals, len(operator)))
    return white @ operator


Preprocess = Literal["log", "diff", "log-returns", "standardize"]


RAW = Remedy(
    "compare values as they are: {}", Setting("preprocess", "none", python="preprocess=None")
)


def transformed(x: Any, preprocess: Preprocess) -> Any:
    """Make signals fit to be compared: prices to returns, levels to changes.

    Parameters
    ----------
    x : array_like or DataFrame, shape (n_signals, N)
    preprocess : {"log", "diff", "log-returns", "standardize"}
        The logarithm; the change from one row to the next; the change of the logarithm; or each
        node's values less their mean, over their standard deviation.

    Returns
    -------
    ndarray or DataFrame
        As `x`, in float64; a row less where changes are taken. Gaps stay gaps.

    Examples
    --------
    >>> from edgebelief.data import transformed
    >>> transformed([[1.0, 4.0], [2.0, 2.0]], "log-returns").round(3)
    array([[ 0.693, -0.693]])
    """
    check_choice(preprocess, "preprocess", get_args(Preprocess))
    names = getattr(x, "columns", None)
    values = check_signals(x, names, allow_nan=True)
    if preprocess in ("log", "log-returns"):
        if (values <= 0).any():
            p, i = np.argwhere(values <= 0)[0]
            problem = f"is {values[p, i]:g}, which has no logarithm"
            where = int(p), node_name(i, names)
            remedy = ["Correct it", "make it a gap (NaN)", "preprocess them in another way"]
            raise InputError(problem, argument="signals", where=where, remedy=remedy)
        values = np.log(values)
    if preprocess != "log" and len(values) < 2:
        what = "a standard deviation needs" if preprocess == "standardize" else "changes need"
        problem = f"{what} at least two rows of signals; there is 1 sample"
        raise InputError(problem, remedy=["Add rows", RAW])
    if preprocess in ("diff", "log-returns"):
        values = np.diff(values, axis=0)
    if preprocess == "standardize":
        there = ~np.isnan(values)
        counts = np.maximum(there.sum(0), 1)
        centred = values - np.where(there, values, 0).sum(0) / counts
        spread = np.sqrt((np.where(there, centred, 0) ** 2).sum(0) / counts)
        flat = spread <= 1e-12 * np.where(there, np.abs(values), 0).max(0)
        if flat.any():
            name = node_name(np.argmax(flat), names)
            if not there[:, np.argmax(flat)].any():
                raise InputError(f"node {name!r} has no values, only gaps", remedy="Leave it out")
            problem = f"node {name!r} is constant: it cannot be standardized"
            raise InputError(problem, remedy=["Leave it out", RAW])
        values = centred / spread
    if names is None:
        return values
    return pd.DataFrame(values, index=x.index[len(x) - len(values) :], columns=names)


Metric = Literal["sqeuclidean", "log-euclidean", "correlation"]
Missing = Literal["error", "pairwise"]
# Correlations of copies differ from 1 by so much at most: 2e-16 to 5e-15 for up to 1e6 signals.
ROUNDING = 1e-14
SQUARED = Remedy("use {}", Setting("metric", "sqeuclidean"))


def distances(
    x: object, metric: Metric = "sqeuclidean", missing: Missing = "error"
) -> Float[np.ndarray, " edges"]:
    """Return distances between nodes, averaged over signals so that P does not matter.

    Parameters
    ----------
    x : array_like, shape (n_signals, N)
        A row per observation, a column per node, as data frames have them.
    metric : {"sqeuclidean", "log-euclidean", "correlation"}
        ||x_i - x_j||^2 / P;  log10 of its square root;  or  1 - |correlation|.
    missing : {"error", "pairwise"}
        What to do about gaps (NaN): refuse them, or use for each pair the signals in which both
        nodes are there. Pairs with fewer signals are then noisier, and nothing here knows it.

    Returns
    -------
    e : ndarray, shape (N(N-1)/2,)
        In `np.triu_indices(N, k=1)` order. Log distances may be negative; so much is legitimate.

    Examples
    --------
    >>> from edgebelief.data import distances
    >>> distances([[0.0, 1.0, 3.0], [0.0, 1.0, 1.0]])
    array([1., 5., 2.])
    """
    check_choice(metric, "metric", get_args(Metric))
    check_choice(missing, "missing", get_args(Missing))
    names = getattr(x, "columns", None)
    x = check_signals(x, names, allow_nan=missing == "pairwise")
    gaps = bool(np.isnan(x).any())
    if gaps:
        _check_overlap(x, names, at_least=2 if metric == "correlation" else 1)
    if metric == "correlation":
        return _correlation_distances(x, names)
    # By differences, not through the Gram matrix: near pairs keep their digits, none is below zero.
    e = _mean_squares(x) if gaps else pdist(x.T, "sqeuclidean") / len(x)
    if metric == "sqeuclidean":
        return e
    if (e == 0).any():
        pair = _pair(np.argmin(e), x.shape[1], names)
        problem = f"nodes {pair} have identical signals: their log distance is -inf"
        raise InputError(problem, remedy=["Merge them", SQUARED])
    return np.log10(e) / 2


def _mean_squares(x: Float[np.ndarray, "signals nodes"]) -> Float[np.ndarray, " edges"]:
    """Return the mean of (x_i - x_j)^2 over the signals that have both."""
    rows = [np.nanmean((x[:, i + 1 :] - x[:, [i]]) ** 2, axis=0) for i in range(x.shape[1] - 1)]
    return np.concatenate(rows)


def _check_overlap(
    x: Float[np.ndarray, "signals nodes"], names: Sequence[Hashable] | None, at_least: int
) -> None:
    there = (~np.isnan(x)).astype(float)
    common = there.T @ there
    short = common < at_least
    if short.any():
        alone = np.flatnonzero(np.diagonal(short))  # a node that is hardly there comes first
        i, j = (alone[0], alone[0]) if alone.size else np.argwhere(short)[0]
        first, second = node_name(i, names), node_name(j, names)
        both = f"node {first!r}" if i == j else f"the pair {first!r}, {second!r}"
        problem = f"{both} appears in {int(common[i, j])} signals, and {at_least} are needed"
        raise InputError(problem, remedy=["Leave a node out", "fill the gaps"])


def _correlation_distances(
    x: Float[np.ndarray, "signals nodes"], names: Sequence[Hashable] | None
) -> Float[np.ndarray, " edges"]:
    check_varying(x, names)
    matrix = pd.DataFrame(x).corr().to_numpy() if np.isnan(x).any() else np.corrcoef(x.T)
    correlation = Complete(x.shape[1]).to_vector(matrix)
    if np.isnan(correlation).any():
        pair = _pair(np.argmax(np.isnan(correlation)), len(matrix), names)
        problem = f"where nodes {pair} both have signals, one is constant: they have no correlation"
        raise InputError(problem, remedy=["Leave one out", "fill the gaps"])
    return zero_if_rounding(1 - np.abs(correlation))


def check_varying(x: Float[np.ndarray, "signals nodes"], names: Sequence[Hashable] | None) -> None:
    """Refuse signals that have no correlation: a single one, or nodes that are constant."""
    if len(x) < 2:
        problem = "a correlation needs at least two rows of signals; there is 1 sample"
        raise InputError(problem, remedy=["Add rows", SQUARED])
    flat = np.nanmax(x, 0) - np.nanmin(x, 0) <= 1e-12 * np.nanmax(np.abs(x), 0)
    if flat.any():
        name = node_name(np.argmax(flat), names)
        problem = f"node {name!r} is constant over the {len(x)} signals: it has no correlation"
        raise InputError(problem, remedy=["Leave it out", SQUARED])


def zero_if_rounding(e: Float[np.ndarray, " edges"]) -> Float[np.ndarray, " edges"]:
    """Return `e`, with zero for what is the rounding of a correlation of 1."""
    return np.where(e > ROUNDING, e, 0.0)


def _pair(k: np.intp, n_nodes: int, names: Sequence[Hashable] | None) -> str:
    i, j = (node_name(end[k], names) for end in Complete(n_nodes).endpoints)
    return f"{i!r} and {j!r}"


def expected_distances(
    graph: object, filter: Filter = SquareRootInverse()
) -> Float[np.ndarray, " edges"]:
    """Return what `distances` of `smooth_signals` tends to: C_ii + C_jj - 2 C_ij, C = h(L)^2.

    For the paper's filter C is the pseudo-inverse of the Laplacian, and these are resistances.

    Examples
    --------
    >>> from edgebelief.data import expected_distances
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> expected_distances(path).round(6)  # largest eigenvalue 3; 1 + 1 = 2 apart
    array([3., 6., 3.])
    """
    operator = _filter_matrix(graph, filter)
    covariance = operator @ operator
    variances = np.diagonal(covariance)
    e = variances[:, None] + variances[None, :] - 2 * covariance
    return Complete(len(variances)).to_vector(e)


def _filter_matrix(graph: object, filter: Filter) -> Float[np.ndarray, "nodes nodes"]:
    """Return h(L), with L the combinatorial Laplacian over its largest eigenvalue."""
    weights = adjacency_of(graph)
    frequency, modes = eigh(np.diag(weights.sum(1)) - weights)
    if not frequency[-1] > 0:
        raise InputError("the graph has no edges: there is nothing for a signal to be smooth on.")
    frequency = np.maximum(frequency / frequency[-1], 0.0)
    response = filter.response(frequency)
    parts = int((frequency <= ZERO).sum())
    if parts > 1 and response[0] == 0:
        problem = f"the graph has {parts} components, and {filter} gives no distance between them"
        raise InputError(problem, remedy=["use a connected graph", "the filter Heat or Tikhonov"])
    return (modes * response) @ modes.T
