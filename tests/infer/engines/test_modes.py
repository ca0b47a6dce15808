"""An ensemble of modes, a readout in doubt on a network that is not, and how they are mixed."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from edgebelief.belief import predict
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import (
    MAP,
    NUTS,
    EdgeModel,
    Exact,
    Modes,
    Prior,
    fixed,
    normal,
)
from edgebelief.infer.batch import log_likelihoods
from edgebelief.infer.engines import modes
from edgebelief.infer.loo import stacking_weights
from edgebelief.metrics import nll
from edgebelief.networks import DPG, MIMO, PDS, StochasticHead
from edgebelief.readouts import Affine, Channels, Shift, papers_readout

# Small data leave findings; what is tested here are numbers.
pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")
THETA = (0.3, 0.15, 0.1, 0.4)


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=12, n_nodes=8, n_signals=100)


@pytest.fixture(scope="module")
def model():
    return EdgeModel(MIMO(channels=2, depth=5))


@pytest.fixture(scope="module")
def still(model):
    """Partially stochastic: the network is known, the readout is not."""
    return model.replace(prior=model.prior.replace(theta=fixed(THETA)))


@pytest.fixture(scope="module")
def readout(still, data):
    return Exact().run(0, still, data)


def test_stacking_is_the_best_mixture(rng):
    scores = rng.normal(size=(4, 30)) * 2
    counts = rng.integers(0, 3, 30).astype(float)

    def minus(x):
        mixed = logsumexp(scores + np.log(softmax(x))[:, None], axis=0)
        return -counts @ mixed

    best = minimize(minus, np.zeros(4), options={"gtol": 1e-10})
    np.testing.assert_allclose(stacking_weights(scores, counts), softmax(best.x), atol=1e-3)


def test_a_network_that_is_known_is_passed_once(readout, still, data):
    draws = {name: x[:5] for name, x in readout.params.items()}
    expected = [
        still.log_likelihood({name: x[k] for name, x in draws.items()}, data) for k in range(5)
    ]
    np.testing.assert_allclose(log_likelihoods(still.forward, draws, data), expected, rtol=1e-4)


def test_a_stochastic_readout_is_the_posterior_of_the_readout(data):
    """Against sums over a grid: with one channel there are two numbers."""
    one = EdgeModel(MIMO(channels=1, depth=5))
    one = one.replace(prior=one.prior.replace(theta=fixed([0.3])))
    found = Exact().run(0, one, data)
    delta, b = np.meshgrid(np.linspace(0, 120, 241), np.linspace(-2, 16, 241), indexing="ij")
    (stack,) = data.stacks()
    a = np.asarray(one.network(one.network.params_type(np.array([0.3])), stack.e).a)[:, 0]
    logits = delta.ravel()[:, None] * a.ravel() - b.ravel()[:, None]
    sign = 2 * stack.a.ravel() - 1
    log_p = -np.logaddexp(0, -sign * logits).sum(1)
    log_p += one.prior["delta"].distribution.log_prob(delta.ravel())
    log_p += one.prior["b"].distribution.log_prob(b.ravel())
    weights = softmax(np.asarray(log_p, float))
    summary = found.summary()
    for name, values in (("delta[0]", delta.ravel()), ("b", b.ravel())):
        mean = weights @ values
        sd = np.sqrt(weights @ (values - mean) ** 2)
        assert summary["mean"][name] == pytest.approx(mean, abs=0.05 * sd)
        assert summary["sd"][name] == pytest.approx(sd, rel=0.05)
    cell = (delta[1, 0] - delta[0, 0]) * (b[0, 1] - b[0, 0])
    assert found.log_evidence == pytest.approx(logsumexp(log_p) + np.log(cell), abs=0.05)


@pytest.mark.slow
@pytest.mark.long
def test_a_stochastic_readout_agrees_with_nuts(readout, still, data):
    chains = NUTS(n_warmup=300, n_draws=1000).run(0, still, data)
    assert np.ptp(chains.params["theta"], axis=0).max() == 0
    ours, theirs = readout.summary(), chains.summary()
    rows = ["delta[0]", "delta[1]", "b"]
    off = (ours["mean"] - theirs["mean"])[rows] / theirs["sd"][rows]
    assert np.abs(off).max() < 0.15


def test_modes_are_mixed_by_their_shares(model, data):
    ends = [np.r_[model.prior["theta"].to_z(np.array(t)), 0, 0, 0] for t in (THETA, (0.2,) * 4)]
    found = {
        how: Modes(starts=2, weights=how, n_draws=400).around(
            modes.split(0, 1)[0], model, ends, np.zeros(2), data, np.ones(len(data))
        )
        for how in ("stacking", "evidence", "equal")
    }
    first = np.isclose(found["equal"].params["theta"][:, 0], THETA[0])
    assert found["equal"].weights[first].sum() == pytest.approx(0.5)
    each = [
        Exact(n_draws=400).run(0, model.replace(prior=model.prior.replace(theta=fixed(t))), data)
        for t in (THETA, (0.2,) * 4)
    ]
    heights = [p.log_evidence - z[:4] @ z[:4] / 2 for p, z in zip(each, ends, strict=True)]
    assert found["evidence"].weights[first].sum() == pytest.approx(softmax(heights)[0], abs=0.02)
    assert 0 <= found["stacking"].weights[first].sum() <= 1


def test_modes_that_differ_in_numbering_are_one(model):
    ends = [
        np.r_[1.0, 2.0, 3.0, 4.0, 0],
        np.r_[4.0, 3.0, 2.0, 1.0, 9],
        np.r_[4.0, 3.0, 1.0, 2.0, 0],
    ]
    assert modes._distinct(model, ends, np.array([1.0, 2.0, 0.0]), 4) == [1, 2]


@pytest.mark.slow
@pytest.mark.long
def test_an_ensemble_finds_distinct_channels_and_predicts(model, data):
    found = Modes(starts=2, n_draws=200).run(0, model, data[:9])
    assert found.verdict.figures["modes"] >= 1
    stopped = Modes(starts=2, rounds=1, n_draws=200).run(0, model, data[:9])
    assert stopped.verdict.figures["log density"] < found.verdict.figures["log density"]
    rows = np.unique(found.params["theta"], axis=0)
    for theta in rows:  # starts broke the symmetry: channels are not alike
        assert np.ptp(theta) > 0.01
    best = MAP(starts=2).run(0, model, data[:9])
    assert nll(predict(found, data[9:])) < nll(predict(best, data[9:])) + 1


@pytest.mark.slow
@pytest.mark.long
def test_a_head_trains_its_base_and_then_itself(data):
    network = StochasticHead(MIMO(channels=2, depth=5), heads=1, depth=3)
    found = NUTS(n_warmup=50, n_draws=50, n_chains=2, target_accept=0.8).run(
        0, EdgeModel(network), data
    )
    assert found.model.network.is_prepared
    assert found.params["theta"].shape == (100, 1)
    assert found.params["delta"].shape == (100, 2)
    assert list(found.summary().index) == ["theta[0]", "delta[0]", "delta[1]", "b"]


def test_the_papers_readouts_and_priors():
    assert papers_readout(DPG()) == Affine()
    assert papers_readout(PDS()) == Shift()
    assert papers_readout(MIMO(channels=3)) == Channels(3)
    pds = EdgeModel(PDS()).prior
    assert [pds[n].log_sd for n in ("alpha", "beta")] == [10, 10]
    assert pds["b"] == normal(0, 1000)
    mimo = EdgeModel(MIMO()).prior
    assert mimo["theta"] == Prior.named("altered")["theta"]
    assert (mimo["delta"], mimo["b"]) == (normal(0, 100), normal(0, 10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EdgeModel(MIMO(), Affine()), "MIMO has 4 channels, and Affine reads none"),
        (lambda: EdgeModel(DPG(), Channels(2)), "DPG has no channels, and Channels reads 2"),
        (lambda: fixed(np.nan), "finite"),
        (lambda: fixed([]), "finite number, or some"),
        (lambda: EdgeModel(prior=Prior.named("altered").replace(theta=fixed([1, 2]))), "fixed at"),
        (lambda: Prior.named("altered", of="gru"), "of must be one of"),
        (lambda: Modes(weights="best"), "weights must be one of"),
        (lambda: Modes(starts=0), "at least 1"),
        (lambda: Modes(rounds=0), "rounds must be a whole number, at least 1"),
    ],
)
def test_what_does_not_go_together_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_exact_says_what_it_cannot_do(data):
    affine = EdgeModel(DPG(depth=3))
    with pytest.raises(ValueError, match="16 in doubt"):
        Exact().run(0, EdgeModel(MIMO(depth=3)), data)
    pds = EdgeModel(PDS(depth=3))
    known = pds.replace(prior=pds.prior.replace(beta=fixed(0.1)))
    with pytest.raises(ValueError, match="none for the weight"):
        Exact().run(0, known, data)
    with pytest.raises(ValueError, match="some are fixed"):
        Exact().run(0, affine.replace(prior=affine.prior.replace(b=fixed(2.0))), data)
    with pytest.raises(ValueError, match="Modes integrates the readout"):
        Modes(starts=1).run(0, EdgeModel(PDS(depth=3)), data)
