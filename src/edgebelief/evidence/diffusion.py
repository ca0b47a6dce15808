"""Diffusion: how easily a walk along small distances gets from one node to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SettingError
from .base import Evidence, OnPairs, Values
from .numerics import check_positive, off_diagonal, over_roots


@dataclass(frozen=True)
class Diffusion(Evidence):
    """Powers of a normalised affinity, each relative to its diagonal.

        W = exp(-(e - min e) / (c sd(e)))    S = D^-1/2 W D^-1/2,  d = W 1
        channel k:  (S^k)_ij / sqrt((S^k)_ii (S^k)_jj)    in [0, 1] for an even k

    Two nodes with a common surrounding have a large value, whatever their own distance. W has zeros
    on its diagonal: no step of the walk stays.

    Time is that of one eigendecomposition and, for each power, a product: O(N^3).

    Parameters
    ----------
    powers : tuple of int
        Even numbers k, one channel each.
    width : float
        c, in standard deviations of the distances.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import Diffusion
    >>> x = np.array([0, 0.1, 0.2, 5, 5.1, 5.2])  # two groups
    >>> (channel,) = Diffusion(powers=(8,), width=0.5).of(abs(x[:, None] - x))
    >>> channel[0].round(2)
    array([1.  , 0.99, 0.99, 0.2 , 0.2 , 0.2 ])
    """

    powers: tuple[int, ...] = (2, 8)
    width: float = 2.0

    name = "diffusion"

    def __post_init__(self) -> None:
        check_positive(self.powers, "powers")
        if any(k % 2 for k in self.powers):
            raise SettingError(f"must be even numbers; got {self.powers!r}.", argument="powers")
        check_positive((self.width,), "width")

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"diffusion {k}" for k in self.powers)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        e = off_diagonal(values)
        above = values - e.min()
        np.fill_diagonal(above, np.inf)
        w = np.exp(-above / (self.width * (e.std() or 1.0)))
        root = np.sqrt(w.sum(0))
        eigenvalues, vectors = np.linalg.eigh(w / np.outer(root, root))
        return tuple(over_roots((vectors * eigenvalues**k) @ vectors.T) for k in self.powers)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 2e-9 * n_nodes**3
