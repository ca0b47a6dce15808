"""Integrals over the readout's parameters, given the network: a sketch, or one of two rules."""

from __future__ import annotations

from .cells import integrate_by_cells
from .conditional import Conditional, Sketch
from .grid import SPACING, TRUST, integrate_by_grid
from .regression import LogisticPosterior, Vector

# A second mode matters when its log mass is less than this below that of the first.
APART = 14.0


def sketch(posterior: LogisticPosterior, start: Vector | None = None) -> Sketch:
    """Return Laplace's approximation at the mode uphill from `start` (else the best grid point)."""
    simple = posterior.simplified()
    near = simple.climb(simple.starts()[0] if start is None else start)
    return Sketch(posterior, posterior.climb(near.z))


def integrate(posterior: LogisticPosterior, start: Vector) -> Conditional:
    """Integrate by a grid if it can be trusted, else by cells; a mode may be near `start`."""
    simple = posterior.simplified()
    near = simple.modes([start, *simple.starts()[:4]])
    best, *others = posterior.modes([mode.z for mode in near])
    rivals = [mode for mode in others if mode.log_mass > best.log_mass - APART]
    if not rivals:
        for spacing in (SPACING, SPACING / 2):
            conditional = integrate_by_grid(posterior, best, spacing)
            if conditional.error < TRUST:
                return conditional
    return integrate_by_cells(posterior, [best, *rivals])
