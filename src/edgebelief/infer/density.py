"""The log posterior density with its gradient.

Every engine that follows gradients works in the coordinates z in which each prior is a standard
normal (`Marginal.value_at`). There

    log p(z | labels) = sum_t w_t log p(labels_t | values(z)) - |z|^2 / 2 + const,

every number may be tried, and a unit is a standard deviation of belief.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.dataset import GraphDataset
from ..edges import Support
from ..incidence import namespace
from ..networks import Network, Output
from ..readouts import Readout
from .likelihoods import BernoulliEdges
from .model import EdgeModel, check_weights
from .priors import Marginal


class Block(NamedTuple):
    """The graphs of one size, as arrays, with how often each counts."""

    e: Float[Any, "graphs edges"]
    a: Float[Any, "graphs edges"]
    known: Any
    weights: Float[Any, " graphs"]
    pairs: Float[Any, "graphs edges features"] | None
    support: Support

    def some(self, places: Any, factor: Any = 1.0) -> Block:
        """Some of its graphs, each counted `factor` times as often."""
        e, a, known, weights, pairs = (
            None if part is None else namespace(places).asarray(part)[places] for part in self[:5]
        )
        return Block(e, a, known, weights * factor, pairs, self.support)


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
    >>> from edgebelief.infer.density import LogDensity
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=6)
    >>> density = LogDensity.of(EdgeModel(), data)
    >>> jax.grad(density)(jnp.zeros(3)).shape
    (3,)
    """

    network: Network
    readout: Readout
    likelihood: BernoulliEdges
    marginals: tuple[Marginal, ...] = eqx.field(static=True)
    sizes: tuple[int | None, ...] = eqx.field(static=True)
    """How many numbers a parameter is that is a vector."""
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
                stack.support,
            )
            for stack in kept.stacks()
        )
        marginals = tuple(model.prior[name] for name in model.parameters)
        sizes = tuple(model.sizes.get(name) for name in model.parameters)
        return cls(model.network, model.readout, model.likelihood, marginals, sizes, blocks)

    def __call__(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Log p(z, labels): the standard normal prior is normalised, so this is too."""
        prior = -(z @ z) / 2 - z.size * np.log(2 * np.pi) / 2
        return prior + self.log_likelihood(z)

    def values(self, z: Float[Array, " parameters"]) -> Float[Array, " parameters"]:
        """The parameters, each in its own units."""
        return jnp.concatenate(
            [m.value_at(part) for m, part in zip(self.marginals, self._parts(z), strict=True)]
        )

    @property
    def n_network(self) -> int:
        """How many of the numbers are the network's."""
        return len(self.network.params_type._fields)

    @property
    def n_readout(self) -> int:
        """How many are the readout's."""
        return sum(size or 1 for size in self.sizes) - self.n_network

    def _parts(self, z: Array) -> list[Array]:
        ends = np.cumsum([size or 1 for size in self.sizes])
        return [z[end - (size or 1) : end] for end, size in zip(ends, self.sizes, strict=True)]

    def log_likelihood(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Log p(labels | values(z)), over all graphs."""

        @jax.custom_vjp
        def value(z: Array) -> Array:
            return self._log_likelihood(self.values(z))

        def forward(z: Array) -> tuple[Array, Array]:
            values, slopes = jax.jvp(self.values, (z,), (jnp.ones_like(z),))  # elementwise
            total, gradient = self._with_gradient(values)
            return total, slopes * gradient

        value.defvjp(forward, lambda gradient, out: (out * gradient,))
        return value(z)

    def _log_likelihood(self, values: Array) -> Array:
        network, readout = self._split(values)
        return jnp.stack(
            [
                self._given_state(readout, self.network(network, block.e, block.support), block)
                for block in map(as_jax, self.blocks)
            ]
        ).sum()

    def _with_gradient(self, values: Array) -> tuple[Array, Array]:
        network, readout = self._split(values)
        total, gradient = jnp.zeros(()), jnp.zeros(values.size)
        for block in map(as_jax, self.blocks):
            state, tangents = self.network.with_tangents(network, block.e, block.support)
            here, (by_readout, by_state) = jax.value_and_grad(self._given_state, (0, 1))(
                readout, state, block
            )
            by_network = [
                sum(jnp.vdot(by, along) for by, along in zip(by_state, tangent, strict=True))
                for tangent in tangents
            ]
            slopes = [jnp.atleast_1d(jnp.asarray(slope)) for slope in (*by_network, *by_readout)]
            total, gradient = total + here, gradient + jnp.concatenate(slopes)
        return total, gradient

    def _given_state(self, readout: Any, output: Output, block: Block) -> Array:
        logits = self.readout(readout, output, block.support, block.pairs)
        return block.weights @ self.likelihood.log_likelihood(logits, block.a, block.known)

    def _split(self, values: Array) -> tuple[Any, Any]:
        of_network, of_readout = self.network.params_type, self.readout.params_type
        parts = [
            part if size else part[0]
            for part, size in zip(self._parts(values), self.sizes, strict=True)
        ]
        return of_network(*parts[: self.n_network]), of_readout(*parts[self.n_network :])


def values_of(model: EdgeModel, z: Float[np.ndarray, "draws parameters"]) -> dict[str, np.ndarray]:
    """Draws of z as parameters by name, in float64."""
    parts = model.split(np.asarray(z, float))
    return {name: model.prior[name].value_at(part) for name, part in parts.items()}


def as_jax(block: Block) -> Block:
    """The same, in JAX's arrays and precision."""
    e, a, known, weights = map(jnp.asarray, block[:4])
    pairs = None if block.pairs is None else jnp.asarray(block.pairs)
    return Block(e, a, known, weights, pairs, block.support)
