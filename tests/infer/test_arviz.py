import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats import loo

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel
from edgebelief.infer import arviz as ours
from edgebelief.infer.arviz import to_arviz
from edgebelief.infer.engines.map import MAP
from edgebelief.infer.engines.nuts import NUTS
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG, MIMO
from edgebelief.plots import TraceDisplay
from edgebelief.readouts import Additive, Channels
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
    return to_arviz(posterior, data, key=1, n_draws=800, kind="datatree")


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


def with_arviz(monkeypatch, version):
    """Pretend that this version of ArviZ is installed; None for none."""

    def installed(name):
        if version is None:
            raise ours.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(ours.metadata, "version", installed)


class InferenceData(SimpleNamespace):
    """Groups as ArviZ before 1.0 keeps them: data sets, by name."""

    def __getitem__(self, name):
        if not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)


def test_arviz_gets_what_its_version_takes(monkeypatch, posterior, data):
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(InferenceData=InferenceData))
    with_arviz(monkeypatch, "0.23.4")
    old = posterior.to_arviz(data, n_draws=40)
    assert isinstance(old, InferenceData)
    assert old.attrs["engine"] == "NUTS"
    with_arviz(monkeypatch, "1.3.0")
    new = posterior.to_arviz(data, n_draws=40)
    assert {*vars(old)} == {*new.children, "attrs"}
    for name, group in new.children.items():
        assert group.to_dataset().equals(old[name])
    assert TraceDisplay(old).diverging.shape == TraceDisplay(new).diverging.shape == (4, 10)
    with_arviz(monkeypatch, None)
    assert type(posterior.to_arviz(data, n_draws=40)) is type(new)


@pytest.mark.parametrize("version", [None, "1.3.0"])
def test_what_the_arviz_at_hand_does_not_have_is_refused(monkeypatch, posterior, data, version):
    with_arviz(monkeypatch, version)
    with pytest.raises(ValueError, match=r"'inferencedata' needs ArviZ before 1\.0"):
        posterior.to_arviz(data, kind="inferencedata")
    with pytest.raises(ValueError, match="kind must be one of"):
        posterior.to_arviz(data, kind="dataset")


def test_arviz_itself_takes_it(posterior, data):
    """Where it is installed, of either kind."""
    arviz = pytest.importorskip("arviz")
    assert list(arviz.summary(posterior.to_arviz(data, n_draws=40)).index) == [
        "theta",
        "delta",
        "b",
    ]


def test_entries_are_called_by_what_they_are(data):
    """A coefficient times its scale is part of the curve of the term that both are called after."""
    kinds = np.where(np.arange(28) % 3 == 0, "near", "far")
    covariates = [{"kind": kinds, "twice": (np.arange(28) % 2).astype(float)}] * len(data)
    graphs = GraphDataset(
        [r.e for r in data], [r.label_matrix() for r in data], covariates=covariates
    )
    model = EdgeModel(DPG(depth=3), readout=Additive(features=("z",)))
    prepared = prepare(0, model, graphs).model
    entries = ours._entries(prepared)
    scales = ["z line", "z bends", "kind", "twice line"]
    bends = [f"z bend {k}" for k in range(1, 4)]
    assert entries["scales"] == ("scale", scales)
    coefficients = ["z line", *bends, "kind = far", "kind = near", "twice line"]
    assert entries["curves"] == ("coefficient", coefficients)
    for name, group in zip(coefficients, prepared.readout.groups, strict=True):
        assert scales[group].split()[0] == name.split()[0]


def test_channels_and_the_matrix_between_them_have_dimensions():
    entries = ours._entries(EdgeModel(MIMO(channels=2, depth=3), readout=Channels(2)))
    assert entries["theta"] == ("row_and_column", ["0,0", "0,1", "1,0", "1,1"])
    assert entries["delta"] == ("channel", ["0", "1"])
