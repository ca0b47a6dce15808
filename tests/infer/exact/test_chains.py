"""Chains over coefficients and scales: against integrals, finite differences and normal laws."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import halfnorm

from edgebelief.infer import lognormal
from edgebelief.infer.exact.chains import Rows, Target
from edgebelief.infer.exact.hamiltonian import StepSize, evaluated, move
from edgebelief.infer.exact.laplace import ThetaMode
from edgebelief.infer.exact.regression import Labels, LogisticPosterior, Mode
from edgebelief.infer.exact.shrinkage import Shrinkage

WIDTH = 0.3


def shrinkage_of(n_curves):
    """Two coefficients with lognormal priors, and one group of others."""
    marginals = (lognormal(2.0, 0.5), lognormal(1.0, 0.7))
    groups = np.zeros(n_curves, int)
    return Shrinkage(marginals, (None, None), groups, np.array([0.2]), WIDTH)


def target_of(shrinkage, labels):
    """The posterior at as many values of theta as there are labels, each in its own coordinates."""
    n = 2 + shrinkage.groups.size
    rng = np.random.default_rng(0)
    modes = []
    for k in range(len(labels)):
        factor = 0.5 * np.eye(n) + 0.1 * rng.standard_normal((n, n))
        mode = Mode(0.1 * rng.standard_normal(n), 0.0, factor, 0.0)
        modes.append(ThetaMode((1.0 + k,), 0.0, k / 10, mode))
    return Target.of(shrinkage, modes, Rows.of(labels))


@pytest.fixture
def labels(rng):
    """Rows at three values of theta, which only the first column depends on."""
    rows = rng.normal(size=(30, 5))
    return [
        Labels(rows * np.array([k, 1, 1, 1, 1]), rng.integers(1, 3, 30) * 1.0) for k in (1, 2, 3)
    ]


def test_density_is_that_of_the_regression_and_the_prior(rng, labels):
    shrinkage = shrinkage_of(3)
    target = target_of(shrinkage, labels)
    unit, at = rng.standard_normal((6, 4)), np.array([0, 2, 1, 1])
    value, _ = target.density(unit, at)
    v = target.from_unit(unit, at)
    np.testing.assert_allclose(target.to_unit(v, at), unit)
    for c, k in enumerate(at):
        tau = shrinkage.prior.from_z(v[5:, c])
        weights = labels[0].weights
        posterior = LogisticPosterior(
            Labels(labels[k].rows, weights), shrinkage.marginals, tau[shrinkage.groups]
        )
        expected = posterior.log_density(v[None, :5, c])[0] - v[5, c] ** 2 / 2 + k / 10
        h, typical = target.curvature[:, 0], shrinkage.sds
        stretch = np.sqrt((1 + h * typical**2) / (1 + h * tau[shrinkage.groups] ** 2))
        volume = np.linalg.slogdet(target.roots[k])[1] + np.log(stretch).sum()
        assert np.isclose(value[c], expected + volume, rtol=1e-5)


def test_gradient_is_that_of_the_density(rng, labels):
    target = target_of(shrinkage_of(3), labels)
    unit, at = 0.5 * rng.standard_normal((6, 3)), np.array([0, 1, 2])
    _, gradient = target.density(unit, at)
    for k in range(6):
        step = np.zeros((6, 1))
        step[k] = 1e-2
        ahead, behind = target.density(unit + step, at)[0], target.density(unit - step, at)[0]
        np.testing.assert_allclose(gradient[k], (ahead - behind) / 2e-2, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("n", "size"), [(1, 0.05), (1, 1.0), (6, 0.1), (6, 1.0)])
def test_new_scales_have_the_moments_of_their_density(rng, labels, n, size):
    """The density of a scale given its coefficients is one integral."""
    w = size * rng.standard_normal(n)
    tau = np.linspace(1e-4, 2.4, 40_001)
    f = -n * np.log(tau) - (w @ w) / (2 * tau**2) + halfnorm.logpdf(tau, scale=WIDTH)
    p = np.exp(f - logsumexp(f))
    mean, sd = p @ tau, np.sqrt(p @ tau**2 - (p @ tau) ** 2)
    shrinkage = shrinkage_of(n)
    rows = [Labels(rng.normal(size=(2, 2 + n)), np.ones(2))]
    target = target_of(shrinkage, rows)
    prior = shrinkage.prior
    v = np.concatenate([np.zeros(2), w / 0.2, prior.to_z(np.array([0.2]))])[:, None]
    v = np.repeat(v, 500, axis=1)
    drawn = []
    for _ in range(30):
        v = target.with_new_scales(rng, v)
        drawn.append(prior.from_z(v[-1]))
        np.testing.assert_allclose(prior.from_z(v[-1]) * v[2:-1], np.tile(w[:, None], 500))
    drawn = np.concatenate(drawn[5:])
    assert abs(drawn.mean() - mean) < 0.05 * sd
    assert abs(drawn.std() / sd - 1) < 0.05


def test_trajectories_leave_a_normal_distribution_as_it_is(rng):
    """Long and short axes, correlated; the step size finds an acceptance of three quarters."""
    root = np.array([[1.0, 0.0], [0.9, 0.3]])
    precision = np.linalg.inv(root @ root.T)

    def density(x):
        return -np.einsum("ic,ij,jc->c", x, precision, x) / 2, -precision @ x

    chains, step, drawn, accepted = evaluated(np.zeros((2, 400)), density), StepSize(0.05), [], []
    for t in range(150):
        moved = move(rng, density, chains, step.size)
        chains = moved.chains
        if t < 50:
            step.update(moved.acceptance.mean())
        else:
            drawn.append(chains.x)
            accepted.append(moved.acceptance.mean())
    assert abs(np.mean(accepted) - 0.75) < 0.1
    np.testing.assert_allclose(np.cov(np.concatenate(drawn, 1)), root @ root.T, atol=0.04)
