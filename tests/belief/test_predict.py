import itertools
import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

from edgebelief.belief import BeliefWarning, decide, intervals, predict, sample_graphs
from edgebelief.data import ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.errors import NoRoom, SettingError
from edgebelief.infer import EdgeModel, Exact, Fingerprint, Posterior, Verdict
from edgebelief.networks import DPG, DPGParams


@pytest.fixture(scope="module")
def data():
    """Two sizes; some labels unknown, one graph without."""
    small = GraphDataset.sample(0, ErdosRenyi(0.4), 3, 6)
    large = GraphDataset.sample(1, ErdosRenyi(0.4), 2, 8)
    hidden = np.where(np.arange(15) % 4 == 0, np.nan, small[1].a)
    return GraphDataset(
        [small[0].e, large[0].e, small[1].e, large[1].e],
        [small[0].a, large[0].a, hidden, None],
        n_signals=np.inf,
    )


@pytest.fixture(scope="module")
def model():
    return EdgeModel(DPG(depth=10))


@pytest.fixture(scope="module")
def draws(model, data):
    """Seven weighted draws by hand; theta repeats, so that groups have several sizes."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(7))
    params = {
        "theta": np.array([0.1, 0.2, 0.1, 0.1, 0.3, 0.2, 0.4]),
        "delta": rng.uniform(10, 60, 7),
        "b": rng.uniform(1, 5, 7),
    }
    return Posterior(
        model=model,
        params=params,
        weights=weights,
        engine="by hand",
        settings={},
        fingerprint=Fingerprint.of(data),
        verdict=Verdict(),
    )


def by_hand(posterior, record):
    """p of each draw and edge, from the definition, in float64."""
    p = []
    for theta, delta, b in zip(*posterior.params.values(), strict=True):
        with jax.enable_x64(True):
            a = np.asarray(DPG(depth=10)(DPGParams(theta), record.e).a)
        p.append(expit(delta * a - b))
    return np.array(p)


@pytest.mark.slow
def test_moments_are_those_of_the_weighted_draws(draws, data):
    predictions = predict(draws, data)
    for record, belief, score in zip(data, predictions, predictions.log_scores, strict=True):
        p = by_hand(draws, record)
        mean = draws.weights @ p
        epistemic = np.sqrt(draws.weights @ (p - mean) ** 2)
        np.testing.assert_allclose(belief.mean, mean, atol=2e-6)
        np.testing.assert_allclose(belief.epistemic_sd, epistemic, atol=2e-5)
        np.testing.assert_allclose(belief.total_sd, np.sqrt(mean * (1 - mean)), atol=1e-5)
        np.testing.assert_allclose(
            belief.aleatoric_sd, np.sqrt(draws.weights @ (p * (1 - p))), atol=2e-5
        )
        right = np.where(record.a == 1, np.log(p), np.log1p(-p))[:, record.known].sum(1)
        assert score == pytest.approx(logsumexp(right, b=draws.weights), abs=1e-4)


def test_little_memory_gives_the_same_answer(draws, data):
    plenty, little = predict(draws, data), predict(draws, data, memory=1)
    for one, other in zip(plenty, little, strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-6)
    np.testing.assert_allclose(plenty.log_scores, little.log_scores, atol=1e-5)


def test_one_graph_may_come_as_a_matrix(draws, data):
    matrix = predict(draws, data[0].distance_matrix())
    np.testing.assert_array_equal(matrix[0].mean, predict(draws, data[:1])[0].mean)


def test_sampled_graphs_have_the_predictive_moments(draws, data):
    """Edges share their draw: the covariance between edges is that of p."""
    n = 20_000
    (graphs,) = sample_graphs(0, draws, data[:1], n=n)
    p = by_hand(draws, data[0])
    mean = draws.weights @ p
    error = np.sqrt(mean * (1 - mean) / n)
    assert (np.abs(graphs.mean(0) - mean) < 5 * error + 1e-3).all()
    covariance = np.cov(graphs.T)
    expected = np.einsum("m,mi,mj->ij", draws.weights, p - mean, p - mean)
    off = ~np.eye(len(mean), dtype=bool)
    assert np.abs(covariance - expected)[off].max() < 0.015
    assert np.abs(expected)[off].max() > 0.03  # or the line above would say nothing


def enumerated(p):
    """All graphs on four nodes, which are connected, and the probability of each given each draw.

    p : (draws, 6).
    """
    graphs = np.array(list(itertools.product([0, 1], repeat=6)))
    adjacency = np.zeros((64, 4, 4))
    rows, cols = np.triu_indices(4, 1)
    adjacency[:, rows, cols] = adjacency[:, cols, rows] = graphs
    reach = np.linalg.matrix_power(adjacency + np.eye(4), 3)
    likely = np.prod(np.where(graphs == 1, p[:, None], 1 - p[:, None]), axis=2)
    return graphs, (reach > 0).all((1, 2)), likely


def test_connected_samples_are_those_of_the_exact_conditional_distribution(model):
    """Against all 64 graphs on 4 nodes; not that of edges given parameters that stay as likely."""
    data = GraphDataset([[1.0, 1.5, 1.2, 2.0, 1.8, 1.1]], [[1, 0, 1, 0, 0, 1]])
    weights = np.array([0.5, 0.3, 0.2])
    params = {"theta": np.array([0.1, 0.3, 0.2]), "delta": np.full(3, 8.0)}
    params["b"] = np.array([4.5, 2.0, 0.5])
    fingerprint = Fingerprint.of(data)
    posterior = Posterior(model, params, weights, "by hand", {}, fingerprint, Verdict())
    graphs, whole, likely = enumerated(by_hand(posterior, data[0]))
    assert whole.sum() == 38  # connected labelled graphs on four nodes
    exact = np.where(whole, weights @ likely, 0)
    exact /= exact.sum()
    n = 4000
    (drawn,) = sample_graphs(0, posterior, data, n=n, connected=True)
    counts = np.bincount(drawn @ 2 ** np.arange(5, -1, -1), minlength=64)
    assert (graphs[5] == [0, 0, 0, 1, 0, 1]).all()  # the numbering of `counts`
    assert counts[~whole].sum() == 0
    assert stats.chisquare(counts[whole], n * exact[whole]).pvalue > 1e-3
    kept_as_likely = weights @ np.where(whole, likely / likely[:, whole].sum(1)[:, None], 0)
    assert stats.chisquare(counts[whole], n * kept_as_likely[whole]).pvalue < 1e-9


def test_graphs_that_are_never_connected_are_an_error_with_the_rate(draws, data):
    lonely = replace(draws, params={**draws.params, "b": draws.params["b"] + 60})
    with pytest.raises(ValueError, match=r"graph 0: 0 of 1,000 .* \(acceptance rate below 0.001\)"):
        sample_graphs(0, lonely, data, n=10, connected=True)


def test_more_samples_than_there_is_room_for_are_refused(draws, data, monkeypatch):
    for n in (0, -1, 1.5, 10**12):
        with pytest.raises(SettingError, match=r"at least 1 and at most 10,000,000; got"):
            sample_graphs(0, draws, data, n=n)
        with pytest.raises(SettingError, match=r"at least 1 and at most 10,000,000; got"):
            draws.draws(0, n)
    monkeypatch.setattr("edgebelief.room.available_memory", lambda: 1e6)
    with pytest.raises(NoRoom, match=r"10,000 samples of 86 pairs need about 0\.0 GB.*fewer"):
        sample_graphs(0, draws, data, n=10**4)


def test_each_graph_of_a_data_set_is_connected(draws, data):
    for record, graphs in zip(data, sample_graphs(0, draws, data, 5, connected=True), strict=True):
        assert graphs.shape == (5, record.e.size)
        assert [record.support.n_components(edges) for edges in graphs] == [1] * 5


def points(data, params):
    """A posterior of equally weighted points."""
    params = {name: np.array(values, float) for name, values in params.items()}
    n = len(params["b"])
    model = EdgeModel(DPG(depth=10))
    return Posterior(model, params, np.full(n, 1 / n), "", {}, Fingerprint.of(data), Verdict())


@pytest.mark.parametrize(
    "params",
    [
        {"theta": [0.2], "delta": [30], "b": [3.3]},
        # One draw in forty doubts what the others are sure of, either way: the mean is in a tail.
        {"theta": [0.2] * 40, "delta": [30] * 40, "b": [-60] * 39 + [30]},
        {"theta": [0.2] * 40, "delta": [30] * 40, "b": [60] * 39 + [-30]},
        {"theta": [0.2] * 2, "delta": [30] * 2, "b": [-500, -900]},
        {"theta": [0.2] * 2, "delta": [30] * 2, "b": [500, 900]},
    ],
    ids=["one point", "nearly sure", "nearly sure of nothing", "at one", "at zero"],
)
@pytest.mark.parametrize("level", [0.01, 0.9])
def test_an_interval_holds_its_mean(params, level, data):
    posterior = points(data, params)
    beliefs = predict(posterior, data)
    found = intervals(0, posterior, data, level, beliefs=beliefs)
    for belief, (low, high) in zip(beliefs, found, strict=True):
        assert (low <= belief.mean).all()
        assert (belief.mean <= high).all()
        assert (low >= 0).all()
        assert (high <= 1).all()


def test_an_interval_that_holds_its_mean_has_equal_tails(draws, data):
    spread = points(data, {"theta": [0.2] * 101, "delta": [30] * 101, "b": np.linspace(2, 4, 101)})
    a = DPG(depth=10)(DPGParams(0.2), data[0].e).a
    p = expit(30 * np.asarray(a, float) - np.linspace(2, 4, 101)[:, None])
    [(low, high)] = intervals(0, spread, data[:1], 0.8, n=101)
    np.testing.assert_allclose(low, np.quantile(p, 0.1, axis=0), atol=1e-5)
    np.testing.assert_allclose(high, np.quantile(p, 0.9, axis=0), atol=1e-5)


def test_another_scale_is_warned_about(draws, data):
    larger = GraphDataset([record.e * 100 for record in data])
    with pytest.warns(BeliefWarning, match=r"100 times those that were fitted"):
        predict(draws, larger)
    with pytest.warns(BeliefWarning, match=r"are 0 times .* \(mean or sum over signals\?\)\.$"):
        predict(draws, GraphDataset([0 * record.e for record in data]))


def test_another_number_of_signals_is_warned_about(draws):
    noisy = GraphDataset.sample(0, ErdosRenyi(0.4), 2, 6, n_signals=20)
    with pytest.warns(BeliefWarning, match="20 signals a graph, the fitted from inf"):
        predict(draws, noisy)


@pytest.mark.parametrize(("n_nodes", "warned"), [(3, True), (4, False), (15, False), (16, True)])
def test_another_number_of_nodes_is_warned_about(draws, n_nodes, warned):
    """Half as many as the smallest graph that was fitted has, or twice as many as the largest."""
    other = GraphDataset.sample(0, ErdosRenyi(0.4), 1, n_nodes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predict(draws, other)
    about_size = [w for w in caught if "fitted to graphs of 6 to 8 nodes" in str(w.message)]
    assert len(about_size) == warned
    assert all(f"is asked about {n_nodes}:" in str(w.message) for w in about_size)


def test_exact_nodes_predict_like_many_draws():
    """A few hundred nodes against 20,000 independent draws, each pushed through the network."""
    train = GraphDataset.sample(0, RandomGeometric(0.5), 4, 8, n_signals=60)
    posterior = Exact().run(0, EdgeModel(DPG(depth=10)), train)
    belief = predict(posterior, train[:1])[0]
    n = 20_000
    drawn = posterior.draws(1, n)
    many = Posterior(
        model=posterior.model,
        params=drawn,
        weights=np.full(n, 1 / n),
        engine="draws",
        settings={},
        fingerprint=posterior.fingerprint,
        verdict=posterior.verdict,
    )
    reference = predict(many, train[:1])[0]
    np.testing.assert_allclose(
        belief.mean, reference.mean, atol=5 * reference.epistemic_sd.max() / np.sqrt(n) + 1e-3
    )
    np.testing.assert_allclose(
        belief.epistemic_sd, reference.epistemic_sd, atol=0.03 * reference.epistemic_sd.max()
    )


def test_pairs_that_are_sure_to_all_digits_keep_their_order(data, model, draws):
    sure = replace(draws, params={**draws.params, "b": draws.params["b"] - 45})
    record = data[0]
    logits = []
    for theta, delta, b in zip(*sure.params.values(), strict=True):
        with jax.enable_x64(True):
            a = np.asarray(DPG(depth=10)(DPGParams(theta), record.e).a)
        logits.append(delta * a - b)
    doubt = sure.weights @ expit(-np.array(logits))  # E[1 - p] in float64
    belief = predict(sure, data)[0]
    assert (belief.mean.astype(np.float32) == 1).all()  # tied: node order, if sorted by these
    np.testing.assert_allclose(belief.logit, -np.log(doubt), rtol=1e-5)
    in_order = doubt[belief.order]
    assert (np.diff(in_order) >= -1e-6 * in_order[1:]).all()
    assert doubt[0] > 1.1 * doubt.min()  # the first in node order is not the first
    [best] = np.flatnonzero(decide(belief, top_k=1))
    assert doubt[best] == pytest.approx(doubt.min(), rel=1e-6, abs=0)
    [no] = predict(sure, data[:1])
    np.testing.assert_array_equal(no.order, belief.order)


def test_order_is_that_of_the_probabilities(data, draws):
    for belief in predict(draws, data):
        assert (np.diff(belief.mean[belief.order]) <= 0).all()
        np.testing.assert_allclose(expit(belief.logit), belief.mean, rtol=1e-6)
