"""Channels from distances, against closed forms and brute force."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

from edgebelief import solve
from edgebelief.convex import ConvergenceWarning
from edgebelief.data import ErdosRenyi, expected_distances
from edgebelief.edges import Complete
from edgebelief.evidence import Diffusion, MostLikelyGraph, Precision, Profile, SmoothStructure
from edgebelief.evidence.smooth import GROUND


def resistances(a):
    """e_ij = L+_ii + L+_jj - 2 L+_ij."""
    k = np.linalg.pinv(np.diag(a.sum(0)) - a)
    return np.diag(k)[:, None] + np.diag(k) - 2 * k


def weighted_tree(n_nodes, rng):
    a = nx.to_numpy_array(nx.random_labeled_tree(n_nodes, seed=5))
    w = rng.uniform(0.5, 2.0, size=a.shape)
    return a * (w + w.T)


def off(matrix):
    return matrix[~np.eye(len(matrix), dtype=bool)]


# Precision


def test_precision_of_a_weighted_trees_resistances_is_its_normalised_weights(rng):
    a = weighted_tree(9, rng)
    d = a.sum(0)
    (channel,) = Precision(ridges=(1e-9,)).of(resistances(a))
    np.testing.assert_allclose(off(channel), off(a / np.sqrt(np.outer(d, d))), atol=1e-6)


def test_precision_is_the_inverse_on_the_complement_of_the_constant(rng):
    """Against a basis of that complement, for distances that are not Euclidean."""
    e = np.triu(rng.normal(size=(7, 7)), 1)
    e += e.T
    j = np.eye(7) - 1 / 7
    basis = np.linalg.svd(np.ones((1, 7)))[2][1:].T
    inner = basis.T @ (-j @ e @ j / 2) @ basis
    values, vectors = np.linalg.eigh(inner)
    modulus = vectors @ np.diag(np.abs(values)) @ vectors.T
    k = basis @ np.linalg.inv(modulus + 0.01 * np.abs(values).max() * np.eye(6)) @ basis.T
    expected = -k / np.sqrt(np.outer(np.diag(k), np.diag(k)))
    (channel,) = Precision(ridges=(0.01,)).of(e)
    np.testing.assert_allclose(channel, expected, atol=1e-10)


def test_a_large_ridge_gives_minus_the_covariance(rng):
    """K = (G + r s)^-1 = 1/(r s) (J - G/(r s) + ...): without ties, in the order of G."""
    e = resistances(weighted_tree(8, rng))
    (channel,) = Precision(ridges=(1e6,)).of(e)
    np.testing.assert_allclose(off(channel), 1 / 7, atol=1e-4)


def test_nodes_at_one_place_are_fully_correlated_given_the_others(rng):
    x = rng.normal(size=(20, 6))
    x[:, 3] = x[:, 1]
    e = ((x[:, :, None] - x[:, None]) ** 2).mean(0)
    (channel,) = Precision(ridges=(1e-6,)).of(e)
    assert channel[1, 3] > 0.999


@pytest.mark.parametrize("ridges", [(), (0.0,), (-1.0,), (np.nan,), 0.1])
def test_ridges_are_positive(ridges):
    with pytest.raises(ValueError, match="ridges must be numbers above 0"):
        Precision(ridges=ridges)


@pytest.fixture
def authors_graphs(shared_data):
    """Expected distances of the published random geometric graphs, with the labels."""
    from reproduction.models import authors_graphs

    return authors_graphs(shared_data / "rg032.npz")["test"]


def test_precision_separates_the_published_graphs_without_an_error(authors_graphs):
    for record in list(authors_graphs)[:10]:
        (channel,) = Precision(ridges=(1e-6,)).of(record.distance_matrix())
        values = record.support.to_vector(channel)
        assert values[record.a == 1].min() > 2 * values[record.a == 0].max()


# The most likely graph


def test_the_most_likely_graph_of_a_graphs_resistances_is_the_graph(rng):
    a = weighted_tree(8, rng)
    a[0, 7] = a[7, 0] = a[2, 6] = a[6, 2] = 1.0
    d = a.sum(0)
    common, leverage, slack = MostLikelyGraph().of(resistances(a))
    b = a / np.sqrt(np.outer(d, d))
    root = np.sqrt(np.diagonal(b @ b))
    np.testing.assert_allclose(common, b @ b / np.outer(root, root), atol=1e-4)
    np.testing.assert_allclose(leverage, a * resistances(a), atol=1e-4)
    np.testing.assert_allclose(slack, 0, atol=1e-4)


def test_the_most_likely_graph_separates_the_published_graphs(authors_graphs):
    for record in list(authors_graphs)[:10]:
        _, leverage, _ = MostLikelyGraph().of(record.distance_matrix())
        leverage = record.support.to_vector(leverage)
        assert leverage[record.a == 1].min() > 10 * leverage[record.a == 0].max()


def test_equal_distances_have_a_closed_form():
    """The complete graph with weight 2/(N c) has all resistances c."""
    e = 5.0 * (1 - np.eye(6))
    common, leverage, slack = MostLikelyGraph().of(e)
    np.testing.assert_allclose(off(common), 4 / 5, atol=1e-5)  # 4/25 over 5/25
    np.testing.assert_allclose(off(leverage), 2 / 6, atol=1e-5)
    np.testing.assert_allclose(slack, 0, atol=1e-4)


def test_the_most_likely_graph_is_the_maximum_that_a_conic_solver_finds(rng):
    x = rng.normal(size=(12, 6))
    support = Complete(6)
    e = support.to_vector(((x[:, :, None] - x[:, None]) ** 2).mean(0))
    w = cp.Variable(e.size, nonneg=True)
    signs = np.eye(6)[support.endpoints[0]] - np.eye(6)[support.endpoints[1]]
    gram = signs.T @ cp.diag(w) @ signs + np.full((6, 6), 1 / 6)
    cp.Problem(cp.Maximize(cp.log_det(gram) - w @ e)).solve(solver="CLARABEL")
    a = support.to_matrix(np.maximum(w.value, 0.0))
    r = resistances(a)
    expected = (
        support.to_vector(a * r),
        support.to_vector(1 - r / (support.to_matrix(e) + np.eye(6))),
    )
    channels = MostLikelyGraph().of(support.to_matrix(e))[1:]
    for channel, value in zip(channels, expected, strict=True):
        np.testing.assert_allclose(support.to_vector(channel), value, atol=2e-4)


def test_an_edge_is_at_its_distance_and_others_below(rng):
    """The optimality conditions: leverages add up to N - 1, and a pair has an edge or slack."""
    e = Complete(15).to_matrix(rng.uniform(1, 3, size=105))
    _, leverage, slack = MostLikelyGraph().of(e)
    assert leverage.sum() / 2 == pytest.approx(14, abs=1e-3)
    assert np.minimum(leverage, slack).max() < 1e-4
    assert slack.max() > 0.1


def test_a_search_that_is_cut_short_says_so(rng):
    e = Complete(15).to_matrix(rng.uniform(1, 3, size=105))
    with pytest.warns(ConvergenceWarning, match="in 3 iterations"):
        MostLikelyGraph(max_iter=3).of(e)


# Diffusion


def test_two_far_blocks_have_a_closed_form():
    """In a block of three S is (11' - I)/2, with the eigenvalues 1, -1/2, -1/2."""
    same = np.arange(6)[:, None] // 3 == np.arange(6) // 3
    channels = Diffusion(powers=(2, 8), width=0.02).of(100.0 * ~same)
    for k, channel in zip((2, 8), channels, strict=True):
        within = (1 - 2.0**-k) / (1 + 2 * 2.0**-k)
        np.testing.assert_allclose(off(channel), off(within * same), atol=1e-8)


def test_powers_are_those_of_the_matrix(rng):
    e = Complete(7).to_matrix(rng.uniform(size=21))
    pairs = Complete(7).to_vector(e)
    w = np.exp(-(e - np.median(pairs)) / (0.7 * pairs.std()))
    np.fill_diagonal(w, 0.0)
    d = w.sum(0)
    s = w / np.sqrt(np.outer(d, d))
    for k, channel in zip((2, 4), Diffusion(powers=(2, 4), width=0.7).of(e), strict=True):
        power = np.linalg.matrix_power(s, k)
        expected = power / np.sqrt(np.outer(np.diag(power), np.diag(power)))
        np.testing.assert_allclose(channel, expected, atol=1e-10)


# Profile


def test_profiles_leave_the_two_nodes_out(rng):
    e = Complete(8).to_matrix(rng.uniform(size=28))
    (channel,) = Profile().of(e)
    for i in range(8):
        for j in range(i):
            others = [k for k in range(8) if k not in (i, j)]
            expected = np.corrcoef(e[i, others], e[j, others])[0, 1]
            assert channel[i, j] == pytest.approx(expected, abs=1e-10)


# The smooth graph's structure


def test_structure_of_the_smooth_graph(rng):
    e = Complete(9).to_matrix(rng.uniform(0.1, 1, size=36))
    weight, common, resistance = SmoothStructure(thetas=(0.5,)).of(e)
    a = solve(e, 0.5 / np.median(Complete(9).to_vector(e))).adjacency()
    d = a.sum(0)
    graph = nx.from_numpy_array(a)
    graph.add_weighted_edges_from((i, "ground", GROUND * d.mean()) for i in range(9))
    ohms = np.zeros((9, 9))
    shared = np.array(
        [[sum(a[i, k] * a[k, j] / d[k] for k in range(9)) for j in range(9)] for i in range(9)]
    )
    for i in range(9):
        for j in range(i):
            assert weight[i, j] == pytest.approx(a[i, j] / np.sqrt(d[i] * d[j]), abs=1e-8)
            expected = shared[i, j] / np.sqrt(shared[i, i] * shared[j, j])
            assert common[i, j] == pytest.approx(expected, abs=1e-8)
            ohms[i, j] = nx.resistance_distance(graph, i, j, "weight", invert_weight=False)
    below = np.tril_indices(9, -1)
    log_ohms = np.log(ohms[below])
    np.testing.assert_allclose(resistance[below], log_ohms - np.median(log_ohms), atol=1e-8)


def test_resistance_between_components_is_large_and_finite():
    e = 1.0 + 1e3 * (np.arange(6)[:, None] // 3 != np.arange(6) // 3) - np.eye(6)
    _, _, resistance = SmoothStructure(thetas=(1.0,)).of(e)
    # Each component is complete; relative to the mean degree, its weights are 1/2.
    within = 2 / (3 / 2 + GROUND)
    across = 2 / (3 * GROUND) + 4 / 3 / (3 / 2 + GROUND)
    assert resistance[0, 4] == pytest.approx(0, abs=1e-6)  # 9 of the 15 pairs: the median
    assert resistance[0, 1] == pytest.approx(np.log(within / across), abs=1e-6)


def test_expected_distances_of_any_graph_give_back_the_graph():
    graph = ErdosRenyi(0.3).sample(1, 10)
    e = Complete(10).to_matrix(expected_distances(graph))
    a = nx.to_numpy_array(graph)
    (precision,) = Precision(ridges=(1e-9,)).of(e)
    leverage = MostLikelyGraph().of(e)[1]
    d = np.sqrt(np.outer(a.sum(0), a.sum(0)))
    np.testing.assert_allclose(off(precision * d), off(a), atol=1e-5)
    np.testing.assert_allclose(off(leverage), off(a * resistances(a)), atol=1e-3)
