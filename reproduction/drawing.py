"""What several figures draw in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "#888888"


def legend_of_figure(axis: Axes, columns: int, title: str | None = None) -> None:
    """Draw the legend of one axis over the whole figure."""
    axis.figure.legend(
        *axis.get_legend_handles_labels(), loc="outside upper center", ncols=columns,
        frameon=False, title=title,
    )  # fmt: skip
