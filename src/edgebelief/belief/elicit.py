"""From beliefs about graphs to a prior over parameters.

theta is hard to have an opinion on; how many pairs are joined, and into how many pieces a graph
falls, is not. `theta_sweep` shows what theta means on inputs at hand (no labels are needed), and
`elicit_prior` turns stated beliefs into a `Prior`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import ndtri

from ..convex import solve_path
from ..data.dataset import GraphDataset
from ..edges import Support
from ..errors import InputError, SettingError, SettingTypeError
from ..infer.priors import LogNormal, Prior, lognormal
from ..validate import as_floats, check_distances, check_number, is_one_graph

# The quantiles of edge weight that a sweep records.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# Points per factor of ten in theta: two neighbours are some 20 % apart.
PER_DECADE = 12
# The logit that delta gives a typical edge, before b is taken off: see `elicit_prior`.
CONFIDENT = 10.0
# Points within a gap of the grid where an end of the believed range lies. Twice: an end is then
# known to one part in a thousand.
REFINED = 17

# The distances of each graph, with its candidate edges.
Inputs = list[tuple[Float[np.ndarray, " edges"], Support]]


@dataclass(frozen=True)
class ThetaSweep:
    """What the learned graphs look like along theta: a row per graph, a column per theta."""

    thetas: Float[np.ndarray, " thetas"]
    density: Float[np.ndarray, "graphs thetas"]
    """Edges (weights above 1e-5 of the graph's largest) as a share of all pairs."""
    components: Int[np.ndarray, "graphs thetas"]
    """Into how many pieces a graph falls."""
    weights: Float[np.ndarray, "graphs thetas levels"]
    """Quantiles of the weights of the edges, at `levels`."""
    levels: tuple[float, ...] = LEVELS

    @property
    def mean_density(self) -> Float[np.ndarray, " thetas"]:
        """Over the graphs."""
        return self.density.mean(0)

    @property
    def most_components(self) -> Int[np.ndarray, " thetas"]:
        """Of the graph that falls into most."""
        return self.components.max(0)

    @property
    def median_weight(self) -> Float[np.ndarray, " thetas"]:
        """The median edge weight, averaged over the graphs."""
        return self.weights[:, :, self.levels.index(0.5)].mean(0)

    def table(self) -> pd.DataFrame:
        """A row per theta: means over the graphs, and the largest number of components."""
        columns = {"theta": self.thetas, "density": self.mean_density}
        columns["components"] = self.components.mean(0)
        columns["most_components"] = self.most_components
        for k, level in enumerate(self.levels):
            columns[f"weight_q{100 * level:g}"] = self.weights[:, :, k].mean(0)
        return pd.DataFrame(columns)


def theta_sweep(e: Any, thetas: Any = None, support: Support | None = None) -> ThetaSweep:
    """Solve along theta, on unlabelled inputs: density, components, edge weights.

    The graphs are converged solutions of the convex problem (`edgebelief.convex.solve_path`), not
    the outputs of a truncated network, which is dead where theta is large.

    Parameters
    ----------
    e : GraphDataset, sequence of array_like, or array_like
        The distances of several graphs, or of one: (n_edges,) or (N, N). Labels are not looked at.
    thetas : array_like, optional
        By default a log grid from where nearly every pair is an edge to where no more can leave.
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


def _sweep(inputs: Inputs, thetas: np.ndarray) -> ThetaSweep:
    """`theta_sweep` after the door."""
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


def default_thetas(inputs: Inputs) -> Float[np.ndarray, " thetas"]:
    """A log grid over which every graph goes from complete to its sparsest.

    As theta goes to 0 every weight goes to about 1/sqrt(L) (L candidate edges at a node), less
    theta times how far distances are from each other, or a few times that: while that is below a
    fifth, no edge leaves. Once theta e > 30 for the nearest pairs, the weights, of order
    1/(theta e), are a thousand times smaller than the duals, of order theta e: which edges are left
    depends on theta no more.
    """
    low, high = [], []
    for e, support in inputs:
        spread = np.abs(e - np.median(e)).max() or np.abs(e).max() or 1.0
        low.append(0.2 / (np.sqrt(support.max_degree) * spread))
        nearest = np.full(support.n_nodes, np.inf)
        for ends in support.endpoints:
            np.minimum.at(nearest, np.asarray(ends), np.where(e > 0, e, np.inf))
        nearest = nearest[np.isfinite(nearest)]
        # Not the smallest: one pair of near-duplicates would stretch the grid by decades.
        high.append(30 / np.quantile(nearest, 0.05) if nearest.size else 100 * low[-1])
    first, last = min(low), max(max(high), 10 * min(low))
    return np.geomspace(first, last, int(np.ceil(PER_DECADE * np.log10(last / first))) + 1)


class Beliefs(NamedTuple):
    """What was stated to `elicit_prior`."""

    density: tuple[float, float]
    max_components: int | None
    mass: float


class Elicited(Prior):
    """A `Prior` that remembers what it was made from. Use it as any other: EdgeModel(prior=...).

    Attributes
    ----------
    beliefs : Beliefs
        As they were stated.
    sweep : ThetaSweep
        What theta means on the inputs: the data of the figure (`edgebelief.plots.SweepDisplay`).
    interval : tuple of float
        The thetas between which the beliefs hold; 0 or inf where they hold however far one goes.
    """

    def __init__(
        self, prior: Prior, beliefs: Beliefs, sweep: ThetaSweep, interval: tuple[float, float]
    ):
        super().__init__(**prior)
        self.beliefs, self.sweep, self.interval = beliefs, sweep, interval


def elicit_prior(
    e: Any,
    density: tuple[float, float],
    max_components: int | None = None,
    mass: float = 0.95,
    support: Support | None = None,
) -> Elicited:
    """A prior for theta, delta, b from what is believed of the graphs.

    - theta: the thetas whose graphs have a density within `density` (and at most `max_components`
      pieces) form an interval; a lognormal that puts `mass` of itself there, alike on both sides.
      Where the interval is open (a density up to 1, or down to the sparsest that can be), it is
      centred between the closed end and the end of the sweep, with 1 - `mass` beyond the former.
    - delta: lognormal, median 10 / (median edge weight at the median theta), standard deviation of
      the log sqrt(2). A typical edge then has the logit 10 - b: next to certain for b of order 1,
      and for most of what b may be (below 10 with 95 %). On the paper's random geometric graphs
      the fitted delta times that weight is 12. The labels settle the rest: two thirds of the mass
      allow a factor of 4 either way.
    - b: lognormal(1, sqrt(2)), of order 1, as the paper's. Pairs that the network gives weight 0
      have the logit -b, so before any label is seen each is an edge with probability 1/4 or so.
      Graphs drawn from the model are therefore denser than those the beliefs are about: look at
      `edgebelief.belief.checks.prior_predictive` before fitting, and restate b if you mean it.

    Parameters
    ----------
    e : GraphDataset, sequence of array_like, or array_like
        The distances of several graphs, or of one, as they will be fitted. No labels are used.
    density : (float, float)
        The mean share of pairs joined, over the graphs, is believed to lie between these.
    max_components : int, optional
        No graph is believed to fall into more pieces.
    mass : float
        How firmly that is believed.
    support : Support, optional
        The candidate edges of every graph; by default all pairs.

    Returns
    -------
    Elicited
        A `Prior`, with the sweep it came from.

    Raises
    ------
    ValueError
        If no theta meets the beliefs; the message says what can be had.

    Examples
    --------
    >>> from edgebelief.belief.elicit import elicit_prior
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel
    >>> data = GraphDataset.sample(0, RandomGeometric(radius=0.4), n_graphs=3, n_nodes=15)
    >>> prior = elicit_prior(data, density=(0.2, 0.5), mass=0.9)
    >>> bool(prior.interval[0] < prior["theta"].median < prior.interval[1])
    True
    >>> model = EdgeModel(prior=prior)
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


def _interval(inputs: Inputs, sweep: ThetaSweep, beliefs: Beliefs) -> tuple[float, float]:
    """The thetas between which the beliefs hold; 0 and inf where there is no end."""
    dense, sparse = _too_dense(sweep, beliefs), _too_sparse(sweep, beliefs)
    if dense[-1] or sparse[0]:
        raise _out_of_reach(sweep, beliefs)
    low, high = 0.0, np.inf
    if dense.any():
        last = int(np.flatnonzero(dense)[-1])
        low = _refine(inputs, sweep.thetas[last : last + 2], beliefs, _too_dense)[1]
    if sparse.any():
        first = int(np.flatnonzero(sparse)[0])
        high = _refine(inputs, sweep.thetas[first - 1 : first + 1], beliefs, _too_sparse)[0]
    if not low < high:
        raise _nothing_between(inputs, low, high, sweep, beliefs)
    return low, high


def _too_dense(sweep: ThetaSweep, beliefs: Beliefs) -> np.ndarray:
    return sweep.mean_density > beliefs.density[1]


def _too_sparse(sweep: ThetaSweep, beliefs: Beliefs) -> np.ndarray:
    most = np.inf if beliefs.max_components is None else beliefs.max_components
    return (sweep.mean_density < beliefs.density[0]) | (sweep.most_components > most)


def _refine(inputs: Inputs, gap: np.ndarray, beliefs: Beliefs, rule: Any) -> tuple[float, float]:
    """Narrow a gap at whose two ends `rule` says different things."""
    low, high = gap
    for _ in range(2):
        thetas = np.geomspace(low, high, REFINED)
        said = rule(_sweep(inputs, thetas), beliefs)
        # Almost monotone: of several changes the last of too dense, the first of too sparse.
        changes = np.flatnonzero(said[1:] != said[:-1])
        k = changes[-1] if rule is _too_dense else changes[0]
        low, high = thetas[k], thetas[k + 1]
    return float(low), float(high)


def _lognormal_within(interval: tuple[float, float], sweep: ThetaSweep, mass: float) -> LogNormal:
    """Centred, in log theta, with `mass` inside; the sweep's end stands in for an open end."""
    low, high = max(interval[0], sweep.thetas[0]), min(interval[1], sweep.thetas[-1])
    one_sided = (interval[0] == 0) != (interval[1] == np.inf)
    places = ndtri(mass) if one_sided else ndtri((1 + mass) / 2)
    return lognormal(np.sqrt(low * high), np.log(high / low) / 2 / float(places))


def _check_beliefs(density: Any, max_components: Any, mass: Any) -> Beliefs:
    try:
        low, high = (check_number(value, "density") for value in density)
    except (TypeError, ValueError):
        raise SettingTypeError(
            f"must be two numbers, such as (0.1, 0.3); got {density!r}.", argument="density"
        ) from None
    if not 0 <= low < high <= 1:
        raise SettingError(
            f"must be two shares of all pairs, 0 <= low < high <= 1; got {density!r}.",
            argument="density",
        )
    if max_components is not None:
        number = check_number(max_components, "max_components")
        if not (number >= 1 and number == int(number)):
            raise SettingError(
                f"must be 1, 2, ...; got {max_components!r}.", argument="max_components"
            )
        max_components = int(number)
    mass = check_number(mass, "mass")
    if not 0.5 < mass < 1:
        raise SettingError(f"must be above 0.5 and below 1; got {mass:g}.", argument="mass")
    return Beliefs((low, high), max_components, mass)


def _out_of_reach(sweep: ThetaSweep, beliefs: Beliefs) -> InputError:
    """Neither end of the sweep is what was stated: the density, or the number of pieces."""
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
    inputs: Inputs, dense_below: float, sparse_above: float, sweep: ThetaSweep, beliefs: Beliefs
) -> InputError:
    """Too sparse, or in too many pieces, before it stops being too dense."""
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


def _inputs(e: Any, support: Support | None) -> Inputs:
    """The distances of one graph or several, each with its candidate edges."""
    if isinstance(e, GraphDataset):
        return [check_distances(record.e, support) for record in e]
    if is_one_graph(e) or np.ndim(e[0]) == 0:
        return [check_distances(e, support)]
    return [check_distances(one, support) for one in e]
