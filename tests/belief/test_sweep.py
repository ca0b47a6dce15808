import networkx as nx
import numpy as np
import pytest

from edgebelief import solve, theta_for
from edgebelief.belief.sweep import theta_sweep
from edgebelief.convex import solve_path
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.edges import Complete, Restricted
from problems import KINDS, distances_of_kind


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, RandomGeometric(radius=0.4), 3, 12, n_signals=300)


def test_sweep_has_the_density_that_theta_for_was_asked_for(data):
    e = data[0].e
    found = [theta_for(e, density=density) for density in (0.9, 0.5, 0.2)]
    sweep = theta_sweep(e, found)
    np.testing.assert_allclose(sweep.density[0] * 66, [theta.n_edges for theta in found])
    np.testing.assert_array_equal(sweep.thetas, np.array(found, float))


def test_sweep_of_constant_distances_is_the_closed_form():
    # SPEC section 2: a = (-theta c + sqrt(theta^2 c^2 + 4/(N-1)))/2 on every edge.
    thetas, c, n_nodes = np.array([0.1, 1.0, 10.0]), 2.0, 6
    sweep = theta_sweep(np.full(15, c), thetas)
    a = (-thetas * c + np.sqrt(thetas**2 * c**2 + 4 / (n_nodes - 1))) / 2
    assert (sweep.density == 1).all()
    assert (sweep.components == 1).all()
    np.testing.assert_allclose(sweep.weights[0], a[:, None] * np.ones(5), rtol=1e-7)


def test_components_and_quantiles_are_those_of_networkx_and_numpy(data):
    sweep = theta_sweep(data, [0.05, 0.5, 5.0])
    for t, record in enumerate(data):
        for k, solution in enumerate(solve_path(record.e, sweep.thetas)):
            matrix = solution.adjacency()
            graph = nx.from_numpy_array(matrix * (matrix > 1e-5 * matrix.max()))
            assert sweep.components[t, k] == nx.number_connected_components(graph)
            weights = [w for *_, w in graph.edges(data="weight")]
            expected = np.quantile(weights, sweep.levels)
            np.testing.assert_allclose(sweep.weights[t, k], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_nodes", [5, 20, 40])
def test_the_default_grid_goes_from_complete_to_sparsest(kind, n_nodes, rng):
    e = distances_of_kind(kind, n_nodes, rng)
    sweep = theta_sweep(e)
    assert sweep.mean_density[0] > 0.99
    support = Complete(n_nodes)
    far = support.density(solve(e, 30 * sweep.thetas[-1]).weights)
    assert sweep.mean_density[-1] == pytest.approx(far, abs=1 / support.n_edges)


def test_the_grid_follows_the_scale_of_the_distances(data):
    e = data[0].e
    one, other = theta_sweep(e), theta_sweep(1000 * e)
    np.testing.assert_allclose(other.thetas * 1000, one.thetas)
    np.testing.assert_array_equal(other.density, one.density)


def test_one_graph_may_come_as_vector_matrix_list_or_data_set(data):
    record = data[0]
    forms = [record.e, record.distance_matrix(), [record.e], list(record.e), data[:1]]
    densities = [theta_sweep(form, [0.1, 1.0]).density for form in forms]
    for density in densities:
        np.testing.assert_array_equal(density, densities[0])
        assert density.shape == (1, 2)


def test_graphs_may_differ_in_size():
    sizes = [theta_sweep(np.ones(n), [1.0]) for n in (3, 6)]
    both = theta_sweep([np.ones(3), np.ones(6)], [1.0])
    np.testing.assert_allclose(both.weights, np.concatenate([s.weights for s in sizes]))


def test_a_restricted_support_bounds_the_density():
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    sweep = theta_sweep(np.array([1.0, 2.0, 1.0, 2.0]), support=Restricted.from_pairs(pairs))
    assert sweep.mean_density[0] == pytest.approx(4 / 6)
    assert sweep.mean_density[-1] == pytest.approx(2 / 6)  # the two near pairs


def test_the_table_holds_the_means(data):
    sweep = theta_sweep(data, [0.1, 1.0])
    table = sweep.table()
    np.testing.assert_allclose(table["density"], sweep.density.mean(0))
    np.testing.assert_allclose(table["weight_q50"], sweep.median_weight)
    assert list(table["most_components"]) == list(sweep.components.max(0))
