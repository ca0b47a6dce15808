"""Posterior draws of the parameters as traces and as pairs, from an ArviZ DataTree.

They are drawn here because arviz-plots 0.8 works neither with xarray 2026 (its trace plots fail)
nor with Matplotlib 3.11 (its import fails; github.com/arviz-devs/arviz-plots/issues/500). Newer
versions of arviz-plots take the same tree.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Bool, Float

from ..data.dataset import GraphDataset
from ..infer.posterior import Posterior
from .style import BLUE, RED, SERIES, AxesLike, axes_for, tidy

if TYPE_CHECKING:
    from xarray import DataTree
else:  # xarray is slow to import
    DataTree = Any


@dataclass(frozen=True)
class _Draws:
    """The base of both displays: draws by parameter and chain, from a tree."""

    tree: DataTree

    @classmethod
    def of(cls, posterior: Posterior, data: GraphDataset) -> Self:
        """Build the display from a posterior and the data it was fitted to."""
        return cls(posterior.to_arviz(data, kind="datatree"))

    @property
    def draws(self) -> dict[str, Float[np.ndarray, "chains draws"]]:
        """The draws by parameter; each entry of a vector has a name such as "theta[0]"."""
        draws = {}
        for name, variable in self.tree["posterior"].data_vars.items():
            values = variable.transpose("chain", "draw", ...).values
            for index in np.ndindex(values.shape[2:]):
                entry = f"{name}[{','.join(map(str, index))}]" if index else str(name)
                draws[entry] = values[(slice(None), slice(None), *index)]
        return draws

    @property
    def diverging(self) -> Bool[np.ndarray, "chains draws"]:
        """Which draws are from divergent transitions; none if that was not recorded."""
        with suppress(KeyError):
            stats = self.tree["sample_stats"]["diverging"]
            return stats.transpose("chain", "draw").values.astype(bool)
        return np.zeros(next(iter(self.draws.values())).shape, bool)


@dataclass(frozen=True)
class TraceDisplay(_Draws):
    """The draws of each parameter: their distribution, and their sequence.

    Each chain has a colour; divergences are marked at the bottom. The chains should agree, and
    none should drift. Draws of `Exact` are independent, so their sequence shows nothing.

    Parameters
    ----------
    tree : DataTree
        The result of ``posterior.to_arviz(data)``, or any tree with a group `posterior`.

    Examples
    --------
    >>> import arviz_base, numpy as np
    >>> from edgebelief.plots import TraceDisplay
    >>> draws = np.random.default_rng(0).normal(size=(2, 100))
    >>> tree = arviz_base.from_dict({"posterior": {"theta": draws}})
    >>> distribution, trace = TraceDisplay(tree).plot()
    """

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw on two axes per parameter, row by row (new ones by default), and return them."""
        n = len(self.draws)
        axes = axes_for(axes, n, 2, (11, 0.6 + 1.9 * n), width_ratios=[1, 2])
        rows = axes.reshape(n, 2)
        for (name, values), (left, right) in zip(self.draws.items(), rows, strict=True):
            bins = np.histogram_bin_edges(values, 40)
            for chain, color in zip(values, cycle(SERIES), strict=False):
                left.hist(chain, bins, histtype="step", density=True, color=color, lw=1.6)
                right.plot(chain, color=color, lw=0.6, alpha=0.8)
            where = np.nonzero(self.diverging)[1]
            if where.size:
                right.plot(where, np.full(where.size, values.min()), "|", color=RED, ms=10)
            right.set_xlim(0, values.shape[1])
            right.set_ylabel(name)
            left.set_xlabel(name)
            left.set_yticks([])
            tidy(left)
            tidy(right)
        axes[-1].set_xlabel("draw")
        return axes


@dataclass(frozen=True)
class PairDisplay(_Draws):
    """Scatter plots of the draws of each pair of parameters, which show their dependence.

    Parameters
    ----------
    tree : DataTree
        See `TraceDisplay`.

    Examples
    --------
    >>> import arviz_base, numpy as np
    >>> from edgebelief.plots import PairDisplay
    >>> rng = np.random.default_rng(0)
    >>> draws = {"theta": rng.normal(size=(2, 100)), "b": rng.normal(size=(2, 100))}
    >>> axes = PairDisplay(arviz_base.from_dict({"posterior": draws})).plot()
    """

    def plot(self, axes: AxesLike = None) -> np.ndarray:
        """Draw on a square of axes, a row and a column per parameter; return them flattened."""
        names, values = list(self.draws), [v.ravel() for v in self.draws.values()]
        diverging, n = self.diverging.ravel(), len(names)
        axes = axes_for(axes, n, n, (1 + 2.3 * n, 1 + 2.1 * n), sharex="col")
        for k, axis in enumerate(axes):
            row, column = divmod(k, n)
            if column > row:
                axis.set_axis_off()
                continue
            tidy(axis)
            if column == row:
                axis.hist(values[row], 40, color=BLUE, alpha=0.85)
                axis.set_yticks([])
                axis.set_title(names[row])
            else:
                for mask, color in ((~diverging, BLUE), (diverging, RED)):
                    x, y = values[column][mask], values[row][mask]
                    axis.plot(x, y, ".", color=color, ms=4, alpha=0.35, mew=0)
                if column == 0:
                    axis.set_ylabel(names[row])
                else:
                    axis.tick_params(labelleft=False)
            if row == n - 1:
                axis.set_xlabel(names[column])
        return axes
