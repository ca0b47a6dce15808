"""Diffusion: how easily a walk along small distances gets from one node to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Evidence, OnPairs, Values
from .numerics import check_positive, off_diagonal, over_roots


@dataclass(frozen=True)
class Diffusion(Evidence):
    """Powers of a normalised affinity, each relative to its diagonal.

        W = exp(-(e - min e) / (c sd(e)))    S = D^-1/2 W D^-1/2,  d = W 1
        channel k:  (S^k)_ij / sqrt((S^k)_ii (S^k)_jj)    in [0, 1] for an even k

    Two nodes with a common surrounding have a large value, whatever their own distance. W has ones
    on its diagonal.

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
    >>> blocks = 10.0 * (np.arange(4)[:, None] // 2 != np.arange(4) // 2)
    >>> (channel,) = Diffusion(powers=(2,), width=0.1).of(blocks)
    >>> channel.round(2)
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """

    powers: tuple[int, ...] = (2, 4, 8)
    width: float = 0.5

    name = "diffusion"

    def __post_init__(self) -> None:
        check_positive(self.powers, "powers")
        check_positive((self.width,), "width")

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"diffusion {k}" for k in self.powers)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        e = off_diagonal(values)
        w = np.exp(-(values - e.min()) / (self.width * (e.std() or 1.0)))
        np.fill_diagonal(w, 1.0)
        root = np.sqrt(w.sum(0))
        eigenvalues, vectors = np.linalg.eigh(w / np.outer(root, root))
        return tuple(over_roots((vectors * eigenvalues**k) @ vectors.T) for k in self.powers)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 1e-3 + 2e-9 * n_nodes**3
