"""Boosted trees as arrays."""

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier

from edgebelief.amortise import trees


def test_arrays_give_what_scikit_learn_gives(rng, monkeypatch):
    monkeypatch.setattr(trees, "TREES", 7)
    x = rng.normal(size=(300, 10)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(float)
    weight = rng.uniform(0.5, 2.0, 300)
    model = GradientBoostingClassifier(
        n_estimators=7,
        max_depth=trees.DEPTH,
        learning_rate=trees.RATE,
        subsample=trees.ROWS,
        max_features=trees.COLUMNS,
        min_samples_leaf=trees.LEAF,
        random_state=3,
    ).fit(x, y, sample_weight=weight)
    found = trees.grow(3, x, y, weight).log_odds(x)
    expected = model.decision_function(x)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)
