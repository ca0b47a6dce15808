import numpy as np
import pytest

from edgebelief.infer import lognormal, normal
from edgebelief.infer.exact.regression import Labels, LogisticPosterior


@pytest.fixture
def labels(rng):
    """Outputs of a network, two thirds of them zero, and labels that follow them."""
    a = np.where(rng.random(20_000) < 0.66, 0, rng.gamma(2, 0.05, 20_000))
    y = (rng.random(a.size) < 1 / (1 + np.exp(-(60 * a - 5)))).astype(float)
    columns = np.stack([a, np.full_like(a, -1)], -1)
    weights = np.ones(a.size)
    weights[::7] = 2.5
    weights[::11] = 0
    return columns, y, weights


def by_definition(columns, y, weights, beta):
    logits = columns @ beta
    return -(weights * np.logaddexp(0, -(2 * y - 1) * logits)).sum()


BETA = np.array([[60.0, 5.0], [20.0, 3.0], [-5.0, 1.0], [500.0, 40.0], [0.0, -2.0]])


def test_likelihood_is_that_of_the_definition(labels):
    expected = [by_definition(*labels, beta) for beta in BETA]
    got = Labels.collapse(*labels)
    assert len(got.rows) < 7500  # zeros are two rows
    np.testing.assert_allclose(got.log_likelihood(BETA), expected, rtol=1e-11)


def test_compressed_labels_have_nearly_the_same_likelihood(labels):
    full = Labels.collapse(*labels)
    small = full.compress()
    assert len(small.rows) < 3600
    difference = small.log_likelihood(BETA) - full.log_likelihood(BETA)
    assert np.abs(difference).max() < 2e-3
    assert small.weights.sum() == pytest.approx(full.weights.sum())


def test_compressed_separable_labels_keep_the_boundary(rng):
    """Where delta is huge, the rows on both sides of the gap decide alone."""
    a = np.concatenate([rng.uniform(0, 0.4, 20_000), rng.uniform(0.401, 1, 20_000)])
    columns, y = np.stack([a, np.full_like(a, -1)], -1), (a > 0.4).astype(float)
    full = Labels.collapse(columns, y, np.ones(a.size))
    beta = np.array([[2e4, 8.01e3], [2e4, 8.02e3], [1e3, 400.5]])
    np.testing.assert_allclose(
        full.compress().log_likelihood(beta), full.log_likelihood(beta), rtol=1e-3
    )


def test_derivatives_are_differences(labels):
    posterior = LogisticPosterior(Labels.collapse(*labels), (lognormal(100, 1.4), normal(2, 3)))
    z, h = np.array([-0.4, 0.9]), 1e-4
    value, gradient, hessian = posterior.derivatives(z)
    assert value == pytest.approx(posterior.log_density(z[None])[0], rel=1e-10)
    for k, step in enumerate(h * np.eye(2)):
        up, down = posterior.derivatives(z + step), posterior.derivatives(z - step)
        assert gradient[k] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-5)
        np.testing.assert_allclose(hessian[k], (up[1] - down[1]) / (2 * h), rtol=1e-4)


def test_climb_ends_where_the_gradient_is_zero(labels):
    posterior = LogisticPosterior(
        Labels.collapse(*labels), (lognormal(100, 1.4), lognormal(1, 1.4))
    )
    mode = posterior.climb(np.zeros(2))
    _, gradient, hessian = posterior.derivatives(mode.z)
    step = np.linalg.solve(-hessian, gradient)
    assert np.abs(step).max() < 1e-3 * np.sqrt(np.diag(mode.covariance)).min()


def test_rows_with_zeros_in_different_columns_are_compressed_apart(rng):
    """Those of a readout with one slope above the threshold and another below it."""
    z = rng.normal(-0.05, 0.05, 40_000)
    logits = 100 * np.maximum(z, 0) + 30 * np.minimum(z, 0) - 1
    y = (rng.random(z.size) < 1 / (1 + np.exp(-logits))).astype(float)
    columns = np.stack([np.maximum(z, 0), np.minimum(z, 0), np.full_like(z, -1)], -1)
    full = Labels.collapse(columns, y, np.ones(z.size))
    small = full.compress()
    assert len(full.rows) == z.size
    assert len(small.rows) < 7200
    beta = np.array([[100.0, 30.0, 1.0], [300.0, 10.0, 2.0], [50.0, 100.0, 0.0]])
    expected = [by_definition(columns, y, 1.0, each) for each in beta]
    np.testing.assert_allclose(small.log_likelihood(beta), expected, atol=5e-3)
    assert small.weights.sum() == pytest.approx(z.size)
