"""Simulation-based calibration (Talts et al. 2018; bands as in Säilynoja et al. 2022).

Parameters from the prior, labels from the model, and the rank of the truth among posterior draws:
uniform if, and only if, the engine draws from the right posterior on average.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.data.randomness import generator
from edgebelief.infer import NUTS, EdgeModel, Exact, Prior, lognormal
from edgebelief.networks import DPG

# A few labels often leave the prior as it was, and say so.
pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")

PRIOR = Prior(theta=lognormal(0.3, 0.7), delta=lognormal(15.0, 0.7), b=lognormal(2.0, 0.7))
WRONG = Prior(**{name: lognormal(m.median, m.log_sd**2) for name, m in PRIOR.items()})
MODEL = EdgeModel(DPG(depth=8), prior=PRIOR)
INPUTS = GraphDataset.sample(3, ErdosRenyi(0.5), 2, 6, n_signals=30)
DRAWS = 99  # so that a rank is a percentage
SEED = 20261116  # chosen before the first run


@jax.jit
def log_likelihood(params, a):
    logits = jnp.stack([MODEL.logits(params, jnp.asarray(record.e)) for record in INPUTS])
    return MODEL.likelihood.log_likelihood(logits, a, jnp.ones_like(a, bool)).sum()


@jax.jit
def simulate(params, key):
    logits = jnp.stack([MODEL.logits(params, jnp.asarray(record.e)) for record in INPUTS])
    return jax.random.bernoulli(key, jax.nn.sigmoid(logits)).astype(float)


def ranks(engine, n, prior=PRIOR):
    """(n, 4) in 0..DRAWS: log theta, log delta, log b, the log-likelihood."""
    fitted = EdgeModel(DPG(depth=8), prior=prior)
    truths = PRIOR.sample(jax.random.key(SEED), n)
    rng = generator(SEED)
    found = []
    for k in range(n):
        truth = {name: values[k] for name, values in truths.items()}
        a = simulate(truth, jax.random.fold_in(jax.random.key(SEED + 1), k))
        data = GraphDataset([record.e for record in INPUTS], list(np.asarray(a)))
        posterior = engine.run(k, fitted, data)
        draws = posterior.draws(int(rng.integers(2**31)), DRAWS)
        fits = jax.vmap(lambda p, a=a: log_likelihood(p, a))(
            {name: jnp.asarray(v) for name, v in draws.items()}
        )
        row = [int((draws[name] < truth[name]).sum()) for name in PRIOR]
        row.append(below(np.asarray(fits), float(log_likelihood(truth, a)), rng))
        found.append(row)
    return np.array(found)


def below(values, truth, rng):
    """The rank of the truth; places among equals by lot."""
    equal = int((values == truth).sum())
    return int((values < truth).sum()) + int(rng.integers(equal + 1))


def worst(ranks):
    """The least pointwise probability of any value of the ranks' distribution function."""
    n, at = len(ranks), np.arange(DRAWS)
    counts = (ranks[:, None] <= at).sum(0)
    share = (at + 1) / (DRAWS + 1)
    low, high = stats.binom.cdf(counts, n, share), stats.binom.sf(counts - 1, n, share)
    return 2 * np.minimum(low, high).min()


def inside_band(ranks):
    """Whether all four distribution functions lie in a band that holds with 95 %, together."""
    n = len(ranks)
    rng = np.random.default_rng(0)
    uniform = [worst(rng.integers(0, DRAWS + 1, n)) for _ in range(2000)]
    limit = np.quantile(uniform, 0.05 / 4)  # Bonferroni over the four
    return [worst(column) >= limit for column in ranks.T]


def test_band_accepts_uniform_ranks_and_refuses_skewed_ones(rng):
    uniform = rng.integers(0, DRAWS + 1, (300, 4))
    assert all(inside_band(uniform))
    skewed = np.floor((DRAWS + 1) * rng.random((300, 4)) ** 1.3).astype(int)
    assert not any(inside_band(skewed))


@pytest.mark.slow
@pytest.mark.long
def test_exact_is_calibrated():
    assert inside_band(ranks(Exact(tol=0.05), 300)) == [True] * 4


@pytest.mark.slow
@pytest.mark.long
def test_a_prior_sd_that_is_squared_is_found_out():
    """The planted bug: 0.7 becomes 0.49."""
    assert not all(inside_band(ranks(Exact(tol=0.05), 300, prior=WRONG)))


@pytest.mark.slow
@pytest.mark.long
def test_nuts_is_calibrated():
    """Thinned to a tenth: draws that are all but independent."""
    engine = NUTS(n_warmup=200, n_draws=250, n_chains=4, progress=False)
    assert inside_band(ranks(engine, 100)) == [True] * 4
