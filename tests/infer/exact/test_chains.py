"""Chains over coefficients and scales: against integrals, finite differences and normal laws."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import norm, t

from edgebelief.infer import half_normal, half_t, lognormal
from edgebelief.infer.exact.chains import CHAINS, VALUES, Values, log_ratio
from edgebelief.infer.exact.hamiltonian import ACCEPT, StepSize, evaluated, move
from edgebelief.infer.exact.laplace import ThetaMode
from edgebelief.infer.exact.regression import Labels, LogisticPosterior, Mode
from edgebelief.infer.exact.shrinkage import Shrinkage
from edgebelief.infer.exact.target import Metric, Rows, Target

WIDTH = 0.3


def shrinkage_of(n_curves, prior=half_normal(WIDTH)):
    """Two coefficients with lognormal priors, and one group of others."""
    marginals = (lognormal(2.0, 0.5), lognormal(1.0, 0.7))
    groups = np.zeros(n_curves, int)
    return Shrinkage(marginals, (None, None), groups, np.array([0.2]), prior)


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


@pytest.mark.parametrize("prior", [half_normal(WIDTH), half_t(WIDTH)])
def test_density_is_that_of_the_regression_and_the_prior(rng, labels, prior):
    shrinkage, at = shrinkage_of(3, prior), np.array([0, 2, 1, 1])
    target = target_of(shrinkage, labels).at(at)
    unit = rng.standard_normal((6, 4))
    value, _ = target.density(unit)
    v = target.from_unit(unit)
    np.testing.assert_allclose(target.to_unit(v), unit)
    for c, k in enumerate(at):
        tau = shrinkage.prior.from_z(v[5:, c])
        weights = labels[0].weights
        posterior = LogisticPosterior(
            Labels(labels[k].rows, weights), shrinkage.marginals, tau[shrinkage.groups]
        )
        expected = posterior.log_density(v[None, :5, c])[0] - v[5, c] ** 2 / 2
        h, typical = target.curvatures[:, c], shrinkage.sds
        stretch = np.sqrt((1 + h * typical**2) / (1 + h * tau[shrinkage.groups] ** 2))
        each = zip(shrinkage.marginals, v[:2, c], target.bends[:, c], strict=True)
        pace = [1 / (1 + bend * m.from_z_derivatives(z)[0]) for m, z, bend in each]
        volume = np.linalg.slogdet(target.roots[c])[1] + np.log(stretch).sum() + np.log(pace).sum()
        assert np.isclose(value[c], expected + volume, rtol=1e-5)


@pytest.mark.parametrize("prior", [half_normal(WIDTH), half_t(WIDTH)])
def test_gradient_is_that_of_the_density(rng, labels, prior):
    target = target_of(shrinkage_of(3, prior), labels)
    unit = 0.5 * rng.standard_normal((6, 3))
    _, gradient = target.density(unit)
    for k in range(6):
        step = np.zeros((6, 1))
        step[k] = 1e-2
        ahead, behind = target.density(unit + step)[0], target.density(unit - step)[0]
        np.testing.assert_allclose(gradient[k], (ahead - behind) / 2e-2, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("n", [1, 5, 40])
def test_chosen_values_of_theta_share_the_whole_posterior(rng, n):
    """Laplace's approximation at the chosen values has the mass that it has at all points."""
    modes = [
        ThetaMode((1.0,), z, float(rng.normal()), Mode(np.zeros(1), 0.0, np.eye(1), -(z**2) / 2))
        for z in np.linspace(-3, 3, n)
    ]
    values = Values.of(modes)
    assert len(values.places) == len(set(values.places)) <= min(n, VALUES)
    assert values.n_chains.sum() == CHAINS * VALUES
    assert np.bincount(values.of_chains()).tolist() == values.n_chains.tolist()
    log_mass = np.array([at.log_share + at.mode.log_mass for at in modes])
    chosen = values.log_shares + [modes[k].mode.log_mass for k in values.places]
    assert np.isclose(logsumexp(chosen), logsumexp(log_mass))
    z = np.array([at.z for at in modes])
    means = [
        p @ z[k] for p, k in ((softmax(chosen), values.places), (softmax(log_mass), slice(None)))
    ]
    assert abs(means[0] - means[1]) < 0.1


def test_values_follow_an_evidence_that_is_given(rng):
    """Most chains are where most of the posterior is, and it is not where Laplace has it."""
    modes = [
        ThetaMode((1.0,), z, 0.0, Mode(np.zeros(1), 0.0, np.eye(1), -(z**2) / 2))
        for z in np.linspace(-3, 3, 13)
    ]
    values = Values.of(modes, np.where(np.arange(13) == 11, 0.0, -8.0))
    assert values.places[values.n_chains.argmax()] == 11
    assert values.n_chains.max() > CHAINS * VALUES / 2
    shares = softmax(values.log_shares + np.where(values.places == 11, 0.0, -8.0))
    assert np.isclose(shares.max(), 1 / (1 + 12 * np.exp(-8)), atol=2e-3)


@pytest.mark.parametrize(("n", "m"), [(6000, 6000), (1000, 9000), (9000, 1000)])
def test_evidence_is_compared_from_unlike_numbers_of_draws(rng, n, m):
    """A value of theta that stands for much of the posterior has more chains than the next."""

    def ratio(x):  # of exp(-(x - 1)^2/8) to exp(-x^2/2)
        return -((x - 1) ** 2) / 8 + x**2 / 2

    x, y = rng.standard_normal(n), 2 * rng.standard_normal(m) + 1
    assert abs(log_ratio(ratio(x), -ratio(y)) - np.log(2)) < 0.1


def test_metric_widens_the_directions_in_which_draws_are_wide(rng):
    wide = np.array([0.6, 0.8, 0, 0, 0, 0])
    draws = rng.standard_normal((4000, 6)) + 4 * rng.standard_normal((4000, 1)) * wide + 2.0
    metric = Metric.of(draws)
    assert metric.directions.shape == (6, 1)
    assert abs(metric.directions[:, 0] @ wide) > 0.99
    x = metric.from_unit(draws.T)
    np.testing.assert_allclose(np.cov(x), np.eye(6), atol=0.1)
    np.testing.assert_allclose(metric.to_unit(x), draws.T)


@pytest.mark.parametrize("prior", [half_normal(WIDTH), half_t(WIDTH)])
def test_gradient_is_that_of_the_density_in_learned_coordinates(rng, labels, prior):
    target = target_of(shrinkage_of(3, prior), labels)
    metric = Metric(0.1 * np.ones((6, 1)), np.eye(6)[:, :2], np.array([[2.0], [3.0]]))
    plain, learned = target, replace(target, metric=metric)
    x = 0.5 * rng.standard_normal((6, 3))
    value, gradient = learned.density(x)
    expected, by_unit = plain.density(metric.to_unit(x))
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(gradient, np.array([2, 3, 1, 1, 1, 1])[:, None] * by_unit)
    np.testing.assert_allclose(learned.to_unit(learned.from_unit(x)), x)


@pytest.mark.parametrize(("n", "size"), [(1, 0.05), (1, 1.0), (6, 0.1), (6, 1.0)])
@pytest.mark.parametrize(
    ("prior", "law"), [(half_normal(WIDTH), norm(0, WIDTH)), (half_t(WIDTH), t(2, 0, WIDTH))]
)
def test_new_scales_have_the_moments_of_their_density(rng, labels, n, size, prior, law):
    """The density of a scale given its coefficients is one integral; of its logarithm, since with
    the half-t and one coefficient a scale has no variance."""
    w = size * rng.standard_normal(n)
    log_tau = np.linspace(np.log(1e-4), np.log(1e3 * WIDTH), 40_001)
    tau = np.exp(log_tau)
    f = (1 - n) * log_tau - (w @ w) / (2 * tau**2) + law.logpdf(tau)
    p = np.exp(f - logsumexp(f))
    mean, sd = p @ log_tau, np.sqrt(p @ log_tau**2 - (p @ log_tau) ** 2)
    shrinkage = shrinkage_of(n, prior)
    rows = [Labels(rng.normal(size=(2, 2 + n)), np.ones(2))]
    target = target_of(shrinkage, rows)
    v = np.concatenate([np.zeros(2), w / 0.2, prior.to_z(np.array([0.2]))])[:, None]
    v = np.repeat(v, 500, axis=1)
    drawn = []
    for _ in range(40):
        v = target.with_new_scales(rng, v)
        drawn.append(np.log(prior.from_z(v[-1])))
        np.testing.assert_allclose(prior.from_z(v[-1]) * v[2:-1], np.tile(w[:, None], 500))
    drawn = np.concatenate(drawn[5:])
    assert abs(drawn.mean() - mean) < 0.05 * sd
    assert abs(drawn.std() / sd - 1) < 0.05


def test_trajectories_leave_a_normal_distribution_as_it_is(rng):
    """Long and short axes, correlated; the step size finds the acceptance that is asked for."""
    root = np.array([[1.0, 0.0], [0.9, 0.3]])
    precision = np.linalg.inv(root @ root.T)

    def density(x):
        return -np.einsum("ic,ij,jc->c", x, precision, x) / 2, -precision @ x

    chains, step, drawn, accepted = (
        evaluated(np.zeros((2, 400)), density),
        StepSize(np.full(400, 0.05)),
        [],
        [],
    )
    for k in range(150):
        moved = move(rng, density, chains, step.size)
        chains = moved.chains
        if k < 50:
            step.update(np.full(400, moved.acceptance.mean()))
        else:
            drawn.append(chains.x)
            accepted.append(moved.acceptance.mean())
    assert abs(np.mean(accepted) - ACCEPT) < 0.05
    np.testing.assert_allclose(np.cov(np.concatenate(drawn, 1)), root @ root.T, atol=0.04)
