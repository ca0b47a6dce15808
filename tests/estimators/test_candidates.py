"""readout="auto": what it chooses among, and a second pass that predicts, saves and explains."""

import numpy as np
import pandas as pd
import pytest

from edgebelief import GraphLearner, load
from edgebelief.belief import predict
from edgebelief.belief.structure import CHANNELS, with_structure
from edgebelief.data import GraphDataset, StochasticBlock
from edgebelief.estimators import candidates
from edgebelief.infer import EdgeModel, Exact, HalfT, Prior, half_normal
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, Affine

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


def test_the_default_compares_readouts_tails_and_passes(fitted):
    table = fitted.comparison_
    assert {"affine", "two-slope", "additive", "additive, heavy tails"} <= set(table.index)
    assert table["elpd"].is_monotonic_decreasing
    assert table["behind"].iloc[0] == 0
    assert len(table) == 5  # and two passes of the best
    assert fitted.posterior_.verdict.assumptions == ()


def test_in_clusters_a_second_pass_is_better(fitted, data):
    """What is believed of the other pairs tells which nodes are in one block."""
    assert fitted.comparison_.index[0].endswith(candidates.TWICE)
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
    assert again.first_pass_.engine == fitted.first_pass_.engine == "Laplace"
    np.testing.assert_array_equal(again.predict_proba(data[6:]), fitted.predict_proba(data[6:]))


@pytest.mark.parametrize("n", [1, 2])
def test_few_graphs_are_judged_by_their_nodes(data, n):
    fitted = GraphLearner(**QUICK).fit(data[:n])
    assert sorted(fitted.comparison_.index) == ["additive", "affine", "two-slope"]
    assert fitted.first_pass_ is None
    (assumption,) = fitted.posterior_.verdict.assumptions
    assert f"{n} labelled graph" in assumption
    assert "held-out nodes" in assumption


def test_graphs_that_do_not_count_are_not_counted(data):
    weights = [1.0, 1.0, 0.0, 0.0]
    fitted = GraphLearner(**QUICK).fit(data[:4], sample_weight=weights)
    assert "2 labelled graphs" in fitted.posterior_.verdict.assumptions[0]


def test_a_prior_of_the_scales_that_is_given_is_kept(data):
    readout = Additive(features=("z", "rank sum"))
    prior = Prior.named("altered").replace(scales=half_normal(0.5))
    models = {
        "affine": EdgeModel(DPG(depth=10), Affine()),
        "additive": EdgeModel(DPG(depth=10), readout, prior),
    }
    kept = candidates.chosen(0, models, data[:4], np.ones(4), vary_scales=False)
    assert not any(candidates.HEAVY in name for name in kept.comparison.index)
    varied = candidates.chosen(0, models, data[:4], np.ones(4), vary_scales=True)
    assert "additive, heavy tails" in varied.comparison.index
    if candidates.HEAVY in varied.comparison.index[0]:
        assert varied.model.prior["scales"] == HalfT(0.5)
