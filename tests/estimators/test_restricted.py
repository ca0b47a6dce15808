"""SmoothGraph on candidate pairs: against all pairs, and its certificate against brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

from edgebelief import solve
from edgebelief.data import distances, nearest_pairs
from edgebelief.data.neighbours import Points
from edgebelief.data.signals import Metric
from edgebelief.edges import Complete, Restricted
from edgebelief.estimators import SmoothGraph, certificate
from edgebelief.estimators.certificate import certify, violators_at

METRICS = Metric.__args__


def surface(n_nodes, rng, noise=0.05):
    """Signals of points near a surface of two dimensions in eight, some of them far from it."""
    at = np.sin(rng.uniform(size=(n_nodes, 2)) @ rng.normal(size=(2, 8)) * 2)
    at += noise * rng.normal(size=at.shape)
    at[:: max(n_nodes // 5, 1)] *= 3
    return at.T


def violators_by_brute_force(signals, metric, solution):
    """All pairs outside the support with (lam_i + lam_j)/2 > theta e_ij, as a set."""
    n_nodes = signals.shape[1]
    rows, cols = np.triu_indices(n_nodes, k=1)
    lam = solution.duals
    positive = (lam[rows] + lam[cols]) / 2 > solution.theta * distances(signals, metric)
    inside = set(zip(*map(list, solution.support.endpoints), strict=True))
    return {(i, j) for i, j in zip(rows[positive], cols[positive], strict=True)} - inside


@pytest.mark.parametrize("how", ["tree", "blocks"])
@pytest.mark.parametrize("metric", METRICS)
def test_violators_are_those_of_brute_force(how, metric, rng, monkeypatch):
    signals = surface(150, rng)
    support, e = nearest_pairs(signals, 3, metric)
    theta = 0.3 / np.median(np.abs(e))
    solution = solve(e, theta, support=support)
    expected = violators_by_brute_force(signals, metric, solution)
    assert len(expected) > 20
    monkeypatch.setattr(certificate, "SIDE", 64)
    monkeypatch.setattr(certificate, "AT_ONCE", 40)
    monkeypatch.setattr(certificate, "suits_a_tree", lambda *_: how == "tree")
    points, everywhere = Points(signals, metric), np.arange(150)
    found = violators_at(points, solution, everywhere)
    assert set(zip(*found, strict=True)) == expected
    assert len(found[0]) == len(expected)
    report = certify(points, solution, everywhere)
    assert report.violators == len(expected)
    assert report.share == len(expected) / (len(expected) + solution.n_edges)
    assert not report.exact


def test_a_sample_reports_the_violators_at_its_nodes(rng):
    signals = surface(120, rng)
    support, e = nearest_pairs(signals, 2)
    solution = solve(e, 0.3 / np.median(e), support=support)
    nodes = np.sort(rng.choice(120, 30, replace=False))
    report = certify(Points(signals), solution, nodes)
    expected = violators_by_brute_force(signals, "sqeuclidean", solution)
    assert report.violators == sum(i in nodes or j in nodes for i, j in expected) > 0
    assert (report.nodes_checked, report.n_nodes) == (30, 120)
    assert not report.exact


@pytest.mark.parametrize("metric", METRICS)
def test_exact_candidates_give_the_graph_on_all_pairs(metric, rng):
    signals = surface(80, rng)
    theta = 0.3 / np.median(np.abs(distances(signals, metric)))
    settings = {"theta": theta, "metric": metric, "preprocess": None}
    everything = SmoothGraph(**settings).fit(signals)
    near = SmoothGraph(support="knn", n_neighbors=3, exact=True, **settings).fit(signals)
    assert issparse(near.adjacency_)
    for name in ("adjacency_", "laplacian_"):
        ours, theirs = getattr(near, name).toarray(), getattr(everything, name)
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    assert near.certificate_.exact
    assert near.certificate_.n_added > 0
    assert near.density_ == everything.density_
    first, second = near.edge_table(), everything.edge_table()
    pd.testing.assert_frame_equal(first, second, atol=1e-8, check_dtype=False)
    assert near.score(signals) == pytest.approx(everything.score(signals), rel=1e-8)
    assert near.to_networkx().number_of_edges() == everything.n_edges_


@pytest.mark.slow
@pytest.mark.parametrize("support", ["enough", "too few"])
def test_two_thousand_nodes_equal_the_dense_graph(support, rng):
    """Show 1 of the restricted support: to 1e-8, and violators as brute force has them."""
    signals = surface(2000, rng)
    theta = SmoothGraph(degree=6, support="knn").fit(signals).theta_
    everything = SmoothGraph(theta=theta).fit(signals)
    k = 20 if support == "enough" else 4
    settings = {"theta": theta, "support": "knn", "n_neighbors": k}
    exact = SmoothGraph(exact=True, **settings).fit(signals)
    assert exact.certificate_.exact
    assert abs(exact.adjacency_ - everything.adjacency_).max() <= 1e-8
    plain = SmoothGraph(**settings).fit(signals)
    z = (signals - signals.mean(0)) / signals.std(0)
    expected = violators_by_brute_force(z, "sqeuclidean", plain.solution_)
    found = violators_at(Points(z), plain.solution_, np.arange(2000))
    assert set(zip(*found, strict=True)) == expected
    assert (len(expected) > 1000) == (support == "too few")


def test_wanted_degree_on_candidates(rng):
    model = SmoothGraph(degree=4, support="knn", n_neighbors=8).fit(surface(60, rng))
    assert model.n_edges_ == 120
    assert [stage.name for stage in model.stages_] == [
        *("signals", "candidates", "theta and solve", "certificate")
    ]
    assert all(stage.seconds >= 0 for stage in model.stages_)


def test_a_given_list_of_pairs_is_the_support(rng):
    signals = surface(30, rng)
    ring = Restricted.from_pairs([(i, (i + k) % 30) for i in range(30) for k in (1, 2)])
    model = SmoothGraph(support=ring, preprocess=None).fit(signals)
    e = ring.to_vector(Complete(30).to_matrix(distances(signals)))
    np.testing.assert_allclose(
        model.adjacency_.toarray(), solve(e, 1.0, support=ring).adjacency(), atol=1e-12
    )
    with pytest.raises(ValueError, match="support is on 30 nodes, and there are signals of 29"):
        clone(model).fit(signals[:, 1:])


def test_precomputed_distances_dense_and_sparse(rng):
    signals = surface(40, rng)
    support, e = nearest_pairs(signals, 6)
    expected = solve(e, 1.0, support=support).adjacency()
    matrix = Complete(40).to_matrix(distances(signals))
    upper = csr_array((e, support.endpoints), shape=(40, 40))
    for X in (matrix, upper, upper + upper.T):
        model = SmoothGraph(theta=1.0, metric="precomputed", support="knn", n_neighbors=6).fit(X)
        np.testing.assert_allclose(model.adjacency_.toarray(), expected, atol=1e-8)
        assert model.certificate_ is None


def test_a_pipeline_from_neighbours(rng):
    points = surface(50, rng).T
    settings = {"theta": 1.0, "metric": "precomputed", "support": "knn"}
    model = make_pipeline(
        KNeighborsTransformer(n_neighbors=5, mode="distance"), SmoothGraph(**settings)
    ).fit(points)
    pairs = nearest_pairs(points.T, 5)[0]
    assert (model[-1].solution_.support.n_edges, pairs.n_nodes) == (pairs.n_edges, 50)


def test_bootstrap_on_candidates_is_that_of_all_pairs_where_these_are_candidates(rng):
    signals = surface(12, rng, noise=0.3)
    settings = {"theta": 1.0, "bootstrap": 5, "random_state": 0}
    everything = SmoothGraph(**settings).fit(signals)
    listed = SmoothGraph(support="knn", n_neighbors=11, **settings).fit(signals)
    np.testing.assert_allclose(
        listed.edge_frequencies_.toarray(), everything.edge_frequencies_, atol=1e-12
    )
    np.testing.assert_allclose(listed.edge_table().frequency, everything.edge_table().frequency)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"support": "near"}, "support must be one of"),
        ({"exact": True}, "support 'complete' has all pairs"),
        ({"support": "knn", "metric": distances}, "metric must be a name"),
        ({"support": "knn", "missing": "pairwise"}, "missing must be 'error'"),
        ({"support": "knn", "n_neighbors": 0}, "n_neighbors must be a whole number"),
        ({"support": "knn", "metric": "precomputed", "exact": True}, "has no signals"),
        ({"tol": -1.0}, "tol must be at least 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message, rng):
    with pytest.raises(ValueError, match=message):
        SmoothGraph(**settings).fit(surface(10, rng))


def test_sparse_matrices_that_are_no_distances_of_candidates_are_refused(rng):
    ring = csr_array(([1.0, 2, 3], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    precomputed = {"metric": "precomputed", "support": "knn"}
    with pytest.raises(ValueError, match="can only be distances of candidate pairs"):
        SmoothGraph().fit(ring)
    both = csr_array(([1.0, 2, 3, 5], ([0, 1, 2, 1], [1, 2, 0, 0])), shape=(3, 3))
    with pytest.raises(ValueError, match=r"X\[1, 0\] is 5, and the other way round 1"):
        SmoothGraph(**precomputed).fit(both)
    with pytest.raises(ValueError, match="every node needs a candidate edge"):
        SmoothGraph(**precomputed).fit(csr_array(([1.0], ([0], [1])), shape=(3, 3)))
    with pytest.raises(ValueError, match="must be a square matrix"):
        SmoothGraph(**precomputed).fit(csr_array(([1.0], ([0], [1])), shape=(3, 4)))


def test_a_score_of_too_many_nodes_is_refused(rng, monkeypatch):
    from edgebelief.estimators import smooth

    model = SmoothGraph(support="knn", n_neighbors=5).fit(signals := surface(30, rng))
    monkeypatch.setattr(smooth, "MOST_SCORED", 29)
    with pytest.raises(ValueError, match="all eigenvalues of the Laplacian, of up to 29 nodes"):
        model.score(signals)
