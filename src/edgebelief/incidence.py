"""The two linear maps between edges and nodes, as an iteration needs them.

    degrees         (S a)_i     = sum of a over the candidate edges at node i
    endpoint sums   (S' lam)_ij = lam_i + lam_j

`Incidence` says what there is; `Square` is the layout for loops over all pairs. What a graph is to
the rest of the package, see `edges`.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Float

from .errors import InputError

Array = Any  # a NumPy or a JAX array; what comes back is of the kind that went in

# Up to so many nodes a loop over rows is written out, for the compiler to merge.
UNROLLED = 48


def namespace(x: Array) -> Any:
    """`jax.numpy` for JAX arrays (traced or not), NumPy for everything else."""
    return jnp if isinstance(x, jax.Array) else np


class Incidence(eqx.Module):
    """What an iteration needs to know of a set of candidate edges: S, its transpose, its norm."""

    n_nodes: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.n_nodes < 2:
            raise InputError(f"a graph needs at least 2 nodes; got {self.n_nodes}.")

    @property
    @abc.abstractmethod
    def max_degree(self) -> int:
        """L, the largest number of candidate edges at a node (N-1 when complete): ||S||^2 <= 2L."""

    @abc.abstractmethod
    def degrees(self, a: Float[Array, " edges"]) -> Float[Array, " nodes"]:
        """S a: the sum of `a` over the candidate edges at each node."""

    @abc.abstractmethod
    def endpoint_sums(self, lam: Float[Array, " nodes"]) -> Float[Array, " edges"]:
        """S' lam: lam_i + lam_j for each candidate edge."""

    def edges_only(self, a: Float[Array, " edges"]) -> Float[Array, " edges"]:
        """An edge array with zeros in whatever places of its layout are no candidate edge."""
        return a

    def positive_degrees(
        self, lam: Float[Array, " nodes"], theta: Array, e: Float[Array, " edges"]
    ) -> Float[Array, " nodes"]:
        """S max(0, S'lam/2 - theta e): the degrees of the graph that the duals `lam` imply."""
        return self.degrees(jnp.maximum(self.endpoint_sums(lam) / 2 - theta * e, 0))

    def mixed_degrees(
        self,
        lam: Float[Array, "channels nodes"],
        theta: Float[Array, "channels channels"],
        e: Float[Array, " edges"],
    ) -> Float[Array, "channels nodes"]:
        """For each channel j the mean over channels i of `positive_degrees(lam_i, theta_ji, e)`."""

        def one(lam: Array, theta: Array) -> Array:
            return Incidence.positive_degrees(self, lam, theta, e)

        return jax.vmap(lambda row: jax.vmap(one)(lam, row).mean(0))(theta)

    def full_nodes(self, e: Float[Array, " edges"], value: float) -> Float[Array, " nodes"]:
        """A node array filled with `value`, of the kind of the edge array `e`."""
        return namespace(e).full(self.n_nodes, value, e.dtype)


class Square(Incidence):
    """All pairs, with an edge array laid out as an (N, N) matrix whose diagonal is ignored.

    The layout for loops over the complete graph: no gathers, at the price of visiting every edge
    twice. Three to five times faster than the vector from a few hundred nodes on.

    Further axes may follow: (N, N, graphs) and (N, graphs). Many small graphs side by side make
    long rows for the processor: four times faster at 50 graphs of 20 nodes.
    """

    @property
    def max_degree(self) -> int:
        return self.n_nodes - 1

    def degrees(self, a: Float[Array, "nodes nodes *graphs"]) -> Float[Array, "nodes *graphs"]:
        return self.edges_only(a).sum(0)  # whole rows are added: faster than within rows

    def endpoint_sums(
        self, lam: Float[Array, "nodes *graphs"]
    ) -> Float[Array, "nodes nodes *graphs"]:
        return lam[:, None] + lam[None, :]

    def edges_only(
        self, a: Float[Array, "nodes nodes *graphs"]
    ) -> Float[Array, "nodes nodes *graphs"]:
        off_diagonal = ~np.eye(self.n_nodes, dtype=bool)
        return namespace(a).where(off_diagonal.reshape(*a.shape[:2], *[1] * (a.ndim - 2)), a, 0)

    def positive_degrees(
        self,
        lam: Float[Array, "nodes *graphs"],
        theta: Array,
        e: Float[Array, "nodes nodes *graphs"],
    ) -> Float[Array, "nodes *graphs"]:
        if self.n_nodes > UNROLLED:
            return super().positive_degrees(lam, theta, e)
        return _row_by_row(lam, jnp.asarray(theta, e.dtype), e)

    def mixed_degrees(
        self,
        lam: Float[Array, "channels nodes *graphs"],
        theta: Float[Array, "channels channels"],
        e: Float[Array, "nodes nodes *graphs"],
    ) -> Float[Array, "channels nodes *graphs"]:
        if self.n_nodes > UNROLLED:
            return super().mixed_degrees(lam, theta, e)
        return _mixed_row_by_row(lam, theta, e)

    def full_nodes(
        self, e: Float[Array, "nodes nodes *graphs"], value: float
    ) -> Float[Array, "nodes *graphs"]:
        return namespace(e).full(e.shape[1:], value, e.dtype)


@jax.custom_jvp
def _row_by_row(lam: Array, theta: Array, e: Array) -> Array:
    """`Square.positive_degrees` of a few nodes: one row after the other is made and added.

    No edge array is ever stored, which makes it three times faster than the plain form; with the
    tangent beside it, twice.
    """
    total = jnp.zeros_like(lam)
    for k in range(len(lam)):
        slack, present = _row(lam, theta, e, k)
        total += jnp.where(present, slack, 0)
    return total


def _row(lam: Array, theta: Array, e: Array, k: int) -> tuple[Array, Array]:
    """Row k of S'lam/2 - theta e, and where it is positive and off the diagonal."""
    slack = (lam + lam[k]) / 2 - theta * e[k]
    other = (np.arange(len(lam)) != k).reshape(-1, *[1] * (lam.ndim - 1))
    return slack, (slack > 0) & other


def _row_by_row_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    lam, theta, e = primals
    d_lam, d_theta, d_e = tangents
    total, change = jnp.zeros_like(lam), jnp.zeros_like(lam)
    for k in range(len(lam)):
        slack, present = _row(lam, theta, e, k)
        total += jnp.where(present, slack, 0)
        moved: Any = 0
        if not isinstance(d_lam, SymbolicZero):
            moved = moved + (d_lam + d_lam[k]) / 2
        if not isinstance(d_theta, SymbolicZero):
            moved = moved - d_theta * e[k]
        if not isinstance(d_e, SymbolicZero):
            moved = moved - theta * d_e[k]
        change += jnp.where(present, moved, 0)
    return total, change


_row_by_row.defjvp(_row_by_row_jvp, symbolic_zeros=True)


@jax.custom_vjp
def _mixed_row_by_row(lam: Array, theta: Array, e: Array) -> Array:
    """`Square.mixed_degrees` of a few nodes, without an edge array.

    Its derivative comes back, rather than along: many parameters share one pass.
    """
    total = jnp.zeros_like(lam)
    for k in range(lam.shape[1]):
        slack, present = _mixed_row(lam, theta, e, k)
        total += jnp.where(present, slack, 0).mean(1)
    return total


def _mixed_row(lam: Array, theta: Array, e: Array, k: int) -> tuple[Array, Array]:
    """Row k of S'lam_i/2 - theta_ji e, (j, i, nodes, ...), and where it counts."""
    each = theta.reshape(*theta.shape, *[1] * (lam.ndim - 1))
    slack = ((lam + lam[:, k : k + 1]) / 2) - each * e[k]
    other = (np.arange(lam.shape[1]) != k).reshape(-1, *[1] * (lam.ndim - 2))
    return slack, (slack > 0) & other


def _mixed_forward(lam: Array, theta: Array, e: Array) -> tuple[Array, Any]:
    return _mixed_row_by_row(lam, theta, e), (lam, theta, e)


def _mixed_back(given: Any, out: Array) -> tuple[Array, Array, Array]:
    """Both ends of an edge answer for its weight: (out + out[k])/2, and rows are columns."""
    lam, theta, e = given
    out = out / len(lam)
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
