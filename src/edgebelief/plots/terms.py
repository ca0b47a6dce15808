"""The curves of an additive readout: what each term adds to the log odds of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np

from ..belief.explain import LEVEL, TermCurve, term_curves
from ..data.randomness import Key
from ..errors import InputError
from ..infer.posterior import Posterior
from .style import BLUE, INK, Axes, AxesLike, axes_for, tidy

# Axis labels of the built-in features, see `edgebelief.readouts.features`.
WORDS = {
    "z": "how far above its threshold (z)",
    "lam sum": "duals of both nodes, added",
    "lam gap": "duals of both nodes, difference",
    "distance": "distance",
    "mean sum": "both nodes' mean distance, added",
    "mean gap": "both nodes' mean distance, difference",
    "minimum sum": "both nodes' least distance, added",
    "minimum gap": "both nodes' least distance, difference",
    "spread sum": "both nodes' spread of distances, added",
    "spread gap": "both nodes' spread of distances, difference",
    "rank sum": "log rank among neighbours, both ways, added",
    "rank gap": "log rank among neighbours, both ways, difference",
}
# The largest number of axes in a row; of characters in a title and in a tick label; of tick labels.
COLUMNS, LONGEST, SHORT, NAMED = 4, 26, 12, 12

# Colour of the terms that are not needed: paler than the others, but legible.
PALER = "#8d99a3"


@dataclass(frozen=True)
class TermsDisplay:
    """What each term adds to the log odds of a pair: its mean and its 90 % credible band.

    All share one vertical axis, so that their sizes can be compared. A categorical term has a
    point with a bar for each level. Terms that the labels do not need are pale: their band
    includes zero everywhere.

    Parameters
    ----------
    curves : sequence of TermCurve
        The curves to draw; `of` computes them from a posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief import TermCurve
    >>> from edgebelief.plots import TermsDisplay
    >>> x = np.linspace(0, 5, 50)
    >>> near = TermCurve("distance", x, 2 - x, 1 - x, 3 - x, size=1.4)
    >>> kind, rise = np.arange(2.0), np.array([-0.1, 0.1])
    >>> road = TermCurve("road", kind, rise, rise - 1, rise + 1, 0.1, ("lane", "none"))
    >>> left, right = TermsDisplay([near, road]).plot()
    >>> left.get_title(loc="left"), right.get_title(loc="left")
    ('distance: 1.4', 'road: 0.1, not needed')
    """

    curves: Sequence[TermCurve]

    @classmethod
    def of(cls, posterior: Posterior, key: Key | int = 0) -> TermsDisplay:
        """Compute the curves of a posterior with an `Additive` readout."""
        return cls(term_curves(posterior, key))

    def plot(self, axes: AxesLike = None, most: int = 12) -> np.ndarray:
        """Draw the `most` largest terms on one axis each (new ones by default); return the axes."""
        curves = list(self.curves)[:most]
        if not curves:
            raise InputError("there is no curve to draw.")
        rows = -(-len(curves) // COLUMNS)
        columns = -(-len(curves) // rows)  # so that all rows have about the same length
        axes = _axes(axes, len(curves), rows, columns)
        for k, (axis, curve) in enumerate(zip(axes, curves, strict=True)):
            color = BLUE if curve.matters else PALER
            axis.axhline(0, color=INK, lw=1)
            if curve.levels:
                _draw_levels(axis, curve, color)
            else:
                axis.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.25, lw=0)
                axis.plot(curve.x, curve.mean, color=color, lw=2.2)
            needed = "" if curve.matters else ", not needed"
            share = f", in {curve.share:.0%}" if curve.share < 1 else ""  # of a mixture
            title = f"{shortened(curve.name, LONGEST)}: {curve.size:.2g}{share}{needed}"
            # Users choose the names, so a dollar sign must not start a formula.
            axis.set_title(title, loc="left", fontsize=11, parse_math=False)
            label = shortened(WORDS.get(curve.name, curve.name), 2 * LONGEST)
            axis.set_xlabel(fill(label, LONGEST + 6), fontsize=9, parse_math=False)
            if k % columns == 0:
                axis.set_ylabel(f"added to the log odds\n(mean, {100 * LEVEL:g} %)")
            tidy(axis)
        ends = np.array([axis.get_ylim() for axis in axes])
        for axis in axes:
            axis.set_ylim(ends.min(), ends.max())
        return axes


def shortened(name: str, longest: int) -> str:
    """Cut a name to at most `longest` characters, ending in an ellipsis."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _axes(given: AxesLike, n: int, rows: int, columns: int) -> np.ndarray:
    """Return `n` axes: the given ones, or new ones in rows, without those left over."""
    if given is not None:
        return axes_for(given, 1, n, (0, 0))
    axes = axes_for(None, rows, columns, (1 + 2.9 * columns, 0.4 + 2.9 * rows), sharey=True)
    for axis in axes[n:]:
        axis.remove()
    return axes[:n]


def _draw_levels(axis: Axes, curve: TermCurve, color: str) -> None:
    ends = np.stack([curve.mean - curve.low, curve.high - curve.mean])
    axis.errorbar(curve.x, curve.mean, np.maximum(ends, 0), fmt="o", color=color, ms=5, lw=2.2)
    shown = np.arange(0, len(curve.levels), -(-len(curve.levels) // NAMED))
    names = [shortened(curve.levels[k], SHORT) for k in shown]
    slanted = max(map(len, names)) * len(names) > LONGEST
    axis.set_xticks(
        curve.x[shown], names, parse_math=False, fontsize=9,
        rotation=40 if slanted else 0, ha="right" if slanted else "center",
    )  # fmt: skip
    axis.set_xlim(-0.5, len(curve.levels) - 0.5)
