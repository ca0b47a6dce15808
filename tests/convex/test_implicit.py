import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from edgebelief import solve
from edgebelief.convex.implicit import _tangent_on_host
from edgebelief.edges import Complete, Restricted
from problems import KINDS, distances_of_kind

SUPPORTS = {
    "complete": Complete(8),
    "restricted": Restricted.from_pairs([(i, (i + k) % 8) for i in range(8) for k in (1, 3)]),
}


@pytest.fixture(params=SUPPORTS.values(), ids=SUPPORTS)
def support(request):
    return request.param


def problem(kind, support, rng):
    e = distances_of_kind(kind, support.n_nodes, rng)[: support.n_edges]
    weight = rng.normal(size=support.n_edges)  # a functional of the graph: weight . a + sum lam
    return e, weight


@pytest.mark.parametrize("kind", KINDS)
def test_forward_reverse_and_finite_difference_gradients_agree(kind, support, x64, rng):
    e, weight = problem(kind, support, rng)
    theta = 0.6

    def f(e, theta):
        solution = solve(e, theta, support=support, tol=1e-12)
        return weight @ solution.weights + jnp.sum(solution.duals)

    def on_host(e, theta):
        solution = solve(e, theta, support=support, tol=1e-12)
        return weight @ solution.weights + solution.duals.sum()

    h = 1e-6
    difference = (on_host(e, theta + h) - on_host(e, theta - h)) / (2 * h)
    assert float(jax.grad(f, argnums=1)(e, theta)) == pytest.approx(difference, rel=1e-6, abs=1e-6)
    assert float(jax.jacfwd(f, argnums=1)(e, theta)) == pytest.approx(difference, rel=1e-6)
    direction = rng.normal(size=e.size)
    difference = (on_host(e + h * direction, theta) - on_host(e - h * direction, theta)) / (2 * h)
    reverse = jax.jit(jax.grad(f))(jnp.asarray(e), theta)
    _, forward = jax.jvp(lambda e: f(e, theta), (jnp.asarray(e),), (jnp.asarray(direction),))
    assert float(reverse @ direction) == pytest.approx(difference, rel=1e-6, abs=1e-6)
    assert float(forward) == pytest.approx(difference, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("theta", [0.01, 0.5, 10.0, 1e3, 1e4])
def test_constant_distances_have_the_derivative_of_the_closed_form(theta):
    """In float32, where S'dlam/2 - e dtheta would lose all its digits from theta = 100 on."""
    c, n = 2.0, 6
    gradient = jax.jacfwd(lambda t: solve(jnp.full(15, c), t).weights[0])(theta)
    with mpmath.workdps(50):
        t = mpmath.mpf(theta)
        exact = (-c + t * c**2 / mpmath.sqrt(t**2 * c**2 + mpmath.mpf(4) / (n - 1))) / 2
    assert float(gradient) == pytest.approx(float(exact), rel=1e-4)


def test_second_derivatives_in_theta(x64):
    e = jnp.array([1.0, 2.0, 3.0, 1.5, 2.5, 0.5])

    def f(t):
        return solve(e, t, tol=1e-13).weights @ jnp.arange(6.0)

    h = 1e-5
    slope = jax.grad(f)
    assert float(jax.grad(slope)(0.4)) == pytest.approx(
        float((slope(0.4 + h) - slope(0.4 - h)) / (2 * h)), rel=1e-5
    )


@pytest.mark.parametrize("support", SUPPORTS.values(), ids=SUPPORTS)
def test_no_derivative_is_nan_not_an_error(support):
    """Duals beyond what float64 can factorise must not end an optimiser or a sampler."""
    a, lam = np.ones(support.n_edges), np.full(support.n_nodes, 1e200)
    tangent = _tangent_on_host(support, a, lam, np.ones(a.size + lam.size))
    assert np.isnan(tangent[a.size :]).all() or np.isfinite(tangent).all()
    assert np.isnan(_tangent_on_host(support, a, lam * np.nan, np.ones(a.size + lam.size))).all()


def test_float32_inside_jit_is_the_float64_solution_rounded(support, rng):
    e, _ = problem("geometric", support, rng)
    e = e.astype(np.float32)
    traced = jax.jit(lambda e, theta: solve(e, theta, support=support))(e, np.float32(0.25))
    plain = solve(e, np.float32(0.25), support=support)
    assert traced.weights.dtype == jnp.float32
    np.testing.assert_array_equal(traced.weights, plain.weights.astype(np.float32))
    assert bool(traced.converged)
    assert int(traced.iterations) == plain.iterations


def test_support_may_itself_be_an_argument_of_a_compiled_function(rng):
    support = SUPPORTS["restricted"]
    e, _ = problem("uniform", support, rng)
    compiled = jax.jit(lambda e, support: solve(e, 1.0, support=support).weights)
    np.testing.assert_allclose(compiled(e, support), solve(e, 1.0, support=support).weights, 1e-6)


def test_vmap_over_graphs_and_over_theta(rng):
    stack = np.stack([distances_of_kind("uniform", 6, rng) for _ in range(3)])
    graphs = jax.vmap(lambda e: solve(e, 1.0).weights)(stack)
    np.testing.assert_allclose(graphs, [solve(e, 1.0).weights for e in stack], rtol=1e-5, atol=1e-7)
    thetas = jnp.array([0.1, 1.0])
    slopes = jax.vmap(jax.grad(lambda t: solve(stack[0], t).weights.sum()))(thetas)
    alone = [jax.grad(lambda t: solve(stack[0], t).weights.sum())(t) for t in thetas]
    np.testing.assert_allclose(slopes, alone, rtol=1e-5)


def test_matrices_can_be_traced_too(rng):
    e = distances_of_kind("uniform", 6, rng)
    matrix = Complete(6).to_matrix(e)
    np.testing.assert_allclose(
        jax.jit(lambda m: solve(m, 1.0).weights)(matrix), solve(e, 1.0).weights, rtol=1e-5
    )


@pytest.mark.parametrize("theta", [np.nan, -1.0, 0.0, np.inf])
def test_impossible_traced_values_give_nan_and_no_convergence(theta):
    solution = jax.jit(lambda t: solve(jnp.ones(3), t))(theta)
    assert np.isnan(solution.weights).all()
    assert not bool(solution.converged)


def test_global_precision_is_left_alone(rng):
    e = distances_of_kind("uniform", 6, rng)
    before = jax.config.jax_enable_x64
    solve(e, 1.0)
    jax.jit(lambda t: solve(e, t).weights)(1.0)
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(1).dtype == jnp.float32


def test_what_can_be_checked_while_tracing_is_checked(rng):
    e = distances_of_kind("uniform", 6, rng)
    ring = SUPPORTS["restricted"]
    for call, message in (
        (lambda: jax.jit(lambda e: solve(e, 1.0).weights)(np.ones((3, 2))), "must have shape"),
        (lambda: jax.jit(lambda e: solve(e, 1.0, support=ring).weights)(np.ones(6)), "have shape"),
        (lambda: jax.jit(lambda t: solve(e, t).weights)(np.ones(2)), "theta must be one number"),
        (lambda: jax.jit(lambda e: solve(e, -1.0).weights)(e), "theta must be positive"),
        (lambda: jax.jit(lambda t: solve(e * np.nan, t).weights)(1.0), r"distances\[0, 1\] is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="start= cannot be used inside jit"):
        jax.jit(lambda t: solve(e, t, start=np.ones(6)).weights)(1.0)


def test_support_alone_may_be_traced(rng):
    support = SUPPORTS["restricted"]
    e, _ = problem("uniform", support, rng)
    compiled = jax.jit(lambda support: solve(e, 1.0, support=support).weights)
    np.testing.assert_allclose(compiled(support), solve(e, 1.0, support=support).weights, 1e-6)
    matrix = support.to_matrix(e)
    compiled = jax.jit(lambda support: solve(matrix, 1.0, support=support).weights)
    np.testing.assert_allclose(compiled(support), solve(e, 1.0, support=support).weights, 1e-6)
    for wrong, message in ((np.ones(3), "must have shape"), (e * np.nan, "NaN")):
        with pytest.raises(ValueError, match=message):
            jax.jit(lambda s, wrong=wrong: solve(wrong, 1.0, support=s).weights)(support)


def test_float64_reaches_the_host_and_back_even_from_a_thread_local_context(rng):
    """The callback may run in a thread that knows nothing of the x64 context around the call."""
    e = distances_of_kind("geometric", 300, rng)  # large enough for JAX to run it elsewhere
    exact = solve(e, 0.3)
    with jax.enable_x64(True):
        for _ in range(5):
            traced = jax.jit(lambda e, theta: solve(e, theta))(e, 0.3)
            assert traced.weights.dtype == np.float64
            np.testing.assert_array_equal(np.asarray(traced.weights), exact.weights)
