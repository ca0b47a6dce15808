"""Integrals over the readout's parameters, given the network: a sketch, or one of two rules."""

from __future__ import annotations

from numpy.linalg import LinAlgError

from ...errors import InputError
from .cells import integrate_by_cells
from .conditional import Conditional, Sketch
from .grid import SPACING, TRUST, integrate_by_grid
from .regression import LogisticPosterior, Vector

# A second mode matters when its log mass is less than this below that of the first.
APART = 14.0
# The budget of one integral by cells, in terms of the likelihood (points times labels): a few
# seconds.
MOST_TERMS = 5e8


def sketch(posterior: LogisticPosterior, start: Vector | None = None) -> Sketch:
    """Return Laplace's approximation at the mode uphill from `start` (else the best grid point)."""
    simple = posterior.simplified()
    near = simple.climb(simple.starts()[0] if start is None else start)
    return Sketch(posterior, posterior.climb(near.z))


def integrate(
    posterior: LogisticPosterior, start: Vector, most_terms: float = MOST_TERMS
) -> Conditional:
    """Integrate by a grid if one can be trusted, else by cells; a mode may be near `start`.

    Cells that run out of their budget (`most_terms`) are compared with the grids, and what has the
    smallest estimated error is returned, marked as out of budget.
    """
    simple = posterior.simplified()
    near = simple.modes([start, *simple.starts()[:4]])
    best, *others = posterior.modes([mode.z for mode in near])
    rivals = [mode for mode in others if mode.log_mass > best.log_mass - APART]
    grids = []
    if not rivals:
        for spacing, ridge in ((SPACING, False), (SPACING, True), (SPACING / 2, True)):
            try:
                grids.append(integrate_by_grid(posterior, best, spacing, ridge))
            except LinAlgError:  # its covariance is none to rounding
                raise InputError(
                    "the prior of the readout's parameters is so far from these labels that the "
                    "posterior is too steep for double precision. State medians that are nearer "
                    "to 1 (delta about 100, b about 1, as in the paper)."
                ) from None
            if grids[-1].error < TRUST:
                return grids[-1]
    cells = integrate_by_cells(posterior, [best, *rivals], most_terms)
    if cells.out_of_budget:
        least = min([cells, *grids], key=lambda conditional: conditional.error)
        least.n_terms, least.out_of_budget = cells.n_terms, True
        return least
    return cells
