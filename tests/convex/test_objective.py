import numpy as np
import pytest

from edgebelief.convex import (
    DPG,
    PDS,
    dual,
    objective,
    residual,
    rounding_floor,
    solve,
    to_penalised,
    to_scaled,
    weights_of,
)
from edgebelief.edges import Complete
from oracles import constant_distance_weight, incidence_matrix
from problems import KINDS, distances_of_kind


def general_objective(a, e, alpha, beta):
    s = incidence_matrix(round((1 + np.sqrt(1 + 8 * a.size)) / 2))
    return 2 * a @ e - alpha * np.log(s @ a).sum() + beta * a @ a


def test_parametrisations_are_inverse():
    assert to_penalised(*to_scaled(3.0, 0.2)) == pytest.approx((3.0, 0.2), rel=1e-14)
    assert to_scaled(*to_penalised(0.7, 40.0)) == pytest.approx((0.7, 40.0), rel=1e-14)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (333.0, 0.11), (0.2, 5.0)])
def test_general_form_is_minimised_by_delta_times_the_solution_at_theta(alpha, beta, rng):
    e = distances_of_kind("geometric", 8, rng)
    theta, delta = to_scaled(alpha, beta)
    a = delta * solve(e, theta).weights
    best = general_objective(a, e, alpha, beta)
    for _ in range(200):
        other = np.maximum(a * np.exp(1e-3 * rng.normal(size=a.size)), 0)
        other = other + 1e-4 * a.max() * (rng.uniform(size=a.size) < 0.1)
        assert general_objective(other, e, alpha, beta) > best


@pytest.mark.parametrize("kind", KINDS)
def test_dual_never_exceeds_objective_and_meets_it_at_the_solution(kind, rng):
    e, support = distances_of_kind(kind, 9, rng), Complete(9)
    for theta in (0.1, 1.0, 10.0):
        solution = solve(e, theta)
        a, lam = solution.weights, solution.duals
        top = objective(a, e, theta, support)
        assert dual(lam, e, theta, support) == pytest.approx(top, rel=1e-8, abs=1e-8)
        for _ in range(20):
            other = lam * np.exp(0.3 * rng.normal(size=lam.size))
            assert dual(other, e, theta, support) < top
            feasible = np.abs(rng.normal(size=a.size))
            assert objective(feasible, e, theta, support) > top


def test_residual_sees_every_way_of_being_wrong(rng):
    support = Complete(6)
    e = distances_of_kind("geometric", 6, rng)
    solution = solve(e, 0.5)
    a, lam = solution.weights, solution.duals
    assert residual(a, lam, e, 0.5, support) < 1e-9
    assert residual(1.01 * a, lam, e, 0.5, support) > 5e-3
    assert residual(a, 1.01 * lam, e, 0.5, support) > 5e-3
    # The all-zero graph, where DPG stands still for a while at large theta:
    assert residual(0 * a, lam, e, 0.5, support) >= 1
    # Tied to lam, but lam is no solution:
    tied = weights_of(2 * lam, e, 0.5, support)
    assert residual(tied, 2 * lam, e, 0.5, support) > 0.1


def test_objective_is_infinite_for_a_node_without_edges():
    assert objective(np.array([1.0, 0.0, 0.0]), np.ones(3), 1.0, Complete(3)) == np.inf


def test_rounding_floor_is_ten_eps_lam_squared():
    assert rounding_floor(np.array([1.0, 100.0])) == pytest.approx(10 * 2.0**-52 * 1e4)
    assert rounding_floor(np.array([1.0, 100.0], np.float32)) == pytest.approx(10 * 2.0**-23 * 1e4)


@pytest.mark.parametrize("algorithm", [DPG(), PDS()], ids=["Algorithm 1", "Algorithm 2"])
def test_neither_algorithm_minimises_the_half_weight_objective_the_paper_prints(algorithm, rng):
    """The paper prints (beta/2)||a||^2; the gradient on the active edges tells which one holds."""
    e, theta = distances_of_kind("geometric", 8, rng), 0.3
    s = incidence_matrix(8)
    a = algorithm.solve(e, theta, tol=1e-11).weights
    active = a > 1e-6

    def gradient(weight_of_square):
        full = 2 * theta * e - s.T @ (1 / (s @ a)) + 2 * weight_of_square * a
        return np.abs(full[active]).max()

    assert gradient(1.0) < 1e-8
    assert gradient(0.5) > 0.1


def test_closed_form_itself_satisfies_the_optimality_condition():
    a = constant_distance_weight(0.7, 3.0, 11)
    lam = 1 / (10 * a)
    assert a == pytest.approx(lam - 0.7 * 3.0, rel=1e-13)
