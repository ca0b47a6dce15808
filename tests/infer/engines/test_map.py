import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import (
    EdgeModel,
    InferenceWarning,
    Prior,
    fixed,
    lognormal,
    loguniform,
    normal,
)
from edgebelief.infer.engines.map import MAP
from edgebelief.infer.gradient.density import LogDensity
from edgebelief.infer.gradient.optimise import FALLEN, Frame, laplace
from edgebelief.networks import DPG, MIMO, PDS, StochasticHead
from posteriors import rescaled


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=8, n_nodes=8, n_signals=30)


@pytest.fixture(scope="module")
def model():
    return EdgeModel(DPG(depth=10))


@pytest.mark.parametrize("marginal", [lognormal(3, 0.5), loguniform(1e-6, 1e6), normal(2, 5)])
def test_marginals_take_jax_arrays(marginal, x64):
    z = np.linspace(-6, 6, 13)
    np.testing.assert_allclose(marginal.from_z(jnp.asarray(z)), marginal.from_z(z), rtol=1e-12)


@pytest.mark.parametrize("prior", ["altered", "flat"])
def test_density_and_gradient_are_those_of_reverse_mode(data, prior, x64):
    """log p(z, labels) = model.log_density + log |d params / dz|, and its gradient by jax.grad."""
    model = EdgeModel(DPG(depth=10), prior=prior)
    ragged = data + GraphDataset.sample(1, RandomGeometric(0.5), n_graphs=2, n_nodes=5)
    weights = np.arange(10) / 4.0  # the first graph not at all
    density = LogDensity.of(model, ragged, weights)

    def plain(z):
        params, slopes = jax.jvp(model.from_z, (z,), (jnp.ones_like(z),))
        volume = sum(jnp.log(jnp.abs(slope)) for slope in slopes.values())
        return model.log_density(params, ragged, weights) + volume

    z = jnp.array([-0.4, -0.9, 1.1]) if prior == "altered" else jnp.array([-0.2, 0.03, 0.005])
    value, gradient = jax.jit(jax.value_and_grad(density.__call__))(z)
    expected, slope = jax.jit(jax.value_and_grad(plain))(z)
    assert float(value) == pytest.approx(float(expected), rel=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8)


def test_gradient_with_two_network_parameters(data, x64):
    wide = lognormal(1, 1)
    prior = Prior(alpha=wide, beta=wide, b=normal(0, 10))
    _same_gradient(EdgeModel(PDS(depth=5), prior=prior), data)


def _same_gradient(model, data):
    """Of the log-likelihood, and by reverse mode of the plain sum."""
    density = LogDensity.of(model, data)
    z = jnp.linspace(-0.2, 0.3, model.n_free)
    got = jax.jit(jax.grad(density.log_likelihood))(z)
    plain = jax.jit(jax.grad(lambda z: model.log_likelihood(model.from_z(z), data).sum()))(z)
    np.testing.assert_allclose(got, plain, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_gradient_with_vectors_of_parameters(data, x64):
    """Many of a network, which come back; few, which run along; some that are fixed."""
    base = MIMO(channels=2, depth=5)
    _same_gradient(EdgeModel(base), data)
    head = EdgeModel(StochasticHead(base, theta=(0.3, 0.2, 0.1, 0.4), depth=3))
    _same_gradient(head, data)
    _same_gradient(head.replace(prior=head.prior.replace(delta=fixed([30.0, 50.0]))), data)
    _same_gradient(head.replace(prior=head.prior.replace(theta=fixed([0.3, 0.5]))), data)


@pytest.mark.parametrize(
    "engine", [MAP(), MAP(space="unconstrained"), MAP(prior=None)], ids=["own", "log", "likelihood"]
)
def test_nothing_on_a_grid_is_higher(model, data, engine, x64):
    """Over a factor e^0.5 on each side, about three posterior standard deviations of theta."""
    found = engine.run(0, model, data)
    assert found.verdict.ok
    point = np.array([found.params[name][0] for name in model.parameters])

    def objective(values):
        params = dict(zip(model.parameters, values, strict=True))
        likelihood = model.log_likelihood(params, data).sum()
        if engine.prior is None:
            return likelihood
        jacobian = jnp.log(values).sum() if engine.space == "unconstrained" else 0.0
        return likelihood + model.prior.log_density(params) + jacobian

    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 17)] * 3), -1).reshape(-1, 3)
    values = jax.jit(lambda v: jax.lax.map(objective, v))(jnp.asarray(point * np.exp(grid)))
    best = float(objective(jnp.asarray(point)))
    assert best == pytest.approx(found.verdict.figures["log density"], abs=1e-6)
    assert best >= float(values.max()) - 1e-6
    assert found.settings["space"] == engine.space


def test_laplace_is_the_posteriors_mode_and_spread(model, data, x64):
    """Against the moments of a brute-force grid, whose mean and mode differ little here."""
    names, mode, covariance = laplace(model, data)
    assert names == ("theta", "delta", "b")
    density = LogDensity.of(model, data)
    scale = np.linalg.cholesky(covariance)
    w = np.stack(np.meshgrid(*[np.linspace(-5, 5, 21)] * 3), -1).reshape(-1, 3)
    z = mode + w @ scale.T
    log_p = np.asarray(jax.jit(lambda z: jax.lax.map(density, z))(jnp.asarray(z)))
    assert float(density(jnp.asarray(mode))) >= log_p.max() - 1e-6
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ z
    spread = np.sqrt(p @ (z - mean) ** 2)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), spread, rtol=0.25)


def test_starts_that_are_not_in_the_posterior_are_brought_back(model, data):
    density = LogDensity.of(model, data)
    frame = Frame.started_from("map", model, data, None)
    w = np.random.default_rng(0).standard_normal((6, 3))
    np.testing.assert_array_equal(frame.brought_back(w, density), w)
    wide = Frame(frame.center, 1e3 * frame.scale)
    back = wide.brought_back(w, density)
    at = np.array([float(density(jnp.asarray(z))) for z in wide.z(back)])
    before = np.array([float(density(jnp.asarray(z))) for z in wide.z(w)])
    lowest = float(density(jnp.asarray(frame.center))) - 3 * FALLEN
    assert (before < lowest).any()
    assert (at > lowest - 1e-2).all()
    np.testing.assert_allclose(back / np.linalg.norm(back, axis=1, keepdims=True),
                               w / np.linalg.norm(w, axis=1, keepdims=True))  # fmt: skip


def test_training_that_is_stopped_early_says_so(data):
    with pytest.warns(InferenceWarning, match="not converged"):
        found = MAP(starts=1, rounds=2).run(0, EdgeModel(MIMO(2, depth=5)), data)
    assert found.settings["rounds"] == 2
    with pytest.raises(ValueError, match="rounds must be a whole number, at least 1"):
        MAP(rounds=0)


def test_distances_on_another_scale_still_give_the_live_mode(model, data):
    near = MAP().run(0, model, data)
    with pytest.warns(InferenceWarning) as warned:
        far = MAP().run(0, model, rescaled(data, 1e4))
    assert {"flat prior network", "prior conflict"} == set(far.verdict.names)
    assert len(warned) == 2
    assert far.verdict.figures["prior mass dead"] > 0.99
    assert 1e-6 <= far.verdict.figures["rescaling"] <= 1e-3
    assert far.params["theta"][0] * 1e4 == pytest.approx(near.params["theta"][0], rel=0.15)
    assert far.verdict.figures["posterior mass dead"] == 0


def test_separable_labels_have_no_maximum_likelihood(model, data):
    logits = [model.logits({"theta": 0.2, "delta": 1.0, "b": 0.02}, record.e) for record in data]
    separable = GraphDataset([record.e for record in data], [np.asarray(x > 0) for x in logits])
    with pytest.warns(InferenceWarning):
        found = MAP(prior=None).run(0, model, separable)
    assert "no maximum" in found.verdict
    assert "separable" in found.verdict.findings[0].message
    assert "no maximum" not in MAP().run(0, model, separable).verdict.names


def test_weights_count_graphs(model, data):
    twice = MAP().run(0, model, data[:4] + data[:2]).params
    weighted = MAP().run(0, model, data, weights=[2, 2, 1, 1, 0, 0, 0, 0]).params
    for name in model.parameters:
        assert weighted[name][0] == pytest.approx(twice[name][0], rel=1e-4)


def test_what_cannot_be_fitted_is_refused(model, data):
    with pytest.raises(ValueError, match="none of the 8 graphs has a known label"):
        MAP().run(0, model, GraphDataset([record.e for record in data]))
    with pytest.raises(ValueError, match="a weight above zero"):
        MAP().run(0, model, data, weights=np.zeros(8))
    with pytest.raises(ValueError, match="8 numbers >= 0, one per graph"):
        MAP().run(0, model, data, weights=np.ones(3))
    with pytest.raises(ValueError, match="space must be"):
        MAP(space="log")
    with pytest.raises(ValueError, match="None for maximum likelihood"):
        MAP(prior="flat")


@pytest.mark.slow
def test_the_papers_data(shared_data):
    """Within a standard deviation of SPEC's posterior means."""
    stored = np.load(shared_data / "rg032.npz")
    data = GraphDataset(list(stored["train_distances"]), list(stored["train_adjacency"]))
    found = MAP().run(0, EdgeModel(), data)
    assert found.verdict.ok
    assert abs(found.params["theta"][0] - 0.16395) < 0.00449
    assert abs(found.params["delta"][0] - 54.545) < 2.019
    assert abs(found.params["b"][0] - 5.3532) < 0.1844


@pytest.mark.slow
def test_a_parameter_that_labels_bound_on_one_side_only(shared_data):
    """With 30 layers PDS does not tell small betas apart; what it knows of b must not suffer."""
    stored = np.load(shared_data / "rg032.npz")
    data = GraphDataset(list(stored["train_distances"]), list(stored["train_adjacency"]))
    _, mode, covariance = laplace(EdgeModel(PDS(30)), data)
    assert abs(1000 * mode[2] - 5.07) < 0.1
    assert 0.05 < 1000 * np.sqrt(covariance[2, 2]) < 0.5  # 0.166 by NUTS
