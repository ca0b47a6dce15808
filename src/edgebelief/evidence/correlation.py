"""From signals, correlations: signed, of ranks, and partial by a shrunken covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..edges import Support
from .base import Evidence, OnEdges, OnPairs, Values
from .numerics import at_pairs, correlation, partial_at, standardised, with_few_rows
from .precision import partial_correlation


@dataclass(frozen=True)
class SignedCorrelation(Evidence):
    """Pearson correlation with its sign, which the distance 1 - |correlation| forgets.

    Missing values: over the signals that both nodes have. 0 for a constant node. Time is that of
    some products: O(P N^2).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import SignedCorrelation
    >>> (channel,) = SignedCorrelation().of(np.array([[1.0, 3.0], [2.0, 1.0], [3.0, -1.0]]))
    >>> channel.round(6)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    name = "correlation"
    needs_signals = True

    @property
    def channels(self) -> tuple[str, ...]:
        return ("correlation",)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        return (correlation(values),)

    def of_candidates(self, e: OnEdges, support: Support, signals: Any) -> tuple[OnEdges, ...]:
        x = standardised(signals)
        return (at_pairs(x, *support.endpoints) / len(x),)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 2e-9 * n_signals * n_nodes**2

    def seconds_of_candidates(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 3e-7 * n_signals * n_nodes


@dataclass(frozen=True)
class RankCorrelation(Evidence):
    """Spearman's correlation: of ranks, so that monotone relations and outliers do no harm.

    Missing values: each node's values are ranked among its own, and the ranks are correlated over
    the signals that both nodes have. 0 for a constant node. Time is that of some products:
    O(P N^2).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import RankCorrelation
    >>> (channel,) = RankCorrelation().of(np.array([[1.0, 1.0], [2.0, 8.0], [3.0, 9000.0]]))
    >>> channel.round(6)
    array([[1., 1.],
           [1., 1.]])
    """

    name = "rank-correlation"
    needs_signals = True

    @property
    def channels(self) -> tuple[str, ...]:
        return ("rank correlation",)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        return (correlation(rankdata(values, axis=0, nan_policy="omit")),)

    def of_candidates(self, e: OnEdges, support: Support, signals: Any) -> tuple[OnEdges, ...]:
        x = standardised(rankdata(signals, axis=0))
        return (at_pairs(x, *support.endpoints) / len(x),)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 2e-9 * n_signals * n_nodes**2

    def seconds_of_candidates(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 3e-7 * n_signals * n_nodes


@dataclass(frozen=True)
class PartialCorrelation(Evidence):
    """Partial correlation by the shrunken covariance of Ledoit and Wolf, of standardised signals.

        K = ((1 - s) C + s I)^-1        C the correlations, s estimated
        channel:  -K_ij / sqrt(K_ii K_jj)    in [-1, 1]

    Missing values: taken to be the node's mean. 0 for a constant node. Time is that of a product
    and an inverse: O(P N^2 + N^3).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import PartialCorrelation
    >>> x = np.random.default_rng(0).normal(size=(10_000, 3)).cumsum(1)  # a chain 0 - 1 - 2
    >>> (channel,) = PartialCorrelation().of(x)
    >>> (channel[0, 1] > 0.4), abs(channel[0, 2]) < 0.02
    (np.True_, np.True_)
    """

    name = "partial-correlation"
    needs_signals = True

    @property
    def channels(self) -> tuple[str, ...]:
        return ("partial correlation",)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        from sklearn.covariance import ledoit_wolf

        x = standardised(values)
        if len(x) < 2:
            return (np.zeros((x.shape[1],) * 2),)
        covariance, _ = ledoit_wolf(x, assume_centered=True)
        eigenvalues, vectors = np.linalg.eigh(covariance)
        # None below a millionth: there may be no shrinkage, and constant nodes have no variance.
        precision = (vectors / np.maximum(eigenvalues, 1e-6)) @ vectors.T
        return (partial_correlation(precision),)

    def of_candidates(self, e: OnEdges, support: Support, signals: Any) -> tuple[OnEdges, ...]:
        from sklearn.covariance import ledoit_wolf_shrinkage

        x = standardised(signals)
        if len(x) < 2:
            return (np.zeros(support.n_edges),)
        shrinkage = float(ledoit_wolf_shrinkage(x, assume_centered=True))
        kept = max(1 - shrinkage, 1e-12)
        # Over what is kept, the shrunken covariance is C + c I; c as for the floor above.
        c = max(shrinkage * float((x**2).mean()), 1e-6) / kept
        return (partial_at(with_few_rows(x), c, *support.endpoints),)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 5e-9 * n_signals * n_nodes**2 + 2e-9 * n_nodes**3

    def seconds_of_candidates(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 3e-7 * n_signals * n_nodes + 1e-9 * n_nodes * min(n_nodes, n_signals) ** 2
