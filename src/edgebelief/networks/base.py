"""An unrolled iteration as a network: the one scan, the one place that batches.

A network writes `init`, `step` and `read` for one graph; this file runs `step` `depth` times, over
one graph or a stack of them. With ``depth=None`` it is the converged solution instead, with
implicit derivatives: infinite depth, and no truncation.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..edges import Support
from ..errors import InputError, InputTypeError, SettingError
from ..incidence import Incidence, Square
from ..validate import complete_support, is_one_graph

# Graphs are put side by side while an edge array of theirs has at most so many entries (half a
# megabyte in double precision), and if there are several.
CACHED, SEVERAL = 60_000, 8


class Output(NamedTuple):
    """What a network knows at the end.

    A network of several channels has an axis for them before the last.
    """

    a: Float[Array, "... edges"]
    """Weights."""
    lam: Float[Array, "... nodes"]
    """Duals."""
    z: Float[Array, "... edges"]
    """S'lam/2 - theta e, of which `a` is the positive part at convergence: how near a pair without
    weight came to having one."""


class Network(eqx.Module):
    """From distances to what an unrolled iteration knows at its end. Abstract.

    Settings are fields; parameters are passed in, as a named tuple of numbers or vectors. What is
    true of every network is stated in `tests/networks/test_conformance.py`; what is true of some,
    each class declares.
    """

    depth: eqx.AbstractVar[int | None]
    """Layers; None for the converged solution."""

    params_type: ClassVar[Any]
    """The named tuple of its parameters; the field names are the sampling-site names."""
    nonnegative: ClassVar[bool]
    """Whether a >= 0 at every depth, with exact zeros."""
    scale_law: ClassVar[bool]
    """Whether multiplying e by c is the same as multiplying theta by c, at every depth."""
    stable: ClassVar[bool]
    """Whether output and gradients stay finite at any positive parameters."""
    kind: ClassVar[str] = "dpg"
    """Whose priors and readout the paper gives it: "dpg", "pds" or "mimo"."""
    forward_mode: ClassVar[bool] = True
    """Whether derivatives run along with the layers (few parameters), or come back (many)."""

    @classmethod
    def of_depth(cls, depth: int | None) -> Self:
        """Make the network with so many layers, all else as by default."""
        return cls(depth=depth)

    @abc.abstractmethod
    def init(self, params: Any, e: Float[Array, " edges"], support: Incidence) -> Any:
        """What enters the first layer."""

    @abc.abstractmethod
    def step(self, params: Any, carry: Any, e: Float[Array, " edges"], support: Incidence) -> Any:
        """One layer."""

    @abc.abstractmethod
    def read(
        self, params: Any, carry: Any, e: Float[Array, " edges"], support: Incidence
    ) -> Output:
        """What there is to know in what leaves the last layer."""

    def converged(self, params: Any, e: Float[Array, " edges"], support: Support) -> Output:
        """What `read` tends to as depth grows; networks without a limit refuse ``depth=None``."""
        raise InputTypeError(f"{type(self).__name__} has no converged form.")

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each parameter is that is a vector."""
        return {}

    @property
    def n_channels(self) -> int | None:
        """How many channels its output has; None for no axis of them."""
        return None

    @property
    def is_prepared(self) -> bool:
        """Whether it has seen what it needs to see of the data."""
        return True

    def precompute(self, e: Float[Array, "... edges"], support: Support) -> Output | None:
        """What is computed once for a stack of graphs, whatever the parameters; None if nothing."""
        return None

    def with_precomputed(self, precomputed: Output | None) -> "Network":
        """The network with what was computed precompute, for the graphs at hand."""
        return self

    def __check_init__(self) -> None:
        whole = isinstance(self.depth, int | np.integer) and not isinstance(self.depth, bool)
        if self.depth is not None and not (whole and self.depth >= 0):
            raise SettingError(
                f"must be a number of layers (0, 1, 2, ...), or None for the converged solution; "
                f"got {self.depth!r}.",
                argument="depth",
            )

    def __call__(
        self,
        params: Any,
        e: Float[Array, "... edges"],
        support: Support | None = None,
        precomputed: Output | None = None,
    ) -> Output:
        """The last state, for one graph or a stack of graphs on the same candidate edges.

        Parameters
        ----------
        params : named tuple of numbers
            The network's parameters, the same for all graphs.
        e : array, shape (..., n_edges)
            Distances. Their dtype is the dtype of the computation.
        support : Support, optional
            The candidate edges; by default all pairs.
        precomputed : Output, optional
            What `precompute` returned for them, so that it is not computed again.

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
            states = jax.vmap(lambda one, b: self._one_graph(params, one, support, b))(
                flat, precomputed
            )
        else:
            states = self._side_by_side(params, flat, support, together, precomputed)
        return jax.tree.map(lambda x: x.reshape(*e.shape[:-1], *x.shape[1:]), states)

    def with_tangents(
        self,
        params: Any,
        e: Float[Array, "... edges"],
        support: Support | None = None,
        precomputed: Output | None = None,
    ) -> tuple[Output, Any]:
        """The last state, and its derivative with respect to each parameter, by forward mode.

        Memory does not grow with depth. The derivatives come as the parameters' named tuple, with
        an `Output` in each place; of a vector of parameters with an axis for them first.

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

        def along(direction: Any) -> tuple[Output, Output]:
            return jax.jvp(lambda p: self(p, e, support, precomputed), (params,), (direction,))

        numbers, unravel = ravel_pytree(params)
        if numbers.size == 1:  # no axis for one direction: it would be carried through every layer
            state, tangent = along(jax.tree.map(jnp.ones_like, params))
            tangents = jax.tree.map(lambda x: x[None], tangent)
        else:
            basis = jax.vmap(unravel)(jnp.eye(numbers.size, dtype=numbers.dtype))
            state, tangents = jax.vmap(along, out_axes=(None, 0))(basis)
        each, start = [], 0
        for p in params:
            here = slice(start, start + p.size) if p.ndim else start
            each.append(jax.tree.map(lambda x, here=here: x[here], tangents))
            start += p.size
        return state, type(params)(*each)

    def _one_graph(
        self, params: Any, e: Float[Array, " edges"], support: Support, precomputed: Output | None
    ) -> Output:
        if self.depth is None:
            return self.converged(params, e, support)
        here = None if precomputed is None else _mapped(support.to_inner, precomputed, e.ndim)
        a_lam_z = self.with_precomputed(here)._layers(params, support.to_inner(e), support.inner)
        return _mapped(support.from_inner, a_lam_z, support.to_inner(e).ndim)

    def _layers(self, params: Any, e: Array, inner: Incidence) -> Output:
        """The one scan."""

        def layer(carry: Any, _: None) -> tuple[Any, None]:
            return self.step(params, carry, e, inner), None

        last, _ = lax.scan(layer, self.init(params, e, inner), None, length=self.depth)
        return self.read(params, last, e, inner)

    def _side_by_side(
        self,
        params: Any,
        e: Float[Array, "graphs edges"],
        support: Support,
        together: int,
        precomputed: Output | None,
    ) -> Output:
        """The same, with so many graphs at a time in one array of the inner layout, graphs last."""
        n_graphs, parts = e.shape[0], -(-e.shape[0] // together)
        together = -(-n_graphs // parts)

        def filled(x: Array) -> Array:
            more = jnp.broadcast_to(x[:1], (parts * together - n_graphs, *x.shape[1:]))
            return jnp.concatenate([x, more]).reshape(parts, together, *x.shape[1:])

        def part(some: tuple[Float[Array, "together edges"], Output | None]) -> Output:
            e, precomputed = some
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
    """The output with its edge arrays in another layout; `ndim` axes of them are not channels."""

    def each(x: Array) -> Array:
        return jax.vmap(each)(x) if x.ndim > ndim else layout(x)

    return Output(each(output.a), output.lam, each(output.z))


def _together(n_graphs: int, support: Support) -> int:
    """How many graphs to put side by side: as many as stay in the processor's cache, if several."""
    if not isinstance(support.inner, Square):
        return 1
    room = CACHED // support.n_nodes**2
    return min(room, n_graphs) if min(room, n_graphs) >= SEVERAL else 1


def _as_float_array(e: Any) -> Array:
    e = jnp.asarray(e)
    return e if jnp.issubdtype(e.dtype, jnp.floating) else e.astype(float)
