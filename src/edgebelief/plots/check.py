"""Predictive checks: a statistic of replicated data sets against that of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..belief.checks import PredictiveCheck
from ..errors import InputError
from .style import INK, SERIES, Axes, AxesLike, axes_for, tidy

# Labels farther from the bars than this many times their width would squeeze these together.
FAR = 4.0


@dataclass(frozen=True, init=False)
class CheckDisplay:
    """Histograms of a statistic of replicated data sets, and its value for the labels.

    Parameters
    ----------
    checks : mapping from titles to PredictiveCheck, or a sequence of them
        Checks of the same statistic, titled for example "original prior", "altered prior" and
        "posterior". By default the title is what they were drawn from, "prior" or "posterior".
    bins : int
        The largest number of bins of a histogram.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.checks import PredictiveCheck
    >>> from edgebelief.plots import CheckDisplay
    >>> rng = np.random.default_rng(0)
    >>> before = PredictiveCheck(rng.uniform(size=1000), 0.25, "density")
    >>> after = PredictiveCheck(rng.normal(0.25, 0.02, 1000), 0.25, "density", "posterior")
    >>> display = CheckDisplay({"before the labels": before, "after": after})
    >>> upper, lower = display.plot()
    """

    checks: Mapping[str, PredictiveCheck]
    bins: int

    def __init__(
        self,
        checks: Mapping[str, PredictiveCheck] | Iterable[PredictiveCheck] | PredictiveCheck,
        bins: int = 40,
    ):
        if not isinstance(checks, Mapping):
            listed = [checks] if isinstance(checks, PredictiveCheck) else list(checks)
            checks = {check.source: check for check in listed}
            if len(checks) < len(listed):
                problem = f"two checks are of the {listed[0].source}: pass a mapping with titles."
                raise InputError(problem)
        statistics = {check.statistic for check in checks.values()}
        if len(statistics) != 1:
            raise InputError(f"the checks must be of one statistic; got {sorted(statistics)}.")
        object.__setattr__(self, "checks", dict(checks))
        object.__setattr__(self, "bins", bins)

    @property
    def statistic(self) -> str:
        return next(iter(self.checks.values())).statistic

    def edges_of(self, check: PredictiveCheck) -> Float[np.ndarray, " ends"]:
        """Return the bin edges of the histogram of a check, made for its own values.

        A bin is a whole number of steps wide, where values are multiples of one (counts, shares of
        pairs): else some bins would hold more of the possible values than their neighbours.
        """
        values = np.unique(check.values)
        low, high = float(values[0]), float(values[-1])
        gaps = np.diff(values)
        gaps = gaps[gaps > 1e-9 * (high - low)]  # means of the same numbers may differ by rounding
        if gaps.size == 0:
            half = 0.05 * abs(low) or 0.05
            return np.array([low - half, low + half])
        step = gaps.min()
        width = step * np.ceil(((high - low) / step + 1) / self.bins)
        return np.arange(low - step / 2, high + width, width)

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw each check on one of `axes` (new ones by default), and return the axes.

        Each axis covers the values of its own check: a posterior is often a hundred times narrower
        than the prior. Labels too far away to be shown at this scale are pointed at.
        """
        n = len(self.checks)
        axes = axes_for(axes, n, 1, (7, 1 + 1.9 * n))
        for k, (axis, (title, check)) in enumerate(zip(axes, self.checks.items(), strict=True)):
            shares = np.full(check.values.size, 1 / check.values.size)
            color, edges = SERIES[k % len(SERIES)], self.edges_of(check)
            axis.hist(check.values, edges, weights=shares, color=color, alpha=0.85)
            if len(edges) == 2:  # one value: a bar in the middle, not a wall
                axis.margins(x=2)
            if check.observed is not None:
                _mark(axis, check.observed, edges[0], edges[-1])
                title = f"{title}: {100 * check.tail_probability:.0f} % above the labels"
            axis.set_title(title, loc="left", fontsize=11)
            axis.set_ylabel("share")
            tidy(axis)
        axes[-1].set_xlabel(
            f"{self.statistic} of a replicated data set (mean over its graphs)"
            + ("\neach axis has its own range" if n > 1 else "")
        )
        return axes


def _mark(axis: Axes, observed: float, low: float, high: float) -> None:
    """Draw the value of the labels; where it is too far from the bars, point at it."""
    far = max(low - observed, observed - high) > FAR * (high - low)
    if not far:
        axis.axvline(observed, color=INK, lw=2, label="labels")
        axis.legend(loc="best", frameon=False)
        return
    right = observed > high
    axis.annotate(
        f"labels {observed:.3g}",
        xy=(1.0 if right else 0.0, 0.85),
        xytext=(0.86 if right else 0.14, 0.85),
        xycoords="axes fraction",
        va="center",
        ha="right" if right else "left",
        color=INK,
        arrowprops={"arrowstyle": "->", "color": INK, "lw": 2},
    )
