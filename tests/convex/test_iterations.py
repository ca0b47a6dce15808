import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.convex.iterations import (
    DualState,
    PDSState,
    State,
    dpg_dual_step,
    dpg_step,
    pds_step,
    positive_root,
)
from edgebelief.edges import Complete
from oracles import positive_root as exact_root
from problems import distances_of_kind

MAGNITUDES = np.logspace(-6, 6, 97)


@pytest.mark.parametrize("c", [1, 19, 999])
def test_dual_update_is_accurate_to_a_few_ulp_in_float32(c):
    u = np.concatenate([-MAGNITUDES[::-1], [0.0], MAGNITUDES]).astype(np.float32)
    got = np.asarray(positive_root(jnp.asarray(u), c))
    assert got.dtype == np.float32
    exact = np.array([float(exact_root(x, c)) for x in u])
    ulp = np.spacing(exact.astype(np.float32)).astype(float)
    assert (np.abs(got - exact) / ulp).max() <= 3


def test_the_printed_forms_are_not_accurate():
    """Why there are two branches: each form alone fails on one side."""
    u = np.float32(1e5)
    printed = (np.sqrt(u**2 + 4 * np.float32(19)) - u) / (2 * np.float32(19))
    assert abs(printed / float(exact_root(u, 19)) - 1) > 0.5
    with np.errstate(divide="ignore"):
        other = 2 / (-u + np.sqrt(u**2 + 4 * np.float32(19)))
    assert not abs(other / float(exact_root(-u, 19)) - 1) < 0.5


@pytest.mark.parametrize("c", [1, 19, 999])
def test_dual_update_has_finite_right_gradients_everywhere(c):
    u = np.concatenate([-MAGNITUDES[::-1], [0.0, 1e-30, -1e-30], MAGNITUDES]).astype(np.float32)
    for gradient in (jax.grad, jax.jacfwd):
        got = np.asarray(jax.vmap(gradient(lambda x: positive_root(x, c)))(jnp.asarray(u)))
        x = np.array([float(exact_root(v, c)) for v in u])
        exact = -x / np.sqrt(u.astype(float) ** 2 + 4 * c)  # from c x^2 + u x = 1
        np.testing.assert_allclose(got, exact, rtol=2e-6)


def test_dpg_step_is_the_printed_algorithm(x64, rng):
    n, theta = 6, 0.4
    e = distances_of_kind("uniform", n, rng)
    a, lam = rng.uniform(size=15), rng.uniform(size=n)
    got = dpg_step(State(jnp.asarray(a), jnp.asarray(lam)), jnp.asarray(e), theta, Complete(n))
    i, j = np.triu_indices(n, k=1)
    d = np.bincount(i, a, n) + np.bincount(j, a, n)
    u = d - (n - 1) * lam
    lam = -(u - np.sqrt(u**2 + 4 * (n - 1))) / (2 * (n - 1))
    np.testing.assert_allclose(got.lam, lam, rtol=1e-13)
    np.testing.assert_allclose(got.a, np.maximum(0, (lam[i] + lam[j]) / 2 - theta * e), atol=1e-14)


def run_pds(e, n, sign, steps):
    """Algorithm 2 in NumPy, with the sign of q2 a choice."""
    i, j = np.triu_indices(n, k=1)
    alpha = beta = 1.0
    gamma = 0.05
    a, v = np.zeros(e.size), np.zeros(n)

    def s(a):
        return np.bincount(i, a, n) + np.bincount(j, a, n)

    for _ in range(steps):
        y1, y2 = a - gamma * (2 * beta * a + 2 * e + v[i] + v[j]), v + gamma * s(a)
        p1, p2 = np.maximum(0, y1), (y2 - np.sqrt(y2**2 + 4 * alpha * gamma)) / 2
        q1, q2 = p1 - gamma * (2 * beta * p1 + 2 * e + p2[i] + p2[j]), p2 + sign * gamma * s(p1)
        a, v = a - y1 + q1, v - y2 + q2
    return a, v


def test_pds_step_is_algorithm_2_with_a_plus(x64, rng):
    n = 6
    e = distances_of_kind("uniform", n, rng)
    state = PDSState(jnp.zeros(15), jnp.zeros(n))
    for _ in range(7):
        state = pds_step(state, jnp.asarray(e), 1.0, 1.0, 0.05, Complete(n))
    a, v = run_pds(e, n, sign=+1, steps=7)
    np.testing.assert_allclose(state.a, a, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(state.v, v, rtol=1e-12)


def test_the_minus_sign_that_the_paper_prints_diverges(rng):
    e = distances_of_kind("uniform", 6, rng)
    plus, minus = (np.abs(run_pds(e, 6, sign, steps=3000)[1]).max() for sign in (+1, -1))
    assert plus < 10
    assert minus > 100 * plus


@pytest.mark.parametrize("n", [3, 20, 60])
def test_the_dual_step_is_the_step_with_nothing_on_edges(n, x64, rng):
    """Unrolled row by row up to 48 nodes, plain beyond; several graphs side by side."""
    support, theta = Complete(n), jnp.asarray(0.3)
    e = jnp.asarray(rng.uniform(0.1, 5, (2, support.n_edges)))
    inner = jnp.stack([support.to_matrix(one) for one in e], -1)
    a, lam = jnp.full_like(e, 0.5), jnp.full((2, n), 2.0)
    dual = DualState(jnp.stack([support.degrees(one) for one in a], -1), lam.T)
    for _ in range(3):
        both = [dpg_step(State(a[t], lam[t]), e[t], theta, support) for t in range(2)]
        a, lam = (jnp.stack(x) for x in zip(*both, strict=True))
        dual = dpg_dual_step(dual, inner, theta, support.inner)
        np.testing.assert_allclose(dual.lam.T, lam, rtol=1e-12)
        np.testing.assert_allclose(dual.d.T, [support.degrees(one) for one in a], rtol=1e-12)


@pytest.mark.slow
def test_derivatives_of_the_dual_step_are_those_of_the_plain_one(x64, rng):
    support = Complete(6)
    e = jnp.asarray(rng.uniform(0.1, 5, support.n_edges))
    lam = jnp.asarray(rng.uniform(1, 3, 6))

    def unrolled(lam, theta, e):
        return support.inner.positive_degrees(lam, theta, support.to_matrix(e))

    def plain(lam, theta, e):
        return support.degrees(jax.nn.relu(support.endpoint_sums(lam) / 2 - theta * e))

    for jacobian in (jax.jacfwd, jax.jacrev):
        for k in range(3):
            got, expected = (jacobian(f, k)(lam, jnp.asarray(0.4), e) for f in (unrolled, plain))
            np.testing.assert_allclose(got, expected, atol=1e-12)
