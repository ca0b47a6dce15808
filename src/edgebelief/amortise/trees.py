"""Boosted trees as arrays: log odds that are a sum over small trees, one leaf of each.

scikit-learn grows them (`grow`); evaluated here they need no pickle and no version of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

# 200 trees of depth 4 see interactions of four features; each is grown on half of the rows and
# chooses among a fifth of the columns at every split, so that no few columns decide alone. These
# are usual values, and scores change little around them.
TREES, DEPTH, RATE, ROWS, COLUMNS, LEAF = 200, 4, 0.1, 0.5, 0.2, 8


class Trees(NamedTuple):
    """Each array has a row for a tree and a column for a node; shorter trees are filled with 0."""

    feature: Int[np.ndarray, "trees nodes"]
    """Which column a node asks about; -1 for a leaf."""
    threshold: Float[np.ndarray, "trees nodes"]
    left: Int[np.ndarray, "trees nodes"]
    """Where to go if the column is at most the threshold."""
    right: Int[np.ndarray, "trees nodes"]
    value: Float[np.ndarray, "trees nodes"]
    """The share of a leaf in the sum."""

    def log_odds(self, x: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, " rows"]:
        """Return the sum over trees, up to a constant.

        Examples
        --------
        >>> import numpy as np
        >>> from edgebelief.amortise.trees import Trees
        >>> asks, ends = np.array([[0, -1, -1]]), np.array([[0.5, 0.0, 0.0]])
        >>> stump = Trees(asks, ends, asks + 1, asks + 2, np.array([[0.0, -1.0, 1.0]]))
        >>> stump.log_odds(np.array([[0.0], [2.0]]))
        array([-1.,  1.])
        """
        x = x.astype(np.float32)
        total = np.zeros(len(x))
        rows, tree = np.arange(len(x))[:, None], np.arange(len(self.feature))
        at = np.zeros((len(x), len(self.feature)), int)
        while True:
            asked = self.feature[tree, at].astype(int)
            if (asked < 0).all():
                break
            is_left = x[rows, np.maximum(asked, 0)] <= self.threshold[tree, at]
            below = np.where(is_left, self.left[tree, at], self.right[tree, at])
            at = np.where(asked < 0, at, below)
        total += self.value[tree, at].astype(float).sum(1)
        return total


def grow(
    seed: int,
    x: Float[np.ndarray, "rows columns"],
    y: Float[np.ndarray, " rows"],
    weight: Float[np.ndarray, " rows"],
) -> Trees:
    """Grow trees that tell rows with y = 1 from those with y = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.trees import grow
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> trees = grow(0, x, (x[:, 0] > 0.7).astype(float), np.ones(200))
    >>> trees.log_odds(np.array([[0.1], [0.9]])).round() > 0
    array([False,  True])
    """
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(
        n_estimators=TREES,
        max_depth=DEPTH,
        learning_rate=RATE,
        subsample=ROWS,
        max_features=COLUMNS if x.shape[1] * COLUMNS >= 1 else None,
        min_samples_leaf=LEAF,
        random_state=seed,
    ).fit(x, y, sample_weight=weight)
    grown = [one.tree_ for one in model.estimators_[:, 0]]
    shape = len(grown), max(tree.node_count for tree in grown)
    arrays = Trees(
        np.full(shape, -1, np.int16),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.int16),
        np.zeros(shape, np.int16),
        np.zeros(shape, np.float32),
    )
    for k, tree in enumerate(grown):
        is_node = tree.children_left >= 0
        count = tree.node_count
        arrays.feature[k, :count] = np.where(is_node, tree.feature, -1)
        arrays.threshold[k, :count] = np.where(is_node, tree.threshold, 0.0)
        arrays.left[k, :count] = np.where(is_node, tree.children_left, 0)
        arrays.right[k, :count] = np.where(is_node, tree.children_right, 0)
        arrays.value[k, :count] = np.where(is_node, 0.0, RATE * tree.value[:, 0, 0])
    return arrays
