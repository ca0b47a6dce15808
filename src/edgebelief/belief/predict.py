"""Predict the edges of new graphs from a posterior and their distances.

With p the probability of an edge given the parameters, and E the mean over the posterior:

    mean        pbar = E[p]
    total       the sd of the edge, as 0 or 1:  sqrt(pbar (1 - pbar))
    epistemic   the sd of p, which more labels would reduce
    aleatoric   sqrt(E[p (1 - p)]), which they would not
    logit       log E[p] - log E[1 - p], which tells pairs apart whose mean is 1 to all its digits

total^2 = epistemic^2 + aleatoric^2. `predict` draws no random numbers. It runs the network once for
each distinct value of the network's parameters (some thirty for `Exact`), however many values the
readout's parameters have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt8
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp

from ..cores import n_cores
from ..data.dataset import GraphDataset, Stack
from ..data.randomness import Key, split
from ..devices import choose, chosen, updates
from ..edges import Support
from ..errors import InputError, SettingError
from ..infer.batch import Batch, ForwardModel
from ..infer.model import EdgeModel
from ..infer.posterior import Posterior
from ..readouts.curves import AnyArray
from ..room import MOST_DRAWS, check_samples
from ..threads import Workers
from ..validate import check_whole, is_one_graph
from .shift import warn_if_unlike

# Values of the network's parameters in one compiled call, and the largest number of draws of the
# other parameters at each of them.
BLOCK, GROUP = 32, 256
# With fewer entries than this, two for each pair of all graphs, a second thread does not pay.
WORTHWHILE = 10_000
# How many arrays with two entries for each pair the network and the sums hold at once,
# approximately.
COPIES = 13
# Probabilities below this count as this in logits: single precision has no smaller ones, and a
# logit of more than 87 either way is beyond what data can tell.
LEAST = float(np.finfo(np.float32).tiny)
# Of sampling connected graphs: tries for each graph wanted, so that an acceptance rate of 0.01 will
# do; tries without a connected one, after which the rate is below 0.003 with 95 % confidence; and
# the smallest number of graphs drawn together.
TRIES, WITHOUT_ONE, LEAST_ROUND = 100, 1_000, 25

# What predictions are made for: a data set, the distances of one graph, or those of several graphs.
DataLike = GraphDataset | ArrayLike | Sequence[ArrayLike]


class EdgeBelief(NamedTuple):
    """Belief in each candidate edge of one graph."""

    mean: Float[np.ndarray, " edges"]
    """The probability of the edge."""
    total_sd: Float[np.ndarray, " edges"]
    epistemic_sd: Float[np.ndarray, " edges"]
    aleatoric_sd: Float[np.ndarray, " edges"]
    logit: Float[np.ndarray, " edges"]
    """The log odds of the edge, log E[p] - log E[1 - p]: finite, without ties where p rounds to 1.

    Beyond 87 either way, where single precision ends, all are equal.
    """

    @classmethod
    def of(
        cls, mean: ArrayLike, epistemic_sd: ArrayLike = 0.0, doubt: ArrayLike | None = None
    ) -> EdgeBelief:
        """Compute all five from the mean and the sd of p, which determine them.

        `doubt` is the mean of 1 - p, for those who know it with more digits than 1 - mean has.
        """
        p = np.clip(np.asarray(mean, float), 0, 1)
        q = 1 - p if doubt is None else np.clip(np.asarray(doubt, float), 0, 1)
        p, q = np.where(q < p, 1 - q, p), np.where(q < p, q, 1 - p)  # the smaller has more digits
        total = p * q
        epistemic = np.clip(np.square(epistemic_sd), 0, total)
        logit = np.log(np.maximum(p, LEAST)) - np.log(np.maximum(q, LEAST))
        return cls(p, np.sqrt(total), np.sqrt(epistemic), np.sqrt(total - epistemic), logit)

    @property
    def order(self) -> Int[np.ndarray, " edges"]:
        """The pairs, most probable first; of equally probable ones as they come."""
        return np.lexsort((-self.logit, -self.mean))


class Interval(NamedTuple):
    """The ends of an interval for the p of each candidate edge of one graph; it holds its mean."""

    low: Float[np.ndarray, " edges"]
    high: Float[np.ndarray, " edges"]


Belief = TypeVar("Belief")


class BeliefsOf(Sequence[Belief]):
    """A belief for each graph of a data set. Abstract."""

    def __init__(self, data: GraphDataset, beliefs: Sequence[Belief]):
        self.data, self._beliefs = data, tuple(beliefs)

    def __len__(self) -> int:
        return len(self._beliefs)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Belief: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Belief, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Belief | tuple[Belief, ...]:
        return self._beliefs[index]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.data!r}>"


class Predictions(BeliefsOf[EdgeBelief]):
    """An `EdgeBelief` for each graph of a data set.

    Parameters
    ----------
    data : GraphDataset
    beliefs : sequence of EdgeBelief
    log_scores : array, shape (n_graphs,)
        The log of the joint posterior predictive probability of each graph's known labels.
    """

    def __init__(self, data: GraphDataset, beliefs: Sequence[EdgeBelief], log_scores: ArrayLike):
        super().__init__(data, beliefs)
        self.log_scores = np.asarray(log_scores)


def predict(posterior: Posterior, data: DataLike, *, memory: float = 256e6) -> Predictions:
    """Compute the belief in every edge of every graph, on any number of nodes.

    Parameters
    ----------
    posterior : Posterior
    data : GraphDataset or array_like
        Labels are not needed, and do not change the belief; known ones are scored. The distances of
        one graph, (n_edges,) or (N, N), are a data set of one.
    memory : float
        Bytes to work in, beyond inputs and outputs. It limits how many graphs are computed together
        (at least one), and does not change the result.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 6, n_nodes=8, n_signals=100)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs[:5])
    >>> [of_edges] = belief.predict(posterior, graphs[5:])
    >>> of_edges.mean.shape, bool((of_edges.epistemic_sd < of_edges.total_sd).all())
    ((28,), True)
    """
    data = as_dataset(data)
    warn_if_unlike(posterior, data)
    table = _Table.of(posterior)
    beliefs: list[EdgeBelief | None] = [None] * len(data)
    scores = np.zeros(len(data))
    precise = jnp.result_type(float) == jnp.float64
    choice = choose(updates(posterior.model.network.depth, sum(record.e.size for record in data)))

    def fill_in(part: Stack) -> None:
        with jax.enable_x64(precise), chosen(choice):  # JAX keeps these settings for each thread
            running, log_likelihoods = _moments(posterior.model, table, part)
        mean = np.asarray(running.mean, float)
        if not np.isfinite(mean).all():
            raise InputError(
                f"the network's output is not a number for some of the posterior: the layers of "
                f"{type(posterior.model.network).__name__} diverge there. Use a prior that leaves "
                f"such parameters out, or DPG, which is stable."
            )
        doubt = np.asarray(running.doubt, float)
        # The weights add up to one, so the sum of squared deviations is the variance.
        sd = np.sqrt(np.maximum(np.asarray(running.squares, float), 0))
        for row, t in enumerate(part.places):
            beliefs[t] = EdgeBelief.of(mean[row], sd[row], doubt[row])
        scores[part.places] = logsumexp(log_likelihoods, b=table.weights[..., None], axis=(0, 1))

    parts = [part for stack in data.stacks() for part in _parts(stack, memory, n_cores())]
    with Workers() as workers:
        list(workers.map(fill_in, parts))
    return Predictions(data, [belief for belief in beliefs if belief is not None], scores)


def sample_graphs(
    key: Key | int, posterior: Posterior, data: DataLike, n: int = 100, *, connected: bool = False
) -> list[UInt8[np.ndarray, "draws edges"]]:
    """Sample graphs from the posterior predictive: draw the parameters, then the edges.

    Given the parameters edges are independent; they share the parameters, and depend on each other
    by these alone. So sampled graphs keep the probability of each edge, the expected degrees and
    density, and what the doubt about the parameters does to all edges together. They do not keep
    what true graphs have beyond that, such as being connected, triangles, or the algebraic
    connectivity: samples of sparse graphs fall into more pieces than these.

    Parameters
    ----------
    key : JAX key or int
    posterior, data
        As for `predict`.
    n : int
        The number of graphs to sample for each graph of the data set, at most 10,000,000.
    connected : bool
        Whether to sample given that the graph is connected, by rejection: parameters and edges are
        drawn together again until there are `n` connected graphs. This conditions their joint
        distribution, exactly: parameters that make connected graphs likely count more, and edges
        are more probable than `predict` says. Each graph of the data set is conditioned by itself.
        There are at most 100 tries for each graph wanted (1,000 at least), of which the first 1,000
        must bring one; then a `ValueError` says which share was connected.

    Returns
    -------
    list of array, shape (n, n_edges)
        For each graph of the data set, 0 or 1 for each candidate edge of each sample. Sample k has
        the same parameters for all graphs, unless `connected`.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 5, n_nodes=8, n_signals=100)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> belief.sample_graphs(0, posterior, graphs[0].e, n=3)[0].shape
    (3, 28)
    >>> [drawn] = belief.sample_graphs(0, posterior, graphs[:1], n=3, connected=True)
    >>> [int(graphs[0].support.n_components(edges)) for edges in drawn]
    [1, 1, 1]
    """
    n, data = check_whole(n, "n", 1, MOST_DRAWS), as_dataset(data)
    check_samples(n, sum(record.e.size for record in data))
    warn_if_unlike(posterior, data)
    params_key, edges_key = split(key, 2)
    draws = {k: jnp.asarray(v) for k, v in posterior.draws(params_key, n).items()}
    sampled: dict[int, np.ndarray] = {}
    for stack, stack_key in zip(data.stacks(), split(edges_key, len(data.stacks())), strict=True):
        for row, t in enumerate(stack.places):
            graph_key = jax.random.fold_in(stack_key, row)
            batch = batch_of_one(posterior.model, stack, row)
            if connected:
                sampled[t] = _connected_graphs(
                    graph_key, posterior, batch, stack.support, n, int(t)
                )
            else:
                keys = jax.random.split(graph_key, n)
                edges = _edges_of(posterior.model.forward, draws, batch, keys)
                sampled[t] = np.asarray(edges)[:, 0]
    return [sampled[t] for t in range(len(data))]


def _connected_graphs(
    key: Key, posterior: Posterior, batch: Batch, support: Support, n: int, t: int
) -> UInt8[np.ndarray, "draws edges"]:
    """Draw parameters and edges until `n` graphs are connected; `t` is for the message."""
    kept: list[np.ndarray] = []
    size, tries = max(n, LEAST_ROUND), 0
    while len(kept) < n:
        if tries >= max(TRIES * n, WITHOUT_ONE) or (not kept and tries >= WITHOUT_ONE):
            raise InputError(
                f"{len(kept)} of {tries:,} graphs drawn were connected (acceptance rate "
                f"{'below ' if not kept else ''}{max(len(kept), 1) / tries:.1g}), and {n} are "
                f"wanted",
                graph=t,
                remedy=["Draw graphs that need not be connected", "ask for fewer"],
            )
        params_key, edges_key = split(jax.random.fold_in(key, tries), 2)
        # More than there are draws, so that they are drawn independently, not each of them once.
        params = posterior.draws(params_key, max(size, posterior.n_draws + 1))
        draws = {name: jnp.asarray(values[:size]) for name, values in params.items()}
        keys = jax.random.split(edges_key, size)
        edges = np.asarray(_edges_of(posterior.model.forward, draws, batch, keys))[:, 0]
        kept += [graph for graph in edges if support.n_components(graph) == 1]
        tries += size
    return np.stack(kept[:n])


def intervals(
    key: Key | int,
    posterior: Posterior,
    data: DataLike,
    level: float = 0.9,
    n: int = 256,
    *,
    beliefs: BeliefsOf[EdgeBelief] | None = None,
) -> list[Interval]:
    """Compute a credible interval for the p of each edge of each graph, in which its mean lies.

    It has equal tails and comes from `n` draws of the parameters. Where the posterior of p is so
    skewed that its mean lies in a tail, as with separable labels or few of them (p is nearly 1, but
    for a few draws), the interval is extended to the mean, and holds more than `level`. It says how
    precisely the labels determine p, not whether the edge is present: a p of 0.5 can be known
    exactly.

    Parameters
    ----------
    key : JAX key or int
    posterior, data
        As for `predict`.
    level : float
        The posterior probability of the interval.
    n : int
        The number of draws. Memory for `n` numbers is needed for each pair of a graph.
    beliefs : Predictions, optional
        What `predict` returned for the same posterior and data, so that it is not computed again.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 5, n_nodes=8, n_signals=100)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> [(low, high)] = belief.intervals(0, posterior, graphs[:1])
    >>> bool((low < high).all())
    True
    """
    ends = quantiles_of(level)
    data = as_dataset(data)
    beliefs = predict(posterior, data) if beliefs is None else beliefs
    draws = {k: jnp.asarray(v) for k, v in posterior.draws(key, n).items()}
    computed: dict[int, Interval] = {}
    for stack in data.stacks():
        for row, t in enumerate(stack.places):
            batch = batch_of_one(posterior.model, stack, row)
            logits = np.array(_logits_of(posterior.model.forward, draws, batch))[:, 0]
            low, high = np.quantile(logits, ends, axis=0, overwrite_input=True)
            mean = beliefs[t].mean
            low, high = expit(low.astype(float)), expit(high.astype(float))
            computed[t] = Interval(np.minimum(low, mean), np.maximum(high, mean))
    return [computed[t] for t in range(len(data))]


def quantiles_of(level: float) -> tuple[float, float]:
    """Return the levels of the quantiles that bound an interval with equal tails."""
    if not 0 < level < 1:
        raise SettingError(f"must lie between 0 and 1; got {level!r}.", argument="level")
    return (1 - level) / 2, (1 + level) / 2


def as_dataset(data: DataLike) -> GraphDataset:
    """Return a data set as it is; make one of the distances of one graph or of several."""
    return data if isinstance(data, GraphDataset) else GraphDataset(graphs_in(data))


def graphs_in(data: Any) -> list[Any]:
    """List the distances of each graph, given those of one graph or of several."""
    single = is_one_graph(data) or (len(data) > 0 and np.ndim(data[0]) == 0)
    return [data] if single else list(data)


def _parts(stack: Stack, memory: float, n_workers: int) -> list[Stack]:
    """Split a stack into parts that fit in the memory, with one for every worker."""
    n_graphs, entries = len(stack.places), 2 * stack.support.n_edges
    fits = max(int(memory / n_workers // (COPIES * 4 * entries)), 1)
    shares = n_workers if n_graphs * entries > WORTHWHILE else 1
    size = min(fits, -(-n_graphs // shares))
    return [stack.part(slice(first, first + size)) for first in range(0, n_graphs, size)]


class _Table(NamedTuple):
    """Draws grouped by the network's parameters, so that the network runs once for each row.

    A row has one value of the network's parameters and up to `GROUP` draws that share it. Rows that
    are shorter than the longest are filled up with draws of weight zero. A scan over the rows sees
    one of them at a time, without the first axis.
    """

    network: Mapping[str, Float[AnyArray, "..."]]
    others: Mapping[str, Float[AnyArray, "..."]]
    weights: Float[AnyArray, "*rows group"]

    @classmethod
    def of(cls, posterior: Posterior) -> _Table:
        of_network = posterior.model.network.params_type._fields
        others = posterior.model.parameters[len(of_network) :]
        values = [posterior.params[name] for name in of_network]
        columns = np.concatenate([x.reshape(len(x), -1) for x in values], axis=1)
        _, first, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        distinct = [x[first] for x in values]
        order = np.argsort(inverse.ravel(), kind="stable")
        starts = np.searchsorted(inverse.ravel()[order], np.arange(len(first) + 1))
        group = min(int(np.diff(starts).max()), GROUP)
        # For each row of the table the distinct value that it has, and the draws in it.
        which, draws = [], []
        for k in range(len(first)):
            for start in range(starts[k], starts[k + 1], group):
                which.append(k)
                draws.append(order[start : min(start + group, starts[k + 1])])
        weights = np.zeros((len(draws), group))
        table = {
            name: np.zeros((len(draws), group, *posterior.params[name].shape[1:]))
            for name in others
        }
        for row, in_row in enumerate(draws):
            weights[row, : len(in_row)] = posterior.weights[in_row]
            for name in others:
                table[name][row, : len(in_row)] = posterior.params[name][in_row]
        network = {name: x[which] for name, x in zip(of_network, distinct, strict=True)}
        return cls(network, table, weights)

    def block(self, first: int) -> _Table:
        """Take `BLOCK` rows from `first` on, filled up with rows of weight zero, as JAX arrays."""
        rows = np.arange(first, first + BLOCK)
        inside = rows < len(self.weights)
        rows = np.where(inside, rows, 0)
        block = jax.tree.map(lambda x: x[rows], self)
        return jax.tree.map(jnp.asarray, block._replace(weights=block.weights * inside[:, None]))


class _Running(NamedTuple):
    """The total weight, weighted mean and weighted sum of squared deviations so far (West 1979).

    And the weighted mean of 1 - p, which keeps its digits where p is 1 to rounding.
    """

    weight: Float[Array, ""]
    mean: Float[Array, "graphs edges"]
    squares: Float[Array, "graphs edges"]
    doubt: Float[Array, "graphs edges"]


def _moments(
    model: EdgeModel, table: _Table, stack: Stack
) -> tuple[_Running, Float[np.ndarray, "rows group graphs"]]:
    """Sum p over every draw in the table, for a stack of graphs; return log-likelihoods too."""
    forward = model.forward
    batch = forward.batch(stack).as_jax()
    batch = batch if stack.known.any() else batch.without_labels()
    running = _Running(jnp.zeros(()), *(jnp.zeros(batch.e.shape) for _ in range(3)))
    blocks = []
    for first in range(0, len(table.weights), BLOCK):
        running, log_likelihoods = _add_block(forward, running, table.block(first), batch)
        blocks.append(np.asarray(log_likelihoods, float))
    return running, np.concatenate(blocks)[: len(table.weights)]


@eqx.filter_jit
def _add_block(
    forward: ForwardModel, running: _Running, block: _Table, batch: Batch
) -> tuple[_Running, Float[Array, "rows group graphs"]]:
    """Add the draws of a block to the sums; return their log-likelihoods too."""

    def add_row(running: _Running, row: _Table) -> tuple[_Running, Array]:
        # The network's output does not depend on the other parameters; any value of theirs will do.
        first = {name: values[0] for name, values in row.others.items()}
        reduced = forward.run(forward.split({**row.network, **first}), batch)

        def add_draw(
            running: _Running, draw: tuple[Mapping[str, AnyArray], AnyArray]
        ) -> tuple[_Running, Array]:
            others, weight = draw
            params = forward.split({**row.network, **others})
            logits = forward.logits(params, reduced)
            total = running.weight + weight
            share = weight / jnp.maximum(total, 1e-30)
            deviation = jax.nn.sigmoid(logits) - running.mean
            mean = running.mean + deviation * share
            squares = running.squares + weight * deviation * (jax.nn.sigmoid(logits) - mean)
            doubt = running.doubt + (jax.nn.sigmoid(-logits) - running.doubt) * share
            log_likelihood = forward.log_likelihood(logits, params, reduced, batch)
            return _Running(total, mean, squares, doubt), log_likelihood

        return lax.scan(add_draw, running, (row.others, row.weights))

    return lax.scan(add_row, running, block)


@eqx.filter_jit
def _logits_of(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch
) -> Float[Array, "draws graphs edges"]:
    return lax.map(lambda values: forward.logits_at(values, batch), draws)


@eqx.filter_jit
def _edges_of(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch, keys: Array
) -> UInt8[Array, "draws graphs edges"]:
    def at(draw: tuple[dict[str, Array], Array]) -> Array:
        values, key = draw
        p = jax.nn.sigmoid(forward.logits_at(values, batch))
        return jax.random.bernoulli(key, p).astype(jnp.uint8)

    return lax.map(at, (draws, keys))


def batch_of_one(model: EdgeModel, stack: Stack, row: int) -> Batch:
    """Make a batch of one graph of a stack, without its labels."""
    return model.forward.batch(stack.part(slice(row, row + 1))).without_labels().as_jax()
