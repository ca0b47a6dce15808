"""What simulated signals show, against their laws, and against `data.signals` where both can."""

from functools import partial

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy import stats

from edgebelief.amortise import signals
from edgebelief.amortise.filters import FILTERS, filter_matrix
from edgebelief.amortise.signals import Distortion, Reading, distorted, gaussian
from edgebelief.data import distances, expected_distances
from edgebelief.edges import Complete
from edgebelief.evidence.numerics import correlation

N_NODES, CAPACITY, MOST, COUNT = 5, 6, 24, 3000
MASK = (jnp.arange(CAPACITY) < N_NODES).astype(jnp.float32)
ZERO = np.zeros(CAPACITY, np.float32)
RAW = Reading(0.0, 0.0, 0.0)
NOTHING = Distortion(jnp.inf, 0.0, 0.0, 0, 1.0, 0.0, 0.0)
GRAPH = nx.path_graph(N_NODES)
KEYS = jax.random.split(jax.random.key(3), COUNT)


@pytest.fixture(scope="module")
def f():
    """The paper's filter on a path."""
    weights = np.zeros((CAPACITY, CAPACITY), np.float32)
    weights[:N_NODES, :N_NODES] = nx.to_numpy_array(GRAPH)
    return jax.jit(filter_matrix)(
        jax.random.key(0), weights, MASK, FILTERS.index("inverse root"), 0
    )


def same_types(compiled):
    """Call with numbers in single precision and for all keys, so that there is one compilation."""

    def call(f, *numbers):
        return compiled(KEYS, *jax.tree.map(jnp.float32, (f, *numbers)))

    return call


@pytest.fixture(scope="module")
def draw():
    """Many draws of what Gaussian signals show."""

    def compute(keys, f, offsets, n_signals, reading):
        one = partial(
            gaussian, f=f, offsets=offsets, n_signals=n_signals, mask=MASK, reading=reading
        )
        return jax.vmap(one)(keys)

    return same_types(jax.jit(compute))


@pytest.fixture(scope="module")
def draw_distorted():
    def compute(keys, f, offsets, n_signals, reading, distortion):
        return jax.vmap(
            lambda key: distorted(key, f, offsets, n_signals, MASK, reading, distortion, MOST)
        )(keys)

    return same_types(jax.jit(compute))


def pairs(matrices):
    i, j = np.triu_indices(N_NODES, 1)
    return np.asarray(matrices, float)[..., i, j]


def test_infinitely_many_signals_show_expected_distances(f, draw):
    e = pairs(draw(f, ZERO, jnp.inf, RAW).e)[0]
    expected = expected_distances(GRAPH)
    ratio = e / expected  # Laplacians are divided by a little more than the largest eigenvalue
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    assert 1 <= ratio[0] <= N_NODES**0.125


@pytest.mark.parametrize("n_signals", [3, 20])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_distances_have_the_mean_and_variance_of_chi_squares(
    n_signals, one_by_one, f, draw, draw_distorted
):
    """P e_hat / e is chi-squared with P degrees of freedom: mean e, variance 2 e^2 / P."""
    args = f, ZERO, n_signals, RAW
    e = pairs((draw_distorted(*args, NOTHING) if one_by_one else draw(*args)).e)
    truth = pairs(draw(f, ZERO, jnp.inf, RAW).e)[0]
    sd = np.sqrt(2 / n_signals)
    np.testing.assert_allclose(e.mean(0) / truth, 1, atol=4 * sd / np.sqrt(COUNT))
    np.testing.assert_allclose(e.std(0) / truth, sd, rtol=0.1)
    for k in (0, 5):
        assert stats.kstest(n_signals * e[:, k] / truth[k], "chi2", (n_signals,)).pvalue > 1e-3


def test_scatter_has_the_covariance_between_pairs_of_a_wishart(f, draw):
    """Cov(e_ij, e_kl) = 2 c^2 / P, with c the covariance of x_i - x_j and x_k - x_l."""
    p = 3
    e = pairs(draw(f, ZERO, p, RAW).e)
    s = np.asarray(f @ f.T, float)[:N_NODES, :N_NODES]
    i, j = np.triu_indices(N_NODES, 1)
    difference = np.eye(N_NODES)[i] - np.eye(N_NODES)[j]
    expected = 2 * (difference @ s @ difference.T) ** 2 / p
    np.testing.assert_allclose(np.cov(e.T), expected, atol=0.15 * expected.max())


def test_centred_distances_lose_one_degree_of_freedom(f, draw):
    p, there = 4, Reading(1.0, 0.0, 0.0)
    offsets = jnp.arange(CAPACITY) * 10.0 * MASK  # which are then no matter
    e = pairs(draw(f, offsets, p, there).e)
    truth = pairs(draw(f, ZERO, jnp.inf, RAW).e)[0]
    np.testing.assert_allclose(e.mean(0) / truth, (p - 1) / p, rtol=0.06)


def test_few_signals_give_correlations_of_low_rank(f, draw):
    matrices = np.asarray(draw(f, ZERO, 3, RAW).correlation, float)
    ranks = np.linalg.matrix_rank(matrices[:20, :N_NODES, :N_NODES], tol=1e-3)
    assert (ranks == 2).all()  # P - 1


def test_readings_are_functions_of_correlations(f, draw):
    both = [draw(f, ZERO, 20, r) for r in (Reading(0, 1, 0), Reading(0, 0, 1))]
    c = pairs(both[0].correlation)
    np.testing.assert_allclose(pairs(both[0].e), 2 - 2 * c, atol=1e-5)
    np.testing.assert_allclose(pairs(both[1].e), 1 - abs(c), atol=1e-5)


def test_signs_of_nodes_change_signs_of_correlations_alone(f, draw):
    sign = jnp.array([1.0, -1, 1, -1, -1, 1])
    args = ZERO, 20, Reading(0, 0, 1)
    plain, flipped = draw(f, *args), draw(sign[:, None] * f, *args)
    np.testing.assert_allclose(flipped.e, plain.e, atol=1e-6)
    expected = plain.correlation * sign * sign[:, None]
    np.testing.assert_allclose(flipped.correlation, expected, atol=1e-6)


def test_noise_adds_to_variances_alone(f):
    none = jnp.zeros((len(MASK), 2))
    noisy = signals.with_noise(f, MASK, jnp.float32(0.5), none)
    s = f @ f.T
    expected = s + 0.5 * jnp.trace(s) / N_NODES * jnp.diag(MASK)
    np.testing.assert_allclose(noisy @ noisy.T, expected, atol=1e-4)
    np.testing.assert_array_equal(signals.with_noise(f, MASK, jnp.float32(0.0), none), f)


def test_common_factors_add_the_products_of_their_loadings(f):
    loadings = jnp.ones((len(MASK), 1)).at[0].set(-2.0)
    common = signals.with_noise(f, MASK, jnp.float32(0.0), loadings)
    s, u = f @ f.T, loadings[:, 0] * MASK
    expected = s + jnp.trace(s) / N_NODES * (jnp.outer(u, u) + signals.LEAST_NOISE * jnp.diag(MASK))
    np.testing.assert_allclose(common @ common.T, expected, atol=1e-4)


def test_distances_and_correlations_with_gaps_are_those_of_users(rng):
    x = rng.normal(size=(MOST, CAPACITY)).cumsum(1)
    there = rng.uniform(size=x.shape) > 0.3
    e, c = signals._pairwise(jnp.asarray(x * there), jnp.asarray(there * 1.0), jnp.ones(CAPACITY))
    gappy = np.where(there, x, np.nan)
    to_vector = Complete(CAPACITY).to_vector
    expected = distances(gappy, missing="pairwise")
    np.testing.assert_allclose(to_vector(np.asarray(e)), expected, rtol=1e-4)
    np.testing.assert_allclose(c, correlation(gappy), atol=1e-4)


def test_gaps_are_as_many_as_stated_and_leave_the_mean(f, draw_distorted):
    args = f, ZERO, 20, RAW
    truth = pairs(draw_distorted(*args, NOTHING).e).mean(0)
    e = pairs(draw_distorted(*args, NOTHING._replace(gaps=0.3)).e)
    np.testing.assert_allclose(e.mean(0) / truth, 1, rtol=0.05)
    # A pair has 0.49 of the signals: the variance is that of so few.
    assert np.mean(e.std(0) / truth) == pytest.approx(np.sqrt(2 / (0.49 * 20)), rel=0.1)


def test_heavy_tails_are_students():
    white = signals._white(jax.random.key(0), NOTHING._replace(tails=4.0), 4000, 5)
    levels = [0.6, 0.8, 0.9, 0.95, 0.99]
    found = np.quantile(np.asarray(white), levels)
    np.testing.assert_allclose(found, stats.t(4).ppf(levels), rtol=0.06)


def test_memory_is_the_correlation_of_a_signal_with_the_next():
    z = np.asarray(signals._white(jax.random.key(0), NOTHING._replace(memory=0.8), 400, 30))
    assert np.mean(z**2) == pytest.approx(1, abs=0.1)
    assert np.mean(z[1:] * z[:-1]) == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("nonlinearity", range(5))
@pytest.mark.parametrize("n_signals", [1, 2, 24])
def test_hostile_responses_are_finite(nonlinearity, n_signals, f, draw_distorted):
    """A node that is constant, one a million times as large, few signals, many gaps."""
    f = f.at[0].set(0.0).at[1].multiply(1e6)
    harsh = Distortion(3.0, 1.0, 0.9, nonlinearity, 2.0, 0.8, 0.0)
    for reading in (RAW, Reading(1, 1, 0), Reading(0, 0, 1)):
        seen = draw_distorted(f, ZERO + 1e3, n_signals, reading, harsh)
        assert np.isfinite(seen.e).all()
        assert np.isfinite(seen.correlation).all()
        assert (np.asarray(seen.e) >= 0).all()
