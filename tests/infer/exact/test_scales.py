"""Scales of groups of coefficients: against integrals in one dimension."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import halfnorm, multivariate_normal

from edgebelief.infer import lognormal
from edgebelief.infer.exact.laplace import Shrinkage, ThetaMode, ThetaModes
from edgebelief.infer.exact.regression import Labels, LogisticPosterior
from edgebelief.infer.exact.scales import Grouped, Quadratic, ScaleProposal, gibbs_rounds
from edgebelief.infer.priors import HalfNormal


def quadratic_of(data, noise):
    """The log-likelihood of data that are the coefficients with normal noise."""
    return Quadratic(0.0, data, np.zeros_like(data), np.eye(data.size) / noise**2)


@pytest.mark.parametrize(("n", "size"), [(1, 0.0), (1, 1.0), (6, 0.1), (6, 1.0)])
def test_draws_have_the_moments_of_the_posterior(rng, n, size):
    """Data are Normal(0, tau^2 + noise^2) given tau: the posterior of tau is one integral."""
    noise, width = 0.2, 0.3
    data = size * rng.standard_normal(n)
    tau = np.linspace(1e-4, 2.4, 20001)
    spread = np.sqrt(tau**2 + noise**2)
    f = -n * np.log(spread) - (data @ data) / (2 * spread**2) + halfnorm.logpdf(tau, scale=width)
    p = np.exp(f - logsumexp(f))
    mean, square = p @ tau, p @ tau**2
    grouped = Grouped(0, np.zeros(n, int), width)
    quadratic = quadratic_of(data, noise)
    drawn = gibbs_rounds(rng, quadratic, grouped, np.array([0.2]), 6050)[50:, 0]
    sd = np.sqrt(square - mean**2)
    assert abs(drawn.mean() - mean) < 0.08 * sd
    assert abs(drawn.std() / sd - 1) < 0.08


def test_mass_of_a_quadratic_is_that_of_normal_data(rng):
    """The constant of the normal density, which the quadratic does not have, is added."""
    data, noise, tau = rng.standard_normal(5), 0.5, np.array([0.3, 0.7])
    grouped = Grouped(2, np.array([0, 1, 1]), 0.3)
    sds = np.concatenate([np.ones(2), tau[grouped.groups]])
    law = multivariate_normal(np.zeros(5), np.diag(sds**2 + noise**2))
    constant = -5 * np.log(noise) - 2.5 * np.log(2 * np.pi)
    log_mass = quadratic_of(data, noise).log_mass(grouped.precision(tau))
    assert np.isclose(log_mass + constant, law.logpdf(data))


def test_proposal_of_scales_gives_the_weights_of_its_draws(rng):
    """Weighted, they are draws of the prior: the weights have mean one, the draws the prior's."""
    prior = HalfNormal(0.3)
    located = prior.from_z(0.3 + 0.9 * rng.standard_normal((500, 3)))
    proposal = ScaleProposal.around(located, prior)
    scales, log_weights = proposal.draw(rng.standard_normal((100_000, 3)))
    weights = np.exp(log_weights)
    assert abs(weights.mean() - 1) < 0.03
    np.testing.assert_allclose(weights @ scales / len(scales), 0.3 * np.sqrt(2 / np.pi), rtol=0.04)
    assert (proposal.median > 0.1).all()


def test_terms_that_are_noise_keep_small_scales_and_true_ones_grow(rng):
    """Logistic labels of one column out of three groups."""
    x = rng.normal(size=(4000, 3))
    labels = np.where(rng.random(4000) < expit(2 * x[:, 0]), 1.0, -1.0)
    rows = labels[:, None] * np.column_stack([np.zeros(4000), -np.ones(4000), x])
    marginals = (lognormal(1.0, 1.0), lognormal(1.0, 1.0))
    start = Shrinkage(marginals, (None, None), np.arange(3), np.full(3, 0.2), 0.5)
    posterior = LogisticPosterior(Labels(rows, np.ones(4000)), marginals, start.sds)
    mode = ThetaMode((1.0,), 0.0, posterior, start, posterior.climb(np.zeros(5)))
    scales = ThetaModes([mode]).scale_proposal(rng, 200).median
    assert scales[0] > 0.5
    assert (scales[1:] < 0.15).all()
