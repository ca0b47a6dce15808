import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from edgebelief.data import ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.edges import Complete
from edgebelief.infer import (
    MAP,
    NUTS,
    VI,
    BernoulliEdges,
    EdgeModel,
    Exact,
    Prior,
    WeightedEdges,
    fixed,
    lognormal,
    normal,
)
from edgebelief.infer.exact.applies import applies
from edgebelief.infer.exact.weights import WeightPosterior, WeightPrior
from edgebelief.infer.gradient.density import LogDensity
from edgebelief.networks import DPG, MIMO, DPGParams, Output
from edgebelief.readouts import Affine, TwoSlope
from weighted import PARAMS, drawn_from, looked_at


def fit_of(model, params, data):
    return jax.jit(lambda given: model.log_likelihood(given, data))(params)


def weighted_model(depth=30, **marginals):
    model = EdgeModel(DPG(depth=depth), likelihood=WeightedEdges())
    return model.replace(prior=model.prior.replace(**marginals)) if marginals else model


@pytest.fixture(scope="module")
def drawn():
    base = GraphDataset.sample(2, RandomGeometric(0.45), n_graphs=8, n_nodes=10, n_signals=50)
    return drawn_from(weighted_model(), PARAMS, base, seed=0)


def test_strength_is_the_log_of_the_networks_weight():
    z = jnp.array([-1e30, -2.0, -0.01, 0.0, 0.01, 0.3, 1e30])
    f = np.asarray(WeightedEdges().reduce(Output(z, z, z), Complete(5)), float)
    k, x = 0.05, np.asarray(z, float)  # 0.1/sqrt(N - 1)
    direct = np.log((x[1:-1] + np.sqrt(x[1:-1] ** 2 + 4 * k**2)) / 2)
    np.testing.assert_allclose(f[1:-1], direct, atol=1e-4)
    np.testing.assert_allclose(f[-1], np.log(1e30), rtol=1e-6)
    np.testing.assert_allclose(f[0], np.log(k**2 / 1e30), rtol=1e-6)
    e = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=1, n_nodes=12)[0].e
    output = DPG(depth=None)(DPGParams(0.1), jnp.asarray(e))
    strong = np.asarray(output.a) > 0.2
    f = np.asarray(WeightedEdges().reduce(output, Complete(12)))
    np.testing.assert_allclose(f[strong], np.log(output.a[strong]), atol=0.03)


def test_log_likelihood_is_bernoulli_and_lognormal(drawn):
    data = drawn[:2]
    w = np.where(np.arange(45) % 7 == 0, np.nan, data[1].w)
    data = GraphDataset([data[0].e, data[1].e], [data[0].w, w], weighted=True)
    model, found = weighted_model(), []
    for record, logits, f in zip(data, *looked_at(model, PARAMS, data), strict=True):
        p = 1 / (1 + np.exp(-logits))
        there, known = record.a > 0, record.known
        law = stats.lognorm(s=0.4, scale=np.exp(1.0 + 0.8 * f))
        fit = stats.bernoulli.logpmf(record.a, p)[known].sum()
        found.append(fit + law.logpdf(np.where(there, record.w, 1.0))[there].sum())
    np.testing.assert_allclose(fit_of(model, PARAMS, data), found, rtol=1e-4)


def test_density_has_the_models_value_and_gradient(drawn, x64):
    model = weighted_model()
    density = LogDensity.of(model, drawn)
    both = eqx.filter_jit(lambda density, z: jax.value_and_grad(density)(z))
    z = jnp.array([-0.3, -0.4, 1.1, 0.1, -0.2, -0.2])
    fits = fit_of(model, model.from_z(z), drawn)
    expected = fits.sum() - z @ z / 2 - 3 * np.log(2 * np.pi)
    value, gradient = both(density, z)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    step = 1e-6
    for k, unit in enumerate(np.eye(6)):
        above, below = (both(density, z + side * step * unit)[0] for side in (1, -1))
        slope = (above - below) / (2 * step)
        np.testing.assert_allclose(gradient[k], slope, rtol=1e-4, atol=1e-4)


def test_unweighted_data_are_scored_by_presence(drawn):
    plain = GraphDataset([r.e for r in drawn], [r.a for r in drawn])
    weighted, bernoulli = weighted_model(), EdgeModel(DPG(depth=30))
    np.testing.assert_array_equal(fit_of(weighted, PARAMS, plain), fit_of(bernoulli, PARAMS, plain))


PRIORS = {
    "all in doubt": WeightPrior(normal(0.0, 10.0), normal(1.0, 1.0), lognormal(0.5, 1.0)),
    "slope fixed": WeightPrior(normal(0.0, 10.0), fixed(1.0), lognormal(0.5, 1.0)),
    "sd fixed": WeightPrior(normal(0.0, 10.0), normal(1.0, 1.0), fixed(0.4)),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("n", [1, 12])
def test_regression_matches_direct_integration(name, n, rng):
    """Given sd, log weights are jointly normal: SciPy's density; sd by SciPy's quadrature."""
    prior, f = PRIORS[name], rng.normal(-1.5, 0.7, n)
    y = 0.7 + 0.9 * f + 0.3 * rng.standard_normal(n)
    found = WeightPosterior.of(prior, f, y, np.ones(n))
    columns = np.stack([np.ones(n), f], 1)
    prior_covariance = columns * prior.spread**2 @ columns.T

    def given(u):
        s = float(prior.weight_sd.from_z(np.asarray(u, float)))
        law = stats.multivariate_normal(
            columns @ prior.centre, s**2 * np.eye(n) + prior_covariance, allow_singular=True
        )
        gain = prior.spread**2 * (
            columns.T @ np.linalg.solve(law.cov_object.covariance, y - columns @ prior.centre)
        )
        return np.exp(law.logpdf(y)), prior.centre + gain, s

    if prior.weight_sd.fixed:
        evidence, mean, s = given(0.0)
        moments = [evidence * mean[0], evidence * mean[1], evidence * s]
    else:
        phi = stats.norm.pdf
        integrands = [
            lambda u: given(u)[0] * phi(u),
            lambda u: given(u)[0] * given(u)[1][0] * phi(u),
            lambda u: given(u)[0] * given(u)[1][1] * phi(u),
            lambda u: given(u)[0] * given(u)[2] * phi(u),
        ]
        evidence, *moments = [
            integrate.quad(g, -9, 9, limit=400, epsabs=0, epsrel=1e-8, points=[-1, 0])[0]
            for g in integrands
        ]
    assert found.log_evidence == pytest.approx(np.log(evidence) - y.sum(), abs=1e-5)
    np.testing.assert_allclose(found.moments[0], np.array(moments) / evidence, rtol=1e-4)
    draws = np.stack(found.draws(rng, 40_000))
    sd = np.sqrt(np.maximum(found.moments[1] - found.moments[0] ** 2, 0))
    np.testing.assert_allclose(draws.mean(1), found.moments[0], atol=0.03 * sd.max() + 1e-9)
    np.testing.assert_allclose(draws[:2].std(1), sd[:2], rtol=0.03, atol=1e-7)


def test_counting_an_edge_twice_is_having_it_twice(rng):
    prior, f, y = PRIORS["all in doubt"], rng.normal(size=6), rng.normal(size=6)
    once = WeightPosterior.of(prior, np.tile(f, 2), np.tile(y, 2), np.ones(12))
    twice = WeightPosterior.of(prior, f, y, np.full(6, 2.0))
    assert once.log_evidence == pytest.approx(twice.log_evidence, abs=1e-9)
    np.testing.assert_allclose(once.quantiles, twice.quantiles, atol=1e-9)


def test_many_edges_on_a_line_pin_the_spread_down(rng):
    """sd of log s is 1/sqrt(2n): far narrower than a first look at its prior."""
    n = 200_000
    f = rng.normal(size=n)
    y = 3.0 + 2.0 * f + 1e-3 * rng.standard_normal(n)
    found = WeightPosterior.of(PRIORS["all in doubt"], f, y, np.ones(n))
    np.testing.assert_allclose(found.moments[0], [3.0, 2.0, 1e-3], rtol=5e-3)
    sd = np.sqrt(found.moments[1][2] - found.moments[0][2] ** 2)
    assert sd == pytest.approx(1e-3 / np.sqrt(2 * n), rel=0.05)


TIGHT = {"level": normal(0.5, 1.0), "slope": normal(1.0, 0.5), "weight_sd": lognormal(0.4, 0.5)}


def by_prior(model, data, n):
    """Log evidence and posterior means by drawing the prior: nothing to go wrong."""
    draws = model.prior.sample(jax.random.key(0), n, model.sizes)

    def fit(params):
        return model.log_likelihood(params, data).sum()

    fits = np.asarray(jax.jit(lambda d: jax.lax.map(fit, d, batch_size=1000))(draws), float)
    share = np.exp(fits - logsumexp(fits))
    assert 1 / (share @ share) > 1000
    return logsumexp(fits) - np.log(n), {k: share @ np.asarray(v) for k, v in draws.items()}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore:prior dominates", "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws"
)
@pytest.mark.parametrize("readout", [Affine(), TwoSlope()], ids=["affine", "two slopes"])
def test_exact_agrees_with_drawing_the_prior(readout):
    base = GraphDataset.sample(1, RandomGeometric(0.5), n_graphs=2, n_nodes=5, n_signals=20)
    model = EdgeModel(DPG(depth=10), readout, likelihood=WeightedEdges())
    model = model.replace(prior=model.prior.replace(**TIGHT))
    data = drawn_from(model, {**PARAMS, "slack": 10.0}, base, seed=1)
    posterior = Exact().run(0, model, data)
    log_evidence, means = by_prior(model, data, 400_000)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.1)
    summary = posterior.summary()
    for name in ("theta", "level", "slope", "weight_sd"):
        off = abs(summary["mean"][name] - means[name]) / summary["sd"][name]
        assert off < 0.1, name
    mean = posterior.weights @ posterior.params["level"]
    assert abs(mean - means["level"]) < 0.15 * summary["sd"]["level"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Pareto k")  # VI's, 0.7 and a little
@pytest.mark.parametrize("engine", [NUTS(), VI()], ids=["nuts", "vi"])
def test_exact_agrees_with_sampling(drawn, engine):
    exact = Exact().run(0, weighted_model(), drawn).summary()
    other = engine.run(0, weighted_model(), drawn).summary()
    assert (abs(other["mean"] - exact["mean"]) / exact["sd"]).max() < 0.2
    np.testing.assert_allclose(other["sd"], exact["sd"], rtol=0.2)


@pytest.mark.slow
@pytest.mark.long
def test_map_finds_what_the_data_were_drawn_from(drawn):
    found = MAP(starts=1).run(0, weighted_model(), drawn)
    values = {name: value[0] for name, value in found.params.items()}
    assert values["level"] == pytest.approx(1.0, abs=0.3)
    assert values["slope"] == pytest.approx(0.8, abs=0.3)
    assert values["weight_sd"] == pytest.approx(0.4, abs=0.08)


def test_draws_and_points_have_the_summarys_moments(drawn):
    posterior = Exact().run(0, weighted_model(), drawn)
    summary = posterior.summary()
    draws = posterior.draws(1, 20_000)
    for name in ("theta", "level", "slope", "weight_sd"):
        mean, sd, q5 = summary.loc[name, ["mean", "sd", "q5"]]
        assert draws[name].mean() == pytest.approx(mean, abs=0.04 * sd)
        assert draws[name].std() == pytest.approx(sd, rel=0.04)
        assert np.quantile(draws[name], 0.05) == pytest.approx(q5, abs=0.06 * sd)
        at_points = posterior.weights @ posterior.params[name]
        assert at_points == pytest.approx(mean, abs=0.2 * sd)
    exact = np.corrcoef(draws["level"], draws["slope"])[0, 1]
    assert exact > 0.5  # f is negative throughout: what one gains the other gives back
    x, height = posterior.density("level")
    assert np.trapezoid(height, x) == pytest.approx(1.0, abs=0.02)


def test_no_network_parameter_in_doubt_is_one_regression(drawn):
    model = weighted_model(theta=fixed(0.16))
    posterior = Exact(n_draws=4000).run(0, model, drawn)
    _, f = looked_at(model, PARAMS, drawn)
    w = np.stack([r.w for r in drawn])
    edges = f[w > 0], np.log(w[w > 0]), np.ones((w > 0).sum())
    alone = WeightPosterior.of(WeightPrior.of(model), *edges)
    level = posterior.params["level"]
    sd = np.sqrt(alone.moments[1][0] - alone.moments[0][0] ** 2)
    assert posterior.weights @ level == pytest.approx(alone.moments[0][0], abs=0.1 * sd)
    plain = GraphDataset([r.e for r in drawn], [r.a for r in drawn])
    presence = EdgeModel(DPG(depth=30), prior=Prior.named("altered").replace(theta=fixed(0.16)))
    apart = Exact(n_draws=4000).run(0, presence, plain).log_evidence + alone.log_evidence
    assert posterior.log_evidence == pytest.approx(apart, abs=0.02)


def test_what_cannot_be_is_refused(drawn):
    with pytest.raises(ValueError, match="MIMO has 2"):
        EdgeModel(MIMO(channels=2), likelihood=WeightedEdges())
    with pytest.raises(ValueError, match="and no other"):
        EdgeModel(prior=weighted_model().prior, likelihood=BernoulliEdges())
    model = weighted_model(slope=lognormal(1.0, 1.0))
    assert not applies(model)
    with pytest.raises(ValueError, match="normal prior of slope"):
        Exact().run(0, model, drawn)
    with pytest.raises(ValueError, match="weight_sd must be positive"):
        Exact().run(0, weighted_model(weight_sd=normal(1.0, 1.0)), drawn)
    plain = GraphDataset([r.e for r in drawn], [r.a for r in drawn])
    with pytest.raises(ValueError, match="weighted=True"):
        Exact().run(0, weighted_model(), plain)
    equal = GraphDataset([r.e for r in drawn], [3 * r.a for r in drawn], weighted=True)
    with pytest.raises(ValueError, match="every edge has the weight 3"):
        Exact().run(0, weighted_model(), equal)
