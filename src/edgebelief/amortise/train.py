"""Training of the pair network on the simulated world.

Graphs of similar size are drawn and evaluated together, in arrays of one size: a `Bucket`. A step
takes one batch of one bucket; buckets take turns in a fixed pattern. Batches come from pools that
are drawn ahead, many graphs at a time, because drawing few is as slow.

    minimise  mean over graphs of  sum_k w_ck * NLL_k / (K size(n)),   size(n) = n sqrt(n / 20)

with the heads k = 1..K, the number n of nodes, and weights w_ck of the graph's cell c of the world:
Dirichlet over the heads, fixed for the whole training. So heads have different beliefs about which
graphs are common, and agree where the data decide.

Everything follows from the plan and the number of the step: a run that was interrupted continues as
if it had not been, bit by bit on the same machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import cos, pi
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, ArrayLike, DTypeLike, Float

from ..errors import InputError
from ..networks.pair import PairNetwork, PairShape
from .inputs import CHANNELS, FACTS
from .world import WORLDS, Draws, Report, World, draw

# How unequal the weights of a cell are over the heads: Dirichlet with this concentration, so that
# a weight is 1 with a standard deviation of 0.6 for four heads.
CONCENTRATION = 2.0
# As usual for such networks: the largest norm of a gradient, and how fast matrices decay.
CLIP, WEIGHT_DECAY = 1.0, 0.01


@dataclass(frozen=True)
class Bucket:
    """Graphs of similar size, evaluated together."""

    nodes: tuple[int, int]
    """The smallest and the largest number of nodes."""
    batch: int
    """The number of graphs of a step."""
    turns: int = 1
    """How often it comes up in a round of all buckets."""
    most_signals: int = 256
    """The largest number of signals that are drawn one by one."""
    pool: int = 16
    """The number of batches that are drawn at once."""


SHAPE = PairShape(len(CHANNELS), len(FACTS))

# About 250,000 pairs a step in each, the diagonal and both directions counted.
BUCKETS = (
    Bucket((5, 20), batch=640, turns=10),
    Bucket((21, 40), batch=160, turns=3),
    Bucket((41, 90), batch=32, turns=2, pool=32),
    Bucket((91, 200), batch=6, turns=1, pool=64),
)


@dataclass(frozen=True)
class Plan:
    """The settings of a training run."""

    world: str = "everything"
    """A name in `world.WORLDS`."""
    buckets: tuple[Bucket, ...] = BUCKETS
    shape: PairShape = SHAPE
    steps: int = 80_000
    """The step at which the learning rate has fallen to zero."""
    rate: float = 1e-3
    warm_up: int = 500
    """The number of steps in which the learning rate rises to `rate`."""
    decay: float = 0.5
    """The share of the steps, at the end, in which it falls: as half a cosine."""
    weight_decay: float = WEIGHT_DECAY
    clip: float = CLIP
    """The largest norm of a gradient."""
    memory: float = 0.999
    """The decay of the moving average of the weights, which is what a run gives."""
    seed: int = 0
    half: bool = False
    """Whether large products are in bfloat16."""
    unroll: bool = False
    """Whether each layer is compiled on its own: longer to compile, faster on a GPU."""

    @property
    def cells(self) -> World:
        """The world."""
        return WORLDS[self.world]

    @property
    def dtype(self) -> DTypeLike:
        """The type of large products."""
        return jnp.bfloat16 if self.half else jnp.float32

    @cached_property
    def round(self) -> tuple[int, ...]:
        """The positions of the buckets in the order in which they take turns, spread evenly."""
        turns = np.array([bucket.turns for bucket in self.buckets])
        order, given = [], np.zeros(len(turns))
        for k in range(turns.sum()):
            due = int(np.argmax((k + 1) * turns / turns.sum() - given))
            given[due] += 1
            order.append(due)
        return tuple(order)

    def bucket_of(self, step: int) -> tuple[int, int]:
        """Return the bucket of a step, and how often it came up before."""
        rounds, position = divmod(step, len(self.round))
        bucket = self.round[position]
        return bucket, rounds * self.round.count(bucket) + self.round[:position].count(bucket)

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step."""
        rising = min(1.0, (step + 1) / self.warm_up)
        left = min(1.0, (self.steps - step) / max(self.decay * self.steps, 1.0))
        return self.rate * rising * 0.5 * (1 - cos(pi * max(left, 0.0)))


# For a quick look on a small machine.
SMALL = Plan(
    world="small",
    buckets=(Bucket((5, 12), batch=64, pool=8),),
    shape=PairShape(len(CHANNELS), len(FACTS), width=16, depth=2, heads=2),
    steps=250,
    rate=4e-3,
    warm_up=50,
    memory=0.98,
)


class State(NamedTuple):
    """What the next step needs."""

    network: PairNetwork
    average: PairNetwork
    """The moving average of the networks."""
    moments: Any
    """The state of the optimiser."""
    step: Array


class Losses(NamedTuple):
    """Negative log-likelihoods of graphs over their sizes, averaged over a batch.

    The size is n sqrt(n / 20): the number of nodes for 20 nodes. Between nodes and pairs, so that
    neither large graphs without much evidence nor small ones have most of the gradient.
    """

    heads: Float[Array, ""]
    """The weighted mean over heads: what is minimised."""
    mean: Float[Array, ""]
    """That of the mean probability of the heads."""
    base: Float[Array, ""]
    """That of one probability for all pairs of the batch, the share of edges."""


def head_weights(n_cells: int, n_heads: int) -> Float[np.ndarray, "cells heads"]:
    """Return how much the graphs of each cell count for each head; on average 1."""
    rng = np.random.default_rng(20261115)  # any number will do, but always the same
    return n_heads * rng.dirichlet(np.full(n_heads, CONCENTRATION), size=n_cells)


def losses(
    network: PairNetwork,
    batch: Draws,
    weights: Float[ArrayLike, "cells heads"],
    dtype: DTypeLike = jnp.float32,
    unroll: bool = False,
) -> Losses:
    """Return the losses of a network on a batch."""
    per_graph = graph_losses(network, batch, dtype, unroll)
    n = batch.inputs.mask.sum(1)
    size = n * jnp.sqrt(n / 20)
    pairs = (batch.inputs.mask[:, :, None] * batch.inputs.mask[:, None, :]).sum((1, 2)) - n
    share = (batch.labels.sum((1, 2)) / size).sum() / (pairs / size).sum()
    base = -jnp.log(jnp.where(batch.labels > 0, share, 1 - share))
    base = (_over_pairs(base[..., None], batch)[:, 0] / size).mean()
    heads = (per_graph[:, 1:] * jnp.asarray(weights)[batch.cell]).mean(1)
    return Losses((heads / size).mean(), (per_graph[:, 0] / size).mean(), base)


def graph_losses(
    network: PairNetwork, batch: Draws, dtype: DTypeLike = jnp.float32, unroll: bool = False
) -> Float[Array, "graphs kinds"]:
    """Return the NLL of each graph, of the mean probability first, and then of each head."""
    evaluate = jax.vmap(lambda x: network(x.pairs, x.facts, x.mask, dtype, unroll).logits)
    logits = evaluate(batch.inputs)
    yes, no = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
    each = -jnp.where(batch.labels[..., None] > 0, yes, no)
    right = jnp.where(batch.labels > 0, _mean_of_logs(yes), _mean_of_logs(no))
    return _over_pairs(jnp.concatenate([-right[..., None], each], -1), batch)


def _mean_of_logs(logs: Float[Array, "... heads"]) -> Float[Array, " ..."]:
    """Return the logarithm of the mean."""
    return jax.nn.logsumexp(logs, axis=-1) - jnp.log(logs.shape[-1])


def _over_pairs(
    x: Float[Array, "graphs nodes nodes kinds"], batch: Draws
) -> Float[Array, "graphs kinds"]:
    """Sum over the pairs of nodes, each once."""
    mask = batch.inputs.mask
    pairs = mask[:, :, None] * mask[:, None, :] * jnp.triu(jnp.ones(mask.shape[1:] * 2), 1)
    return jnp.einsum("bijk,bij->bk", x, pairs, precision="highest")


class Trainer:
    """A plan, compiled: draws pools and takes steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._weights = jnp.asarray(head_weights(len(plan.cells), plan.shape.heads), jnp.float32)
        self._optimiser = optimiser_of(plan.clip, plan.weight_decay)
        self._key = jax.random.key(plan.seed)
        self._pools: dict[int, tuple[int, Draws]] = {}
        self.reports: list[Report] = []
        """What was wrong with the draws since the list was last emptied."""
        self._draw: list[Any] = [jax.jit(self._drawing(bucket)) for bucket in plan.buckets]
        self._step: list[Any] = [
            jax.jit(self._stepping(bucket), donate_argnums=0) for bucket in plan.buckets
        ]

    def start(self) -> State:
        """Return the state before the first step."""
        key = jax.random.fold_in(self._key, 2**31)
        return self.from_network(PairNetwork.random(key, self.plan.shape))

    def from_network(self, network: PairNetwork) -> State:
        """Return a state before the first step that has these weights."""
        if network.shape != self.plan.shape:
            problem = f"has the shape {network.shape}; the plan has {self.plan.shape}."
            raise InputError(problem, argument="network")
        moments = self._optimiser.init(network)
        copy = jax.tree.map(jnp.array, network)  # the state is donated, and nothing in it twice
        return State(network, copy, moments, jnp.asarray(0))

    def step(self, state: State, number: int) -> tuple[State, Losses]:
        """Take step `number`, which is that of the state."""
        bucket, before = self.plan.bucket_of(number)
        pool, index = divmod(before, self.plan.buckets[bucket].pool)
        if self._pools.get(bucket, (-1,))[0] != pool:
            self._pools.pop(bucket, None)  # its memory is needed for the next
            draws, report = self._draw[bucket](self._pool_key(bucket, pool))
            self.reports.append(report)
            self._pools[bucket] = pool, draws
        draws = self._pools[bucket][1]
        result: tuple[State, Losses] = self._step[bucket](
            state, draws, index, self.plan.rate_at(number)
        )
        return result

    def fresh(self, bucket: int) -> Draws:
        """Draw a pool that no step of the training sees."""
        draws: Draws = self._draw[bucket](self._pool_key(bucket, 2**31 - 1))[0]
        return draws

    def compilations(self, state: State) -> Iterator[Callable[[], None]]:
        """Return what compiles the parts, for threads: compilers use one core each."""
        for k in range(len(self.plan.buckets)):
            shape = jax.eval_shape(self._draw[k], self._key)[0]

            def of_draw(k: int = k) -> None:
                self._draw[k] = self._draw[k].lower(self._key).compile()

            def of_step(k: int = k, shape: Draws = shape) -> None:
                self._step[k] = self._step[k].lower(state, shape, 0, 0.0).compile()

            yield of_step
            yield of_draw

    def _pool_key(self, bucket: int, pool: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(self._key, bucket), pool)

    def _drawing(self, bucket: Bucket) -> Callable[[Array], tuple[Draws, Report]]:
        def draw_pool(key: Array) -> tuple[Draws, Report]:
            n_graphs = bucket.batch * bucket.pool
            return draw(key, self.plan.cells, n_graphs, bucket.nodes, bucket.most_signals)

        return draw_pool

    def _stepping(
        self, bucket: Bucket
    ) -> Callable[[State, Draws, int, float], tuple[State, Losses]]:
        plan = self.plan

        def take(state: State, pool: Draws, index: int, rate: float) -> tuple[State, Losses]:
            batch: Draws = jax.tree.map(
                lambda x: lax.dynamic_slice_in_dim(x, index * bucket.batch, bucket.batch), pool
            )

            def loss(network: PairNetwork) -> tuple[Array, Losses]:
                all_losses = losses(network, batch, self._weights, plan.dtype, plan.unroll)
                return all_losses.heads, all_losses

            gradient, measured = jax.grad(loss, has_aux=True)(state.network)
            updates, moments = self._optimiser.update(gradient, state.moments, state.network)
            network = jax.tree.map(lambda w, u: w - rate * u, state.network, updates)
            memory = jnp.minimum(plan.memory, (1 + state.step) / (10 + state.step))
            average = jax.tree.map(
                lambda old, new: memory * old + (1 - memory) * new, state.average, network
            )
            return State(network, average, moments, state.step + 1), measured

        return take


def optimiser_of(
    clip: float = CLIP, weight_decay: float = WEIGHT_DECAY
) -> optax.GradientTransformation:
    """Return AdamW with clipped gradients, at a learning rate of one."""
    return optax.chain(
        optax.clip_by_global_norm(clip),
        optax.scale_by_adam(b2=0.99),
        optax.add_decayed_weights(weight_decay, mask=_is_matrix),
    )


def _is_matrix(network: PairNetwork) -> PairNetwork:
    """Return True for the weights of linear maps, which decay, and False for scales and shifts."""

    def decays(path: tuple[Any, ...], _: Array) -> bool:
        return not str(path[-1]).endswith(("scale", "shift", "bias"))

    return jax.tree_util.tree_map_with_path(decays, network)


def scores(
    network: PairNetwork, world: World, n_graphs: int, nodes: tuple[int, int], seed: int = 1
) -> dict[str, float]:
    """Return the NLL of a graph, summed over its pairs, on fresh draws: its mean in each cell.

    Parameters
    ----------
    network : PairNetwork
    world : World
    n_graphs : int
        In all cells together.
    nodes : (int, int)
        The smallest and the largest number of nodes.
    seed : int
        Not that of the training.

    Returns
    -------
    dict
        By the name of the cell.
    """
    key = jax.random.fold_in(jax.random.key(seed), 2**31 - 1)
    draws, _ = jax.jit(draw, static_argnums=(1, 2, 3))(key, world, n_graphs, nodes)
    nll, cell = eqx.filter_jit(graph_losses)(network, draws)[:, 0], np.asarray(draws.cell)
    return {
        one.name: float(np.asarray(nll)[cell == k].mean())
        for k, one in enumerate(world)
        if (cell == k).any()
    }


def with_half(plan: Plan) -> Plan:
    """Return the plan with bfloat16 products where the device is made for them."""
    return replace(plan, half=jax.default_backend() == "gpu")
