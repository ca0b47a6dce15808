"""Tempered belief, and Bayes' rule for a stated density."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from edgebelief.amortise.temper import (
    Law,
    Rule,
    by_rule,
    contradiction,
    log_moments,
    moments,
    nll,
    stated_law,
    temper,
)
from edgebelief.errors import SettingError


@pytest.fixture
def logits(rng):
    return rng.normal(-1.0, 2.0, size=(3, 2))


def test_without_tempering_belief_is_the_mean_of_the_heads(logits):
    p = expit(logits)
    mean, sd = moments(logits, temper(logits))
    np.testing.assert_allclose(mean, p.mean(1))
    np.testing.assert_allclose(sd, p.std(1))
    yes, no = log_moments(logits, temper(logits))
    np.testing.assert_allclose(np.exp(yes), p.mean(1))
    np.testing.assert_allclose(np.exp(no), 1 - p.mean(1))


def test_without_slope_all_pairs_have_the_density_of_the_network(logits):
    mean, _ = moments(logits, temper(logits, slope=0.0))
    np.testing.assert_allclose(mean, expit(logits).mean())


def test_the_level_is_integrated_as_a_normal_distribution(logits):
    law = temper(logits, 0.5, 1.5)
    u = np.linspace(-12, 12, 20001)
    x = law.centre + 0.5 * (logits - law.centre)
    weight = norm.pdf(u, scale=1.5)
    p = (expit(x[..., None] + u) @ weight / weight.sum()).mean(1)
    np.testing.assert_allclose(moments(logits, law)[0], p, atol=2e-6)


def test_a_stated_density_enters_by_bayes_rule(logits):
    """Against the sum over all graphs on three nodes, and all levels on a fine grid."""
    t, tau, stated, world = 0.4, 2.0, Law(-2.0, 0.3), Law(-0.5, 0.8)
    law = temper(logits, t, tau, stated, world)
    u = np.linspace(-9.9, 9.9, 4001)
    c = logit(expit(logits).mean())
    p = expit((c + t * (logits - c))[..., None] + u)  # pairs, heads, levels
    of_density = logit(p.mean((0, 1)))
    posterior = norm.pdf(u, scale=tau) * norm.pdf(of_density, stated.mean, stated.sd)
    posterior /= norm.pdf(of_density, world.mean, world.sd)
    posterior /= posterior.sum()
    expected = np.zeros(3)
    for graph in product([0, 1], repeat=3):
        a = np.array(graph)[:, None, None]
        probability = np.prod(np.where(a, p, 1 - p), axis=0).mean(0) @ posterior
        expected += probability * np.array(graph)
    np.testing.assert_allclose(moments(logits, law)[0], expected, atol=1e-4)


def test_a_statement_matters_where_the_level_is_in_doubt_alone(logits):
    raw = moments(logits, temper(logits))[0]
    stated, world = stated_law(0.02), Law(-1.0, 1.0)
    sure, lost = (moments(logits, temper(logits, 1.0, tau, stated, world))[0] for tau in (0.02, 2))
    np.testing.assert_allclose(sure, raw, rtol=0.1)
    np.testing.assert_allclose(lost.mean(), 0.02, rtol=0.1)


def test_saying_what_the_world_says_changes_nothing(logits):
    law = Law(-1.0, 0.7)
    with_it, without = (moments(logits, temper(logits, 0.5, 1.0, *x)) for x in ((law, law), ()))
    np.testing.assert_allclose(with_it, without)


def test_nll_is_that_of_the_mean_probability(logits):
    law, a = temper(logits, 0.7, 0.5), np.array([1.0, 0.0, 0.0])
    yes, no = log_moments(logits, law)
    np.testing.assert_allclose(nll(logits, a, law), -np.where(a > 0, yes, no).mean())


def test_the_rule_is_constant_beyond_its_knots():
    rule = Rule(np.array([1.0, 2.0]), np.array([1.0, 0.2]), np.array([0.0, 2.0]))
    assert rule.at(-3.0) == (1.0, 0.0)
    assert rule.at(99.0) == (0.2, 2.0)


def test_a_range_holds_nine_tenths():
    law = stated_law((0.1, 0.4))
    inside = norm.cdf(logit(0.4), law.mean, law.sd) - norm.cdf(logit(0.1), law.mean, law.sd)
    np.testing.assert_allclose(inside, 0.9, atol=1e-4)


@pytest.mark.parametrize("density", [0, 1, -0.1, "many", (0.4, 0.1), (0.1, 0.2, 0.3), (0, 0.1)])
def test_densities_that_are_none_are_refused(density):
    with pytest.raises(SettingError, match="density"):
        stated_law(density)


def test_a_density_far_from_the_networks_makes_it_lost(logits):
    """z = |c - m| / sqrt(s^2 + 0.3^2) counts as surprise beyond 1; and only there."""
    rule = Rule(np.array([0.0, 4.0]), np.array([1.0, 0.2]), np.array([0.1, 0.9]))
    c, world = logit(expit(logits).mean()), Law(-1.0, 0.7)
    for z, surprise in product([-3.0, -1.0, 0.5, 2.0, 7.0], [-0.5, 1.0]):
        stated = Law(c + z * 0.5, 0.4)
        assert contradiction(logits, stated) == pytest.approx(max(abs(z) - 1, 0))
        law = by_rule(logits, rule, surprise, stated, world)
        expected = rule.at(max(surprise, 0) + max(abs(z) - 1, 0))
        assert law.slope == pytest.approx(expected[0])
        np.testing.assert_allclose(
            moments(logits, law)[0], moments(logits, temper(logits, *expected, stated, world))[0]
        )


def test_who_states_nothing_contradicts_nothing(logits):
    rule = Rule(np.array([0.0, 4.0]), np.array([1.0, 0.2]), np.array([0.1, 0.9]))
    assert contradiction(logits, None) == 0
    assert by_rule(logits, rule, 1.0).slope == pytest.approx(0.8)
