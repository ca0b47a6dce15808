"""The theta of about a wanted number of edges, in a few solves: for large graphs.

Over a large graph the number of edges n is nearly a smooth function of theta, and nearly a power of
it. So log theta is sought by regula falsi in (log theta, log n), from rough solutions that are each
started from duals extrapolated from those before. The first theta comes from a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..edges import Support
from .newton import Outcome, newton_solve
from .systems import Edges, Nodes

# n falls about as theta^-0.9 on points of two to twenty dimensions, at degrees from 3 to 20.
SLOPE = -0.9
# The closed form is a median over so many nodes.
SAMPLE = 2_000
# The residual of solutions that are only counted. It changes their number of edges by less than
# 1e-4 of it.
ROUGH = 1e-3
# Thetas differ by this factor at most from one solution to the next: further away, the duals of
# the last are no better a start than those that the solver finds by itself.
STRIDE = 4.0
# Where theta times the smallest distance is larger, no further edge disappears.
BEYOND = 1e9
# Two thetas this near are two sides of a jump.
SAME = 1e-6


class Trial(NamedTuple):
    """The graph at one theta."""

    theta: float
    outcome: Outcome
    n_edges: int


def trials(e: Edges, support: Support, wanted: float, tol: float) -> Iterator[Trial]:
    """Yield solutions whose numbers of edges approach the wanted one, until no theta is left.

    Use the first that is near enough. The residual of each is below `ROUGH`, and that of those
    whose number is the wanted one to 5 % is below `tol`.
    """
    seen: list[Trial] = []
    theta = guess(e, support, wanted)
    nearest = np.abs(e)[e != 0].min(initial=np.inf)
    while True:
        outcome = newton_solve(e, theta, support, _duals(seen, theta), max(tol, ROUGH), 1000)
        if not outcome.converged or theta * nearest > BEYOND:
            return
        trial = _counted(theta, outcome, support)
        if abs(trial.n_edges / wanted - 1) < 0.05 and not outcome.residual <= tol:
            outcome = newton_solve(e, theta, support, outcome.lam, tol, 1000)
            trial = _counted(theta, outcome, support)
        yield trial
        seen.append(trial)
        enough = [t for t in seen if t.n_edges >= wanted]
        too_few = [t for t in seen if t.n_edges < wanted]
        more = max(enough, key=_theta_of, default=None)
        fewer = min(too_few, key=_theta_of, default=None)
        if more is not None and fewer is not None:
            if np.log(fewer.theta / more.theta) < SAME:
                return
            theta = _between(more, fewer, wanted, halve=len(seen) > 8)
            continue
        near = more or fewer
        assert near is not None
        ratio = float(wanted / max(near.n_edges, 1)) ** (1 / SLOPE)
        # A little further than the slope says, to have the wanted number between two trials.
        theta = near.theta * float(np.clip(ratio ** (1 + len(seen) / 10), 1 / STRIDE, STRIDE))
        if len(seen) > 60:
            return


def _theta_of(trial: Trial) -> float:
    return trial.theta


def _counted(theta: float, outcome: Outcome, support: Support) -> Trial:
    return Trial(theta, outcome, int(support.is_edge(outcome.a).sum()))


def _between(more: Trial, fewer: Trial, wanted: float, halve: bool) -> float:
    """Interpolate log theta linearly in log n, or halve its range where that has been slow."""
    share = 0.5
    if not halve:
        share = np.log(more.n_edges / wanted) / np.log(more.n_edges / fewer.n_edges)
    # Not nearly the same theta again: from the far side of the wanted number both sides close in.
    share = min(max(share, 0.02), 0.98)
    return float(more.theta * (fewer.theta / more.theta) ** share)


def _duals(seen: list[Trial], theta: float) -> Nodes | None:
    """Extrapolate duals, linearly in logarithms, from the two trials that are nearest to theta."""
    near = sorted(seen, key=lambda trial: abs(np.log(trial.theta / theta)))[:2]
    if not near:
        return None
    lam = near[0].outcome.lam
    if len(near) < 2:
        return lam
    ahead = np.log(theta / near[0].theta) / np.log(near[0].theta / near[1].theta)
    return lam * (lam / near[1].outcome.lam) ** np.clip(ahead, -1, 1)


def guess(e: Edges, support: Support, wanted: float) -> float:
    """Return a theta at which there are about `wanted` edges, by a closed form.

    If all neighbours of a node had its dual, lam sum_j max(0, lam - theta e_j) = 1, and the node
    would have its m nearest neighbours, at e_1 <= ... <= e_m, until theta e_(m+1) = lam:

        theta = 1 / sqrt(e_(m+1) (m e_(m+1) - sum_(j<=m) e_j))

    (compare Kalofolias and Perraudin 2019, "Large scale graph learning from smooth signals"). The
    result is the median over a sample of nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.convex.secant import guess
    >>> from edgebelief.edges import Complete
    >>> round(guess(np.array([1.0, 2.0, 2.0]), Complete(3), wanted=1.5), 3)  # (2 (2 - 1))^-1/2
    0.707
    """
    degree = 2 * wanted / support.n_nodes
    m = max(round(degree), 1)
    rows, cols = (np.asarray(end) for end in support.endpoints)
    step = max(support.n_nodes // SAMPLE, 1)
    ends, at_ends = [], []
    for end in (rows, cols):
        sampled = end % step == 0
        ends.append(end[sampled])
        at_ends.append(e[sampled])
    node, near = np.concatenate(ends), np.concatenate(at_ends)
    order = np.lexsort((near, node))
    node, near = node[order], near[order]
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    counts = np.diff(starts, append=len(node))
    starts = starts[counts > m]
    sums = near[starts[:, None] + np.arange(m)].sum(1)
    nextfar = near[starts + m]
    product = nextfar * (m * nextfar - sums)
    positive = (nextfar > 0) & (product > 0)
    if not positive.any():  # ties, or distances below zero: there is no such theta
        scale = np.abs(near[near != 0])
        return 1 / float(np.median(scale)) if scale.size else 1.0
    theta = float(np.median(product[positive] ** -0.5))
    return theta * (degree / m) ** (1 / SLOPE)
