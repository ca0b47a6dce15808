"""From a posterior and new distances to belief in each edge.

    mean        pbar = E[p]
    total       sd of the edge itself:  sqrt(pbar (1 - pbar))
    epistemic   sd of p: what more labels would remove
    aleatoric   what they would not: sqrt(E[p (1 - p)])

total^2 = epistemic^2 + aleatoric^2, and nothing here is sampled. The network runs once for each
distinct value of its own parameters: some thirty times for `Exact`, whatever the readout's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt8
from scipy.special import expit, logsumexp

from ..cores import n_cores
from ..data.dataset import GraphDataset, Stack
from ..data.randomness import Key, split
from ..errors import InputError, SettingError
from ..infer.batch import Batch, ForwardModel
from ..infer.model import EdgeModel
from ..infer.posterior import Posterior
from ..validate import is_one_graph
from .shift import warn_if_unlike

# Network parameters per compiled call; draws of the readout's at each of them, at most.
BLOCK, GROUP = 32, 256
# Fewer entries of all (N, N) arrays than this are not worth a second thread.
WORTHWHILE = 10_000
# Copies of an (N, N) array that the network and the sums need, about.
COPIES = 12


class EdgeBelief(NamedTuple):
    """Belief in each candidate edge of one graph."""

    mean: Float[np.ndarray, " edges"]
    """The probability of the edge."""
    total_sd: Float[np.ndarray, " edges"]
    epistemic_sd: Float[np.ndarray, " edges"]
    aleatoric_sd: Float[np.ndarray, " edges"]

    @classmethod
    def of(cls, mean: Any, epistemic_sd: Any = 0.0) -> EdgeBelief:
        """From the mean and sd of p: these two decide the rest."""
        mean = np.clip(np.asarray(mean, float), 0, 1)
        total = mean * (1 - mean)
        doubt = np.clip(np.square(epistemic_sd), 0, total)
        return cls(mean, np.sqrt(total), np.sqrt(doubt), np.sqrt(total - doubt))


class Predictions(Sequence[EdgeBelief]):
    """An `EdgeBelief` per graph, with the data set they are about.

    Parameters
    ----------
    data : GraphDataset
    beliefs : sequence of EdgeBelief
    log_scores : array
        Log of the posterior probability of each graph's known labels, all together.
    """

    def __init__(self, data: GraphDataset, beliefs: Sequence[EdgeBelief], log_scores: np.ndarray):
        self.data, self._beliefs, self.log_scores = data, tuple(beliefs), log_scores

    def __len__(self) -> int:
        return len(self._beliefs)

    def __getitem__(self, index: Any) -> Any:
        return self._beliefs[index]

    def __iter__(self) -> Iterator[EdgeBelief]:
        return iter(self._beliefs)

    def __repr__(self) -> str:
        return f"<Predictions of {self.data!r}>"


def predict(posterior: Posterior, data: Any, *, memory: float = 256e6) -> Predictions:
    """Belief in every edge of every graph, on any number of nodes.

    Parameters
    ----------
    posterior : Posterior
    data : GraphDataset or array_like
        Labels are not needed, and not used for the belief; known ones are scored. The distances of
        one graph, (n_edges,) or (N, N), are a data set of one.
    memory : float
        Bytes to work in, beyond inputs and outputs. Fewer graphs are done at a time if it is
        little; the answer is the same. One graph at a time is the least.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> from edgebelief.belief import predict
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=100)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=50)), data[:5])
    >>> belief = predict(posterior, data[5:])[0]
    >>> belief.mean.shape, bool((belief.epistemic_sd < belief.total_sd).all())
    ((28,), True)
    """
    data = as_dataset(data)
    warn_if_unlike(posterior.fingerprint, data)
    table = _Table.of(posterior)
    beliefs: list[EdgeBelief | None] = [None] * len(data)
    scores = np.zeros(len(data))
    precise = jnp.result_type(float) == jnp.float64

    def part(work: tuple[Stack, slice]) -> None:
        stack, here = work
        with jax.enable_x64(precise):  # which other threads do not know
            mean, square, likelihood = _sums(posterior.model, table, stack, here)
        if not np.isfinite(mean).all():
            raise InputError(
                f"the network's output is not a number for some of the posterior: the layers of "
                f"{type(posterior.model.network).__name__} diverge there. Use a prior that leaves "
                f"such parameters out, or DPG, which is stable."
            )
        for row, place in enumerate(stack.places[here]):
            beliefs[place] = EdgeBelief.of(mean[row], np.sqrt(np.maximum(square[row], 0)))
        score = logsumexp(likelihood, b=table.weights[..., None], axis=(0, 1))
        scores[stack.places[here]] = score

    stacks = data.stacks()
    with ThreadPoolExecutor(n_cores()) as pool:
        work = [(stack, here) for stack in stacks for here in _parts(stack, memory, n_cores())]
        list(pool.map(part, work))
    return Predictions(data, [belief for belief in beliefs if belief is not None], scores)


def sample_graphs(
    key: Key | int, posterior: Posterior, data: Any, n: int = 100
) -> list[UInt8[np.ndarray, "draws edges"]]:
    """Graphs from the posterior predictive: draw the parameters, then the edges.

    Edges of one sampled graph share their parameters, so they are not independent.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
    data : GraphDataset or array_like
        As for `predict`.
    n : int

    Returns
    -------
    list of array
        For each graph of the data set `n` sampled ones, 0 or 1 for each candidate edge. The
        parameters of draw k are the same in all of them.

    Examples
    --------
    >>> from edgebelief.belief import sample_graphs
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=100)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=50)), data)
    >>> sample_graphs(0, posterior, data[0].e, n=3)[0].shape
    (3, 28)
    """
    data = as_dataset(data)
    warn_if_unlike(posterior.fingerprint, data)
    of_params, of_edges = split(key, 2)
    draws = {k: jnp.asarray(v) for k, v in posterior.draws(of_params, n).items()}
    found: list[Any] = [None] * len(data)
    for stack, stack_key in zip(data.stacks(), split(of_edges, len(data.stacks())), strict=True):
        for row, place in enumerate(stack.places):
            graph_key = jax.random.fold_in(stack_key, row)
            batch, keys = batch_of_one(posterior.model, stack, row), jax.random.split(graph_key, n)
            edges = _edges_of(posterior.model.forward, draws, batch, keys)
            found[place] = np.asarray(edges)[:, 0]
    return found


def intervals(
    key: Key | int, posterior: Posterior, data: Any, level: float = 0.9, n: int = 256
) -> list[tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]]:
    """For each graph, the ends of the interval that holds each edge's p with probability `level`.

    Equal tails, from `n` draws of the parameters. It says how well the labels have pinned p down,
    not whether the edge is there: a p of 0.5 can be known exactly.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
    data : GraphDataset or array_like
        As for `predict`.
    level : float
    n : int
        Draws; `n` numbers are held for each pair of a graph.

    Examples
    --------
    >>> from edgebelief.belief import intervals, predict
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=100)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=50)), data)
    >>> [(low, high)] = intervals(0, posterior, data[:1])
    >>> bool((low < high).all())
    True
    """
    if not 0 < level < 1:
        raise SettingError(f"must lie between 0 and 1; got {level!r}.", argument="level")
    data = as_dataset(data)
    warn_if_unlike(posterior.fingerprint, data)
    draws = {k: jnp.asarray(v) for k, v in posterior.draws(key, n).items()}
    found: list[Any] = [None] * len(data)
    tails = [(1 - level) / 2, (1 + level) / 2]
    for stack in data.stacks():
        for row, place in enumerate(stack.places):
            batch = batch_of_one(posterior.model, stack, row)
            logits = np.array(_logits_of(posterior.model.forward, draws, batch))[:, 0]
            low, high = np.quantile(logits, tails, axis=0, overwrite_input=True)
            found[place] = expit(low.astype(float)), expit(high.astype(float))
    return found


def as_dataset(data: Any) -> GraphDataset:
    """A data set, from one or from the distances of one graph."""
    if isinstance(data, GraphDataset):
        return data
    one = is_one_graph(data) or (len(data) > 0 and np.ndim(data[0]) == 0)
    return GraphDataset([data] if one else data)


def _parts(stack: Stack, memory: float, n_workers: int) -> list[slice]:
    """Graphs that are done together: what fits in the memory, and work for every core."""
    n_graphs, entries = len(stack.places), stack.support.n_nodes**2
    fits = max(int(memory / n_workers // (COPIES * 4 * entries)), 1)
    shares = n_workers if n_graphs * entries > WORTHWHILE else 1
    size = min(fits, -(-n_graphs // shares))
    return [slice(first, first + size) for first in range(0, n_graphs, size)]


class _Table(NamedTuple):
    """Draws arranged by the network's parameters: a row for each distinct set of them."""

    network: dict[str, Float[np.ndarray, "rows ..."]]
    others: dict[str, Float[np.ndarray, "rows group ..."]]
    weights: Float[np.ndarray, "rows group"]

    @classmethod
    def of(cls, posterior: Posterior) -> _Table:
        own = posterior.model.network.params_type._fields
        others = posterior.model.parameters[len(own) :]
        values = [posterior.params[name] for name in own]
        columns = np.concatenate([x.reshape(len(x), -1) for x in values], axis=1)
        _, first, inverse = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        distinct = [x[first] for x in values]
        order = np.argsort(inverse.ravel(), kind="stable")
        starts = np.searchsorted(inverse.ravel()[order], np.arange(len(first) + 1))
        group = min(int(np.diff(starts).max()), GROUP)
        pieces = [
            (row, order[begin : min(begin + group, starts[row + 1])])
            for row in range(len(first))
            for begin in range(starts[row], starts[row + 1], group)
        ]
        weights = np.zeros((len(pieces), group))
        table = {
            name: np.zeros((len(pieces), group, *posterior.params[name].shape[1:]))
            for name in others
        }
        for k, (_, members) in enumerate(pieces):
            weights[k, : len(members)] = posterior.weights[members]
            for name in others:
                table[name][k, : len(members)] = posterior.params[name][members]
        rows = [row for row, _ in pieces]
        network = {name: x[rows] for name, x in zip(own, distinct, strict=True)}
        return cls(network, table, weights)

    def block(self, first: int) -> _Block:
        """Take `BLOCK` rows from `first` on, filled up with rows of no weight."""
        rows = np.arange(first, first + BLOCK)
        inside = rows < len(self.weights)
        rows = np.where(inside, rows, 0)
        return _Block(
            {name: jnp.asarray(x[rows]) for name, x in self.network.items()},
            {name: jnp.asarray(x[rows]) for name, x in self.others.items()},
            jnp.asarray(self.weights[rows] * inside[:, None]),
        )


class _Block(NamedTuple):
    """Rows of a table in JAX's arrays, or one of them."""

    network: dict[str, Array]
    others: dict[str, Array]
    weights: Float[Array, "*rows group"]


class _Running(NamedTuple):
    """Weight, mean and sum of squares around it, so far (West 1979)."""

    weight: Float[Array, ""]
    mean: Float[Array, "graphs edges"]
    square: Float[Array, "graphs edges"]


def _sums(
    model: EdgeModel, table: _Table, stack: Stack, here: slice
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of p, and the log-likelihood of each graph at each draw."""
    forward, part = model.forward, stack.part(here)
    batch = forward.batch(part).as_jax()
    batch = batch if part.known.any() else batch.without_labels()
    running = _Running(jnp.zeros(()), jnp.zeros(batch.e.shape), jnp.zeros(batch.e.shape))
    likelihood = []
    for first in range(0, len(table.weights), BLOCK):
        running, log_likelihoods = _add_block(forward, running, table.block(first), batch)
        likelihood.append(np.asarray(log_likelihoods, float))
    of_draws = np.concatenate(likelihood)[: len(table.weights)]
    return np.asarray(running.mean, float), np.asarray(running.square, float), of_draws


@eqx.filter_jit
def _add_block(
    forward: ForwardModel, running: _Running, block: _Block, batch: Batch
) -> tuple[_Running, Float[Array, "rows group graphs"]]:
    def row(running: _Running, part: _Block) -> tuple[_Running, Array]:
        # Every parameter has a value here; those of the readout change from draw to draw.
        first = {name: values[0] for name, values in part.others.items()}
        reduced = forward.run(forward.split({**part.network, **first}), batch)

        def draw(
            running: _Running, drawn: tuple[dict[str, Array], Array]
        ) -> tuple[_Running, Array]:
            others, weight = drawn
            params = forward.split({**part.network, **others})
            logits = forward.logits(params, reduced)
            total = running.weight + weight
            off = jax.nn.sigmoid(logits) - running.mean
            mean = running.mean + off * (weight / jnp.maximum(total, 1e-30))
            square = running.square + weight * off * (jax.nn.sigmoid(logits) - mean)
            fit = forward.log_likelihood(logits, params, reduced, batch)
            return _Running(total, mean, square), fit

        return lax.scan(draw, running, (part.others, part.weights))

    return lax.scan(row, running, block)


@eqx.filter_jit
def _logits_of(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch
) -> Float[Array, "draws graphs edges"]:
    return lax.map(lambda values: forward.logits_at(values, batch), draws)


@eqx.filter_jit
def _edges_of(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch, keys: Array
) -> UInt8[Array, "draws graphs edges"]:
    def at(drawn: tuple[dict[str, Array], Array]) -> Array:
        values, key = drawn
        p = jax.nn.sigmoid(forward.logits_at(values, batch))
        return jax.random.bernoulli(key, p).astype(jnp.uint8)

    return lax.map(at, (draws, keys))


def batch_of_one(model: EdgeModel, stack: Stack, row: int) -> Batch:
    """Make a batch of one graph of a stack, without its labels."""
    return model.forward.batch(stack.part(slice(row, row + 1))).without_labels().as_jax()
