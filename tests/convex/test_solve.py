import numpy as np
import pytest

import edgebelief.convex as convex
from edgebelief import solve, solve_path
from edgebelief.convex import AcceleratedDPG, ConvergenceWarning, residual, theta_range
from edgebelief.edges import Complete, Restricted
from oracles import (
    conic_solution,
    constant_distance_weight,
    incidence_matrix,
    many_digit_weights,
)
from problems import KINDS, distances_of_kind, nearly_complete_pairs, random_problem


def optimality(solution, e, theta, incidence):
    """max |lam_i d_i - 1| with a tied to lam, by dense matrices."""
    a = np.maximum(0, incidence.T @ solution.duals / 2 - theta * e)
    return np.abs(solution.duals * (incidence @ a) - 1).max()


@pytest.mark.parametrize("block", range(8))
def test_200_random_problems_agree_with_a_conic_solver(block):
    for seed in range(25 * block, 25 * (block + 1)):
        n_nodes, e, theta = random_problem(seed)
        incidence = incidence_matrix(n_nodes)
        solution = solve(e, theta)
        floor = max(1e-9, 10 * np.finfo(float).eps * solution.duals.max() ** 2)
        assert solution.converged
        assert solution.residual <= floor
        assert optimality(solution, e, theta, incidence) <= 2 * floor
        oracle = conic_solution(e, theta, incidence)
        assert np.abs(solution.weights - oracle).max() <= 1e-6 * oracle.max(), seed


@pytest.mark.parametrize("n_nodes", [2, 3, 20, 101])
@pytest.mark.parametrize("theta", [1e-3, 0.3, 1.0, 50.0])
@pytest.mark.parametrize("c", [0.0, 0.7, 13.0, -2.0])
def test_constant_distances_match_closed_form(n_nodes, theta, c):
    e = np.full(n_nodes * (n_nodes - 1) // 2, c)
    solution = solve(e, theta)
    exact = constant_distance_weight(theta, c, n_nodes)
    np.testing.assert_allclose(solution.weights, exact, rtol=1e-12)
    assert solution.converged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("theta", [0.1, 1.0, 5.0])
def test_dpg_accelerated_dpg_pds_and_newton_agree(kind, theta, rng):
    e = distances_of_kind(kind, 12, rng)
    newton = solve(e, theta)
    for method in (convex.DPG(), convex.AcceleratedDPG(), convex.PDS()):
        other = method.solve(e, theta)
        assert other.converged, method
        assert other.residual <= 1e-9
        assert other.weights.dtype == np.float64
        error = np.abs(other.weights - newton.weights).max() / newton.weights.max()
        assert error < 1e-7, method


def test_first_order_methods_do_not_call_a_still_iterate_converged(rng):
    """At large theta the first iterates of DPG are all zero, and do not change."""
    e = 1 + distances_of_kind("uniform", 10, rng)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        solution = convex.DPG().solve(e, 30.0, max_iter=25)
    assert solution.iterations == 25
    assert (solution.weights == 0).all()
    assert not solution.converged
    assert solution.residual >= 1


def test_pds_with_too_long_a_step_is_not_called_converged(rng):
    e = distances_of_kind("uniform", 10, rng)
    with pytest.warns(ConvergenceWarning):
        assert not convex.PDS(gamma=5.0).solve(e, 1.0, max_iter=2000).converged


@pytest.mark.parametrize("kind", KINDS)
def test_restricted_support_agrees_with_a_conic_solver(kind, rng):
    support = Restricted.from_pairs([(i, (i + k) % 20) for i in range(20) for k in (1, 2, 5)])
    e = distances_of_kind(kind, 20, rng)[: support.n_edges]
    incidence = incidence_matrix(20, list(zip(*support.endpoints, strict=True)))
    for theta in (0.05, 1.0, 20.0):
        solution = solve(e, theta, support=support)
        assert solution.converged
        oracle = conic_solution(e, theta, incidence)
        assert np.abs(solution.weights - oracle).max() <= 1e-6 * oracle.max()
        assert solution.adjacency().shape == (20, 20)


def test_support_listed_in_full_equals_complete(rng):
    e = distances_of_kind("geometric", 15, rng)
    listed = Restricted.from_pairs(np.stack(np.triu_indices(15, k=1), axis=1))
    np.testing.assert_allclose(
        solve(e, 0.8, support=listed).weights, solve(e, 0.8).weights, atol=1e-9
    )


def test_leaving_out_a_pair_that_is_no_edge_changes_nothing(rng):
    e = distances_of_kind("geometric", 15, rng)
    e[0] = e.max() * 2  # the pair (0, 1) is far apart
    support = Restricted.from_pairs(nearly_complete_pairs(15))
    complete = solve(e, 1.0)
    assert complete.weights[0] == 0
    np.testing.assert_allclose(
        solve(e[1:], 1.0, support=support).weights, complete.weights[1:], atol=1e-9
    )


def test_scale_law_and_relabelling(rng):
    e = distances_of_kind("geometric", 12, rng)
    np.testing.assert_allclose(solve(7 * e, 0.1).weights, solve(e, 0.7).weights, atol=1e-10)
    _, positions = Complete(12).relabel(rng.permutation(12))
    np.testing.assert_allclose(
        solve(e[positions], 0.7).weights, solve(e, 0.7).weights[positions], atol=1e-9
    )


def test_matrix_vector_and_data_types_are_the_same_problem(rng):
    e = distances_of_kind("uniform", 7, rng).astype(np.float32)
    whole = solve(Complete(7).to_matrix(e), 1.0)
    np.testing.assert_array_equal(whole.weights, solve(e, 1.0).weights)
    assert whole.weights.dtype == np.float64
    np.testing.assert_array_equal(whole.adjacency(), whole.adjacency().T)
    integers = solve(np.array([1, 2, 3]), 1)
    np.testing.assert_array_equal(integers.weights, solve(np.array([1.0, 2, 3]), 1.0).weights)


def test_path_equals_separate_solves_in_any_order(rng):
    e = distances_of_kind("geometric", 14, rng)
    thetas = [3.0, 0.01, 0.5, 3.0, 40.0]
    for theta, solution in zip(thetas, solve_path(e, thetas), strict=True):
        assert solution.theta == theta
        np.testing.assert_allclose(solution.weights, solve(e, theta).weights, atol=1e-8)


def test_path_is_cheaper_than_separate_solves(rng):
    e = distances_of_kind("geometric", 40, rng)
    thetas = np.geomspace(0.1, 10, 30)
    steps = sum(solution.iterations for solution in solve_path(e, thetas))
    assert steps < 0.7 * sum(solve(e, theta).iterations for theta in thetas)


def test_warm_start_from_the_solution_takes_no_step(rng):
    e = distances_of_kind("geometric", 14, rng)
    first = solve(e, 0.5)
    again = solve(e, 0.5, start=first.duals)
    assert again.iterations == 0
    np.testing.assert_array_equal(first.weights, again.weights)


def test_too_few_iterations_warn_and_are_not_called_converged(rng):
    e = distances_of_kind("geometric", 30, rng)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        solution = solve(e, 1.0, max_iter=2)
    assert not solution.converged
    assert solution.residual > 1e-9


@pytest.mark.parametrize("theta", [1e3, 1e5, 1e7])
def test_digits_do_not_cancel_where_theta_e_is_large(theta, rng):
    """Here lam - theta e has no digits left: the residual of float64 duals would be above 1e-9."""
    e = 1 + distances_of_kind("geometric", 10, rng)
    solution = solve(e, theta)
    assert solution.converged
    assert solution.residual < 1e-10
    exact = many_digit_weights(e, theta, incidence_matrix(10), solution.duals)
    np.testing.assert_allclose(solution.weights, exact, rtol=1e-9)


@pytest.mark.parametrize("kind", ["geometric", "uniform"])
def test_up_to_the_largest_theta_the_solution_is_found(kind, rng):
    """1/sqrt(eps) = 6.7e7 for theta e; at twice that some of these problems fail."""
    e, support = distances_of_kind(kind, 12, rng), Complete(12)
    low, high = theta_range(e, support)
    for theta in (low, np.sqrt(low * high), high):
        solution = solve(e, theta)
        assert solution.converged
        assert solution.residual < 1e-9
    for theta in (2 * high, 1e100, low / 2, 1e-320):
        for wrong in (solve, AcceleratedDPG().solve, lambda e, theta: solve_path(e, [1, theta])):
            with pytest.raises(ValueError, match=r"theta must be from .* with these distances"):
                wrong(e, theta)


def test_theta_range_of_a_restricted_support_is_that_of_its_nearest_pairs():
    support = Restricted.from_pairs([(0, 1), (1, 2), (2, 3), (3, 0)])
    high = theta_range(np.array([5.0, 1.0, 4.0, 3.0]), support)[1]  # nearest: 3, 1, 1, 3
    assert high == pytest.approx(2**26 / 3)
    assert theta_range(np.zeros(4), support) == (0, np.inf)  # any theta will do


@pytest.mark.parametrize("theta", [1e-12, 1e-6])
def test_tiny_theta_gives_the_graph_that_ignores_distances(theta, rng):
    e = distances_of_kind("geometric", 10, rng)
    np.testing.assert_allclose(solve(e, theta).weights, 1 / 3, rtol=1e-4)


def test_one_far_node_and_clusters_at_many_scales(rng):
    points = np.concatenate([rng.normal(size=(10, 2)) * s for s in (1e-4, 1.0, 100.0)])
    i, j = np.triu_indices(30, k=1)
    e = ((points[i] - points[j]) ** 2).sum(1) / 100
    for theta in (0.01, 0.1, 1.0):
        solution = solve(e, theta)
        assert solution.converged
        a, lam = solution.weights, solution.duals
        assert residual(a, lam, e, theta, Complete(30)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("theta", [0.1, 1.0, 10.0, 100.0])
def test_a_thousand_nodes(theta, rng):
    e = distances_of_kind("geometric", 1000, rng)
    solution = solve(e, theta)
    assert solution.converged
    support = Complete(1000)
    floor = max(1e-9, convex.rounding_floor(solution.duals))
    assert residual(solution.weights, solution.duals, e, theta, support) <= 2 * floor


SHAPES = {
    "path": lambda n: [(i, i + 1) for i in range(n - 1)],
    "star": lambda n: [(0, i) for i in range(1, n)],
    "tree": lambda n: [((i - 1) // 2, i) for i in range(1, n)],
    "ring of fives": lambda n: [(i, (i + k) % n) for i in range(n) for k in range(1, 6)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_nodes", [60, 300, 1000])
def test_large_restricted_supports_where_conjugate_gradients_fail(shape, n_nodes, rng):
    """Bipartite supports and large theta: the equations are ill-conditioned, and factorised."""
    support = Restricted.from_pairs(SHAPES[shape](n_nodes))
    e = rng.uniform(0.1, 1, size=support.n_edges)
    for theta in (1.0, 30.0, 300.0):
        solution = solve(e, theta, support=support)
        assert solution.converged, (theta, solution.residual)
        a, lam = solution.weights, solution.duals
        assert residual(a, lam, e, theta, support) <= max(1e-8, 2 * convex.rounding_floor(lam))


def test_sparse_equations_have_the_dense_solution_however_they_are_solved(rng, monkeypatch):
    from edgebelief.convex import systems

    support = Restricted.from_pairs(SHAPES["path"](50))
    incidence = incidence_matrix(50, list(zip(*support.endpoints, strict=True)))
    active, lam = rng.uniform(size=49) < 0.7, rng.uniform(1, 5, size=50)
    dense = np.diag(lam**-2) + (incidence * active) @ incidence.T / 2
    for failed in (0, 1):
        if failed:
            monkeypatch.setattr(systems, "cg", lambda *_, **__: (None, 1))
        rhs = rng.normal(size=50)
        got = systems.hessian_solve(lam, active, rhs, support)
        np.testing.assert_allclose(dense @ got, rhs, atol=1e-9)


def test_conjugate_gradients_cut_short_still_lead_to_the_solution(rng, monkeypatch):
    """Graphs too large to factorise: a direction of a few steps ascends, if not by much."""
    from edgebelief.convex import systems

    support = Restricted.from_pairs(SHAPES["ring of fives"](60))
    e = rng.uniform(0.1, 1, size=support.n_edges)
    expected = solve(e, 3.0, support=support)
    monkeypatch.setattr(systems, "FACTORISED", 0)
    monkeypatch.setattr(systems, "NEARLY_FOREST", 0)
    real = systems.cg
    monkeypatch.setattr(systems, "cg", lambda *a, **k: real(*a, **{**k, "maxiter": 5}))
    solution = solve(e, 3.0, support=support)
    assert solution.converged
    assert solution.iterations > expected.iterations
    np.testing.assert_allclose(solution.weights, expected.weights, atol=1e-8)
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        systems.hessian_solve(solution.duals, solution.weights > 0, np.ones(60), support)


def test_blocks_of_candidates_do_not_change_the_solution(rng, monkeypatch):
    from edgebelief.convex import systems

    pairs = rng.permutation(SHAPES["ring of fives"](40))  # in no order
    support = Restricted.from_pairs(pairs)
    e = rng.uniform(0.1, 1, size=support.n_edges)
    expected = solve(e, 1.0, support=support)
    monkeypatch.setattr(systems, "BLOCK", 7)
    np.testing.assert_allclose(solve(e, 1.0, support=support).weights, expected.weights, atol=1e-12)


def test_costs_so_large_that_roots_coincide_with_them(rng):
    solution = solve(np.array([-5.0, 2.0, 2.0]), 3e7)
    assert np.isfinite(solution.weights).all()
    with pytest.raises(ValueError, match="overflows"):
        solve(np.array([1e302, 2e302, 3e302]), 1e-298)
