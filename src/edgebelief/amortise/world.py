"""The simulated world: the graphs and signals that the pair network is trained on, as data.

A `World` is a tuple of `Cell`s, each an ensemble of graphs with a way to respond to it and a share
of all draws. Change the tables at the end of this file, or make a world of your own: training takes
any. `draw` makes many labelled inputs side by side on the device, the same for the same key.

    graph      an ensemble, a number of nodes; a few edges moved ("blurred"); perhaps connected only
    weights    1, lognormal or uniform
    filter     one of `filters.FILTERS`
    nodes      random signs, scales, offsets; noise
    signals    Gaussian, or distorted (`signals.Distortion`); how many
    reading    how distances are computed, and what the user tells besides
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..errors import SettingError
from . import graphs
from .filters import FILTERS, Matrix, OnNodes, filter_matrix
from .graphs import Choice, Ensemble, Key, Scalar, WholeChoice, always, blurred, mask_of, reach
from .inputs import Inputs, Known, inputs_of
from .signals import Distortion, Reading, Seen, distorted, distorted_rows, gaussian, with_noise

# A cell whose graphs must be connected draws so many times as many as it needs, and takes connected
# ones first. Of geometric graphs with radius 0.32 on 20 nodes half are connected.
CANDIDATES = 4


@dataclass(frozen=True)
class Response:
    """How graphs become data: shares of draws to which something applies, and ranges of numbers.

    The defaults are what textbooks and benchmarks have: Gaussian signals with covariance L+ of an
    unweighted graph, their mean squared differences, nothing in the way.
    """

    filters: tuple[float, ...] = (1.0, *(0.0,) * (len(FILTERS) - 1))
    """The share of each filter, in the order of `FILTERS`."""
    fewest_signals: float = 20
    most_signals: float = 1000
    """The number of signals, uniform in its logarithm."""
    infinite: float = 0.1
    """The share with expected distances; distorted signals are always finitely many."""
    lognormal: float = 0.0
    uniform: float = 0.0
    """The shares with weights of edges lognormal, or uniform from 0.1 to 1."""
    normalised: float = 0.0
    """The share with the normalised Laplacian."""
    flipped: float = 0.0
    """The share in which a random part of the nodes has its sign changed."""
    scaled: float = 0.0
    """The share in which nodes have different scales."""
    offset: float = 0.0
    """The share in which nodes have different expectations."""
    noise: float = 0.0
    """The share with independent noise, of 0 to 25 decibels below the signals."""
    common: float = 0.0
    """The share with one to eight common factors, from 15 decibels below to 15 above the signals:
    a market, a batch, a shape that nodes have whatever their edges."""
    heavy: float = 0.0
    """The share with Student's t instead of the normal distribution, 3 to 8 degrees of freedom."""
    memory: float = 0.0
    """The share in which a signal is like the one before."""
    nonlinear: float = 0.0
    """The share with a nonlinear response."""
    gaps: float = 0.0
    """The share with 2 to 30 % of the values missing."""
    centred: float = 0.0
    standardised: float = 0.0
    correlation_distance: float = 0.0
    """The shares of ways to compute distances; see `signals.Reading`."""
    signals_given: float = 0.5
    """The share in which the network gets correlations with their signs too."""
    number_unknown: float = 0.0
    """The share in which it is not told how many signals there were, where it has none."""

    @property
    def is_distorted(self) -> bool:
        """Whether signals must be drawn one by one."""
        return max(self.heavy, self.memory, self.nonlinear, self.gaps) > 0


@dataclass(frozen=True)
class Cell:
    """A part of the world: an ensemble, how its graphs respond, and its share of all draws."""

    name: str
    share: float
    ensemble: Ensemble
    response: Response = Response()
    connected: bool = False
    """Whether graphs are drawn until they are connected."""
    blurred: float = 0.0
    """The share of graphs in which up to a fifth of the edges are moved anywhere."""
    fewest_nodes: int = 5


World = tuple[Cell, ...]


class Draws(NamedTuple):
    """Labelled inputs, side by side."""

    inputs: Inputs
    labels: Float[Array, "graphs nodes nodes"]
    """1 for edges."""
    cell: Int[Array, " graphs"]
    """The position in the world of the cell that each comes from."""


class Report(NamedTuple):
    """What was wrong with the draws, and mended."""

    not_finite: Int[Array, ""]
    """How many were not finite, and were replaced by copies of others."""
    not_connected: Int[Array, ""]
    """How many are disconnected in cells that want connected graphs: too few of them came up."""


class _Graphs(NamedTuple):
    """Graphs side by side."""

    adjacency: Float[Array, "graphs nodes nodes"]
    n_nodes: Int[Array, " graphs"]
    cell: Int[Array, " graphs"]


class _Signals(NamedTuple):
    """What is to be drawn for one graph, and how it is read."""

    f: Matrix
    offsets: OnNodes
    n_signals: Scalar
    """As many as the response says; those drawn one by one may be fewer."""
    reading: Reading
    distortion: Distortion
    mask: OnNodes


def draw(
    key: Key, world: World, n_graphs: int, nodes: tuple[int, int], most_signals: int = 256
) -> tuple[Draws, Report]:
    """Draw labelled inputs from a world; to be compiled, with all but the key static.

    Parameters
    ----------
    key : JAX key
        Same key, same draws, on the same kind of device.
    world : World
    n_graphs : int
        Every cell gets its share of them, to a graph or so.
    nodes : (int, int)
        The smallest and the largest number of nodes. Half of the graphs have the largest one,
        which is also the size of the arrays; the others are uniform in between.
    most_signals : int
        The largest number of signals that are drawn one by one.

    Returns
    -------
    Draws
        In random order.
    Report

    Examples
    --------
    >>> import jax
    >>> from edgebelief.amortise.world import WORLDS, draw
    >>> draws, report = draw(jax.random.key(0), WORLDS["ER"], 3, (8, 8))
    >>> draws.labels.shape, int(report.not_finite)
    ((3, 8, 8), 0)
    """
    if abs(sum(cell.share for cell in world) - 1) > 1e-6:
        total = sum(cell.share for cell in world)
        raise SettingError(f"has shares that sum to {total:g}, not to 1.", argument="world")
    with jax.default_matmul_precision("highest"):
        graphs_key, signals_key, drawing, telling, order_key = jax.random.split(key, 5)
        drawn, not_connected, responses, signals, n_plain = _prepared(
            graphs_key, signals_key, world, n_graphs, nodes, most_signals
        )
        keys = jax.random.split(drawing, n_graphs)
        parts = []
        if n_plain:
            parts.append(jax.vmap(_plain)(keys[:n_plain], _slice(signals, 0, n_plain)))
        if n_plain < n_graphs:
            draw_distorted = jax.vmap(lambda key, s: _distorted(key, s, most_signals))
            parts.append(draw_distorted(keys[n_plain:], _slice(signals, n_plain, n_graphs)))
        seen: Seen = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
        told = jax.random.split(telling, n_graphs)
        inputs = jax.vmap(_told)(told, seen, signals, responses)
        draws = Draws(inputs, drawn.adjacency, drawn.cell)
        good = jnp.isfinite(inputs.pairs).all((1, 2, 3)) & jnp.isfinite(inputs.facts).all(1)
        # The good ones in random order, and copies of the first of them in place of the others.
        order = jax.random.permutation(order_key, n_graphs)
        order = order[jnp.argsort(~good[order], stable=True)]
        order = order[jnp.arange(n_graphs) % jnp.maximum(good.sum(), 1)]
        draws = jax.tree.map(lambda x: x[order], draws)
    return draws, Report((~good).sum(), not_connected)


def _prepared(
    graphs_key: Key,
    signals_key: Key,
    world: World,
    n_graphs: int,
    nodes: tuple[int, int],
    most_signals: int,
) -> tuple[_Graphs, Array, dict[str, Array], _Signals, int]:
    """Draw graphs, and what is to be drawn for each; the first `n_plain` need not be one by one."""
    counts = shares_of(n_graphs, [cell.share for cell in world])
    plain = [k for k, cell in enumerate(world) if not cell.response.is_distorted]
    harsh = [k for k, cell in enumerate(world) if cell.response.is_distorted]
    n_plain = sum(counts[k] for k in plain)
    drawn, not_connected = _graphs(graphs_key, world, plain + harsh, counts, nodes)
    responses = {
        field.name: jnp.asarray([getattr(c.response, field.name) for c in world])[drawn.cell]
        for field in fields(Response)
    }
    # Each step for all graphs at once: it is compiled once, and factorisations that run at
    # the same time wait for each other for ever on a CPU of two cores.
    signals = jax.vmap(_signals)(jax.random.split(signals_key, n_graphs), drawn, responses)
    few = jnp.minimum(signals.n_signals, most_signals)
    one_by_one = jnp.arange(n_graphs) >= n_plain
    signals = signals._replace(n_signals=jnp.where(one_by_one, few, signals.n_signals))
    return drawn, not_connected, responses, signals, n_plain


class Responded(NamedTuple):
    """Graphs side by side with what their signals are drawn from, before anything is computed."""

    adjacency: Float[Array, "graphs nodes nodes"]
    n_nodes: Int[Array, " graphs"]
    cell: Int[Array, " graphs"]
    f: Float[Array, "graphs nodes nodes"]
    """White noise to signals; `offsets` are added."""
    offsets: Float[Array, "graphs nodes"]
    n_signals: Float[Array, " graphs"]
    reading: Reading
    expected: Float[Array, "graphs nodes nodes"]
    """Distances of infinitely many Gaussian signals."""
    rows: Float[Array, "graphs signals nodes"]
    """Distorted signals; 0 in graphs without distortion."""
    holes: Float[Array, "graphs signals nodes"]
    """1 where a value is missing, if it is not filled with 0."""
    is_distorted: Float[Array, " graphs"]
    signals_given: Float[Array, " graphs"]
    """The probability that the network is given the signals."""
    number_unknown: Float[Array, " graphs"]
    """The probability that it is not told their number, where it has none."""


def respond(
    key: Key, world: World, n_graphs: int, nodes: tuple[int, int], most_signals: int = 256
) -> Responded:
    """Draw from a world what signals are drawn from; see `draw` for the parameters.

    For those who need the signals of the world themselves, which `draw` does not make.

    Examples
    --------
    >>> import jax
    >>> from edgebelief.amortise.world import WORLDS, respond
    >>> respond(jax.random.key(0), WORLDS["ER"], 3, (8, 8)).f.shape
    (3, 8, 8)
    """
    with jax.default_matmul_precision("highest"):
        graphs_key, signals_key, drawing, _, _ = jax.random.split(key, 5)
        drawn, _, responses, signals, n_plain = _prepared(
            graphs_key, signals_key, world, n_graphs, nodes, most_signals
        )

        def rows(key: Key, s: _Signals) -> tuple[Array, Array]:
            x, holes = distorted_rows(key, s.f, s.offsets, s.n_signals, s.distortion, most_signals)
            return jnp.where(holes, 0.0, x), holes & (s.distortion.filled == 0)

        def expected(s: _Signals) -> Array:
            infinite = jnp.asarray(jnp.inf)
            return gaussian(drawing, s.f, s.offsets, infinite, s.mask, s.reading).e

        keys = jax.random.split(drawing, n_graphs)
        empty = jnp.zeros((n_plain, most_signals, nodes[1]))
        x, holes = empty[:0], empty[:0]
        if n_plain < n_graphs:
            x, holes = jax.vmap(rows)(keys[n_plain:], _slice(signals, n_plain, n_graphs))
        return Responded(
            *drawn,
            signals.f,
            signals.offsets,
            signals.n_signals,
            signals.reading,
            jax.vmap(expected)(signals),
            jnp.concatenate([empty, x]),
            jnp.concatenate([empty, holes.astype(empty.dtype)]),
            (jnp.arange(n_graphs) >= n_plain).astype(empty.dtype),
            responses["signals_given"],
            responses["number_unknown"],
        )


def shares_of(total: int, shares: Sequence[float]) -> list[int]:
    """Split a whole number in proportion to shares, by the largest remainders."""
    exact = np.asarray(shares) * total
    counts = np.floor(exact + 1e-9).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return [int(c) for c in counts]


def _graphs(
    key: Key, world: World, cells: Sequence[int], counts: Sequence[int], nodes: tuple[int, int]
) -> tuple[_Graphs, Int[Array, ""]]:
    """Draw as many graphs of each cell as `counts` says; count those that should be connected."""
    low, capacity = nodes
    alike: dict[tuple[Any, ...], list[int]] = {}  # cells with the same graphs are drawn together
    for k in cells:
        if counts[k]:
            cell = world[k]
            kind = (cell.ensemble, cell.connected, cell.blurred, cell.fewest_nodes)
            alike.setdefault(kind, []).append(k)
    parts, order, missed = [], [], jnp.asarray(0)
    for number, together in enumerate(alike.values()):
        cell, count = world[together[0]], sum(counts[k] for k in together)

        def one(key: Key, cell: Cell = cell) -> tuple[Matrix, Array, Array]:
            return _graph(key, cell, min(max(low, cell.fewest_nodes), capacity), capacity)

        candidates = count * (CANDIDATES if cell.connected else 1)
        keys = jax.random.split(jax.random.fold_in(key, number), candidates)
        adjacency, n, good = jax.vmap(one)(keys)
        first = jnp.argsort(~good, stable=True)[:count]
        # Where cells share the draws, no cell gets more of those that are not connected.
        first = jax.random.permutation(jax.random.fold_in(key, len(world) + number), first)
        parts.append((adjacency[first], n[first]))
        order += [k for k in together for _ in range(counts[k])]
        missed += (~good[first]).sum()
    adjacency, n = (jnp.concatenate(x) for x in zip(*parts, strict=True))
    rank = {k: position for position, k in enumerate(cells)}
    in_order = np.argsort([rank[k] for k in order], kind="stable")
    return _Graphs(adjacency[in_order], n[in_order], jnp.asarray(order)[in_order]), missed


def _graph(key: Key, cell: Cell, fewest: int, capacity: int) -> tuple[Matrix, Array, Array]:
    """Draw one graph, its number of nodes, and whether it is as connected as it should be."""
    size, typical, graph, which, share, blur = jax.random.split(key, 6)
    n = jax.random.randint(size, (), fewest, capacity + 1)
    n = jnp.where(jax.random.bernoulli(typical), capacity, n)
    adjacency = cell.ensemble.draw(graph, n, capacity)
    if cell.blurred:
        moved = jax.random.uniform(share, maxval=0.2)
        moved = jnp.where(jax.random.uniform(which) < cell.blurred, moved, 0.0)
        adjacency = blurred(blur, adjacency, n, moved)
    if not cell.connected:
        return adjacency, n, jnp.asarray(True)
    return adjacency, n, reach(adjacency, mask_of(n, capacity)).sum() == n * n


def _signals(key: Key, graph: _Graphs, response: dict[str, Array]) -> _Signals:
    """Draw the filter of one graph, and everything else that its signals depend on."""
    weighting, filtering, counting, reading, distorting = jax.random.split(key, 5)
    mask = mask_of(graph.n_nodes, len(graph.adjacency))
    weights = graph.adjacency * _weights(weighting, len(mask), response)
    return _Signals(
        *_responding(filtering, weights, mask, response),
        _number_of_signals(counting, response),
        _reading(reading, response),
        _distortion(distorting, response),
        mask,
    )


def _plain(key: Key, s: _Signals) -> Seen:
    return gaussian(key, s.f, s.offsets, s.n_signals, s.mask, s.reading)


def _distorted(key: Key, s: _Signals, most_signals: int) -> Seen:
    return distorted(
        key, s.f, s.offsets, s.n_signals, s.mask, s.reading, s.distortion, most_signals
    )


def _slice(signals: _Signals, start: int, stop: int) -> _Signals:
    return jax.tree.map(lambda x: x[start:stop], signals)


def _weights(key: Key, n: int, response: dict[str, Array]) -> Matrix:
    kind, spread, values = jax.random.split(key, 3)
    upper = jnp.triu(jax.random.normal(values, (n, n)), 1)
    normal = upper + upper.T
    lognormal = jnp.exp(normal * jax.random.uniform(spread, minval=0.2, maxval=1.0))
    uniform = 0.1 + 0.9 * jax.scipy.stats.norm.cdf(normal)
    u = jax.random.uniform(kind)
    weights = jnp.where(u < response["lognormal"] + response["uniform"], uniform, 1.0)
    return jnp.where(u < response["lognormal"], lognormal, weights)


def _responding(
    key: Key, weights: Matrix, mask: OnNodes, response: dict[str, Array]
) -> tuple[Matrix, OnNodes]:
    """Return the filter matrix with signs, scales and noise, and the offsets of the nodes."""
    kinds, filtering, nodes, noise = jax.random.split(key, 4)
    kind, normalised, signs, scales, offsets = jax.random.uniform(kinds, (5,))
    cumulative = jnp.cumsum(response["filters"])
    f = filter_matrix(
        filtering,
        weights,
        mask,
        jnp.searchsorted(cumulative, kind * cumulative[-1], side="right"),
        normalised < response["normalised"],
    )
    flip, scale, offset, strength = jax.random.split(nodes, 4)
    n = len(mask)
    share = 0.5 * jax.random.uniform(strength)
    sign = jnp.where(jax.random.uniform(flip, (n,)) < share, -1.0, 1.0)
    spread = jnp.exp(0.5 * jax.random.normal(scale, (n,)))
    f = f * jnp.where(signs < response["flipped"], sign, 1.0)[:, None]
    f = f * jnp.where(scales < response["scaled"], spread, 1.0)[:, None]
    noise, common = jax.random.split(noise)
    there, decibel = jax.random.uniform(noise, (2,))
    level = 10 ** (-2.5 * decibel)
    factors = _common_factors(common, n, response["common"])
    f = with_noise(f, mask, jnp.where(there < response["noise"], level, 0.0), factors)
    sd = jnp.sqrt((f**2).sum() / mask.sum())
    middle = sd * jax.random.normal(offset, (n,)) * (offsets < response["offset"])
    return f, middle * mask


def _common_factors(key: Key, n: int, share: Scalar) -> Float[Array, "nodes factors"]:
    """Draw loadings, on average of variance 1 over a level; zeros where there are no factors.

    Half of the time all loadings on the first are of one sign, as on a market.
    """
    kind, numbers, loadings = jax.random.split(key, 3)
    there, strength, of_one_sign = jax.random.uniform(kind, (3,))
    most = 8
    number = jnp.floor(most ** jax.random.uniform(numbers) + 0.5)
    u = jax.random.normal(loadings, (n, most)) * (jnp.arange(most) < number)
    market = (1 + 0.3 * u[:, 0]) * jnp.sqrt(number)
    u = u.at[:, 0].set(jnp.where(of_one_sign < 0.5, market, u[:, 0]))
    level = 10 ** (3 * strength - 1.5)
    return jnp.where(there < share, u * jnp.sqrt(level / number), 0.0)


def _number_of_signals(key: Key, response: dict[str, Array]) -> Scalar:
    infinite, position = jax.random.uniform(key, (2,))
    low, high = response["fewest_signals"], response["most_signals"]
    number = jnp.round(low * (high / low) ** position)
    return jnp.where(infinite < response["infinite"], jnp.inf, number)


def _reading(key: Key, response: dict[str, Array]) -> Reading:
    u = jax.random.uniform(key, (3,))
    names = ("centred", "standardised", "correlation_distance")
    return Reading(*(u[k] < response[name] for k, name in enumerate(names)))


def _distortion(key: Key, response: dict[str, Array]) -> Distortion:
    there, numbers, bend, coins = jax.random.split(key, 4)
    heavy, memory, nonlinear, gaps = jax.random.uniform(there, (4,))
    nu, rho, slope, share = jax.random.uniform(numbers, (4,))
    together, filled = jax.random.bernoulli(coins, shape=(2,))
    return Distortion(
        tails=jnp.where(heavy < response["heavy"], 3 + 5 * nu, jnp.inf),
        together=together,
        memory=jnp.where(memory < response["memory"], 0.3 + 0.65 * rho, 0.0),
        nonlinearity=jnp.where(
            nonlinear < response["nonlinear"], jax.random.randint(bend, (), 1, 5), 0
        ),
        slope=0.5 + 1.5 * slope,
        gaps=jnp.where(gaps < response["gaps"], 0.02 + 0.28 * share, 0.0),
        filled=filled,
    )


def _told(key: Key, seen: Seen, signals: _Signals, response: dict[str, Array]) -> Inputs:
    """Compute the inputs of the network from what is given of what is seen."""
    given, unknown = jax.random.uniform(key, (2,))
    has_signals = given < response["signals_given"]
    is_unknown = (unknown < response["number_unknown"]) & ~has_signals
    known = Known(
        jnp.where(is_unknown, jnp.nan, signals.n_signals),
        signals.reading.correlation_distance.astype(jnp.float32),
        has_signals.astype(jnp.float32),
    )
    return inputs_of(seen.e, seen.correlation, known, signals.mask)


# The tables.

_TWO = (2, 2, 2, 1, 3)  # mostly what benchmarks have

#: What users benchmark on: connected graphs without weights, and their smooth signals.
BENCHMARKS: dict[str, Ensemble] = {
    "RG": graphs.RandomGeometric(Choice(0.25, 0.45, typical=0.32, share=0.6)),
    "ER": graphs.ErdosRenyi(Choice(0.12, 0.35, typical=0.2, share=0.6)),
    "BA": graphs.PreferentialAttachment(WholeChoice(_TWO)),
    "SBM": graphs.Blocks(
        WholeChoice((2, 2, 2, 3, 4)),
        Choice(0.3, 0.7, typical=0.4, share=0.6),
        Choice(0.02, 0.1, typical=0.05, share=0.6),
    ),
    "WS": graphs.SmallWorld(
        WholeChoice((4, 4, 4, 2, 6)), Choice(0.0, 0.4, typical=0.1, share=0.6, logarithmic=False)
    ),
}

#: Everything else; the density of most is uniform in its logarithm from 1.5/n to 0.5.
ENSEMBLES: dict[str, Ensemble] = {
    "sparse ER": graphs.SparseErdosRenyi(),
    "nearest pairs": graphs.Nearest(),
    "Waxman": graphs.Waxman(),
    "blocks": graphs.SparseBlocks(),
    "preferential": graphs.PreferentialAttachment(WholeChoice((1, 2, 3, 4))),
    "small world": graphs.SmallWorld(WholeChoice((2, 4, 4, 6, 8)), Choice(0.0, 0.6)),
    "tree": graphs.RandomTree(),
    "neighbours": graphs.Neighbours(),
    "cliques": graphs.Cliques(),
    "groups": graphs.Groups(),
    "grid": graphs.Grid(),
}

WIDE = Response(
    filters=(0.25, 0.08, 0.17, 0.1, 0.1, 0.08, 0.07, 0.15),
    fewest_signals=5,
    most_signals=2000,
    lognormal=0.25,
    uniform=0.25,
    normalised=0.3,
    flipped=0.15,
    scaled=0.15,
    offset=0.1,
    noise=0.3,
    common=0.25,
    centred=0.3,
    standardised=0.25,
    correlation_distance=0.25,
    signals_given=0.6,
    number_unknown=0.2,
)
HARSH = replace(WIDE, heavy=0.35, memory=0.35, nonlinear=0.4, gaps=0.35)

# Shares of the three parts of the world.
PLAIN_SHARE, WIDE_SHARE, HARSH_SHARE = 0.45, 0.33, 0.22

EVERYTHING: World = (
    *(
        Cell(name, PLAIN_SHARE / len(BENCHMARKS), ensemble, connected=True, fewest_nodes=15)
        for name, ensemble in BENCHMARKS.items()
    ),
    *(
        Cell(f"{name}, {how}", share / len(ENSEMBLES), ensemble, response, blurred=0.2)
        for how, response, share in (("wide", WIDE, WIDE_SHARE), ("harsh", HARSH, HARSH_SHARE))
        for name, ensemble in ENSEMBLES.items()
    ),
)

# What the race (benchmarks/quality.py) draws.
TYPICAL: dict[str, Ensemble] = {
    "RG": graphs.RandomGeometric(always(0.32)),
    "ER": graphs.ErdosRenyi(always(0.2)),
    "BA": graphs.PreferentialAttachment(WholeChoice((2,))),
    "SBM": graphs.Blocks(WholeChoice((2,)), always(0.4), always(0.05)),
    "WS": graphs.SmallWorld(WholeChoice((4,)), always(0.1)),
}


def specialist(name: str) -> World:
    """Return the world of one benchmark alone, for the limit of what can be learned on it."""
    return (Cell(name, 1.0, TYPICAL[name], connected=True),)


def _exam() -> World:
    """Return the benchmarks side by side, as the race draws them: the cells are questions."""
    kinds = {
        "200 signals": Response(fewest_signals=200, most_signals=200, infinite=0, signals_given=1),
        "distances of 200": Response(
            fewest_signals=200, most_signals=200, infinite=0, signals_given=0
        ),
        "distances of 50": Response(
            fewest_signals=50, most_signals=50, infinite=0, signals_given=0
        ),
        "expected": Response(infinite=1, signals_given=0),
    }
    share = 1 / (len(kinds) * len(TYPICAL))
    return tuple(
        Cell(f"{name}, {kind}", share, ensemble, response, connected=True)
        for kind, response in kinds.items()
        for name, ensemble in TYPICAL.items()
    )


#: What the network is examined on while it trains; graphs of 20 nodes.
EXAM: World = _exam()

#: For a quick look on a small machine: it compiles fast.
SMALL: World = (
    Cell("ER", 0.5, graphs.ErdosRenyi(Choice(0.2, 0.5)), fewest_nodes=5),
    Cell("ER, wide", 0.5, graphs.SparseErdosRenyi(), replace(WIDE, fewest_signals=100)),
)

WORLDS: dict[str, World] = {
    "everything": EVERYTHING,
    "small": SMALL,
    **{name: specialist(name) for name in TYPICAL},
}
