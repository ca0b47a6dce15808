import jax.numpy as jnp
import numpy as np
import pytest
import scoringrules
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from edgebelief import metrics
from edgebelief.belief import BeliefWarning, EdgeBelief, Predictions, predict_weights
from edgebelief.belief.weights import WeightBelief, WeightPredictions, _log_summary, _Mixture
from edgebelief.data import GraphDataset, RandomGeometric, expected_distances
from edgebelief.infer import EdgeModel, Exact, Fingerprint, Posterior, Verdict, WeightedEdges
from edgebelief.networks import DPG
from weighted import PARAMS, drawn_from, looked_at


def by_hand(data, **changed):
    """A posterior without doubt."""
    model = EdgeModel(DPG(depth=30), likelihood=WeightedEdges())
    params = {name: np.array([value]) for name, value in {**PARAMS, **changed}.items()}
    return Posterior(model, params, np.ones(1), "by hand", {}, Fingerprint.of(data), Verdict())


@pytest.fixture(scope="module")
def data():
    base = GraphDataset.sample(2, RandomGeometric(0.45), n_graphs=12, n_nodes=10, n_signals=50)
    model = EdgeModel(DPG(depth=30), likelihood=WeightedEdges())
    return drawn_from(model, PARAMS, base, seed=0)


def test_without_doubt_weights_are_lognormal(data):
    found = predict_weights(0, by_hand(data), data, level=0.8, n=4)
    logits, f = looked_at(by_hand(data).model, PARAMS, data)
    for t, belief in enumerate(found):
        law = stats.lognorm(s=0.4, scale=np.exp(1.0 + 0.8 * f[t]))
        np.testing.assert_allclose(belief.probability, expit(logits[t]), rtol=1e-3)
        np.testing.assert_allclose(belief.mean, law.mean(), rtol=1e-4)
        np.testing.assert_allclose(belief.median, law.median(), rtol=1e-4)
        np.testing.assert_allclose(belief.low, law.ppf(0.1), rtol=1e-4)
        np.testing.assert_allclose(belief.high, law.ppf(0.9), rtol=1e-4)
        np.testing.assert_allclose(belief.expected, belief.probability * belief.mean)


@pytest.mark.parametrize("spread", [0.4, 5.0])
def test_an_interval_of_a_weight_holds_its_mean(data, spread):
    """The mean of a lognormal of spread 5 is its quantile of 0.994."""
    for belief in predict_weights(0, by_hand(data, weight_sd=spread), data, level=0.9, n=4):
        assert (belief.low <= belief.mean).all()
        assert (belief.mean <= belief.high).all()


def test_a_mean_beyond_double_precision_is_said(data):
    with pytest.warns(BeliefWarning, match=r"the mean weight of 45 pairs is beyond double"):
        [belief] = predict_weights(0, by_hand(data, weight_sd=60.0), data[:1], n=4)
    assert all(np.isfinite(values).all() for values in belief)
    law = stats.norm(1.0 + 0.8 * looked_at(by_hand(data).model, PARAMS, data)[1][0], 60.0)
    np.testing.assert_allclose(np.log(belief.median), law.median(), atol=1e-2)


def test_quantiles_are_those_of_the_mixture_in_which_believers_count_more():
    logits, centre = np.array([[2.0, -3.0], [-2.0, 1.0]]), np.array([[0.0, 1.0], [2.0, -1.0]])
    spread = np.array([0.3, 0.7])
    mixture = _Mixture(*(jnp.asarray(x)[:, None] for x in (logits, centre, spread[:, None])))
    summary = _log_summary(mixture, jnp.array([0.05, 0.95]))
    mean = np.exp(np.asarray(summary.mean, float)[0])
    quantiles = np.exp(np.asarray(summary.quantiles, float)[:, 0])
    share = expit(logits) / expit(logits).sum(0)
    np.testing.assert_allclose(
        mean, (share * np.exp(centre + spread[:, None] ** 2 / 2)).sum(0), rtol=1e-5
    )
    for q, got in zip((0.05, 0.95), quantiles, strict=True):
        for k in range(2):
            laws = [stats.norm(centre[m, k], spread[m]) for m in range(2)]

            def off(x, k=k, laws=laws, q=q):
                return sum(s * law.cdf(x) for s, law in zip(share[:, k], laws, strict=True)) - q

            assert np.log(got[k]) == pytest.approx(brentq(off, -10, 10), abs=1e-4)


@pytest.mark.slow
def test_crps_is_that_of_the_lognormal_and_of_the_hurdle(data):
    posterior = by_hand(data)
    found = predict_weights(0, posterior, data, n=2000)
    logits, f = looked_at(posterior.model, PARAMS, data)
    there = np.stack([record.a for record in data]) > 0
    w = np.stack([record.w for record in data])
    closed = scoringrules.crps_lognormal(w[there], (1.0 + 0.8 * f)[there], 0.4)
    assert float(metrics.crps_given_edge(found)) == pytest.approx(closed.mean(), rel=0.01)
    # Of the hurdle by its definition, E|x - w| - E|x - x'|/2, from many draws of one's own.
    rng = np.random.default_rng(0)
    p, shape = expit(logits), (400, *w.shape)
    x, y = (
        (rng.random(shape) < p) * np.exp(1.0 + 0.8 * f + 0.4 * rng.standard_normal(shape))
        for _ in range(2)
    )
    defined = np.abs(x - w).mean() - np.abs(x - y).mean() / 2
    assert float(metrics.crps(found)) == pytest.approx(defined, rel=0.02)
    for changed in ({"level": 1.5}, {"weight_sd": 1.5}, {"slope": 0.2}):
        worse = predict_weights(0, by_hand(data, **changed), data, n=500)
        assert metrics.crps(worse) > metrics.crps(found)
        assert metrics.crps_given_edge(worse) > metrics.crps_given_edge(found)


@pytest.mark.slow
def test_few_draws_make_no_interval_too_short(data):
    """Of pairs that may be edges; of others those few draws count that believe in them."""
    model = EdgeModel(DPG(depth=30), likelihood=WeightedEdges())
    posterior = Exact().run(0, model, data[:3])

    def lengths(n, keys):
        found = [predict_weights(key, posterior, data[5:6], n=n)[0] for key in keys]
        maybe = found[0].probability > 0.05
        return np.mean([np.log(b.high / b.low)[maybe] for b in found], axis=0)

    few, many = lengths(16, range(20)), lengths(1024, range(2))
    np.testing.assert_allclose(few, many, rtol=0.04)
    np.testing.assert_allclose(few.mean(), many.mean(), rtol=0.015)


def drawn_set(seed):
    rng = np.random.default_rng(seed)
    base = GraphDataset.sample(seed, RandomGeometric(0.45), 60, n_nodes=12, n_signals=50)
    model = EdgeModel(DPG(depth=50), likelihood=WeightedEdges())
    params = {
        "theta": 0.16 * rng.lognormal(0, 0.3),
        "delta": 50 * rng.lognormal(0, 0.3),
        "b": 5 * rng.lognormal(0, 0.2),
        "level": rng.normal(0, 2),
        "slope": rng.normal(1, 0.5),
        "weight_sd": 0.5 * rng.lognormal(0, 0.5),
    }
    return model, drawn_from(model, params, base, seed)


@pytest.mark.slow
def test_weights_are_covered_and_presence_calibrated():
    """On data drawn from the model, whatever its parameters."""
    covered, edges, calibration = [], [], []
    for seed in range(4):
        model, data = drawn_set(seed)
        posterior = Exact().run(0, model, data[:15])
        found = predict_weights(0, posterior, data[15:])
        covered.append(float(metrics.weight_coverage(found)))
        edges.append(sum(record.a.sum() for record in data[15:]))
        calibration.append(float(metrics.ece(found.presence)))
        crps = float(metrics.crps(found)), float(metrics.crps_given_edge(found))
        print(f"coverage {covered[-1]:.3f} of {edges[-1]:.0f}, ECE {calibration[-1]:.4f}, {crps}")
    assert 0.87 <= np.average(covered, weights=edges) <= 0.93
    assert all(0.87 <= one <= 0.93 for one in covered)
    assert max(calibration) <= 0.02


def geometric(rng, n_nodes, radius):
    """A connected random geometric graph, with Gaussian-kernel weights of its distances."""
    while True:
        places = rng.random((n_nodes, 2))
        d = np.linalg.norm(places[:, None] - places, axis=-1)
        w = np.where((d < radius) & (d > 0), np.exp(-(d**2) / (2 * (radius / 2) ** 2)), 0.0)
        degree = (w > 0).astype(float)
        if (np.linalg.matrix_power(np.eye(n_nodes) + degree, n_nodes) > 0).all():
            return w


@pytest.mark.slow
def test_coverage_on_gaussian_kernel_weights_which_are_not_the_models():
    """RG(0.32), 20 nodes; signals are smooth on the weighted graph. The spread of log weights is
    not that of a lognormal, and not the same for strong and weak edges.
    """
    rng = np.random.default_rng(0)
    w = [geometric(rng, 20, 0.32) for _ in range(40)]
    e = [expected_distances(one) for one in w]
    data = GraphDataset(e, w, n_signals=np.inf, weighted=True)
    model = EdgeModel(DPG(depth=100), likelihood=WeightedEdges())
    found = predict_weights(0, Exact().run(0, model, data[:20]), data[20:])
    figures = metrics.weight_coverage(found), metrics.crps(found), metrics.crps_given_edge(found)
    print("coverage, CRPS, CRPS of edges, ECE:", *figures, metrics.ece(found.presence))
    assert 0.8 <= figures[0] <= 0.99
    mean = np.concatenate([one[one > 0] for one in w[:20]]).mean()
    blind = np.mean([np.abs(one[one > 0] - mean).mean() for one in w[20:]])
    assert figures[2] < 0.8 * blind  # better than the mean of all weights


def test_what_cannot_be_is_refused(data):
    posterior = by_hand(data)
    with pytest.raises(ValueError, match="level must lie between"):
        predict_weights(0, posterior, data, level=1.0)
    plain = EdgeModel(DPG(depth=30))
    some = {name: posterior.params[name] for name in ("theta", "delta", "b")}
    bernoulli = Posterior(plain, some, np.ones(1), "by hand", {}, posterior.fingerprint, Verdict())
    with pytest.raises(ValueError, match="knows of no weights"):
        predict_weights(0, bernoulli, data)
    unlabelled = GraphDataset([data[0].e], n_signals=50)
    found = predict_weights(0, posterior, unlabelled, n=2)
    assert found.crps == (None,)
    for score in (metrics.crps, metrics.crps_given_edge, metrics.weight_coverage):
        with pytest.raises(ValueError, match="no weight is known"):
            score(found)


def test_coverage_counts_edges_alone():
    data = GraphDataset([[1.0, 2.0, 3.0]], [[2.0, 9.0, np.nan]], weighted=True)
    presence = Predictions(data, [EdgeBelief.of(np.full(3, 0.5))], np.zeros(1))
    one = np.ones(3)
    belief = WeightBelief(one / 2, one, one, one, 4 * one, one)
    found = metrics.weight_coverage(WeightPredictions(presence, [belief], 0.9, [None], [None]))
    assert found == 0.5
    np.testing.assert_array_equal(found.per_graph, [0.5])
