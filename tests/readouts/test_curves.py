"""Curves are SciPy's splines without their lines, of mean square one, flat beyond the knots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import make_lsq_spline

from edgebelief.readouts.curves import KNOTS, WIGGLES, curve_of, levels_of


@pytest.fixture(params=["gamma", "normal", "with ties"])
def x(request, rng):
    drawn = {"gamma": rng.gamma(2.0, size=2000), "normal": rng.normal(size=2000)}
    return drawn.get(request.param, np.round(rng.gamma(2.0, size=2000), 1))


def columns(curve, x):
    return np.asarray(curve.columns(jnp.asarray(x)), float)


def test_line_and_wiggle_have_mean_square_one_and_nothing_in_common(x64, x):
    found = columns(curve_of(x), x)
    line, wiggles = found[:, 0], found[:, 1:]
    assert np.isclose((line**2).mean(), 1)
    assert np.isclose((wiggles**2).sum(1).mean(), 1)
    assert np.abs(wiggles.mean(0)).max() < 1e-10
    assert np.abs(wiggles.T @ line).max() / len(x) < 1e-10


def test_gram_is_that_of_the_columns(x64, x):
    curve = curve_of(x)
    own = columns(curve, x)
    np.testing.assert_allclose(curve.gram, own.T @ own / len(x), atol=1e-12)


def test_levels_are_centred_and_of_mean_square_one(x64, rng):
    x = rng.integers(0, 3, 200).astype(float)
    levels = levels_of(x, ("a", "b", "c"))
    own = columns(levels, x)
    np.testing.assert_allclose(own.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose((own**2).sum(1).mean(), 1)
    np.testing.assert_allclose(levels.gram, own.T @ own / len(x), atol=1e-12)
    assert levels_of(np.zeros(5), ("a", "b")) is None


def test_wiggles_are_cubic_splines_on_the_knots(x64, x):
    curve = curve_of(x)
    ends = curve.knots
    fine = np.linspace(ends[0], ends[-1], 2001)
    knots = np.concatenate([[ends[0]] * 4, ends[1:-1], [ends[-1]] * 4])
    own = columns(curve, fine)
    left = own - make_lsq_spline(fine, own, knots, k=3)(fine)
    assert np.abs(left).max() < 1e-6 * np.abs(own).max()
    assert curve.n_wiggles == min(WIGGLES, len(ends))


def test_squared_coefficients_of_wiggles_are_the_curvature(x64, x):
    """The integral of f''^2 is proportional to the sum of squares of their coefficients."""
    curve = curve_of(x)
    fine = jnp.linspace(curve.knots[0], curve.knots[-1], 20_001)[1:-1]
    bend = np.asarray(jax.vmap(jax.jacfwd(jax.jacfwd(curve.columns)))(fine))[:, 1:]
    penalty = bend.T @ bend
    expected = np.trace(penalty) / len(penalty) * np.eye(len(penalty))
    np.testing.assert_allclose(penalty, expected, atol=0.02 * penalty.max())


def test_is_flat_beyond_the_outermost_knots(x64, x):
    curve = curve_of(x)
    for end, out in ((curve.knots[0], -1.0), (curve.knots[-1], 1.0)):
        at = columns(curve, end + out * np.array([0.0, 1.0, 50.0]))
        np.testing.assert_array_equal(at, np.repeat(at[:1], 3, axis=0))


def test_curve_and_slope_are_continuous(x64, x):
    curve = curve_of(x)
    slope = jax.vmap(jax.jacfwd(curve.columns))
    for knot in curve.knots:
        beside = jnp.array([knot - 1e-9, knot + 1e-9])
        value = columns(curve, beside)
        np.testing.assert_allclose(value[0], value[1], atol=1e-6)
        if knot in curve.knots[1:-1]:
            np.testing.assert_allclose(*np.asarray(slope(beside)), atol=1e-4)


def test_float32_agrees_with_float64(x64, x):
    curve = curve_of(x)
    short = np.asarray(curve.columns(jnp.asarray(x, jnp.float32)), float)
    assert np.abs(short - columns(curve, x)).max() < 1e-3


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_the_unit_of_the_feature_does_not_matter(x, unit):
    """Neither in float32, which cannot hold the cube of the inverse of such a unit."""
    of_x, of_units = (
        np.asarray(curve_of(v).columns(jnp.asarray(v, jnp.float32))) for v in (x, unit * x)
    )
    np.testing.assert_allclose(of_units, of_x, atol=1e-5)


def test_a_binary_feature_gets_a_line_alone():
    curve = curve_of(np.array([0.0, 1.0, 1.0, 0.0, 1.0]))
    assert curve.n_wiggles == 0
    assert columns(curve, np.array([0.0, 1.0])).shape == (2, 1)


def test_a_constant_feature_gets_none():
    assert curve_of(np.full(5, 3.0)) is None


def test_few_places_of_knots_are_enough():
    assert len(curve_of(np.repeat(np.arange(4.0), 50)).knots) <= KNOTS


def test_knots_that_rounding_tells_apart_are_one(rng):
    """Values equal but for their last digits make no polynomial that float32 cannot hold."""
    x = np.concatenate([1 + 1e-14 * rng.random(1000), 1 + rng.random(600)])
    curve = curve_of(x)
    assert np.isfinite(np.asarray(curve.pieces, np.float32)).all()
    assert np.isfinite(np.asarray(curve.columns(jnp.asarray(x, jnp.float32)))).all()
