"""Profile: whether two nodes see the others alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Evidence, OnPairs, Values
from .numerics import ROUNDING


@dataclass(frozen=True)
class Profile(Evidence):
    """Correlation of the distances of two nodes to all other nodes.

        channel:  corr over k != i, j of (e_ik, e_jk)

    0 where a node is equally far from all others, and for three nodes or fewer, which have no two
    others. Time is that of one product: O(N^3).

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import Profile
    >>> x = np.array([0.0, 1.0, 5.0, 7.0])
    >>> (channel,) = Profile().of(np.abs(x[:, None] - x))
    >>> channel[0, 1:].round(3)  # 0 and 1 both find 2 nearer than 3
    array([ 1., -1., -1.])
    """

    name = "profile"

    @property
    def channels(self) -> tuple[str, ...]:
        return ("profile",)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        n = len(values) - 2  # others of a pair
        if n < 2:
            return (np.zeros_like(values),)
        # A constant changes no correlation. Less their means, sums of squares keep their digits.
        e = values - values.sum(1, keepdims=True) / (n + 1)
        np.fill_diagonal(e, 0.0)
        square = (e**2).sum(1, keepdims=True)
        first = e.sum(1, keepdims=True) - e  # [i, j]: of i, over all k but i and j
        variance = square - e**2 - first**2 / n
        variance[variance <= ROUNDING * square] = 0.0
        cross = e @ e.T - first * first.T / n
        scale = np.sqrt(variance) * np.sqrt(variance.T)
        result = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0)
        return (np.clip(result / 2 + result.T / 2, -1.0, 1.0),)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 1e-9 * n_nodes**3
