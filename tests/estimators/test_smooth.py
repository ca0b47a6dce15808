import pickle

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from edgebelief import solve, theta_for
from edgebelief.data import (
    ErdosRenyi,
    RandomGeometric,
    adjacency_of,
    distances,
    smooth_signals,
    transformed,
)
from edgebelief.edges import Complete
from edgebelief.errors import InputWarning
from edgebelief.estimators import SmoothGraph

NAMES = ["ada", "bob", "cy", "dee", "eve", "flo"]


@pytest.fixture(scope="module")
def graph():
    return RandomGeometric(radius=0.35).sample(key=0, n_nodes=20)


@pytest.fixture(scope="module")
def signals(graph):
    return smooth_signals(key=1, graph=graph, n_signals=1500)


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(60, 6)), columns=NAMES)


# What scikit-learn's checks skip or we refuse, and why.
SKIPS = {"check_array_api_input"}  # runs only with SCIPY_ARRAY_API=1 set (and then passes)
PRECOMPUTED_FAILS = {
    "check_positive_only_tag_during_fit": "centres the columns: no distance matrix any more",
    "check_estimators_nan_inf": "-inf on the diagonal is what log distances have there",
}


@pytest.mark.parametrize(
    "model",
    [
        SmoothGraph(),
        SmoothGraph(bootstrap=2),
        SmoothGraph(metric="correlation", missing="pairwise"),
        SmoothGraph(metric="precomputed"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:distances is asymmetric, or its diagonal is off zero, by round")
def test_scikit_learn_conventions_hold(model):
    allowed = PRECOMPUTED_FAILS if model.metric == "precomputed" else {}
    results = check_estimator(model, expected_failed_checks=allowed, on_skip=None, on_fail=None)
    assert len(results) > 30  # scikit-learn 1.9 has 40 to 42
    by_status = {
        status: {result["check_name"] for result in results if result["status"] == status}
        for status in ("failed", "skipped", "xfail")
    }
    assert by_status["failed"] == set()
    assert by_status["skipped"] <= SKIPS
    assert by_status["xfail"] == set(allowed)


@pytest.mark.parametrize("metric", ["sqeuclidean", "log-euclidean", "correlation"])
@pytest.mark.parametrize("theta", [None, 0.3])
def test_fit_is_solve_of_distances(signals, metric, theta):
    model = SmoothGraph(metric=metric, theta=theta, preprocess=None).fit(signals)
    solution = solve(distances(signals, metric), 1.0 if theta is None else theta)
    np.testing.assert_array_equal(model.adjacency_, solution.adjacency())
    np.testing.assert_array_equal(model.solution_.duals, solution.duals)
    assert model.theta_ == solution.theta
    assert model.n_edges_ == solution.n_edges
    assert model.edge_frequencies_ is None


@pytest.mark.parametrize("wanted", [{"degree": 4}, {"density": 0.3}], ids=str)
def test_degree_and_density_are_those_of_theta_for(signals, wanted):
    model = SmoothGraph(**wanted).fit(signals)
    theta = theta_for(distances(transformed(signals, "standardize")), **wanted)
    assert model.theta_ == float(theta)
    assert type(model.theta_) is float
    np.testing.assert_array_equal(model.adjacency_, theta.solution.adjacency())
    assert (model.n_edges_, model.degree_, model.density_) == (
        theta.n_edges,
        theta.degree,
        theta.density,
    )
    ((name, value),) = wanted.items()
    assert getattr(model, name + "_") == pytest.approx(value, abs=0.05)


def test_delta_scales_weights_and_nothing_else(signals):
    one = SmoothGraph(degree=3, bootstrap=3, random_state=0).fit(signals)
    five = clone(one).set_params(delta=5.0).fit(signals)
    np.testing.assert_array_equal(five.adjacency_, 5 * one.adjacency_)
    np.testing.assert_array_equal(five.edge_table()["weight"], 5 * one.edge_table()["weight"])
    np.testing.assert_array_equal(five.edge_frequencies_, one.edge_frequencies_)
    assert five.theta_ == one.theta_


def test_laplacian_is_degrees_minus_weights(signals):
    model = SmoothGraph(delta=3.0).fit(signals)
    expected = nx.laplacian_matrix(model.to_networkx(), nodelist=range(20)).toarray()
    np.testing.assert_allclose(model.laplacian_, expected, atol=1e-12)
    np.testing.assert_allclose(model.laplacian_.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(model.laplacian_.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("key", range(3))
def test_edges_of_a_geometric_graph_are_found_from_its_signals(key):
    graph = RandomGeometric(radius=0.35).sample(key=key, n_nodes=20)
    signals = smooth_signals(key=100 + key, graph=graph, n_signals=2000)
    degree = 2 * graph.number_of_edges() / 20
    found = {
        frozenset(pair) for pair in SmoothGraph(degree=degree).fit(signals).to_networkx().edges
    }
    true = {frozenset(pair) for pair in graph.edges}
    assert 2 * len(found & true) / (len(found) + len(true)) > 0.8


def test_order_of_signals_does_not_matter(signals, rng):
    model = SmoothGraph(degree=4)
    there = model.fit(signals).adjacency_
    shuffled = model.fit(rng.permutation(signals)).adjacency_
    np.testing.assert_allclose(shuffled, there, atol=1e-9)


@pytest.mark.parametrize("kind", ["float32", "int64", "jax", "list", "frame", "nullable frame"])
def test_any_numbers_give_the_same_graph(rng, kind):
    x = rng.integers(-5, 6, size=(40, 5)).astype(float)
    given = {
        "float32": x.astype(np.float32),
        "int64": x.astype(int),
        "jax": jnp.asarray(x),
        "list": x.tolist(),
        "frame": pd.DataFrame(x),
        "nullable frame": pd.DataFrame(x).convert_dtypes(),
    }[kind]
    model = SmoothGraph().fit(given)
    np.testing.assert_allclose(model.adjacency_, SmoothGraph().fit(x).adjacency_, atol=1e-12)
    assert model.adjacency_.dtype == np.float64


def test_columns_that_are_alike_are_joined(signals):
    twin = np.column_stack([signals, signals[:, 0]])
    model = SmoothGraph(degree=4).fit(twin)
    assert model.edge_table().iloc[0][["source", "target"]].tolist() == [0, 20]
    np.testing.assert_array_equal(model.adjacency_[0, 1:20], model.adjacency_[20, 1:20])


def test_one_signal_is_enough(rng):
    x = rng.normal(size=(1, 5))
    np.testing.assert_array_equal(
        SmoothGraph(preprocess=None).fit(x).adjacency_, solve(distances(x), 1.0).adjacency()
    )


def test_precomputed_distances(signals):
    e = Complete(20).to_matrix(distances(transformed(signals, "standardize")))
    model = SmoothGraph(degree=4, metric="precomputed").fit(e)
    np.testing.assert_array_equal(model.adjacency_, SmoothGraph(degree=4).fit(signals).adjacency_)
    assert model.n_features_in_ == 20
    assert get_tags(model).input_tags.pairwise
    assert not get_tags(SmoothGraph()).input_tags.pairwise


def test_precomputed_frame_is_read_by_names(frame):
    e = Complete(6).to_matrix(distances(transformed(frame, "standardize")))
    named = pd.DataFrame(e, index=NAMES, columns=NAMES)
    model = SmoothGraph(metric="precomputed").fit(named.iloc[::-1])  # rows in another order
    np.testing.assert_array_equal(model.adjacency_, SmoothGraph().fit(frame).adjacency_)
    assert model.node_names_ == model.feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize(
    "metric",
    [
        lambda x: cdist(x.T, x.T, "cityblock"),
        lambda x: Complete(20).to_vector(cdist(x.T, x.T, "cityblock")),
    ],
    ids=["matrix", "vector"],
)
def test_metric_may_be_a_function(signals, metric):
    model = SmoothGraph(theta=0.001, metric=metric).fit(signals)
    e = [np.abs(signals[:, i] - signals[:, j]).sum() for i in range(20) for j in range(i + 1, 20)]
    np.testing.assert_allclose(model.adjacency_, solve(np.array(e), 0.001).adjacency(), atol=1e-9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "correlation"])
def test_gaps_are_left_to_distances(frame, rng, metric):
    gappy = frame.mask(rng.uniform(size=frame.shape) < 0.2)
    model = SmoothGraph(metric=metric, preprocess=None, missing="pairwise").fit(gappy)
    e = distances(gappy, metric, missing="pairwise")
    np.testing.assert_allclose(model.adjacency_, solve(e, 1.0).adjacency(), atol=1e-12)
    assert get_tags(model).input_tags.allow_nan
    assert not get_tags(SmoothGraph()).input_tags.allow_nan


@pytest.mark.parametrize("sparsity", [{"theta": 0.5}, {"degree": 4}], ids=str)
@pytest.mark.parametrize("metric", ["sqeuclidean", "correlation"])
def test_frequencies_are_those_of_a_plain_loop(signals, sparsity, metric):
    x = signals[:50]
    model = SmoothGraph(
        **sparsity, metric=metric, preprocess=None, bootstrap=15, random_state=3
    ).fit(x)
    random, expected = np.random.RandomState(3), np.zeros((20, 20))
    for _ in range(15):
        e = distances(x[random.randint(50, size=50)], metric)
        weights = solve(e, model.theta_).adjacency()
        expected += (weights > 1e-5 * weights.max()) / 15
    np.testing.assert_allclose(model.edge_frequencies_, expected, atol=1e-12)
    assert ((expected > 0) & (expected < 1)).any()  # else there was little to compare


def test_strong_edges_are_in_every_resample(signals):
    model = SmoothGraph(degree=4, bootstrap=50, random_state=0).fit(signals)
    strongest = model.edge_table().head(10)
    assert (strongest["frequency"] >= 0.98).all()
    never = model.adjacency_ == 0
    assert model.edge_frequencies_[never].mean() < 0.1
    np.testing.assert_array_equal(np.diagonal(model.edge_frequencies_), 0)


def test_bootstrap_leaves_the_estimate_alone_and_follows_random_state(signals):
    plain = SmoothGraph(degree=4).fit(signals)
    first, second, other = (
        SmoothGraph(degree=4, bootstrap=4, random_state=seed).fit(signals[:40])
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.edge_frequencies_, second.edge_frequencies_)
    assert (first.edge_frequencies_ != other.edge_frequencies_).any()
    np.testing.assert_array_equal(first.adjacency_, plain.fit(signals[:40]).adjacency_)


def test_refit_without_bootstrap_forgets_the_frequencies(frame):
    model = SmoothGraph(bootstrap=2, random_state=0).fit(frame)
    assert "frequency" in model.edge_table()
    model.set_params(bootstrap=0).fit(frame)
    assert model.edge_frequencies_ is None
    assert "frequency" not in model.edge_table()


def test_resamples_with_a_constant_node_are_drawn_again(frame):
    frame = frame.assign(
        cy=np.r_[1.0, 1.0, np.zeros(58)]
    )  # misses both ones with (58/60)^60 = 13 %
    model = SmoothGraph(metric="correlation", bootstrap=40, random_state=0)
    with pytest.warns(UserWarning, match=r"drawn again.*node 'cy' is constant"):
        model.fit(frame)
    random, kept = np.random.RandomState(0), []
    while len(kept) < 40:
        resample = frame.iloc[random.randint(60, size=60)]
        if resample["cy"].nunique() > 1:
            weights = solve(distances(resample, "correlation"), 1.0).adjacency()
            kept.append(weights > 1e-5 * weights.max())
    np.testing.assert_allclose(model.edge_frequencies_, np.mean(kept, axis=0), atol=1e-12)


def test_bootstrap_is_refused_where_most_resamples_have_no_distances():
    spikes = np.eye(12)[:, :6]  # one signal each; a resample misses it with 35 %, any with 92 %
    model = SmoothGraph(metric="correlation", bootstrap=20, random_state=0)
    with pytest.raises(ValueError, match=r"drew 21 resamples .* no distances"):
        model.fit(spikes)


def test_frames_keep_their_names(frame):
    model = SmoothGraph(theta=2.0, bootstrap=5, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == model.node_names_ == NAMES
    assert model.n_features_in_ == 6

    table = model.edge_table()
    assert table.columns.tolist() == ["source", "target", "weight", "frequency"]
    assert len(table) == model.n_edges_ < 15
    assert table["weight"].is_monotonic_decreasing
    weights = pd.DataFrame(model.adjacency_, NAMES, NAMES)
    frequencies = pd.DataFrame(model.edge_frequencies_, NAMES, NAMES)
    network = model.to_networkx()
    assert list(network.nodes) == NAMES
    assert network.number_of_edges() == len(table)
    for source, target, weight, frequency in table.itertuples(index=False):
        assert weight == weights.loc[source, target] == network.edges[source, target]["weight"]
        assert frequency == frequencies.loc[source, target]
        assert frequency == network.edges[source, target]["frequency"]
    np.testing.assert_array_equal(nx.to_numpy_array(network, NAMES), model.adjacency_)


@pytest.mark.parametrize("columns", [[7, 3, 5], [("x", 1), ("x", 2), ("y", 1)]], ids=str)
def test_columns_that_are_not_strings_name_nodes_too(rng, columns):
    model = SmoothGraph().fit(
        pd.DataFrame(dict(zip(columns, rng.normal(size=(3, 9)), strict=True)))
    )
    assert list(model.to_networkx().nodes) == columns
    assert set(model.edge_table()["source"]) <= set(columns)
    assert not hasattr(model, "feature_names_in_")  # scikit-learn keeps strings alone


def test_arrays_number_their_nodes(signals):
    model = SmoothGraph(degree=3).fit(signals)
    assert list(model.to_networkx().nodes) == list(range(20))
    assert not hasattr(model, "feature_names_in_")
    assert all(set(data) == {"weight"} for _, _, data in model.to_networkx().edges(data=True))


def test_fitted_models_pickle(frame):
    model = SmoothGraph(degree=3, bootstrap=2, random_state=0).fit(frame)
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.edge_table(), model.edge_table())
    assert again.solution_.converged


@pytest.mark.parametrize("method", ["edge_table", "to_networkx"])
def test_unfitted_models_say_so(method):
    with pytest.raises(NotFittedError):
        getattr(SmoothGraph(), method)()


NUMBERS = np.random.default_rng(0).normal(size=(9, 4))
GAP, INFINITE, CONSTANT, EMPTY = (NUMBERS.copy() for _ in range(4))
GAP[3, 2], INFINITE[3, 2], CONSTANT[:, 2], EMPTY[:, 2] = np.nan, np.inf, 1.0, np.nan
DATED = pd.DataFrame(NUMBERS, columns=list("abcd")).assign(
    day=pd.date_range("2024-01-01", periods=9)
)


@pytest.mark.parametrize(
    ("settings", "x", "message"),
    [
        ({"theta": 1.0, "degree": 3}, NUMBERS, r"at most one .* got theta=1.0, degree=3"),
        ({"degree": 2, "density": 0.5}, NUMBERS, "at most one of theta, degree and density"),
        ({"theta": -1.0}, NUMBERS, "theta must be positive"),
        ({"degree": 40}, NUMBERS, "out of reach"),
        ({"delta": 0}, NUMBERS, "delta must be positive"),
        ({"metric": "cosine"}, NUMBERS, "metric must be one of .*precomputed.*, or a function"),
        ({"missing": "drop"}, NUMBERS, "missing must be one of"),
        ({"bootstrap": -1}, NUMBERS, "bootstrap must be a whole number, at least 0"),
        ({"bootstrap": 2.5}, NUMBERS, "bootstrap must be a whole number, at least 0"),
        ({"bootstrap": 5}, NUMBERS[:1], r"1 sample\(s\)"),
        ({"bootstrap": 5, "metric": "precomputed"}, np.ones((3, 3)), "there are none"),
        ({"metric": "precomputed"}, NUMBERS, "must be a square matrix"),
        ({"metric": "precomputed"}, np.ones((3, 3)), "diagonal must be 0"),
        ({"metric": lambda x: np.ones(5)}, NUMBERS, "has 5 entries, but the support has 6"),
        ({}, NUMBERS[:, :1], r"1 feature\(s\)"),
        ({}, NUMBERS[0], "Expected 2D array"),
        ({}, NUMBERS[None], "dim 3"),
        ({}, [["a", "b"], ["c", "d"]], "strings"),
        ({}, DATED, r"column 'day' of X has dtype datetime64.*set_index\('day'\)"),
        ({}, DATED.assign(day="x"), "(column 'day' of X has dtype)|(could not convert string)"),
        ({}, DATED[["a", "a", "b"]], r"columns of X must differ; \['a'\]"),
        ({}, GAP, r"X\[3, 2\] is NaN \(1 in all\); .*missing='pairwise'"),
        ({}, INFINITE, r"X\[3, 2\] is inf"),
        ({"missing": "pairwise"}, INFINITE, r"X\[3, 2\] is inf"),
        ({}, pd.DataFrame(GAP, columns=list("abcd")), r"X\[3, 'c'\] is NaN"),
        ({"metric": "correlation"}, CONSTANT, "node 2 is constant"),
        ({"metric": "correlation"}, pd.DataFrame(CONSTANT, columns=list("abcd")), "node 'c' is"),
        ({}, NUMBERS[:1], r"at least two rows of signals; .* preprocess=None"),
        ({"metric": "correlation"}, NUMBERS[:1], "at least two rows of signals; there is 1 sample"),
        ({"missing": "pairwise"}, EMPTY, "node 2 has no values, only gaps"),
    ],
)
def test_bad_input_is_refused_with_a_reason(settings, x, message):
    with pytest.raises(ValueError, match=message):
        SmoothGraph(**settings).fit(x)


@pytest.mark.parametrize(
    ("settings", "x", "message"),
    [
        ({"theta": "1"}, NUMBERS, "theta must be a number"),
        ({"delta": None}, NUMBERS, "delta must be a number"),
        ({"bootstrap": True}, NUMBERS, "bootstrap must be a number"),
        ({}, csr_array(NUMBERS), "is a sparse matrix, which can only be distances"),
    ],
)
def test_wrong_types_are_refused(settings, x, message):
    with pytest.raises(TypeError, match=message):
        SmoothGraph(**settings).fit(x)


@pytest.fixture
def expression():
    """Signals on a known graph, in columns with baselines and units of their own."""
    graph = ErdosRenyi(0.08).sample(1, n_nodes=40)
    rng, x = np.random.default_rng(1), smooth_signals(2, graph, n_signals=100)
    return adjacency_of(graph), rng.lognormal(0, 1, 40) * x + 5 * rng.lognormal(1, 1, 40)


def test_default_finds_edges_among_columns_of_unequal_scales(expression):
    true, x = expression

    def precision(**settings):
        best = SmoothGraph(degree=4, **settings).fit(x).edge_table().head(20)
        return true[best["source"], best["target"]].mean()

    with pytest.warns(InputWarning, match="unequal scales"):
        assert precision(preprocess=None) < 0.4  # 0.2, as before there was a default
    assert precision() >= 0.8
    assert precision(metric="correlation") >= 0.8


def test_units_and_baselines_do_not_matter(expression):
    _, x = expression
    changed = SmoothGraph(degree=4).fit(x * np.geomspace(1, 1e3, 40) + 7)
    np.testing.assert_allclose(
        changed.adjacency_, SmoothGraph(degree=4).fit(x).adjacency_, atol=1e-6
    )


def test_score_is_the_best_gaussian_likelihood(rng):
    x = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    model = SmoothGraph(preprocess=None).fit(x[:30])
    new, identity = x[30:] - x[30:].mean(0), np.eye(5)

    def by_scipy(logs):
        precision = np.exp(logs[0]) * model.laplacian_ + np.exp(logs[1]) * identity
        return -multivariate_normal(cov=np.linalg.inv(precision)).logpdf(new).mean()

    best = minimize(by_scipy, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-7}).fun
    assert model.score(x[30:]) == pytest.approx(-best, abs=1e-5)
    assert clone(model).set_params(delta=9.0).fit(x[:30]).score(x[30:]) == pytest.approx(-best)


def test_score_chooses_by_cross_validation(signals):
    search = GridSearchCV(SmoothGraph(), {"degree": [2, 5]}, cv=3).fit(signals[:200])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert not hasattr(SmoothGraph(metric="precomputed"), "score")


def test_pipeline_sets_output(frame):
    pipe = make_pipeline(StandardScaler(), SmoothGraph()).set_output(transform="pandas").fit(frame)
    assert pipe[-1].node_names_ == NAMES
    assert not hasattr(pipe, "transform")


@pytest.mark.parametrize("way", ["sqrt", "none", 3])
def test_unknown_preprocess_is_refused(frame, way):
    with pytest.raises(ValueError, match="preprocess must be one of"):
        SmoothGraph(preprocess=way).fit(frame)


def test_theta_and_resamples_are_bounded():
    x = np.random.default_rng(0).normal(size=(20, 5))
    for theta in (1e100, 1e-300):
        with pytest.raises(ValueError, match=r"theta must be from .* to .* with these distances"):
            SmoothGraph(theta=theta).fit(x)
    with pytest.raises(ValueError, match=r"bootstrap must be a whole number.* at most 100,000"):
        SmoothGraph(bootstrap=10**12).fit(x)
