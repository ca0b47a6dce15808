import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats import loo

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel
from edgebelief.infer.arviz import to_arviz
from edgebelief.infer.engines.map import MAP
from edgebelief.infer.engines.nuts import NUTS
from edgebelief.networks import DPG
from posteriors import grid_posterior


@pytest.fixture(scope="module")
def data():
    """The third graph has no labels, the fourth lacks some."""
    full = GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=9, n_nodes=8, n_signals=30)
    labels = [record.a.copy() for record in full]
    labels[2] = None
    labels[3][::3] = np.nan
    return GraphDataset([record.e for record in full], labels)


@pytest.fixture(scope="module")
def model():
    return EdgeModel(DPG(depth=10))


@pytest.fixture(scope="module")
def posterior(model, data):
    return NUTS(target_accept=0.95).run(0, model, data)


@pytest.fixture(scope="module")
def tree(posterior, data):
    return to_arviz(posterior, data, key=1, n_draws=800)


def test_log_likelihood_is_the_models_by_graph(tree, model, data):
    graphs = tree["log_likelihood"]["labels"]
    assert graphs.dims == ("chain", "draw", "graph")
    np.testing.assert_array_equal(graphs["graph"], [0, 1, 3, 4, 5, 6, 7, 8])
    for chain, draw in ((0, 0), (2, 57), (3, 199)):
        params = {name: float(tree["posterior"][name][chain, draw]) for name in model.parameters}
        each = np.delete(np.asarray(model.log_likelihood(params, data)), 2)
        np.testing.assert_allclose(graphs[chain, draw], each, rtol=1e-4)


def test_chains_are_thinned_with_their_statistics(tree, posterior):
    theta = posterior.params["theta"].reshape(4, 1000)
    np.testing.assert_array_equal(tree["posterior"]["theta"], theta[:, 4::5])
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], posterior.sample_stats["lp"][:, 4::5])
    assert tree.attrs["engine"] == "NUTS"
    assert "n_warmup=150" in tree.attrs["settings"]


def test_leave_one_graph_out_is_that_of_brute_force(tree, model, data):
    """Sum over t of log p(labels_t | other labels), each the ratio of two sums over a grid."""
    labelled = np.delete(np.arange(9), 2)
    _, weights, each, _ = grid_posterior(model, data[labelled])
    exact = -np.log(weights @ np.exp(-each))
    found = loo(tree, pointwise=True)
    assert found.n_data_points == 8
    np.testing.assert_allclose(found.elpd_i, exact, atol=0.15)
    assert found.elpd == pytest.approx(exact.sum(), abs=0.3)


def test_predictive_densities_have_the_mean_of_the_probabilities(tree, model, data):
    labelled = data[np.delete(np.arange(9), 2)]
    known = jnp.stack([jnp.asarray(record.known) for record in labelled])
    e = jnp.stack([jnp.asarray(record.e) for record in labelled])

    def density(params):
        p = jax.nn.sigmoid(model.logits(params, e))
        return jnp.where(known, p, 0).sum(1) / known.sum(1)

    for belief, predictive in (
        ("posterior", "posterior_predictive"),
        ("prior", "prior_predictive"),
    ):
        draws = {name: jnp.ravel(tree[belief][name].values) for name in model.parameters}
        expected = np.asarray(jax.jit(lambda d: jax.lax.map(density, d))(draws))
        got = tree[predictive]["edge_density"].values.reshape(expected.shape)
        error = got - expected  # a mean of independent edges, given the parameters
        assert (abs(error.mean(0)) < 4 * error.std(0) / np.sqrt(len(error)) + 1e-6).all()
    observed = [record.a[record.known].mean() for record in labelled]
    np.testing.assert_allclose(tree["observed_data"]["edge_density"], observed)


def test_other_engines_give_one_chain(model, data):
    point = MAP().run(0, model, data)
    tree = to_arviz(point, data, key=0, n_draws=5)
    np.testing.assert_array_equal(tree["posterior"]["b"], np.full((1, 5), point.params["b"][0]))
    assert "sample_stats" not in tree.children
    assert set(tree.children) == set(point.to_arviz(data, n_draws=5).children)


def test_unlabelled_data_are_refused(model, data, posterior):
    with pytest.raises(ValueError, match="none of the 9 graphs has a known label"):
        to_arviz(posterior, GraphDataset([record.e for record in data]), key=0)
