"""MIMO-E: a few more layers, with new parameters, on top of a trained MIMO."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import relu
from jaxtyping import Array, ArrayLike, Float

from ..convex.iterations import DualState, dpg_dual_step
from ..edges import Support
from ..errors import InputError, SettingError, SettingTypeError
from ..incidence import Incidence, OnEdges, Scalar
from .base import Network, Output
from .mimo import MIMO, MIMOParams


class HeadParams(NamedTuple):
    """One theta for each channel that has a head."""

    theta: Float[Array, " heads"]


def _as_tuple(theta: ArrayLike | Sequence[float] | None) -> tuple[float, ...] | None:
    return None if theta is None else tuple(map(float, np.ravel(theta)))


class StochasticHead(Network[HeadParams, DualState]):
    """A trained `MIMO` followed by single-channel `DPG` networks, the heads.

    Channel j of the base ends in a state (a, lam). For the first `heads` channels this is the
    initial state of `depth` more layers of `DPG` on the same distances, with a new theta_j; the
    other channels stay as they are. Only the new parameters are uncertain: this is the paper's
    partially stochastic network.

    Parameters
    ----------
    base : MIMO
    theta : array, shape (channels^2,), optional
        The trained parameters of the base, row by row. Without them the base is trained, by `MAP`,
        on the data that the model is fitted to.
    heads : int, optional
        The number of channels with a head. By default all, as in the paper's text; its published
        numbers are of 2 heads on 4 channels.
    depth : int
        The number of layers of the heads; a head without layers is its base.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.networks import MIMO, HeadParams, StochasticHead
    >>> e = jnp.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0])
    >>> network = StochasticHead(MIMO(channels=2), theta=(1.0, 0.5, 0.5, 1.0))
    >>> network(HeadParams(jnp.array([0.8, 0.6])), e).a.shape
    (2, 6)
    """

    base: MIMO = eqx.field(default_factory=MIMO)
    theta: tuple[float, ...] | None = eqx.field(static=True, default=None, converter=_as_tuple)
    heads: int | None = eqx.field(static=True, default=None)
    depth: int | None = eqx.field(static=True, default=20)
    state: Output | None = None
    """The output of the base for the graphs being evaluated; see `with_precomputed`."""

    params_type = HeadParams
    nonnegative = True
    scale_law = False
    stable = True
    kind = "mimo"
    fewest_layers = 0

    @classmethod
    def of_depth(cls, depth: int | None) -> Self:
        """Make a head on a base of so many layers."""
        return cls(base=MIMO.of_depth(depth))

    def __check_init__(self) -> None:
        if not isinstance(self.base, MIMO):
            raise SettingTypeError(f"the base must be a MIMO; got {self.base!r}.")
        channels = self.base.channels
        if self.theta is not None and len(self.theta) != channels**2:
            wanted = f"theta of a base with {channels} channels must be {channels**2} numbers"
            raise SettingError(f"{wanted}; got {len(self.theta)}.")
        if self.heads is not None and not (type(self.heads) is int and 1 <= self.heads <= channels):
            wanted = f"a whole number from 1 to {channels}, the channels of the base"
            raise SettingError(f"must be {wanted}; got {self.heads!r}.", argument="heads")
        if self.depth is None:
            raise SettingError("a head has layers, and no converged form; give it a depth.")

    @property
    def n_heads(self) -> int:
        return self.base.channels if self.heads is None else self.heads

    @property
    def sizes(self) -> dict[str, int]:
        return {"theta": self.n_heads}

    @property
    def n_channels(self) -> int:
        return self.base.channels

    @property
    def is_prepared(self) -> bool:
        return self.theta is not None

    def trained(self, theta: ArrayLike | Sequence[float]) -> "StochasticHead":
        """Return this network on a base with the parameters `theta`."""
        return replace(self, theta=_as_tuple(theta))

    def precompute(self, e: Float[Array, "... edges"], support: Support) -> Output:
        if self.theta is None:
            raise InputError("the base is not trained: fit a model with it, or give it theta.")
        return self.base(MIMOParams(jnp.asarray(self.theta, e.dtype)), e, support)

    def with_precomputed(self, precomputed: Output | None) -> "StochasticHead":
        return replace(self, state=precomputed)

    def init(self, params: HeadParams, e: OnEdges, support: Incidence) -> DualState:
        assert self.state is not None
        a, lam = (x[: self.n_heads] for x in (self.state.a, self.state.lam))
        return DualState(jax.vmap(support.degrees)(a), lam)

    def step(
        self, params: HeadParams, carry: DualState, e: OnEdges, support: Incidence
    ) -> DualState:
        def head_step(state: DualState, theta: Scalar) -> DualState:
            return dpg_dual_step(state, e, theta, support)

        return jax.vmap(head_step)(carry, jnp.asarray(params.theta))

    def read(self, params: HeadParams, carry: DualState, e: OnEdges, support: Incidence) -> Output:
        k, base = self.n_heads, self.state
        assert base is not None
        theta = jnp.asarray(params.theta).reshape(-1, *[1] * e.ndim)
        z = jax.vmap(support.endpoint_sums)(carry.lam) / 2 - theta * e
        a = relu(z) if self.depth else base.a[:k]
        head = Output(a, carry.lam, z if self.depth else base.z[:k])
        return jax.tree.map(lambda x, y: jnp.concatenate([x, y[k:]]), head, base)
