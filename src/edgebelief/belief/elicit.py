"""Turn beliefs about graphs into a prior over parameters.

It is hard to have an opinion on theta, and easier to have one on the density of a graph and on its
number of components. `theta_sweep` shows how these depend on theta for given distances (no labels
are needed), and `elicit_prior` turns stated beliefs into a `Prior`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ..convex import solve_path, theta_range
from ..data.dataset import GraphDataset
from ..edges import Support
from ..errors import InputError, SettingError, SettingTypeError
from ..infer.priors import LogNormal, Prior, lognormal
from ..validate import as_floats, check_distances, check_number, check_whole
from .predict import DataLike, graphs_in

# The quantiles of edge weight that a sweep records.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# Grid points per factor of ten in theta: neighbours are some 20 % apart.
PER_DECADE = 12
# The prior median of delta times the weight of a typical edge: see `elicit_prior`.
CONFIDENT = 10.0
# Points of the finer grid between two neighbours of the grid. Refining twice gives the ends of an
# interval to one part in a thousand.
REFINED = 17


# The distances of a graph, and its candidate edges.
Input = tuple[Float[np.ndarray, " edges"], Support]


class ThetaInterval(NamedTuple):
    """An interval of theta; 0 or inf where it has no end."""

    low: float
    high: float


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
    >>> from edgebelief.belief.elicit import theta_sweep
    >>> sweep = theta_sweep(np.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0]), thetas=[0.01, 1.0])
    >>> sweep.density.round(2)  # all six pairs; then two of them
    array([[1.  , 0.33]])
    >>> sweep.components
    array([[1, 2]])
    """
    inputs = _inputs(e, support)
    if thetas is None:
        return _sweep(inputs, default_thetas(inputs))
    return _sweep(inputs, np.atleast_1d(as_floats(thetas, "thetas")))


def _sweep(inputs: list[Input], thetas: Float[np.ndarray, " thetas"]) -> ThetaSweep:
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


class Beliefs(NamedTuple):
    """The beliefs that were stated to `elicit_prior`."""

    density: tuple[float, float]
    max_components: int | None
    mass: float
    """The prior probability that theta is to have where the other two hold."""


class Elicited(Prior):
    """A `Prior` with the beliefs that it was made from. Use it as any other: EdgeModel(prior=...).

    Attributes
    ----------
    beliefs : Beliefs
        The beliefs that were stated.
    sweep : ThetaSweep
        The learned graphs along theta, which `edgebelief.plots.SweepDisplay` shows.
    interval : ThetaInterval
        The thetas (low, high) between which the beliefs hold; 0 or inf where there is no end.
    """

    def __init__(
        self, prior: Prior, beliefs: Beliefs, sweep: ThetaSweep, interval: ThetaInterval
    ) -> None:
        super().__init__(**prior)
        self.beliefs, self.sweep, self.interval = beliefs, sweep, interval


def elicit_prior(
    e: DataLike,
    density: tuple[float, float],
    max_components: int | None = None,
    mass: float = 0.95,
    support: Support | None = None,
) -> Elicited:
    """Make a prior for theta, delta and b from beliefs about the graphs.

    - theta: the thetas whose graphs have a density within `density` (and at most `max_components`
      components) form an interval. The prior is the lognormal with probability `mass` in it and
      equal tails. Where the interval has no end on one side (a density up to 1, or down to the
      sparsest possible), the median is the geometric mean of the other end and of the end of the
      sweep, and the tail beyond that other end has probability 1 - `mass`.
    - delta: lognormal, median 10 / (median edge weight at the median theta), standard deviation of
      the log sqrt(2). A typical edge then has the logit 10 - b: nearly certain for b of order 1,
      and more likely than not for b below 10, which has probability 95 %. On the paper's random
      geometric graphs the fitted delta times that weight is 12. The prior leaves the rest to the
      labels: it gives a probability of two thirds to values within a factor of 4 of the median.
    - b: lognormal(1, sqrt(2)), of order 1, as in the paper. Pairs to which the network gives weight
      0 have the logit -b, so each is an edge with a prior probability of about 1/4. Graphs drawn
      from the model are therefore denser than those that the beliefs are about: look at
      `edgebelief.belief.checks.prior_predictive` before fitting, and replace the prior of b if it
      does not say what you believe.

    Parameters
    ----------
    e, support
        As for `theta_sweep`; the distances are on the scale that will be fitted.
    density : (float, float)
        The mean density of the graphs, edges as a share of pairs, is believed to lie between these.
    max_components : int, optional
        No graph is believed to have more connected components.
    mass : float
        The probability of these beliefs.

    Returns
    -------
    Elicited
        A `Prior`, with the sweep that it was computed from.

    Raises
    ------
    ValueError
        If no theta meets the beliefs; the message says which beliefs can be met.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.RandomGeometric(0.4), n_graphs=3, n_nodes=15)
    >>> prior = belief.elicit_prior(graphs, density=(0.2, 0.5), mass=0.9)
    >>> bool(prior.interval[0] < prior["theta"].median < prior.interval[1])
    True
    >>> model = infer.EdgeModel(prior=prior)
    """
    beliefs = _check_beliefs(density, max_components, mass)
    inputs = _inputs(e, support)
    sweep = _sweep(inputs, default_thetas(inputs))
    interval = _interval(inputs, sweep, beliefs)
    theta = _lognormal_within(interval, sweep, beliefs.mass)
    typical = float(_sweep(inputs, np.array([theta.median])).median_weight[0])
    delta = lognormal(CONFIDENT / typical, np.sqrt(2))
    prior = Prior(theta=theta, delta=delta, b=lognormal(1.0, np.sqrt(2)))
    return Elicited(prior, beliefs, sweep, interval)


def _interval(inputs: list[Input], sweep: ThetaSweep, beliefs: Beliefs) -> ThetaInterval:
    """Compute the interval of theta in which the beliefs hold."""
    dense, sparse = _too_dense(sweep, beliefs), _too_sparse(sweep, beliefs)
    if dense[-1] or sparse[0]:
        raise _out_of_reach(sweep, beliefs)
    low = _refine(inputs, sweep, beliefs, _too_dense).high if dense.any() else 0.0
    high = _refine(inputs, sweep, beliefs, _too_sparse).low if sparse.any() else np.inf
    if not low < high:
        raise _nothing_between(inputs, low, high, beliefs)
    return ThetaInterval(low, high)


def _too_dense(sweep: ThetaSweep, beliefs: Beliefs) -> Bool[np.ndarray, " thetas"]:
    return sweep.mean_density > beliefs.density[1]


def _too_sparse(sweep: ThetaSweep, beliefs: Beliefs) -> Bool[np.ndarray, " thetas"]:
    most = np.inf if beliefs.max_components is None else beliefs.max_components
    return (sweep.mean_density < beliefs.density[0]) | (sweep.most_components > most)


def _refine(
    inputs: list[Input],
    sweep: ThetaSweep,
    beliefs: Beliefs,
    rule: Callable[[ThetaSweep, Beliefs], Bool[np.ndarray, " thetas"]],
) -> ThetaInterval:
    """Find between which thetas the value of `rule` changes: on the sweep, then on finer grids."""

    def change(sweep: ThetaSweep) -> ThetaInterval:
        values = rule(sweep, beliefs)
        # The density is only almost monotone, so that the value may change more than once: take the
        # last change of `_too_dense`, the first of `_too_sparse`.
        changes = np.flatnonzero(values[1:] != values[:-1])
        k = changes[-1] if rule is _too_dense else changes[0]
        return ThetaInterval(float(sweep.thetas[k]), float(sweep.thetas[k + 1]))

    gap = change(sweep)
    for _ in range(2):
        gap = change(_sweep(inputs, np.geomspace(gap.low, gap.high, REFINED)))
    return gap


def _lognormal_within(interval: ThetaInterval, sweep: ThetaSweep, mass: float) -> LogNormal:
    """Make the lognormal of `elicit_prior`; where the interval has no end, the sweep's is taken."""
    low, high = max(interval.low, sweep.thetas[0]), min(interval.high, sweep.thetas[-1])
    one_sided = (interval.low == 0) != (interval.high == np.inf)
    standard_deviations = ndtri(mass) if one_sided else ndtri((1 + mass) / 2)
    return lognormal(np.sqrt(low * high), np.log(high / low) / 2 / float(standard_deviations))


def _check_beliefs(
    density: tuple[float, float], max_components: int | None, mass: float
) -> Beliefs:
    try:
        low, high = (check_number(value, "density") for value in density)
    except (TypeError, ValueError):
        raise SettingTypeError(
            f"must be two numbers, such as (0.1, 0.3); got {density!r}.", argument="density"
        ) from None
    if not 0 <= low < high <= 1:
        problem = f"must be two shares of all pairs, 0 <= low < high <= 1; got {density!r}."
        raise SettingError(problem, argument="density")
    if max_components is not None:
        max_components = check_whole(max_components, "max_components", 1)
    mass = check_number(mass, "mass")
    if not 0.5 < mass < 1:
        raise SettingError(f"must be above 0.5 and below 1; got {mass:g}.", argument="mass")
    return Beliefs((low, high), max_components, mass)


def _out_of_reach(sweep: ThetaSweep, beliefs: Beliefs) -> InputError:
    """Make the error for beliefs that no theta of the sweep meets."""
    low, high = beliefs.density
    sparsest, densest = sweep.mean_density.min(), sweep.mean_density.max()
    if beliefs.max_components is None or high < sparsest or low > densest:
        return InputError(
            f"no theta gives these inputs a mean density between {low:g} and {high:g}: it can be "
            f"{sparsest:.4g} (every node keeps an edge) to {densest:.4g}. State a range that "
            f"reaches into that."
        )
    return InputError(
        f"no theta leaves each of these graphs in at most {beliefs.max_components} pieces: even "
        f"at their densest one has {sweep.most_components[0]}. Allow that many."
    )


def _nothing_between(
    inputs: list[Input], dense_below: float, sparse_above: float, beliefs: Beliefs
) -> InputError:
    """Make the error for beliefs such that every theta is too sparse or too dense."""
    low, high = beliefs.density
    ends = _sweep(inputs, np.array([sparse_above, dense_below]))
    density, pieces = ends.mean_density, ends.most_components
    if density[1] < low:
        return InputError(
            f"no theta gives these inputs a mean density between {low:g} and {high:g}: it jumps "
            f"from {density[0]:.4g} to {density[1]:.4g} at theta = {dense_below:.4g} (edges leave "
            f"one by one, and together if they are alike). State a wider range."
        )
    return InputError(
        f"the beliefs contradict each other on these inputs: max_components="
        f"{beliefs.max_components} asks for a mean density of {density[0]:.4g} or more (at "
        f"{density[1]:.4g} a graph is in {pieces[1]} pieces), and the density was to be between "
        f"{low:g} and {high:g}. Allow more pieces, or a higher density."
    )


def _inputs(e: DataLike, support: Support | None) -> list[Input]:
    """Check the distances of one graph or several."""
    graphs = [record.e for record in e] if isinstance(e, GraphDataset) else graphs_in(e)
    return [check_distances(distances, support) for distances in graphs]
