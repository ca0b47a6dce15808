"""MutualInformation: dependence of any form between the signals of two nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ..validate import check_least
from .base import Evidence, OnPairs, Values


@dataclass(frozen=True)
class MutualInformation(Evidence):
    """Mutual information of signals cut into bins of equal counts, as a correlation.

        I = sum_uv p_uv log(p_uv / (p_u p_v)) - (B_i - 1)(B_j - 1)/(2 P)
        channel:  sign(I) sqrt(1 - exp(-2 |I|))    in (-1, 1)

    What is subtracted is about the expectation if the two were independent (B_i: the bins of node i
    that are not empty). For normal signals I = -log(1 - r^2)/2, and the channel is |r|,
    up to the bins.

    Missing values: over the signals that both nodes have. Time is that of the product of all
    indicators of bins: O(P (N B)^2).

    Parameters
    ----------
    bins : int
        The largest number of bins B; there are at least five signals to a cell of a table of B^2.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import MutualInformation
    >>> x = np.random.default_rng(0).normal(size=(1000, 3))
    >>> x[:, 1] = x[:, 0] ** 2  # uncorrelated, but not independent
    >>> (channel,) = MutualInformation().of(x)
    >>> (channel[0, 1] > 0.9), abs(channel[0, 2]) < 0.15
    (np.True_, np.True_)
    """

    bins: int = 8

    name = "mutual-information"
    needs_signals = True

    def __post_init__(self) -> None:
        check_least(self, bins=2)

    @property
    def channels(self) -> tuple[str, ...]:
        return ("mutual information",)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        n_signals, n_nodes = values.shape
        n_bins = int(np.clip(np.sqrt(n_signals / 5), 2, self.bins))
        own = np.maximum((~np.isnan(values)).sum(0), 1)
        ranks = rankdata(values, axis=0, nan_policy="omit")
        place = np.ceil(ranks * n_bins / (own + 1)) - 1  # NaN is in no bin
        indicators = np.stack([place == b for b in range(n_bins)], 1).astype(np.float32)
        flat = indicators.reshape(n_signals, n_bins * n_nodes)
        # counts[u, i, v, j]: signals in bin u of node i and in bin v of node j
        counts = (flat.T @ flat).astype(float).reshape(n_bins, n_nodes, n_bins, n_nodes)
        # In one layout for (i, j) and (j, i), so that rounding is symmetric.
        common = np.maximum(counts.sum((0, 2)), 1)
        of_first, of_second = counts.sum(2), counts.sum(0)
        entropies = _plogp(of_first).sum(0) + _plogp(of_second).sum(1)
        information = (_plogp(counts).sum((0, 2)) - entropies) / common + np.log(common)
        filled = (of_first > 0).sum(0) - 1, (of_second > 0).sum(1) - 1
        information -= np.maximum(filled[0] * filled[1], 0) / (2 * common)
        information = (information + information.T) / 2
        size = np.sqrt(-np.expm1(-2 * np.abs(information)))
        return (np.sign(information) * size,)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + (3e-8 + 3e-11 * n_signals) * (self.bins * n_nodes) ** 2


def _plogp(counts: np.ndarray) -> np.ndarray:
    return counts * np.log(np.maximum(counts, 1))
