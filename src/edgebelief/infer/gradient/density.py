"""The log posterior density with its gradient.

Every engine that follows gradients works in the coordinates z in which each prior is a standard
normal (`Marginal.from_z`). There

    log p(z | labels) = sum_t w_t log p(labels_t | values(z)) - |z|^2 / 2 + const,

every number may be tried, and a unit is a standard deviation of belief.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...data.dataset import GraphDataset
from ...edges import Support
from ...incidence import namespace
from ...networks import Network, Output
from ..model import EdgeModel, check_weights, params_of


class Block(NamedTuple):
    """The graphs of one size, as arrays, with how often each counts."""

    e: Float[Any, "graphs edges"]
    a: Float[Any, "graphs edges"]
    known: Any
    weights: Float[Any, " graphs"]
    pairs: Float[Any, "graphs edges features"] | None
    before: Output | None
    """What the network computes once, whatever its parameters."""
    log_w: Float[Any, "graphs edges"] | None
    """Logarithms of the weights that are known."""
    support: Support

    def some(self, places: Any, factor: Any = 1.0) -> Block:
        """Some of its graphs, each counted `factor` times as often."""
        part = self._each(lambda x: namespace(places).asarray(x)[places])
        return part._replace(weights=part.weights * factor)

    def as_jax(self) -> Block:
        """The same, in JAX's arrays and precision."""
        return self._each(jnp.asarray)

    def _each(self, function: Callable[[Any], Any]) -> Block:
        arrays = jax.tree.map(function, tuple(self[:-1]))
        return Block(*arrays, self.support)  # type: ignore[call-arg]


class LogDensity(eqx.Module):
    """The log posterior density of z, with a gradient by forward mode through the network.

    Only the network's own parameters enter the deep recursion: one tangent for each runs along
    with it, at a memory independent of depth, and the rest of the gradient is that of the readout
    and the likelihood at the last state. `jax.grad` of a call uses it.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.gradient.density import LogDensity
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=6)
    >>> density = LogDensity.of(EdgeModel(), data)
    >>> jax.grad(density)(jnp.zeros(3)).shape
    (3,)
    """

    model: EdgeModel
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, model: EdgeModel, data: GraphDataset, weights: Any = None) -> LogDensity:
        """Of a model, given the graphs that have labels and a weight above zero."""
        each = check_weights(weights, len(data))
        used = np.array([record.known.any() for record in data]) & (each > 0)
        kept, each = data[used], each[used]
        blocks = tuple(
            Block(
                stack.e,
                stack.a,
                stack.known,
                each[stack.places],
                model.readout.pairs(stack),
                precompute(model.network, stack.e, stack.support),
                stack.log_w,
                stack.support,
            )
            for stack in kept.stacks()
        )
        return cls(model, blocks)

    def __call__(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Log p(z, labels): the standard normal prior is normalised, so this is too."""
        prior = -(z @ z) / 2 - z.size * np.log(2 * np.pi) / 2
        return prior + self.log_likelihood(z)

    @property
    def n_network(self) -> int:
        """How many of the numbers are the network's."""
        return sum(self.model.free_sizes[name] for name in self.model.network.params_type._fields)

    @property
    def n_readout(self) -> int:
        """How many are the readout's and the likelihood's."""
        return self.model.n_free - self.n_network

    def log_likelihood(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Log p(labels | values(z)), over all graphs."""
        if not self.model.network.forward_mode or self.n_network == 0:
            return self._log_likelihood(*self.split(z))

        @jax.custom_vjp
        def value(z: Array) -> Array:
            return self._log_likelihood(*self.split(z))

        def forward(z: Array) -> tuple[Array, Array]:
            values, back = jax.vjp(self.split, z)
            total, gradient = self._with_gradient(*values)
            return total, back(gradient)[0]

        value.defvjp(forward, lambda gradient, out: (out * gradient,))
        return value(z)

    def split(self, z: Float[Array, " parameters"]) -> tuple[Any, Any]:
        """The parameters of the network, and those of readout and likelihood."""
        values, model = self.model.from_z(z), self.model
        others = params_of(model.readout, values), params_of(model.likelihood, values)
        return params_of(model.network, values), others

    def state(self, network: Any, block: Block) -> Output:
        """What the network knows of the graphs of a block."""
        return self.model.network(network, block.e, block.support, block.before)

    def given_state(self, others: Any, output: Output, block: Block) -> Array:
        """The log-likelihood of a block's labels."""
        likelihood, (readout, own) = self.model.likelihood, others
        logits = self.model.readout(readout, output, block.support, block.pairs)
        more = likelihood.reduce(output, block.support)
        return block.weights @ likelihood.log_likelihood(
            logits, block.a, block.known, block.log_w, own, more
        )

    def _log_likelihood(self, network: Any, others: Any) -> Array:
        return jnp.stack(
            [
                self.given_state(others, self.state(network, block), block)
                for block in (block.as_jax() for block in self.blocks)
            ]
        ).sum()

    def _with_gradient(self, network: Any, others: Any) -> tuple[Array, tuple[Any, Any]]:
        total, gradient = jnp.zeros(()), jax.tree.map(jnp.zeros_like, (network, others))
        for block in (block.as_jax() for block in self.blocks):
            state, tangents = self.model.network.with_tangents(
                network, block.e, block.support, block.before
            )
            here, (by_others, by_state) = jax.value_and_grad(self.given_state, (0, 1))(
                others, state, block
            )
            along = [_pulled(by_state, tangent) for tangent in tangents]
            found = type(network)(*along), by_others
            total, gradient = total + here, jax.tree.map(jnp.add, gradient, found)
        return total, gradient


def _pulled(by_state: Output, tangent: Output) -> Array:
    """The derivative along one parameter, or along each of a vector of them."""
    if tangent.a.ndim > by_state.a.ndim:
        return jax.vmap(lambda one: _pulled(by_state, one))(tangent)
    parts = [jnp.vdot(by, along) for by, along in zip(by_state, tangent, strict=True)]
    return jnp.stack(parts).sum()


def values_of(model: EdgeModel, z: Float[np.ndarray, "draws parameters"]) -> dict[str, np.ndarray]:
    """Draws of z as parameters by name, in float64."""
    return {name: np.array(value) for name, value in model.from_z(np.asarray(z, float)).items()}


def precompute(network: Network, e: Float[np.ndarray, "graphs edges"], support: Support) -> Any:
    """What the network computes once for these graphs, in JAX's precision; None if nothing."""
    found = _precompute(network, jnp.asarray(e), support)
    return jax.tree.map(np.asarray, found)


@eqx.filter_jit
def _precompute(network: Network, e: Array, support: Support) -> Output | None:
    return network.precompute(e, support)
