"""Random graphs of any size below a fixed one, drawn on the device.

An ensemble draws the adjacency of a graph on the first n of `capacity` nodes, as a 0/1 matrix; the
rows beyond are zero. n may be a traced number, so that graphs of many sizes are drawn side by side.
Networkx's generators (`data.ensembles`) draw from the same distributions, one graph at a time.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Real

Key = Array
Scalar = Real[Array, ""]
Count = Scalar | int
Adjacency = Float[Array, "nodes nodes"]
Links = Adjacency | Bool[Array, "nodes nodes"]


@dataclass(frozen=True)
class Choice:
    """A number that is `typical` with probability `share`, else uniform between `low` and `high`.

    With `logarithmic`, its logarithm is uniform.
    """

    low: float
    high: float
    typical: float = 0.0
    share: float = 0.0
    logarithmic: bool = False

    def draw(self, key: Key) -> Scalar:
        """Draw the number."""
        position, typically = jax.random.uniform(key, (2,))
        if self.logarithmic:
            number = self.low * (self.high / self.low) ** position
        else:
            number = self.low + (self.high - self.low) * position
        return jnp.where(typically < self.share, self.typical, number)


def always(number: float) -> Choice:
    """Return the choice of one number only."""
    return Choice(number, number)


@dataclass(frozen=True)
class WholeChoice:
    """One of several whole numbers, with equal probabilities; repeat one to favour it."""

    numbers: tuple[int, ...]

    def draw(self, key: Key) -> Scalar:
        """Draw the number."""
        return jax.random.choice(key, jnp.asarray(self.numbers))


@dataclass(frozen=True)
class Density:
    """A share of all pairs between `edges_per_node` / n and `highest`, uniform in its logarithm."""

    edges_per_node: float = 1.5
    highest: float = 0.5

    def draw(self, key: Key, n: Count) -> Scalar:
        """Draw the density of a graph on n nodes."""
        low = jnp.minimum(self.edges_per_node / n, self.highest)
        return low * (self.highest / low) ** jax.random.uniform(key)


def mask_of(n: Count, capacity: int) -> Float[Array, " nodes"]:
    """Return 1 for the first n of `capacity` nodes, and 0 for the others."""
    return (jnp.arange(capacity) < n).astype(jnp.float32)


def pairs_of(n: Count, capacity: int) -> Adjacency:
    """Return 1 for pairs of different nodes among the first n."""
    mask = mask_of(n, capacity)
    return mask[:, None] * mask * (1 - jnp.eye(capacity))


def symmetric_uniform(key: Key, capacity: int) -> Adjacency:
    """Draw a uniform number for every pair."""
    upper = jnp.triu(jax.random.uniform(key, (capacity, capacity)), 1)
    return upper + upper.T


@dataclass(frozen=True)
class Ensemble(abc.ABC):
    """A distribution over graphs of any size. Abstract."""

    @abc.abstractmethod
    def links(self, key: Key, n: Count, capacity: int) -> Links:
        """Return links, in either direction or both, of a graph on the first n nodes."""

    def draw(self, key: Key, n: Count, capacity: int) -> Adjacency:
        """Draw an adjacency matrix.

        Parameters
        ----------
        key : JAX key
        n : int or 0-d array
            The number of nodes.
        capacity : int
            The size of the matrix.

        Returns
        -------
        array, shape (capacity, capacity)
        """
        links = self.links(key, n, capacity)
        return jnp.maximum(links, links.T) * pairs_of(n, capacity)


@dataclass(frozen=True)
class RandomGeometric(Ensemble):
    """Points uniform in the unit square, joined when within `radius`."""

    radius: Choice

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        points, radius = jax.random.split(key)
        return (_lengths(points, capacity, 2) <= self.radius.draw(radius)).astype(jnp.float32)


@dataclass(frozen=True)
class ErdosRenyi(Ensemble):
    """Every pair is an edge with probability `p`, independently."""

    p: Choice

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        pairs, p = jax.random.split(key)
        return symmetric_uniform(pairs, capacity) < self.p.draw(p)


@dataclass(frozen=True)
class SparseErdosRenyi(Ensemble):
    """Every pair is an edge with the same probability, which depends on the number of nodes."""

    density: Density = Density()

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        pairs, density = jax.random.split(key)
        return symmetric_uniform(pairs, capacity) < self.density.draw(density, n)


@dataclass(frozen=True)
class Nearest(Ensemble):
    """The closest pairs of points that are uniform in 1 to 3 dimensions."""

    density: Density = Density()

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        points, density, dimensions = jax.random.split(key, 3)
        lengths = _lengths(points, capacity, jax.random.randint(dimensions, (), 1, 4))
        lengths = jnp.where(pairs_of(n, capacity) > 0, lengths, jnp.inf)
        wanted = self.density.draw(density, n) * n * (n - 1)  # every pair is there twice
        position = jnp.clip(wanted.astype(int), 2, capacity**2) - 1
        return lengths <= jnp.sort(lengths, axis=None)[position]


@dataclass(frozen=True)
class Waxman(Ensemble):
    """Points uniform in the unit square; probabilities of edges fall exponentially with length."""

    density: Density = Density()
    reach: Choice = Choice(0.05, 0.5, logarithmic=True)

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        points, density, reach, pairs = jax.random.split(key, 4)
        shape = jnp.exp(-_lengths(points, capacity, 2) / self.reach.draw(reach))
        return _independent(pairs, shape, self.density.draw(density, n), n)


@dataclass(frozen=True)
class Blocks(Ensemble):
    """`number` groups of near-equal size; edges with `inside` in a group, `across` between them."""

    number: WholeChoice
    inside: Choice
    across: Choice

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        number, inside, across, pairs = jax.random.split(key, 4)
        same = _same_block(self.number.draw(number), n, capacity)
        p = jnp.where(same, self.inside.draw(inside), self.across.draw(across))
        return symmetric_uniform(pairs, capacity) < p


@dataclass(frozen=True)
class SparseBlocks(Ensemble):
    """Groups, with `contrast` times as many edges inside as across, at a given density."""

    density: Density = Density()
    number: WholeChoice = WholeChoice((2, 3, 4, 5, 6))
    contrast: Choice = Choice(2.0, 100.0, logarithmic=True)

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        number, contrast, density, pairs = jax.random.split(key, 4)
        same = _same_block(self.number.draw(number), n, capacity)
        shape = jnp.where(same, self.contrast.draw(contrast), 1.0)
        return _independent(pairs, shape, self.density.draw(density, n), n)


@dataclass(frozen=True)
class PreferentialAttachment(Ensemble):
    """Nodes arrive one by one and join `m` others, the well-connected ones more often.

    Barabási and Albert's, as Networkx draws it: from a star on m + 1 nodes; m is at most 4.
    """

    m: WholeChoice

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        most = 4
        which, arrivals = jax.random.split(key)
        m = self.m.draw(which)
        # The largest log(weight) + Gumbel: draws without replacement, in proportion to weights.
        gumbel = jax.random.gumbel(arrivals, (capacity, capacity))
        nodes = jnp.arange(capacity)
        chosen = (jnp.arange(most) < m).astype(jnp.float32)

        def arrive(degrees: Array, i: Array) -> tuple[Array, Array]:
            scores = jnp.where(nodes < i, jnp.log(degrees) + gumbel[i], -jnp.inf)
            best = lax.top_k(scores, min(most, capacity))[1]
            row = jnp.zeros(capacity).at[best].add(chosen[: len(best)])
            row = jnp.where(i <= m, nodes == 0, row) * (nodes < i)
            row = jnp.where(i == 0, 0.0, row)
            return degrees + row + row.sum() * (nodes == i), row

        return lax.scan(arrive, jnp.zeros(capacity), nodes)[1]


@dataclass(frozen=True)
class SmallWorld(Ensemble):
    """A ring where each node knows its `k` (even) nearest; edges rewired with probability `p`.

    Watts and Strogatz's, but all edges are rewired at once, to nodes that are not near on the ring:
    two of them may coincide, which is rare.
    """

    k: WholeChoice
    p: Choice

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        number, share, which, where = jax.random.split(key, 4)
        nodes = jnp.arange(capacity)
        half = jnp.minimum(self.k.draw(number) // 2, (n - 1) // 2)
        ahead = (nodes - nodes[:, None]) % n  # how far node j is ahead of node i on the ring
        there = pairs_of(n, capacity) > 0
        ring = (ahead >= 1) & (ahead <= half) & there
        rewired = ring & (jax.random.uniform(which, ring.shape) < self.p.draw(share))
        free = (ahead > half) & (ahead < n - half) & there
        # As many of the free nodes as edges were taken away at random.
        score = jnp.where(free, jax.random.uniform(where, ring.shape), 2.0)
        count = jnp.minimum(rewired.sum(1), free.sum(1))
        last = jnp.take_along_axis(jnp.sort(score, 1), jnp.maximum(count - 1, 0)[:, None], 1)
        added = free & (score <= last) & (count > 0)[:, None]
        return ((ring & ~rewired) | added).astype(jnp.float32)


@dataclass(frozen=True)
class RandomTree(Ensemble):
    """Each node joins one before it: any, or with a large `order` one shortly before it."""

    order: Choice = Choice(1.0, 8.0, typical=1.0, share=0.3, logarithmic=True)

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        order, which = jax.random.split(key)
        nodes = jnp.arange(capacity)
        back = jax.random.uniform(which, (capacity,)) ** self.order.draw(order)
        parents = nodes - 1 - jnp.minimum((back * nodes).astype(int), nodes - 1)
        return (nodes == parents[:, None]).astype(jnp.float32)


@dataclass(frozen=True)
class Neighbours(Ensemble):
    """Each of some points in 1 to 3 dimensions is joined with its `k` nearest."""

    k: WholeChoice = WholeChoice((1, 2, 3, 4, 5, 6))

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        points, number, dimensions = jax.random.split(key, 3)
        lengths = _lengths(points, capacity, jax.random.randint(dimensions, (), 1, 4))
        lengths = jnp.where(pairs_of(n, capacity) > 0, lengths, jnp.inf)
        k = jnp.minimum(self.k.draw(number), n - 1)
        return lengths <= jnp.take(jnp.sort(lengths, 1), k.astype(int) - 1, axis=1)[:, None]


@dataclass(frozen=True)
class Cliques(Ensemble):
    """Nodes in groups of `size` on average, all joined inside a group; some more edges across."""

    size: Choice = Choice(2.5, 8.0)
    across: Choice = Choice(0.0, 0.5, typical=0.0, share=0.5)

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        size, groups, across, pairs = jax.random.split(key, 4)
        number = jnp.maximum(n / self.size.draw(size), 1.5)
        group = jnp.floor(jax.random.uniform(groups, (capacity,)) * number)
        more = symmetric_uniform(pairs, capacity) < self.across.draw(across) / n
        return ((group == group[:, None]) | more).astype(jnp.float32)


@dataclass(frozen=True)
class Groups(Ensemble):
    """A few groups of unequal size, all joined inside a group: classes, sectors, families."""

    number: WholeChoice = WholeChoice((2, 2, 3, 4, 6, 8, 12))
    evenness: Choice = Choice(1.0, 100.0, logarithmic=True)

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        number, evenness, sizes, groups = jax.random.split(key, 4)
        most = max(self.number.numbers)
        there = jnp.arange(most) < self.number.draw(number)
        # Shares of the groups are Dirichlet: gamma numbers over their sum.
        shares = jax.random.gamma(sizes, self.evenness.draw(evenness), (most,)) * there
        logits = jnp.log(jnp.maximum(shares, 1e-9)) + jnp.where(there, 0.0, -jnp.inf)
        group = jax.random.categorical(groups, logits, shape=(capacity,))
        return (group == group[:, None]).astype(jnp.float32)


@dataclass(frozen=True)
class Grid(Ensemble):
    """A grid of a random width, a path for width 1, with a few edges missing.

    Half of the grids have diagonals too.
    """

    missing: Choice = Choice(0.0, 0.15, typical=0.0, share=0.4)

    def links(self, key: Key, n: Count, capacity: int) -> Links:
        width, diagonal, missing, pairs = jax.random.split(key, 4)
        nodes = jnp.arange(capacity)
        columns = 1 + jnp.floor(jax.random.uniform(width) * jnp.sqrt(n)).astype(int)
        down = jnp.abs(nodes // columns - (nodes // columns)[:, None])
        right = jnp.abs(nodes % columns - (nodes % columns)[:, None])
        straight = down + right == 1
        with_diagonals = jnp.maximum(down, right) == 1
        links = jnp.where(jax.random.bernoulli(diagonal), with_diagonals, straight)
        return links & (symmetric_uniform(pairs, capacity) >= self.missing.draw(missing))


def blurred(key: Key, adjacency: Adjacency, n: Count, share: Scalar) -> Adjacency:
    """Remove a share of the edges, and add as many on average anywhere."""
    pairs = pairs_of(n, len(adjacency))
    density = adjacency.sum() / jnp.maximum(pairs.sum(), 1.0)
    u = symmetric_uniform(key, len(adjacency))
    added = share * density / jnp.maximum(1 - density, 1e-3)
    return jnp.where(adjacency > 0, u >= share, u < added) * pairs


def reach(adjacency: Adjacency, mask: Float[Array, " nodes"]) -> Adjacency:
    """Return 1 for pairs that a path joins, nodes with themselves included."""
    joined = jnp.maximum(adjacency, jnp.diag(mask))
    for _ in range(max(len(mask) - 1, 1).bit_length()):  # the length of paths doubles
        joined = (joined @ joined > 0).astype(jnp.float32)
    return joined


def _lengths(key: Key, capacity: int, dimensions: int | Array) -> Adjacency:
    """Return the lengths between points uniform in a cube of at most 3 dimensions."""
    points = jax.random.uniform(key, (capacity, 3)) * (jnp.arange(3) < dimensions)
    return jnp.sqrt(((points[:, None] - points) ** 2).sum(-1))


def _same_block(number: Array, n: Count, capacity: int) -> Links:
    block = jnp.floor(jnp.arange(capacity) * number / n)
    return block == block[:, None]


def _independent(key: Key, shape: Adjacency, density: Scalar, n: Count) -> Links:
    """Draw edges with probabilities in proportion to `shape`, so that their mean is `density`."""
    pairs = pairs_of(n, len(shape))
    mean = (shape * pairs).sum() / jnp.maximum(pairs.sum(), 1.0)
    return symmetric_uniform(key, len(shape)) < shape * density / jnp.maximum(mean, 1e-12)
