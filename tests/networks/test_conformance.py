"""What must be true of every network. A new one joins NETWORKS and is tested."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.edges import Complete, Restricted
from edgebelief.networks import DPG, PDS, DPGParams, Network, PDSParams
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
}


@pytest.fixture(params=NETWORKS.values(), ids=NETWORKS)
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
    close(network(params, e[positions]), (a[positions], lam[order], z[positions]))


def test_batch_of_one_equals_single_and_batches_equal_loops(case, e, x64):
    network, params = case
    single = network(params, e)
    close(network(params, e[None]), [x[None] for x in single], 1e-12)
    stack = np.stack([[e, 2 * e], [e / 2, e + 1]])
    together = network(params, stack)
    assert together.a.shape == stack.shape
    assert together.lam.shape == (2, 2, N_NODES)
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
    close(found, (a[order], lam, z[order]))


def test_forward_reverse_and_finite_difference_gradients_agree(case, e, x64, rng):
    network, params = case
    weight = rng.normal(size=e.size)

    def f(params, e):
        a, lam, _ = network(params, e)
        return weight @ a + jnp.sum(lam**2)

    h = 1e-6
    # Away from kinks: no edge enters or leaves within the difference.
    patterns = [np.sign(network(params, e * (1 + s)).a) for s in (-2 * h, 0.0, 2 * h)]
    assert all((p == patterns[0]).all() for p in patterns) or not network.nonnegative
    params = type(params)(*(jnp.asarray(p) for p in params))
    reverse = jax.grad(f)(params, e)
    forward = jax.jacfwd(f)(params, e)
    _, tangents = network.with_tangents(params, e)
    state = network(params, e)
    for i, name in enumerate(params._fields):
        up, down = (params._replace(**{name: params[i] * (1 + s)}) for s in (h, -h))
        difference = (f(up, e) - f(down, e)) / (2 * h * params[i])
        assert float(reverse[i]) == pytest.approx(float(difference), rel=1e-6, abs=1e-7)
        assert float(forward[i]) == pytest.approx(float(reverse[i]), rel=1e-9)
        from_tangent = weight @ tangents[i].a + 2 * jnp.sum(state.lam * tangents[i].lam)
        assert float(from_tangent) == pytest.approx(float(reverse[i]), rel=1e-9)
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
        assert all(np.isfinite(g) for g in gradient(scaled, e.astype(np.float32)))


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


@pytest.mark.parametrize("depth", [-1, 2.5, "deep", True])
@pytest.mark.parametrize("network", [DPG, PDS])
def test_impossible_depth_is_refused(network, depth):
    with pytest.raises(ValueError, match="depth must be a number of layers"):
        network(depth=depth)
