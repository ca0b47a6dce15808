"""`theta_for`: the theta whose graph has a wanted number of edges.

The number of edges is a step function of theta. It falls from all candidates (theta near 0) to a
few more than N/2, almost but not quite monotonically (an edge can return). Equal edges, such as
those of two leaves of one node, enter together, so the function jumps over some numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..edges import Support, pairs_of
from ..errors import InputError, SettingError, SettingTypeError
from ..progress import progress_bar
from ..validate import check_distances, check_number, check_stopping
from .newton import newton_solve
from .secant import Trial, trials
from .solve import Solution, warn_unless_converged
from .systems import Edges

# Two thetas with a relative difference below this are taken as the two sides of one jump.
SAME_THETA = 1e-9
# Up to so many nodes the nearest whole number of edges is found by default.
EXACTLY_COUNTED = 5_000


class Jump(NamedTuple):
    """The theta at which the number of edges jumps over the wanted one."""

    theta: float
    edges_below: int
    """The number of edges just below `theta`."""
    edges_above: int
    """The number of edges just above `theta`."""


class SparsityTheta(float):
    """The result of `theta_for`: a float, with the graph at this theta.

    Attributes
    ----------
    solution : Solution
        The graph at this theta.
    n_edges : int
        The number of its edges (weights above 1e-5 of the largest).
    wanted : float
        The wanted number of edges.
    jump : Jump or None
        The jump over the wanted number; None if it was met (to the nearest whole number of edges).
    """

    solution: Solution
    wanted: float
    jump: Jump | None

    def __new__(cls, solution: Solution, wanted: float, jump: Jump | None) -> SparsityTheta:
        theta = super().__new__(cls, solution.theta)
        theta.solution, theta.wanted, theta.jump = solution, wanted, jump
        return theta

    @property
    def theta(self) -> float:
        return float(self)

    @property
    def n_edges(self) -> int:
        return int(self.solution.n_edges)

    @property
    def degree(self) -> float:
        """The mean number of edges at a node."""
        return 2 * self.n_edges / self.solution.support.n_nodes

    @property
    def density(self) -> float:
        """The number of edges over the number of all pairs."""
        return self.n_edges / pairs_of(self.solution.support.n_nodes)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.solution, self.wanted, self.jump

    def __repr__(self) -> str:
        text = f"theta={float(self):.6g}: {self.n_edges} edges, wanted {self.wanted:g}"
        if self.jump is not None:
            text += f" (jumps from {self.jump.edges_below} to {self.jump.edges_above})"
        return f"<{text}>"


def theta_for(
    e: ArrayLike,
    *,
    degree: float | None = None,
    density: float | None = None,
    support: Support | None = None,
    rtol: float | None = None,
    tol: float = 1e-9,
) -> SparsityTheta:
    """Find the theta whose graph comes nearest to a mean degree, or to a density.

    Parameters
    ----------
    e : array_like, shape (n_edges,) or (N, N)
        Distances, as for `solve`.
    degree : float
        The wanted mean number of edges at a node. Give this or `density`.
    density : float
        The wanted number of edges over N(N-1)/2, the number of all pairs; between 0 and 1.
    support : Support, optional
        The candidate edges; by default all pairs.
    rtol : float, optional
        Stop at a number of edges that differs from the wanted one by this share of it. 0 finds the
        nearest whole number, which takes dozens of solutions. By default 0 up to 5,000 nodes and
        0.01 above, which takes about three.
    tol : float
        The residual of the graph at this theta, as for `solve`.

    Returns
    -------
    SparsityTheta
        A float, with the graph at this theta (`solution`), and the `jump` over the wanted number
        if no theta meets it. With ``rtol=0`` it is the middle of the range of thetas with that many
        edges.

    Raises
    ------
    ValueError
        If no theta comes near the wanted number; the message gives the possible range.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief import solve, theta_for
    >>> points = np.random.default_rng(0).uniform(size=(30, 2))
    >>> e = ((points[:, None] - points[None]) ** 2).sum(-1)
    >>> theta = theta_for(e, degree=4)
    >>> theta.n_edges, theta.degree
    (60, 4.0)
    >>> int(solve(e, theta).n_edges)
    60
    """
    e, support = check_distances(e, support)
    tol, _ = check_stopping(tol, 0)
    wanted = _wanted_edges(degree, density, support)
    if rtol is None:
        rtol = 0.0 if support.n_nodes <= EXACTLY_COUNTED else 0.01
    elif not 0 <= (rtol := check_number(rtol, "rtol")) < 1:
        raise SettingError(f"must lie between 0 and 1; got {rtol:g}.", argument="rtol")
    if rtol > 0:
        return _about(e, support, wanted, rtol, tol)
    scale = float(np.median(np.abs(e)[e != 0])) if e.any() else 1.0
    if not np.isfinite(1 / scale):
        raise InputError(f"the distances are too small (typically {scale:g}); rescale them.")
    stairs = _Staircase(e / scale, support, wanted)  # the graphs of e, at theta times scale
    below, above = stairs.bisect(*stairs.bracket())
    best = stairs.nearest_around(below, above)
    jump = None if stairs.met(best) else Jump(above.theta / scale, below.n_edges, above.n_edges)
    middle = stairs.middle_of_step(best)
    theta = middle.theta / scale
    solution = Solution(*newton_solve(e, theta, support, middle.lam, tol, 1000), theta, support)
    warn_unless_converged(solution, tol, 1000)
    return SparsityTheta(solution, wanted, jump)


def _about(e: Edges, support: Support, wanted: float, rtol: float, tol: float) -> SparsityTheta:
    """Find the theta of about the wanted number of edges, in a few solves."""
    seen: list[Trial] = []
    with progress_bar(desc="theta", unit=" solves") as bar:
        for trial in trials(e, support, wanted, tol):
            bar.update()
            bar.set_postfix_str(f"{trial.n_edges:,} edges of {wanted:,.0f}")
            seen.append(trial)
            if abs(trial.n_edges - wanted) <= max(rtol * wanted, 0.5):
                break
    best = min(seen, key=lambda trial: abs(trial.n_edges - wanted))
    jump = None
    if abs(best.n_edges - wanted) > max(rtol * wanted, 0.5):
        more = max((t.theta for t in seen if t.n_edges >= wanted), default=None)
        fewer = min((t.theta for t in seen if t.n_edges < wanted), default=None)
        counts = {t.theta: t.n_edges for t in seen}
        if more is None or fewer is None:
            raise _out_of_reach(wanted, min(counts.values()), support)
        jump = Jump(fewer, counts[more], counts[fewer])
    # Not all that was tried was solved to `tol`.
    outcome = best.outcome
    if not outcome.converged or outcome.residual > tol:
        outcome = newton_solve(e, best.theta, support, outcome.lam, tol, 1000)
    solution = Solution(*outcome, best.theta, support)
    warn_unless_converged(solution, tol, 1000)
    return SparsityTheta(solution, wanted, jump)


def _wanted_edges(degree: float | None, density: float | None, support: Support) -> float:
    if (degree is None) == (density is None):
        raise SettingTypeError("give theta_for one of degree= and density=.")
    of_one = support.n_nodes / 2 if density is None else pairs_of(support.n_nodes)
    what, value = ("density", density) if degree is None else ("degree", degree)
    wanted = check_number(value, what) * of_one
    # Every node keeps an edge, so there are at least N/2; at most all candidates.
    if not support.n_nodes / 2 - 0.5 <= wanted <= support.n_edges + 0.5:
        raise _out_of_reach(wanted, int(np.ceil(support.n_nodes / 2)), support)
    return wanted


def _out_of_reach(wanted: float, fewest: int, support: Support) -> InputError:
    nodes, pairs, most = support.n_nodes, pairs_of(support.n_nodes), support.n_edges
    return InputError(
        f"{wanted:g} edges (degree {2 * wanted / nodes:.4g}, density {wanted / pairs:.4g}) are out "
        f"of reach: on these {nodes} nodes there can be {fewest} to {most}, that is degree "
        f"{2 * fewest / nodes:.4g} to {2 * most / nodes:.4g}, "
        f"density {fewest / pairs:.4g} to {most / pairs:.4g} (for any theta that float64 resolves)."
    )


class _Step(NamedTuple):
    """The solution at one theta: its duals, to start others from, and its number of edges."""

    theta: float
    lam: np.ndarray
    n_edges: int
    n_positive: int
    converged: bool


class _Staircase:
    """The number of edges of one problem as a function of theta, with a cache of its values."""

    def __init__(self, e: np.ndarray, support: Support, wanted: float):
        self.e, self.support, self.wanted = e, support, wanted
        self.seen: dict[float, _Step] = {}

    def at(self, theta: float) -> _Step:
        if theta not in self.seen:
            near = min(self.seen.values(), key=lambda s: abs(np.log(s.theta / theta)), default=None)
            start = None if near is None else near.lam
            # Edges appear at weight zero, so counting them takes more digits than `solve` does.
            a, lam, _, _, converged = newton_solve(self.e, theta, self.support, start, 1e-11, 1000)
            n_edges, n_positive = int(self.support.is_edge(a).sum()), int((a > 0).sum())
            self.seen[theta] = _Step(theta, lam, n_edges, n_positive, converged)
        return self.seen[theta]

    def met(self, step: _Step) -> bool:
        """Whether no whole number of edges is nearer to the wanted one."""
        return abs(step.n_edges - self.wanted) <= 0.5

    def bracket(self) -> tuple[_Step, _Step]:
        """Return a theta with at least, and one with at most, the wanted number of edges."""
        below = above = self.at(1.0)
        while below.n_edges < self.wanted and not self.met(below):
            below = self.at(below.theta / 2)
        fewest = above.n_edges
        nearest = np.abs(self.e)[self.e != 0].min(initial=np.inf)
        while above.n_edges > self.wanted and not self.met(above):
            above = self.at(above.theta * 2)
            # Beyond this theta, or where float64 fails, no further edge disappears.
            if not above.converged or above.theta * nearest > 1e9:
                raise _out_of_reach(self.wanted, fewest, self.support)
            fewest = min(fewest, above.n_edges)
        return below, above

    def bisect(self, below: _Step, above: _Step) -> tuple[_Step, _Step]:
        """Return the two sides of the jump over the wanted number, or twice the step with it."""
        for step in (below, above):
            if self.met(step):
                return step, step
        while above.theta / below.theta - 1 > SAME_THETA:
            middle = self.at(float(np.sqrt(below.theta * above.theta)))
            if self.met(middle):
                return middle, middle
            below, above = (middle, above) if middle.n_edges > self.wanted else (below, middle)
        return below, above

    def nearest_around(self, below: _Step, above: _Step) -> _Step:
        """Return the best step at or near a jump, where an edge may disappear and return."""
        steps = [below, above]
        if not self.met(below):
            for side, direction in ((below, -1), (above, 1)):
                for log_distance in np.geomspace(1e-6, 0.05, 24):
                    steps.append(self.at(side.theta * np.exp(direction * log_distance)))
        return min(steps, key=lambda step: abs(step.n_edges - self.wanted))

    def middle_of_step(self, step: _Step) -> _Step:
        """Return the middle, in log theta, of the range around `step` with its number of edges.

        If an edge there has a positive weight too small to count, another theta in the range is
        preferred, at which `weights > 0` counts the same edges.
        """
        down, up = self._end_of_step(step, -1), self._end_of_step(step, 1)
        inside = step
        for share in (0.5, 0.6, 0.7, 0.8, 0.9, 0.4, 0.3, 0.2, 0.1):
            candidate = self.at(float(down ** (1 - share) * up**share))
            if candidate.n_edges == candidate.n_positive == step.n_edges:
                return candidate
            if candidate.n_edges == step.n_edges and inside is step:
                inside = candidate
        return inside

    def _end_of_step(self, step: _Step, direction: int) -> float:
        """Return the theta at which `step` ends, below (-1) or above (+1), to about 0.1 %."""
        inside, outside = step.theta, None
        for theta in sorted(self.seen, key=lambda theta: direction * theta):
            if direction * theta > direction * step.theta:
                if self.seen[theta].n_edges != step.n_edges:
                    outside = theta
                    break
                inside = theta
        if outside is not None:
            for _ in range(10):
                middle = float(np.sqrt(inside * outside))
                if self.at(middle).n_edges == step.n_edges:
                    inside = middle
                else:
                    outside = middle
        return inside
