"""Size-aware learning: one model for graphs of several sizes, and for larger ones."""

import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief import GraphLearner, load
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.edges import Complete
from edgebelief.estimators.settings import scaled_by
from edgebelief.infer import EdgeModel, Exact
from edgebelief.infer.exact.growth import growth_of
from edgebelief.infer.exact.regression import Labels
from edgebelief.networks import DPG, DPGParams, Output
from edgebelief.readouts import Affine, AffineParams, Sized, SizedParams


def joined(*parts):
    records = [record for part in parts for record in part]
    return GraphDataset([r.e for r in records], [r.a for r in records])


def of_sizes(*sizes, seed=0, **how):
    return joined(*(GraphDataset.sample(seed + n, ErdosRenyi(0.35), 3, n, **how) for n in sizes))


def some_output(n_nodes, rng):
    z = jnp.asarray(rng.normal(0, 0.1, n_nodes * (n_nodes - 1) // 2))
    return Output(jnp.maximum(z, 0), jnp.ones(n_nodes), z)


@pytest.fixture(scope="module")
def data():
    return of_sizes(8, 12)


@pytest.fixture(scope="module")
def learner(data):
    return GraphLearner(depth=20, size_aware=True).fit(data)


@pytest.mark.parametrize("growth", [-1.0, 0.0, 1.5])
def test_at_twenty_nodes_it_is_the_papers_readout(growth, rng):
    output = some_output(20, rng)
    expected = Affine()(AffineParams(50.0, 3.0), output, Complete(20))
    found = Sized(growth)(SizedParams(50.0, 3.0), output, Complete(20))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_threshold_stays_and_what_is_beyond_it_grows(rng):
    """At N nodes, logit = s^growth (delta s a - b), s = (N - 1)/19."""
    output = some_output(40, rng)
    s = 39 / 19
    expected = s**0.7 * (50.0 * s * np.asarray(output.a) - 3.0)
    readout, params = Sized(0.7), SizedParams(50.0, 3.0)
    reduced = readout.reduce(output, Complete(40), None)
    np.testing.assert_allclose(readout.logits(params, reduced), expected, rtol=1e-4, atol=1e-5)
    columns = readout.columns(reduced)
    np.testing.assert_allclose(columns @ np.array([50.0, 3.0]), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sum(readout.parts(params, reduced).values()), expected, rtol=1e-4,
                               atol=1e-5)  # fmt: skip


@pytest.mark.slow
def test_one_size_of_twenty_nodes_has_the_posterior_of_the_plain_model():
    data = GraphDataset.sample(0, ErdosRenyi(0.3), 2, 20)
    plain = GraphLearner(depth=10, scale="median", readout="affine").fit(data)
    sized = GraphLearner(depth=10, size_aware=True).fit(data)
    assert sized.model_.readout.growth == 0
    assert sized.posterior_.log_evidence == pytest.approx(plain.posterior_.log_evidence, abs=1e-6)


def test_units_do_not_matter(learner, data):
    X = [g.distance_matrix() for g in data[:2]]
    for once, thousand in zip(
        learner.predict_proba(X), learner.predict_proba([1000 * x for x in X]), strict=True
    ):
        np.testing.assert_allclose(once, thousand, rtol=1e-4, atol=1e-7)


def test_relabelling_nodes_commutes(learner, rng):
    x = of_sizes(15, seed=5)[0].distance_matrix()
    order = rng.permutation(15)
    expected = learner.predict_proba(x)[np.ix_(order, order)]
    found = learner.predict_proba(x[np.ix_(order, order)])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


def test_saved_and_loaded_it_predicts_the_same_numbers(learner, tmp_path):
    learner.save(tmp_path / "model.eb")
    again = load(tmp_path / "model.eb")
    x = of_sizes(15, seed=5)
    assert again.size_aware
    assert again.model_.readout == learner.model_.readout
    assert np.array_equal(again.predict_proba(x), learner.predict_proba(x))


@pytest.mark.slow
def test_growth_is_where_the_evidence_of_a_whole_fit_is_highest(learner, data):
    """Times the prior; found at one theta, against fits over all of theta."""
    found = learner.model_.readout.growth
    scaled = learner._as_fitted(data)

    def log_posterior(growth):
        model = EdgeModel(DPG(20), Sized(growth))
        return Exact(tol=0.05).run(0, model, scaled).log_evidence - growth**2 / 2

    best = log_posterior(found)
    assert best > max(log_posterior(found - 1.0), log_posterior(found + 1.0))


@pytest.mark.slow
def test_growth_is_positive_for_expected_and_negative_for_noisy_distances():
    for how, sign in (({}, 1), ({"n_signals": 100}, -1)):
        train = scaled_by("median", of_sizes(12, 20, 40, **how))
        model = EdgeModel(DPG(50), Sized())
        assert sign * growth_of(model, train, np.ones(len(train))) > 0.2


def test_rows_of_several_sizes_are_compressed_size_by_size(rng):
    sizes = np.repeat([1.0, 2.0, 5.0], 20_000)
    columns = np.stack([sizes * rng.gamma(2.0, 1.0, sizes.size), -sizes], 1)
    labels = Labels.collapse(columns, (rng.random(sizes.size) < 0.4) * 1.0, np.ones(sizes.size))
    few = labels.compress()
    assert len(few.rows) < len(labels.rows) / 4
    beta = np.array([[0.5, 1.0], [2.0, 3.0], [0.1, 0.2]])
    np.testing.assert_allclose(few.log_likelihood(beta), labels.log_likelihood(beta), rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"readout": "additive"}, "a readout of its own"),
        ({"network": "pds"}, "size_aware is for DPG"),
        ({"scale": 2.0}, "over each graph's median"),
        ({"weighted": True}, "edges without weights"),
        ({"prior": {"density": (0.1, 0.5)}}, "named prior or a Prior"),
    ],
)
def test_what_it_does_not_go_with_is_refused(settings, message, data):
    with pytest.raises(ValueError, match=message):
        GraphLearner(size_aware=True, **settings).fit(data)


def test_wrong_settings_are_refused(data):
    with pytest.raises(TypeError, match="True or False"):
        GraphLearner(size_aware="yes").fit(data)
    with pytest.raises(ValueError, match="growth must be a number"):
        Sized(growth=float("nan"))
    with pytest.raises(ValueError, match="has not seen data"):
        Sized()(SizedParams(1.0, 1.0), DPG(2)(DPGParams(1.0), jnp.ones(3)), Complete(3))
