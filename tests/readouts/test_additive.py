import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.edges import Complete
from edgebelief.infer import EdgeModel
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG, DPGParams
from edgebelief.readouts import (
    Additive,
    AdditiveParams,
    Affine,
    AffineParams,
    TwoSlope,
    TwoSlopeParams,
)

N = 8


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, RandomGeometric(0.5), n_graphs=4, n_nodes=N, n_signals=50)


@pytest.fixture(scope="module")
def model(data):
    return prepare(0, EdgeModel(DPG(depth=10), Additive()), data).model


@pytest.fixture
def output(data):
    return DPG(depth=10)(DPGParams(0.3), jnp.asarray(data[0].e))


def some_params(readout, rng, scale=1.0):
    sizes = readout.sizes
    return AdditiveParams(
        delta=jnp.asarray(20.0),
        b=jnp.asarray(2.0),
        curves=jnp.asarray(rng.normal(size=sizes["curves"])),
        scales=jnp.asarray(scale * rng.uniform(size=sizes["scales"])),
    )


def pairs_of(model, data):
    (stack,) = data[:1].stacks()
    return model.pairs(stack)[0]


def test_without_scales_it_is_the_papers_readout(model, data, output, rng):
    params = some_params(model.readout, rng, scale=0.0)
    plain = Affine()(AffineParams(params.delta, params.b), output, Complete(N))
    found = model.readout(params, output, Complete(N), pairs_of(model, data))
    np.testing.assert_allclose(found, plain, atol=1e-5)


def test_parts_add_up_to_the_logits(model, data, output, rng):
    params, pairs = some_params(model.readout, rng), pairs_of(model, data)
    reduced = model.readout.reduce(output, Complete(N), pairs)
    parts = model.readout.parts(params, reduced)
    assert set(parts) == {"weight", "baseline"} | {term.name for term in model.readout.terms}
    np.testing.assert_allclose(
        sum(parts.values()), model.readout.logits(params, reduced), atol=1e-4
    )


@pytest.mark.parametrize(
    ("readout", "params"),
    [(Affine(), AffineParams(20.0, 2.0)), (TwoSlope(), TwoSlopeParams(20.0, 3.0, 2.0))],
)
def test_parts_and_columns_of_the_small_readouts(readout, params, output):
    reduced = readout.reduce(output, Complete(N), None)
    logits = readout.logits(params, reduced)
    np.testing.assert_allclose(sum(readout.parts(params, reduced).values()), logits, rtol=1e-5)
    np.testing.assert_allclose(
        readout.columns(reduced) @ jnp.asarray(params), logits, rtol=1e-5, atol=1e-5
    )


def test_two_slopes_alike_are_one_line_in_z(output):
    params = TwoSlopeParams(delta=7.0, slack=7.0, b=1.0)
    np.testing.assert_allclose(
        TwoSlope()(params, output, Complete(N)), 7 * output.z - 1, rtol=1e-5, atol=1e-5
    )


def test_the_slack_is_where_the_weight_is_positive(output):
    np.testing.assert_array_equal(output.a, jnp.maximum(output.z, 0))


def test_columns_times_coefficients_are_the_logits(model, data, output, rng):
    params, pairs = some_params(model.readout, rng), pairs_of(model, data)
    reduced = model.readout.reduce(output, Complete(N), pairs)
    curves = np.asarray(params.scales)[model.readout.groups] * np.asarray(params.curves)
    coefficients = np.concatenate([[20.0, 2.0], curves])
    found = np.asarray(model.readout.columns(reduced)) @ coefficients
    np.testing.assert_allclose(found, model.readout.logits(params, reduced), atol=1e-4)


def test_renaming_nodes_renames_the_logits(model, data, rng):
    record, order = data[0], rng.permutation(N)
    support, places = Complete(N).relabel(order)
    params = some_params(model.readout, rng)
    values = {"theta": 0.3, **params._asdict()}

    def logits(e):
        (stack,) = GraphDataset([e]).stacks()
        return model.logits(values, jnp.asarray(e), support, model.pairs(stack)[0])

    np.testing.assert_allclose(logits(record.e[places]), logits(record.e)[places], atol=2e-3)


@pytest.mark.slow
def test_the_gradient_along_theta_is_that_of_differences(x64, model, data, rng):
    params = some_params(model.readout, rng)
    e, pairs = jnp.asarray(data[0].e), jnp.asarray(pairs_of(model, data))

    def total(theta):
        values = {"theta": theta, **params._asdict()}
        return (model.logits(values, e, Complete(N), pairs) ** 2).sum()

    slope = jax.jvp(total, (0.3,), (1.0,))[1]
    step = 1e-6
    assert np.isclose(slope, (total(0.3 + step) - total(0.3 - step)) / (2 * step), rtol=1e-4)


def test_unknown_features_and_unprepared_readouts_are_refused(data):
    with pytest.raises(ValueError, match="no features are called"):
        Additive(features=("colour",))
    with pytest.raises(ValueError, match="has not seen data"):
        _ = Additive().sizes


def test_features_that_are_all_constant_are_refused():
    alike = GraphDataset([np.ones(6)] * 2, [np.arange(6) % 2] * 2)
    with pytest.raises(ValueError, match=r"the same for all pairs.*readout='affine'"):
        prepare(0, EdgeModel(DPG(depth=10), Additive()), alike)


def test_missing_covariates_are_named(data):
    (stack,) = data.stacks()
    with pytest.raises(ValueError, match="no covariate \\['age'\\]"):
        Additive(covariates=("age",)).pairs(stack)
