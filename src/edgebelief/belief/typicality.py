"""How usual each graph is among those that a model was fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from ..data.dataset import GraphDataset
from ..data.reference import MEANINGS, SCALE, Reference, affordable, has_size
from ..infer.posterior import Posterior
from .conformal import LEAST_SD, p_values, together

# With fewer graphs that were fitted a p-value is never below 1/8, and fourteen correlations are
# not known at all.
FEWEST = 8
# A graph is compared if one that was fitted has as many nodes, within a tenth.
NEAR = 1.1
# Graphs below this p-value are called unusual.
UNUSUAL = 0.05
# All graphs of a call together are unlike those fitted if their p-value is below STRICT; or, where
# they are so few that it cannot be, if it is as small as it can be, and below UNUSUAL.
STRICT = 0.01
# So many statistics are named in a warning.
NAMED = 3


@dataclass(frozen=True)
class Comparison:
    """Graphs of a call among those that were fitted."""

    indices: Int[np.ndarray, " graphs"]
    """Which graphs of the call."""
    names: tuple[str, ...]
    fitted: Float[np.ndarray, "fitted statistics"]
    new: Float[np.ndarray, "graphs statistics"]
    p: Float[np.ndarray, " graphs"]

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        data: GraphDataset,
        *,
        every: bool = False,
        scale: bool = True,
    ) -> Comparison | None:
        """Compare graphs with those that were fitted; None where it cannot be done.

        Of many or large graphs only some are compared, unless `every`; the scale of distances only
        if it is to be, and means something.
        """
        fitted = posterior.fingerprint.reference
        if len(fitted) < FEWEST:
            return None
        whole = np.array([record.candidates is None for record in data])
        indices = np.flatnonzero(whole & _has_peers(data.n_nodes, fitted.n_nodes))
        if not every:
            indices = affordable(indices, data.n_nodes)
        if not len(indices):
            return None
        new = Reference.of(data, indices.tolist())
        # A readout that reads each graph on a scale of its own does not see the unit.
        left_out = () if scale and posterior.model.readout.scale is None else (SCALE,)
        names = tuple(n for n in fitted.names if n in new.names and n not in left_out)
        if not names:
            return None
        of_fitted = fitted.array[:, [fitted.names.index(name) for name in names]]
        of_new = new.array[:, [new.names.index(name) for name in names]]
        size = np.log(np.array([*fitted.n_nodes, *new.n_nodes], float))
        return cls(indices, names, of_fitted, of_new, p_values(of_fitted, of_new, size))

    @property
    def are_unlike(self) -> bool:
        """Whether the graphs, all together, are unlike those that were fitted."""
        n = len(self.fitted)
        smallest = together(np.full(len(self.p), 1 / (n + 1)), n)
        return together(self.p, n) <= min(max(STRICT, smallest), UNUSUAL)

    @property
    def deviations(self) -> Float[np.ndarray, "graphs statistics"]:
        """By how many standard deviations each statistic differs from the mean of the fitted."""
        sd = np.sqrt(self.fitted.var(0) + LEAST_SD**2)
        return (self.new - self.fitted.mean(0)) / sd

    def sentence(self) -> str:
        """Say what is unusual, with values and the ranges of the fitted."""
        unusual = self.p <= max(UNUSUAL, 1 / (len(self.fitted) + 1))
        unusual = unusual if unusual.any() else self.p <= np.median(self.p)
        of_unusual = np.median(self.deviations[unusual], axis=0)
        values = np.median(self.new[unusual], axis=0)
        low, high = self.fitted.min(0), self.fitted.max(0)
        order = np.argsort(-np.abs(of_unusual), kind="stable")
        beyond = [k for k in order if not low[k] <= values[k] <= high[k]][:NAMED]
        named = "; ".join(
            f"{MEANINGS[name]}: {values[k]:.3g}, in the fit {low[k]:.3g} to {high[k]:.3g}"
            for k in (beyond or order[:NAMED])
            for name in [self.names[k]]
        )
        if not beyond:
            named += "; each is within the range, their combination is unusual"
        m, p = len(self.p), together(self.p, len(self.fitted))
        if m == 1:
            which = f"this graph is unlike the {len(self.fitted)} that were fitted (p = {p:.2g})"
        else:
            which = (
                f"{int(unusual.sum())} of {m} graphs are unlike the {len(self.fitted)} that were "
                f"fitted (p = {p:.2g}, all together)"
            )
        median = "" if m == 1 else ", medians"
        return (
            f"{which}{median}: {named}. The belief is calibrated for graphs like those fitted, and "
            f"may be too sure of these, with no sign of it in the probabilities. Fit graphs of "
            f"this kind; `typicality` tells about each graph."
        )


def typicality(posterior: Posterior, data: GraphDataset) -> pd.DataFrame:
    """Compare each graph with those that were fitted, by statistics of its distances.

    The statistics have no unit and do not depend on the order of the nodes
    (`edgebelief.data.summaries`); beside them there is the median distance. The Mahalanobis
    distance of a graph's statistics from those of the fitted graphs is compared with that of each
    fitted graph from the others, which gives a conformal p-value: of graphs from where the fitted
    graphs are from, at most a share of about 0.05 has one below 0.05. If statistics depend on the
    number of nodes, a straight line on its logarithm is taken off.

    A graph is compared if it has 5 to 1000 nodes and a fitted graph has as many within a tenth, and
    if at least 8 such graphs with labels were fitted. The smallest p-value with n of them is
    1/(n + 1). A usual graph may still be a hard one: this says that nothing about its distances is
    new, not that the belief is right.

    Parameters
    ----------
    posterior : Posterior
    data : GraphDataset

    Returns
    -------
    DataFrame
        A row per graph: its index graph, its number of nodes, p (NaN if it was not compared), the
        statistic that deviates most from the mean of the fitted (in standard deviations), its
        value, and the range low to high in the fit.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.3), 34, n_nodes=15)
    >>> posterior = infer.Laplace().run(0, infer.EdgeModel(), graphs[:30])
    >>> belief.typicality(posterior, graphs[30:])["p"].round(2).tolist()
    [0.87, 0.32, 0.94, 0.32]
    >>> trees = data.GraphDataset.sample(1, data.BarabasiAlbert(1), 4, n_nodes=15)
    >>> belief.typicality(posterior, trees)["p"].round(2).tolist()
    [0.03, 0.03, 0.03, 0.03]
    """
    compared = Comparison.of(posterior, data, every=True)
    table = pd.DataFrame({"graph": range(len(data)), "nodes": data.n_nodes, "p": np.nan})
    table["statistic"] = pd.Series([None] * len(data), dtype=object)
    table[["value", "low", "high"]] = np.nan
    if compared is None:
        return table
    rows = compared.indices
    most = np.abs(compared.deviations).argmax(1)
    table.loc[rows, "p"] = compared.p
    table.loc[rows, "statistic"] = [compared.names[k] for k in most]
    table.loc[rows, "value"] = compared.new[np.arange(len(rows)), most]
    table.loc[rows, "low"] = compared.fitted.min(0)[most]
    table.loc[rows, "high"] = compared.fitted.max(0)[most]
    return table


def _has_peers(n_nodes: tuple[int, ...], fitted: tuple[int, ...]) -> Bool[np.ndarray, " graphs"]:
    """Return which graphs are compared: those with about as many nodes as one that was fitted."""
    n, known = np.asarray(n_nodes, float), np.unique(fitted).astype(float)
    ratio = np.abs(np.log(n[:, None] / known)).min(1)
    return has_size(n_nodes) & (ratio <= np.log(NEAR))
