"""Predictive checks: what models draw, against what the labels are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..belief.checks import PredictiveCheck
from ..errors import InputError
from .style import INK, SERIES, axes_for, tidy


@dataclass(frozen=True, init=False)
class CheckDisplay:
    """Histograms of a statistic of replicated data sets, one below the other; the labels' value.

    Parameters
    ----------
    checks : mapping from titles to PredictiveCheck, or a sequence of them
        Of the same statistic: "original prior", "altered prior", "posterior". Without titles they
        are called by what they were drawn from.
    bins : int

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
        if isinstance(checks, PredictiveCheck):
            checks = [checks]
        if not isinstance(checks, Mapping):
            listed = list(checks)
            titles = [check.source for check in listed]
            if len(set(titles)) < len(titles):
                raise InputError(f"two checks are of the {titles[0]}: pass a mapping with titles.")
            checks = dict(zip(titles, listed, strict=True))
        statistics = {check.statistic for check in checks.values()}
        if len(statistics) != 1:
            raise InputError(f"the checks must be of one statistic; got {sorted(statistics)}.")
        object.__setattr__(self, "checks", dict(checks))
        object.__setattr__(self, "bins", bins)

    @property
    def statistic(self) -> str:
        return next(iter(self.checks.values())).statistic

    @property
    def edges(self) -> np.ndarray:
        """The ends of the bins, the same for all."""
        if self.statistic == "density":
            return np.linspace(0, 1, self.bins + 1)
        everything = [check.values for check in self.checks.values()]
        observed = [c.observed for c in self.checks.values() if c.observed is not None]
        return np.histogram_bin_edges(np.concatenate([*everything, observed]), self.bins)

    def plot(self, axes: Any = None) -> Any:
        """Draw on an axis per check (new ones by default); returns them."""
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
