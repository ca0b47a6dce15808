"""The reliability diagram: accuracy against confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from scipy.stats import binom

from ..belief.metrics import CalibrationCurve
from ..errors import InputError
from .style import BLUE, INK, PALE, RED, AxesLike, axes_for, tidy


@dataclass(frozen=True, init=False)
class ReliabilityDisplay:
    """Accuracy against confidence, bin by bin, with the number of edges in each.

    The bar behind a point is the interval that contains the accuracy with probability `level` if
    belief is calibrated (binomial); a point outside is red. The bars assume that edges are
    independent. Those of one graph are not quite, so with few graphs some points may be outside.

    Parameters
    ----------
    confidence, accuracy, count : array_like, one entry per bin
        Mean confidence, share of correctly classified pairs, number of pairs; NaN in empty bins.
    edges : array_like, one more entry
        The bin edges.
    level : float
        The probability of the interval that a bar shows.

    Examples
    --------
    >>> from edgebelief.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay([0.6, 0.9], [0.5, 0.91], [40, 2000], [0.5, 0.75, 1.0])
    >>> low, high = display.band
    >>> bool(low[0] < 0.5 < high[0])
    True
    >>> reliability, counts = display.plot()
    """

    confidence: Float[np.ndarray, " bins"]
    accuracy: Float[np.ndarray, " bins"]
    count: Float[np.ndarray, " bins"]
    edges: Float[np.ndarray, " bins+1"]
    level: float

    def __init__(
        self, confidence: ArrayLike, accuracy: ArrayLike, count: ArrayLike, edges: ArrayLike,
        level: float = 0.95,
    ):  # fmt: skip
        arrays = {"confidence": confidence, "accuracy": accuracy, "count": count, "edges": edges}
        for name, values in arrays.items():
            object.__setattr__(self, name, np.asarray(values, float))
        object.__setattr__(self, "level", level)
        sizes = [self.confidence.size, self.accuracy.size, self.count.size, self.edges.size - 1]
        if len(set(sizes)) != 1:
            raise InputError(f"confidence, accuracy, count and bins must be as many; got {sizes}.")

    @classmethod
    def of(cls, curve: CalibrationCurve, level: float = 0.95) -> ReliabilityDisplay:
        """Build the display from the result of `edgebelief.belief.calibration_curve`."""
        return cls(curve.confidence, curve.accuracy, curve.count, curve.edges, level)

    @property
    def band(self) -> tuple[Float[np.ndarray, " bins"], Float[np.ndarray, " bins"]]:
        """The lower and upper ends of the bars; NaN in empty bins."""
        live = self.count > 0
        count, confidence = np.where(live, self.count, 1), np.where(live, self.confidence, 0.5)
        ends = binom.interval(self.level, count, np.clip(confidence, 0, 1))
        low, high = (np.where(live, end / count, np.nan) for end in ends)
        return low, high

    @property
    def outside(self) -> Bool[np.ndarray, " bins"]:
        """Whether the accuracy of each bin is outside its bar."""
        low, high = self.band
        return (self.accuracy < low - 1e-9) | (self.accuracy > high + 1e-9)  # not by rounding

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw the diagram and the counts on two axes (new ones by default), and return them."""
        axes = axes_for(axes, 2, 1, (5.4, 6), sharex=True, height_ratios=[3, 1])
        diagram, counts = axes
        diagram.use_sticky_edges = False  # else the axis would begin at the lowest bar
        live, width = self.count > 0, np.diff(self.edges)
        middle, (low, high) = self.edges[:-1] + width / 2, self.band
        # Bars have an outline, because with many edges they would be thinner than a line.
        diagram.bar(
            middle[live], (high - low)[live], 0.86 * width[live], low[live],
            color=PALE, edgecolor=PALE, lw=1.5,
            label=f"{100 * self.level:g} % if belief is calibrated",
        )  # fmt: skip
        ends = [self.edges[0], self.edges[-1]]
        diagram.plot(ends, ends, color=INK, lw=1, ls="--")
        for mask, color, marker, label in (
            (live & ~self.outside, BLUE, "o", "accuracy"),
            (live & self.outside, RED, "D", "outside"),
        ):
            if mask.any():
                diagram.plot(
                    self.confidence[mask], self.accuracy[mask], marker, color=color,
                    markersize=7, markeredgecolor="white", label=label, zorder=3,
                )  # fmt: skip
        diagram.set_ylabel("accuracy")
        diagram.legend(loc="upper left", framealpha=0.9)
        counts.bar(middle[live], self.count[live], 0.86 * width[live], color=BLUE)
        counts.set_yscale("log")
        counts.set_ylim(bottom=0.7)
        counts.set_ylabel("edges")
        counts.set_xlabel("confidence")
        for axis in axes:
            axis.set_xlim(self.edges[0] - 0.01, self.edges[-1] + 0.01)
            tidy(axis)
        return axes
