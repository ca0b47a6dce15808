import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, InferenceWarning
from edgebelief.infer.engines.vi import VI, _batch
from edgebelief.infer.gradient.density import LogDensity
from edgebelief.networks import DPG
from posteriors import grid_posterior, rescaled


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=24, n_nodes=8, n_signals=30)


@pytest.fixture(scope="module")
def model():
    return EdgeModel(DPG(depth=10))


@pytest.mark.slow
def test_moments_and_evidence_are_those_of_a_brute_force_grid(model, data):
    found = VI(batch_graphs=8).run(0, model, data)
    assert found.verdict.ok
    params, weights, _, log_evidence = grid_posterior(model, data)
    for name in model.parameters:
        mean = weights @ params[name]
        sd = np.sqrt(weights @ (params[name] - mean) ** 2)
        assert abs(found.weights @ found.params[name] - mean) < 0.2 * sd
        assert found.summary().loc[name, "sd"] == pytest.approx(sd, rel=0.15)
    assert found.log_evidence == pytest.approx(log_evidence, abs=0.1)
    assert found.verdict.figures["ELBO"] < log_evidence  # it is a lower bound
    assert found.verdict.figures["Pareto k"] <= 0.7


@pytest.mark.slow
def test_a_batch_has_the_likelihood_of_all_graphs_on_average(model, data, x64):
    """Over ragged graphs and weights; a batch of all graphs has it exactly."""
    ragged = data[:6] + GraphDataset.sample(1, RandomGeometric(0.5), n_graphs=5, n_nodes=5)
    weights = np.linspace(0.5, 1.5, 11)
    density, z = LogDensity.of(model, ragged, weights), jnp.array([-0.4, -0.9, 1.1])
    whole = float(density.log_likelihood(z))
    assert float(_batch(jax.random.key(0), density, 11).log_likelihood(z)) == pytest.approx(whole)

    def of_batch(key):
        some = _batch(key, density, 4)
        assert [len(batch.e) for batch in some.batches] == [2, 2]
        return some.log_likelihood(z)

    keys = jax.random.split(jax.random.key(0), 4000)
    values = np.asarray(jax.jit(lambda k: jax.lax.map(of_batch, k))(keys))
    assert abs(values.mean() - whole) < 4 * values.std() / np.sqrt(4000)


@pytest.mark.slow
@pytest.mark.long
def test_distances_on_another_scale_give_the_live_mode_and_a_conflict(model, data):
    near = VI(batch_graphs=8).run(0, model, data)
    with pytest.warns(InferenceWarning):
        far = VI(batch_graphs=8).run(0, model, rescaled(data, 1e4))
    assert {"flat prior network", "prior conflict"} <= set(far.verdict.names)
    assert "dead network" not in far.verdict
    assert far.verdict.figures["prior mass dead"] > 0.99
    assert far.verdict.figures["rescaling"] < 1e-2
    mean, sd = near.summary().loc["theta", ["mean", "sd"]]
    assert abs(far.weights @ far.params["theta"] * 1e4 - mean) < sd


@pytest.mark.slow
@pytest.mark.long
def test_a_run_that_starts_dead_is_named_dead(model, data):
    with pytest.warns(InferenceWarning):
        far = VI(init="prior", steps=200).run(0, model, rescaled(data, 1e4))
    assert {"dead network", "prior dominates", "flat prior network"} <= set(far.verdict.names)
    assert far.verdict.figures["posterior mass dead"] > 0.9
    assert far.verdict.figures["rescaling"] < 1e-2


def test_a_normal_that_is_far_away_is_named(model, data):
    """The prior itself, without a step: its draws are returned, and not the few near the mode."""
    with pytest.warns(InferenceWarning):
        found = VI(init="prior", steps=0).run(0, model, data)
    assert "Pareto k" in found.verdict
    assert found.log_evidence is None
    np.testing.assert_allclose(found.weights, 1 / 1000)


def test_what_cannot_be_run_is_refused(model, data):
    with pytest.raises(ValueError, match="known label"):
        VI().run(0, model, GraphDataset([record.e for record in data]))
    with pytest.raises(ValueError, match="batch_graphs must be a whole number, at least 1"):
        VI(batch_graphs=0)
    with pytest.raises(ValueError, match="init must be one of"):
        VI(init="best")


@pytest.mark.slow
@pytest.mark.long
def test_the_papers_data(shared_data):
    """SPEC section 7: theta 0.16395 +- 0.00449, delta 54.545 +- 2.019, b 5.3532 +- 0.1844."""
    stored = np.load(shared_data / "rg032.npz")
    data = GraphDataset(list(stored["train_distances"]), list(stored["train_adjacency"]))
    found = VI().run(0, EdgeModel(), data)
    assert found.verdict.ok
    key = {"theta": (0.16395, 0.00449), "delta": (54.545, 2.019), "b": (5.3532, 0.1844)}
    for name, (mean, sd) in key.items():
        assert abs(found.weights @ found.params[name] - mean) < 0.2 * sd
