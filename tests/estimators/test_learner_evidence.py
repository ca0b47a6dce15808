"""Evidence as terms of the additive readout, through the learner."""

import copy
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from edgebelief import GraphLearner, evidence, load
from edgebelief.amortise.evidence import Pretrained
from edgebelief.data import ErdosRenyi, GraphDataset, RandomGeometric, distances, smooth_signals
from edgebelief.data.coerce import graphs_from
from edgebelief.errors import InputError, SettingError
from edgebelief.estimators.evidence import evidence_for
from edgebelief.estimators.settings import parts_of
from edgebelief.evidence import Custom, Precision, Profile, SignedCorrelation, applicable
from edgebelief.infer import EdgeModel, Exact, InferenceWarning
from edgebelief.networks import DPG
from edgebelief.persist.modelfile import ModelFileError
from edgebelief.readouts import Additive
from problems import readable

pytestmark = pytest.mark.filterwarnings(
    "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws", "ignore:prior dominates"
)
SMALL = Additive(features=("z",))
QUICK = {"depth": 10, "inference": Exact(tol=0.1, n_draws=200), "readout": SMALL}
KINDS = [Precision(ridges=(1e-2,)), "profile", "correlation"]
CHANNELS = ["precision 0.01", "profile", "correlation"]
OF_SIGNALS = {**QUICK, "metric": "sqeuclidean", "evidence": KINDS}


@pytest.fixture(scope="module")
def labels():
    return [nx.to_numpy_array(RandomGeometric(0.4).sample(key, 8)) for key in range(8)]


@pytest.fixture(scope="module")
def signals(labels):
    """Of each graph another number."""
    return [smooth_signals(100 + t, nx.Graph(a), 40 + 5 * t) for t, a in enumerate(labels)]


@pytest.fixture(scope="module")
def learner(signals, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # so few labels
        return GraphLearner(**OF_SIGNALS).fit(signals[:6], labels[:6])


@pytest.fixture(scope="module")
def proba(learner, signals):
    return learner.predict_proba(signals[6:])


# What a learner uses


def test_channels_are_terms_by_name(learner, signals):
    assert learner.evidence_ == (Precision(ridges=(1e-2,)), Profile(), SignedCorrelation())
    assert sorted(learner.terms()["term"]) == sorted(["z", *CHANNELS])
    table = learner.explain(signals[6], "0", "1")
    assert set(CHANNELS) <= set(table["part"])


def test_evidence_is_covariates_that_are_added(learner, signals, labels, proba):
    """The whole walk by hand: the same numbers."""
    data = GraphDataset([distances(x) for x in signals], labels)
    data = evidence.add(learner.evidence_, data, signals)
    by_hand = GraphLearner(**QUICK, evidence="none").fit(data[:6])
    np.testing.assert_array_equal(by_hand.predict_proba(data[6:]), proba)
    assert by_hand.evidence_ == ()


def test_the_order_of_nodes_does_not_matter(learner, signals, proba):
    order = np.random.default_rng(0).permutation(8)
    found = learner.predict_proba([x[:, order] for x in signals[6:]])
    np.testing.assert_allclose(found, proba[:, order][:, :, order], atol=1e-5)


def test_frames_bring_names(learner, signals, proba):
    frame = pd.DataFrame(signals[6], columns=list("abcdefgh"))
    np.testing.assert_allclose(learner.predict_proba(frame), proba[0], atol=1e-6)


def test_gaps_in_signals_are_allowed_where_the_learner_allows_them(learner, signals, proba):
    gappy = signals[6].copy()
    gappy[0, 0] = np.nan
    allows = copy.copy(learner).set_params(missing="pairwise")
    np.testing.assert_allclose(allows.predict_proba(gappy), proba[0], atol=0.2)
    with pytest.raises(ValueError, match="signals"):
        learner.predict_proba(gappy)


def test_saved_and_loaded_it_is_the_same(learner, signals, proba, tmp_path):
    learner.save(tmp_path / "m.eb")
    again = load(tmp_path / "m.eb")
    assert again.evidence_ == learner.evidence_
    assert again.evidence == KINDS
    np.testing.assert_array_equal(again.predict_proba(signals[6:]), proba)


def test_a_model_of_signals_refuses_distances_alone(learner, signals, labels):
    data = GraphDataset([distances(x) for x in signals[6:]], labels[6:])
    for call in (learner.predict, learner.score, learner.edge_table, learner.predictive_checks):
        with pytest.raises(InputError, match="'correlation' is computed from signals") as caught:
            call(data)
        assert "evidence=['precision', 'profile']" in str(caught.value)
        assert not isinstance(caught.value, SettingError)


def test_covariates_may_stand_beside_evidence(signals, labels):
    rng = np.random.default_rng(0)
    age = [pd.DataFrame({"age": rng.normal(size=8)}, [str(i) for i in range(8)]) for _ in range(3)]
    learner = GraphLearner(**{**QUICK, "readout": Additive(features=(), covariates=("age gap",))})
    learner.set_params(metric="sqeuclidean", evidence=["profile"])
    learner.fit(signals[:3], labels[:3], covariates=age)
    assert learner.model_.readout.covariates == ("age gap", "profile")
    same_name = [{"profile": np.ones((8, 8))}] * 3
    with pytest.raises(
        InputError, match=r"graph 0: the covariate 'profile' has the name"
    ) as caught:
        learner.fit(signals[:3], labels[:3], covariates=same_name)
    assert "evidence='none'" in str(caught.value)


def test_without_evidence_the_readout_is_what_it_was(signals, labels):
    """Also with "auto": a readout that is an object says itself what its terms are."""
    data = GraphDataset([distances(x) for x in signals], labels)
    by_default = GraphLearner(**QUICK).fit(data[:4])
    without = GraphLearner(**QUICK, evidence="none").fit(data[:4])
    assert by_default.evidence_ == without.evidence_ == ()
    model = EdgeModel(DPG(10), SMALL)
    posterior = QUICK["inference"].run(without.seed_, model, data[:4])
    for name, draws in posterior.params.items():
        np.testing.assert_array_equal(without.posterior_.params[name], draws)
        np.testing.assert_array_equal(by_default.posterior_.params[name], draws)


# "auto", without fits


def kinds_of(x, **settings):
    settings = GraphLearner(**settings).get_params()
    form = {name: settings[name] for name in ("metric", "missing", "preprocess")}
    return evidence_for(settings, parts_of(settings)[1], graphs_from(x, **form))


def test_auto_is_what_the_input_allows(signals):
    data = GraphDataset([distances(x) for x in signals])
    n_nodes, n_signals = data.n_nodes, [len(x) for x in signals]
    for readout in ("additive", "auto"):
        of_distances = (Pretrained("sqeuclidean"), *applicable(n_nodes))
        assert kinds_of(data, readout=readout) == of_distances
        found = kinds_of(signals, readout=readout, metric="correlation")
        assert found == (Pretrained("correlation", True), *applicable(n_nodes, n_signals))
        assert kinds_of(data, readout=readout, metric="sqeuclidean") == of_distances
        assert kinds_of(data, readout=readout, evidence="none") == ()
    for readout in ("affine", "two-slope", Additive()):
        assert kinds_of(data, readout=readout) == ()
    assert kinds_of(data, size_aware=True) == ()


def test_the_pretrained_network_is_told_what_distances_there_are(signals):
    logarithms = GraphDataset([np.log10(distances(x)) - 3 for x in signals])
    first, *_ = kinds_of(logarithms, readout="additive")
    assert first == Pretrained("log-euclidean")
    (alone,) = kinds_of(signals, readout="additive", metric="correlation", evidence=["pretrained"])
    assert alone == Pretrained("correlation", needs_signals=True)


def test_large_graphs_are_not_shown_to_the_pretrained_network(monkeypatch, signals):
    monkeypatch.setattr("edgebelief.estimators.evidence.MOST_NODES", 3)
    kinds = kinds_of(signals, readout="additive", metric="sqeuclidean")
    assert not any(isinstance(kind, Pretrained) for kind in kinds)


def test_signals_are_those_after_preprocessing(signals):
    graphs = graphs_from(signals, metric="sqeuclidean", preprocess="diff")
    np.testing.assert_array_equal(graphs.signals[1], np.diff(signals[1], axis=0))


def test_without_a_readout_with_terms_there_is_none(signals, labels):
    """As where "auto" has too few graphs to choose from."""
    settings = {**OF_SIGNALS, "readout": "auto"}
    assert GraphLearner(**settings).fit(signals[:2], labels[:2]).evidence_ == ()


# A user's own


def nearness(e):
    return np.exp(-e)


def test_a_function_is_evidence_by_its_name(signals, labels, tmp_path):
    learner = GraphLearner(**{**OF_SIGNALS, "evidence": [nearness]})
    assert clone(learner).evidence == [nearness]
    learner.fit(signals[:3], labels[:3])
    assert learner.evidence_ == (Custom("nearness", nearness),)
    assert "nearness" in learner.terms()["term"].tolist()
    assert learner._settings()["GraphLearner: evidence"] == ["nearness"]
    with pytest.raises(ModelFileError, match=r"'nearness' is a function.*as covariates"):
        learner.save(tmp_path / "m.eb")


# Without new graphs


@pytest.mark.slow
def test_evidence_of_held_out_labels_is_computed_once(signals, labels):
    """It uses no labels."""
    calls = []

    def counted(e):
        calls.append(len(e))
        return nearness(e)

    settings = {**OF_SIGNALS, "evidence": [counted, "correlation"]}
    learner = GraphLearner(**settings)
    for cv in ("nodes", "graphs"):
        beliefs = learner.cross_val_predictions(signals[:4], labels[:4], cv=cv, n_folds=2)
        assert calls == [8] * 4
        calls.clear()
        assert all(np.isfinite(belief.mean).all() for belief in beliefs)
    by_hand = GraphDataset([distances(x) for x in signals[:4]], labels[:4])
    by_hand = evidence.add([Custom("counted", counted), SignedCorrelation()], by_hand, signals[:4])
    again = GraphLearner(**QUICK, evidence="none").cross_val_predictions(
        by_hand, cv="graphs", n_folds=2
    )
    for one, other in zip(beliefs, again, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)


@pytest.mark.slow
def test_scikit_learn_searches_over_evidence(signals, labels):
    grid = {"evidence": ["none", ["correlation"]]}
    search = GridSearchCV(GraphLearner(**OF_SIGNALS), grid, cv=2, error_score="raise")
    search.fit(signals[:4], labels[:4])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.predict_proba(signals[7]).shape == (8, 8)


def test_checks_of_the_prior_know_evidence(signals, labels):
    (before,) = GraphLearner(**OF_SIGNALS).predictive_checks(signals[:3], labels[:3], n=20)
    assert before.source == "prior"


@pytest.mark.slow
def test_simulated_graphs_have_evidence_of_their_signals_where_it_is_listed(signals):
    how = {"n_nodes": 8, "n_signals": 50, "n_graphs": 4, "depth": 10}
    listed = GraphLearner.simulated(
        ErdosRenyi(0.4), **how, readout=SMALL, evidence=["correlation", "profile"]
    )
    assert "correlation" in listed.terms()["term"].tolist()
    assert listed.predict_proba(1000 * signals[0]).shape == (8, 8)
    safe = GraphLearner.simulated(ErdosRenyi(0.4), **how, readout="additive")
    assert safe.evidence_ == applicable([8] * 4)
    distances_alone = GraphDataset([distances(signals[0])])
    assert safe.predict_proba(distances_alone).shape == (1, 8, 8)
    infinitely_many = {**how, "n_signals": None, "readout": SMALL, "evidence": ["correlation"]}
    with pytest.raises(SettingError, match="only distances"):
        GraphLearner.simulated(ErdosRenyi(0.4), **infinitely_many)


# What is refused

ADDITIVE = {"readout": "additive"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"readout": "affine", "evidence": ["profile"]},
            "readouts with terms; the readout is Affine; use readout=",
        ),
        ({"evidence": ["profile"], "size_aware": True}, "the readout is Sized; leave evidence out"),
        ({**ADDITIVE, "evidence": "profile"}, "evidence must be auto, none, or a list of"),
        ({**ADDITIVE, "evidence": None}, "evidence must be auto, none, or a list of"),
        ({**ADDITIVE, "evidence": ["best"]}, r"evidence 'best' is none; there are \['pretrained'"),
        ({**ADDITIVE, "evidence": ["profile", "profile"]}, "the channel 'profile' twice"),
        ({**ADDITIVE, "evidence": [lambda e: e]}, r"without a name; use .*Custom\(name"),
        ({**ADDITIVE, "evidence": [Precision]}, "a list of names, Evidence objects and functions"),
        ({**ADDITIVE, "evidence": [3]}, "a list of names, Evidence objects and functions"),
        ({**ADDITIVE, "evidence": ["forest"]}, "give signals, and say which distance: metric="),
    ],
    ids=readable,
)
def test_settings_that_cannot_be_are_refused(settings, message, labels):
    X = [distances(np.random.default_rng(0).normal(size=(9, 8)))]
    with pytest.raises(SettingError, match=message):
        GraphLearner(**settings).fit(X, labels[:1])


def test_an_empty_list_is_none(labels):
    X = GraphDataset([np.arange(1.0, 29.0)], labels[:1])
    assert kinds_of(X, readout="additive", evidence=[]) == ()
    assert kinds_of(X, readout="affine", evidence=[]) == ()
