"""The effect of theta: density, connected components and edge weights against theta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Real

from ..belief.elicit import Elicited
from ..belief.sweep import ThetaSweep
from .style import BLUE, GREEN, INK, ORANGE, RED, Axes, AxesLike, axes_for, legend_above, tidy


@dataclass(frozen=True)
class SweepDisplay:
    """Density, components and edge weights of the learned graphs against theta.

    Each thin line is a graph, the thick line their mean. Of the edge weights the median and the
    central 50 % and 90 % are shown. For an elicited prior, the stated beliefs and the interval of
    theta with the stated probability are shaded, and the density of graphs that are drawn from the
    model at each theta is shown: its median and its central 90 %.

    Parameters
    ----------
    source : ThetaSweep or Elicited
        The result of `theta_sweep` or of `elicit_prior`.

    Examples
    --------
    >>> from edgebelief.belief import theta_sweep
    >>> from edgebelief.plots import SweepDisplay
    >>> display = SweepDisplay(theta_sweep([1.0, 2.0, 4.0]))
    >>> density, components, weights = display.plot()
    """

    source: ThetaSweep | Elicited

    @property
    def sweep(self) -> ThetaSweep:
        return self.source.sweep if isinstance(self.source, Elicited) else self.source

    @property
    def band(self) -> tuple[float, float] | None:
        """The central interval of the elicited theta with the stated probability, or None."""
        if not isinstance(self.source, Elicited):
            return None
        return self.source.interval

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw on three axes (new ones by default), and return them."""
        axes = axes_for(axes, 1, 3, (13, 4.3), sharex=True)
        density, components, weights = axes
        label = "learned graph" if isinstance(self.source, Elicited) else None
        self._lines(density, self.sweep.density, "share of pairs joined", label)
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

    def _lines(
        self,
        axis: Axes,
        values: Real[np.ndarray, "graphs thetas"],
        name: str,
        label: str | None = None,
    ) -> None:
        if len(values) > 1:
            axis.plot(self.sweep.thetas, values.T, color=BLUE, lw=0.7, alpha=0.35)
        axis.plot(self.sweep.thetas, values.mean(0), color=BLUE, lw=2.2, label=label)
        axis.set_ylabel(name)

    def _weights(self, axis: Axes) -> None:
        thetas, (least, low, middle, high, most) = self.sweep.thetas, self.sweep.weights.mean(0).T
        axis.fill_between(thetas, least, most, color=BLUE, alpha=0.15, lw=0, label="90 % of edges")
        axis.fill_between(thetas, low, high, color=BLUE, alpha=0.3, lw=0, label="50 %")
        axis.plot(thetas, middle, color=BLUE, lw=2.2, label="median")
        axis.set_ylabel("edge weight")
        axis.set_yscale("log")  # for large theta weights grow in proportion to it

    def _beliefs(self, prior: Elicited, density: Axes, components: Axes, weights: Axes) -> None:
        beliefs = prior.beliefs
        assert self.band is not None
        shade = {"alpha": 0.16, "lw": 0, "zorder": 0}
        density.axhspan(*beliefs.density, color=GREEN, label="believed density", **shade)
        low, middle, high = prior.drawn.T
        density.fill_between(prior.sweep.thetas, low, high, color=RED, alpha=0.2, lw=0)
        density.plot(prior.sweep.thetas, middle, color=RED, lw=1.6, label="drawn from the prior")
        if (most := beliefs.max_components) is not None:
            components.axhline(most, color=GREEN, lw=2, ls="--", label="believed at most")
        label = f"{100 * beliefs.mass:g} % of the prior"
        for axis in (density, components, weights):
            axis.axvspan(*self.band, color=ORANGE, alpha=0.2, lw=0, zorder=0, label=label)
            axis.axvline(prior["theta"].median, color=INK, lw=1, ls=":", zorder=1)
