import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from edgebelief.edges import Complete, Restricted
from oracles import incidence_matrix

RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 4)]
SUPPORTS = {
    "complete": Complete(5),
    "restricted": Restricted.from_pairs(RING),
    "listed in full": Restricted.from_pairs([(i, j) for i in range(5) for j in range(i)]),
    "two nodes": Complete(2),
}
ARRAYS = {"numpy": np.asarray, "jax": jnp.asarray}


@pytest.fixture(params=SUPPORTS.values(), ids=SUPPORTS)
def support(request):
    return request.param


@pytest.fixture(params=ARRAYS.values(), ids=ARRAYS)
def as_array(request):
    return request.param


def dense(support):
    return incidence_matrix(support.n_nodes, list(zip(*support.endpoints, strict=True)))


def test_degrees_and_endpoint_sums_are_the_dense_products(support, as_array, rng):
    a, lam = rng.normal(size=support.n_edges), rng.normal(size=support.n_nodes)
    s = dense(support)
    np.testing.assert_allclose(support.degrees(as_array(a)), s @ a, rtol=1e-5)
    np.testing.assert_allclose(support.endpoint_sums(as_array(lam)), s.T @ lam, rtol=1e-5)


def test_numpy_float64_stays_float64_and_exact(support, rng):
    a = rng.normal(size=support.n_edges)
    assert support.degrees(a).dtype == np.float64
    np.testing.assert_allclose(support.degrees(a), dense(support) @ a, rtol=1e-14, atol=1e-14)


def test_inner_layout_has_the_same_maps(support, as_array, rng):
    a, lam = as_array(rng.normal(size=support.n_edges)), as_array(rng.normal(size=support.n_nodes))
    inner = support.inner
    assert inner.max_degree == support.max_degree
    np.testing.assert_allclose(
        inner.degrees(support.to_inner(a)), support.degrees(a), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        support.from_inner(inner.endpoint_sums(lam)), support.endpoint_sums(lam), rtol=1e-5
    )
    np.testing.assert_array_equal(support.from_inner(support.to_inner(a)), a)


def test_inner_degrees_ignore_the_diagonal():
    junk = np.diag([np.nan, np.inf, 5.0])
    assert (Complete(3).inner.degrees(junk) == 0).all()


def test_max_degree_bounds_the_norm_of_s(support):
    assert support.max_degree == dense(support).sum(1).max()
    assert np.linalg.norm(dense(support), 2) ** 2 <= 2 * support.max_degree + 1e-12


def test_matrix_and_vector_are_inverse(support, as_array, rng):
    a = as_array(rng.normal(size=support.n_edges))
    matrix = support.to_matrix(a)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert (np.diagonal(matrix) == 0).all()
    np.testing.assert_array_equal(support.to_vector(matrix), a)
    rows, cols = support.endpoints
    np.testing.assert_array_equal(matrix[rows, cols], a)


def test_complete_order_is_row_major_upper_triangular():
    matrix = Complete(4).to_matrix(np.arange(1.0, 7.0))
    np.testing.assert_array_equal(matrix[0], [0, 1, 2, 3])
    np.testing.assert_array_equal(matrix[np.triu_indices(4, k=1)], np.arange(1.0, 7.0))


def test_relabel_is_a_permutation_of_the_matrix(support, rng):
    a, order = rng.normal(size=support.n_edges), rng.permutation(support.n_nodes)
    relabelled, positions = support.relabel(order)
    expected = support.to_matrix(a)[np.ix_(order, order)]
    np.testing.assert_array_equal(relabelled.to_matrix(a[positions]), expected)


@pytest.mark.parametrize("name", ["degrees", "to_matrix"])
def test_edge_maps_under_jit_vmap_and_both_modes(support, name, rng):
    function = getattr(support, name)
    stack = jnp.asarray(rng.normal(size=(3, support.n_edges)), jnp.float32)
    one_by_one = jnp.stack([function(a) for a in stack])
    np.testing.assert_allclose(jax.jit(jax.vmap(function))(stack), one_by_one, rtol=1e-5, atol=1e-6)
    forward, reverse = jax.jacfwd(function)(stack[0]), jax.jacrev(function)(stack[0])
    np.testing.assert_array_equal(forward, reverse)
    if name == "degrees":
        np.testing.assert_array_equal(forward, dense(support))


def test_a_support_can_be_an_argument_of_a_compiled_function(support, rng):
    a = jnp.asarray(rng.normal(size=support.n_edges), jnp.float32)
    compiled = jax.jit(lambda support, a: support.degrees(a))
    np.testing.assert_allclose(compiled(support, a), support.degrees(a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_components_and_density_agree_with_networkx(seed, as_array):
    graph = nx.gnp_random_graph(23, [0.02, 0.05, 0.1, 0.2, 0.0, 1.0][seed], seed=seed)
    support = Complete(23)
    a = as_array(support.to_vector(nx.to_numpy_array(graph)) * 0.3)
    assert support.n_components(a) == nx.number_connected_components(graph)
    assert float(support.density(a)) == pytest.approx(nx.density(graph))


def test_components_of_a_long_path_compiled():
    path = Restricted.from_pairs([(i, i + 1) for i in range(200)])
    a = jnp.ones(200).at[jnp.array([50, 120])].set(0)
    assert jax.jit(path.n_components)(a) == 3
    np.testing.assert_array_equal(jax.vmap(path.n_components)(jnp.stack([a, a * 0])), [3, 201])


def test_weights_below_a_hundred_thousandth_of_the_largest_are_no_edges():
    assert Complete(3).density(np.array([1.0, 0.9e-5, 1.1e-5])) == pytest.approx(2 / 3)
    assert Complete(3).density(np.zeros(3)) == 0


def test_nearest_neighbours_keep_both_directions(rng):
    points = rng.normal(size=(30, 2))
    matrix = ((points[:, None] - points[None]) ** 2).sum(-1)
    support = Restricted.nearest(matrix, 3)
    listed = set(zip(*support.endpoints, strict=True))
    for i in range(30):
        for j in np.argsort(matrix[i])[1:4]:
            assert (min(i, j), max(i, j)) in listed


@pytest.mark.parametrize(
    ("pairs", "n_nodes", "message"),
    [
        ([(0, 1), (1, 0)], None, r"the pair \(0, 1\) more than once"),
        ([(0, 1), (2, 2)], None, "joins node 2 to itself"),
        ([(0, 1), (3, 4)], None, r"\[2\] has none"),
        ([(0, 1)], 3, r"\[2\] has none"),
        ([(0, 5)], 3, "must lie in 0 to 2"),
        ([(0, 1, 2)], None, r"shape \(n_edges, 2\)"),
        ([(0.0, 1.5)], None, "integer array"),
        (np.zeros((0, 2), int), None, "every node needs a candidate edge"),
    ],
)
def test_bad_supports_are_refused(pairs, n_nodes, message):
    with pytest.raises(ValueError, match=message):
        Restricted.from_pairs(pairs, n_nodes)


def test_wrong_lengths_are_refused_not_clamped(support, as_array):
    for call, length in (
        (support.degrees, support.n_edges + 1),
        (support.to_matrix, support.n_edges + 1),
        (support.endpoint_sums, support.n_nodes + 1),
    ):
        with pytest.raises(ValueError, match="expected one number for each of"):
            call(as_array(np.ones(length)))


def test_no_permutation_no_relabelling(support):
    with pytest.raises(ValueError, match="order must hold each of"):
        support.relabel(np.zeros(support.n_nodes, int))


def test_a_graph_has_two_nodes_at_least():
    with pytest.raises(ValueError, match="at least 2 nodes"):
        Complete(1)


def test_vectors_run_in_the_order_of_the_listed_pairs():
    support = Restricted.from_pairs([(3, 2), (0, 1), (2, 1), (0, 3)])
    matrix = support.to_matrix(np.array([1.0, 2.0, 3.0, 4.0]))
    assert [matrix[2, 3], matrix[0, 1], matrix[1, 2], matrix[0, 3]] == [1, 2, 3, 4]


def test_a_traced_support_answers_in_jax():
    support = SUPPORTS["restricted"]
    a, lam = np.arange(6.0), np.arange(5.0)
    compiled = jax.jit(lambda s: (s.degrees(a), s.to_matrix(a), s.endpoint_sums(lam)))
    for got, expected in zip(
        compiled(support),
        (support.degrees(a), support.to_matrix(a), support.endpoint_sums(lam)),
        strict=True,
    ):
        np.testing.assert_array_equal(got, expected)
    matrix = support.to_matrix(a)
    np.testing.assert_array_equal(jax.jit(lambda s: s.to_vector(matrix))(support), a)
    assert jax.jit(lambda s: s.n_components(a))(support) == support.n_components(a)


@pytest.mark.parametrize("bad", [np.ones((3, 4)), np.full((3, 3), np.nan)])
def test_neighbours_need_a_square_matrix_without_gaps(bad):
    with pytest.raises(ValueError, match="square matrix without gaps"):
        Restricted.nearest(bad, 1)
