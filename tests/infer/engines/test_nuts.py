import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base import array_stats

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, InferenceWarning
from edgebelief.infer.engines.nuts import NUTS, chain_groups
from edgebelief.infer.gradient.density import LogDensity
from edgebelief.networks import DPG
from posteriors import grid_posterior, rescaled


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=8, n_nodes=8, n_signals=30)


@pytest.fixture(scope="module")
def model():
    return EdgeModel(DPG(depth=10))


@pytest.fixture(scope="module")
def found(model, data):
    return NUTS().run(2, model, data)


def test_moments_are_those_of_a_brute_force_grid(model, data, found):
    assert found.verdict.ok
    params, weights, *_ = grid_posterior(model, data)
    for name in model.parameters:
        mean = weights @ params[name]
        sd = np.sqrt(weights @ (params[name] - mean) ** 2)
        chains = found.params[name].reshape(found.n_chains, -1)
        assert abs(chains.mean() - mean) < 4 * array_stats.mcse(chains, method="mean")
        assert abs(chains.std() - sd) < 4 * array_stats.mcse(chains, method="sd")


def test_draws_lie_chain_after_chain_beside_their_statistics(model, data, found):
    density = LogDensity.of(model, data)
    z = np.stack([model.prior[name].to_z(found.params[name]) for name in model.parameters], -1)
    some = np.arange(0, 4000, 97)
    lp = jax.jit(lambda z: jax.lax.map(density, z))(jnp.asarray(z[some]))
    np.testing.assert_allclose(found.sample_stats["lp"].ravel()[some], lp, atol=2e-3)
    assert found.sample_stats["diverging"].shape == (4, 1000)
    assert found.weights == pytest.approx(1 / 4000)


def test_it_says_how_it_ran(found):
    assert sum(found.settings["chains per device"]) == 4
    assert found.settings["n_warmup"] == 500  # the second run, the first having a finding
    assert found.settings["target_accept"] == 0.95
    assert [group.size for group in chain_groups(4, "vectorized")] == [4]
    assert sum(group.size for group in chain_groups(5, "parallel")) == 5
    figures = found.verdict.figures
    assert figures["R-hat"] <= 1.01
    assert figures["divergences"] == 0
    assert figures["effective draws (bulk)"] > 400
    # Whitened by the Laplace approximation: trees of 7 or 15 steps, not hundreds (how many are of
    # which kind differs from processor to processor).
    assert figures["steps a draw"] <= 15


def test_distances_on_another_scale_give_the_live_mode_and_a_conflict(model, data, found):
    with pytest.warns(InferenceWarning):
        far = NUTS().run(0, model, rescaled(data, 1e4))
    assert set(far.verdict.names) == {"flat prior network", "prior conflict"}
    assert far.verdict.figures["prior mass dead"] > 0.99
    assert far.verdict.figures["rescaling"] < 1e-2
    mean, sd = found.params["theta"].mean(), found.params["theta"].std()
    assert abs(far.params["theta"].mean() * 1e4 - mean) < sd


@pytest.mark.slow
def test_a_run_that_starts_dead_is_named_dead(model, data):
    """SPEC section 13: it returns the prior, which ordinary diagnostics do not notice."""
    engine = NUTS(init="prior", n_warmup=200, n_draws=300)
    with pytest.warns(InferenceWarning):
        far = engine.run(0, model, rescaled(data, 1e6))
    assert "dead network" in far.verdict
    assert "prior dominates" in far.verdict
    assert far.verdict.figures["posterior mass dead"] > 0.99
    assert far.verdict.figures["prior mass dead"] > 0.99
    assert far.verdict.figures["rescaling"] < 1e-4


@pytest.mark.slow
@pytest.mark.long
def test_too_few_draws_are_a_finding(model, data):
    with pytest.warns(InferenceWarning):
        short = NUTS(n_warmup=50, n_draws=20, n_chains=2).run(0, model, data)
    assert "effective draws" in short.verdict


def test_what_cannot_be_run_is_refused(model, data):
    with pytest.raises(ValueError, match="known label"):
        NUTS().run(0, model, GraphDataset([record.e for record in data]))
    with pytest.raises(ValueError, match="init must be one of"):
        NUTS(init="best")
    with pytest.raises(ValueError, match="n_draws must be a whole number, at least 4"):
        NUTS(n_draws=0)


@pytest.mark.slow
@pytest.mark.long
def test_the_papers_data(shared_data):
    """SPEC section 7: theta 0.16395 +- 0.00449, delta 54.545 +- 2.019, b 5.3532 +- 0.1844."""
    stored = np.load(shared_data / "rg032.npz")
    data = GraphDataset(list(stored["train_distances"]), list(stored["train_adjacency"]))
    found = NUTS().run(0, EdgeModel(), data)
    assert found.verdict.ok
    key = {"theta": (0.16395, 0.00449), "delta": (54.545, 2.019), "b": (5.3532, 0.1844)}
    for name, (mean, sd) in key.items():
        chains = found.params[name].reshape(4, -1)
        assert abs(chains.mean() - mean) < 4 * array_stats.mcse(chains, method="mean") + 1e-4 * mean
        assert chains.std() == pytest.approx(sd, rel=0.1)
