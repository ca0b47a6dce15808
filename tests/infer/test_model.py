import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density as numpyro_log_density
from scipy import stats

from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import BernoulliEdges, EdgeModel, Prior, normal
from edgebelief.networks import DPG, DPGParams

PARAMS = {"theta": 0.2, "delta": 40.0, "b": 3.0}


@pytest.fixture(scope="module")
def data():
    """Two sizes, an unlabelled graph, some unknown labels."""
    small, large = (GraphDataset.sample(0, ErdosRenyi(0.5), 2, n) for n in (5, 7))
    hidden = np.where(np.arange(10) % 3 == 0, np.nan, small[1].a)
    return GraphDataset(
        [small[0].e, large[0].e, small[1].e, large[1].e], [small[0].a, large[0].a, hidden, None]
    )


@pytest.fixture(scope="module")
def model():
    return EdgeModel(DPG(depth=10), prior="altered")


def by_hand(params, data, depth=10):
    """log p(labels | params) of each graph from the definition, in NumPy and SciPy."""
    found = []
    for record in data:
        with jax.enable_x64(True):
            a = np.asarray(DPG(depth=depth)(DPGParams(params["theta"]), record.e).a)
        p = 1 / (1 + np.exp(-(params["delta"] * a - params["b"])))
        found.append(stats.bernoulli.logpmf(record.a, p)[record.known].sum())
    return np.array(found)


def test_log_likelihood_is_that_of_the_definition(model, data, x64):
    got = model.log_likelihood(PARAMS, data)
    np.testing.assert_allclose(got, by_hand(PARAMS, data), rtol=1e-9)
    assert float(got[3]) == 0  # nothing is known of the last graph


def test_float32_agrees_with_float64(model, data):
    np.testing.assert_allclose(model.log_likelihood(PARAMS, data), by_hand(PARAMS, data), rtol=1e-4)


def test_log_density_is_prior_plus_weighted_likelihood(model, data, x64):
    weights = np.array([1.0, 0.0, 2.5, 1.0])
    prior = float(Prior.named("altered").log_density(PARAMS))
    each = by_hand(PARAMS, data)
    assert float(model.log_density(PARAMS, data)) == pytest.approx(prior + each.sum(), rel=1e-9)
    weighted = float(model.log_density(PARAMS, data, weights))
    assert weighted == pytest.approx(prior + weights @ each, rel=1e-9)


def test_numpyro_model_has_the_same_density(model, data, x64):
    got, trace = numpyro_log_density(model.sample, (data,), {}, PARAMS)
    assert float(got) == pytest.approx(float(model.log_density(PARAMS, data)), rel=1e-12)
    assert {"theta", "delta", "b"} <= set(trace)


def test_logits_work_inside_a_users_own_model(model, data, x64):
    record = data[0]

    def own(e, a):
        params = {"theta": 0.2, "delta": numpyro.sample("delta", dist.HalfNormal(50.0)), "b": 3.0}
        with numpyro.plate("edges", e.size):
            numpyro.sample("a", dist.Bernoulli(logits=model.logits(params, e)), obs=a)

    got, _ = numpyro_log_density(own, (record.e, record.a), {}, {"delta": 40.0})
    expected = by_hand(PARAMS, data)[0] + stats.halfnorm(scale=50.0).logpdf(40.0)
    assert float(got) == pytest.approx(expected, rel=1e-9)


def test_gradients_of_both_modes_agree(model, data, x64):
    params = {name: jnp.asarray(value) for name, value in PARAMS.items()}
    density = jax.jit(lambda params: model.log_density(params, data))
    forward, reverse = jax.jit(jax.jacfwd(density))(params), jax.jit(jax.grad(density))(params)
    h = 1e-6
    for name in params:
        up, down = (params | {name: params[name] * (1 + s)} for s in (h, -h))
        slope = (density(up) - density(down)) / (2 * h * params[name])
        assert float(forward[name]) == pytest.approx(float(slope), rel=1e-5)
        assert float(reverse[name]) == pytest.approx(float(forward[name]), rel=1e-9)


def test_extreme_logits_stay_finite():
    logits = jnp.array([1e4, -1e4, 1e4, -1e4])
    a, known = jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.ones(4, bool)
    assert float(BernoulliEdges().log_likelihood(logits, a, known)) == pytest.approx(-2e4)


def test_what_does_not_fit_is_refused(model, data):
    with pytest.raises(ValueError, match=r"a marginal for each of \('theta', 'delta', 'b'\)"):
        EdgeModel(DPG(), prior=Prior(theta=normal(0, 1)))
    with pytest.raises(ValueError, match="no prior is called"):
        EdgeModel(DPG(), prior="best")
    for weights in (np.ones(3), -np.ones(4)):
        with pytest.raises(ValueError, match="4 numbers >= 0, one per graph"):
            model.log_density(PARAMS, data, weights)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"network": "dpg"}, r"network must be an object such as .*DPG\(\); got 'dpg'"),
        ({"readout": "affine"}, r"readout must be an object such as .*Affine\(\); got 'affine'"),
        ({"prior": {"density": (0.1, 0.5)}}, r"prior must be an object such as .*got \{'density'"),
        ({"likelihood": "bernoulli"}, "likelihood must be an object such as"),
    ],
)
def test_parts_that_are_none_are_refused(parts, message):
    with pytest.raises(TypeError, match=message):
        EdgeModel(**parts)
