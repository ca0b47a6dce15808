"""Ensembles against closed forms and NetworkX."""

from functools import cache

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy.stats import kstest

from edgebelief.amortise import graphs
from edgebelief.amortise.graphs import Choice, Density, WholeChoice, always

CAPACITY, COUNT = 12, 400
N_NODES = np.resize(np.arange(5, CAPACITY + 1), COUNT)
TENTH = Density(1e3, 0.1)  # always 0.1
TWO, FOUR = WholeChoice((2,)), WholeChoice((4,))

ENSEMBLES = {
    "RG": graphs.RandomGeometric(always(0.4)),
    "ER": graphs.ErdosRenyi(always(0.3)),
    "sparse ER": graphs.SparseErdosRenyi(TENTH),
    "nearest": graphs.Nearest(TENTH),
    "Waxman": graphs.Waxman(TENTH, always(0.5)),
    "blocks": graphs.Blocks(TWO, always(0.8), always(0.1)),
    "sparse blocks": graphs.SparseBlocks(TENTH, TWO, always(3.0)),
    "BA": graphs.PreferentialAttachment(TWO),
    "ring": graphs.SmallWorld(FOUR, always(0.0)),
    "WS": graphs.SmallWorld(FOUR, always(0.5)),
    "tree": graphs.RandomTree(),
    "neighbours": graphs.Neighbours(TWO),
    "cliques": graphs.Cliques(always(3.0), always(0.0)),
    "grid": graphs.Grid(always(0.0)),
    "groups": graphs.Groups(TWO, always(100.0)),
}


@cache
def drawn(name, seed=0):
    """Adjacency matrices of graphs of 5 to 12 nodes, side by side."""

    def draw(key, n):
        return ENSEMBLES[name].draw(key, n, CAPACITY)

    keys = jax.random.split(jax.random.key(seed), COUNT)
    return np.asarray(jax.jit(jax.vmap(draw))(keys, N_NODES))


def cut(name):
    """The same without the rows that fill up the arrays."""
    return [a[:n, :n] for a, n in zip(drawn(name), N_NODES, strict=True)]


def reach(a, mask):
    return graphs.reach(jnp.asarray(a, jnp.float32), jnp.asarray(mask, jnp.float32))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_adjacencies_are_symmetric_without_loops_and_zero_beyond_the_nodes(name):
    for a, n in zip(drawn(name), N_NODES, strict=True):
        assert set(np.unique(a)) <= {0, 1}
        np.testing.assert_array_equal(a, a.T)
        assert not np.diagonal(a).any()
        assert not a[n:].any()


@pytest.mark.parametrize("name", ["ER", "BA", "WS"])
def test_the_key_decides(name):
    draw = jax.jit(lambda key: ENSEMBLES[name].draw(key, 9, CAPACITY))
    first, again, other = (np.asarray(draw(jax.random.key(k))) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# Points in a square are within r of each other with this probability.
def within(r):
    return np.pi * r**2 - 8 * r**3 / 3 + r**4 / 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RG", within(0.4)), ("ER", 0.3), ("sparse ER", 0.1), ("nearest", 0.1), ("Waxman", 0.1),
        ("sparse blocks", 0.1),
    ],
)  # fmt: skip
def test_densities_are_as_stated(name, expected):
    shares = [a[np.triu_indices(len(a), 1)].mean() for a in cut(name)]
    error = np.std(shares) / np.sqrt(COUNT)
    # A whole number of pairs is nearest, which rounds up by half a pair on average.
    assert abs(np.mean(shares) - expected) < 4 * error + (0.03 if name == "nearest" else 0)


def test_nearest_pairs_are_as_many_as_the_density_says():
    for a in cut("nearest"):
        n = len(a)
        assert abs(a.sum() - 0.1 * n * (n - 1)) <= 2


def test_densities_are_uniform_in_their_logarithm():
    keys = jax.random.split(jax.random.key(0), 500)
    values = np.log(jax.vmap(lambda k: Density(1.5, 0.5).draw(k, 30))(keys))
    low, high = np.log(1.5 / 30), np.log(0.5)
    assert kstest(values, "uniform", (low, high - low)).pvalue > 1e-3


def test_blocks_have_their_densities_inside_and_across():
    inside, across = [], []
    for a in cut("blocks"):
        block = np.arange(len(a)) * 2 // len(a)
        same = (block == block[:, None])[np.triu_indices(len(a), 1)]
        pairs = a[np.triu_indices(len(a), 1)]
        inside.append(pairs[same])
        across.append(pairs[~same])
    for pairs, p in ((np.concatenate(inside), 0.8), (np.concatenate(across), 0.1)):
        assert abs(pairs.mean() - p) < 4 * np.sqrt(p * (1 - p) / len(pairs))


def test_preferential_attachment_has_the_edges_of_networkx():
    for a in cut("BA"):
        graph = nx.from_numpy_array(a)
        assert graph.number_of_edges() == 2 * (len(a) - 2)
        assert nx.is_connected(graph)


def test_early_nodes_of_preferential_attachment_have_more_neighbours():
    """As in NetworkX: the mean degree of each node, by its time of arrival."""
    ours = np.mean([a.sum(0) for a in cut("BA") if len(a) == CAPACITY], 0)
    theirs = [
        [d for _, d in nx.barabasi_albert_graph(CAPACITY, 2, seed=k).degree] for k in range(400)
    ]
    np.testing.assert_allclose(ours, np.mean(theirs, 0), atol=0.9)


def test_a_ring_without_rewiring_is_that_of_networkx():
    for a in cut("ring"):
        expected = nx.to_numpy_array(nx.watts_strogatz_graph(len(a), 4, 0.0))
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("n", [10, CAPACITY])
def test_rewiring_keeps_the_number_of_edges_unless_two_coincide(n):
    both = [(a, ring) for a, ring in zip(cut("WS"), cut("ring"), strict=True) if len(a) == n]
    for a, ring in both:
        assert 0.7 * ring.sum() <= a.sum() <= ring.sum()
    kept = np.mean([(a * ring).sum() / ring.sum() for a, ring in both])
    assert kept == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", ["tree", "grid"])
def test_trees_and_grids_are_connected(name):
    for a in cut(name):
        graph = nx.from_numpy_array(a)
        assert nx.is_connected(graph)
        if name == "tree":
            assert graph.number_of_edges() == len(a) - 1


def test_grids_are_those_of_networkx():
    """Twelve nodes in one, two or three columns."""
    expected = [nx.grid_2d_graph(CAPACITY // width, width) for width in (1, 2, 3)]
    found = [nx.from_numpy_array(a) for a in cut("grid") if len(a) == CAPACITY]
    for graph in expected:
        assert any(nx.is_isomorphic(graph, other) for other in found)


def test_everybody_has_at_least_its_nearest_neighbours():
    assert min(a.sum(0).min() for a in cut("neighbours")) == 2


def test_cliques_are_transitive():
    for a in cut("cliques"):
        np.testing.assert_array_equal(np.asarray(reach(a, np.ones(len(a)))), a + np.eye(len(a)))


def test_reach_is_that_of_the_components():
    a = drawn("sparse ER")[7]
    mask = (np.arange(CAPACITY) < N_NODES[7]).astype(np.float32)
    expected = np.zeros_like(a)
    for component in nx.connected_components(nx.from_numpy_array(a[: N_NODES[7], : N_NODES[7]])):
        nodes = sorted(component)
        expected[np.ix_(nodes, nodes)] = 1
    np.testing.assert_array_equal(np.asarray(reach(a, mask)), expected)


def test_blurring_keeps_the_density_and_the_stated_share_of_edges():
    def blur(key, a, n):
        return graphs.blurred(key, a, n, jnp.float32(0.4))

    keys = jax.random.split(jax.random.key(5), COUNT)
    moved = np.asarray(jax.jit(jax.vmap(blur))(keys, drawn("ER"), N_NODES))
    before = drawn("ER")
    assert moved.sum() == pytest.approx(before.sum(), rel=0.04)
    assert (moved * before).sum() / before.sum() == pytest.approx(0.6, abs=0.02)


def test_choices_have_their_typical_share_and_range():
    choice = Choice(0.2, 0.8, typical=0.5, share=0.3)
    keys = jax.random.split(jax.random.key(0), 1000)
    values = np.asarray(jax.vmap(choice.draw)(keys))
    assert (values == 0.5).mean() == pytest.approx(0.3, abs=0.06)
    others = values[values != 0.5]
    assert kstest(others, "uniform", (0.2, 0.6)).pvalue > 1e-3
    logs = np.log(jax.vmap(Choice(1.0, 100.0, logarithmic=True).draw)(keys))
    assert kstest(logs, "uniform", (0, np.log(100))).pvalue > 1e-3
