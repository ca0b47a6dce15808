"""Readouts of more than two coefficients: against sampling the prior, and against NUTS."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp

from edgebelief.belief import predict
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import NUTS, EdgeModel, Exact, Prior, half_normal, lognormal
from edgebelief.infer.prepare import prepare
from edgebelief.metrics import nll
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, TwoSlope
from problems import readable

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


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:prior dominates", "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws"
)
@pytest.mark.parametrize("readout", [TwoSlope(), Additive(features=FEATURES)], ids=readable)
def test_agrees_with_drawing_the_prior(data, readout):
    prior = Prior(theta=lognormal(0.3, 0.7), delta=lognormal(15.0, 0.5), b=lognormal(2.0, 0.5))
    model = prepare(0, EdgeModel(DPG(depth=5), readout, prior), data).model
    posterior = Exact(n_draws=4000).run(0, model, data)
    evidence, mean, effective = by_prior(model, data, 100_000)
    assert effective > 300
    if isinstance(readout, TwoSlope):  # chains do not know the evidence
        assert abs(posterior.log_evidence - evidence) < 0.25
    found = np.stack([belief.mean for belief in predict(posterior, data)])
    assert np.sqrt(np.mean((found - mean) ** 2)) < 0.02


@pytest.mark.slow
@pytest.mark.long
def test_exact_and_nuts_agree_on_an_additive_readout():
    """Within 0.005 in root mean square of probability, and 0.5 % of NLL."""
    data = GraphDataset.sample(2, RandomGeometric(0.4), n_graphs=36, n_nodes=10, n_signals=100)
    train, test = data[:24], data[24:]
    prior = Prior.named("altered").replace(scales=half_normal(0.3))
    model = prepare(0, EdgeModel(DPG(depth=20), Additive(features=FEATURES), prior), train).model
    exact = Exact(n_draws=4000).run(0, model, train)
    nuts = NUTS(n_warmup=600, n_draws=1500).run(0, model, train)
    ours, theirs = predict(exact, test), predict(nuts, test)
    off = np.concatenate([a.mean - b.mean for a, b in zip(ours, theirs, strict=True)])
    assert exact.verdict.ok, exact.verdict
    assert np.sqrt(np.mean(off**2)) < 0.005
    assert abs(nll(ours) / nll(theirs) - 1) < 0.005
