"""Integrals over the readout's parameters, given the network: a sketch, or one of two rules."""

from __future__ import annotations

import numpy as np

from .cells import by_cells
from .conditional import Conditional, Sketch
from .grid import SPACING, TRUST, by_grid
from .regression import LogisticPosterior

# A second mode matters when it is less than this below the first.
APART = 14.0


def sketch(posterior: LogisticPosterior, start: np.ndarray | None = None) -> Sketch:
    """Laplace's approximation at the mode uphill from `start`, or from the best of a grid."""
    simple = posterior.simplified()
    near = simple.climb(simple.starts()[0] if start is None else start)
    return Sketch(posterior, posterior.climb(near.z))


def integrate(posterior: LogisticPosterior, start: np.ndarray) -> Conditional:
    """By the grid if it can be trusted, else by cells. `start` is where a mode may be."""
    simple = posterior.simplified()
    near = simple.modes([start, *simple.starts()[:4]])
    best, *others = posterior.modes([mode.z for mode in near])
    rivals = [mode for mode in others if mode.log_mass > best.log_mass - APART]
    if not rivals:
        for spacing in (SPACING, SPACING / 2):
            found = by_grid(posterior, best, spacing)
            if found.error < TRUST:
                return found
    return by_cells(posterior, [best, *rivals])
