import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.linalg import expm, pinvh, sqrtm

from edgebelief.data import (
    ErdosRenyi,
    Heat,
    RandomGeometric,
    SquareRootInverse,
    Tikhonov,
    adjacency_of,
    distances,
    expected_distances,
    smooth_signals,
)


@pytest.fixture(scope="module")
def graph():
    return RandomGeometric(0.5).sample(2, 9)


def laplacian(graph):
    matrix = nx.laplacian_matrix(graph).toarray().astype(float)
    return matrix / np.linalg.eigvalsh(matrix)[-1]


def covariances(graph):
    """h(L)^2 by matrix functions of SciPy, which know nothing of spectra."""
    L = laplacian(graph)
    return {
        SquareRootInverse(): pinvh(L, atol=1e-9),
        Heat(t=3.0): expm(-6.0 * L),
        Tikhonov(weight=4.0): np.linalg.matrix_power(np.linalg.inv(np.eye(len(L)) + 4 * L), 2),
    }


def test_expected_distances_are_those_of_the_covariance(graph):
    i, j = np.triu_indices(9, k=1)
    for filter, c in covariances(graph).items():
        expected = c[i, i] + c[j, j] - 2 * c[i, j]
        np.testing.assert_allclose(expected_distances(graph, filter), expected, rtol=1e-9)


@pytest.mark.parametrize("filter", [SquareRootInverse(), Heat(3.0), Tikhonov(4.0)], ids=str)
def test_distances_tend_to_the_expected_ones(graph, filter):
    e = distances(smooth_signals(5, graph, 40_000, filter))
    # A distance is a chi-square mean: relative sd sqrt(2/P) = 0.7 %, times 4.5 for 36 pairs.
    np.testing.assert_allclose(e, expected_distances(graph, filter), rtol=0.035)


def test_signals_are_the_filter_applied_to_white_noise(graph):
    """White noise has the covariance of the identity: recover it from L^(1/2)."""
    x = smooth_signals(0, graph, 5000)
    assert x.shape == (5000, 9)
    white = x @ sqrtm(laplacian(graph)).real
    projector = np.eye(9) - 1 / 9
    np.testing.assert_allclose(white.T @ white / 5000, projector, atol=0.08)


def test_signals_for_several_sizes_nest(graph):
    many = smooth_signals(11, graph, 100)
    np.testing.assert_allclose(smooth_signals(11, graph, 10), many[:10], rtol=1e-12, atol=1e-13)


def test_distances_of_the_authors_graphs(shared_data):
    """expected_distances reproduces the published distances from the published adjacencies."""
    stored = np.load(shared_data / "rg032.npz")
    i, j = np.triu_indices(20, k=1)
    for part in ("train", "val", "test"):
        for adjacency, matrix in zip(
            stored[f"{part}_adjacency"], stored[f"{part}_distances"], strict=True
        ):
            np.testing.assert_allclose(expected_distances(adjacency), matrix[i, j], rtol=1e-5)


def test_metrics_against_numpy(rng):
    x = rng.normal(size=(50, 6))
    i, j = np.triu_indices(6, k=1)
    square = ((x[:, i] - x[:, j]) ** 2).mean(0)
    np.testing.assert_allclose(distances(x), square, rtol=1e-12)
    np.testing.assert_allclose(distances(x, "log-euclidean"), np.log10(np.sqrt(square)), rtol=1e-9)
    correlation = np.corrcoef(x.T)[i, j]
    np.testing.assert_allclose(distances(x, "correlation"), 1 - np.abs(correlation), rtol=1e-9)


def test_distances_do_not_depend_on_how_often_signals_repeat(rng):
    x = rng.normal(size=(20, 5))
    for metric in ("sqeuclidean", "log-euclidean", "correlation"):
        twice = distances(np.concatenate([x, x]), metric)
        np.testing.assert_allclose(twice, distances(x, metric), rtol=1e-9, atol=1e-12)


def test_near_nodes_keep_their_digits_and_none_is_below_zero(rng):
    x = 1e6 + rng.normal(size=(30, 4))
    x[:, 1] = x[:, 0] + 1e-3
    e = distances(x)
    assert e[0] == pytest.approx(1e-6, rel=1e-6)
    x[:, 1] = x[:, 0]
    assert distances(x)[0] == 0
    assert (distances(x) >= 0).all()
    assert distances(np.stack([x[:, 0], -2 * x[:, 0]], 1), "correlation")[0] == pytest.approx(0)


def test_copies_are_at_no_distance_whatever_correlations_round_to(rng):
    x = rng.normal(size=(50, 20))
    copies = distances(np.concatenate([x, -3 * x + 5], 1), "correlation")
    assert (np.sort(copies)[:21] > 0).tolist() == [False] * 20 + [True]


def test_undefined_distances_are_refused_by_name():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [1.0, 2, 3], "c": [5.0, 5, 5]})
    with pytest.raises(ValueError, match="'a' and 'b' have identical signals"):
        distances(frame, "log-euclidean")
    with pytest.raises(ValueError, match="node 'c' is constant"):
        distances(frame, "correlation")
    with pytest.raises(ValueError, match="metric must be one of"):
        distances(frame, "manhattan")


def test_graphs_come_in_many_forms_and_bad_ones_are_refused(graph):
    dense = nx.to_numpy_array(graph)
    for form in (dense, dense.astype(int), dense > 0, nx.to_scipy_sparse_array(graph), graph):
        np.testing.assert_array_equal(adjacency_of(form), dense)
    bad = nx.Graph([(0, 1, {"weight": -1.0}), (1, 2, {"weight": 3.0})])
    with pytest.raises(ValueError, match=r"adjacency\[0, 1\] is -1"):
        expected_distances(bad)
    with pytest.raises(ValueError, match="remove the loops"):
        expected_distances(nx.Graph([(0, 1), (1, 1)]))
    with pytest.raises(ValueError, match="undirected"):
        expected_distances(nx.DiGraph([(0, 1)]))
    with pytest.raises(ValueError, match="no edges"):
        expected_distances(np.zeros((3, 3)))


def test_disconnected_graphs_are_refused_where_the_filter_cannot_see_them():
    two = nx.Graph([(0, 1), (2, 3)])
    with pytest.raises(ValueError, match="2 components"):
        expected_distances(two)
    far, near = expected_distances(two, Heat(5.0))[1], expected_distances(two, Heat(5.0))[0]
    assert far > near


def test_weights_of_a_graph_matter():
    heavy = ErdosRenyi(0.9).sample(0, 5)
    nx.set_edge_attributes(heavy, 10.0, "weight")  # scale alone is divided out
    plain = ErdosRenyi(0.9).sample(0, 5)
    np.testing.assert_allclose(expected_distances(heavy), expected_distances(plain), rtol=1e-9)
    first = next(iter(heavy.edges))
    heavy.edges[first]["weight"] = 1.0
    assert np.abs(expected_distances(heavy) - expected_distances(plain)).max() > 0.01
