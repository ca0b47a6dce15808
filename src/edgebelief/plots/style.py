"""What the displays share: colours that colour-blind readers can tell apart, axes to draw on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    AxesLike = Axes | Iterable[Axes] | None
else:  # Matplotlib is imported when something is drawn, not before
    Axes = AxesLike = Any

INK, PALE, RULE = "#22303c", "#b9c2c9", "#e3e7ea"
# Okabe and Ito (2008), in the order in which displays use them.
BLUE, ORANGE, GREEN, RED, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9"
SERIES = (BLUE, ORANGE, GREEN, RED, SKY)


def axes_for(
    given: AxesLike, rows: int, columns: int, size: tuple[float, float], **layout: Any
) -> np.ndarray:
    """Return `rows` x `columns` axes as a flat array: the given ones, if as many, or new ones."""
    import matplotlib.pyplot as plt

    if given is None:
        figure, made = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **layout
        )
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
        return made.ravel()
    axes = np.ravel(np.asarray(given, dtype=object))
    if axes.size != rows * columns:
        raise InputError(f"this display draws on {rows * columns} axes; got {axes.size}.")
    return axes


def legend_above(axis: Axes, columns: int = 2) -> None:
    """Put a legend above the axis, where it covers nothing; none if nothing has a label."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False,
            borderaxespad=0.2, columnspacing=1.2,
        )  # fmt: skip


def tidy(axis: Axes) -> None:
    """Remove the upper and right side of the frame, and draw a faint grid."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color=RULE, linewidth=0.8)
    axis.set_axisbelow(True)
