"""A function of one feature: a smooth curve, or a height for each level of a category.

A curve is a straight line and a wiggle, each on its own scale.

    f(x) = w_0 (x - m)/s + sum_k w_k r_k(x)

r_k are cubic B-splines (SciPy's), less their best straight line over the pairs that were seen, in
coordinates in which the penalty on curvature, the integral of f''^2, is the squared length of w: so
that a standard normal w is a smooth curve. Both parts are scaled to have a mean square of one over
those pairs. Beyond the outermost knots the curve goes on straight.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import BSpline

# Places of knots, from the lowest to the highest value seen, at equal shares of the pairs; but none
# nearer than this share of the range: polynomials between them would be steeper than float32 holds.
KNOTS, NEAR = 6, 1e-3


class Curve(eqx.Module):
    """The functions that a curve is made of."""

    centre: float = eqx.field(static=True)
    spread: float = eqx.field(static=True)
    knots: Float[np.ndarray, " intervals+1"]
    pieces: Float[np.ndarray, "4 intervals wiggles"]
    """Polynomial coefficients of each r_k in each interval, the cubic first."""
    gram: Float[np.ndarray, "columns columns"]
    """Mean products of the line and the r_k, over the pairs that were seen."""

    @property
    def n_wiggles(self) -> int:
        return self.pieces.shape[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of levels, which a curve does not have."""
        return ()

    @property
    def scales(self) -> tuple[int, ...]:
        """Which of its scales each column is in units of."""
        return (0,) + (1,) * self.n_wiggles

    @property
    def points(self) -> Float[np.ndarray, " points"]:
        """Values of the feature to draw it at."""
        return np.linspace(self.knots[0], self.knots[-1], 101)

    def columns(self, x: Float[Array, "..."]) -> Float[Array, "... columns"]:
        """The line, then the r_k."""
        line = ((x - self.centre) / self.spread)[..., None]
        if not self.n_wiggles:
            return line
        knots = jnp.asarray(self.knots, x.dtype)
        inside = jnp.clip(x, knots[0], knots[-1])
        place = jnp.searchsorted(knots[1:-1], inside, side="right")
        u = (inside - knots[place])[..., None]
        cubic, square, linear, constant = jnp.asarray(self.pieces, x.dtype)[:, place]
        value = ((cubic * u + square) * u + linear) * u + constant
        slope = (3 * cubic * u + 2 * square) * u + linear
        return jnp.concatenate([line, value + slope * (x - inside)[..., None]], -1)


class Levels(eqx.Module):
    """A height for each level of a category, less their mean; all on one scale.

    The feature is the place of the level in `names`.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    shares: Float[np.ndarray, " levels"]
    """Of the pairs that were seen."""

    @property
    def gram(self) -> Float[np.ndarray, "levels levels"]:
        products = np.diag(self.shares) - np.outer(self.shares, self.shares)
        return products / np.trace(products)

    @property
    def scales(self) -> tuple[int, ...]:
        return (0,) * len(self.names)

    @property
    def points(self) -> Float[np.ndarray, " levels"]:
        return np.arange(len(self.names), dtype=float)

    def columns(self, x: Float[Array, "..."]) -> Float[Array, "... levels"]:
        """Whether it is each of the levels."""
        shares = jnp.asarray(self.shares, x.dtype)
        own = x[..., None] == jnp.arange(len(self.names))
        return (own - shares) / jnp.sqrt(1 - (shares**2).sum())  # of mean square one together


class Term(eqx.Module):
    """A feature and the curve of it."""

    name: str = eqx.field(static=True)
    curve: Curve | Levels


def coefficient_slices(terms: Sequence[Term]) -> dict[str, slice]:
    """Which of the coefficients of all terms, in a row, belong to each term."""
    ends = np.cumsum([0, *(len(term.curve.scales) for term in terms)])
    return {term.name: slice(int(ends[k]), int(ends[k + 1])) for k, term in enumerate(terms)}


def levels_of(x: Float[np.ndarray, " pairs"], names: tuple[str, ...]) -> Levels | None:
    """Made for the levels that a category has; None if it has only one.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.readouts.curves import levels_of
    >>> levels_of(np.array([0.0, 1.0, 1.0]), ("plain", "forest")).shares.round(2)
    array([0.33, 0.67])
    """
    shares = np.bincount(x.astype(int), minlength=len(names)) / x.size
    return Levels(names, shares) if (shares > 0).sum() > 1 else None


def curve_of(x: Float[np.ndarray, " pairs"]) -> Curve | None:
    """Made for the values that a feature has; None if it has only one.

    Few different values (a binary covariate, say) get a line alone.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from edgebelief.readouts.curves import curve_of
    >>> curve = curve_of(np.linspace(0, 1, 101))
    >>> curve.columns(jnp.array([0.0, 0.5])).shape
    (2, 7)
    """
    centre, spread = float(x.mean()), float(x.std())
    if not spread > 1e-12 * max(abs(centre), 1e-300):
        return None
    ends = _apart(np.quantile(x, np.linspace(0, 1, KNOTS)))
    if len(np.unique(x)) <= 3 or len(ends) < 3:
        ends = np.array([x.min(), x.max()])
        return Curve(centre, spread, ends, np.zeros((4, 1, 0)), np.ones((1, 1)))
    # Knots beyond the ends, as far apart as the outermost ones.
    first, last = ends[1] - ends[0], ends[-1] - ends[-2]
    steps = np.arange(1, 4)
    knots = np.concatenate([ends[0] - first * steps[::-1], ends, ends[-1] + last * steps])
    basis = BSpline(knots, np.eye(len(knots) - 4), 3)
    # Coordinates in which the curvature is the squared length; lines have none, and are left out.
    fine = np.linspace(ends[0], ends[-1], 512)
    bend = basis(fine, 2) * spread**2
    curvature, axes = np.linalg.eigh(bend.T @ bend / len(fine))
    bent = curvature > 1e-8 * curvature.max()
    mix = axes[:, bent] / np.sqrt(curvature[bent])
    # Without their best line, and of mean square one together.
    lines = np.stack([np.ones_like(x), (x - centre) / spread], 1)
    wiggles = basis(x) @ mix
    straight = np.linalg.lstsq(lines, wiggles, rcond=None)[0]
    rest = wiggles - lines @ straight
    size = np.sqrt((rest**2).mean(0).sum())
    both = np.column_stack([lines[:, 1], rest / size])
    curves, starts = BSpline(knots, mix, 3), ends[:-1]
    pieces = np.stack([curves(starts, k) / factorial(k) for k in (3, 2, 1, 0)])
    rate = straight[1] / spread
    pieces[2] -= rate
    pieces[3] -= straight[0] + rate * (starts[:, None] - centre)
    return Curve(centre, spread, ends, pieces / size, both.T @ both / len(x))


def _apart(knots: Float[np.ndarray, " knots"]) -> Float[np.ndarray, " fewer"]:
    """In order, the first and the last, and those between that are not near their neighbours."""
    least, kept = NEAR * (knots[-1] - knots[0]), [knots[0]]
    for knot in knots[1:-1]:
        if knot - kept[-1] > least and knots[-1] - knot > least:
            kept.append(knot)
    return np.array([*kept, knots[-1]])
