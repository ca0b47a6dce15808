"""What a user would do instead: classifiers on features of pairs, and nearest neighbours.

A rival takes a `Problem` and a seed, and returns the probability of every pair of the test graphs,
one graph after the other. `as_predictions` turns these into predictions that can be scored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from edgebelief.belief import EdgeBelief, Predictions
from edgebelief.data import Ensemble, GraphDataset, adjacency_of, distances, smooth_signals
from edgebelief.readouts.features import OF_DISTANCES, pair_features

from .models import log_score

Features = Callable[[GraphDataset], np.ndarray]


class Problem(NamedTuple):
    """Training and test graphs, and the signals behind each where there are any."""

    train: GraphDataset
    test: GraphDataset
    signals: tuple[list[np.ndarray], list[np.ndarray]] | None = None


Rival = Callable[[Problem, int], np.ndarray]


class Classifier(Protocol):
    """A classifier of scikit-learn."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Classifier:
        """Learn from features and labels."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""


def from_signals(
    ensemble: Ensemble, draw: int, n_train: int, n_test: int, n_nodes: int, n_signals: int
) -> Problem:
    """Draw graphs and smooth signals on them; distances are those of the signals."""
    keys = range(1000 * draw, 1000 * draw + n_train + n_test)
    graphs = [ensemble.sample(key, n_nodes) for key in keys]
    signals = [
        smooth_signals(key, graph, n_signals) for key, graph in zip(keys, graphs, strict=True)
    ]
    data = GraphDataset(
        [distances(x) for x in signals], [adjacency_of(g) for g in graphs], n_signals=n_signals
    )
    return Problem(data[:n_train], data[n_train:], (signals[:n_train], signals[n_train:]))


def labels(data: GraphDataset) -> np.ndarray:
    """Return the labels of all pairs of all graphs."""
    return np.concatenate([record.a for record in data])


def distance(data: GraphDataset) -> np.ndarray:
    """Return the distance of each pair, as the only feature."""
    return np.concatenate([record.e for record in data])[:, None]


def features_of_pairs(data: GraphDataset) -> np.ndarray:
    """Return what the additive readout uses: features of distances, and the pairs' covariates."""
    parts = [
        np.column_stack([
            pair_features(r.e[None], r.support, OF_DISTANCES)[0], *r.covariates.values()
        ])
        for r in data
    ]  # fmt: skip
    return np.concatenate(parts)


def channels(prefix: str) -> Features:
    """Return a function that returns the covariates whose names begin with `prefix`."""

    def of(data: GraphDataset) -> np.ndarray:
        names = [name for name in data[0].covariates if name.startswith(prefix)]
        return np.concatenate([np.column_stack([r.covariates[n] for n in names]) for r in data])

    return of


def classify(problem: Problem, features: Features, classifier: Classifier) -> np.ndarray:
    """Fit a classifier to the training pairs, and return the probabilities of the test pairs."""
    classifier.fit(features(problem.train), labels(problem.train))
    return classifier.predict_proba(features(problem.test))[:, 1]


def plain_logistic() -> Classifier:
    """Return a logistic regression that is hardly regularised."""
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression(C=1e4, max_iter=2000))


def _scaled(classifier: Classifier) -> Classifier:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), classifier)


def by_distance(problem: Problem, seed: int = 0) -> np.ndarray:
    """Fit a logistic regression on the distance alone."""
    return classify(problem, distance, plain_logistic())


def ridge_logistic() -> Classifier:
    """Return a logistic regression with cross-validated ridge."""
    from sklearn.linear_model import LogisticRegressionCV

    model = LogisticRegressionCV(
        Cs=np.logspace(-4, 4, 9), cv=5, scoring="neg_log_loss", max_iter=2000,
        l1_ratios=(0,), use_legacy_attributes=False,
    )  # fmt: skip
    return _scaled(model)


def by_logistic(problem: Problem, seed: int = 0) -> np.ndarray:
    """Fit a logistic regression, with cross-validated ridge, on the features of pairs."""
    return classify(problem, features_of_pairs, ridge_logistic())


def by_boosting(problem: Problem, seed: int = 0) -> np.ndarray:
    """Fit boosted trees on the features of pairs."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(random_state=seed, early_stopping=True)
    return classify(problem, features_of_pairs, model)


def by_tuned_boosting(problem: Problem, seed: int = 0) -> np.ndarray:
    """Fit boosted trees whose size and number are chosen by cross-validation of the log score."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import GridSearchCV

    model = GridSearchCV(
        HistGradientBoostingClassifier(learning_rate=0.05, max_iter=300, random_state=seed),
        {"max_leaf_nodes": [4, 16], "max_iter": [100, 300], "l2_regularization": [0, 10]},
        scoring="neg_log_loss",
        cv=3,
    )
    return classify(problem, features_of_pairs, model)


def by_forest(problem: Problem, seed: int = 0) -> np.ndarray:
    """Fit a random forest; leaves of three pairs or more, so that no probability is 0 for one."""
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(500, min_samples_leaf=3, random_state=seed)
    return classify(problem, features_of_pairs, model)


def by_neighbours(problem: Problem, seed: int = 0) -> np.ndarray:
    """Join nearest neighbours: k and the two frequencies maximise the training likelihood."""
    rank, a = _smaller_rank(problem.train), labels(problem.train)

    def frequencies(k: int) -> np.ndarray:
        sides = (rank > k, rank <= k)
        return np.array([(a[side].sum() + 0.5) / (side.sum() + 1) for side in sides])

    def likelihood(k: int) -> float:
        return log_score(a, frequencies(k)[(rank <= k) * 1])

    best = max(range(1, int(rank.max()) + 1), key=likelihood)
    return frequencies(best)[(_smaller_rank(problem.test) <= best) * 1]


def _smaller_rank(data: GraphDataset) -> np.ndarray:
    """Return the rank of each pair among its first or its second node's, whichever is smaller."""
    parts = []
    for record in data:
        matrix = record.distance_matrix()
        np.fill_diagonal(matrix, -np.inf)
        rank = np.argsort(np.argsort(matrix, 1), 1)
        i, j = record.support.endpoints
        parts.append(np.minimum(rank[i, j], rank[j, i]))
    return np.concatenate(parts)


RIVALS: dict[str, Rival] = {
    "boosting": by_boosting,
    "logistic": by_logistic,
    "distance": by_distance,
    "kNN graph": by_neighbours,
}


def as_predictions(data: GraphDataset, p: np.ndarray) -> Predictions:
    """Make predictions from probabilities: pairs are independent, and none is certain."""
    ends = np.cumsum([record.e.size for record in data])[:-1]
    beliefs = [EdgeBelief.of(np.clip(part, 1e-6, 1 - 1e-6)) for part in np.split(p, ends)]
    return Predictions(data, beliefs, independent_log_scores(data, beliefs))


def independent_log_scores(
    data: GraphDataset, beliefs: Predictions | list[EdgeBelief]
) -> np.ndarray:
    """Return the log probability of each graph's labels if pairs are independent."""
    return np.array([log_score(r.a, b.mean) for r, b in zip(data, beliefs, strict=True)])
