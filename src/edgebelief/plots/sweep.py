"""What theta means: density, components and edge weights along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..belief.elicit import Elicited, ThetaSweep
from .style import BLUE, GREEN, INK, ORANGE, axes_for, legend_above, tidy


@dataclass(frozen=True)
class SweepDisplay:
    """Density, components and edge weights of the learned graphs against theta.

    A thin line is a graph, the thick one their mean; of the weights it is their median with the
    middle 50 % and 90 %. For an elicited prior the beliefs are shaded, and the part of theta that
    holds the stated mass.

    Parameters
    ----------
    source : ThetaSweep or Elicited
        From `theta_sweep`, or from `elicit_prior`.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.elicit import theta_sweep
    >>> from edgebelief.plots import SweepDisplay
    >>> display = SweepDisplay(theta_sweep(np.array([1.0, 2.0, 4.0])))
    >>> density, components, weights = display.plot()
    """

    source: ThetaSweep | Elicited

    @property
    def sweep(self) -> ThetaSweep:
        return self.source.sweep if isinstance(self.source, Elicited) else self.source

    @property
    def band(self) -> tuple[float, float] | None:
        """Where the elicited theta has its stated mass, alike on both sides; None without one."""
        if not isinstance(self.source, Elicited):
            return None
        rest = (1 - self.source.beliefs.mass) / 2
        low, high = self.source["theta"].quantile([rest, 1 - rest])
        return float(low), float(high)

    def plot(self, axes: Any = None) -> Any:
        """Draw on three axes (new ones by default); returns them."""
        axes = axes_for(axes, 1, 3, (13, 4.3), sharex=True)
        density, components, weights = axes
        self._lines(density, self.sweep.density, "share of pairs joined")
        density.set_ylim(0, 1.04)
        self._lines(components, self.sweep.components, "connected components")
        components.yaxis.get_major_locator().set_params(integer=True)
        self._weights(weights)
        for axis in axes:
            axis.set_xscale("log")
            axis.set_xlim(self.sweep.thetas.min(), self.sweep.thetas.max())
            axis.set_xlabel("theta")
            tidy(axis)
        if isinstance(self.source, Elicited):
            self._beliefs(self.source, density, components, weights)
        for axis in axes:
            legend_above(axis)
        return axes

    def _lines(self, axis: Any, values: np.ndarray, name: str) -> None:
        if len(values) > 1:
            axis.plot(self.sweep.thetas, values.T, color=BLUE, lw=0.7, alpha=0.35)
        axis.plot(self.sweep.thetas, values.mean(0), color=BLUE, lw=2.2)
        axis.set_ylabel(name)

    def _weights(self, axis: Any) -> None:
        thetas, (least, low, middle, high, most) = (
            self.sweep.thetas,
            np.moveaxis(self.sweep.weights.mean(0), -1, 0),
        )
        axis.fill_between(thetas, least, most, color=BLUE, alpha=0.15, lw=0, label="90 % of edges")
        axis.fill_between(thetas, low, high, color=BLUE, alpha=0.3, lw=0, label="50 %")
        axis.plot(thetas, middle, color=BLUE, lw=2.2, label="median")
        axis.set_ylabel("edge weight")

    def _beliefs(self, prior: Elicited, density: Any, components: Any, weights: Any) -> None:
        beliefs = prior.beliefs
        density.axhspan(
            *beliefs.density, color=GREEN, alpha=0.16, lw=0, zorder=0, label="believed density"
        )
        if beliefs.max_components is not None:
            components.axhline(
                beliefs.max_components, color=GREEN, lw=2, ls="--", label="believed at most"
            )
        label = f"{100 * beliefs.mass:g} % of the prior"
        for axis in (density, components, weights):
            axis.axvspan(
                *self.band,
                color=ORANGE,
                alpha=0.2,
                lw=0,
                zorder=0,
                label=label,  # type: ignore[misc]
            )
            axis.axvline(prior["theta"].median, color=INK, lw=1, ls=":", zorder=1)
