"""The one evaluation of a model: against sums written out by hand, and each part of it once."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, Exact, prepare
from edgebelief.infer.batch import log_likelihoods
from edgebelief.infer.engines import exact
from edgebelief.networks import DPG, DPGParams
from edgebelief.readouts import Additive

MODEL = EdgeModel(DPG(depth=5))
VALUES = {"theta": 0.3, "delta": 20.0, "b": 3.0}


@pytest.fixture(scope="module")
def data():
    """Two sizes; the first label of each graph is unknown."""
    drawn = GraphDataset.sample(0, RandomGeometric(0.5), 3, n_nodes=6, n_signals=30)
    drawn += GraphDataset.sample(1, RandomGeometric(0.5), 2, n_nodes=5, n_signals=30)
    labels = [np.r_[np.nan, record.a[1:]] for record in drawn]
    return GraphDataset([record.e for record in drawn], labels)


def by_hand(record, values):
    a = np.asarray(MODEL.network(DPGParams(values["theta"]), jnp.asarray(record.e)).a)
    p = expit(values["delta"] * a - values["b"])
    return np.log(np.where(record.a == 1, p, 1 - p))[record.known].sum()


def test_log_likelihood_is_the_sum_over_known_labels(data, x64):
    expected = [by_hand(record, VALUES) for record in data]
    np.testing.assert_allclose(MODEL.log_likelihood(VALUES, data), expected, rtol=1e-9)


def test_a_network_that_never_changes_runs_once_with_the_same_result(data, x64):
    draws = {"theta": np.full(3, 0.3), "delta": np.array([1.0, 20.0, 40.0]), "b": np.arange(3.0)}
    moved = {**draws, "theta": np.array([0.3, 0.3, 0.4])}
    for each in (draws, moved):
        expected = [
            [by_hand(record, {name: x[k] for name, x in each.items()}) for record in data]
            for k in range(3)
        ]
        np.testing.assert_allclose(log_likelihoods(MODEL.forward, each, data), expected, rtol=1e-9)


def test_graphs_that_are_selected_and_counted_keep_their_numbers(data, x64):
    forward, stack = MODEL.forward, data.stacks()[-1]
    batch = forward.batch(stack).part(np.array([2, 0])).counted(2.0).as_jax()
    expected = [by_hand(data[stack.places[k]], VALUES) for k in (2, 0)]
    np.testing.assert_allclose(forward.log_likelihood_at(VALUES, batch), expected, rtol=1e-9)
    np.testing.assert_allclose(batch.labels.counts, 2.0)
    np.testing.assert_array_equal(batch.labels.n_labels, [28.0, 28.0])  # 14 of 15 known, twice


def test_graphs_without_labels_have_log_likelihood_zero(data):
    batch = MODEL.forward.batch(data.stacks()[-1]).without_labels().as_jax()
    np.testing.assert_array_equal(MODEL.forward.log_likelihood_at(VALUES, batch), np.zeros(3))


@pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")
def test_an_additive_fit_looks_for_theta_once(data, monkeypatch):
    """Preparation finds the most plausible theta for the knots, and hands it on to the fit."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    original = prepare.most_plausible_z
    for module in (prepare, exact):
        monkeypatch.setattr(module, "most_plausible_z", counted)
    model = EdgeModel(DPG(depth=5), Additive(features=("z",)))
    Exact(n_draws=100).run(0, model, data)
    assert len(calls) == 1
