"""A function of one feature: a smooth curve, or a height for each level of a category.

A curve is the sum of a straight line and a nonlinear part, each with a scale of its own:

    f(x) = w_0 (x - m)/s + sum_k w_k r_k(x)

The r_k are combinations of SciPy's cubic B-splines. The straight line that fits them best over the
pairs in the data is subtracted, and the penalty on curvature, the integral of f''^2, is
proportional to the sum of the w_k^2: a standard normal w gives a smooth curve. Line and nonlinear
part are each scaled to a mean square of one over those pairs. Beyond the outermost knots, which are
the least and the largest value in the data, the curve is flat: nothing is known there, and a slope
that goes on makes belief certain far from all labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import factorial, log2
from typing import ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import BSpline

# Knots lie at this many equally spaced quantiles of the feature, the extremes included. Two knots
# are at least this share of the range apart: between nearer ones the coefficients of the
# polynomials would be too large for float32.
KNOTS, NEAR = 6, 1e-3
# The nonlinear part has at most this many columns, those with the least curvature. All that six
# knots allow changed the NLL of the data sets of docs/race.md by a few per cent, in both
# directions, and time grows with the square of the number of columns.
WIGGLES = 3

# A NumPy or a JAX array.
AnyArray = Array | np.ndarray


class Curve(eqx.Module):
    """The basis of a curve: the line and the r_k, as piecewise polynomials."""

    centre: Float[np.ndarray, ""]
    spread: Float[np.ndarray, ""]
    unit: Float[np.ndarray, ""]
    """The power of two nearest the spread: to divide by it does not round."""
    knots: Float[np.ndarray, " knots"]
    pieces: Float[np.ndarray, "4 intervals wiggles"]
    """Polynomial coefficients of each r_k between each two knots, the cubic one first.

    Of (x - knot) / unit, so that float32 holds them whatever the unit of x.
    """
    gram: Float[np.ndarray, "columns columns"]
    """Mean products of the line and the r_k, over the pairs in the data."""
    names: ClassVar[tuple[str, ...]] = ()
    """The names of the levels of a category: none, for a curve is of a number."""

    @property
    def n_wiggles(self) -> int:
        return self.pieces.shape[-1]

    @classmethod
    def of_powers(
        cls,
        centre: float,
        spread: float,
        knots: Float[np.ndarray, " knots"],
        pieces: Float[np.ndarray, "4 intervals wiggles"],
        gram: Float[np.ndarray, "columns columns"],
    ) -> Curve:
        """Make a curve from coefficients of powers of x - knot, as model files have them."""
        # Arrays, all of them, so that curves of other data are no reason to compile again.
        unit = np.asarray(2.0 ** round(log2(spread)))
        curve = cls(np.asarray(centre), np.asarray(spread), unit, knots, pieces, gram)
        return replace(curve, pieces=pieces * curve._units)

    @property
    def of_x(self) -> Float[np.ndarray, "4 intervals wiggles"]:
        """The coefficients of powers of x - knot."""
        return np.asarray(self.pieces) / self._units

    @property
    def _units(self) -> Float[np.ndarray, "4 1 1"]:
        return self.unit ** np.array([3.0, 2.0, 1.0, 0.0])[:, None, None]

    @property
    def scales(self) -> tuple[int, ...]:
        """The index of the scale that multiplies each column: 0 for the line, 1 for the r_k."""
        return (0,) + (1,) * self.n_wiggles

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return ("line", *(f"bend {k}" for k in range(1, 1 + self.n_wiggles)))

    @property
    def scale_names(self) -> tuple[str, ...]:
        return ("line", "bends") if self.n_wiggles else ("line",)

    @property
    def points(self) -> Float[np.ndarray, " points"]:
        """Values of the feature at which a plot evaluates the curve."""
        return np.linspace(self.knots[0], self.knots[-1], 101)

    def columns(self, x: Float[AnyArray, "..."]) -> Float[AnyArray, "... columns"]:
        """Evaluate the line, then the r_k."""
        knots = jnp.asarray(self.knots, x.dtype)
        x = jnp.clip(x, knots[0], knots[-1])
        centre, spread, unit = (
            jnp.asarray(number, x.dtype) for number in (self.centre, self.spread, self.unit)
        )
        line = ((x - centre) / spread)[..., None]
        if not self.n_wiggles:
            return line
        interval = jnp.searchsorted(knots[1:-1], x, side="right")
        u = ((x - knots[interval]) / unit)[..., None]
        cubic, square, linear, constant = jnp.asarray(self.pieces, x.dtype)[:, interval]
        return jnp.concatenate([line, ((cubic * u + square) * u + linear) * u + constant], -1)


class Levels(eqx.Module):
    """A height for each level of a category, with mean zero over the pairs; all on one scale.

    The value of the feature is the index of the level in `names`.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    shares: Float[np.ndarray, " levels"]
    """The share of the pairs in the data that has each level."""

    @property
    def gram(self) -> Float[np.ndarray, "levels levels"]:
        products = np.diag(self.shares) - np.outer(self.shares, self.shares)
        return products / np.trace(products)

    @property
    def scales(self) -> tuple[int, ...]:
        return (0,) * len(self.names)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(f"= {level}" for level in self.names)

    @property
    def scale_names(self) -> tuple[str, ...]:
        return ("",)

    @property
    def points(self) -> Float[np.ndarray, " levels"]:
        return np.arange(len(self.names), dtype=float)

    def columns(self, x: Float[AnyArray, "..."]) -> Float[Array, "... levels"]:
        """Compute the indicator of each level, minus its share."""
        shares = jnp.asarray(self.shares, x.dtype)
        indicators = x[..., None] == jnp.arange(len(self.names))
        # Scaled so that the squares of all columns have mean one together.
        return (indicators - shares) / jnp.sqrt(1 - (shares**2).sum())


@runtime_checkable
class Basis(Protocol):
    """Functions of a feature, or of several, whose combination is a term."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the levels of a category; none for numbers."""

    @property
    def scales(self) -> tuple[int, ...]:
        """The index of the scale that multiplies each function."""

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """The names of the functions, within the term."""

    @property
    def scale_names(self) -> tuple[str, ...]:
        """The names of the scales, within the term."""

    @property
    def points(self) -> Float[np.ndarray, "points ..."]:
        """Values of the feature at which to show the term; a row for each if there are several."""

    @property
    def gram(self) -> Float[np.ndarray, "columns columns"]:
        """Mean products of the functions, over the pairs in the data."""

    def columns(self, x: Float[AnyArray, "..."]) -> Float[AnyArray, "... columns"]:
        """Evaluate the functions."""


class Term(eqx.Module):
    """A function of a feature, by whose name it goes, or of several."""

    name: str = eqx.field(static=True)
    curve: Basis

    @property
    def n_scales(self) -> int:
        return len(self.curve.scale_names)


def coefficient_slices(terms: Sequence[Term]) -> dict[str, slice]:
    """Return the slice of the coefficients, those of all terms in a row, of each term."""
    ends = np.cumsum([0, *(len(term.curve.scales) for term in terms)])
    return {term.name: slice(int(ends[k]), int(ends[k + 1])) for k, term in enumerate(terms)}


def scale_slices(terms: Sequence[Term]) -> dict[str, slice]:
    """Return the slice of the scales, those of all terms in a row, of each term."""
    ends = np.cumsum([0, *(term.n_scales for term in terms)])
    return {term.name: slice(int(ends[k]), int(ends[k + 1])) for k, term in enumerate(terms)}


def levels_of(x: Float[np.ndarray, " pairs"], names: tuple[str, ...]) -> Levels | None:
    """Make the basis for a category with the levels `names`; None if only one of them occurs.

    `x` is the index of the level of each pair.

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
    """Make the basis of a curve for the values `x` of a feature; None if they are all equal.

    A feature with few different values (a binary covariate, say) gets a line alone.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from edgebelief.readouts.curves import curve_of
    >>> curve = curve_of(np.linspace(0, 1, 101))
    >>> curve.columns(jnp.array([0.0, 0.5])).shape
    (2, 4)
    """
    centre, spread = float(x.mean()), float(x.std())
    if not spread > 1e-12 * max(abs(centre), 1e-300):
        return None
    ends = _apart(np.quantile(x, np.linspace(0, 1, KNOTS)))
    if len(np.unique(x)) <= 3 or len(ends) < 3:
        ends = np.array([x.min(), x.max()])
        return Curve.of_powers(centre, spread, ends, np.zeros((4, 1, 0)), np.ones((1, 1)))
    # A cubic spline needs three more knots beyond either end; they are as far apart as the two
    # knots at that end.
    first, last = ends[1] - ends[0], ends[-1] - ends[-2]
    steps = np.arange(1, 4)
    knots = np.concatenate([ends[0] - first * steps[::-1], ends, ends[-1] + last * steps])
    basis = BSpline(knots, np.eye(len(knots) - 4), 3)
    # Coordinates in which the integrated squared curvature is the squared length. Straight lines,
    # which have no curvature, are left out.
    fine = np.linspace(ends[0], ends[-1], 512)
    bend = basis(fine, 2) * spread**2
    curvature, axes = np.linalg.eigh(bend.T @ bend / len(fine))
    bent = np.flatnonzero(curvature > 1e-8 * curvature.max())[:WIGGLES]
    mix = axes[:, bent] / np.sqrt(curvature[bent])
    # Subtract the best straight line, and scale to a mean square of one for all together.
    lines = np.stack([np.ones_like(x), (x - centre) / spread], 1)
    wiggles = basis(x) @ mix
    straight = np.linalg.lstsq(lines, wiggles, rcond=None)[0]
    rest = wiggles - lines @ straight
    size = np.sqrt((rest**2).mean(0).sum())
    columns = np.column_stack([lines[:, 1], rest / size])
    curves, starts = BSpline(knots, mix, 3), ends[:-1]
    pieces = np.stack([curves(starts, k) / factorial(k) for k in (3, 2, 1, 0)])
    rate = straight[1] / spread
    pieces[2] -= rate
    pieces[3] -= straight[0] + rate * (starts[:, None] - centre)
    gram = columns.T @ columns / len(x)
    return Curve.of_powers(centre, spread, ends, pieces / size, gram)


def _apart(knots: Float[np.ndarray, " knots"]) -> Float[np.ndarray, " fewer"]:
    """Keep the first and the last knot, and those between that are not `NEAR` another one."""
    least, kept = NEAR * (knots[-1] - knots[0]), [knots[0]]
    for knot in knots[1:-1]:
        if knot - kept[-1] > least and knots[-1] - knot > least:
            kept.append(knot)
    return np.array([*kept, knots[-1]])
