import networkx as nx
import numpy as np
import pandas as pd
import pytest

from edgebelief.belief import propagate, sample_graphs, to_networkx
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
from edgebelief.networks import DPG

NAMES = ["ada", "bob", "cy", "dee", "eve"]


@pytest.fixture(scope="module")
def data():
    sampled = GraphDataset.sample(0, ErdosRenyi(0.6), n_graphs=2, n_nodes=5)
    return GraphDataset(
        [record.e for record in sampled], [record.a for record in sampled], [NAMES, NAMES]
    )


@pytest.fixture(scope="module")
def posterior(data):
    """A point, made by hand: fitting is tested elsewhere."""
    params = {"theta": np.array([0.1]), "delta": np.array([5.0]), "b": np.array([1.0])}
    return Posterior(
        EdgeModel(DPG(depth=2)), params, np.ones(1), "hand", {}, Fingerprint.of(data), Verdict()
    )


def test_functions_see_the_sampled_graphs(posterior, data):
    """The same key draws the same graphs: propagating is applying the function to each."""
    drawn = sample_graphs(3, posterior, data, n=7)
    found = propagate(3, posterior, data, nx.Graph.number_of_edges, n=7)
    for series, edges in zip(found, drawn, strict=True):
        assert isinstance(series, pd.Series)
        np.testing.assert_array_equal(series, edges.sum(1))
    for degrees, edges in zip(
        propagate(3, posterior, data, lambda graph: dict(graph.degree), n=7), drawn, strict=True
    ):
        assert degrees.columns.tolist() == NAMES
        rows, cols = np.triu_indices(5, k=1)
        for k, name in enumerate(NAMES):
            own = edges[:, (rows == k) | (cols == k)].sum(1)
            np.testing.assert_array_equal(degrees[name], own)
    for arrays, edges in zip(
        propagate(3, posterior, data, nx.to_numpy_array, n=7), drawn, strict=True
    ):
        np.testing.assert_array_equal(arrays[(slice(None), *np.triu_indices(5, k=1))], edges)


def test_connected_graphs_are_in_one_piece(posterior, data):
    pieces = nx.number_connected_components
    free = np.concatenate(propagate(0, posterior, data, pieces, 50))
    assert free.max() > 1  # or the next line would say nothing
    given = np.concatenate(propagate(0, posterior, data, pieces, 50, connected=True))
    assert (given == 1).all()


def test_texts_and_truths_are_values_too(posterior, data):
    hubs = propagate(0, posterior, data, lambda graph: max(graph, key=graph.degree), n=7)[0]
    assert set(hubs) <= set(NAMES)
    assert propagate(0, posterior, data, nx.is_connected, n=7)[0].dtype == bool


def test_keys_that_are_not_always_there_are_gaps(posterior, data):
    counter = iter(range(100))
    found = propagate(0, posterior, data, lambda graph: {f"key {next(counter)}": 1.0}, n=7)[0]
    np.testing.assert_array_equal(found.isna(), ~np.eye(7, dtype=bool))


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda graph: None, TypeError, "returned None"),
        (nx.connected_components, TypeError, "a number, an array or a mapping"),
        (lambda graph: [[1], [1, 2]], TypeError, "a number, an array or a mapping"),
        (lambda graph: {"ada"}, TypeError, "a number, an array or a mapping"),
    ],
)
def test_what_cannot_be_collected_is_refused(posterior, data, function, error, message):
    with pytest.raises(error, match=message):
        propagate(0, posterior, data, function, n=7)


def test_arrays_of_different_lengths_are_refused(posterior, data):
    lengths = iter(range(1, 100))
    with pytest.raises(ValueError, match="arrays of different shapes"):
        propagate(0, posterior, data, lambda graph: np.ones(next(lengths)), n=7)


def test_errors_of_the_function_are_its_own(posterior, data):
    def fails(graph):
        raise nx.NetworkXError("not connected")

    with pytest.raises(nx.NetworkXError, match="not connected"):
        propagate(0, posterior, data, fails, n=7)


def test_no_graphs_are_refused(posterior, data):
    with pytest.raises(ValueError, match="n must be a whole number, at least 1"):
        propagate(0, posterior, data, nx.density, n=0)


def test_edges_carry_their_own_numbers(data):
    numbers = np.arange(10) / 10
    graph = to_networkx(data[0], numbers > 0.4, probability=numbers)
    assert list(graph) == NAMES
    rows, cols = np.triu_indices(5, k=1)
    expected = {
        frozenset([NAMES[i], NAMES[j]]): p
        for i, j, p in zip(rows, cols, numbers, strict=True)
        if p > 0.4
    }
    found = {frozenset([i, j]): p for i, j, p in graph.edges(data="probability")}
    assert found == expected
