"""Leaving graphs out: against fitting again without each of them."""

import sys

import numpy as np
import pytest

from edgebelief import metrics
from edgebelief.belief import compare, leave_one_out, predict
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import MAP, EdgeModel, Exact
from edgebelief.infer.loo import psis_loo
from edgebelief.networks import DPG

MODEL = EdgeModel(DPG(depth=10))


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)


@pytest.fixture(scope="module")
def posterior(data):
    return Exact().run(0, MODEL, data)


def without(data, t, model=MODEL):
    kept = np.arange(len(data)) != t
    return float(predict(Exact().run(0, model, data[kept]), data[t : t + 1]).log_scores[0])


@pytest.mark.slow
def test_agrees_with_leaving_each_graph_out(data, posterior):
    found = leave_one_out(0, posterior, data)
    exact = np.array([without(data, t) for t in range(len(data))])
    assert found.reliable
    assert not found.refitted.any()
    np.testing.assert_allclose(found.scores, exact, atol=0.25)


@pytest.mark.slow
def test_graphs_that_are_hard_to_forget_are_left_out_indeed(data, posterior, monkeypatch):
    monkeypatch.setattr(sys.modules["edgebelief.belief.compare"], "PARETO_K", -1.0)
    found = leave_one_out(0, posterior, data[:3], engine=Exact())
    assert found.refitted.all()
    both = Exact().run(0, MODEL, data[1:3])
    expected = float(predict(both, data[:1]).log_scores[0])
    assert np.isclose(found.scores[0], expected, atol=1e-6)


def test_of_a_single_graph_it_is_the_evidence(data):
    alone = Exact().run(0, MODEL, data[:1])
    assert leave_one_out(0, alone, data[:1]).scores[0] == alone.log_evidence


def test_weights_count_and_graphs_without_labels_do_not(data, posterior):
    weights = np.array([0.0, *[1.0] * 7])
    some = Exact().run(0, MODEL, data, weights)
    found = leave_one_out(0, some, data, weights)
    assert found.scores[0] == 0
    plain = GraphDataset([data[0].e])
    unknown = data[1:] + plain
    again = leave_one_out(0, Exact().run(0, MODEL, unknown), unknown)
    assert again.scores[-1] == 0
    np.testing.assert_allclose(again.scores[:-1], found.scores[1:], atol=0.2)


@pytest.mark.filterwarnings("ignore:prior conflict")  # with a single layer
def test_compare_puts_the_better_one_first(data, posterior):
    worse = Exact().run(0, EdgeModel(DPG(depth=1)), data)
    table = compare(0, {"one layer": worse, "ten": posterior}, data)
    assert table.index.tolist() == ["ten", "one layer"]
    assert table["behind"].tolist()[0] == 0
    assert table["behind"].iloc[1] > 2 * table["se_behind"].iloc[1]
    for name, one in (("one layer", worse), ("ten", posterior)):
        scores = leave_one_out(0, one, data).scores
        assert np.isclose(table.loc[name, "elpd"], scores.sum())
        assert np.isclose(table.loc[name, "se"], np.sqrt(8) * scores.std(ddof=1))


@pytest.mark.slow
def test_models_are_fitted_and_scored_on_other_graphs(data):
    """A model is as good as its posterior; scores are those of `metrics`, with standard errors."""
    model = EdgeModel(DPG(depth=5))
    fitted = Exact().run(0, model, data)
    table = compare(0, {"model": model, "posterior": fitted}, data, test=data)
    np.testing.assert_allclose(
        table.loc["model"].to_numpy(float), table.loc["posterior"].to_numpy(float)
    )
    score = metrics.nll(predict(fitted, data))
    assert table.loc["model", "nll"] == pytest.approx(float(score))
    n = len(score.per_graph)
    assert table.loc["model", "se_nll"] == pytest.approx(score.per_graph.std(ddof=1) / np.sqrt(n))


def test_copies_of_a_draw_count_as_often_as_they_are_there(data, posterior):
    draws = posterior.draws(0, 400)
    counts = np.ones(len(data))
    plain, k = psis_loo(MODEL, draws, data, counts)
    fourfold = {name: np.repeat(x, 4, axis=0) for name, x in draws.items()}
    scores, again = psis_loo(MODEL, fourfold, data, counts)
    np.testing.assert_allclose(scores, plain, atol=1e-3)
    np.testing.assert_allclose(again, k, atol=1e-6)


def test_of_few_draws_nothing_can_be_told(data, posterior):
    few = {name: np.repeat(x, 100, axis=0) for name, x in posterior.draws(0, 10).items()}
    scores, k = psis_loo(MODEL, few, data, np.ones(len(data)))
    assert np.isfinite(scores).all()
    assert (k == np.inf).all()
    point = MAP().run(0, MODEL, data)
    found = leave_one_out(0, point, data)
    assert not found.reliable
