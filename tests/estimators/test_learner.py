import copy
import inspect
import pickle

import jax
import jax.numpy as jnp
import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from edgebelief import metrics
from edgebelief.belief import BeliefWarning, decide, elicit_prior, predict
from edgebelief.data import (
    ErdosRenyi,
    GraphDataset,
    Heat,
    RandomGeometric,
    smooth_signals,
    transformed,
)
from edgebelief.estimators import GraphLearner, load
from edgebelief.estimators.learner import ABOUT
from edgebelief.estimators.settings import engine_of
from edgebelief.infer import MAP, NUTS, VI, Exact, InferenceWarning, Prior, lognormal
from edgebelief.networks import DPG, PDS
from edgebelief.persist import modelfile
from edgebelief.report import Report
from problems import readable

# One size of graph and one depth nearly everywhere: compiling is most of the time.
T, N, DEPTH = 6, 8, 10
NAMES = ["ada", "bob", "cy", "dee", "eve", "flo", "gus", "hal"]
ROUGH = Exact(tol=0.5)  # for speed, where only the plumbing is tested
SETTINGS = [name for name in inspect.signature(GraphLearner).parameters if name != "deprecated"]


@pytest.fixture(scope="module")
def signals():
    graphs = [ErdosRenyi(0.4).sample(key, N) for key in range(T + 3)]
    return np.stack([smooth_signals(100 + k, graph, 100) for k, graph in enumerate(graphs)])


@pytest.fixture(scope="module")
def labels():
    return np.stack([nx.to_numpy_array(ErdosRenyi(0.4).sample(key, N)) for key in range(T + 3)])


@pytest.fixture(scope="module")
def distances(signals):
    return np.square(signals[:, :, :, None] - signals[:, :, None, :]).mean(1)


@pytest.fixture(scope="module")
def train(distances, labels):
    return distances[:T], labels[:T]


@pytest.fixture(scope="module")
def test(distances, labels):
    return distances[T:], labels[T:]


def learner_of(**settings):
    return GraphLearner(**({"depth": DEPTH, "readout": "affine"} | settings))


@pytest.fixture(scope="module")
def learner(train):
    return learner_of().fit(*train)


@pytest.fixture(scope="module")
def proba(learner, test):
    return learner.predict_proba(test[0])


def same(found, proba):
    """The same posterior, to the quadrature's tolerance in p."""
    np.testing.assert_allclose(found, proba, atol=2e-3)


# scikit-learn's conventions (its own checks need an X of two axes)


def test_init_stores_its_arguments_and_does_nothing():
    odd = {name: object() for name in SETTINGS}
    learner = GraphLearner(
        odd["network"], odd["prior"], odd["depth"], **dict(list(odd.items())[3:])
    )
    for name, value in odd.items():
        assert getattr(learner, name) is value
    assert vars(learner) == odd


def test_params_round_trip_and_clone():
    prior = Prior.named("flat")
    settings = {
        "network": DPG(depth=3),
        "prior": prior,
        "depth": None,
        "readout": "additive",
        "evidence": ["profile"],
        "metric": "correlation",
        "scale": "median",
        "missing": "pairwise",
        "preprocess": "diff",
        "inference": Exact(tol=0.1),
        "weighted": True,
        "size_aware": True,
        "support": "knn",
        "n_neighbors": 5,
        "neighbors": None,
        "random_state": 7,
    }
    assert set(settings) == set(SETTINGS)
    learner = GraphLearner(**settings)
    assert learner.get_params() == settings
    assert GraphLearner().set_params(**settings).get_params() == settings
    copied = clone(learner)
    assert copied is not learner
    assert repr(copied) == repr(learner)
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(dept=3)


def test_a_clone_of_a_fitted_learner_is_not_fitted(learner):
    assert not hasattr(clone(learner), "posterior_")
    assert clone(learner).get_params() == learner.get_params()


def test_repr_names_what_is_not_default():
    assert repr(GraphLearner(depth=3, prior="flat")) == "GraphLearner(depth=3, prior='flat')"
    assert "GraphLearner" in GraphLearner()._repr_html_()


def test_tags():
    tags = get_tags(GraphLearner())
    assert tags.input_tags.three_d_array
    assert tags.target_tags.required
    assert not tags.input_tags.allow_nan
    assert tags.estimator_type is None


def test_fit_returns_self_and_changes_neither_arguments_nor_settings(train):
    X, A = train
    weights = np.ones(T)
    before = X.copy(), A.copy(), weights.copy()
    for array in (X, A, weights):
        array.flags.writeable = False
    learner = learner_of(prior={"density": (0.1, 0.9)})
    settings = learner.get_params()
    assert learner.fit(X, A, sample_weight=weights) is learner
    assert learner.get_params() == settings
    assert learner.prior == {"density": (0.1, 0.9)}
    learned = set(vars(learner)) - set(settings)
    assert learned == {"posterior_", "model_", "scale_", "seed_", "comparison_", "evidence_"} | {
        "first_pass_"
    }
    for array, old in zip((X, A, weights), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_fitting_twice_is_fitting_once(learner, train, test, proba):
    again = clone(learner).fit(3 * train[0], train[1])  # other data, to be forgotten
    assert not np.allclose(again.predict_proba(test[0]), proba, atol=0.1)
    again.fit(*train)
    np.testing.assert_array_equal(again.predict_proba(test[0]), proba)
    assert again.posterior_.log_evidence == learner.posterior_.log_evidence


CALLS = {
    "predict_proba": lambda learner, X, A: learner.predict_proba(X),
    "predict": lambda learner, X, A: learner.predict(X),
    "decide": lambda learner, X, A: learner.decide(X),
    "predict_weights": lambda learner, X, A: learner.predict_weights(X),
    "weight_scores": lambda learner, X, A: learner.weight_scores(X, A),
    "edge_table": lambda learner, X, A: learner.edge_table(X),
    "sample_graphs": lambda learner, X, A: learner.sample_graphs(X),
    "propagate": lambda learner, X, A: learner.propagate(X, nx.density),
    "to_networkx": lambda learner, X, A: learner.to_networkx(X),
    "explain": lambda learner, X, A: learner.explain(X, "0", "1"),
    "terms": lambda learner, X, A: learner.terms(),
    "outside": lambda learner, X, A: learner.outside(X),
    "typicality": lambda learner, X, A: learner.typicality(X),
    "score": lambda learner, X, A: learner.score(X, A),
    "predictions": lambda learner, X, A: learner.predictions(X, A),
    "calibration_report": lambda learner, X, A: learner.calibration_report(X, A),
    "report": lambda learner, X, A: learner.report("no such folder/page.html", X),
    "save": lambda learner, X, A: learner.save("no such folder/model.eb"),
}
WITHOUT_FIT = {
    "fit",
    "simulated",
    "pretrained",
    "cross_val_predictions",
    "term_importance",
    "predictive_checks",
    "get_params",
    "set_params",
}


@pytest.mark.parametrize("call", CALLS)
def test_what_needs_a_fit_says_so(call, test):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        CALLS[call](learner_of(), *test)


def test_no_method_is_forgotten_above():
    public = {n for n, _ in inspect.getmembers(GraphLearner, callable) if not n.startswith("_")}
    public -= {"get_metadata_routing", "set_fit_request", "set_score_request"}
    public -= {"set_predict_request", "set_predict_proba_request"}
    assert public == set(CALLS) | WITHOUT_FIT


def test_memory_maps_that_cannot_be_written(tmp_path, train, test, proba):
    maps = []
    for name, array in zip("xa", train, strict=True):
        np.save(tmp_path / name, array)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    learner = learner_of().fit(*maps)
    np.testing.assert_array_equal(learner.predict_proba(test[0]), proba)


@pytest.mark.parametrize("form", ["float32", "fortran", "strided", "lists", "big endian"])
def test_layout_and_type_of_the_arrays_do_not_matter(learner, test, proba, form):
    X = test[0]
    X = {
        "float32": X.astype(np.float32),
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(np.repeat(X, 2, 0), 3, 2)[::2, :, ::3],
        "lists": X.tolist(),
        "big endian": X.astype(">f8"),
    }[form]
    np.testing.assert_allclose(learner.predict_proba(X), proba, atol=1e-5)


def test_types_and_forms_of_labels_do_not_matter(learner, train, test, proba):
    X, A = train
    graphs = [nx.from_numpy_array(a) for a in A]
    edges = [pd.DataFrame(graph.edges, columns=["source", "target"]) for graph in graphs]
    mixed = [graphs[0], csr_array(A[1]), edges[2], A[3][np.triu_indices(N, k=1)], A[4], A[5] > 0]
    for labels in (A.astype(int), A.astype(bool), A.astype(np.float32), A.tolist(), mixed):
        again = clone(learner).fit(X, labels)
        assert again.posterior_.fingerprint == learner.posterior_.fingerprint
    np.testing.assert_array_equal(again.predict_proba(test[0]), proba)


def test_the_order_of_graphs_does_not_matter(learner, train, test, proba):
    order = [3, 0, 5, 1, 4, 2]
    again = clone(learner).fit(train[0][order], train[1][order])
    assert again.posterior_.log_evidence == pytest.approx(learner.posterior_.log_evidence, abs=1e-4)
    np.testing.assert_allclose(again.predict_proba(test[0]), proba, atol=1e-4)
    np.testing.assert_allclose(learner.predict_proba(test[0][::-1]), proba[::-1], atol=1e-6)


def test_the_order_of_nodes_does_not_matter(learner, train, test, proba):
    order = np.random.default_rng(0).permutation(N)

    def relabelled(x):
        return x[:, order][:, :, order]

    found = learner.predict_proba(relabelled(test[0]))
    np.testing.assert_allclose(found, relabelled(proba), atol=1e-4)
    again = clone(learner).fit(relabelled(train[0]), relabelled(train[1]))
    np.testing.assert_allclose(again.predict_proba(test[0]), proba, atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gaps_and_infinities_are_refused_with_their_place(learner, train, test, bad):
    X = train[0].copy()
    X[2, 1, 3] = X[2, 3, 1] = bad
    with pytest.raises(ValueError, match=rf"graph 2: distances\[1, 3\] is {bad}"):
        learner_of().fit(X, train[1])
    with pytest.raises(ValueError, match=rf"graph 2: distances\[1, 3\] is {bad}"):
        learner.predict_proba(X)
    with pytest.raises(ValueError, match=rf"^distances\[1, 3\] is {bad}"):
        learner.predict_proba(X[2])


def test_pickled_joined_and_copied_learners_predict_the_same(tmp_path, learner, test, proba):
    joblib.dump(learner, tmp_path / "learner.joblib")
    for copied in (
        pickle.loads(pickle.dumps(learner)),
        joblib.load(tmp_path / "learner.joblib"),
        copy.deepcopy(learner),
    ):
        np.testing.assert_array_equal(copied.predict_proba(test[0]), proba)
        np.testing.assert_array_equal(copied.sample_graphs(test[0]), learner.sample_graphs(test[0]))
        assert copied.posterior_.verdict == learner.posterior_.verdict


def test_pipeline(learner, train, test, proba):
    """Of millimetres: the step before the learner turns them into metres."""
    pipeline = make_pipeline(FunctionTransformer(lambda x: x / 1000), learner_of())
    pipeline.fit(1000 * train[0], train[1])
    same(pipeline.predict_proba(1000 * test[0]), proba)
    np.testing.assert_array_equal(pipeline.predict(1000 * test[0]), learner.predict(test[0]))
    assert pipeline.score(1000 * test[0], test[1]) == pytest.approx(learner.score(*test), abs=1e-2)


# Fits of one size, which are compiled already; that they are not held out does not matter here.
# All graphs are fitted, so that all splits compile once.
SPLITS = [(np.arange(T), np.arange(3)), (np.arange(T)[::-1], np.arange(3, 6))]


@pytest.mark.filterwarnings("ignore:these are the labels that")
def test_cross_validation_by_hand_and_by_scikit_learn(train):
    X, A = train
    learner = learner_of(inference=ROUGH)
    expected = [clone(learner).fit(X[fit], A[fit]).score(X[held], A[held]) for fit, held in SPLITS]
    data = GraphDataset(list(X), list(A))
    graphs = [nx.from_numpy_array(a) for a in A]
    for form in ((X, A), (list(X), graphs), (data,)):
        np.testing.assert_allclose(cross_val_score(learner, *form, cv=SPLITS), expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:prior conflict")  # with a single layer
@pytest.mark.filterwarnings("ignore:these are the labels that")
def test_grid_search_over_depth_and_prior(train):
    grid = {"depth": np.array([1, DEPTH]), "prior": ["altered", "original"]}
    search = GridSearchCV(learner_of(inference=ROUGH), grid, cv=SPLITS[:1]).fit(*train)
    assert search.best_params_["depth"] == DEPTH
    assert search.best_estimator_.posterior_.fingerprint.n_graphs == T
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# Graphs of several sizes


@pytest.fixture(scope="module")
def ragged(learner):
    data = GraphDataset.sample(3, ErdosRenyi(0.5), n_graphs=1, n_nodes=5, n_signals=100)
    return data[0].distance_matrix()


def test_graphs_of_several_sizes(learner, train, test, proba, ragged):
    X = [*test[0][:1], ragged, *test[0][1:]]
    found = learner.predict_proba(X)
    assert isinstance(found, list)
    assert [p.shape for p in found] == [(N, N), (5, 5), (N, N), (N, N)]
    np.testing.assert_allclose(found[3], proba[2], atol=1e-6)
    table = learner.edge_table(X, level=None)
    assert table.groupby("graph").size().tolist() == [28, 10, 28, 28]
    assert [g.shape for g in learner.sample_graphs(X, n=3)] == [(3, N, N), (3, 5, 5)] + [
        (3, N, N)
    ] * 2


def test_cross_validation_of_graphs_of_several_sizes(train, ragged):
    X = [*train[0], ragged]
    A = [*train[1], nx.path_graph(5)]
    learner = learner_of(inference=ROUGH)
    scores = cross_val_score(learner, X, A, cv=[(np.arange(T), [T])])
    expected = learner.fit(*train).score(ragged, nx.path_graph(5))
    assert scores == pytest.approx([expected], rel=1e-6)


# What is predicted


def test_probabilities_are_those_of_belief_predict(learner, train, test, proba):
    found = predict(learner.posterior_, GraphDataset(list(test[0])))
    for matrix, belief in zip(proba, found, strict=True):
        np.testing.assert_array_equal(matrix[np.triu_indices(N, k=1)], belief.mean)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert (np.diagonal(matrix) == 0).all()
    assert proba.shape == (3, N, N)


def test_one_graph_in_one_matrix_out(learner, test, proba):
    for one in (test[0][0], test[0][0].tolist(), pd.DataFrame(test[0][0])):
        found = learner.predict_proba(one)
        assert found.shape == (N, N)
        np.testing.assert_allclose(found, proba[0], atol=1e-6)
    assert learner.predict_proba(test[0][:1]).shape == (1, N, N)
    assert learner.predict(test[0][0]).shape == (N, N)


def test_standard_deviations(learner, test, proba):
    edges, sd = learner.predict(test[0], return_std=True)
    np.testing.assert_array_equal(edges, learner.predict(test[0]))
    assert edges.dtype.kind == "i"
    np.testing.assert_array_equal(edges, proba > 0.5)
    np.testing.assert_allclose(sd, np.sqrt(proba * (1 - proba)), atol=1e-12)
    mean, epistemic = learner.predict_proba(test[0], return_std=True)
    np.testing.assert_array_equal(mean, proba)
    off = ~np.eye(N, dtype=bool)
    assert (epistemic[:, off] > 0).all()
    assert (epistemic <= sd + 1e-9).all()


def test_score_is_minus_nll(learner, test):
    data = GraphDataset(list(test[0]), list(test[1]))
    expected = -float(metrics.nll(learner.posterior_, data))
    assert learner.score(*test) == pytest.approx(expected, rel=1e-12)
    assert learner.score(data) == pytest.approx(expected, rel=1e-12)
    assert learner.score(test[0], 1 - test[1]) < expected
    with pytest.raises(ValueError, match="known"):
        learner.score(test[0])


def test_belief_is_better_than_the_density_alone(learner, train, test, proba):
    upper = (slice(None), *np.triu_indices(N, k=1))
    density = train[1][upper].mean()
    truth = test[1][upper]
    assert np.square(proba[upper] - truth).mean() < np.square(density - truth).mean() / 2


def test_decide_is_belief_decide(learner, test, proba):
    upper = np.triu_indices(N, k=1)
    for rule in ({}, {"threshold": 0.3}, {"cost": (5, 1)}, {"fdr": 0.1}, {"top_k": 4}):
        found = learner.decide(test[0], **rule)
        assert found.dtype.kind == "i"
        for edges, p in zip(found, proba, strict=True):
            np.testing.assert_array_equal(edges, edges.T)
            np.testing.assert_array_equal(edges[upper], decide(p[upper], **rule))
    assert learner.decide(test[0][0], top_k=4).sum() == 8
    with pytest.raises(ValueError, match="one rule at a time"):
        learner.decide(test[0], fdr=0.1, top_k=2)


def test_edge_table_is_the_probabilities_in_rows(learner, test, proba):
    frame = pd.DataFrame(test[0][0], index=NAMES, columns=NAMES)
    table = learner.edge_table(frame, top_k=4)
    assert table.columns.tolist() == [
        "source", "target", "probability", "logit", "sd", "epistemic", "aleatoric", "low", "high",
        "decision",
    ]  # fmt: skip
    assert len(table) == 28
    assert table.probability.is_monotonic_decreasing
    place = {name: i for i, name in enumerate(NAMES)}
    at = [table.source.map(place), table.target.map(place)]
    np.testing.assert_allclose(table.probability, proba[0][*at], atol=1e-6)
    _, epistemic = learner.predict_proba(test[0], return_std=True)
    np.testing.assert_allclose(table.epistemic, epistemic[0][*at], atol=1e-6)
    np.testing.assert_allclose(table.sd**2, table.epistemic**2 + table.aleatoric**2, atol=1e-12)
    np.testing.assert_allclose(table.sd**2, table.probability * (1 - table.probability), atol=1e-12)
    assert table.decision.tolist() == [1] * 4 + [0] * 24
    assert ((table.low < table.probability) & (table.probability < table.high)).mean() > 0.9
    assert (table.low < table.high).all()
    narrow = learner.edge_table(frame, level=0.5)
    assert (narrow.high - narrow.low).sum() < (table.high - table.low).sum()
    assert "low" not in learner.edge_table(frame, level=None)
    for level in (0, 1, 90):
        with pytest.raises(ValueError, match="level must lie between 0 and 1"):
            learner.edge_table(frame, level=level)


def test_edge_table_of_several_graphs(learner, test):
    table = learner.edge_table(test[0], level=None)
    assert table.columns[0] == "graph"
    one = learner.edge_table(test[0][1], level=None)
    pd.testing.assert_frame_equal(
        table[table.graph == 1].drop(columns="graph").reset_index(drop=True), one, atol=1e-6
    )


def test_intervals_hold_their_share_of_the_draws(learner, test):
    """The 90 % interval of p, against the quantiles of p over independent draws."""
    frame = pd.DataFrame(test[0][0], index=NAMES, columns=NAMES)
    table = learner.edge_table(frame).set_index(["source", "target"])
    draws = {k: jnp.asarray(v) for k, v in learner.posterior_.draws(99, 400).items()}
    e = jnp.asarray(test[0][0][np.triu_indices(N, k=1)])
    p = jax.jit(jax.vmap(lambda one: jax.nn.sigmoid(learner.model_.logits(one, e))))(draws)
    pairs = [(NAMES[i], NAMES[j]) for i, j in zip(*np.triu_indices(N, k=1), strict=True)]
    low, high = table.loc[pairs].low.to_numpy(), table.loc[pairs].high.to_numpy()
    assert 0.85 < float(((low <= p) & (p <= high)).mean()) < 0.95


def test_sampled_graphs_have_the_probabilities(learner, test, proba):
    drawn = learner.sample_graphs(test[0], n=1000)
    assert [graphs.shape for graphs in drawn] == [(1000, N, N)] * 3
    for graphs, p in zip(drawn, proba, strict=True):
        assert set(np.unique(graphs)) <= {0, 1}
        np.testing.assert_array_equal(graphs, graphs.transpose(0, 2, 1))
        # Six standard errors, for each of 84 pairs.
        assert (np.abs(graphs.mean(0) - p) < 6 * np.sqrt(p * (1 - p) / 1000) + 1e-3).all()
    np.testing.assert_array_equal(learner.sample_graphs(test[0], n=1000), drawn)


def test_propagate_is_a_function_of_sampled_graphs(learner, test):
    frame = pd.DataFrame(test[0][0], index=NAMES, columns=NAMES)
    drawn = learner.sample_graphs(frame, n=20)
    numbers = learner.propagate(frame, nx.number_of_edges, n=20)
    np.testing.assert_array_equal(numbers, drawn.sum((1, 2)) / 2)
    degrees = learner.propagate(frame, lambda graph: dict(graph.degree), n=20)
    assert degrees.columns.tolist() == NAMES
    np.testing.assert_array_equal(degrees, drawn.sum(1))
    arrays = learner.propagate(frame, nx.to_numpy_array, n=20)
    np.testing.assert_array_equal(arrays, drawn)
    several = learner.propagate(test[0], nx.density, n=20)
    assert [series.shape for series in several] == [(20,)] * 3


@pytest.mark.parametrize("n", [0, -1])
def test_no_graphs_cannot_be_drawn(learner, test, n):
    with pytest.raises(ValueError, match="n must be a whole number, at least 1"):
        learner.sample_graphs(test[0], n=n)
    with pytest.raises(ValueError, match="n must be a whole number, at least 1"):
        learner.propagate(test[0], nx.density, n=n)


def test_decided_graphs_carry_names_and_belief(learner, test, proba):
    frame = pd.DataFrame(test[0][0], index=NAMES, columns=NAMES)
    graph = learner.to_networkx(frame, top_k=5)
    assert list(graph) == NAMES
    assert graph.number_of_edges() == 5
    _, epistemic = learner.predict_proba(test[0], return_std=True)
    for i, j, numbers in graph.edges(data=True):
        at = (0, NAMES.index(i), NAMES.index(j))
        assert numbers["probability"] == pytest.approx(proba[at], abs=1e-6)
        assert numbers["epistemic"] == pytest.approx(epistemic[at], abs=1e-6)
        assert numbers["sd"] == pytest.approx(np.sqrt(proba[at] * (1 - proba[at])), abs=1e-6)
    assert len(learner.to_networkx(test[0])) == 3


def test_calibration_report_holds_the_metrics(learner, test):
    report = learner.calibration_report(*test)
    assert report.nll == pytest.approx(-learner.score(*test), rel=1e-12)
    assert 0 <= report.error < 0.5
    assert report.as_dict()["brier"] == report.brier
    assert str(report).startswith("NLL")
    assert learner.calibration_report(*test, n_bins=4).curve.count.sum() == 84


def test_predictive_checks_before_and_after(learner, train, test):
    (before,) = learner_of().predictive_checks(test[0], n=200)
    both = learner.predictive_checks(*test, key=0, n=200)
    np.testing.assert_allclose(both[0].values, before.values)
    after = both[1]
    assert np.std(after.values) < np.std(before.values)
    density = test[1][(slice(None), *np.triu_indices(N, k=1))].mean()
    assert abs(np.mean(after.values) - density) < 0.1


def test_the_verdict_is_at_hand(learner):
    verdict = learner.posterior_.verdict
    assert verdict.ok
    assert "quadrature error" in verdict.figures
    assert "no finding" in str(learner.posterior_)


def test_report_is_asked_for_with_what_the_learner_knows(monkeypatch, tmp_path, learner, test):
    """What a page holds is tested with the pages."""
    asked = {}

    class Page:
        def write(self, path):
            asked["path"] = path

    def of(posterior, data, **about):
        asked.update(about, posterior=posterior, data=data)
        return Page()

    monkeypatch.setattr("edgebelief.report.Report.of", of)
    path = learner.report(tmp_path / "page.html", *test, title="Eight people")
    assert asked["path"] == path == tmp_path / "page.html"
    assert asked["title"] == "Eight people"
    assert asked["posterior"] is learner.posterior_
    assert asked["assumptions"] == ()
    given = {f"GraphLearner: {k}": v for k, v in learner.get_params(deep=False).items()}
    applied = {"scale that was applied": 1.0, "evidence that was used": "none", "passes": 1}
    assert asked["settings"] == {**given, **applied}
    assert {"GraphLearner: metric", "GraphLearner: missing", "GraphLearner: readout"} <= set(given)
    assert asked["data"].n_labels == 84
    assert asked["predictions"].data is asked["data"]


def test_reports_take_every_keyword_of_the_page():
    of_page = inspect.signature(Report.of).parameters
    assert set(ABOUT) == {name for name, p in of_page.items() if p.kind == p.KEYWORD_ONLY} - {
        "predictions",
        "expectations",
        "cautions",  # which a learner knows itself
    }


@pytest.mark.parametrize(
    ("method", "word", "meant"),
    [
        ("report", {"titel": "x"}, "'title'"),
        ("edge_table", {"thres": 0.5}, "'threshold'"),
        ("decide", {"topk": 3}, "'top_k'"),
        ("to_networkx", {"x": 3}, "It takes threshold, cost, fdr, top_k"),
    ],
)
def test_unknown_keywords_are_refused_by_the_method_that_was_called(
    learner, test, tmp_path, method, word, meant
):
    where = (tmp_path / "page.html",) if method == "report" else ()
    problem = f"^{method} got an unexpected keyword argument '{next(iter(word))}'.*{meant}"
    with pytest.raises(TypeError, match=problem):
        getattr(learner, method)(*where, test[0], **word)


# Labels


def test_unknown_labels_are_as_if_not_there(train, test):
    """A graph without labels adds nothing; and by the chain rule of probability,

    log p(all labels) = log p(some) + log p(the rest | some).
    """
    X, A = train
    some, rest = A.copy(), A[0].copy()
    hidden = np.zeros((N, N), bool)
    hidden[:4, 4:] = hidden[4:, :4] = True
    some[0, hidden] = np.nan
    rest[~hidden] = np.nan
    whole, part = learner_of().fit(X, A), learner_of().fit(X, some)
    assert part.posterior_.fingerprint.n_labels == 6 * 28 - 16
    gained = whole.posterior_.log_evidence - part.posterior_.log_evidence
    assert gained == pytest.approx(part.score(X[0], rest), abs=0.02)
    none = learner_of().fit(X, [*A[:5], None])
    zero = learner_of().fit(X, A, sample_weight=[1, 1, 1, 1, 1, 0])
    np.testing.assert_allclose(none.predict_proba(test[0]), zero.predict_proba(test[0]), atol=1e-5)


def test_weight_two_is_the_graph_twice(train, test):
    X, A = train
    weighted = learner_of().fit(X, A, sample_weight=[2, 1, 1, 1, 1, 0])
    twice = learner_of().fit(X[[0, 0, 1, 2, 3, 4]], A[[0, 0, 1, 2, 3, 4]])
    assert weighted.posterior_.log_evidence == pytest.approx(
        twice.posterior_.log_evidence, abs=1e-3
    )
    same(weighted.predict_proba(test[0]), twice.predict_proba(test[0]))


@pytest.mark.parametrize("weights", [[1, 2], [-1] * T, [np.nan] * T, [0] * T, "a"])
def test_bad_weights_are_refused(train, weights):
    with pytest.raises((TypeError, ValueError), match=r"weight|convert"):
        learner_of().fit(*train, sample_weight=weights)


def test_labels_are_needed(train):
    for labels in (None, [None] * T, train[1] * np.nan):
        with pytest.raises(ValueError, match=r"no label is known.*GraphLearner.simulated"):
            learner_of().fit(train[0], labels)


def test_distances_that_are_all_alike_are_warned_about(train):
    X = train[0].copy()
    X[1] = 2 * (1 - np.eye(N))
    with pytest.warns(UserWarning, match="graph 1: all its distances are 2") as caught:
        learner_of().fit(X, train[1])
    assert caught[0].filename == __file__


# Settings


def test_a_prior_by_name_as_an_object_or_as_beliefs(train):
    X, A = train
    data = GraphDataset(list(X), list(A))
    beliefs = {"density": (0.1, 0.8)}
    for prior, expected in (
        ("original", Prior.named("original")),
        (Prior.named("altered").replace(b=lognormal(2, 0.5)), None),
        (beliefs, elicit_prior(data, **beliefs, network=DPG(depth=DEPTH))),
    ):
        learner = learner_of(prior=prior).fit(X, A)
        expected = prior if expected is None else expected
        assert dict(learner.model_.prior) == dict(expected)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"network": "gru"}, ValueError, "network must be one of"),
        ({"network": ["dpg"]}, ValueError, "network must be one of"),
        ({"network": DPG}, ValueError, "network must be one of"),
        ({"prior": "vague"}, ValueError, "no prior is called 'vague'"),
        ({"prior": 3}, TypeError, "prior must be a name"),
        (
            {"prior": {"theta": lognormal(1, 1)}},
            ValueError,
            r"beliefs about graphs, density, max_components, mass, and 'theta' is none\. .*"
            r"Prior\.named\('altered'\)\.replace\(theta=",
        ),
        ({"prior": {"mass": 0.9}}, ValueError, "and density is missing"),
        ({"prior": Prior(theta=lognormal(1, 1))}, ValueError, "must have a marginal for each"),
        ({"depth": -1}, ValueError, "depth must be a number of layers"),
        ({"depth": 2.5}, ValueError, "depth must be a number of layers"),
        ({"depth": "20"}, ValueError, "depth must be a number of layers"),
        ({"metric": "cosine"}, ValueError, "metric must be one of"),
        ({"scale": "mean"}, ValueError, "scale must be None, auto, median, relative or a number"),
        ({"scale": -2.0}, ValueError, "scale must be positive"),
        ({"scale": np.inf}, ValueError, "scale must be positive"),
        ({"scale": True}, TypeError, "scale must be a number"),
        ({"scale": [1, 2]}, TypeError, "scale must be a number"),
        ({"missing": "drop"}, ValueError, "missing must be one of"),
        ({"preprocess": "log"}, ValueError, "preprocess is for signals"),
        ({"inference": "gibbs"}, ValueError, "inference must be auto"),
        ({"inference": Exact}, ValueError, "inference must be auto"),
        ({"inference": {}}, ValueError, "inference must be auto"),
        ({"inference": "exact", "network": PDS(3), "prior": "pds"}, ValueError, "no prior"),
        ({"random_state": "a"}, ValueError, "seed"),
    ],
    ids=readable,
)
def test_bad_settings_are_refused_by_fit(train, settings, error, message):
    with pytest.raises(error, match=message):
        learner_of(**settings).fit(*train)


def test_inference_by_name_or_as_an_engine(train):
    for name, engine in (("exact", Exact), ("nuts", NUTS), ("map", MAP), ("vi", VI)):
        assert engine_of(learner_of(inference=name).inference) == engine()
    own = Exact(tol=0.1)
    learner = learner_of(inference=own).fit(*train)
    assert learner.posterior_.settings == {"tol": 0.1, "n_draws": 4000}
    assert learner.posterior_.engine == "Exact"
    assert learner_of().fit(*train).posterior_.engine == "Exact"


def test_auto_is_nuts_where_exact_does_not_apply(train, monkeypatch):
    asked = []

    def run(self, key, model, data, weights=None):
        asked.append((key, model.network))
        raise InterruptedError

    monkeypatch.setattr(NUTS, "run", run)
    prior = Prior(alpha=lognormal(1, 1), beta=lognormal(1, 1), b=lognormal(1, 1))
    with pytest.raises(InterruptedError):
        learner_of(network=PDS(2), prior=prior).fit(*train)
    assert asked[0][1] == PDS(2)


def test_a_network_brings_its_own_depth(learner, train, test, proba):
    again = GraphLearner(network=DPG(depth=DEPTH), depth=3, readout="affine").fit(*train)
    np.testing.assert_array_equal(again.predict_proba(test[0]), proba)


def test_random_state_decides_what_is_drawn(train, test):
    first, second = (learner_of(random_state=seed).fit(*train) for seed in (0, 1))
    np.testing.assert_array_equal(first.predict_proba(test[0]), second.predict_proba(test[0]))
    assert (first.sample_graphs(test[0]) != np.array(second.sample_graphs(test[0]))).any()
    state = np.random.RandomState(0)
    assert learner_of(random_state=state).fit(*train).seed_ == first.seed_


# Scale


def test_a_number_for_scale_is_that_number(learner, train, test, proba):
    again = learner_of(scale=0.001).fit(1000 * train[0], train[1])
    assert again.scale_ == 0.001
    same(again.predict_proba(1000 * test[0]), proba)
    same(learner_of(scale=4).fit(train[0] / 4, train[1]).predict_proba(test[0] / 4), proba)


def test_relative_distances_have_no_unit(train, test):
    X, A = train
    learner = learner_of(scale="median").fit(X, A)
    expected = learner.predict_proba(test[0])
    units = 10.0 ** np.arange(T)[:, None, None]  # of each graph its own
    again = learner_of(scale="median").fit(units * X, A)
    same(again.predict_proba(test[0]), expected)
    np.testing.assert_allclose(learner.predict_proba(1000 * test[0]), expected, atol=1e-5)
    medians = [np.median(x[np.triu_indices(N, k=1)]) for x in X]
    by_hand = learner_of().fit(X / np.reshape(medians, (T, 1, 1)), A)
    assert by_hand.posterior_.log_evidence == pytest.approx(learner.posterior_.log_evidence)


def test_auto_scale_is_a_power_of_ten_that_leaves_a_live_network(train, test):
    X, A = train
    with pytest.warns(InferenceWarning) as caught:
        learner_of().fit(1e6 * X, A)
    assert any("istances" in str(warning.message) for warning in caught)
    learner = learner_of(scale="auto").fit(1e6 * X, A)
    assert learner.posterior_.verdict.ok
    assert np.log10(learner.scale_) == pytest.approx(round(np.log10(learner.scale_)))
    by_hand = learner_of(scale=learner.scale_).fit(1e6 * X, A)
    np.testing.assert_array_equal(
        learner.predict_proba(1e6 * test[0]), by_hand.predict_proba(1e6 * test[0])
    )


def test_relative_distances_need_a_positive_median(train):
    with pytest.raises(ValueError, match="graph 0: the median distance is -"):
        learner_of(scale="median").fit(-train[0], train[1])


def test_distances_beyond_single_precision_are_refused(learner, train, test):
    with pytest.raises(ValueError, match=r"graph 0: its distances, scaled, reach .*e\+3"):
        learner_of(scale=1e30).fit(*train)
    with pytest.raises(ValueError, match=r"graph 0: its distances, scaled, reach .*e\+30"):
        learner.predict_proba(1e300 * test[0])


def test_another_scale_at_predict_is_warned_about(learner, test):
    with pytest.warns(BeliefWarning, match="144 times those that were fitted"):
        learner.edge_table(100 * test[0])


# Signals


def test_signals_are_their_distances(learner, signals, train, test, proba):
    frames = [pd.DataFrame(x, columns=NAMES) for x in signals]
    graphs = [nx.relabel_nodes(nx.from_numpy_array(a), dict(enumerate(NAMES))) for a in train[1]]
    for X, A in ((signals[:T], train[1]), (list(signals[:T]), train[1]), (frames[:T], graphs)):
        again = learner_of(metric="sqeuclidean").fit(X, A)
        assert again.posterior_.fingerprint.n_signals == 100
        same(again.predict_proba(signals[T:]), proba)
    assert again.edge_table(frames[T], level=None).source.isin(NAMES).all()
    np.testing.assert_allclose(
        again.predict_proba(frames[T:]), again.predict_proba(signals[T:]), atol=1e-6
    )


def test_a_function_for_a_metric(signals, train, test, proba):
    def metric(x):
        return np.square(x[:, :, None] - x[:, None, :]).mean(0)

    learner = learner_of(metric=metric).fit(signals[:T], train[1])
    same(learner.predict_proba(signals[T:]), proba)


def test_fewer_signals_at_predict_are_warned_about(signals, train):
    learner = learner_of(metric="sqeuclidean").fit(signals[:T], train[1])
    with pytest.warns(BeliefWarning, match="20 signals a graph, the fitted from 100"):
        learner.predict_proba(signals[T, :20])


def test_transform_and_gaps_are_part_of_the_learner(signals, labels):
    prices = np.exp(np.cumsum(signals / 10, axis=1))
    prices[:, 3, 0] = np.nan
    returns = [transformed(x, "log-returns") for x in prices]
    settings = {"metric": "sqeuclidean", "missing": "pairwise", "scale": 100, "inference": ROUGH}
    learner = learner_of(**settings, preprocess="log-returns").fit(prices[:T], labels[:T])
    by_hand = learner_of(**settings).fit(returns[:T], labels[:T])
    np.testing.assert_array_equal(
        learner.predict_proba(prices[T:]), by_hand.predict_proba(returns[T:])
    )
    with pytest.raises(ValueError, match=r"graph 0: signals\[3, 0\] is nan"):
        learner.set_params(missing="error").fit(prices[:T], labels[:T])


# Without known edges


@pytest.mark.parametrize("name", ["geometric", "erdos-renyi", "barabasi-albert", "watts-strogatz"])
def test_a_simulated_learner_knows_graphs_of_its_kind(name):
    learner = GraphLearner.simulated(
        name, density=0.4, n_nodes=N, n_signals=100, n_graphs=T, depth=DEPTH, readout="affine"
    )
    (assumption,) = learner.posterior_.verdict.assumptions
    assert f"{T} simulated graphs" in assumption
    assert f"on {N} nodes, with 100 signals" in assumption
    assert assumption in str(learner.posterior_.verdict)
    assert learner.scale_ == "median"
    graph = RandomGeometric(0.5).sample(50, N)
    signals = smooth_signals(51, graph, 100)
    p = learner.predict_proba(signals)
    np.testing.assert_allclose(learner.predict_proba(1e3 * signals), p, atol=1e-5)
    np.testing.assert_allclose(learner.predict_proba(1e-3 * signals + 7), p, atol=1e-3)
    upper = np.triu_indices(N, k=1)
    truth = nx.to_numpy_array(graph)[upper]
    assert p[upper][truth == 1].mean() > 3 * p[upper][truth == 0].mean()


def test_simulating_again_gives_the_same_learner_and_fitting_forgets_it(train, test):
    ensemble = ErdosRenyi(0.5)
    settings = {"n_nodes": N, "n_signals": 100, "n_graphs": T, "depth": DEPTH}
    settings["readout"] = "affine"
    first, again, other = (
        GraphLearner.simulated(ensemble, **settings, random_state=seed) for seed in (1, 1, 2)
    )
    digests = [one.posterior_.fingerprint.digest for one in (first, again, other)]
    assert digests[0] == digests[1] != digests[2]
    assert "ErdosRenyi(p=0.5)" in first.posterior_.verdict.assumptions[0]
    assert clone(first).get_params() == first.get_params()
    first.set_params(metric="precomputed", scale=None).fit(*train)
    assert first.posterior_.verdict.assumptions == ()


def test_simulated_correlations():
    learner = GraphLearner.simulated(
        "erdos-renyi",
        density=0.4,
        n_nodes=N,
        n_signals=100.0,
        n_graphs=T,
        depth=DEPTH,
        metric="correlation",
        filter=Heat(3.0),
        readout="affine",
    )
    assert learner.scale_ == 1.0
    signals = smooth_signals(51, ErdosRenyi(0.4).sample(50, N), 100, Heat(3.0))
    units = 10.0 ** np.arange(-4, 4)
    np.testing.assert_allclose(
        learner.predict_proba(signals * units), learner.predict_proba(signals), atol=1e-5
    )


def test_infinitely_many_simulated_signals():
    learner = GraphLearner.simulated(
        ErdosRenyi(0.5), n_nodes=N, n_graphs=T, depth=DEPTH, readout="affine"
    )
    assert learner.posterior_.fingerprint.n_signals == np.inf
    assert "infinitely many signals" in learner.posterior_.verdict.assumptions[0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ensemble": "small-world"}, ValueError, "no ensemble is called 'small-world'"),
        ({"ensemble": "geometric", "density": None}, ValueError, "say how dense"),
        ({"density": 0}, ValueError, "density is a share"),
        ({"density": 1.5}, ValueError, "density is a share"),
        ({"density": "dense"}, TypeError, "density must be a number"),
        ({"ensemble": ErdosRenyi(0.5)}, ValueError, "this one has its own"),
        ({"ensemble": 3, "density": None}, TypeError, "ensemble and filter are objects"),
        ({"filter": "heat"}, TypeError, "ensemble and filter are objects"),
        ({"metric": "log-euclidean"}, ValueError, "simulated with a metric of"),
        ({"metric": np.ptp}, ValueError, "simulated with a metric of"),
        ({"metric": "correlation", "n_signals": None}, ValueError, "needs n_signals"),
        ({"n_nodes": 1}, ValueError, "n_nodes must be a whole number, at least 2"),
        ({"n_nodes": 8.5}, ValueError, "n_nodes must be a whole number"),
        ({"n_graphs": 0}, ValueError, "n_graphs must be a whole number"),
        ({"n_signals": np.inf}, ValueError, "n_signals must be a whole number"),
        ({"n_signals": np.nan}, ValueError, "n_signals must be a whole number"),
        ({"ensemble": "barabasi-albert", "density": 0.9}, ValueError, "density of 0.57 at most"),
        ({"density": 0.01}, ValueError, "density must be at least 0.125: .* 7 edges"),
        ({"density": 1e-300}, ValueError, "density must be at least"),
        ({"n_nodes": 10**9}, ValueError, r"1e\+09 nodes are .* numbers; at most 1e\+08"),
        ({"n_signals": 10**12}, ValueError, r"1e\+12 signals on 8 nodes are 8e\+12 numbers"),
        ({"n_graphs": 10**12}, ValueError, r"at most 100,000 graphs are simulated; got 1e\+12"),
        ({"n_nodes": 10**400}, TypeError, "n_nodes must be a number"),
        ({"dpeth": 3}, TypeError, "dpeth"),
    ],
    ids=readable,
)
def test_what_cannot_be_simulated_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        GraphLearner.simulated(
            **(
                {"ensemble": "erdos-renyi", "density": 0.4, "n_nodes": N, "n_signals": 9}
                | arguments
            )
        )


def test_named_ensembles_have_the_density():
    from edgebelief.estimators.simulate import ENSEMBLES, ensemble_of

    for name in ENSEMBLES:
        for density in (0.2, 0.4):
            ensemble = ensemble_of(name, 30, density)
            found = np.mean([nx.density(ensemble.sample(key, 30)) for key in range(20)])
            assert found == pytest.approx(density, abs=0.03), name


def test_files_with_the_old_name_of_preprocess_load(tmp_path, train):
    learner_of(metric="sqeuclidean", preprocess="diff").fit(GraphDataset(*train)).save(
        tmp_path / "new.eb"
    )
    kind, settings, arrays = modelfile.read(tmp_path / "new.eb")
    settings["learner"]["transform"] = settings["learner"].pop("preprocess")
    modelfile.write(tmp_path / "old.eb", kind, settings, arrays)
    assert load(tmp_path / "old.eb").preprocess == "diff"


def test_transform_is_the_old_name_of_preprocess():
    with pytest.warns(FutureWarning, match="called preprocess now"):
        learner = GraphLearner(metric="sqeuclidean", transform="diff")
    assert learner.preprocess == "diff"
    assert not hasattr(learner, "transform")
    assert "transform" not in learner.get_params()
    assert clone(learner).preprocess == "diff"
    with pytest.warns(FutureWarning, match="called preprocess now"):
        assert learner.set_params(transform=None).preprocess is None
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'transfrom'.*preprocess"):
        GraphLearner(transfrom="diff")
    with pytest.raises(ValueError, match="give one of them"):
        GraphLearner(transform="diff", preprocess="diff")
