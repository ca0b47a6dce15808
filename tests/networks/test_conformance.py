"""What must be true of every network. A new one joins NETWORKS and is tested."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.edges import Complete, Restricted
from edgebelief.networks import (
    DPG,
    MIMO,
    PDS,
    DPGParams,
    HeadParams,
    MIMOParams,
    Network,
    PDSParams,
    StochasticHead,
)
from problems import distances_of_kind

N_NODES = 7


class Case(NamedTuple):
    network: Network
    params: tuple


NETWORKS = {
    "DPG": Case(DPG(depth=30), DPGParams(theta=0.4)),
    "DPG, one layer": Case(DPG(depth=1), DPGParams(theta=2.0)),
    "DPG, converged": Case(DPG(depth=None), DPGParams(theta=0.4)),
    "PDS": Case(PDS(depth=30), PDSParams(alpha=3.0, beta=0.5)),
    "PDS, converged": Case(PDS(depth=None), PDSParams(alpha=3.0, beta=0.5)),
    "MIMO": Case(MIMO(channels=2, depth=10), MIMOParams(np.array([0.4, 0.2, 0.1, 0.5]))),
    "head": Case(
        StochasticHead(MIMO(channels=2, depth=10), theta=(0.4, 0.2, 0.1, 0.5), depth=5),
        HeadParams(np.array([0.3, 0.6])),
    ),
    "one head of two": Case(
        StochasticHead(MIMO(channels=2, depth=5), theta=(0.4, 0.2, 0.1, 0.5), heads=1, depth=5),
        HeadParams(np.array([0.3])),
    ),
}

# Variants that take long to compile.
SLOW = ("DPG, one layer", "PDS, converged", "head", "one head of two")


@pytest.fixture(
    params=[
        pytest.param(case, marks=pytest.mark.slow) if name in SLOW else case
        for name, case in NETWORKS.items()
    ],
    ids=NETWORKS,
)
def case(request):
    return request.param


@pytest.fixture
def e(rng):
    return distances_of_kind("geometric", N_NODES, rng)


def close(got, expected, tolerance=1e-9):
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_relabelling_nodes_commutes(case, e, x64, rng):
    network, params = case
    order = rng.permutation(N_NODES)
    _, positions = Complete(N_NODES).relabel(order)
    a, lam, z = network(params, e)
    expected = a[..., positions], lam[..., order], z[..., positions]
    close(network(params, e[positions]), expected)


def test_batch_of_one_equals_single_and_batches_equal_loops(case, e, x64):
    network, params = case
    single = network(params, e)
    close(network(params, e[None]), [x[None] for x in single], 1e-12)
    stack = np.stack([[e, 2 * e], [e / 2, e + 1]])
    together = network(params, stack)
    channels = () if network.n_channels is None else (network.n_channels,)
    assert together.a.shape == (2, 2, *channels, e.size)
    assert together.lam.shape == (2, 2, *channels, N_NODES)
    alone = network(params, stack[1, 0])
    close([x[1, 0] for x in together], alone, 1e-12)


def test_compiled_equals_uncompiled(case, e, x64):
    network, params = case
    with jax.disable_jit():
        plain = network(params, e)
    close(jax.jit(network)(params, e), plain, 1e-10)


def test_support_listed_in_full_equals_complete(case, e, x64):
    network, params = case
    listed = Restricted.from_pairs(np.stack(np.triu_indices(N_NODES, k=1), axis=1))
    close(network(params, e, listed), network(params, e))


def test_order_in_which_pairs_are_listed_is_the_order_of_the_vector(case, e, x64, rng):
    network, params = case
    order = rng.permutation(e.size)
    pairs = np.stack(np.triu_indices(N_NODES, k=1), axis=1)[order]
    a, lam, z = network(params, e)
    found = network(params, e[order], Restricted.from_pairs(pairs))
    close(found, (a[..., order], lam, z[..., order]))


def test_forward_reverse_and_finite_difference_gradients_agree(case, e, x64, rng):
    network, params = case
    weight = rng.normal(size=e.size)

    def f(params, e):
        a, lam, _ = network(params, e)
        return jnp.sum(a @ weight) + jnp.sum(lam**2)

    h = 1e-6
    # Away from kinks: no edge enters or leaves within the difference.
    patterns = [np.sign(network(params, e * (1 + s)).a) for s in (-2 * h, 0.0, 2 * h)]
    assert all((p == patterns[0]).all() for p in patterns) or not network.nonnegative
    params = type(params)(*(jnp.asarray(p) for p in params))
    reverse = jax.grad(f)(params, e)
    for i, name in enumerate(params._fields):
        for place in np.ndindex(np.shape(params[i])):
            size = params[i][place]
            up, down = (
                params._replace(**{name: params[i].at[place].add(s * size)}) for s in (h, -h)
            )
            difference = (f(up, e) - f(down, e)) / (2 * h * size)
            got = float(reverse[i][place])
            assert got == pytest.approx(float(difference), rel=1e-6, abs=1e-7)
    if network.forward_mode:
        forward = jax.jacfwd(f)(params, e)
        _, tangents = network.with_tangents(params, e)
        state = network(params, e)
        for i in range(len(params)):
            np.testing.assert_allclose(forward[i], reverse[i], rtol=1e-9)
            moved = tangents[i].a @ weight, 2 * jnp.sum(state.lam * tangents[i].lam, -1)
            axes = tuple(range(np.ndim(params[i]), moved[0].ndim))
            np.testing.assert_allclose(sum(x.sum(axes) for x in moved), reverse[i], rtol=1e-9)
    direction = rng.normal(size=e.size)
    difference = (f(params, e + h * direction) - f(params, e - h * direction)) / (2 * h)
    by_e = jax.grad(f, argnums=1)(params, jnp.asarray(e))
    assert float(by_e @ direction) == pytest.approx(float(difference), rel=1e-6, abs=1e-6)


def test_stable_networks_have_finite_float32_gradients_at_any_parameters(case, e):
    network, params = case
    if not network.stable and network.depth is not None:
        pytest.skip("its layers can diverge, as it declares")
    gradient = jax.jit(jax.grad(lambda p, e: network(p, e).a.sum()))
    for scale in (1e-6, 1e-3, 1.0, 1e2, 1e4):
        scaled = type(params)(*(jnp.float32(p * scale) for p in params))
        assert all(np.isfinite(g).all() for g in gradient(scaled, e.astype(np.float32)))


def test_float32_agrees_with_float64(case, rng):
    network, params = case
    stack = np.stack([distances_of_kind("geometric", 20, rng) for _ in range(4)]).astype(np.float32)
    with jax.enable_x64(True):
        double = jax.device_get(network(params, stack.astype(np.float64)))
    single = network(params, stack)
    assert single.a.dtype == jnp.float32
    assert double.a.dtype == np.float64
    assert np.abs(single.a - double.a).max() <= 1e-4 * double.a.max()


def test_declared_facts_hold(case, e, x64):
    network, params = case
    a = np.asarray(network(params, e).a)
    if network.nonnegative:
        assert (a >= 0).all()
    if network.scale_law:
        scaled = params._replace(theta=params.theta * 3.7)
        close(network(params, 3.7 * e), network(scaled, e), 1e-10)


def test_wrong_input_is_refused(case, e):
    network, params = case
    with pytest.raises(ValueError, match="has 20 entries"):
        network(params, np.ones(20))
    with pytest.raises(ValueError, match="the support has 10"):
        network(params, e, Complete(5))
    with pytest.raises(ValueError, match=r"distance matrix of one graph.*taken for 10 graphs"):
        network(params, np.ones((10, 10)) - np.eye(10))


@pytest.mark.parametrize("depth", [-1, 0, 2.5, "deep", True, 100_001, 2_000_000, 10**30])
@pytest.mark.parametrize("network", [DPG, PDS])
def test_impossible_depth_is_refused(network, depth):
    with pytest.raises(ValueError, match="depth must be a number of layers from 1 to 100,000"):
        network(depth=depth)


def test_one_channel_is_dpg(e, x64):
    found = MIMO(channels=1, depth=30)(MIMOParams(np.array([0.4])), e)
    for got, expected in zip(found, DPG(depth=30)(DPGParams(0.4), e), strict=True):
        np.testing.assert_array_equal(got[0], expected)


def test_a_layer_is_that_of_the_definition(e, x64):
    """Three channels, with loops over channels and pairs."""
    n, theta = N_NODES, np.array([[0.4, 0.2, 0.3], [0.1, 0.5, 0.2], [0.6, 0.3, 0.1]])
    i, j = np.triu_indices(n, 1)
    degrees = lambda a: np.bincount(i, a, n) + np.bincount(j, a, n)  # noqa: E731
    a, lam = [np.full(e.size, 0.5)] * 3, [np.full(n, 17.0)] * 3
    for _ in range(4):
        u = [degrees(a[c]) - (n - 1) * lam[c] for c in range(3)]
        lam = [(np.sqrt(x**2 + 4 * (n - 1)) - x) / (2 * (n - 1)) for x in u]
        each = [
            [np.maximum(0, (x[i] + x[j]) / 2 - t * e) for x, t in zip(lam, row, strict=True)]
            for row in theta
        ]
        a = [np.mean(row, axis=0) for row in each]
    found = MIMO(channels=3, depth=4)(MIMOParams(theta.ravel()), e)
    np.testing.assert_allclose(found.a, a, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.lam, lam, rtol=1e-10)


def test_numbering_channels_otherwise_changes_nothing(e, x64):
    theta = np.array([[0.4, 0.2, 0.3], [0.1, 0.5, 0.2], [0.6, 0.3, 0.1]])
    order = [2, 0, 1]
    network = MIMO(channels=3, depth=10)
    found = network(MIMOParams(theta[np.ix_(order, order)].ravel()), e)
    for got, expected in zip(found, network(MIMOParams(theta.ravel()), e), strict=True):
        np.testing.assert_allclose(got, expected[np.array(order)], rtol=1e-10, atol=1e-12)


def test_a_head_without_layers_is_its_base(e, x64):
    base, theta = MIMO(channels=2, depth=10), (0.4, 0.2, 0.1, 0.5)
    found = StochasticHead(base, theta=theta, depth=0)(HeadParams(np.array([9.0, 9.0])), e)
    for got, expected in zip(found, base(MIMOParams(np.array(theta)), e), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_head_goes_on_from_where_its_base_ends(e, x64):
    """A base of alike channels is DPG, and more layers at its theta are more layers of DPG."""
    head = StochasticHead(MIMO(channels=2, depth=10), theta=(0.4,) * 4, heads=1, depth=7)
    found = head(HeadParams(np.array([0.4])), e)
    np.testing.assert_allclose(found.a[0], DPG(depth=17)(DPGParams(0.4), e).a, rtol=1e-10)
    np.testing.assert_allclose(found.a[1], DPG(depth=10)(DPGParams(0.4), e).a, rtol=1e-10)


@pytest.mark.slow
def test_many_graphs_and_large_ones_go_other_ways_to_the_same_answer(rng, x64):
    """Side by side, one by one, and beyond the nodes for which rows are written out."""
    network, params = MIMO(channels=2, depth=3), MIMOParams(np.array([0.4, 0.2, 0.1, 0.5]))
    head = StochasticHead(network, theta=params.theta, depth=2)
    for n in (6, 50):
        stack = np.stack([distances_of_kind("geometric", n, rng) for _ in range(9)])
        pairs = np.stack(np.triu_indices(n, k=1), axis=1)
        for net, p in ((network, params), (head, HeadParams(np.array([0.3, 0.6])))):
            together = net(p, stack)
            close([x[4] for x in together], net(p, stack[4], Restricted.from_pairs(pairs)), 1e-9)
            before = net.precompute(jnp.asarray(stack), Complete(n))
            close(net(p, stack, Complete(n), before), together, 1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MIMO(depth=None), "no converged form"),
        (lambda: MIMO(channels=0), "at least 1"),
        (lambda: MIMO(channels=2.5), "whole number"),
        (lambda: StochasticHead(MIMO(channels=2), theta=(1.0, 2.0)), "must be 4 numbers; got 2"),
        (lambda: StochasticHead(MIMO(channels=2), heads=3), "from 1 to 2"),
        (lambda: StochasticHead(MIMO(channels=2), depth=None), "give it a depth"),
        (lambda: StochasticHead(MIMO())(HeadParams(np.ones(4)), np.ones(10)), "not trained"),
    ],
)
def test_impossible_channels_and_heads_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
