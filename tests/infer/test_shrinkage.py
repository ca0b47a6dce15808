"""Readouts of many coefficients: against sampling the prior, and against NUTS."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

from edgebelief.belief import predict
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import NUTS, EdgeModel, Exact, Prior, half_normal, lognormal
from edgebelief.infer.logistic import Labels
from edgebelief.infer.prepare import prepared
from edgebelief.infer.shrinkage import Shrinkage
from edgebelief.metrics import nll
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, TwoSlope

FEATURES = ("z", "rank sum")


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(1, RandomGeometric(0.5), n_graphs=3, n_nodes=6, n_signals=20)


def by_prior(model, data, n, key=0):
    """Evidence and mean probabilities by drawing the prior: slow, and with nothing to go wrong."""
    draws = model.prior.sample(jax.random.key(key), n, model.sizes)
    (stack,) = data.stacks()
    e, pairs = jnp.asarray(stack.e), model.pairs(stack)

    def one(params):
        logits = model.logits(params, e, stack.support, pairs)
        fit = model.likelihood.log_likelihood(
            logits, jnp.asarray(stack.a), jnp.asarray(stack.known)
        )
        return fit.sum(), logits

    fits, logits = jax.jit(lambda d: jax.lax.map(one, d, batch_size=500))(draws)
    fits = np.asarray(fits, float)
    weights = np.exp(fits - fits.max())
    effective = weights.sum() ** 2 / (weights**2).sum()
    mean = np.einsum("d,dge->ge", weights / weights.sum(), expit(np.asarray(logits, float)))
    return logsumexp(fits) - np.log(n), mean, effective


@pytest.mark.parametrize("readout", [TwoSlope(), Additive(features=FEATURES)])
def test_agrees_with_drawing_the_prior(data, readout):
    prior = Prior(theta=lognormal(0.3, 0.7), delta=lognormal(15.0, 0.5), b=lognormal(2.0, 0.5))
    model = prepared(EdgeModel(DPG(depth=5), readout, prior), data)
    posterior = Exact(n_draws=4000).run(0, model, data)
    evidence, mean, effective = by_prior(model, data, 100_000)
    assert effective > 300
    assert abs(posterior.log_evidence - evidence) < 0.25
    found = np.stack([belief.mean for belief in predict(posterior, data)])
    assert np.sqrt(np.mean((found - mean) ** 2)) < 0.02


def test_a_scale_is_the_most_plausible_one_given_squares():
    """The M-step: argmax of -n log tau - m/(2 tau^2) - tau^2/(2 s^2)."""
    for n, m, s in ((1, 0.5, 0.3), (6, 0.01, 0.3), (6, 20.0, 1.0)):
        expected = minimize_scalar(
            lambda t, n=n, m=m, s=s: n * t + m / (2 * np.exp(2 * t)) + np.exp(2 * t) / (2 * s**2),
            bounds=(-12, 5),
            method="bounded",
            options={"xatol": 1e-10},
        ).x
        found = np.sqrt(s**2 * (-n + np.sqrt(n**2 + 4 * m / s**2)) / 2)
        assert np.isclose(found, np.exp(expected), rtol=1e-5)


def test_terms_that_are_noise_keep_small_scales_and_true_ones_grow(rng):
    """Logistic labels of one column out of three groups."""
    x = rng.normal(size=(4000, 3))
    labels = np.where(rng.random(4000) < expit(2 * x[:, 0]), 1.0, -1.0)
    rows = labels[:, None] * np.column_stack([np.zeros(4000), -np.ones(4000), x])
    start = Shrinkage(
        (lognormal(1.0, 1.0), lognormal(1.0, 1.0)), np.arange(3), np.full(3, 0.2), 0.5
    )
    found = start.learned(Labels(rows, np.ones(4000))).scales
    assert found[0] > 0.5
    assert (found[1:] < 0.15).all()


def test_log_scales_around_known_squares(rng):
    """Mean and spread of log tau given its group's coefficients, by brute force on a grid."""
    shrinkage = Shrinkage((), np.zeros(6, int), np.array([0.3]), 0.3)
    law = shrinkage.around(np.array([[0.5]]))
    log_tau = np.linspace(-8, 2, 20001)
    f = -5 * log_tau - 0.5 / (2 * np.exp(2 * log_tau)) - np.exp(2 * log_tau) / (2 * 0.09)
    w = np.exp(f - f.max())
    w /= w.sum()
    assert np.isclose(law.mean[0], w @ log_tau, atol=1e-3)
    assert np.isclose(law.sd[0], np.sqrt(w @ (log_tau - w @ log_tau) ** 2), rtol=2e-2)


@pytest.mark.slow
def test_exact_and_nuts_agree_on_an_additive_readout():
    """The issue's bounds: 0.005 in root mean square of probability, 0.5 % of NLL."""
    data = GraphDataset.sample(2, RandomGeometric(0.4), n_graphs=24, n_nodes=10, n_signals=100)
    prior = Prior.named("altered").replace(scales=half_normal(0.3))
    model = prepared(EdgeModel(DPG(depth=20), Additive(features=FEATURES), prior), data[:12])
    exact = Exact(n_draws=4000).run(0, model, data[:12])
    nuts = NUTS(n_warmup=600, n_draws=1500).run(0, model, data[:12])
    ours, theirs = predict(exact, data[12:]), predict(nuts, data[12:])
    off = np.concatenate([a.mean - b.mean for a, b in zip(ours, theirs, strict=True)])
    assert np.sqrt(np.mean(off**2)) < 0.005
    assert abs(nll(ours) / nll(theirs) - 1) < 0.005
