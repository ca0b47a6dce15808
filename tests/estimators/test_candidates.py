"""readout="auto": what it chooses among, and a second pass that predicts, saves and explains."""

import numpy as np
import pandas as pd
import pytest

from edgebelief import GraphLearner, load
from edgebelief.belief import predict
from edgebelief.belief.choose import Choice, compared
from edgebelief.belief.structure import CHANNELS, with_structure
from edgebelief.data import GraphDataset, StochasticBlock
from edgebelief.estimators import candidates
from edgebelief.infer import EdgeModel, Exact, Prior, half_normal
from edgebelief.networks import DPG
from edgebelief.readouts import Additive

QUICK = {"depth": 10, "inference": Exact(tol=0.5, n_draws=200), "evidence": "none"}
pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")


@pytest.fixture(scope="module")
def data():
    """Graphs of two clusters; a covariate that is the labels with noise."""
    graphs = GraphDataset.sample(0, StochasticBlock(2, 0.95, 0.02), 26, n_nodes=12, n_signals=5)
    rng = np.random.default_rng(0)
    covariates = [{"noisy": r.a + 0.7 * rng.standard_normal(r.a.size)} for r in graphs]
    matrices = ([r.distance_matrix() for r in graphs], [r.label_matrix() for r in graphs])
    return GraphDataset(*matrices, covariates=covariates)


@pytest.fixture(scope="module")
def fitted(data):
    return GraphLearner(**QUICK).fit(data[:6])


def test_the_default_mixes_readouts_tails_and_passes(fitted):
    table = fitted.comparison_
    assert {"affine", "threshold", "interactions", "interactions, two passes"} <= set(table.index)
    assert len(table) == 6
    assert table["elpd"].is_monotonic_decreasing
    assert table["behind"].iloc[0] == 0
    assert table["share"].sum() == pytest.approx(1)
    assert (table["share"][table["share"] > 0] >= candidates.LEAST - 1e-9).all()
    assert fitted.posterior_.verdict.figures["design effect"] >= 1


def test_in_clusters_a_second_pass_is_better(fitted, data):
    """What is believed of the other pairs tells which nodes are in one block."""
    share = fitted.comparison_["share"]
    assert share[[candidates.TWICE in name for name in share.index]].sum() > 0.5
    assert fitted.first_pass_ is not None
    names = [term.name for term in fitted.model_.readout.terms]
    assert set(CHANNELS) <= set(names)
    one = GraphLearner(**{**QUICK, "readout": "additive"}).fit(data[:6])
    assert one.first_pass_ is None
    twice, once = (x.score(data[6:], scoring="edges") for x in (fitted, one))
    assert twice > once


def test_a_second_pass_predicts_from_the_first(fitted, data):
    test = data[6:8]
    first = predict(fitted.first_pass_, test)
    second = predict(fitted.posterior_, with_structure(test, first))
    for mine, other in zip(fitted.predictions(test), second, strict=True):
        np.testing.assert_allclose(mine.mean, other.mean, atol=1e-12)
    said = str(fitted.explain(data[6], 0, 1))
    assert "belief" in said


def test_a_saved_second_pass_is_the_same(fitted, data, tmp_path):
    fitted.save(tmp_path / "m.eb")
    again = load(tmp_path / "m.eb")
    pd.testing.assert_frame_equal(again.comparison_, fitted.comparison_, check_dtype=False)
    assert again.first_pass_.settings == fitted.first_pass_.settings
    np.testing.assert_array_equal(again.predict_proba(data[6:]), fitted.predict_proba(data[6:]))


def test_terms_are_judged_by_beliefs_that_have_not_seen_the_labels(fitted, data, monkeypatch):
    """Importance holds labels out; what a first pass believes of them must not tell them."""
    given = []

    def record(key, posterior, graphs, *rest):
        given.append(graphs)
        return pd.DataFrame()

    monkeypatch.setattr("edgebelief.belief.term_importance", record)
    turned = GraphDataset._of([data[0]._replace(a=1 - data[0].a), *data[1:6]])
    for graphs in (data[:6], turned):
        fitted.term_importance(graphs, cv="graphs")
    for name in CHANNELS:
        np.testing.assert_array_equal(*(graphs[0].covariates[name] for graphs in given))
        assert (given[0][1].covariates[name] != given[1][1].covariates[name]).any()


@pytest.mark.parametrize("n", [1, 2])
def test_few_graphs_are_judged_by_their_nodes(data, n):
    fitted = GraphLearner(**QUICK).fit(data[:n])
    names = ["additive", "affine", "interactions", "threshold"]
    assert sorted(fitted.comparison_.index) == names
    assert fitted.first_pass_ is None
    assumption = fitted.posterior_.verdict.assumptions[0]
    assert f"{n} labelled graph" in assumption
    assert "held-out nodes" in assumption


def test_graphs_that_do_not_count_are_not_counted(data):
    weights = [1.0, 1.0, 0.0, 0.0]
    fitted = GraphLearner(**QUICK).fit(data[:4], sample_weight=weights)
    assert "2 labelled graphs" in fitted.posterior_.verdict.assumptions[0]


def ranked(tried, counts, best):
    """Compare, but for one that is best whatever it predicts."""
    table = compared(tried, counts).table
    first = [best, *table.index.drop(best)] if best in table.index else list(table.index)
    return Choice(table.loc[first], tried)


def test_a_prior_of_the_scales_that_is_given_is_kept(data, monkeypatch):
    model = EdgeModel(
        DPG(depth=10),
        Additive(features=("z", "rank sum")),
        Prior.named("altered").replace(scales=half_normal(0.5)),
    )
    engine = Exact()
    best = candidates.WIDE
    monkeypatch.setattr(candidates, "compared", lambda tried, counts: ranked(tried, counts, best))
    kept = candidates.chosen(0, model, data[:4], np.ones(4), engine, vary_scales=False)
    assert kept.model.prior.get("scales", half_normal(0.5)) == half_normal(0.5)
    assert not any(candidates.WIDE in name for name in kept.comparison.index)
    varied = candidates.chosen(0, model, data[:4], np.ones(4), engine, vary_scales=True)
    assert "additive, wide scales" in varied.comparison.index


def test_labels_that_depend_on_each_other_count_less(data):
    """Nodes without edges, whatever is known of their pairs: these are wrong together."""
    rng = np.random.default_rng(1)
    cut = []
    for record in data[:10]:
        alone = rng.random(12) < 0.25
        rows, cols = record.support.endpoints
        cut.append(record._replace(a=np.where(alone[rows] | alone[cols], 0.0, record.a)))
    effects = []
    for graphs in (data[:10], GraphDataset._of(cut)):
        fitted = GraphLearner(**{**QUICK, "inference": "laplace"}).fit(graphs)
        effects.append(fitted.posterior_.verdict.figures["design effect"])
        noted = any("count as one" in said for said in fitted.posterior_.verdict.assumptions)
        assert noted == (effects[-1] > 1)
    assert effects[0] == 1 < effects[1]
