"""MIMO: several channels of DPG that are mixed in every layer."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import relu
from jaxtyping import Array, Float

from ..convex.iterations import DualState, positive_root
from ..errors import SettingError
from ..incidence import Incidence, OnEdges
from .base import Network, Output


class MIMOParams(NamedTuple):
    """The matrix of theta[j, i], from channel i to channel j, as a vector, row by row."""

    theta: Float[Array, " channels**2"]


class MIMO(Network[MIMOParams, DualState]):
    """A network of `depth` layers and C channels, which the layers mix.

    Each channel has duals, updated from its degrees as in `DPG`. The weights of channel j are then
    the mean of the weights that the duals of all channels i imply, each at a theta_ji:

        u_j   = S a_j - (N-1) lam_j
        lam_j = (sqrt(u_j^2 + 4(N-1)) - u_j) / (2(N-1))
        a_j   = mean over i of max(0, S'lam_i/2 - theta_ji e)

    With one channel it is `DPG`. It does not solve a convex problem, so it has no converged form.
    Renumbering the channels changes nothing, and channels with equal thetas stay equal.

    Parameters
    ----------
    channels : int
    depth : int
        The number of layers.
    a0, lam0 : float
        The state before the first layer, on every edge and node of every channel.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.networks import MIMO, MIMOParams
    >>> e = jnp.array([1.0, 9.0, 9.0, 9.0, 9.0, 1.0])
    >>> MIMO(channels=2)(MIMOParams(jnp.array([1.0, 0.5, 0.5, 1.0])), e).a.shape
    (2, 6)
    """

    channels: int = eqx.field(static=True, default=4)
    depth: int | None = eqx.field(static=True, default=200)
    a0: float = eqx.field(static=True, default=0.5)
    lam0: float = eqx.field(static=True, default=17.0)

    params_type = MIMOParams
    nonnegative = True
    scale_law = True
    stable = True
    kind = "mimo"
    forward_mode = False

    def __check_init__(self) -> None:
        if type(self.channels) is not int or self.channels < 1:
            problem = f"must be a whole number, at least 1; got {self.channels!r}."
            raise SettingError(problem, argument="channels")
        if self.depth is None:
            raise SettingError("MIMO has no converged form, as DPG has; give it a depth, say 200.")

    @property
    def sizes(self) -> dict[str, int]:
        return {"theta": self.channels**2}

    @property
    def n_channels(self) -> int:
        return self.channels

    def init(self, params: MIMOParams, e: OnEdges, support: Incidence) -> DualState:
        d = support.degrees(jnp.full_like(e, self.a0))
        lam = support.full_nodes(e, self.lam0)
        return DualState(*(jnp.stack([x] * self.channels) for x in (d, lam)))

    def step(
        self, params: MIMOParams, carry: DualState, e: OnEdges, support: Incidence
    ) -> DualState:
        lam = positive_root(carry.d - support.max_degree * carry.lam, support.max_degree)
        return DualState(support.mixed_degrees(lam, self.matrix(params), e), lam)

    def read(self, params: MIMOParams, carry: DualState, e: OnEdges, support: Incidence) -> Output:
        ends = jax.vmap(support.endpoint_sums)(carry.lam) / 2

        def channel(row: Float[Array, " channels"]) -> tuple[Array, Array]:
            slack = ends - row.reshape(-1, *[1] * e.ndim) * e
            return relu(slack).mean(0), slack.mean(0)

        a, z = jax.vmap(channel)(self.matrix(params))
        return Output(a, carry.lam, z)

    def matrix(self, params: MIMOParams) -> Float[Array, "channels channels"]:
        """Return theta as a matrix."""
        return jnp.asarray(params.theta).reshape(self.channels, self.channels)
