"""Candidate pairs: against all pairs, for each metric and each search."""

import builtins

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import KNeighborsTransformer

from edgebelief.data import distances, nearest_pairs, neighbours
from edgebelief.data.signals import Metric
from edgebelief.edges import Complete, Restricted

METRICS = Metric.__args__


def nearest_by_brute_force(signals, k, metric):
    """The pairs in which one node is among the k nearest of the other."""
    matrix = Complete(signals.shape[1]).to_matrix(distances(signals, metric))
    return Restricted.nearest(matrix, k)


def same_pairs(first, second):
    np.testing.assert_array_equal(first.endpoints, second.endpoints)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "search",
    [
        None,
        KNeighborsTransformer(n_neighbors=5, mode="distance"),
        KNeighborsTransformer(n_neighbors=9, algorithm="kd_tree"),  # more than are asked for
        neighbours.TreeSearch(5),
    ],
)
def test_candidates_are_the_nearest_by_the_metric(metric, search, rng):
    signals = rng.normal(size=(6, 60)) + rng.normal(size=(6, 1)) + 1e3
    support, e = nearest_pairs(signals, 5, metric, search)
    same_pairs(support, nearest_by_brute_force(signals, 5, metric))
    everything = Complete(60).to_matrix(distances(signals, metric))
    np.testing.assert_allclose(e, support.to_vector(everything), rtol=1e-10, atol=1e-13)


def test_blocks_do_not_change_distances(rng, monkeypatch):
    signals = rng.normal(size=(4, 40))
    support, e = nearest_pairs(signals, 3)
    monkeypatch.setattr(neighbours, "BLOCK", 20)
    np.testing.assert_array_equal(nearest_pairs(signals, 3)[1], e)
    assert support.n_edges > 5 * 3  # several blocks of five pairs


def test_small_graphs_have_all_pairs_as_candidates(rng):
    support, e = nearest_pairs(signals := rng.normal(size=(5, 6)), 10, "correlation")
    assert support.n_edges == 15
    np.testing.assert_allclose(e, distances(signals, "correlation"), atol=1e-14)


def test_copies_of_a_node_leave_room_for_others(rng):
    """Of six equal points a search may list the five others and not the point itself."""
    signals = np.concatenate([np.tile(rng.normal(size=(3, 1)), 6), rng.normal(size=(3, 20))], 1)
    _, e = nearest_pairs(signals, 5)
    assert (e == 0).sum() == 15
    with pytest.raises(ValueError, match="identical signals"):
        nearest_pairs(signals, 5, "log-euclidean")


def test_low_dimensions_suit_a_tree_and_high_ones_do_not(rng):
    assert neighbours.suits_a_tree(rng.normal(size=(30_000, 3)), 10)
    curved = np.sin(rng.uniform(size=(30_000, 2)) @ rng.normal(size=(2, 20)))
    assert neighbours.suits_a_tree(curved, 10)
    assert not neighbours.suits_a_tree(rng.normal(size=(30_000, 20)), 10)


def test_default_search_depends_on_size_and_dimension(rng, monkeypatch):
    monkeypatch.setattr(neighbours, "FEW_POINTS", 100)
    kinds = {
        KNeighborsTransformer: rng.normal(size=(100, 20)),
        neighbours.TreeSearch: rng.normal(size=(5000, 2)),
        neighbours.DescentSearch: rng.normal(size=(5000, 30)),
    }
    for kind, points in kinds.items():
        assert isinstance(neighbours.default_search(points, 5), kind)


def test_a_missing_package_is_named_with_the_extra(rng, monkeypatch):
    real_import = builtins.__import__

    def without(name, *rest, **more):
        if name == "pynndescent":
            raise ImportError(name)
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r"pip install edgebelief\[large\], or pass neighbors="):
        nearest_pairs(rng.normal(size=(5, 50)), 3, neighbors=neighbours.DescentSearch(3))


@pytest.mark.slow
def test_descent_finds_nearly_all_neighbours(rng):
    pytest.importorskip("pynndescent")
    signals = rng.normal(size=(10, 3000))
    support, e = nearest_pairs(signals, 8, neighbors=neighbours.DescentSearch(8))
    oracle, _ = nearest_pairs(signals, 8)
    missed = set(zip(*oracle.endpoints, strict=True)) - set(zip(*support.endpoints, strict=True))
    assert len(missed) <= 0.02 * oracle.n_edges
    again, _ = nearest_pairs(signals, 8, neighbors=neighbours.DescentSearch(8))
    same_pairs(support, again)
    np.testing.assert_allclose(e, neighbours.Points(signals).distances(*support.endpoints))


class Lists:
    """A search with an answer of its own."""

    def __init__(self, answer):
        self.answer = answer

    def fit_transform(self, X):
        return self.answer


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (object(), "neighbors must have fit_transform"),
        (Lists(np.eye(4)), "must turn 4 points into a sparse square matrix; got a ndarray"),
        (Lists(csr_array((4, 3))), r"sparse square matrix; got a csr_array of shape \(4, 3\)"),
        (KNeighborsTransformer(n_neighbors=1), "lists at most 1 other points .* Set its n_neigh"),
        (
            Lists(csr_array(([1.0, 1, 1, 1], ([0, 0, 1, 2], [1, 2, 0, 1])), shape=(4, 4))),
            "lists no neighbour of node 3",
        ),
    ],
)
def test_a_search_that_does_not_serve_is_refused(search, message, rng):
    with pytest.raises(ValueError, match=message):
        nearest_pairs(rng.normal(size=(5, 4)), 2, neighbors=search)


def test_gaps_and_constant_nodes_are_refused(rng):
    signals = rng.normal(size=(5, 8))
    signals[:, 3] = 2.0
    with pytest.raises(ValueError, match="node 3 is constant"):
        nearest_pairs(signals, 2, "correlation")
    signals[2, 1] = np.nan
    with pytest.raises(ValueError, match="nan"):
        nearest_pairs(signals, 2)
