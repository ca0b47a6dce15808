import pickle
import re

import networkx as nx
import numpy as np
import pytest

from edgebelief import solve, solve_path, theta_for
from edgebelief.convex import secant, sparsity
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    RandomGeometric,
    adjacency_of,
    expected_distances,
)
from edgebelief.edges import Complete, Restricted
from problems import KINDS, distances_of_kind

ENSEMBLES = {
    "RG": {20: RandomGeometric(0.32), 200: RandomGeometric(0.2)},
    "ER": {20: ErdosRenyi(0.25), 200: ErdosRenyi(0.1)},
    "BA": {20: BarabasiAlbert(1), 200: BarabasiAlbert(1)},
}


def count(e, theta):
    return int(solve(e, theta).n_edges)


def check_no_theta_is_nearer(e, found, wanted):
    """Brackets the crossing of the wanted number independently, by bisection to 1e-8."""
    ours = abs(found.n_edges - wanted)
    assert count(e, float(found)) == found.n_edges
    if found.jump is None:
        assert ours <= 0.5
        return
    low, high = float(found) / 1.5, float(found) * 1.5
    while count(e, low) < wanted:
        low /= 2
    while count(e, high) > wanted:
        high *= 2
    while high / low - 1 > 1e-8:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if count(e, middle) > wanted else (low, middle)
    assert ours <= min(abs(count(e, low) - wanted), abs(count(e, high) - wanted))
    # The jump that the result names is this one.
    assert found.jump.theta == pytest.approx(high, rel=1e-7)
    assert (found.jump.edges_below, found.jump.edges_above) == (count(e, low), count(e, high))


def check_nearest_or_out_of_reach(e, degree, n_nodes):
    wanted = degree * n_nodes / 2
    try:
        found = theta_for(e, degree=degree)
    except ValueError as error:
        # Degree 2 is below what some graphs keep however large theta is; then the error says so.
        fewest = int(re.search(r"there can be (\d+) to", str(error)).group(1))
        assert fewest > wanted
        assert all(count(e, theta / e.mean()) >= fewest for theta in np.geomspace(10, 1e5, 13))
    else:
        check_no_theta_is_nearer(e, found, wanted)


@pytest.mark.parametrize("name", ENSEMBLES)
@pytest.mark.parametrize(
    ("n_nodes", "degrees"), [(20, range(2, 6)), (200, (2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50))]
)
def test_no_theta_gives_a_nearer_number_of_edges(name, n_nodes, degrees):
    graph = ENSEMBLES[name][n_nodes].sample(key=n_nodes, n_nodes=n_nodes)
    e = expected_distances(graph)
    for degree in degrees:
        check_nearest_or_out_of_reach(e, degree, n_nodes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENSEMBLES)
def test_no_theta_gives_a_nearer_number_of_edges_at_every_degree(name):
    graph = ENSEMBLES[name][200].sample(key=200, n_nodes=200)
    e = expected_distances(graph)
    for degree in range(2, 51):
        check_nearest_or_out_of_reach(e, degree, 200)


def test_leaves_of_a_star_enter_together_and_the_jump_is_named():
    e = expected_distances(nx.star_graph(9))  # ten nodes; the 36 pairs of leaves are alike
    found = theta_for(e, degree=4)
    assert found.n_edges in (9, 45)
    assert found.jump is not None
    assert {found.jump.edges_above, found.jump.edges_below} == {9, 45}
    assert "jumps from 45 to 9" in repr(found)


def test_density_and_degree_are_the_same_question(rng):
    e = distances_of_kind("geometric", 16, rng)
    by_degree, by_density = theta_for(e, degree=3), theta_for(e, density=24 / 120)
    assert by_degree.n_edges == by_density.n_edges == 24
    assert by_degree.degree == 3
    assert by_density.density == pytest.approx(0.2)


def test_every_edge_and_fewest_edges_are_reachable(rng):
    e = distances_of_kind("geometric", 10, rng)
    assert theta_for(e, density=1.0).n_edges == 45
    assert theta_for(np.array([1.0]), degree=1).n_edges == 1
    assert theta_for(np.ones(45), density=1.0).n_edges == 45


def test_result_is_a_number_and_its_graph(rng):
    e = distances_of_kind("uniform", 12, rng)
    found = theta_for(e, degree=4)
    assert isinstance(found, float)
    assert found.theta == found == solve(e, found).theta
    np.testing.assert_allclose(found.solution.weights, solve(e, found).weights, atol=1e-8)
    assert pickle.loads(pickle.dumps(found)).n_edges == found.n_edges


def test_scale_of_distances_only_scales_theta(rng):
    e = distances_of_kind("geometric", 15, rng)
    for c in (1e-200, 1e-6, 1e6, 1e200):
        assert theta_for(c * e, degree=4).n_edges == 30
        assert theta_for(c * e, degree=4) == pytest.approx(theta_for(e, degree=4) / c, rel=1e-6)


def test_negative_distances_and_restricted_supports(rng):
    e = distances_of_kind("with negatives", 15, rng)
    assert theta_for(e, degree=8).n_edges == 60
    support = Restricted.from_pairs([(i, (i + k) % 15) for i in range(15) for k in (1, 2, 3)])
    found = theta_for(np.abs(e[: support.n_edges]), degree=4, support=support)
    assert found.n_edges == 30


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"degree": 0.5}, "out of reach: on these 15 nodes there can be 8 to 105"),
        ({"degree": 15}, "degree 1.067 to 14, density 0.07619 to 1"),
        ({"density": 1.2}, "out of reach"),
        ({"density": -0.1}, "out of reach"),
        ({"degree": float("nan")}, "out of reach"),
    ],
)
def test_out_of_reach_names_the_reachable_range(wanted, message, rng):
    with pytest.raises(ValueError, match=message):
        theta_for(distances_of_kind("geometric", 15, rng), **wanted)


def test_fewest_edges_of_this_graph_are_named():
    """A star keeps nine edges however large theta is."""
    with pytest.raises(ValueError, match="there can be 9 to 45"):
        theta_for(expected_distances(nx.star_graph(9)), degree=1.2)


def test_one_of_degree_and_density_must_be_given():
    for wanted in ({}, {"degree": 2, "density": 0.5}):
        with pytest.raises(TypeError, match="one of degree= and density="):
            theta_for(np.ones(3), **wanted)


def test_learned_graph_is_the_true_one_for_smooth_signals():
    graph = RandomGeometric(0.32).sample(key=3, n_nodes=20)
    truth = Complete(20).to_vector(adjacency_of(graph)) > 0
    found = theta_for(expected_distances(graph), degree=2 * truth.sum() / 20)
    edges = found.solution.weights > 0
    f1 = 2 * (edges & truth).sum() / (edges.sum() + truth.sum())
    assert f1 > 0.9


def test_one_huge_distance_does_not_narrow_the_range(rng):
    e = rng.uniform(size=45)
    e[3] = 1e12
    assert theta_for(e, degree=4).n_edges == 20


def test_all_zero_distances_have_only_the_complete_graph():
    assert theta_for(np.zeros(10), density=1.0).n_edges == 10
    with pytest.raises(ValueError, match="there can be 10 to 10"):
        theta_for(np.zeros(10), degree=2)


@pytest.mark.parametrize("degree", ["3", True, [3], None])
def test_degree_must_be_a_number(degree):
    with pytest.raises(TypeError, match="degree"):
        theta_for(np.ones(10), degree=degree)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_no_theta_on_a_dense_grid_is_nearer(name):
    """Looks everywhere, not only around the crossing: the staircase need not be monotone."""
    e = expected_distances(ENSEMBLES[name][20].sample(key=5, n_nodes=20))
    grid = solve_path(e, np.geomspace(1e-3, 100, 1500))
    counts = np.array([solution.n_edges for solution in grid])
    for degree in np.arange(3, 12, 0.7):
        found = theta_for(e, degree=degree)
        assert abs(found.n_edges - degree * 10) <= np.abs(counts - degree * 10).min()


def near_points(n_nodes, rng, dimension=3, k=12):
    points = rng.normal(size=(n_nodes, dimension))
    e = ((points[:, None] - points[None]) ** 2).sum(-1)
    support = Restricted.nearest(e, k)
    return support.to_vector(e), support


@pytest.mark.parametrize("degree", [1.8, 3, 6, 11])
def test_about_a_wanted_degree_in_a_few_solves(degree, rng, monkeypatch):
    e, support = near_points(400, rng)
    solves = []
    real = secant.newton_solve
    monkeypatch.setattr(secant, "newton_solve", lambda *a: solves.append(a[1]) or real(*a))
    found = theta_for(e, degree=degree, support=support, rtol=0.01)
    assert abs(found.degree / degree - 1) <= 0.01
    assert len(set(solves)) <= (6 if degree > 2 else 12)
    again = solve(e, found, support=support)
    assert again.n_edges == found.n_edges
    np.testing.assert_allclose(found.solution.weights, again.weights, atol=1e-7)
    assert found.solution.residual <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_about_and_exactly_agree(kind, rng):
    e = distances_of_kind(kind, 30, rng)
    exactly = theta_for(e, degree=20)
    about = theta_for(e, degree=20, rtol=0.01)
    assert abs(about.n_edges - exactly.n_edges) <= 3
    np.testing.assert_allclose(about, exactly, rtol=0.1)


def test_about_reports_jumps_and_what_is_out_of_reach(rng):
    star = expected_distances(nx.star_graph(9))
    found = theta_for(star, degree=4, rtol=0.01)
    assert found.jump.edges_below == 45
    assert found.jump.edges_above == 9
    with pytest.raises(ValueError, match="there can be 9 to 45"):
        theta_for(star, degree=1.2, rtol=0.01)
    with pytest.raises(ValueError, match="rtol must lie between 0 and 1"):
        theta_for(star, degree=4, rtol=1.5)


def test_large_graphs_are_counted_about_by_default(rng, monkeypatch):
    e, support = near_points(60, rng)
    monkeypatch.setattr(sparsity, "EXACTLY_COUNTED", 59)
    found = theta_for(e, degree=5.01, support=support)
    assert found.jump is None
    assert abs(found.degree / 5.01 - 1) <= 0.01


def test_the_first_theta_is_near_that_of_the_wanted_degree(rng):
    e, support = near_points(400, rng)
    for degree in (3, 6, 11):
        first = secant.guess(e, support, degree * 200)
        assert 0.6 < first / theta_for(e, degree=degree, support=support, rtol=0.02) < 1.6
