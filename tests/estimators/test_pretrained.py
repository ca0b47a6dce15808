"""GraphLearner.pretrained: belief without labels, as a learner."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from edgebelief import GraphLearner, load
from edgebelief.amortise import beliefs
from edgebelief.amortise.evidence import N_LEVELS, PretrainedBelief, quantiles
from edgebelief.amortise.predict import LostWarning
from edgebelief.data import RandomGeometric, adjacency_of, distances, smooth_signals
from edgebelief.errors import InputError, SettingError

UPPER = np.triu_indices(15, 1)


@pytest.fixture(scope="module")
def graph():
    return RandomGeometric(0.4).sample(2, 15)


@pytest.fixture(scope="module")
def signals(graph):
    return smooth_signals(3, graph, 300)


@pytest.fixture(scope="module")
def learner():
    return GraphLearner.pretrained(density=(0.1, 0.6))


@pytest.fixture(scope="module")
def proba(learner, signals):
    return learner.predict_proba(signals)


def test_it_believes_what_the_network_does(proba, signals):
    """Up to the levels of a graph, which are a few quantiles of a law."""
    believed = beliefs(signals=signals, density=(0.1, 0.6))
    np.testing.assert_allclose(proba[UPPER], believed.probability, atol=2e-3)


def test_it_ranks_edges_above_others(proba, graph):
    a = adjacency_of(graph)[UPPER] > 0
    assert np.median(proba[UPPER][a]) > 0.8
    assert np.median(proba[UPPER][~a]) < 0.1


def test_units_do_not_matter(learner, proba, signals):
    np.testing.assert_allclose(learner.predict_proba(1000 * signals), proba, atol=1e-3)


def test_distances_will_do(signals):
    e = distances(signals)
    learner = GraphLearner.pretrained(metric="precomputed", n_signals=300)
    found = learner.predict_proba(e)[UPPER]
    np.testing.assert_allclose(found, beliefs(e, n_signals=300).probability, atol=2e-3)


def test_what_a_fitted_learner_does_it_does(learner, proba, signals, tmp_path):
    table = learner.edge_table(signals)
    assert table["probability"].is_monotonic_decreasing
    assert learner.decide(signals, top_k=7).sum() == 14
    drawn = np.asarray(learner.sample_graphs(signals, n=400))
    np.testing.assert_allclose(drawn.mean(0)[UPPER], proba[UPPER], atol=0.12)
    learner.save(tmp_path / "belief.eb")
    again = load(tmp_path / "belief.eb")
    np.testing.assert_array_equal(again.predict_proba(signals), proba)
    assert "No known edges were given" in str(again.posterior_)


def test_epistemic_and_aleatoric_parts_add_up(learner, signals):
    table = learner.edge_table(signals, level=None)
    total = table["epistemic"] ** 2 + table["aleatoric"] ** 2
    np.testing.assert_allclose(total, table["sd"] ** 2, atol=1e-6)


def test_a_fit_makes_it_an_ordinary_learner(signals, graph):
    learner = GraphLearner.pretrained(metric="sqeuclidean", readout="affine", depth=20)
    learner.fit(signals, adjacency_of(graph))
    assert not any(isinstance(kind, PretrainedBelief) for kind in learner.evidence_)
    assert learner.posterior_.fingerprint.n_graphs == 1


def test_signals_that_it_knows_are_typical(learner, signals):
    (row,) = learner.typicality(signals).to_dict("records")
    assert not row["lost"]
    assert row["p"] > 0.05
    assert row["message"] == ""


def lost():
    """Squared distances between images of two digits: no signals on a graph."""
    digits = load_digits()
    images = digits.data[digits.target < 2][:24]
    return ((images[:, None] - images) ** 2).sum(-1)


def test_data_unlike_its_world_are_warned_about_and_believed_less():
    x, learner = lost(), GraphLearner.pretrained(metric="precomputed")
    with pytest.warns(LostWarning, match="unlike the world"):
        p = learner.predict_proba(x)[np.triu_indices(24, 1)]
    (row,) = learner.typicality(x).to_dict("records")
    assert row["lost"]
    assert row["slope"] < 1
    assert "unlike the world" in row["message"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWarning)
        raw = beliefs(x, temper=False).probability
    assert p.std() < raw.std()


def test_a_contradiction_is_told_of_the_graph_that_it_concerns(signals, tmp_path):
    learner = GraphLearner.pretrained(density=(0.001, 0.002))
    first, second = learner.typicality([signals, signals[:200]]).to_dict("records")
    assert first["lost"]
    assert first["p"] > 0.05
    assert first["message"].startswith("graph 1: the stated share of joined pairs is far from")
    assert "state the share" not in first["message"]
    assert second["message"].startswith("graph 2: ")
    with pytest.warns(LostWarning, match="stated share"):
        page = learner.report(tmp_path / "contradicted.html", signals).read_text("utf-8")
    assert "he stated share of joined pairs is far from" in page


def test_the_report_shows_what_was_expected(learner, signals, tmp_path):
    page = learner.report(tmp_path / "fine.html", signals).read_text("utf-8")
    assert "What the network expects of such data" in page
    assert "No problem found" in page
    assert 'id="parameters"' not in page
    learner = GraphLearner.pretrained(metric="precomputed")
    with pytest.warns(LostWarning):
        page = learner.report(tmp_path / "lost.html", lost()).read_text("utf-8")
    assert "unlike the world" in page


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"density": 1.5}, "between 0 and 1"),
        ({"density": (0.5, 0.1)}, "low to high"),
        ({"density": "dense"}, "between 0 and 1"),
        ({"n_signals": 0.0}, "at least 1"),
        ({"metric": "cosine"}, "metric"),
    ],
)
def test_wrong_settings_are_refused(settings, match):
    with pytest.raises(SettingError, match=match):
        GraphLearner.pretrained(**settings)


def test_signals_are_needed_where_signals_are_promised(learner, signals):
    with pytest.raises(InputError):
        learner.predict_proba(signals[:, :1])


@pytest.mark.parametrize("n", [1, 7, N_LEVELS])
def test_quantiles_keep_the_mean(n, rng):
    points, weights = rng.normal(size=9), rng.uniform(size=9)
    levels = quantiles(points, weights, n)
    assert levels.mean() == pytest.approx(np.average(points, weights=weights))
    assert (np.diff(levels) >= -1e-12).all()


def test_quantiles_of_a_normal_law_have_its_spread():
    points = np.linspace(-5, 5, 33)
    levels = quantiles(points, np.exp(-(points**2) / 2), N_LEVELS)
    assert levels.std() == pytest.approx(1, abs=0.02)


def test_with_one_label_the_default_trusts_the_network_where_it_is_right(signals, graph):
    """The graph and its signals are of the kind that the network was trained on."""
    fitted = GraphLearner(metric="sqeuclidean", depth=20, inference="laplace")
    fitted.fit(signals, adjacency_of(graph))
    assert fitted.comparison_["share"]["pretrained"] == pytest.approx(1)
    assert [kind.name for kind in fitted.evidence_] == ["pretrained"]
    new = smooth_signals(8, RandomGeometric(0.4).sample(9, 15), 300)
    logit = np.array(beliefs(signals=new).logit)
    p = fitted.predict_proba(new)[UPPER]
    clear = np.abs(logit) < 5  # beyond, a curve is flat where the fitted graph had no values
    np.testing.assert_allclose(np.log(p / (1 - p))[clear], logit[clear], atol=1.0)
