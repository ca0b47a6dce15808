import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from edgebelief.belief.checks import prior_predictive
from edgebelief.belief.elicit import elicit_prior
from edgebelief.belief.sweep import theta_sweep
from edgebelief.data import GraphDataset, RandomGeometric, sp500
from edgebelief.edges import Complete, Restricted
from edgebelief.infer import EdgeModel, Prior
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG, MIMO, PDS, DPGParams
from edgebelief.readouts import Additive, Affine, TwoSlope

NETWORK = DPG(depth=60)


@pytest.fixture(scope="module")
def data():
    """Distances alone: labels are not looked at."""
    drawn = GraphDataset.sample(0, RandomGeometric(radius=0.4), 3, 14, n_signals=300)
    return GraphDataset([record.e for record in drawn])


def densities(data, prior, readout, network=NETWORK, n=2000):
    """Draw graphs by code that the elicitation does not use, and return their densities."""
    model = prepare(0, EdgeModel(network, readout, prior), data).model
    each = -(-n // len(data))
    checks = [prior_predictive(9 + t, model, data[t : t + 1], n=each) for t in range(len(data))]
    return np.concatenate([check.values for check in checks])


def share(values, low, high):
    return ((values >= low - 1e-9) & (values <= high + 1e-9)).mean()


@pytest.mark.parametrize(
    ("readout", "density", "mass"),
    [
        (Affine(), (0.15, 0.4), 0.95),
        (Affine(), (0.05, 0.5), 0.8),
        (Affine(), (0.4, 0.9), 0.8),
        (TwoSlope(), (0.15, 0.4), 0.9),
        (Additive(), (0.1, 0.4), 0.95),
    ],
)
def test_graphs_drawn_from_the_model_have_the_stated_density(data, readout, density, mass):
    prior = elicit_prior(data, density, mass=mass, network=NETWORK, readout=readout)
    assert prior.share == pytest.approx(mass, abs=0.02)
    drawn = densities(data, prior, readout)
    # Four standard errors of 2000 draws, and as many of the thousand that the prior comes from.
    error = np.sqrt(mass * (1 - mass) * (1 / 2000 + 1 / 1000))
    assert share(drawn, *density) == pytest.approx(mass, abs=4 * error)
    low, high = (drawn < density[0]).mean(), (drawn > density[1]).mean()
    assert max(low, high) < 0.9 * (1 - mass) + 4 * error  # not all beyond one end


@pytest.mark.parametrize(
    "readout", [Affine(), pytest.param(Additive(), marks=pytest.mark.slow)], ids=["affine", "add"]
)
@pytest.mark.parametrize("name", ["rg032", "sp500", "fifty nodes"])
@pytest.mark.slow
def test_the_stated_mass_is_realised_on_real_inputs(shared_data, name, readout):
    if name == "rg032":
        data = GraphDataset(np.load(shared_data / "rg032.npz")["train_distances"])
    elif name == "sp500":
        data = GraphDataset([sp500(shared_data).train[0].e])
    else:
        drawn = GraphDataset.sample(1, RandomGeometric(0.25), 4, 50, n_signals=500)
        data = GraphDataset([record.e for record in drawn])
    prior = elicit_prior(data, (0.15, 0.3), readout=readout)
    drawn = densities(data, prior, readout, DPG())
    assert share(drawn, 0.15, 0.3) == pytest.approx(0.95, abs=0.05)


def test_a_mixture_of_closed_forms_has_the_stated_share():
    """With equal distances all pairs have one probability, which is known: edges are binomial."""
    n_nodes, density, mass = 12, (0.2, 0.6), 0.8
    prior = elicit_prior(np.full(66, 2.0), density, mass=mass, network=NETWORK)
    rng = np.random.default_rng(1)
    theta, delta, b = (
        prior[name].from_z(rng.normal(size=4000)) for name in ("theta", "delta", "b")
    )
    run = jax.jit(jax.vmap(lambda t: NETWORK(DPGParams(t), jnp.full(66, 2.0), Complete(n_nodes)).a))
    a = np.asarray(run(jnp.asarray(theta)))
    np.testing.assert_allclose(a[:, 1:], a[:, :-1], rtol=1e-4)
    drawn = rng.binomial(66, expit(delta * a[:, 0] - b)) / 66
    assert share(drawn, *density) == pytest.approx(mass, abs=0.05)


def test_components_are_part_of_the_belief(data):
    beliefs = {"density": (0.1, 0.6), "max_components": 2, "mass": 0.9}
    prior = elicit_prior(data, **beliefs, network=NETWORK)
    model = EdgeModel(NETWORK, prior=prior)

    def meets(matrix):
        lengths = np.linalg.eigvalsh(np.diag(matrix.sum(0)) - matrix)
        few = (lengths < 1e-9).sum() <= 2  # as many components as zero eigenvalues
        return float(few and 0.1 <= matrix.sum() / matrix.size * 14 / 13 <= 0.6)

    checks = [prior_predictive(9, model, data[t : t + 1], meets, n=400) for t in range(3)]
    assert np.mean([c.values.mean() for c in checks]) == pytest.approx(0.9, abs=0.06)
    alone = elicit_prior(data, (0.1, 0.6), mass=0.9, network=NETWORK)
    assert prior["theta"].median < alone["theta"].median  # fewer components, denser graphs


@pytest.mark.parametrize("density", [(0.0, 0.4), (0.4, 1.0)])
def test_with_one_bound_the_rest_lies_beyond_it(data, density):
    prior = elicit_prior(data, density, mass=0.9, network=NETWORK)
    assert 0.5 < prior["theta"].log_sd <= 1.0
    assert share(densities(data, prior, Affine()), *density) == pytest.approx(0.9, abs=0.04)


def test_spreads_are_on_equal_terms_and_the_widest(data):
    prior = elicit_prior(data, (0.15, 0.4), network=NETWORK)
    spread = prior["theta"].log_sd
    assert 0.05 < spread < 1
    assert prior["delta"].log_sd == pytest.approx(spread)
    assert prior["b"].log_sd == pytest.approx(spread / 2)
    wider = {name: type(m)(m.median, 1.3 * m.log_sd) for name, m in prior.items()}
    drawn = densities(data, Prior(**wider), Affine())
    assert share(drawn, 0.15, 0.4) < 0.95 - 0.01


def test_rescaling_the_distances_rescales_theta_alone(data):
    prior = elicit_prior(data, (0.2, 0.5), network=NETWORK)
    scaled = elicit_prior([128 * record.e for record in data], (0.2, 0.5), network=NETWORK)
    assert scaled["theta"].median * 128 == pytest.approx(prior["theta"].median, rel=1e-3)
    for name in ("delta", "b"):
        assert scaled[name].median == pytest.approx(prior[name].median, rel=1e-3)
        assert scaled[name].log_sd == pytest.approx(prior[name].log_sd, rel=0.04)


def test_an_elicited_prior_is_a_prior_with_the_figure_s_data(data):
    prior = elicit_prior(data, (0.2, 0.5), mass=0.9, network=NETWORK)
    assert isinstance(prior, Prior)
    assert EdgeModel(prior=prior).prior is prior
    assert prior.beliefs == ((0.2, 0.5), None, 0.9)
    np.testing.assert_array_equal(prior.sweep.density, theta_sweep(data).density)
    assert norm.cdf(
        np.log(prior.interval), np.log(prior["theta"].median), prior["theta"].log_sd
    ) == (pytest.approx([0.05, 0.95]))
    low, middle, high = prior.drawn.T
    assert (low <= middle).all()
    assert (middle <= high).all()
    at_median = np.interp(np.log(prior["theta"].median), np.log(prior.sweep.thetas), middle)
    assert 0.2 < at_median < 0.5


def test_the_same_beliefs_give_the_same_prior_whatever_the_labels(data):
    labelled = GraphDataset.sample(0, RandomGeometric(radius=0.4), 3, 14, n_signals=300)
    one, other = (elicit_prior(d, (0.2, 0.5), network=NETWORK) for d in (data, labelled))
    assert dict(one) == dict(other)


def test_candidate_edges_may_be_restricted():
    pairs = [(i, j) for i in range(10) for j in range(i + 1, min(i + 4, 10))]
    support = Restricted.from_pairs(pairs)
    e = np.random.default_rng(0).uniform(1, 5, len(pairs))
    prior = elicit_prior(e, (0.2, 0.45), mass=0.8, support=support, network=NETWORK)
    theta, delta, b = (prior[name].median for name in ("theta", "delta", "b"))
    a = np.asarray(NETWORK(DPGParams(jnp.asarray(theta)), jnp.asarray(e), support).a)
    assert 0.2 < expit(delta * a - b).sum() / 45 < 0.45
    with pytest.raises(ValueError, match="readout Additive is for graphs all of whose pairs"):
        elicit_prior(e, (0.2, 0.45), support=support, network=NETWORK, readout=Additive())


def test_out_of_reach_says_what_can_be_reached(data):
    message = r"no prior gives 95% of the graphs .* a density between 0.25 and 0.26: at most \d+%"
    with pytest.raises(ValueError, match=message) as caught:
        elicit_prior(data, (0.25, 0.26), network=NETWORK)
    low, high = map(
        float, re.search(r"between (\S+) and (\S+)\. State", str(caught.value)).groups()
    )
    assert low < 0.25 < 0.26 < high
    elicit_prior(data, (low - 0.03, high + 0.03), network=NETWORK)  # so near is enough


def test_contradictory_components_are_explained(data):
    apart = Restricted.from_pairs([(0, 1), (2, 3)])
    with pytest.raises(ValueError, match="and at most 1 components: at most 0%"):
        elicit_prior(np.array([1.0, 2.0]), (0.1, 0.9), max_components=1, support=apart)


@pytest.mark.parametrize("network", [MIMO(depth=3), PDS(depth=3)])
def test_other_networks_take_no_beliefs(data, network):
    with pytest.raises(ValueError, match="beliefs about graphs make a prior for DPG"):
        elicit_prior(data, (0.2, 0.5), network=network)


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
