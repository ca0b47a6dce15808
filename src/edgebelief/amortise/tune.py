"""Fine-tuning: the trained network, trained a little more on graphs of one kind.

    minimise  mean over graphs of the NLL of their labels over their number of pairs,

averaged over the heads, by AdamW from the weights that ship. Every step sees new graphs. The rate
rises for the first tenth of the steps and then falls to zero as half a cosine.

The result is the moving average of the weights in half precision, as files keep them, so that a
learner that was saved believes the same. Where the average predicts held-out graphs no better than
the weights it began with, those are the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import cos, pi
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ..errors import InputError, Remedy, Setting, SettingError
from ..evidence.numerics import correlation
from ..networks.pair import PairNetwork
from ..progress import progress_bar
from .cases import Case
from .inputs import Known, inputs_of
from .predict import one_at_a_time
from .train import Draws, graph_losses, optimiser_of
from .weights import pretrained

# The largest learning rate: a fifth of that of the training, whose schedule ended at zero.
RATE = 2e-4
WARM_UP = 0.1
# The decay of the moving average: that of the last fifty steps or so.
MEMORY = 0.98
# A step sees so many pairs, both directions counted, and a number of graphs within these bounds: on
# two cores it then takes a few seconds.
PAIRS, FEWEST, MOST = 12_800, 4, 64
# Some minutes on two cores, and on a GPU, where a step is a hundred times faster.
STEPS = {"cpu": 100, "gpu": 4000}


class Tuned(NamedTuple):
    """A network that was tuned, and what that was worth."""

    network: PairNetwork
    before: float
    """The NLL of the labels of a held-out graph, by the network that it began with."""
    after: float
    """The same, by the tuned one."""
    steps: int
    n_graphs: int
    """The number of graphs that it has seen."""

    @property
    def is_better(self) -> bool:
        """Whether the tuned network predicts held-out graphs better; else the old one is kept."""
        return self.after < self.before


def tune(
    draw: Callable[[int, int], Sequence[Case]],
    held_out: Sequence[Case],
    *,
    steps: int | None = None,
    start: PairNetwork | None = None,
    rate: float = RATE,
    progress: bool | None = None,
) -> Tuned:
    """Train the pair network on graphs of one kind and one size.

    Parameters
    ----------
    draw : callable
        Takes the number of the step and the number of graphs, and returns that many new cases, all
        with as many nodes as those held out, with signals or all without.
    held_out : sequence of Case
        What the result is compared on; no step may see them.
    steps : int, optional
        By default 100 on a processor and 4,000 on a GPU, some minutes.
    start : PairNetwork, optional
        By default the network that ships with the package.
    rate : float
        The largest learning rate.
    progress : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> from edgebelief.amortise.cases import world_cases
    >>> from edgebelief.amortise.tune import tune
    >>> from edgebelief.amortise.world import WORLDS
    >>> def draw(step, n_graphs):
    ...     return world_cases(step, n_graphs, (8, 8), WORLDS["ER"])
    >>> tuned = tune(draw, draw(10**6, 16), steps=20)  # doctest: +SKIP
    """
    steps = STEPS.get(jax.default_backend(), STEPS["gpu"]) if steps is None else steps
    start = pretrained() if start is None else start
    n_nodes = len(held_out[0].e)
    n_graphs = int(np.clip(PAIRS // n_nodes**2, FEWEST, MOST))
    optimiser = _optimiser()
    # In single precision, as in the training, and alone: see `predict`.
    with one_at_a_time, jax.enable_x64(False):
        state = _State(start, start, optimiser.init(start))
        with progress_bar(progress, total=steps, desc="tuning", unit="step") as bar:
            for step in range(steps):
                batch = _batch(draw(step, n_graphs))
                now = jnp.asarray(_rate(rate, step, steps)), jnp.asarray(step)
                state, loss = _step(optimiser, state, batch, *now)
                if not np.isfinite(loss):
                    problem = f"the loss of step {step + 1} is not finite"
                    remedy = Remedy("take smaller steps", Setting("rate", RATE / 4))
                    raise SettingError(problem, remedy=remedy)
                bar.set_postfix_str(f"NLL of a graph {loss:.3g}")
                bar.update()
        network = jax.tree.map(_rounded, state.average)
        before, after = (_nll(each, held_out, n_graphs) for each in (start, network))
    kept = network if after < before else start
    return Tuned(kept, before, after, steps, steps * n_graphs)


def _rate(largest: float, step: int, steps: int) -> float:
    rising = min(1.0, (step + 1) / max(WARM_UP * steps, 1.0))
    return largest * rising * 0.5 * (1 + cos(pi * step / steps))


class _State(NamedTuple):
    network: PairNetwork
    average: PairNetwork
    """The moving average of the networks."""
    moments: Any


# The same object each time: a compiled step is for one.
_optimiser = cache(optimiser_of)


@eqx.filter_jit
def _step(
    optimiser: optax.GradientTransformation, state: _State, batch: Draws, rate: Array, step: Array
) -> tuple[_State, Array]:
    """Take a step; return the NLL of a graph, too."""

    def loss(network: PairNetwork) -> tuple[Array, Array]:
        per_graph = graph_losses(network, batch)
        return per_graph[:, 1:].mean() / batch.labels.shape[-1] ** 2, per_graph[:, 0].mean()

    gradient, nll = jax.grad(loss, has_aux=True)(state.network)
    updates, moments = optimiser.update(gradient, state.moments, state.network)
    network = jax.tree.map(lambda w, u: w - rate * u, state.network, updates)
    memory = jnp.minimum(MEMORY, (1 + step) / (10 + step))
    average = jax.tree.map(
        lambda old, new: memory * old + (1 - memory) * new, state.average, network
    )
    return _State(network, average, moments), nll


@eqx.filter_jit
def _losses(network: PairNetwork, batch: Draws) -> Array:
    return graph_losses(network, batch)[:, 0]


def _nll(network: PairNetwork, cases: Sequence[Case], n_graphs: int) -> float:
    """Return the mean NLL of a graph, a few graphs at a time."""
    parts = [cases[k : k + n_graphs] for k in range(0, len(cases), n_graphs)]
    filled = [[*part, *cases[:n_graphs]][:n_graphs] for part in parts]  # of one size: one program
    losses = [
        np.asarray(_losses(network, _batch(full)))[: len(part)]
        for full, part in zip(filled, parts, strict=True)
    ]
    return float(np.concatenate(losses).mean())


def _batch(cases: Sequence[Case]) -> Draws:
    """Return cases of one size as the arrays that the network takes."""
    n_nodes, has_signals = len(cases[0].e), cases[0].signals is not None
    if not all(np.isfinite(case.e).all() for case in cases):
        raise InputError("the distances of a simulated graph are not finite.")
    e = np.stack([case.e / max(float(case.e.max()), 1e-300) for case in cases])
    c = [np.eye(n_nodes) if x.signals is None else correlation(x.signals) for x in cases]
    labels = np.zeros((len(cases), n_nodes, n_nodes), np.float32)
    rows, columns = np.triu_indices(n_nodes, 1)
    labels[:, rows, columns] = labels[:, columns, rows] = [case.labels for case in cases]
    known = Known(
        jnp.array([case.n_signals for case in cases], jnp.float32),
        jnp.array([case.is_correlation for case in cases], jnp.float32),
        jnp.full(len(cases), has_signals, jnp.float32),
    )
    mask = jnp.ones((len(cases), n_nodes))
    inputs = _inputs(e.astype(np.float32), np.stack(c).astype(np.float32), known, mask)
    return Draws(inputs, jnp.asarray(labels), jnp.zeros(len(cases), int))


_inputs = jax.jit(jax.vmap(inputs_of))


def _rounded(x: Array) -> Array:
    return x.astype(jnp.float16).astype(jnp.float32)
