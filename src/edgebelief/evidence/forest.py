"""ForestImportance: how much a forest that predicts one node uses the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..validate import check_least
from .base import Evidence, OnPairs, Values
from .numerics import standardised


@dataclass(frozen=True)
class ForestImportance(Evidence):
    """Importance of a node's signal in a forest that predicts another's, as in GENIE3.

    For each node a forest of randomised trees predicts its signal from those of all others. v_ij is
    the share of the explained variance of j that is due to i, over 1/(N - 1), the share if all
    others mattered alike.

        channel:  log(0.01 + max(v_ij, v_ji))

    The nodes are put in an order that depends on their signals alone, so that relabelling nodes
    changes nothing (but for the random choice among nodes whose signals are identical). Missing
    values: taken to be the node's mean. A constant node has no importance.

    Time is that of N forests: O(N^1.5 n_trees n log n) with n = min(P, 256) signals to a tree.

    Parameters
    ----------
    n_trees : int
        Trees in each forest.
    seed : int

    References
    ----------
    Huynh-Thu, Irrthum, Wehenkel, Geurts: Inferring regulatory networks from expression data using
    tree-based methods. PLoS ONE 5 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import ForestImportance
    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> x[:, 1] += 3 * x[:, 0]
    >>> (channel,) = ForestImportance(n_trees=20).of(x)
    >>> channel[0, 1] > channel[0, 2]
    np.True_
    """

    n_trees: int = 50
    seed: int = 0

    name = "forest"
    needs_signals = True

    def __post_init__(self) -> None:
        check_least(self, n_trees=1, seed=0)

    @property
    def channels(self) -> tuple[str, ...]:
        return ("forest",)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        from sklearn.ensemble import ExtraTreesRegressor

        order = np.lexsort(values)
        x = standardised(values[:, order])
        n_signals, n_nodes = x.shape
        share = np.zeros((n_nodes, n_nodes))
        for j in range(n_nodes):
            others = np.arange(n_nodes) != j
            # Subsamples bound the time; fewer than 256 signals are all used.
            forest = ExtraTreesRegressor(
                self.n_trees, max_features="sqrt", min_samples_leaf=3, random_state=self.seed,
                bootstrap=n_signals > 256, max_samples=256 if n_signals > 256 else None,
            )  # fmt: skip
            forest.fit(x[:, others], x[:, j])
            share[j, others] = forest.feature_importances_ * (n_nodes - 1)
        channel = np.empty_like(share)
        channel[np.ix_(order, order)] = np.log(0.01 + np.maximum(share, share.T))
        return (channel,)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return n_nodes * self.n_trees * (1e-3 + 1e-6 * min(n_signals, 256) * np.sqrt(n_nodes))
