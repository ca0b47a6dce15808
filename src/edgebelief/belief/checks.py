"""Predictive checks: compare graphs drawn from the model with the labels.

To replicate a data set, draw the parameters once, then a graph for every input from the likelihood.
A statistic is averaged over the graphs of a data set. If its value for the labels is far out among
the replicated values, the model does not produce data like these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..data.dataset import GraphDataset, Stack
from ..data.randomness import Key, as_key, split
from ..edges import Support
from ..errors import InputError
from ..infer.batch import Batch, ForwardModel
from ..infer.model import EdgeModel
from ..infer.posterior import Posterior
from ..readouts.curves import AnyArray
from ..room import MOST_DRAWS
from ..validate import check_whole
from .predict import DataLike, as_dataset

# The largest number of entries of an array: 16 MB in float32.
NUMBERS = 4_000_000
# The name of a statistic, or a function of the matrix of one graph.
Statistic = str | Callable[[np.ndarray], float]


@dataclass(frozen=True)
class PredictiveCheck:
    """The values of a statistic for replicated data sets, and its value for the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.checks import PredictiveCheck
    >>> check = PredictiveCheck(np.array([0.1, 0.2, 0.2, 0.4]), 0.2, "density")
    >>> check.share(0.1, 0.4), check.tail_probability
    (0.5, 0.5)
    """

    values: Float[np.ndarray, " replicates"]
    """The value for each replicated data set."""
    observed: float | None
    """The value for the labels; None where too few of them are known."""
    statistic: str
    """The name of the statistic."""
    source: str = "prior"
    """The distribution of the parameters: "prior" or "posterior"."""

    def share(self, low: float, high: float) -> float:
        """Return the share of replicated values in the open interval (low, high)."""
        return float(((self.values > low) & (self.values < high)).mean())

    @property
    def tail_probability(self) -> float:
        """The share of replicated values above the observed one, ties counted half.

        Near 0 or 1, the labels are unlike the graphs that the model draws.
        """
        if self.observed is None:
            problem = f"the labels do not tell the {self.statistic}: none, or too few, are known."
            raise InputError(problem)
        above, equal = self.values > self.observed, self.values == self.observed
        return float(above.mean() + equal.mean() / 2)

    def __str__(self) -> str:
        low, high = np.quantile(self.values, [0.05, 0.95])
        text = f"{self.statistic} of {self.values.size} data sets drawn from the {self.source}: "
        text += f"mean {self.values.mean():.4g}, 90 % in {low:.4g} to {high:.4g}"
        if self.observed is not None:
            text += f"; labels {self.observed:.4g} (tail {self.tail_probability:.3g})"
        return text


def prior_predictive(
    key: Key | int,
    model: EdgeModel,
    data: DataLike,
    statistic: Statistic = "density",
    n: int = 10_000,
) -> PredictiveCheck:
    """Compute a statistic of graphs drawn from the prior, for these inputs.

    Parameters
    ----------
    key : JAX key or int
    model : EdgeModel
    data : GraphDataset, sequence of array_like, or array_like
        A data set, whose labels the replicates are compared with, or the distances alone of one
        graph or several.
    statistic : str or callable
        "density" (the share of pairs that are edges), "components" (the number of connected
        components), "degree spread" (the standard deviation of the nodes' degrees), "triangles"
        (their number), or a function of a symmetric (N, N) matrix of 0.0 and 1.0 that returns a
        number. Such a function is called for each graph of each replicate.
    n : int
        The number of replicated data sets, at most 10,000,000.

    Returns
    -------
    PredictiveCheck

    Notes
    -----
    The statistic is averaged over the graphs of a data set. Where labels are unknown, replicates
    and labels are treated alike: the density is that of the pairs with a known label, and the other
    statistics are those of the graphs with every label known. Where that leaves nothing, all pairs
    of all graphs are used, and there is no observed value.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    >>> check = belief.prior_predictive(1, infer.EdgeModel(), graphs, n=100)
    >>> check.values.shape, round(check.observed, 3)
    ((100,), 0.446)
    """
    n = check_whole(n, "n", 1, MOST_DRAWS)
    params_key, edges_key = split(as_key(key), 2)
    params = model.prior.sample(params_key, n, model.sizes)
    return _check(edges_key, model, params, as_dataset(data), statistic, "prior")


def posterior_predictive(
    key: Key | int,
    posterior: Posterior,
    data: GraphDataset,
    statistic: Statistic = "density",
    n: int = 1000,
) -> PredictiveCheck:
    """Compute a statistic of graphs drawn from the posterior, for these inputs, and of the labels.

    On the data that were fitted this shows misfit of the model, not how well it predicts.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
    data : GraphDataset
    statistic, n
        As for `prior_predictive`.

    Returns
    -------
    PredictiveCheck

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> belief.posterior_predictive(1, posterior, graphs, statistic="triangles", n=50).observed
    4.0
    """
    n = check_whole(n, "n", 1, MOST_DRAWS)
    params_key, edges_key = split(as_key(key), 2)
    params = posterior.draws(params_key, n)
    return _check(edges_key, posterior.model, params, as_dataset(data), statistic, "posterior")


# Draws of the parameters, by name.
Draws = Mapping[str, Float[AnyArray, "draws ..."]]


def _check(
    key: Key,
    model: EdgeModel,
    params: Draws,
    data: GraphDataset,
    statistic: Statistic,
    source: str,
) -> PredictiveCheck:
    name = getattr(statistic, "__name__", "statistic") if callable(statistic) else statistic
    of_graphs = _statistic(statistic)
    n = len(next(iter(params.values())))
    enough = np.any if of_graphs is _density else np.all  # of a graph's labels must be known
    labelled = any(enough(record.known) for record in data)
    total, observed, n_graphs = np.zeros(n), 0.0, 0
    for stack_key, stack in zip(split(key, len(data)), data.stacks(), strict=False):
        known = stack.known if labelled else np.ones_like(stack.known)
        used = enough(known, -1)
        if not used.any():
            continue
        known, support = known[used], stack.support
        for draws, graphs in _replicates(stack_key, model, params, stack.part(used)):
            total[draws] += of_graphs(graphs, known, support).sum(-1)
        observed += float(of_graphs(stack.a[None, used] > 0, known, support).sum())
        n_graphs += int(used.sum())
    of_labels = observed / n_graphs if labelled else None
    return PredictiveCheck(total / n_graphs, of_labels, name, source)


def _replicates(
    key: Key, model: EdgeModel, params: Draws, stack: Stack
) -> Iterator[tuple[slice, Bool[np.ndarray, "draws graphs edges"]]]:
    """Draw the graphs of a stack for every draw of the parameters, some draws at a time.

    Each draw has a key of its own, so the result does not depend on how many are done at a time.
    """
    n = len(next(iter(params.values())))
    batch = model.forward.batch(stack).without_labels().as_jax()
    each = 2 * stack.e.size * (1 + sum(model.sizes.values()))
    size = max(1, min(n, NUMBERS // each))
    size = -(-n // -(-n // size))  # equal parts, so that one compilation serves all
    keys = jax.random.split(key, n)
    for start in range(0, n, size):
        draws = np.minimum(np.arange(start, start + size), n - 1)  # the last part is filled up
        values = {name: jnp.asarray(x)[draws] for name, x in params.items()}
        graphs = _draw(model.forward, keys[draws], values, batch)
        stop = min(start + size, n)
        yield slice(start, stop), np.asarray(graphs)[: stop - start]


@eqx.filter_jit
def _draw(
    forward: ForwardModel, keys: Key, params: dict[str, jax.Array], batch: Batch
) -> Bool[jax.Array, "draws graphs edges"]:
    def at(key: Key, values: dict[str, jax.Array]) -> jax.Array:
        return jax.random.bernoulli(key, jax.nn.sigmoid(forward.logits_at(values, batch)))

    return jax.vmap(at)(keys, params)


# The arguments are the graphs, (..., n_graphs, n_edges) of booleans; which labels are known,
# (n_graphs, n_edges); and the support of the graphs. The values have shape (..., n_graphs).
OfGraphs = Callable[[np.ndarray, np.ndarray, Support], np.ndarray]


def _density(graphs: np.ndarray, known: np.ndarray, support: Support) -> np.ndarray:
    return (graphs & known).sum(-1) / known.sum(-1)


def _components(graphs: np.ndarray, known: np.ndarray, support: Support) -> np.ndarray:
    return components_of(graphs, support)


def components_of(
    graphs: Bool[np.ndarray, "*shape edges"], support: Support
) -> Int[np.ndarray, "*shape"]:
    """Count the components of all graphs at once, as disjoint parts of one large graph."""
    flat = graphs.reshape(-1, graphs.shape[-1])
    which, edge = np.nonzero(flat)
    rows, cols = (ends[edge] + support.n_nodes * which for ends in support.endpoints)
    size = len(flat) * support.n_nodes
    all_graphs = coo_array((np.ones(rows.size, bool), (rows, cols)), shape=(size, size))
    n_components, labels = connected_components(all_graphs, directed=False)
    graph_of = np.zeros(n_components, int)
    graph_of[labels] = np.arange(size) // support.n_nodes
    return np.bincount(graph_of, minlength=len(flat)).reshape(graphs.shape[:-1])


def _degree_spread(graphs: np.ndarray, known: np.ndarray, support: Support) -> np.ndarray:
    return _matrices(graphs, support).sum(-1).std(-1)


def _triangles(graphs: np.ndarray, known: np.ndarray, support: Support) -> np.ndarray:
    """Compute trace(A^3)/6; the counts are integers, exact in float32 up to 2^24."""
    matrix = _matrices(graphs, support)
    return ((matrix @ matrix) * matrix).sum((-1, -2), dtype=float) / 6


_STATISTICS: dict[str, OfGraphs] = {
    "density": _density,
    "components": _components,
    "degree spread": _degree_spread,
    "triangles": _triangles,
}


def _statistic(statistic: Statistic) -> OfGraphs:
    """Look up a statistic by name, or make one of a function of the matrix of one graph."""
    if callable(statistic):

        def of_graphs(graphs: np.ndarray, known: np.ndarray, support: Support) -> np.ndarray:
            flat = graphs.reshape(-1, graphs.shape[-1]).astype(float)
            values = [float(statistic(support.to_matrix(a))) for a in flat]
            return np.reshape(values, graphs.shape[:-1])

        return of_graphs
    if statistic not in _STATISTICS:
        raise InputError(
            f"no statistic is called {statistic!r}; there are {', '.join(_STATISTICS)}, or pass a "
            f"function of an (N, N) matrix of 0 and 1."
        )
    return _STATISTICS[statistic]


def _matrices(graphs: np.ndarray, support: Support) -> np.ndarray:
    """Turn (..., n_edges) booleans into (..., N, N) adjacency matrices of float32."""
    rows, cols = support.endpoints
    matrices = np.zeros((*graphs.shape[:-1], support.n_nodes, support.n_nodes), np.float32)
    matrices[..., rows, cols] = matrices[..., cols, rows] = graphs
    return matrices
