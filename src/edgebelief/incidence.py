"""The two linear maps between edges and nodes that every iteration uses.

    degrees         (S a)_i     = sum of a over the candidate edges at node i
    endpoint sums   (S' lam)_ij = lam_i + lam_j

`Incidence` is their interface; `Square` implements it on (N, N) arrays, the fastest layout inside a
loop over all pairs. `edges` builds the graphs of the rest of the package on it.
"""

import abc
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Float

from .errors import InputError

Array = Any  # a NumPy or a JAX array; a function of both returns the kind that it is given
Scalar = float | Float[Array, ""]  # a Python number, or an array without axes
OnEdges = Float[Array, "*edges"]  # a number for each edge, in the layout of an `Incidence`
OnNodes = Float[Array, "*nodes"]  # a number for each node, in that layout

# With at most this many nodes a loop over rows is unrolled, so that the compiler can fuse it.
UNROLLED = 48


def namespace(x: object) -> ModuleType:
    """Return `jax.numpy` for JAX arrays (traced or not), NumPy for everything else."""
    return jnp if isinstance(x, jax.Array) else np


class Incidence(eqx.Module):
    """A set of candidate edges as an iteration sees it: S, its transpose S', and its norm."""

    n_nodes: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.n_nodes < 2:
            raise InputError(f"a graph needs at least 2 nodes; got {self.n_nodes}.")

    @property
    @abc.abstractmethod
    def max_degree(self) -> int:
        """L, the largest number of candidate edges at a node (N-1 when complete): ||S||^2 <= 2L."""

    @abc.abstractmethod
    def degrees(self, a: OnEdges) -> OnNodes:
        """S a: the sum of `a` over the candidate edges at each node."""

    @abc.abstractmethod
    def endpoint_sums(self, lam: OnNodes) -> OnEdges:
        """S' lam: lam_i + lam_j for each candidate edge."""

    def edges_only(self, a: OnEdges) -> OnEdges:
        """Return `a` with zeros at the entries of its layout that are no candidate edge."""
        return a

    def positive_degrees(self, lam: OnNodes, theta: Scalar, e: OnEdges) -> OnNodes:
        """S max(0, S'lam/2 - theta e): the degrees of the graph that the duals `lam` imply."""
        return self.degrees(jnp.maximum(self.endpoint_sums(lam) / 2 - theta * e, 0))

    def mixed_degrees(
        self,
        lam: Float[Array, "channels *nodes"],
        theta: Float[Array, "channels channels"],
        e: OnEdges,
    ) -> Float[Array, "channels *nodes"]:
        """For each channel j the mean over channels i of `positive_degrees(lam_i, theta_ji, e)`."""

        def from_channel(lam: OnNodes, theta: Scalar) -> OnNodes:
            return Incidence.positive_degrees(self, lam, theta, e)

        return jax.vmap(lambda row: jax.vmap(from_channel)(lam, row).mean(0))(theta)

    def full_nodes(self, e: OnEdges, value: float) -> OnNodes:
        """Return a node array filled with `value`, with the dtype and layout of `e`."""
        return namespace(e).full(self.n_nodes, value, e.dtype)


Pairs = Float[Array, "nodes nodes *graphs"]  # the layouts of `Square`
Nodes = Float[Array, "nodes *graphs"]


class Square(Incidence):
    """All pairs, with an edge array stored as an (N, N) matrix whose diagonal is ignored.

    Used in loops over the complete graph: it needs no gathers, but visits every edge twice. It is
    three to five times faster than the vector from a few hundred nodes on.

    Arrays may have further axes, (N, N, graphs) and (N, graphs). Many small graphs in one array
    make long rows for the processor: four times faster at 50 graphs of 20 nodes.
    """

    @property
    def max_degree(self) -> int:
        return self.n_nodes - 1

    def degrees(self, a: Pairs) -> Nodes:
        return self.edges_only(a).sum(0)  # adding whole rows is faster than adding within rows

    def endpoint_sums(self, lam: Nodes) -> Pairs:
        return lam[:, None] + lam[None, :]

    def edges_only(self, a: Pairs) -> Pairs:
        off_diagonal = ~np.eye(self.n_nodes, dtype=bool)
        return namespace(a).where(off_diagonal.reshape(*a.shape[:2], *[1] * (a.ndim - 2)), a, 0)

    def positive_degrees(self, lam: Nodes, theta: Scalar, e: Pairs) -> Nodes:
        if self.n_nodes > UNROLLED:
            return super().positive_degrees(lam, theta, e)
        return _row_by_row(lam, jnp.asarray(theta, e.dtype), e)

    def mixed_degrees(
        self,
        lam: Float[Array, "channels nodes *graphs"],
        theta: Float[Array, "channels channels"],
        e: Pairs,
    ) -> Float[Array, "channels nodes *graphs"]:
        if self.n_nodes > UNROLLED:
            return super().mixed_degrees(lam, theta, e)
        return _mixed_row_by_row(lam, theta, e)

    def full_nodes(self, e: Pairs, value: float) -> Nodes:
        return namespace(e).full(e.shape[1:], value, e.dtype)


@jax.custom_jvp
def _row_by_row(lam: Array, theta: Array, e: Array) -> Array:
    """Compute `Square.positive_degrees` of a few nodes by adding one row after the other.

    No edge array is ever stored. That makes it three times faster than the plain form, and twice
    as fast where the tangent is computed as well.
    """
    total = jnp.zeros_like(lam)
    for k in range(len(lam)):
        slack, present = _row(lam, theta, e, k)
        total += jnp.where(present, slack, 0)
    return total


def _row(lam: Array, theta: Array, e: Array, k: int) -> tuple[Array, Array]:
    """Return row k of S'lam/2 - theta e, and where it is positive and not on the diagonal."""
    slack = (lam + lam[k]) / 2 - theta * e[k]
    other = (np.arange(len(lam)) != k).reshape(-1, *[1] * (lam.ndim - 1))
    return slack, (slack > 0) & other


def _row_by_row_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    lam, theta, e = primals
    d_lam, d_theta, d_e = tangents
    total, tangent = jnp.zeros_like(lam), jnp.zeros_like(lam)
    for k in range(len(lam)):
        slack, present = _row(lam, theta, e, k)
        total += jnp.where(present, slack, 0)
        d_slack: Array = 0
        if not isinstance(d_lam, SymbolicZero):
            d_slack = d_slack + (d_lam + d_lam[k]) / 2
        if not isinstance(d_theta, SymbolicZero):
            d_slack = d_slack - d_theta * e[k]
        if not isinstance(d_e, SymbolicZero):
            d_slack = d_slack - theta * d_e[k]
        tangent += jnp.where(present, d_slack, 0)
    return total, tangent


_row_by_row.defjvp(_row_by_row_jvp, symbolic_zeros=True)


@jax.custom_vjp
def _mixed_row_by_row(lam: Array, theta: Array, e: Array) -> Array:
    """Compute `Square.mixed_degrees` of a few nodes without storing an edge array.

    Its derivative is in reverse mode, because the channels have many parameters.
    """
    total = jnp.zeros_like(lam)
    for k in range(lam.shape[1]):
        slack, present = _mixed_row(lam, theta, e, k)
        total += jnp.where(present, slack, 0).mean(1)
    return total


def _mixed_row(lam: Array, theta: Array, e: Array, k: int) -> tuple[Array, Array]:
    """Return row k of S'lam_i/2 - theta_ji e, shape (j, i, nodes, ...), and its active edges."""
    each = theta.reshape(*theta.shape, *[1] * (lam.ndim - 1))
    slack = ((lam + lam[:, k : k + 1]) / 2) - each * e[k]
    other = (np.arange(lam.shape[1]) != k).reshape(-1, *[1] * (lam.ndim - 2))
    return slack, (slack > 0) & other


def _mixed_forward(lam: Array, theta: Array, e: Array) -> tuple[Array, tuple[Array, ...]]:
    return _mixed_row_by_row(lam, theta, e), (lam, theta, e)


def _mixed_back(inputs: tuple[Array, ...], cotangent: Array) -> tuple[Array, ...]:
    """Pull the cotangent of the degrees back to (lam, theta, e).

    An edge adds to the degrees of both its ends, so row k receives (out + out[k])/2 for lam and
    theta. Each entry of e is used in one row only, so there it is `out` itself.
    """
    lam, theta, e = inputs
    out = cotangent / len(lam)
    each = theta.reshape(*theta.shape, *[1] * (lam.ndim - 1))
    by_lam, by_e, weighted = jnp.zeros_like(lam), [], jnp.zeros((*theta.shape, *lam.shape[1:]))
    for k in range(lam.shape[1]):
        _, present = _mixed_row(lam, theta, e, k)
        both = jnp.where(present, ((out + out[:, k : k + 1]) / 2)[:, None], 0)
        by_lam += both.sum(0)
        weighted += both * e[k]
        by_e.append(-(each * jnp.where(present, out[:, None], 0)).sum((0, 1)))
    by_theta = -weighted.sum(tuple(range(2, weighted.ndim)))
    return by_lam, by_theta, jnp.stack(by_e)


_mixed_row_by_row.defvjp(_mixed_forward, _mixed_back)
