import networkx as nx
import numpy as np
import pytest

from edgebelief import solve, theta_for
from edgebelief.belief.elicit import elicit_prior, theta_sweep
from edgebelief.convex import solve_path
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.edges import Complete, Restricted
from edgebelief.infer import EdgeModel, Prior
from problems import KINDS, distances_of_kind, nearly_complete_pairs


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, RandomGeometric(radius=0.4), 3, 12, n_signals=300)


def test_sweep_has_the_density_that_theta_for_was_asked_for(data):
    e = data[0].e
    found = [theta_for(e, density=density) for density in (0.9, 0.5, 0.2)]
    sweep = theta_sweep(e, found)
    np.testing.assert_allclose(sweep.density[0] * 66, [theta.n_edges for theta in found])
    np.testing.assert_array_equal(sweep.thetas, np.array(found, float))


def test_sweep_of_constant_distances_is_the_closed_form():
    # SPEC section 2: a = (-theta c + sqrt(theta^2 c^2 + 4/(N-1)))/2 on every edge.
    thetas, c, n_nodes = np.array([0.1, 1.0, 10.0]), 2.0, 6
    sweep = theta_sweep(np.full(15, c), thetas)
    a = (-thetas * c + np.sqrt(thetas**2 * c**2 + 4 / (n_nodes - 1))) / 2
    assert (sweep.density == 1).all()
    assert (sweep.components == 1).all()
    np.testing.assert_allclose(sweep.weights[0], a[:, None] * np.ones(5), rtol=1e-7)


def test_components_and_quantiles_are_those_of_networkx_and_numpy(data):
    sweep = theta_sweep(data, [0.05, 0.5, 5.0])
    for t, record in enumerate(data):
        for k, solution in enumerate(solve_path(record.e, sweep.thetas)):
            matrix = solution.adjacency()
            graph = nx.from_numpy_array(matrix * (matrix > 1e-5 * matrix.max()))
            assert sweep.components[t, k] == nx.number_connected_components(graph)
            weights = [w for *_, w in graph.edges(data="weight")]
            expected = np.quantile(weights, sweep.levels)
            np.testing.assert_allclose(sweep.weights[t, k], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_nodes", [5, 20, 40])
def test_the_default_grid_goes_from_complete_to_sparsest(kind, n_nodes, rng):
    e = distances_of_kind(kind, n_nodes, rng)
    sweep = theta_sweep(e)
    assert sweep.mean_density[0] > 0.99
    support = Complete(n_nodes)
    far = support.density(solve(e, 30 * sweep.thetas[-1]).weights)
    assert sweep.mean_density[-1] == pytest.approx(far, abs=1 / support.n_edges)


def test_the_grid_follows_the_scale_of_the_distances(data):
    e = data[0].e
    one, other = theta_sweep(e), theta_sweep(1000 * e)
    np.testing.assert_allclose(other.thetas * 1000, one.thetas)
    np.testing.assert_array_equal(other.density, one.density)


def test_one_graph_may_come_as_vector_matrix_list_or_data_set(data):
    record = data[0]
    forms = [record.e, record.distance_matrix(), [record.e], list(record.e), data[:1]]
    densities = [theta_sweep(form, [0.1, 1.0]).density for form in forms]
    for density in densities:
        np.testing.assert_array_equal(density, densities[0])
        assert density.shape == (1, 2)


def test_graphs_may_differ_in_size():
    sizes = [theta_sweep(np.ones(n), [1.0]) for n in (3, 6)]
    both = theta_sweep([np.ones(3), np.ones(6)], [1.0])
    np.testing.assert_allclose(both.weights, np.concatenate([s.weights for s in sizes]))


def test_a_restricted_support_bounds_the_density():
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    sweep = theta_sweep(np.array([1.0, 2.0, 1.0, 2.0]), support=Restricted.from_pairs(pairs))
    assert sweep.mean_density[0] == pytest.approx(4 / 6)
    assert sweep.mean_density[-1] == pytest.approx(2 / 6)  # the two near pairs
    all_but_one = Restricted.from_pairs(nearly_complete_pairs(5))
    with pytest.raises(ValueError, match=r"it can be .* to 0\.9\. State"):
        elicit_prior(np.arange(1.0, 10.0), density=(0.95, 1.0), support=all_but_one)


def test_the_table_holds_the_means(data):
    sweep = theta_sweep(data, [0.1, 1.0])
    table = sweep.table()
    np.testing.assert_allclose(table["density"], sweep.density.mean(0))
    np.testing.assert_allclose(table["weight_q50"], sweep.median_weight)
    assert list(table["most_components"]) == list(sweep.components.max(0))


@pytest.mark.parametrize(
    ("density", "max_components", "mass"),
    [
        ((0.2, 0.5), None, 0.95),
        ((0.2, 0.5), None, 0.8),
        ((0.15, 0.9), 2, 0.9),
        ((0.6, 1.0), None, 0.9),
        ((0.0, 0.3), None, 0.9),
    ],
)
def test_the_stated_mass_of_theta_gives_graphs_as_believed(
    data, density, max_components, mass, rng
):
    prior = elicit_prior(data, density, max_components, mass)
    thetas = prior["theta"].from_z(rng.normal(size=400))
    # Theta beyond what float64 resolves, or needs: the graph changes no more.
    sweep = theta_sweep(data, np.clip(thetas, 1e-6, 1e4))
    inside = (sweep.mean_density >= density[0]) & (sweep.mean_density <= density[1])
    if max_components is not None:
        inside &= sweep.most_components <= max_components
    # Four standard deviations of 400 draws, and an edge that leaves and returns.
    assert inside.mean() == pytest.approx(mass, abs=4 * np.sqrt(mass * (1 - mass) / 400) + 0.01)


def test_delta_makes_a_typical_edge_confident(data):
    prior = elicit_prior(data, density=(0.2, 0.5))
    weights = []
    for record in data:
        a = solve(record.e, prior["theta"].median).weights
        weights.append(np.median(a[a > 1e-5 * a.max()]))
    assert prior["delta"].median * np.mean(weights) == pytest.approx(10)
    assert prior["b"] == Prior.named("altered")["b"]


def test_rescaling_the_distances_rescales_theta_alone(data):
    prior = elicit_prior(data, density=(0.2, 0.5))
    scaled = elicit_prior([100 * record.e for record in data], density=(0.2, 0.5))
    assert scaled["theta"].median * 100 == pytest.approx(prior["theta"].median)
    assert scaled["theta"].log_sd == pytest.approx(prior["theta"].log_sd)
    assert scaled["delta"].median == pytest.approx(prior["delta"].median)


def test_an_elicited_prior_is_a_prior_with_the_figure_s_data(data):
    prior = elicit_prior(data, density=(0.2, 0.5), max_components=3, mass=0.9)
    assert isinstance(prior, Prior)
    assert EdgeModel(prior=prior).prior is prior
    assert prior.beliefs == ((0.2, 0.5), 3, 0.9)
    np.testing.assert_array_equal(prior.sweep.density, theta_sweep(data).density)
    low, high = prior["theta"].quantile([0.05, 0.95])
    assert (low, high) == pytest.approx(prior.interval)


def test_labels_are_not_looked_at(data):
    unlabelled = GraphDataset([record.e for record in data])
    assert dict(elicit_prior(unlabelled, (0.2, 0.5))) == dict(elicit_prior(data, (0.2, 0.5)))


def test_out_of_reach_names_the_range(data):
    sparsest = theta_sweep(data).mean_density.min()
    with pytest.raises(ValueError, match=rf"it can be {sparsest:.4g} .* to 1\. State a range"):
        elicit_prior(data, density=(0.0, 0.01))


def test_contradictory_components_are_explained(data):
    sweep = theta_sweep(data)
    low = sweep.mean_density.min()
    with pytest.raises(ValueError, match=r"contradict .* max_components=1 asks for a mean density"):
        elicit_prior(data, density=(low, low + 0.02), max_components=1)
    apart = Restricted.from_pairs([(0, 1), (2, 3)])
    with pytest.raises(ValueError, match="in at most 1 pieces: even at their densest one has 2"):
        elicit_prior(np.array([1.0, 2.0]), (0.1, 0.9), max_components=1, support=apart)


def test_a_jump_over_the_range_is_explained():
    e = np.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0])  # four edges that are alike leave together
    with pytest.raises(ValueError, match=r"jumps from 1 to 0\.3333 .* wider range"):
        elicit_prior(e, density=(0.4, 0.6))


@pytest.mark.parametrize(
    ("stated", "error", "message"),
    [
        ({"density": 0.3}, TypeError, "two numbers"),
        ({"density": (0.1, 0.2, 0.3)}, TypeError, "two numbers"),
        ({"density": (0.5, 0.2)}, ValueError, "low < high"),
        ({"density": (0.5, 20)}, ValueError, "shares"),
        ({"density": (0.1, 0.5), "max_components": 0}, ValueError, "max_components"),
        ({"density": (0.1, 0.5), "mass": 95}, ValueError, "mass must be above 0.5"),
    ],
)
def test_beliefs_are_checked(stated, error, message):
    with pytest.raises(error, match=message):
        elicit_prior(np.array([1.0, 2.0, 3.0]), **stated)
