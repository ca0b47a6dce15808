"""Readouts beyond the paper's, covariates and explanations, through the learner."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from edgebelief import GraphLearner, load
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import Exact, InferenceWarning
from edgebelief.readouts import Additive, Affine, TwoSlope

pytestmark = pytest.mark.filterwarnings(
    "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws", "ignore:prior dominates"
)
SMALL = Additive(features=("z", "rank sum"))
QUICK = {"depth": 10, "inference": Exact(tol=0.1, n_draws=200)}


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, RandomGeometric(0.4), n_graphs=8, n_nodes=8, n_signals=60)


@pytest.fixture(scope="module")
def known(data):
    """For each graph a frame of its pairs, with a number and a category."""
    rng = np.random.default_rng(0)
    frames = []
    for record in data:
        rows, cols = record.support.endpoints
        frame = pd.DataFrame({"source": rows, "target": cols, "km": rng.normal(size=rows.size)})
        wrong = rng.random(rows.size) < 0.1
        frame["road"] = np.where((record.a > 0) != wrong, "motorway", "lane")
        frames.append(frame.sample(frac=1, random_state=0))
    return frames


@pytest.fixture(scope="module")
def learner(data, known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # so few labels
        return GraphLearner(readout=SMALL, **QUICK).fit(data[:6], covariates=known[:6])


def test_names_mean_readouts(data):
    for name, kind in (("affine", Affine), ("two-slope", TwoSlope)):
        found = GraphLearner(readout=name, **QUICK).fit(data[:4])
        assert isinstance(found.model_.readout, kind)
        assert found.comparison_ is None
    with pytest.raises(ValueError, match="readout must be auto, one of"):
        GraphLearner(readout="linear").fit(data)


@pytest.mark.slow
@pytest.mark.long
def test_every_method_takes_covariates_and_needs_them(learner, data, known, tmp_path):
    X, more = data[6:], {"covariates": known[6:]}
    p = learner.predict_proba(X, **more)
    assert p.shape == (2, 8, 8)
    assert ((learner.predict(X, **more) == 1) == (p > 0.5)).all()
    assert learner.decide(X, top_k=3, **more).sum() == 12
    assert len(learner.edge_table(X, **more)) == 56
    assert learner.sample_graphs(X, 5, **more)[0].shape == (5, 8, 8)
    assert len(learner.propagate(X, lambda graph: graph.number_of_edges(), 5, **more)) == 2
    assert learner.to_networkx(X, **more)[0].number_of_nodes() == 8
    assert np.isclose(learner.score(X, **more), -learner.calibration_report(X, **more).nll)
    assert len(learner.predictive_checks(X, n=10, **more)) == 2
    assert learner.report(tmp_path / "r.html", X, **more).exists()
    with pytest.raises(ValueError, match=r"no covariate \['km', 'road'\]"):
        learner.predict_proba(X)
    alone = learner.predict_proba(data[6].distance_matrix(), covariates=known[6])
    np.testing.assert_allclose(alone, p[0], atol=1e-6)


def test_parts_add_up_to_the_logit_and_the_logit_to_the_probability(learner, data, known):
    table = learner.explain(data[6:], "2", "5", covariates=known[6:])
    *parts, total = table["contribution"]
    assert np.isclose(sum(parts), total)
    assert table["part"].tolist() == ["weight", "baseline", "z", "rank sum", "km", "road", "logit"]
    p = learner.predict_proba(data[6:], covariates=known[6:])[0, 2, 5]
    assert np.isclose(table.attrs["probability"], p, rtol=1e-6)
    assert expit(table["low"].iloc[-1]) < p < expit(table["high"].iloc[-1])
    swapped = learner.explain(data[6:], "5", "2", covariates=known[6:])
    pd.testing.assert_frame_equal(swapped, table)


def test_terms_say_what_is_needed(learner):
    terms = learner.terms().set_index("term")
    assert terms.loc["road", "needed"]
    assert terms.loc["road", "size"] > terms.loc["km", "size"]


def test_saved_and_loaded_it_is_the_same(learner, data, known, tmp_path):
    learner.save(tmp_path / "m.eb")
    again = load(tmp_path / "m.eb")
    more = {"covariates": known[6:]}
    expected = learner.predict_proba(data[6:], **more)
    np.testing.assert_array_equal(again.predict_proba(data[6:], **more), expected)
    pd.testing.assert_frame_equal(again.terms(), learner.terms())
    assert again.model_.readout.levels == (("road", ("lane", "motorway")),)


def test_levels_and_kinds_that_were_not_fitted_are_refused(learner, data, known):
    new = [frame.replace("lane", "rail") for frame in known[6:]]
    with pytest.raises(ValueError, match=r"'road' is \['rail'\] for some pairs"):
        learner.predict(data[6:], covariates=new)
    numbers = [frame.assign(road=1.0) for frame in known[6:]]
    with pytest.raises(ValueError, match="was a category"):
        learner.predict(data[6:], covariates=numbers)
    text = [frame.assign(km="far") for frame in known[6:]]
    with pytest.raises(ValueError, match="was numbers"):
        learner.predict(data[6:], covariates=text)


def test_covariates_are_for_additive_readouts(data, known):
    with pytest.raises(ValueError, match="Use readout='additive'"):
        GraphLearner(readout="affine").fit(data, covariates=known)
    with pytest.raises(ValueError, match="cannot be called"):
        Additive(covariates=("weight",))
    with pytest.raises(ValueError, match="different names"):
        Additive(covariates=("z",))
    some = [known[0], known[1].drop(columns="road")]
    with pytest.raises(ValueError, match=r"graph 1 has no covariate \['road'\]"):
        GraphLearner(readout=SMALL, **QUICK).fit(data[:2], covariates=some)
    mixed = [known[0], known[1].assign(road=1.0)]
    with pytest.raises(ValueError, match="a category in one graph"):
        GraphLearner(readout=SMALL, **QUICK).fit(data[:2], covariates=mixed)


def test_relative_features_come_with_relative_distances(data):
    relative = Additive(features=("z", "rank sum"), relative=True)
    found = GraphLearner(readout=relative, **QUICK).fit(data[:6])
    assert found.scale_ == "relative"


@pytest.mark.slow
def test_beliefs_about_graphs_and_checks_of_the_prior_cover_it(data, known):
    """An elicited prior keeps the terms' own; before a fit, the prior draws graphs."""
    settings = {"readout": SMALL, "prior": {"density": (0.1, 0.6)}, **QUICK}
    (before,) = GraphLearner(**settings).predictive_checks(data, covariates=known, n=50)
    assert before.source == "prior"
    assert 0.02 < np.median(before.values) < 0.9
    assert "scales" in GraphLearner(**settings).fit(data[:3]).model_.prior
