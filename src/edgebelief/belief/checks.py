"""Predictive checks: graphs that the model would draw, against the labels.

A replicated data set is one draw of the parameters, then a graph for every input from the
likelihood. A statistic is averaged over its graphs. Where the labels' own value lies among the
replicated ones says whether the model can produce data like these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..data.dataset import GraphDataset, Stack
from ..data.randomness import Key, as_key, split
from ..edges import Complete
from ..errors import InputError
from ..infer.batch import Batch, ForwardModel
from ..infer.model import EdgeModel
from ..infer.posterior import Posterior
from .predict import as_dataset

# Numbers held at once, in one array: some 16 MB.
NUMBERS = 4_000_000


@dataclass(frozen=True)
class PredictiveCheck:
    """A statistic of replicated data sets, and of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.checks import PredictiveCheck
    >>> check = PredictiveCheck(np.array([0.1, 0.2, 0.2, 0.4]), 0.2, "density")
    >>> check.share(0.1, 0.4), check.tail_probability
    (0.5, 0.5)
    """

    values: Float[np.ndarray, " replicates"]
    """The statistic of each replicated data set."""
    observed: float | None
    """That of the labels; None where they do not tell."""
    statistic: str
    """Its name."""
    source: str = "prior"
    """What the parameters were drawn from: "prior" or "posterior"."""

    def share(self, low: float, high: float) -> float:
        """The share of replicated values in the open interval (low, high)."""
        return float(((self.values > low) & (self.values < high)).mean())

    @property
    def tail_probability(self) -> float:
        """The share of replicated values above the observed one, ties counted half.

        Near 0 or 1 the labels are nothing like what the model draws.
        """
        if self.observed is None:
            raise InputError(
                f"the labels do not tell the {self.statistic}: none, or too few, are known."
            )
        above, equal = self.values > self.observed, self.values == self.observed
        return float(above.mean() + equal.mean() / 2)

    def __str__(self) -> str:
        low, high = np.quantile(self.values, [0.05, 0.95])
        said = f"{self.statistic} of {self.values.size} data sets drawn from the {self.source}: "
        said += f"mean {self.values.mean():.4g}, 90 % in {low:.4g} to {high:.4g}"
        if self.observed is not None:
            said += f"; labels {self.observed:.4g} (tail {self.tail_probability:.3g})"
        return said


def prior_predictive(
    key: Key | int,
    model: EdgeModel,
    data: Any,
    statistic: str | Callable[[np.ndarray], float] = "density",
    n: int = 10_000,
) -> PredictiveCheck:
    """What graphs the prior expects of these inputs.

    Parameters
    ----------
    key : JAX key or int
    model : EdgeModel
    data : GraphDataset, sequence of array_like, or array_like
        Inputs: with labels, for their value to compare to, or distances alone, of several graphs or
        one.
    statistic : str or callable
        Of a graph: "density" (share of pairs joined), "components" (connected pieces), "degree
        spread" (standard deviation of the nodes' degrees), "triangles" (their number), or a
        function of an (N, N) matrix of 0.0 and 1.0, symmetric, that returns a number. The built-in
        ones go through all replicates at once; yours is called for each graph of each.
    n : int
        Replicated data sets.

    Returns
    -------
    PredictiveCheck

    Notes
    -----
    The statistic is averaged over the graphs of a data set. Where labels are unknown, like is
    compared with like: the density is that of the known labels, in the replicates too, and the
    other statistics are of the graphs with every label known. Where that leaves nothing, all pairs
    of all graphs are used, and there is no observed value.

    Examples
    --------
    >>> from edgebelief.belief.checks import prior_predictive
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    >>> check = prior_predictive(1, EdgeModel(DPG(depth=20)), data, n=100)
    >>> check.values.shape, round(check.observed, 3)
    ((100,), 0.446)
    """
    parameters, edges = split(as_key(key), 2)
    params = model.prior.sample(parameters, n, model.sizes)
    return _check(edges, model, params, as_dataset(data), statistic, "prior")


def posterior_predictive(
    key: Key | int,
    posterior: Posterior,
    data: GraphDataset,
    statistic: str | Callable[[np.ndarray], float] = "density",
    n: int = 1000,
) -> PredictiveCheck:
    """What graphs the posterior expects of these inputs, against their labels.

    On the data that were fitted this tells what the model cannot do, not how well it predicts.

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
    >>> import numpy as np
    >>> from edgebelief.belief.checks import posterior_predictive
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    >>> params = {"theta": np.array([0.2]), "delta": np.array([30.0]), "b": np.array([3.0])}
    >>> posterior = Posterior(EdgeModel(DPG(depth=20)), params, np.ones(1), "by hand", {},
    ...                       Fingerprint.of(data), Verdict())
    >>> check = posterior_predictive(1, posterior, data, statistic="triangles", n=50)
    >>> check.observed
    4.0
    """
    parameters, edges = split(as_key(key), 2)
    params = posterior.draws(parameters, n)
    return _check(edges, posterior.model, params, as_dataset(data), statistic, "posterior")


def _check(
    key: Key,
    model: EdgeModel,
    params: Mapping[str, Any],
    data: GraphDataset,
    statistic: str | Callable[[np.ndarray], float],
    source: str,
) -> PredictiveCheck:
    name, of_graphs = _statistic(statistic)
    n = len(next(iter(params.values())))
    enough = np.any if of_graphs is _density else np.all  # known labels, to tell of a graph
    told = any(enough(record.known) for record in data)
    total, observed, n_graphs = np.zeros(n), 0.0, 0
    for stack_key, stack in zip(split(key, len(data)), data.stacks(), strict=False):
        known = stack.known if told else np.ones_like(stack.known)
        used = enough(known, -1)
        if not used.any():
            continue
        known, support = known[used], stack.support
        for part, graphs in _replicates(stack_key, model, params, stack.part(used)):
            total[part] += of_graphs(graphs, known, support).sum(-1)
        observed += float(of_graphs(stack.a[None, used] > 0, known, support).sum())
        n_graphs += int(used.sum())
    return PredictiveCheck(total / n_graphs, observed / n_graphs if told else None, name, source)


def _replicates(key: Key, model: EdgeModel, params: Mapping[str, Any], stack: Stack) -> Any:
    """Draws (a slice of them) and their graphs, (draws, graphs, n_edges) of booleans, in parts.

    A draw's graphs have a key of their own, so the parts it is done in do not matter.
    """
    n = len(next(iter(params.values())))
    batch = model.forward.batch(stack).without_labels().as_jax()
    each = len(stack.e) * stack.support.n_nodes**2 * (1 + sum(model.sizes.values()))
    size = max(1, min(n, NUMBERS // each))
    size = -(-n // -(-n // size))  # equal parts, so that one compilation serves all
    keys = jax.random.split(key, n)
    for start in range(0, n, size):
        places = np.minimum(np.arange(start, start + size), n - 1)  # the last part is filled up
        here = {name: jnp.asarray(values)[places] for name, values in params.items()}
        drawn = _draw(model.forward, keys[places], here, batch)
        stop = min(start + size, n)
        yield slice(start, stop), np.asarray(drawn)[: stop - start]


@eqx.filter_jit
def _draw(
    forward: ForwardModel, keys: Key, params: dict[str, jax.Array], batch: Batch
) -> Bool[jax.Array, "draws graphs edges"]:
    def at(key: Key, values: dict[str, jax.Array]) -> jax.Array:
        return jax.random.bernoulli(key, jax.nn.sigmoid(forward.logits_at(values, batch)))

    return jax.vmap(at)(keys, params)


# A statistic of many graphs on one support: (..., n_edges) booleans, (graphs, n_edges) which of
# them are known -> (...,).
Statistic = Callable[[np.ndarray, np.ndarray, Complete], np.ndarray]


def _density(graphs: np.ndarray, known: np.ndarray, support: Complete) -> np.ndarray:
    return (graphs & known).sum(-1) / known.sum(-1)


def _components(graphs: np.ndarray, known: np.ndarray, support: Complete) -> np.ndarray:
    """All graphs as one, in which none is joined to another."""
    flat = graphs.reshape(-1, graphs.shape[-1])
    which, edge = np.nonzero(flat)
    rows, cols = (ends[edge] + support.n_nodes * which for ends in support.endpoints)
    size = len(flat) * support.n_nodes
    all_graphs = coo_array((np.ones(rows.size, bool), (rows, cols)), shape=(size, size))
    n_components, labels = connected_components(all_graphs, directed=False)
    graph_of = np.zeros(n_components, int)
    graph_of[labels] = np.arange(size) // support.n_nodes
    return np.bincount(graph_of, minlength=len(flat)).reshape(graphs.shape[:-1])


def _degree_spread(graphs: np.ndarray, known: np.ndarray, support: Complete) -> np.ndarray:
    return _matrices(graphs, support).sum(-1).std(-1)


def _triangles(graphs: np.ndarray, known: np.ndarray, support: Complete) -> np.ndarray:
    """trace(A^3)/6; the counts are whole, and exact in float32 up to 2^24."""
    matrix = _matrices(graphs, support)
    return ((matrix @ matrix) * matrix).sum((-1, -2), dtype=float) / 6


_STATISTICS: dict[str, Statistic] = {
    "density": _density,
    "components": _components,
    "degree spread": _degree_spread,
    "triangles": _triangles,
}


def _statistic(statistic: Any) -> tuple[str, Statistic]:
    if callable(statistic):

        def of_graphs(graphs: np.ndarray, known: np.ndarray, support: Complete) -> np.ndarray:
            flat = graphs.reshape(-1, graphs.shape[-1]).astype(float)
            found = [float(statistic(support.to_matrix(a))) for a in flat]
            return np.reshape(found, graphs.shape[:-1])

        return getattr(statistic, "__name__", "statistic"), of_graphs
    if statistic not in _STATISTICS:
        raise InputError(
            f"no statistic is called {statistic!r}; there are {', '.join(_STATISTICS)}, or pass a "
            f"function of an (N, N) matrix of 0 and 1."
        )
    return statistic, _STATISTICS[statistic]


def _matrices(graphs: np.ndarray, support: Complete) -> np.ndarray:
    """(..., n_edges) to (..., N, N) of float32, zero on the diagonal."""
    rows, cols = support.endpoints
    matrices = np.zeros((*graphs.shape[:-1], support.n_nodes, support.n_nodes), np.float32)
    matrices[..., rows, cols] = matrices[..., cols, rows] = graphs
    return matrices
