"""ForestImportance: how much a forest that predicts one node uses the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..validate import check_least
from .base import Evidence, OnPairs, Values
from .numerics import standardised

# Signals that a tree sees; of more it takes a random part, which bounds the time.
SIGNALS = 256
# Relative to the share of a node if all mattered alike: what keeps the logarithm of a share finite.
FLOOR = 0.01


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
        x = standardised(values)
        order = np.lexsort(x)
        x = np.ascontiguousarray(x[:, order])
        n_nodes = x.shape[1]
        rng = np.random.default_rng(self.seed)
        v = np.zeros((n_nodes, n_nodes))
        for j in range(n_nodes):
            others = np.arange(n_nodes) != j
            v[others, j] = self._importances(x[:, others], x[:, j], rng)
        explained = v.sum(0)
        v *= (n_nodes - 1) / np.where(explained > 0, explained, 1.0)
        channel = np.empty_like(v)
        channel[np.ix_(order, order)] = np.log(FLOOR + np.maximum(v, v.T))
        return (channel,)

    def _importances(
        self,
        x: Float[np.ndarray, "signals others"],
        y: Float[np.ndarray, " signals"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, " others"]:
        """Return how much of the variance of y each of the others explains, summed over trees.

        The trees are grown one by one: scikit-learn's forests change the warnings filter of the
        whole process, which is not safe in a thread.
        """
        from sklearn.tree import ExtraTreeRegressor

        total = np.zeros(x.shape[1])
        single = x.astype(np.float32)  # what trees compare
        for seed in rng.integers(2**31 - 1, size=self.n_trees):
            rows = rng.permutation(len(y))[:SIGNALS]
            # Leaves of three signals or more: smaller ones follow noise, and take time.
            tree = ExtraTreeRegressor(
                max_features="sqrt", min_samples_leaf=3, random_state=int(seed)
            ).fit(single[rows], y[rows, None], check_input=False)
            total += tree.tree_.compute_feature_importances(normalize=False)
        return total

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        n = min(n_signals, SIGNALS)
        return 1e-2 + n_nodes * self.n_trees * (5e-4 + 4e-7 * n * n_nodes**0.5)
