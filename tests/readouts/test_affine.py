import jax
import jax.numpy as jnp
import numpy as np

from edgebelief.networks import DPG, DPGParams
from edgebelief.readouts import Affine, AffineParams
from problems import distances_of_kind


def test_affine_is_delta_a_minus_b_and_linear_in_its_parameters(x64, rng):
    e = np.stack([distances_of_kind("geometric", 6, rng) for _ in range(2)])
    state = DPG(depth=20)(DPGParams(0.5), e)
    params = AffineParams(delta=50.0, b=5.0)
    logits = Affine()(params, state, e)
    np.testing.assert_allclose(logits, 50 * state.a - 5)
    slope = jax.jacfwd(lambda p: Affine()(p, state, e))(AffineParams(*map(jnp.asarray, params)))
    np.testing.assert_allclose(slope.delta, state.a)
    np.testing.assert_allclose(slope.b, -jnp.ones_like(state.a))
