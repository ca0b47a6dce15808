"""Cases: one graph as users have it, with its labels; draws of the simulated world as cases.

`world.draw` makes the inputs of the network on the device. Here the same world gives distances and
signals instead, for all that looks at the data themselves.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from .world import EVERYTHING, Responded, World, respond

OnPairs = Float[np.ndarray, "nodes nodes"]


class Case(NamedTuple):
    """The data of one graph, and its edges."""

    e: OnPairs
    """Squared distances, or 1 - |correlation|."""
    signals: Float[np.ndarray, "signals nodes"] | None
    """NaN where missing; None if only the distances are given."""
    n_signals: float
    """Infinity for expected distances, NaN if unknown."""
    is_correlation: bool
    labels: Float[np.ndarray, " edges"]
    """1 for edges, in `np.triu_indices(N, k=1)` order."""
    kind: str
    """Where it comes from."""


def distances_between(x: np.ndarray, is_correlation: bool) -> OnPairs:
    """Return mean squared differences or 1 - |correlation| of the columns; gaps pair by pair.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.cases import distances_between
    >>> distances_between(np.array([[0.0, 1.0], [2.0, 0.0]]), False)
    array([[0. , 2.5],
           [2.5, 0. ]])
    """
    there = ~np.isnan(x)
    y, w = np.where(there, x, 0.0), there.astype(float)
    counts = np.maximum(w.T @ w, 1.0)
    sums, squares, cross = y.T @ w, (y**2).T @ w, y.T @ y
    if is_correlation:
        variance = np.maximum(squares / counts - (sums / counts) ** 2, 0.0)
        root = np.sqrt(variance * variance.T)
        covariance = cross / counts - sums * sums.T / counts**2
        defined = root > 0
        e = 1 - np.abs(np.where(defined, covariance, 0.0) / np.where(defined, root, 1.0))
    else:
        e = (squares + squares.T - 2 * cross) / counts
    return np.maximum(e, 0.0) * (1 - np.eye(len(e)))


def world_cases(
    seed: int, n_graphs: int, nodes: tuple[int, int], world: World = EVERYTHING
) -> list[Case]:
    """Draw cases from a world.

    Parameters
    ----------
    seed : int
    n_graphs : int
    nodes : (int, int)
        The smallest and the largest number of nodes; half of the graphs have the largest one.
    world : World

    Returns
    -------
    list of Case
        Cells side by side, not in random order.

    Examples
    --------
    >>> from edgebelief.amortise.cases import world_cases
    >>> from edgebelief.amortise.world import WORLDS
    >>> [case.e.shape for case in world_cases(0, 2, (8, 8), WORLDS["ER"])]
    [(8, 8), (8, 8)]
    """
    drawing = jax.jit(partial(respond, world=world, n_graphs=n_graphs, nodes=nodes))
    with jax.enable_x64(False):
        drawn = jax.device_get(drawing(jax.random.key(seed)))
    rng = np.random.default_rng(seed)
    result = []
    for k in range(n_graphs):
        one: Responded = jax.tree.map(lambda x, k=k: np.asarray(x[k], float), drawn)
        case = _case(rng, one, world[int(one.cell)].name)
        if np.isfinite(case.e).all():
            result.append(case)
    return result


def _case(rng: np.random.Generator, drawn: Responded, kind: str) -> Case:
    n = int(drawn.n_nodes)
    labels = np.asarray(drawn.adjacency)[:n, :n][np.triu_indices(n, 1)]
    is_correlation = bool(drawn.reading.correlation_distance)
    given = rng.random() < drawn.signals_given
    unknown = rng.random() < drawn.number_unknown and not given
    if np.isinf(drawn.n_signals):  # who knows the expected distances has no signals
        number = np.nan if unknown else np.inf
        expected = np.asarray(drawn.expected)[:n, :n]
        return Case(expected, None, number, is_correlation, labels, kind)
    p = int(drawn.n_signals)
    number = np.nan if unknown else p
    if drawn.is_distorted:
        x = np.where(drawn.holes[:p, :n] > 0, np.nan, drawn.rows[:p, :n])
    else:
        x = rng.normal(size=(p, n)) @ drawn.f[:n, :n].T + drawn.offsets[:n]
    x = _read(x, drawn)
    e = distances_between(x, is_correlation)
    return Case(e, x if given else None, number, is_correlation, labels, kind)


def _read(x: np.ndarray, drawn: Responded) -> np.ndarray:
    """Subtract means, divide by standard deviations, as the reading says."""
    there = ~np.isnan(x)
    counts = np.maximum(there.sum(0), 1)
    mean = np.where(there, x, 0.0).sum(0) / counts
    sd = np.sqrt(np.where(there, (x - mean) ** 2, 0.0).sum(0) / counts)
    if drawn.reading.standardised:
        return (x - mean) / np.where(sd > 0, sd, 1.0)
    return x - mean if drawn.reading.centred else x
