"""Points along theta where the posterior is: a scan of the whole prior, refined where it matters.

The scan covers plateaus too; `refine` then halves intervals until the estimated error of the
interpolation is below a tolerance. The error of an interval is estimated by how wrong the
interpolant was at the middle of the interval that it is a half of.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from ...data.dataset import GraphDataset
from ...readouts import Affine, Readout
from ..model import EdgeModel
from ..priors import Marginal, Prior
from .slices import Slices
from .theta import Interpolant, ThetaPoint

# The scan reaches this many prior standard deviations: for mass, and for second moments of a
# lognormal, which lie 2 log_sd further out.
REACH = 8.5
# Neighbours in the scan are first this far apart in log theta; then intervals are halved down to
# the second value, but not between two points on the same plateau.
COARSE_STEP, FINE_STEP = 4.0, 1.5
# Networks are not evaluated at theta outside this range.
THETA_RANGE = (1e-30, 1e30)
# A mode that may be hidden between points is looked for if its log density may come this near to
# the highest.
HIDDEN = 15.0
# At the end no interval has a larger share of the mass, so that the points are a quadrature rule
# for predictions.
LARGEST_SHARE = 0.15
MOST_POINTS = 400


def scan(slices: Slices) -> list[ThetaPoint]:
    """Compute rough points over the whole prior."""
    marginal = slices.marginal
    further = getattr(marginal, "log_sd", 0.0)
    low, high = -REACH, max(REACH, 2 * further + REACH / 2)
    low, high = np.clip([low, high], *marginal.to_z(np.array(_reachable(marginal))))
    fine = np.linspace(low, high, 4001)
    log = np.log(marginal.from_z(fine))
    n = max(int(np.ceil((log[-1] - log[0]) / COARSE_STEP)), 8)
    z = np.interp(np.linspace(log[0], log[-1], n + 1), log, fine)
    # The ends of a loguniform prior are crowded in log theta: cover them evenly in z too.
    z = np.sort(np.concatenate([z, np.linspace(low, high, 9)]))
    z = z[np.diff(z, prepend=-np.inf) > 1e-3 * (high - low)]
    points = slices.points(z[:1], [], rough=True)  # first one alone, to compile once
    points += slices.points(z[1:], points, rough=True)
    while True:
        gaps = [
            (left.z + right.z) / 2
            for left, right in pairwise(points)
            if not _same_plateau(left, right)
            and np.log(marginal.from_z(right.z) / marginal.from_z(left.z)) > FINE_STEP * 1.001
        ]
        if not gaps:
            return points
        points = _by_z([*points, *slices.points(gaps, points, rough=True)])


def refine(
    slices: Slices,
    points: list[ThetaPoint],
    midpoint_errors: MidpointErrors,
    tol: float,
    rough: bool,
    share: float | None = None,
) -> list[ThetaPoint]:
    """Halve intervals until the estimated error is below half of `tol`.

    Intervals that may hide a mode are halved too, and so are those with a large share of the mass:
    more than `share` if points are `rough`, else a share that depends on `tol`.
    """
    while True:
        interpolant = Interpolant(points, slices.marginal)
        errors = midpoint_errors.estimate(interpolant)
        order = np.argsort(errors)
        halve = np.zeros(len(errors), bool)
        halve[order[np.cumsum(errors[order]) > tol / 2]] = True
        if not rough:
            share = LARGEST_SHARE * min(1.0, (tol / 0.01) ** 0.25)
        if share is not None:
            halve |= interpolant.shares() > share
        halve |= _may_hide_mode(interpolant)
        z = interpolant.z
        halve &= np.diff(z) > 1e-9 * (1 + np.abs(z[1:]))
        if not halve.any() or len(points) > MOST_POINTS:
            return points
        middles = ((z[:-1] + z[1:]) / 2)[halve]
        new_points = slices.points(middles, points, rough=rough)
        for k, point in zip(np.flatnonzero(halve), new_points, strict=True):
            midpoint_errors.record(interpolant, int(k), point)
        points = _by_z([*points, *new_points])


class MidpointErrors:
    """How wrong interpolants were at the middle of the interval that each interval is a half of."""

    def __init__(self) -> None:
        self._by_interval: dict[tuple[float, float], float] = {}

    def record(self, interpolant: Interpolant, k: int, middle: ThetaPoint) -> None:
        """Record the error at a point in the middle of interval `k`, for both of its halves."""
        error, left, right = interpolant.error_at(middle), interpolant.z[k], interpolant.z[k + 1]
        self._by_interval[left, middle.z] = self._by_interval[middle.z, right] = error

    def estimate(self, interpolant: Interpolant) -> Float[np.ndarray, " intervals"]:
        """Estimate the error of each interval: its importance times a quarter of the recorded one.

        Halving an interval divides a cubic's error by 16 and a kink's by 4. An interval without a
        record has an error of 1.
        """
        intervals = pairwise(interpolant.z)
        errors = np.array([min(self._by_interval.get(ends, 1.0), 1.0) for ends in intervals])
        return interpolant.importance() * errors / 4


def most_plausible_z(
    model: EdgeModel,
    data: GraphDataset,
    weights: Float[np.ndarray, " graphs"],
    readout: Readout = Affine(),
) -> float:
    """Return the most plausible network parameter, as its coordinate z.

    It is that under a readout with the paper's parameters.
    """
    names = (*model.network.params_type._fields, "delta", "b")
    plain = EdgeModel(model.network, readout, Prior(**{n: model.prior[n] for n in names}))
    marginals = plain.prior["delta"], plain.prior["b"]
    with Slices(plain, data, weights, marginals) as slices:
        points = refine(slices, scan(slices), MidpointErrors(), tol=0.5, rough=True)
    return max(points, key=lambda point: point.g).z


def _by_z(points: list[ThetaPoint]) -> list[ThetaPoint]:
    return sorted(points, key=lambda point: point.z)


def _reachable(marginal: Marginal) -> tuple[float, float]:
    """Return the range of theta that is scanned."""
    low, high = THETA_RANGE
    return max(low, getattr(marginal, "low", low)), min(high, getattr(marginal, "high", high))


def _same_plateau(left: ThetaPoint, right: ThetaPoint) -> bool:
    """Return whether the network is flat at both points, with the same evidence."""
    difference = left.log_evidence - right.log_evidence
    return bool(left.flat and right.flat and left.dead == right.dead and abs(difference) < 0.01)


def _may_hide_mode(interpolant: Interpolant) -> Bool[np.ndarray, " intervals"]:
    """Find the intervals in which the slopes on both sides point to a mode not yet seen."""
    z, g = interpolant.z, np.array([point.g for point in interpolant.points])
    secant = np.diff(g) / np.diff(z)
    hiding = np.zeros(len(z) - 1, bool)
    for k in range(1, len(z) - 2):
        up, down = secant[k - 1], secant[k + 1]
        if up > 0 > down:
            # where the lines from the left and from the right meet
            meet = (g[k + 1] - g[k] + up * z[k] - down * z[k + 1]) / (up - down)
            if z[k] <= meet <= z[k + 1]:
                bound, ends = g[k] + up * (meet - z[k]), max(g[k], g[k + 1])
                hiding[k] = bound > g.max() - HIDDEN and bound - ends > 2
    return hiding
