"""What theta means: density, components and edge weights of the learned graphs along theta.

It is hard to have an opinion on theta, and easier to have one on the density of a graph and on its
number of components. `theta_sweep` shows how these depend on theta for given distances; no labels
are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from ..convex import solve_path, theta_range
from ..data.dataset import GraphDataset
from ..edges import Support
from ..validate import as_floats, check_distances
from .predict import DataLike, graphs_in

# The quantiles of edge weight that a sweep records.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# Grid points per factor of ten in theta: neighbours are some 20 % apart.
PER_DECADE = 12

# The distances of a graph, and its candidate edges.
Input = tuple[Float[np.ndarray, " edges"], Support]


@dataclass(frozen=True)
class ThetaSweep:
    """Properties of the learned graphs along theta: a row per graph, a column per theta."""

    thetas: Float[np.ndarray, " thetas"]
    density: Float[np.ndarray, "graphs thetas"]
    """The number of edges (weights above 1e-5 of the graph's largest) as a share of all pairs."""
    components: Int[np.ndarray, "graphs thetas"]
    """The number of connected components."""
    weights: Float[np.ndarray, "graphs thetas levels"]
    """Quantiles of the weights of the edges, at `levels`."""
    levels: tuple[float, ...] = LEVELS

    @property
    def mean_density(self) -> Float[np.ndarray, " thetas"]:
        """The mean density of the graphs."""
        return self.density.mean(0)

    @property
    def most_components(self) -> Int[np.ndarray, " thetas"]:
        """The largest number of components of a graph."""
        return self.components.max(0)

    @property
    def median_weight(self) -> Float[np.ndarray, " thetas"]:
        """The median edge weight, averaged over the graphs."""
        return self.weights[:, :, self.levels.index(0.5)].mean(0)

    def table(self) -> pd.DataFrame:
        """Tabulate means over the graphs, and the largest number of components, for each theta."""
        columns = {"theta": self.thetas, "density": self.mean_density}
        columns |= {"components": self.components.mean(0), "most_components": self.most_components}
        for k, level in enumerate(self.levels):
            columns[f"weight_q{100 * level:g}"] = self.weights[:, :, k].mean(0)
        return pd.DataFrame(columns)


def theta_sweep(
    e: DataLike, thetas: ArrayLike | None = None, support: Support | None = None
) -> ThetaSweep:
    """Compute density, components and edge weights of the learned graphs along theta.

    The graphs are converged solutions of the convex problem (`edgebelief.convex.solve_path`), not
    outputs of a truncated network, whose weights are all zero where theta is large.

    Parameters
    ----------
    e : GraphDataset, sequence of array_like, or array_like
        The distances of several graphs, or of one: (n_edges,) or (N, N). Labels are not used.
    thetas : array_like, optional
        By default a log grid, from thetas where nearly every pair is an edge to thetas where no
        further edge can disappear.
    support : Support, optional
        The candidate edges of every graph; by default all pairs.

    Returns
    -------
    ThetaSweep

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.sweep import theta_sweep
    >>> sweep = theta_sweep(np.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0]), thetas=[0.01, 1.0])
    >>> sweep.density.round(2)  # all six pairs; then two of them
    array([[1.  , 0.33]])
    >>> sweep.components
    array([[1, 2]])
    """
    inputs = inputs_of(e, support)
    if thetas is None:
        return sweep_of(inputs, default_thetas(inputs))
    return sweep_of(inputs, np.atleast_1d(as_floats(thetas, "thetas")))


def sweep_of(inputs: list[Input], thetas: Float[np.ndarray, " thetas"]) -> ThetaSweep:
    """Compute a `ThetaSweep` of inputs that have been checked."""
    shape = len(inputs), thetas.size
    density, components = np.zeros(shape), np.zeros(shape, int)
    weights = np.zeros((*shape, len(LEVELS)))
    for t, (e, support) in enumerate(inputs):
        for k, solution in enumerate(solve_path(e, thetas, support=support)):
            a = solution.weights
            density[t, k] = support.density(a)
            components[t, k] = support.n_components(a)
            weights[t, k] = np.quantile(a[support.is_edge(a)], LEVELS)
    return ThetaSweep(thetas, density, components, weights)


def default_thetas(inputs: list[Input]) -> Float[np.ndarray, " thetas"]:
    """Make a log grid over which every graph goes from complete to its sparsest.

    For small theta every weight is about 1/sqrt(L), with L candidate edges at a node, and weights
    differ by about theta times the differences between distances. While that is below a fifth of
    1/sqrt(L), no edge disappears. Once theta e > 30 for the nearest pairs, the weights, of order
    1/(theta e), are a thousand times smaller than the duals, of order theta e, and the set of edges
    no longer depends on theta. No theta is larger than float64 allows for any graph.
    """
    low, high = [], []
    for e, support in inputs:
        spread = np.abs(e - np.median(e)).max() or np.abs(e).max() or 1.0
        low.append(0.2 / (np.sqrt(support.max_degree) * spread))
        nearest = np.full(support.n_nodes, np.inf)
        for ends in support.endpoints:
            np.minimum.at(nearest, np.asarray(ends), np.where(e > 0, e, np.inf))
        nearest = nearest[np.isfinite(nearest)]
        # Not the smallest: one pair of near-duplicates would extend the grid by decades.
        high.append(30 / np.quantile(nearest, 0.05) if nearest.size else 100 * low[-1])
    largest = min(theta_range(e, support)[1] for e, support in inputs)
    first = min(*low, largest / 10)
    last = min(max(*high, 10 * first), largest)
    return np.geomspace(first, last, int(np.ceil(PER_DECADE * np.log10(last / first))) + 1)


def inputs_of(e: DataLike, support: Support | None) -> list[Input]:
    """Check the distances of one graph or several."""
    graphs = [record.e for record in e] if isinstance(e, GraphDataset) else graphs_in(e)
    return [check_distances(distances, support) for distances in graphs]
