"""Propagate belief in edges to functions of the whole graph, by sampling graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..data.dataset import GraphRecord
from ..data.randomness import Key
from ..errors import InputError, InputTypeError
from ..infer.posterior import Posterior
from .predict import DataLike, as_dataset, sample_graphs

if TYPE_CHECKING:
    import networkx as nx

# A row per drawn graph: numbers, a column per key of the mapping, or arrays stacked.
DrawnValues = pd.Series | pd.DataFrame | np.ndarray


def propagate(
    key: Key | int,
    posterior: Posterior,
    data: DataLike,
    function: Callable[[nx.Graph], object],
    n: int = 100,
    *,
    connected: bool = False,
) -> list[DrawnValues]:
    """Draw from the posterior predictive of a function of a graph, for each graph of a data set.

    Right for functions of what sampled graphs keep, such as degrees, density or the weight of a
    cut. Of others, such as the number of pieces or the algebraic connectivity, it gives what graphs
    have whose edges are independent given the parameters: see `sample_graphs`, and `connected`.

    Parameters
    ----------
    key : JAX key or int
    posterior, data
        As for `predict`.
    function : callable
        A function of a `networkx.Graph` whose nodes are the names. It returns a number, an array,
        or a mapping.
    n : int
        The number of graphs to draw.
    connected : bool
        Whether to draw given that the graph is connected, as `sample_graphs` does.

    Returns
    -------
    list of Series, DataFrame or array
        A row per drawn graph: numbers, a column per key of the mapping, or arrays stacked.

    Examples
    --------
    >>> import networkx as nx
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 5, n_nodes=8, n_signals=100)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> [pieces] = belief.propagate(0, posterior, graphs[:1], nx.number_connected_components, 20)
    >>> pieces.shape, int(pieces.min()) >= 1
    ((20,), True)
    """
    data = as_dataset(data)
    drawn = sample_graphs(key, posterior, data, n, connected=connected)
    return [
        _collected([function(to_networkx(record, edges)) for edges in graphs])
        for record, graphs in zip(data, drawn, strict=True)
    ]


def to_networkx(
    record: GraphRecord, edges: ArrayLike, **attributes: Sequence[float] | np.ndarray
) -> nx.Graph:
    """Make a graph of the chosen edges, with the nodes' names.

    Parameters
    ----------
    record : GraphRecord
    edges : array_like of bool or int, shape (n_edges,)
        True or 1 for each candidate edge that the graph has.
    **attributes : sequence of float
        A number for each candidate edge, as an attribute of that name.

    Examples
    --------
    >>> from edgebelief.belief import to_networkx
    >>> from edgebelief.data import GraphDataset
    >>> [record] = GraphDataset([[1.0, 2.0, 3.0]], names=[["ada", "bob", "cy"]])
    >>> graph = to_networkx(record, [True, False, False], probability=[0.9, 0.2, 0.1])
    >>> list(graph), list(graph.edges(data=True))
    (['ada', 'bob', 'cy'], [('ada', 'bob', {'probability': 0.9})])
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(record.names)
    rows, cols = record.support.endpoints
    for k in np.flatnonzero(edges).tolist():
        numbers = {name: float(values[k]) for name, values in attributes.items()}
        graph.add_edge(record.names[rows[k]], record.names[cols[k]], **numbers)
    return graph


def _collected(values: list[object]) -> DrawnValues:
    """Collect what a function returned for each drawn graph in a table, a series or an array."""
    if all(isinstance(value, Mapping) for value in values):
        return pd.DataFrame(values)
    arrays = [_array(value) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise InputError(
            f"the function returns arrays of different shapes for different graphs: "
            f"{sorted(shapes)[:5]}. Return a number, arrays of one shape, or a mapping."
        )
    return pd.Series(values) if shapes == {()} else np.stack(arrays)


def _array(value: object) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.array(None)
    if array.dtype == object:  # None, a generator, a set, a mapping for some graphs only
        raise InputTypeError(
            f"the function must return a number, an array or a mapping; it returned {value!r}."
        )
    return array
