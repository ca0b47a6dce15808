"""Draws of the simulated world, and its tables."""

from functools import partial

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from edgebelief.amortise import world
from edgebelief.amortise.graphs import Choice, ErdosRenyi, SparseErdosRenyi, always
from edgebelief.amortise.inputs import FACTS
from edgebelief.amortise.world import EVERYTHING, EXAM, HARSH, WORLDS, Cell, Response, draw

CAPACITY, COUNT = 6, 40
# Graphs without edges and with all of them, in responses with everything: hostile.
TINY = (
    Cell("connected", 0.5, ErdosRenyi(Choice(0.3, 0.6)), connected=True, fewest_nodes=4),
    Cell("empty", 0.15, ErdosRenyi(always(0.0)), HARSH, fewest_nodes=2),
    Cell("complete", 0.15, ErdosRenyi(always(1.0)), HARSH, fewest_nodes=2),
    Cell("blurred", 0.2, SparseErdosRenyi(), HARSH, blurred=0.2, fewest_nodes=2),
)


@pytest.fixture(scope="module")
def compiled():
    args = {"world": TINY, "n_graphs": COUNT, "nodes": (2, CAPACITY), "most_signals": 8}
    return jax.jit(partial(draw, **args))


@pytest.fixture(scope="module")
def draws(compiled):
    return compiled(jax.random.key(0))


def test_the_key_decides(compiled, draws):
    again, other = (compiled(jax.random.key(k)) for k in (0, 1))
    same = [
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (draws, again)), strict=True)
    ]
    assert all(same)
    assert not np.array_equal(draws[0].inputs.pairs, other[0].inputs.pairs)


@pytest.mark.parametrize("seed", range(6))
def test_hostile_draws_are_finite(seed, compiled):
    drawn, report = compiled(jax.random.key(seed))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(drawn))
    assert int(report.not_finite) == 0


def test_every_cell_gets_its_share(draws):
    np.testing.assert_array_equal(np.bincount(draws[0].cell), [20, 6, 6, 8])
    assert world.shares_of(10, [0.45, 0.33, 0.22]) == [5, 3, 2]


def test_labels_are_graphs_on_the_nodes(draws):
    drawn, report = draws
    labels, masks = np.asarray(drawn.labels), np.asarray(drawn.inputs.mask)
    np.testing.assert_array_equal(labels, labels.swapaxes(1, 2))
    assert not (labels * (1 - masks[:, None, :])).any()
    assert not np.diagonal(labels, axis1=1, axis2=2).any()
    n = masks.sum(1).astype(int)
    assert set(n[np.asarray(drawn.cell) == 0]) <= {4, 5, 6}
    for k, cell in enumerate(TINY):
        graphs = [a[:m, :m] for a, m, c in zip(labels, n, drawn.cell, strict=True) if c == k]
        if cell.name == "connected":
            apart = sum(not nx.is_connected(nx.from_numpy_array(a)) for a in graphs)
            assert apart == int(report.not_connected)
            assert apart <= 2
        if cell.name in ("empty", "complete"):
            share = float(cell.name == "complete")
            assert all((a == share * (1 - np.eye(len(a)))).all() for a in graphs)


def test_half_of_the_graphs_have_the_largest_size(compiled):
    n = np.concatenate([
        np.asarray(compiled(jax.random.key(k))[0].inputs.mask).sum(1) for k in range(8)
    ])  # fmt: skip
    # Sizes are 2 to 6, or 4 to 6 in the first cell: so many more by the uniform half.
    expected = 0.5 + 0.5 * (0.5 / 3 + 0.5 / 5)
    assert (n == CAPACITY).mean() == pytest.approx(expected, abs=0.12)


@pytest.fixture(scope="module")
def responding():
    return jax.jit(world._responding)


def test_flipped_signs_leave_squared_correlations_alone(responding):
    weights = np.ones((CAPACITY, CAPACITY), np.float32) - np.eye(CAPACITY, dtype=np.float32)
    weights[0, 1:4] = weights[1:4, 0] = 0
    changed = 0
    for seed in range(8):
        plain, flipped = (
            np.asarray(
                responding(
                    jax.random.key(seed), weights, jnp.ones(CAPACITY),
                    {**_as_arrays(Response(noise=1.0)), "flipped": jnp.float32(share)},
                )[0]
            )
            for share in (0.0, 1.0)
        )  # fmt: skip
        one, two = plain @ plain.T, flipped @ flipped.T
        np.testing.assert_allclose(np.abs(one), np.abs(two), atol=1e-4 * np.abs(one).max())
        changed += not np.allclose(one, two, atol=1e-3)
    assert changed >= 5


def _as_arrays(response):
    return {name: jnp.asarray(value, jnp.float32) for name, value in vars(response).items()}


@pytest.mark.parametrize(("low", "high", "infinite"), [(5, 500, 0.0), (20, 1000, 0.4)])
def test_numbers_of_signals_are_uniform_in_their_logarithm(low, high, infinite):
    response = _as_arrays(Response(fewest_signals=low, most_signals=high, infinite=infinite))
    keys = jax.random.split(jax.random.key(0), 1000)
    numbers = np.asarray(jax.vmap(lambda k: world._number_of_signals(k, response))(keys))
    finite = numbers[np.isfinite(numbers)]
    assert np.isinf(numbers).mean() == pytest.approx(infinite, abs=0.06)
    assert low <= finite.min()
    assert finite.max() <= high
    middle = 0.5 * (np.log(low) + np.log(high))
    sd = (np.log(high) - np.log(low)) / np.sqrt(12 * len(finite))
    assert np.log(finite).mean() == pytest.approx(middle, abs=4 * sd + 0.02)


def test_what_is_told_of_the_input_is_what_the_response_says(draws):
    told = np.asarray(draws[0].inputs.facts)
    given = told[:, FACTS.index("signals given")]
    unknown = told[:, FACTS.index("unknown number of signals")]
    assert set(given) <= {0.0, 1.0}
    assert not (given * unknown).any()
    correlation = told[:, FACTS.index("correlation distance")]
    assert not correlation[np.asarray(draws[0].cell) == 0].any()


@pytest.mark.parametrize("name", WORLDS)
def test_shares_of_worlds_sum_to_one(name):
    assert sum(cell.share for cell in WORLDS[name]) == pytest.approx(1)
    names = [cell.name for cell in WORLDS[name]]
    assert len(set(names)) == len(names)


def test_the_world_has_benchmarks_and_everything_else():
    kinds = {"plain": 0.0, "wide": 0.0, "harsh": 0.0}
    for cell in EVERYTHING:
        kinds[cell.name.rpartition(", ")[2] if ", " in cell.name else "plain"] += cell.share
        assert cell.response.is_distorted == cell.name.endswith("harsh")
    assert kinds == pytest.approx({"plain": 0.45, "wide": 0.33, "harsh": 0.22})
    assert len(EXAM) == 20


def test_a_world_whose_shares_are_wrong_is_refused():
    with pytest.raises(ValueError, match=r"sum to 0\.5"):
        draw(jax.random.key(0), TINY[:1], 4, (4, 6))
