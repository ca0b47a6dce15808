"""Scores of a learner: per edge, weighted, on fitted and on held-out labels; safe choices."""

import networkx as nx
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from edgebelief import GraphLearner, metrics
from edgebelief.belief import BeliefWarning
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.data.signals import adjacency_of, expected_distances
from edgebelief.infer import Exact

QUICK = {"depth": 10, "inference": Exact(tol=0.5), "readout": "affine"}


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=100)


@pytest.fixture(scope="module")
def learner(data):
    return GraphLearner(**QUICK).fit(data[:4])


def test_the_per_edge_score_is_the_sum_of_log_probabilities(learner, data):
    p = [learner.predict_proba(record) for record in data[4:]]
    upper = np.triu_indices(8, 1)
    a = [record.label_matrix()[upper] for record in data[4:]]
    each = [
        np.log(np.where(y == 1, q[upper], 1 - q[upper])).sum() for y, q in zip(a, p, strict=True)
    ]
    assert learner.score(data[4:], scoring="edges") == pytest.approx(np.mean(each), rel=1e-6)
    weighted = learner.score(data[4:], scoring="edges", sample_weight=[3, 1])
    assert weighted == pytest.approx((3 * each[0] + each[1]) / 4, rel=1e-6)
    report = learner.calibration_report(data[4:])
    assert report.as_dict()["edge_nll"] == pytest.approx(-np.mean(each), rel=1e-6)


def test_a_label_that_single_precision_rules_out_has_a_finite_score():
    from edgebelief.belief import EdgeBelief, Predictions

    graph = GraphDataset([[1.0, 2.0, 3.0]], [[0, 1, 1]])
    of_edges = EdgeBelief.of([1.0, 1.0, 0.0])
    found = metrics.edge_nll(Predictions(graph, [of_edges], [0.0]))
    assert found == pytest.approx(2 * 24 * np.log(2))


def test_scores_of_fitted_labels_warn_and_others_do_not(learner, data):
    for method in (learner.score, learner.calibration_report):
        with pytest.warns(BeliefWarning, match="the model was fitted to"):
            method(data[:4])
        method(data[4:])


def test_some_fitted_graphs_are_noticed_and_those_of_weight_zero_are_not_fitted(data):
    learner = GraphLearner(**QUICK).fit(data[:4], sample_weight=[1, 1, 0, 0])
    learner.score(data[2:])
    with pytest.warns(BeliefWarning, match=r"1 of these 5 graphs \(by index: 0\) were fitted"):
        learner.score(data[1:])


def test_held_out_nodes_score_lower_than_fitted_ones(learner, data):
    fitted = learner.posterior_
    held_out = learner.score(data[:1], cv="nodes", scoring="edges")
    with pytest.warns(BeliefWarning):
        assert held_out < GraphLearner(**QUICK).fit(data[:1]).score(data[:1], scoring="edges")
    assert learner.posterior_ is fitted


def test_scikit_learn_scores_edges_and_predicts_probabilities(data):
    X = np.stack([record.distance_matrix() for record in data])
    A = np.stack([record.label_matrix() for record in data])
    blank = GraphLearner(**QUICK)
    scores = cross_val_score(blank, X, A, cv=2, scoring=metrics.edge_scorer)
    p = cross_val_predict(blank, X, A, cv=2, method="predict_proba")
    q = np.where(A == 1, p, 1 - p)[:, *np.triu_indices(8, 1)]
    np.testing.assert_allclose(np.log(q).sum(1).reshape(2, 3).mean(1), scores, rtol=1e-5)


def test_size_aware_refuses_graphs_whose_density_falls_with_their_size():
    """Rings have a mean degree of 2 whatever their size."""
    rings = [nx.cycle_graph(n) for n in (5, 10, 20, 50)]
    e, a = [expected_distances(g) for g in rings], [adjacency_of(g) for g in rings]
    with pytest.raises(ValueError, match=r"50% at 5 nodes, 4% at 50.*Leave size_aware out"):
        GraphLearner(size_aware=True).fit(GraphDataset(e, a))


def test_weights_are_routed_to_fit_and_score(data):
    """As scikit-learn routes metadata; the score is the weighted mean over graphs."""
    X = np.stack([record.distance_matrix() for record in data])
    A = np.stack([record.label_matrix() for record in data])
    weights, train, test = np.array([1, 0, 2, 1, 2, 1.0]), np.arange(3), np.arange(3, 6)
    blank = GraphLearner(**QUICK)
    with config_context(enable_metadata_routing=True):
        routed = clone(blank).set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True)
        cv = [(train, test)]
        (found,) = cross_val_score(routed, X, A, cv=cv, params={"sample_weight": weights})
    blank.fit(X[train], A[train], sample_weight=weights[train])
    assert found == pytest.approx(blank.score(X[test], A[test], sample_weight=weights[test]))


def test_a_pipeline_has_the_learners_classes_and_no_transform(data):
    pipe = make_pipeline(FunctionTransformer(), GraphLearner(**QUICK))
    X = np.stack([record.distance_matrix() for record in data])
    pipe.fit(X, np.stack([record.label_matrix() for record in data]))
    assert pipe.classes_.tolist() == list(range(8))
    assert not hasattr(pipe, "transform")
    assert not hasattr(GraphLearner(), "set_output")  # nothing is transformed
