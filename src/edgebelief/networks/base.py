"""The base class of networks: an iteration unrolled, over one graph or a stack of graphs.

A network implements `init`, `step` and `read` for one graph; this file runs `step` `depth` times
and does the batching. With ``depth=None`` it computes the converged solution instead, with implicit
derivatives: the network of infinite depth.
"""

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, Num

from ..edges import Support
from ..errors import InputError, InputTypeError, Remedy, Setting, SettingError
from ..incidence import Incidence, OnEdges, Square
from ..validate import complete_support, is_one_graph

# Graphs are evaluated together in one array while it has at most CACHED entries (half a megabyte
# in double precision, so that it stays in the cache), and if there are at least SEVERAL of them.
CACHED, SEVERAL = 60_000, 8

# The largest number of layers. DPG takes some 20,000 at theta = 1 to converge, and so does PDS; a
# network of five times as many is the converged one, at a thousand times its price.
MOST_LAYERS = 100_000
CONVERGED = Setting("converged", python="depth=None")  # there is no option for it

Params = TypeVar("Params", bound=tuple)  # the named tuple of a network's parameters
Carry = TypeVar("Carry")  # the state that one layer passes to the next


class Output(NamedTuple):
    """The output of a network.

    The arrays of a network with several channels have a channel axis before the last.
    """

    a: Float[Array, "... edges"]
    """The weights."""
    lam: Float[Array, "... nodes"]
    """The duals."""
    z: Float[Array, "... edges"]
    """S'lam/2 - theta e, whose positive part is `a` at convergence. Where it is negative, it tells
    how far a pair without a weight is from having one."""


class Network(eqx.Module, Generic[Params, Carry]):
    """An unrolled iteration from distances to weights and duals. Abstract.

    Settings are fields; parameters are passed in, as a named tuple of numbers or vectors. The
    properties of every network are tested in `tests/networks/test_conformance.py`; those of some
    networks only are declared by the class variables below.
    """

    depth: eqx.AbstractVar[int | None]
    """The number of layers; None for the converged solution."""

    params_type: ClassVar[Any]
    """The named tuple of its parameters; the field names are the sampling-site names."""
    nonnegative: ClassVar[bool]
    """Whether a >= 0 at every depth, with exact zeros."""
    scale_law: ClassVar[bool]
    """Whether multiplying e by c is the same as multiplying theta by c, at every depth."""
    stable: ClassVar[bool]
    """Whether output and gradients stay finite at any positive parameters."""
    kind: ClassVar[str] = "dpg"
    """The network whose priors and readout the paper gives it: "dpg", "pds" or "mimo"."""
    fewest_layers: ClassVar[int] = 1
    """The least depth. With no layer the output would not depend on the parameters."""
    forward_mode: ClassVar[bool] = True
    """Whether to differentiate in forward mode (few parameters) or in reverse mode (many)."""

    @classmethod
    def of_depth(cls, depth: int | None) -> Self:
        """Make the network with so many layers, all else as by default."""
        return cls(depth=depth)

    @abc.abstractmethod
    def init(self, params: Params, e: OnEdges, support: Incidence) -> Carry:
        """Return the state before the first layer."""

    @abc.abstractmethod
    def step(self, params: Params, carry: Carry, e: OnEdges, support: Incidence) -> Carry:
        """Apply one layer."""

    @abc.abstractmethod
    def read(self, params: Params, carry: Carry, e: OnEdges, support: Incidence) -> Output:
        """Return the output for the state after the last layer."""

    def converged(self, params: Params, e: Float[Array, " edges"], support: Support) -> Output:
        """Return the limit of the output as depth grows; networks without one raise."""
        raise InputTypeError(f"{type(self).__name__} has no converged form.")

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each parameter that is a vector."""
        return {}

    @property
    def n_channels(self) -> int | None:
        """The number of channels of its output; None if that has no channel axis."""
        return None

    @property
    def is_prepared(self) -> bool:
        """Whether it holds everything that it must learn from the data before it can be called."""
        return True

    def precompute(self, e: Float[Array, "... edges"], support: Support) -> Output | None:
        """Compute what does not depend on the parameters, once for a stack of graphs, or None."""
        return None

    def with_precomputed(self, precomputed: Output | None) -> "Network[Params, Carry]":
        """Return the network with the result of `precompute` for the graphs being evaluated."""
        return self

    def __check_init__(self) -> None:
        if self.depth is None:
            return
        whole = isinstance(self.depth, int | np.integer) and not isinstance(self.depth, bool)
        if not (whole and self.fewest_layers <= self.depth <= MOST_LAYERS):
            problem = (
                f"must be a number of layers from {self.fewest_layers} to {MOST_LAYERS:,}; got "
                f"{self.depth!r}"
            )
            converged = Remedy("{} is the converged solution, the limit of many", CONVERGED)
            raise SettingError(problem, argument="depth", remedy=converged)

    def __call__(
        self,
        params: Params,
        e: Num[ArrayLike, "... edges"],
        support: Support | None = None,
        precomputed: Output | None = None,
    ) -> Output:
        """Run the network on one graph, or a stack of graphs with the same candidate edges.

        Parameters
        ----------
        params : named tuple of numbers
            The network's parameters, the same for all graphs.
        e : array, shape (..., n_edges)
            Distances. Their dtype is the dtype of the computation.
        support : Support, optional
            The candidate edges; by default all pairs.
        precomputed : Output, optional
            The result of `precompute` for these graphs, so that it is not computed again.

        Returns
        -------
        Output
            `a` (..., n_edges), `lam` (..., n_nodes), `z` (..., n_edges); with several channels
            (..., n_channels, n_edges) and so on.
        """
        e = _as_float_array(e)
        if not isinstance(e, jax.core.Tracer) and e.ndim == 2 and is_one_graph(e):
            raise InputError(
                f"this looks like the {e.shape} distance matrix of one graph, and would be taken "
                f"for {len(e)} graphs; pass its upper triangle, Complete({len(e)}).to_vector(e)."
            )
        support = complete_support(e.shape[-1]) if support is None else support
        if e.shape[-1] != support.n_edges:
            problem = f"end in {e.shape[-1]} entries; the support has {support.n_edges}."
            raise InputError(problem, argument="distances")
        params = jax.tree.map(lambda p: jnp.asarray(p, e.dtype), params)
        flat = e.reshape(-1, e.shape[-1])
        precomputed = self.precompute(e, support) if precomputed is None else precomputed
        precomputed = jax.tree.map(
            lambda x: jnp.asarray(x, e.dtype).reshape(len(flat), *x.shape[e.ndim - 1 :]),
            precomputed,
        )
        together = _together(flat.shape[0], support)
        if self.depth is None or together < 2:
            states = jax.vmap(partial(self._one_graph, params, support))(flat, precomputed)
        else:
            states = self._side_by_side(params, flat, support, together, precomputed)
        return jax.tree.map(lambda x: x.reshape(*e.shape[:-1], *x.shape[1:]), states)

    def with_tangents(
        self,
        params: Params,
        e: Num[ArrayLike, "... edges"],
        support: Support | None = None,
        precomputed: Output | None = None,
    ) -> tuple[Output, tuple[Output, ...]]:
        """Return the output and its derivatives with respect to the parameters, by forward mode.

        Memory does not grow with depth. The derivatives are in a named tuple like `params`, with
        an `Output` in each field; for a parameter that is a vector, its axis comes first.

        Examples
        --------
        >>> import jax.numpy as jnp
        >>> from edgebelief.networks import DPG, DPGParams
        >>> state, slopes = DPG(depth=None).with_tangents(DPGParams(1.0), jnp.array([0.0]))
        >>> state.a, slopes.theta.a  # two nodes at distance 0 keep weight 1 at any theta
        (Array([1.], dtype=float32), Array([0.], dtype=float32))
        """
        e = _as_float_array(e)
        params = type(params)(*(jnp.asarray(p, e.dtype) for p in params))

        def along(direction: Params) -> tuple[Output, Output]:
            return jax.jvp(lambda p: self(p, e, support, precomputed), (params,), (direction,))

        numbers, unravel = ravel_pytree(params)
        if numbers.size == 1:  # an axis of length one would cost time in every layer
            state, tangent = along(jax.tree.map(jnp.ones_like, params))
            tangents = jax.tree.map(lambda x: x[None], tangent)
        else:
            basis = jax.vmap(unravel)(jnp.eye(numbers.size, dtype=numbers.dtype))
            state, tangents = jax.vmap(along, out_axes=(None, 0))(basis)
        each, start = [], 0
        for p in params:
            index = slice(start, start + p.size) if p.ndim else start
            each.append(jax.tree.map(lambda x, index=index: x[index], tangents))
            start += p.size
        return state, type(params)(*each)

    def _one_graph(
        self, params: Params, support: Support, e: OnEdges, precomputed: Output | None
    ) -> Output:
        if self.depth is None:
            return self.converged(params, e, support)
        if precomputed is not None:
            precomputed = _mapped(support.to_inner, precomputed, e.ndim)
        e_inner = support.to_inner(e)
        output = self.with_precomputed(precomputed)._layers(params, e_inner, support.inner)
        return _mapped(support.from_inner, output, e_inner.ndim)

    def _layers(self, params: Params, e: OnEdges, inner: Incidence) -> Output:
        """Run all layers: the only scan over depth in the package."""

        def layer(carry: Carry, _: None) -> tuple[Carry, None]:
            return self.step(params, carry, e, inner), None

        last, _ = lax.scan(layer, self.init(params, e, inner), None, length=self.depth)
        return self.read(params, last, e, inner)

    def _side_by_side(
        self,
        params: Params,
        e: Float[Array, "graphs edges"],
        support: Support,
        together: int,
        precomputed: Output | None,
    ) -> Output:
        """Run `together` graphs at a time, in one array of the inner layout with graphs last."""
        n_graphs, parts = e.shape[0], -(-e.shape[0] // together)
        together = -(-n_graphs // parts)

        def filled(x: Array) -> Array:
            """Split into parts; copies of the first graph fill up the last part."""
            copies = jnp.broadcast_to(x[:1], (parts * together - n_graphs, *x.shape[1:]))
            return jnp.concatenate([x, copies]).reshape(parts, together, *x.shape[1:])

        def part(inputs: tuple[Float[Array, "together edges"], Output | None]) -> Output:
            e, precomputed = inputs
            inner = jax.vmap(support.to_inner, out_axes=-1)(e)
            if precomputed is not None:
                layout = jax.vmap(support.to_inner, in_axes=-1, out_axes=-1)
                last = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), precomputed)
                precomputed = _mapped(layout, last, 2)
            last = self.with_precomputed(precomputed)._layers(params, inner, support.inner)
            back = jax.vmap(support.from_inner, in_axes=-1, out_axes=-1)
            return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), _mapped(back, last, inner.ndim))

        all_parts = filled(e), jax.tree.map(filled, precomputed)
        if parts == 1:
            return part(jax.tree.map(lambda x: x[0], all_parts))
        states = lax.map(part, all_parts)
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:n_graphs], states)


def _mapped(layout: Callable[[Array], Array], output: Output, ndim: int) -> Output:
    """Convert the edge arrays of an output to a layout; `ndim` of their axes are not channels."""

    def each(x: Array) -> Array:
        return jax.vmap(each)(x) if x.ndim > ndim else layout(x)

    return Output(each(output.a), output.lam, each(output.z))


def _together(n_graphs: int, support: Support) -> int:
    """Return how many graphs to evaluate in one array: as many as fit the cache, if several do."""
    if not isinstance(support.inner, Square):
        return 1
    room = CACHED // support.n_nodes**2
    return min(room, n_graphs) if min(room, n_graphs) >= SEVERAL else 1


def _as_float_array(e: ArrayLike) -> Array:
    e = jnp.asarray(e)
    return e if jnp.issubdtype(e.dtype, jnp.floating) else e.astype(float)
