"""Points along theta where the posterior is: a scan of the whole prior, refined where it matters.

The scan covers plateaus too; `refine` then halves intervals until the estimated error of the
interpolation is below a tolerance. The error of an interval is how wrong the interpolant was about
the middle of the interval that it is a half of.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...data.dataset import GraphDataset
from ...readouts import Affine, Readout
from ..model import EdgeModel
from ..priors import Marginal, Prior
from .slices import Slices
from .theta import Interpolant, ThetaPoint

# The scan reaches so far in prior standard deviations: for mass, and for second moments of a
# lognormal, which lie 2 log_sd further out.
REACH = 8.5
# Neighbours in the scan are first this far apart in log theta, then halved down to the second,
# but not between two plateaus of the same height.
COARSE_STEP, FINE_STEP = 4.0, 1.5
# Networks are not asked for theta outside this range.
THETA_RANGE = (1e-30, 1e30)
# A mode that may be hidden between nodes is looked for if it could come so near the best in log.
HIDDEN = 15.0
# No interval holds more than this share at the end, so that the nodes are a rule for predictions.
LARGEST_SHARE = 0.15
MOST_NODES = 400


def scan(slices: Slices) -> list[ThetaPoint]:
    """Nodes over the whole prior."""
    marginal = slices.marginal
    further = getattr(marginal, "log_sd", 0.0)
    low, high = -REACH, max(REACH, 2 * further + REACH / 2)
    low, high = np.clip([low, high], *marginal.to_z(np.array(_reachable(marginal))))
    fine = np.linspace(low, high, 4001)
    log = np.log(marginal.from_z(fine))
    n = max(int(np.ceil((log[-1] - log[0]) / COARSE_STEP)), 8)
    z = np.interp(np.linspace(log[0], log[-1], n + 1), log, fine)
    # A loguniform's ends are crowded in log theta: look there in z too.
    z = np.sort(np.concatenate([z, np.linspace(low, high, 9)]))
    z = z[np.diff(z, prepend=-np.inf) > 1e-3 * (high - low)]
    nodes = slices.nodes(z[:1], [], rough=True)  # alone: it compiles
    nodes += slices.nodes(z[1:], nodes, rough=True)
    while True:
        gaps = [
            (left.z + right.z) / 2
            for left, right in pairwise(nodes)
            if not _same_plateau(left, right)
            and np.log(marginal.from_z(right.z) / marginal.from_z(left.z)) > FINE_STEP * 1.001
        ]
        if not gaps:
            return nodes
        nodes = sorted([*nodes, *slices.nodes(gaps, nodes, rough=True)], key=lambda node: node.z)


def refine(
    slices: Slices,
    nodes: list[ThetaPoint],
    surprises: Surprises,
    tol: float,
    rough: bool,
    share: float | None = None,
) -> list[ThetaPoint]:
    """Halve intervals until the estimated error is below half of `tol`."""
    while True:
        now = Interpolant(nodes, slices.marginal)
        errors = surprises.errors(now)
        order = np.argsort(errors)
        wanted = np.zeros(len(errors), bool)
        wanted[order[np.cumsum(errors[order]) > tol / 2]] = True
        if not rough:
            share = LARGEST_SHARE * min(1.0, (tol / 0.01) ** 0.25)
        if share is not None:
            wanted |= now.shares() > share
        wanted |= _hiding(now)
        wanted &= np.diff(now.z) > 1e-9 * (1 + np.abs(now.z[1:]))
        if not wanted.any() or len(nodes) > MOST_NODES:
            return nodes
        middles = ((now.z[:-1] + now.z[1:]) / 2)[wanted]
        fresh = slices.nodes(middles, nodes, rough=rough)
        for k, node in zip(np.flatnonzero(wanted), fresh, strict=True):
            surprises.record(now, int(k), node)
        nodes = sorted([*nodes, *fresh], key=lambda node: node.z)


class Surprises:
    """How wrong the interpolant was about the middle of each interval's parent."""

    def __init__(self) -> None:
        self._found: dict[tuple[float, float], float] = {}

    def record(self, now: Interpolant, k: int, node: ThetaPoint) -> None:
        found = now.surprise(node)
        self._found[now.z[k], node.z] = self._found[node.z, now.z[k + 1]] = found

    def errors(self, now: Interpolant) -> np.ndarray:
        """Of each interval: its importance times what is left of its parent's surprise.

        Halving an interval divides a cubic's error by 16 and a kink's by 4.
        """
        surprise = np.array([min(self._found.get(pair, 1.0), 1.0) for pair in pairwise(now.z)])
        return now.importance() * surprise / 4


def most_plausible_z(
    model: EdgeModel, data: GraphDataset, weights: np.ndarray, readout: Readout = Affine()
) -> float:
    """The network's parameter that is most plausible under a readout with the paper's parameters,
    as its place in the prior.
    """
    names = (*model.network.params_type._fields, "delta", "b")
    plain = EdgeModel(model.network, readout, Prior(**{n: model.prior[n] for n in names}))
    marginals = plain.prior["delta"], plain.prior["b"]
    with Slices(plain, data, weights, marginals) as slices:
        nodes = refine(slices, scan(slices), Surprises(), tol=0.5, rough=True)
    return max(nodes, key=lambda node: node.g).z


def _reachable(marginal: Marginal) -> tuple[float, float]:
    low, high = THETA_RANGE
    return max(low, getattr(marginal, "low", low)), min(high, getattr(marginal, "high", high))


def _same_plateau(left: ThetaPoint, right: ThetaPoint) -> bool:
    difference = left.log_evidence - right.log_evidence
    return left.alike and right.alike and left.dead == right.dead and abs(difference) < 0.01


def _hiding(now: Interpolant) -> np.ndarray:
    """The intervals in which the slopes on both sides point to a mode that is not yet seen."""
    z, g = now.z, np.array([node.g for node in now.nodes])
    secant = np.diff(g) / np.diff(z)
    found = np.zeros(len(z) - 1, bool)
    for k in range(1, len(z) - 2):
        up, down = secant[k - 1], secant[k + 1]
        if up > 0 > down:
            # where the lines from the left and from the right meet
            meet = (g[k + 1] - g[k] + up * z[k] - down * z[k + 1]) / (up - down)
            if z[k] <= meet <= z[k + 1]:
                bound, ends = g[k] + up * (meet - z[k]), max(g[k], g[k + 1])
                found[k] = bound > g.max() - HIDDEN and bound - ends > 2
    return found
