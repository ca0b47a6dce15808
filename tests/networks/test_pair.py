"""The pair network: its formula, its symmetries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from amortise.conftest import scrambled
from edgebelief.networks import PairNetwork, PairShape

SHAPE = PairShape(channels=3, facts=2, width=4, depth=2, heads=3)
N_NODES = 5


@pytest.fixture(scope="module")
def network():
    return scrambled(PairNetwork.random(jax.random.key(0), SHAPE))


@pytest.fixture
def pairs(rng):
    x = rng.normal(size=(N_NODES, N_NODES, 3)).astype(np.float32)
    return x + x.swapaxes(0, 1)


@pytest.fixture(scope="module")
def run():
    return jax.jit(lambda network, *inputs: network(*inputs))


FACTS = jnp.array([0.5, -1.0])
ONES = jnp.ones(N_NODES)


def plain(network, pairs, facts):
    """The formulas of the docstrings, pair by pair, in double precision."""
    w = jax.tree.map(lambda x: np.asarray(x, float), network)
    n = len(pairs)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def norm(v, parameters, k):
        centred = v - v.mean()
        scale = parameters.scale if k is None else parameters.scale[k]
        shift = parameters.shift if k is None else parameters.shift[k]
        return centred / np.sqrt((centred**2).mean() + 1e-5) * scale + shift

    h = np.array(
        [[pairs[i, j] @ w.embed + facts @ w.embed_facts for j in range(n)] for i in range(n)]
    )
    for k in range(2):
        layer = w.layers
        x = np.array([[norm(h[i, j], layer.before, k) for j in range(n)] for i in range(n)])
        y = x @ layer.factors[k] + layer.factor_bias[k]
        a, b, gate_a, gate_b, gate = np.split(y, 5, -1)
        a, b = a * sigmoid(gate_a), b * sigmoid(gate_b)
        u = [
            np.concatenate([x[i, i], x[i].mean(0), x.mean((0, 1))]) @ layer.nodes[k]
            for i in range(n)
        ]
        new = np.empty_like(h)
        for i in range(n):
            for j in range(n):
                t = sum(a[i, m] * b[j, m] + b[i, m] * a[j, m] for m in range(n)) / np.sqrt(n)
                mixed = norm(t, layer.triangle, k) @ layer.mix[k]
                new[i, j] = h[i, j] + sigmoid(gate[i, j]) * mixed + u[i] + u[j]
                hidden = norm(new[i, j], layer.between, k) @ layer.expand[k] + layer.expand_bias[k]
                hidden = np.asarray(jax.nn.gelu(hidden), float)
                new[i, j] += hidden @ layer.contract[k] + layer.contract_bias[k]
        h = new
    embedding = np.array([[norm(h[i, j], w.last, None) for j in range(n)] for i in range(n)])
    return embedding @ w.heads + w.head_bias, embedding


def test_the_network_is_its_formula(network, pairs, run):
    output = run(network, pairs, FACTS, ONES)
    logits, embedding = plain(network, pairs.astype(float), FACTS)
    np.testing.assert_allclose(output.logits, logits, atol=2e-4)
    np.testing.assert_allclose(output.embedding, embedding, atol=2e-4)


def test_relabelling_the_nodes_relabels_the_output(network, pairs, run, rng):
    order = rng.permutation(N_NODES)
    output = run(network, pairs, FACTS, ONES)
    other = run(network, pairs[np.ix_(order, order)], FACTS, ONES)
    for one, two in zip(output, other, strict=True):
        np.testing.assert_allclose(np.asarray(one)[np.ix_(order, order)], two, atol=1e-4)
        np.testing.assert_allclose(two, np.swapaxes(two, 0, 1), atol=1e-4)


def test_rows_that_fill_up_the_arrays_change_nothing(network, pairs, run, rng):
    filled = rng.normal(size=(N_NODES + 2, N_NODES + 2, 3)).astype(np.float32) * 100
    filled[:N_NODES, :N_NODES] = pairs
    output = run(network, pairs, FACTS, ONES)
    other = run(network, filled, FACTS, jnp.append(ONES, jnp.zeros(2)))
    for one, two in zip(output, other, strict=True):
        np.testing.assert_allclose(one, np.asarray(two)[:N_NODES, :N_NODES], atol=1e-4)


def test_compiling_every_layer_on_its_own_changes_nothing(network, pairs, run):
    other = jax.jit(lambda x: network(x, FACTS, ONES, unroll=True).logits)(pairs)
    np.testing.assert_allclose(run(network, pairs, FACTS, ONES).logits, other, atol=1e-5)


def test_half_precision_is_close(network, pairs, run):
    other = jax.jit(lambda x: network(x, FACTS, ONES, jnp.bfloat16).embedding)(pairs)
    assert np.abs(run(network, pairs, FACTS, ONES).embedding - other).mean() < 0.05


def test_a_new_network_has_one_logit_for_all(pairs, run):
    output = run(PairNetwork.random(jax.random.key(2), SHAPE), pairs, FACTS, ONES)
    np.testing.assert_array_equal(output.logits, np.full((N_NODES, N_NODES, 3), -1.5))
