"""A surface has the covariance of its Gaussian process, in the units that it states."""

import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.readouts.surface import FAR, SPREAD, surface_of


@pytest.fixture
def x(rng):
    return np.column_stack([rng.normal(3, 2, 60), rng.gamma(2.0, size=60)])


def columns(surface, x):
    return np.asarray(surface.columns(jnp.asarray(x)), float)


def kernel(x, y):
    """exp(-|x - y|^2 / 2d) of standardized features, the plain way."""
    return np.exp([[-((a - b) ** 2).mean() / 2 for b in y] for a in x])


def test_the_covariance_is_the_kernel_at_landmarks_and_nearly_everywhere(x64, x):
    surface = surface_of(x)
    standard = ((x - x.mean(0)) / x.std(0)).clip(-FAR, FAR)
    features = columns(surface, x) + surface.means
    own = features @ features.T
    own /= own.diagonal().max()  # k(x, x) = 1 at a landmark
    every = kernel(standard, standard)
    at = [int(np.abs(standard - c).sum(1).argmin()) for c in surface.landmarks]
    assert len(at) < len(x)
    np.testing.assert_allclose(own[np.ix_(at, at)], every[np.ix_(at, at)], atol=1e-6)
    assert np.abs(own - every).max() < 0.011  # what is left has a variance of 0.01 at the most


def test_columns_are_centred_and_of_the_spread_that_is_stated(x64, x):
    surface = surface_of(x)
    own = columns(surface, x)
    assert np.abs(own.mean(0)).max() < 1e-10
    assert (own**2).mean(0).sum() == pytest.approx(SPREAD**2)
    np.testing.assert_allclose(surface.gram, own.T @ own / len(x), atol=1e-10)


def test_far_from_the_data_it_is_flat(x):
    surface = surface_of(x)
    edge = x.mean(0) + (FAR + 0.01) * x.std(0)
    np.testing.assert_allclose(
        columns(surface, edge[None]), columns(surface, edge[None] + 1e3), atol=1e-5
    )


def test_single_precision_agrees_with_double(x, x64):
    surface = surface_of(x)
    single = np.asarray(surface.columns(x.astype(np.float32)))
    assert single.dtype == np.float32
    assert np.abs(single - surface.columns(x)).max() < 2e-3 * SPREAD


def test_units_and_features_that_say_nothing_do_not_matter(x):
    own = columns(surface_of(x), x)
    other = columns(surface_of(x * [1e6, 1e-6]), x * [1e6, 1e-6])
    np.testing.assert_allclose(own, other, atol=1e-3)
    with_constant = np.column_stack([x, np.full(len(x), 7.0)])
    surface = surface_of(with_constant)
    changed = with_constant + np.array([0.0, 0.0, 5.0])
    np.testing.assert_allclose(
        columns(surface, with_constant), columns(surface, changed), atol=1e-6
    )
    assert surface_of(np.ones((5, 2))) is None
