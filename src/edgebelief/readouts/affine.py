"""The paper's readout: p = sigmoid(delta a - b)."""

from typing import Any, NamedTuple

from .base import Readout


class AffineParams(NamedTuple):
    """delta: how fast belief grows with the weight. b: how little is believed at weight zero."""

    delta: Any
    b: Any


class Affine(Readout):
    """logit = delta a - b.

    Every pair that the network gives weight zero gets the same probability, sigmoid(-b).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.networks import DPG, DPGParams
    >>> from edgebelief.readouts import Affine, AffineParams
    >>> e = jnp.array([1.0, 9.0, 9.0])
    >>> state = DPG()(DPGParams(theta=0.5), e)
    >>> Affine()(AffineParams(delta=10.0, b=2.0), state, e).round(1)
    Array([ 5.4, -1.4, -1.4], dtype=float32)
    """

    params_type = AffineParams

    def __call__(self, params, state, e):
        return params.delta * state.a - params.b
