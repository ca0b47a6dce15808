"""Predictive checks: a statistic of replicated data sets against that of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..belief.checks import PredictiveCheck
from ..errors import InputError
from .style import INK, SERIES, AxesLike, axes_for, tidy


@dataclass(frozen=True, init=False)
class CheckDisplay:
    """Histograms of a statistic of replicated data sets, and its value for the labels.

    Parameters
    ----------
    checks : mapping from titles to PredictiveCheck, or a sequence of them
        Checks of the same statistic, titled for example "original prior", "altered prior" and
        "posterior". By default the title is what they were drawn from, "prior" or "posterior".
    bins : int
        The number of bins of each histogram.

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
        bins: int = 60,
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

    @property
    def edges(self) -> Float[np.ndarray, " ends"]:
        """The bin edges, the same for all histograms."""
        if self.statistic == "density":
            return np.linspace(0, 1, self.bins + 1)
        everything = [check.values for check in self.checks.values()]
        observed = [c.observed for c in self.checks.values() if c.observed is not None]
        return np.histogram_bin_edges(np.concatenate([*everything, observed]), self.bins)

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw each check on one of `axes` (new ones by default), and return the axes."""
        n = len(self.checks)
        axes = axes_for(axes, n, 1, (7, 1 + 1.6 * n), sharex=True)
        for k, (axis, (title, check)) in enumerate(zip(axes, self.checks.items(), strict=True)):
            shares = np.full(check.values.size, 1 / check.values.size)
            color = SERIES[k % len(SERIES)]
            axis.hist(check.values, self.edges, weights=shares, color=color, alpha=0.85)
            if check.observed is not None:
                axis.axvline(check.observed, color=INK, lw=2, label="labels")
                title = f"{title}: {100 * check.tail_probability:.0f} % above the labels"
            axis.set_title(title, loc="left", fontsize=11)
            axis.set_ylabel("share")
            tidy(axis)
        if any(check.observed is not None for check in self.checks.values()):
            axes[0].legend(loc="upper right", frameon=False)
        axes[-1].set_xlabel(f"{self.statistic} of a replicated data set (mean over its graphs)")
        return axes
