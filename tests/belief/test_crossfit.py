"""Each label is predicted by a fit that has not seen it."""

import numpy as np
import pytest

from edgebelief.belief import EdgeBelief, Predictions, cross_predict
from edgebelief.belief.crossfit import folds
from edgebelief.data import GraphDataset


@pytest.fixture
def data(rng):
    labels = [rng.integers(0, 2, n).astype(float) for n in (21, 45)]
    labels[1][:3] = np.nan
    return GraphDataset([rng.random(21), rng.random(45)], labels)


@pytest.mark.parametrize("cv", ["nodes", "graphs"])
def test_each_known_label_is_scored_once_and_never_seen(data, cv):
    made = folds(0, data, cv)
    for t, record in enumerate(data):
        scored = sum(fold.test[t].known.astype(int) for fold in made)
        np.testing.assert_array_equal(scored, record.known)
        for fold in made:
            assert not (fold.train[t].known & fold.test[t].known).any()


def test_a_fit_sees_no_label_of_the_first_node_of_a_pair_it_predicts(data):
    for fold in folds(0, data, "nodes"):
        for train, test in zip(fold.train, fold.test, strict=True):
            rows, cols = train.support.endpoints
            held = np.unique(rows[test.known])
            assert not (np.isin(rows, held) | np.isin(cols, held))[train.known].any()


def test_beliefs_and_log_scores_come_from_the_fit_without_the_label(data):
    """Each fit predicts the share of edges among the labels that it has seen."""

    def share(train):
        return sum(r.a[r.known].sum() for r in train) / train.n_labels

    def fit_and_predict(train, test):
        beliefs = [EdgeBelief.of(np.full(r.e.size, share(train))) for r in test]
        return Predictions(test, beliefs, [float(r.known.sum()) for r in test])

    found = cross_predict(0, data, fit_and_predict)
    for fold in folds(0, data):
        for t, record in enumerate(fold.test):
            np.testing.assert_allclose(found[t].mean[record.known], share(fold.train))
    np.testing.assert_array_equal(found.log_scores, [21, 42])


def test_one_graph_cannot_be_held_out_as_a_whole(data):
    with pytest.raises(ValueError, match="hold out nodes"):
        folds(0, data[:1], "graphs")
