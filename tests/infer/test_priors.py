import jax
import numpy as np
import pytest
from scipy import stats

from edgebelief.infer import Prior, fixed, half_normal, lognormal, loguniform, normal

# marginal, the same in SciPy
PAIRS = [
    (lognormal(0.3, 2.0), stats.lognorm(s=2.0, scale=0.3)),
    (loguniform(1e-6, 1e6), stats.loguniform(1e-6, 1e6)),
    (normal(3.0, 10.0), stats.norm(3.0, 10.0)),
]


@pytest.mark.parametrize(("marginal", "same"), PAIRS, ids=lambda x: str(x)[:12])
def test_marginals_are_those_of_scipy(marginal, same, x64):
    q = np.array([0.001, 0.05, 0.5, 0.9])
    np.testing.assert_allclose(marginal.quantile(q), same.ppf(q), rtol=1e-9)
    assert marginal.median == pytest.approx(same.median())
    x = same.ppf(q)
    np.testing.assert_allclose(marginal.distribution.log_prob(x), same.logpdf(x), rtol=1e-9)
    z, h = stats.norm.ppf(q), 1e-4
    up, here, down = (marginal.from_z(z + s) for s in (h, 0, -h))
    first, second = marginal.from_z_derivatives(z)
    np.testing.assert_allclose(first, (up - down) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(second, (up - 2 * here + down) / h**2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(marginal.to_z(x), stats.norm.ppf(q), rtol=1e-9, atol=1e-12)
    assert marginal.positive == (same.support()[0] >= 0)


def test_named_priors_are_those_of_the_spec():
    sqrt2 = np.sqrt(2)
    for name, median in (("original", 1.0), ("altered", 10**-0.5)):
        prior = Prior.named(name)
        assert list(prior) == ["theta", "delta", "b"]
        assert prior["theta"] == lognormal(median, 2)
        assert prior["delta"] == lognormal(100, sqrt2)
        assert prior["b"] == lognormal(1, sqrt2)
        assert prior.medians() == pytest.approx({"theta": median, "delta": 100, "b": 1})
    flat = Prior.named("flat")
    assert flat["theta"] == loguniform(1e-6, 1e6)
    assert flat["delta"] == flat["b"] == normal(0, 1e3)


def test_draws_follow_the_marginals():
    prior = Prior(theta=PAIRS[0][0], delta=PAIRS[1][0], b=PAIRS[2][0])
    draws = prior.sample(jax.random.key(0), 4000)
    for (_, same), name in zip(PAIRS, prior, strict=True):
        assert stats.kstest(np.asarray(draws[name], float), same.cdf).pvalue > 1e-3


def test_log_density_adds_up(x64):
    prior = Prior(theta=PAIRS[0][0], delta=PAIRS[1][0], b=PAIRS[2][0])
    params = {"theta": 0.7, "delta": 30.0, "b": -4.0}
    expected = sum(
        same.logpdf(value) for (_, same), value in zip(PAIRS, params.values(), strict=True)
    )
    assert float(prior.log_density(params)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lognormal(-1, 2), ValueError, "median must be positive"),
        (lambda: lognormal(1, 0), ValueError, "log_sd must be positive"),
        (lambda: lognormal("1", 2), TypeError, "median must be a number"),
        (lambda: loguniform(2, 1), ValueError, "low must be below high"),
        (lambda: normal(0, -1), ValueError, "sd must be positive"),
        (
            lambda: lognormal(1e300, 1),
            ValueError,
            r"median must be between 1e-20 and 1e\+20; .*unit",
        ),
        (lambda: lognormal(1e-300, 1), ValueError, "median must be between .* single precision"),
        (lambda: lognormal(1, 1e300), ValueError, r"log_sd must be at most 10; .* loguniform\(low"),
        (lambda: lognormal(2, 1e-300), ValueError, r"For a known value use fixed\(2\)"),
        (lambda: lognormal(1, np.nan), ValueError, "log_sd must be positive and finite"),
        (lambda: loguniform(1e-300, 1), ValueError, "low must be between"),
        (lambda: loguniform(1, 1 + 1e-12), ValueError, "relative spread of 1e-12"),
        (lambda: normal(np.nan, 1), ValueError, "mean must be between"),
        (lambda: normal(1e300, 1), ValueError, "mean must be between"),
        (lambda: normal(0, 1e300), ValueError, "sd must be between"),
        (lambda: normal(5, 1e-9), ValueError, r"fixed\(5\)"),
        (lambda: half_normal(1e-300), ValueError, "scale must be between"),
        (lambda: fixed("1"), TypeError, "a fixed value must be a number"),
        (lambda: fixed(1e300), ValueError, r"value must be at most 1e\+20 in size"),
        (lambda: Prior(theta=0.5), TypeError, "prior of theta must be made by lognormal"),
        (lambda: Prior.named("best"), ValueError, "there are .*altered"),
    ],
)
def test_impossible_priors_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_half_normal_places_are_quantiles():
    z = np.linspace(-9, 6, 301)
    marginal = half_normal(0.5)
    value = marginal.from_z(z)
    near = z > -6  # further out SciPy's own quantile loses its digits
    np.testing.assert_allclose(
        value[near], stats.halfnorm.ppf(stats.norm.cdf(z), scale=0.5)[near], rtol=1e-6
    )
    np.testing.assert_allclose(marginal.to_z(value), z, atol=1e-8)
    first, second = marginal.from_z_derivatives(z)
    step = 1e-4
    ahead, behind = marginal.from_z(z + step), marginal.from_z(z - step)
    np.testing.assert_allclose(first, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(second, (ahead - 2 * value + behind) / step**2, rtol=1e-3, atol=1e-6)
