"""Training: the pattern of buckets, rates, losses."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.special import expit

from edgebelief.amortise.train import BUCKETS, Plan, graph_losses, head_weights, losses
from edgebelief.networks import PairNetwork


def test_buckets_take_their_turns():
    plan = Plan()
    counts = np.bincount(plan.round)
    np.testing.assert_array_equal(counts, [bucket.turns for bucket in BUCKETS])
    seen = [0] * len(BUCKETS)
    for step in range(40):
        bucket, before = plan.bucket_of(step)
        assert before == seen[bucket]
        seen[bucket] += 1


def test_the_rate_rises_stays_and_falls_to_zero():
    plan = Plan(steps=1000, rate=2.0, warm_up=100)
    assert plan.rate_at(0) == pytest.approx(0.02)
    assert plan.rate_at(100) == plan.rate_at(499) == 2.0
    assert plan.rate_at(750) == pytest.approx(1.0)
    assert plan.rate_at(1000) == 0.0


def test_heads_weigh_cells_differently_and_one_on_average():
    weights = head_weights(25, 4)
    np.testing.assert_allclose(weights.mean(1), 1)
    assert 0.3 < weights.std() < 0.9
    np.testing.assert_array_equal(weights, head_weights(25, 4))


@pytest.fixture(scope="module")
def batch(trainer):
    return jax.tree.map(lambda x: x[:4], trainer.fresh(0))


def each_graph(network, batch):
    """By brute force: graph by graph, pair by pair."""
    for k in range(len(batch.labels)):
        one = jax.tree.map(lambda x, k=k: x[k], batch)
        logits = np.asarray(network(*one.inputs).logits, float)
        n = int(one.inputs.mask.sum())
        i, j = np.triu_indices(n, 1)
        yield n, np.asarray(one.labels)[i, j], expit(logits[i, j]), int(one.cell)


def test_losses_are_those_of_brute_force(network, batch):
    weights = np.array([[0.5, 1.5]], np.float32)
    heads, means, edges, pairs, sizes = [], [], [], [], []
    for n, a, p, cell in each_graph(network, batch):
        size = n * np.sqrt(n / 20)
        nll = -np.where(a[:, None] == 1, np.log(p), np.log1p(-p)).sum(0)
        heads.append((weights[cell] * nll).mean() / size)
        mean = p.mean(1)
        means.append(-np.where(a == 1, np.log(mean), np.log1p(-mean)).sum() / size)
        edges.append(a.sum())
        pairs.append(len(a))
        sizes.append(size)
    computed = losses(network, batch, weights)
    assert float(computed.heads) == pytest.approx(np.mean(heads), rel=1e-3)
    assert float(computed.mean) == pytest.approx(np.mean(means), rel=1e-3)
    # The best single probability, when graphs count by one over their sizes.
    edges, pairs, sizes = map(np.array, (edges, pairs, sizes))
    shares = np.linspace(0.01, 0.99, 197)[:, None]
    of_each = -(edges * np.log(shares) + (pairs - edges) * np.log(1 - shares)) / sizes
    assert float(computed.base) == pytest.approx(of_each.mean(1).min(), abs=1e-3)


def test_a_graphs_loss_does_not_depend_on_the_others(network, batch):
    all_of_them = graph_losses(network, batch)
    for k in range(2):
        alone = graph_losses(network, jax.tree.map(lambda x, k=k: x[k : k + 1], batch))
        np.testing.assert_allclose(alone[0], all_of_them[k], rtol=1e-4)


def test_steps_follow_the_gradient(trainer):
    """The optimiser's first step moves every weight that has a gradient by the learning rate."""
    state = trainer.start()
    heads = np.asarray(state.network.heads)
    state, loss = trainer.step(state, 0)
    assert np.isfinite(loss).all()
    assert int(state.step) == 1
    moved = np.abs(np.asarray(state.network.heads) - heads)
    np.testing.assert_allclose(moved, trainer.plan.rate_at(0), rtol=0.01)


def test_the_network_that_is_kept_is_a_moving_average(trainer):
    """The first steps have a short memory: (1 + k)/(10 + k)."""
    state = trainer.start()
    expected = np.asarray(state.average.heads, float)
    for number in range(3):
        state, _ = trainer.step(state, number)
        memory = min(trainer.plan.memory, (1 + number) / (10 + number))
        expected = memory * expected + (1 - memory) * np.asarray(state.network.heads, float)
    np.testing.assert_allclose(state.average.heads, expected, rtol=1e-4, atol=1e-8)


def test_plans_with_the_same_seed_start_alike(trainer):
    first, again = trainer.start().network, trainer.start().network
    assert all(
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (first, again)), strict=True)
    )
    other = PairNetwork.random(jax.random.key(9), trainer.plan.shape)
    assert not np.array_equal(first.embed, other.embed)
    assert replace(trainer.plan, seed=3) != trainer.plan
