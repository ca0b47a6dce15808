"""What the labels said of each parameter: posterior against prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ..infer.posterior import Posterior
from .style import BLUE, ORANGE, axes_for, tidy


class MarginalDensity(NamedTuple):
    """Of one parameter, over the range of its posterior."""

    x: Float[np.ndarray, " points"]
    posterior: Float[np.ndarray, " points"]
    prior: Float[np.ndarray, " points"]
    mean: float
    sd: float


@dataclass(frozen=True)
class MarginalsDisplay:
    """The posterior density of each parameter, with the prior's over the same range.

    Of parameters that are one number; for the curves of an additive readout see `TermsDisplay`.

    Parameters
    ----------
    densities : mapping from parameter names to MarginalDensity
        See `of`.

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
        """From a posterior, of any engine that gives more than a point; less what is fixed."""
        summary = posterior.summary()
        densities = {}
        for name in summary.index:
            if posterior.model.prior[posterior.model.scalar_names[name][0]].fixed:
                continue
            x, density = posterior.density(name)
            of, _ = posterior.model.scalar_names[name]
            prior = np.exp(posterior.model.prior[of].distribution.log_prob(x))
            mean, sd = (float(summary[column][name]) for column in ("mean", "sd"))
            densities[name] = MarginalDensity(x, density, np.asarray(prior, float), mean, sd)
        return cls(densities)

    def plot(self, axes: Any = None) -> Any:
        """Draw on an axis per parameter (new ones by default); returns them."""
        n = len(self.densities)
        axes = axes_for(axes, 1, n, (1 + 3.6 * n, 3.4))
        for axis, (name, found) in zip(axes, self.densities.items(), strict=True):
            axis.fill_between(found.x, found.posterior, color=BLUE, alpha=0.25, lw=0)
            axis.plot(found.x, found.posterior, color=BLUE, lw=2.2, label="posterior")
            axis.plot(found.x, found.prior, color=ORANGE, lw=2.2, ls="--", label="prior")
            axis.set_ylim(bottom=0)
            axis.set_title(f"{name}: {found.mean:.3g} ± {found.sd:.2g}")
            axis.set_xlabel(name)
            tidy(axis)
        axes[0].set_ylabel("density")
        axes[0].legend(loc="upper right", frameon=False)
        return axes
