"""The posterior density of each parameter against its prior density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..infer.posterior import Posterior
from .style import BLUE, ORANGE, AxesLike, axes_for, tidy


class MarginalDensity(NamedTuple):
    """The densities of one parameter, over the range of its posterior."""

    x: Float[np.ndarray, " points"]
    posterior: Float[np.ndarray, " points"]
    prior: Float[np.ndarray, " points"]
    mean: float
    sd: float


@dataclass(frozen=True)
class MarginalsDisplay:
    """The posterior density of each scalar parameter, with its prior density on the same range.

    For the curves of an additive readout see `TermsDisplay`.

    Parameters
    ----------
    densities : mapping from parameter names to MarginalDensity
        The densities to draw; `of` computes them from a posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.plots import MarginalsDisplay
    >>> from edgebelief.plots.marginals import MarginalDensity
    >>> x = np.linspace(0.1, 0.3, 50)
    >>> bell = np.exp(-((x - 0.2) ** 2) / 2 / 0.02**2) / 0.05
    >>> theta = MarginalDensity(x, bell, np.full(50, 0.7), mean=0.2, sd=0.02)
    >>> axes = MarginalsDisplay({"theta": theta}).plot()
    """

    densities: Mapping[str, MarginalDensity]

    @classmethod
    def of(cls, posterior: Posterior) -> MarginalsDisplay:
        """Compute the densities of all parameters of a posterior that are not fixed.

        The engine must give a distribution: `MAP`, for example, gives a point.
        """
        summary = posterior.summary()
        densities = {}
        for name in summary.index:
            site, _ = posterior.model.scalar_names[name]
            marginal = posterior.model.prior[site]
            if marginal.fixed:
                continue
            x, density = posterior.density(name)
            prior = np.exp(marginal.distribution.log_prob(x))
            mean, sd = (float(summary[column][name]) for column in ("mean", "sd"))
            densities[name] = MarginalDensity(x, density, np.asarray(prior, float), mean, sd)
        return cls(densities)

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw each parameter on one of `axes` (new ones by default), and return the axes."""
        n = len(self.densities)
        axes = axes_for(axes, 1, n, (1 + 3.6 * n, 3.4))
        for axis, (name, density) in zip(axes, self.densities.items(), strict=True):
            axis.fill_between(density.x, density.posterior, color=BLUE, alpha=0.25, lw=0)
            axis.plot(density.x, density.posterior, color=BLUE, lw=2.2, label="posterior")
            axis.plot(density.x, density.prior, color=ORANGE, lw=2.2, ls="--", label="prior")
            axis.set_ylim(bottom=0)
            axis.set_title(f"{name}: {density.mean:.3g} ± {density.sd:.2g}")
            axis.set_xlabel(name)
            tidy(axis)
        axes[0].set_ylabel("density")
        axes[0].legend(loc="upper right", frameon=False)
        return axes
