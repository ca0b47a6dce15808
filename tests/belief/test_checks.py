import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy import stats

from edgebelief.belief import checks
from edgebelief.belief.checks import PredictiveCheck, posterior_predictive, prior_predictive
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.edges import Complete
from edgebelief.errors import SettingError
from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
from edgebelief.networks import DPG

MODEL = EdgeModel(DPG(depth=5))
OF_NETWORKX = {
    "density": nx.density,
    "components": nx.number_connected_components,
    "degree spread": lambda graph: np.std([degree for _, degree in graph.degree]),
    "triangles": lambda graph: sum(nx.triangles(graph).values()) / 3,
}


@pytest.fixture(scope="module")
def data():
    """Two sizes."""
    return GraphDataset.sample(0, ErdosRenyi(0.4), 2, 7) + GraphDataset.sample(
        1, ErdosRenyi(0.5), 1, 5
    )


def posterior_at(data, **params):
    """A posterior of one point."""
    arrays = {name: np.array([value]) for name, value in params.items()}
    return Posterior(
        MODEL,
        arrays,
        np.ones(1),
        "by hand",
        {},
        Fingerprint.of(data),
        Verdict(),
    )


@pytest.mark.parametrize(("prior", "share"), [("original", 0.04), ("altered", 0.11)])
def test_prior_shares_of_dense_graphs_are_the_paper_s(prior, share, shared_data):
    # SPEC section 11: D = 30, the five validation graphs, 10,000 data sets, open interval.
    data = GraphDataset(np.load(shared_data / "rg032.npz")["val_distances"])
    check = prior_predictive(0, EdgeModel(DPG(depth=30), prior=prior), data)
    assert check.values.shape == (10_000,)
    assert check.share(0.75, 1) == pytest.approx(share, abs=0.015)


def test_replicates_are_drawn_many_at_a_time(data, monkeypatch):
    """One compilation and few calls; a call for each of 10,000 data sets would take minutes."""
    draw, sizes = checks._draw, []

    def counted(model, keys, *arguments):
        sizes.append(len(keys))
        return draw(model, keys, *arguments)

    monkeypatch.setattr(checks, "_draw", counted)
    check = prior_predictive(0, MODEL, data, n=10_000)
    assert check.values.shape == (10_000,)
    assert sum(sizes) >= 2 * 10_000  # graphs of two sizes
    assert len(sizes) <= 10
    assert len(set(sizes)) <= 2


@pytest.mark.parametrize("name", OF_NETWORKX)
def test_statistics_are_those_of_networkx(name, rng):
    support, of_graphs = Complete(9), checks._statistic(name)
    graphs = rng.uniform(size=(6, 3, 36)) < np.array([0.05, 0.3, 0.8])[:, None]
    found = of_graphs(graphs, np.ones((3, 36), bool), support)
    for place in np.ndindex(6, 3):
        graph = nx.from_numpy_array(support.to_matrix(graphs[place].astype(float)))
        assert found[place] == pytest.approx(OF_NETWORKX[name](graph), rel=1e-5)


@pytest.mark.parametrize("name", OF_NETWORKX)
def test_observed_is_the_mean_over_graphs(name, data):
    check = prior_predictive(0, MODEL, data, name, n=2)
    graphs = [nx.from_numpy_array(record.label_matrix()) for record in data]
    assert check.observed == pytest.approx(np.mean([OF_NETWORKX[name](g) for g in graphs]))
    assert check.statistic == name


def test_a_function_counts_as_the_built_in_does(data):
    def my_triangles(matrix):
        assert matrix.shape in ((7, 7), (5, 5))
        assert set(np.unique(matrix)) <= {0.0, 1.0}
        return np.trace(np.linalg.matrix_power(matrix, 3)) / 6

    mine = prior_predictive(0, MODEL, data, my_triangles, n=50)
    built_in = prior_predictive(0, MODEL, data, "triangles", n=50)
    np.testing.assert_allclose(mine.values, built_in.values)
    assert mine.observed == pytest.approx(built_in.observed)
    assert mine.statistic == "my_triangles"


def test_replicates_have_the_moments_of_the_likelihood(data):
    # One point for a posterior: densities are means of independent Bernoulli edges.
    posterior = posterior_at(data, theta=0.2, delta=20.0, b=2.0)
    check = posterior_predictive(3, posterior, data, n=4000)
    mean, variance = [], []
    for record in data:
        logits = posterior.model.logits({"theta": 0.2, "delta": 20.0, "b": 2.0}, record.e)
        p = np.asarray(jax.nn.sigmoid(logits), float)
        mean.append(p.mean())
        variance.append((p * (1 - p)).sum() / p.size**2)
    sd = np.sqrt(np.sum(variance)) / 3
    assert check.values.mean() == pytest.approx(np.mean(mean), abs=4 * sd / np.sqrt(4000))
    assert check.values.std() == pytest.approx(sd, rel=0.05)
    assert check.source == "posterior"


def test_all_graphs_of_a_replicate_share_their_parameters(data):
    # Certain edges, or certain none, by the sign of delta: then all graphs are full, or empty.
    posterior = posterior_at(data, theta=1e-3, delta=1e4, b=10.0)
    params = {name: np.repeat(value, 2) for name, value in posterior.params.items()}
    params["delta"] = np.array([1e4, -1e4])
    both = Posterior(
        posterior.model, params, np.full(2, 0.5), "by hand", {}, posterior.fingerprint, Verdict()
    )
    values = posterior_predictive(0, both, data, n=200).values
    assert set(values) == {0.0, 1.0}
    assert stats.binomtest(int(values.sum()), 200).pvalue > 1e-4


def test_parts_do_not_matter(data, monkeypatch):
    whole = prior_predictive(5, MODEL, data, n=50)
    monkeypatch.setattr(checks, "NUMBERS", 7 * 2 * 49)  # seven draws of two graphs on seven nodes
    np.testing.assert_array_equal(prior_predictive(5, MODEL, data, n=50).values, whole.values)
    assert np.ptp(whole.values) > 0


def test_unknown_labels_do_not_count(data):
    # Known: the first half of the labels of one graph; nothing of another; all of the third.
    half = np.where(np.arange(21) < 10, data[0].a, np.nan)
    masked = GraphDataset([r.e for r in data], [half, None, data[2].a])
    density = prior_predictive(0, MODEL, masked, n=200)
    assert density.observed == pytest.approx((data[0].a[:10].mean() + data[2].a.mean()) / 2)
    assert set(np.round(density.values * 20, 6) % 1) == {0.0}  # tenths, of two graphs
    triangles = prior_predictive(0, MODEL, masked, "triangles", n=200)
    third = nx.triangles(nx.from_numpy_array(data[2].label_matrix()))
    assert triangles.observed == sum(third.values()) / 3
    assert triangles.values.max() <= 10  # on five nodes there are no more


def test_without_labels_there_is_nothing_observed(data):
    inputs = [record.e for record in data]
    check = prior_predictive(0, MODEL, inputs, n=50)
    labelled = prior_predictive(0, MODEL, data, n=50)
    assert check.observed is None
    np.testing.assert_array_equal(check.values, labelled.values)
    with pytest.raises(ValueError, match="labels do not tell the density"):
        check.tail_probability  # noqa: B018
    one = prior_predictive(0, MODEL, inputs[0], n=50)
    matrix = prior_predictive(0, MODEL, data[0].distance_matrix(), n=50)
    np.testing.assert_array_equal(one.values, matrix.values)


def test_too_few_labels_leave_other_statistics_of_all_graphs(data):
    masked = GraphDataset([data[0].e], [np.where(np.arange(21) < 10, data[0].a, np.nan)])
    check = prior_predictive(0, MODEL, masked, "components", n=50)
    assert check.observed is None
    whole = prior_predictive(0, MODEL, data[:1], "components", n=50)
    np.testing.assert_array_equal(check.values, whole.values)


def test_shares_and_tails_by_hand():
    check = PredictiveCheck(np.array([0.0, 0.5, 0.5, 0.75, 1.0]), 0.5, "density")
    assert check.share(0.5, 1.0) == pytest.approx(1 / 5)  # open
    assert check.share(-1, 2) == 1
    assert check.tail_probability == pytest.approx((2 + 2 / 2) / 5)
    assert "labels 0.5 (tail 0.6)" in str(check)


def test_an_unknown_statistic_names_those_there_are(data):
    with pytest.raises(ValueError, match="'girth'; there are density, components, degree spread"):
        prior_predictive(0, MODEL, data, "girth")


@pytest.mark.parametrize("n", [0, -1, 2.5, 10**12])
def test_an_absurd_number_of_replicates_is_refused(data, n):
    with pytest.raises(SettingError, match="n must be a whole number, at least 1 and at most"):
        prior_predictive(0, EdgeModel(), data, n=n)


def test_same_key_same_check(data):
    values = [prior_predictive(key, MODEL, data, n=50).values for key in (4, jax.random.key(4), 5)]
    np.testing.assert_array_equal(values[0], values[1])
    assert (values[0] != values[2]).any()
    assert jnp.isfinite(values[0]).all()
