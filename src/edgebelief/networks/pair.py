"""The pair network: from what the data say about every pair of nodes to logits of edges.

A state h_ij of `width` numbers for every pair, i = j included, is refined by `depth` layers. Two
pairs of nodes that share a node k exchange information through sums over k (triangle updates), as
in a product of matrices; so the network can do what inverses, powers and roots of a matrix do.
Relabelling the nodes relabels the output, and any number of nodes will do.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, DTypeLike, Float

# Added to a variance before its root is taken: a state that is constant over channels stays finite.
EPSILON = 1e-5

OnAllPairs = Float[Array, "nodes nodes width"]


class PairShape(NamedTuple):
    """The sizes of a pair network."""

    channels: int
    """The number of input channels of a pair."""
    facts: int
    """The number of facts about the whole input, such as the number of signals."""
    width: int = 96
    """The number of channels of the state."""
    depth: int = 6
    """The number of layers."""
    heads: int = 4
    """The number of output heads."""
    expansion: int = 2
    """The hidden width of the pointwise network of a layer, over `width`."""


class PairOutput(NamedTuple):
    """The output of a pair network for one graph."""

    logits: Float[Array, "nodes nodes heads"]
    """The logit of an edge, by each head. The diagonal means nothing."""
    embedding: Float[Array, "nodes nodes width"]
    """The state after the last layer, normalised: what the heads read."""


class Norm(eqx.Module):
    """Normalise each pair's state over its channels, then scale and shift it."""

    scale: Float[Array, " width"]
    shift: Float[Array, " width"]

    @classmethod
    def of_width(cls, width: int) -> Norm:
        """Return a norm that neither scales nor shifts."""
        return cls(jnp.ones(width), jnp.zeros(width))

    def __call__(self, h: Float[Array, "... width"]) -> Float[Array, "... width"]:
        h = h.astype(jnp.float32)
        centred = h - h.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return centred * lax.rsqrt(variance + EPSILON) * self.scale + self.shift


class Layer(eqx.Module):
    """One refinement of the state: with x = LN(h), n nodes and * the elementwise product,

    a, b   = sigmoid(gates of x) * linear maps of x
    t_ij   = sum_k (a_ik * b_jk + b_ik * a_jk) / sqrt n
    u_i    = linear map of (x_ii, mean_j x_ij, mean_jk x_jk)
    h_ij  += sigmoid(gate of x_ij) * W LN(t_ij) + u_i + u_j
    h_ij  += W2 gelu(W1 LN(h_ij))
    """

    before: Norm
    factors: Float[Array, "width factors"]
    factor_bias: Float[Array, " factors"]
    triangle: Norm
    mix: Float[Array, "width width"]
    nodes: Float[Array, "thrice width"]
    between: Norm
    expand: Float[Array, "width hidden"]
    expand_bias: Float[Array, " hidden"]
    contract: Float[Array, "hidden width"]
    contract_bias: Float[Array, " width"]

    @classmethod
    def random(cls, key: Array, shape: PairShape) -> Layer:
        """Draw the weights of a layer; what is added to the state is small at first."""
        width, hidden = shape.width, shape.expansion * shape.width
        small = (2 * shape.depth) ** -0.5
        keys = jax.random.split(key, 5)
        gate_bias = jnp.ones(width)  # gates begin half open: sigmoid(1) = 0.73
        return cls(
            Norm.of_width(width),
            _normal(keys[0], width, 5 * width),
            jnp.concatenate([jnp.zeros(2 * width), jnp.tile(gate_bias, 3)]),
            Norm.of_width(width),
            small * _normal(keys[1], width, width),
            small * _normal(keys[2], 3 * width, width),
            Norm.of_width(width),
            _normal(keys[3], width, hidden),
            jnp.zeros(hidden),
            small * _normal(keys[4], hidden, width),
            jnp.zeros(width),
        )

    def __call__(self, h: OnAllPairs, mask: Float[Array, " nodes"], dtype: DTypeLike) -> OnAllPairs:
        n = mask.sum()
        x = self.before(h).astype(dtype)
        a, b, *gates = jnp.split(_linear(x, self.factors, self.factor_bias), 5, axis=-1)
        # Nodes that only fill up the arrays are left out of every sum: here, over k.
        a = a * jax.nn.sigmoid(gates[0]) * mask[:, None].astype(dtype)
        b = b * jax.nn.sigmoid(gates[1])
        t = jnp.einsum("ikc,jkc->ijc", a, b) * lax.rsqrt(n).astype(dtype)
        t = self.triangle(t + t.swapaxes(0, 1)).astype(dtype)
        update = jax.nn.sigmoid(gates[2]) * (t @ self.mix.astype(dtype))
        u = self._of_nodes(x.astype(jnp.float32), mask, n)
        h = h + update.astype(h.dtype) + (u + u.swapaxes(0, 1))
        hidden = _linear(self.between(h).astype(dtype), self.expand, self.expand_bias)
        return h + _linear(jax.nn.gelu(hidden), self.contract, self.contract_bias).astype(h.dtype)

    def _of_nodes(
        self, x: OnAllPairs, mask: Float[Array, " nodes"], n: Float[Array, ""]
    ) -> Float[Array, "nodes one width"]:
        # As sums, not by indices: their gradients are then no scatters, which are slow.
        itself = (x * jnp.eye(len(mask))[..., None]).sum(1)
        mean = (x * mask[:, None]).sum(1) / n
        overall = jnp.broadcast_to(mask @ mean / n, mean.shape)
        return (jnp.concatenate([itself, mean, overall], -1) @ self.nodes)[:, None]


class PairNetwork(eqx.Module):
    """A permutation-equivariant network from channels of all pairs to logits of edges.

    It is trained once, on simulated graphs (see `edgebelief.amortise`), and then has no parameters
    that a posterior would be about. So it is no `Network` of this package, which is an iteration
    unrolled. Its heads share everything but their last linear map.

    Parameters
    ----------
    shape : PairShape
        The sizes.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from edgebelief.networks import PairNetwork, PairShape
    >>> network = PairNetwork.random(jax.random.key(0), PairShape(3, 2, width=8, depth=2))
    >>> output = network(jnp.ones((5, 5, 3)), jnp.zeros(2), jnp.ones(5))
    >>> output.logits.shape, output.embedding.shape
    ((5, 5, 4), (5, 5, 8))
    """

    embed: Float[Array, "channels width"]
    embed_facts: Float[Array, "facts width"]
    layers: Layer
    last: Norm
    heads: Float[Array, "width heads"]
    head_bias: Float[Array, " heads"]
    shape: PairShape = eqx.field(static=True)

    @classmethod
    def random(cls, key: Array, shape: PairShape) -> PairNetwork:
        """Draw a network whose logits are all the same."""
        first, second, third = jax.random.split(key, 3)
        layers = jax.vmap(lambda k: Layer.random(k, shape))(jax.random.split(third, shape.depth))
        return cls(
            _normal(first, shape.channels, shape.width),
            _normal(second, shape.facts, shape.width),
            layers,
            Norm.of_width(shape.width),
            jnp.zeros((shape.width, shape.heads)),
            jnp.full(shape.heads, -1.5),  # a density of 0.18, between those of usual graphs
            shape,
        )

    def __call__(
        self,
        pairs: Float[Array, "nodes nodes channels"],
        facts: Float[Array, " facts"],
        mask: Float[Array, " nodes"],
        dtype: DTypeLike = jnp.float32,
        unroll: bool = False,
    ) -> PairOutput:
        """Run the network on one graph.

        Parameters
        ----------
        pairs : array, shape (N, N, channels)
            Symmetric in the nodes.
        facts : array, shape (facts,)
            About the whole graph.
        mask : array, shape (N,)
            1 for nodes, 0 for rows that fill up the array. What is there has no influence on the
            output for the nodes.
        dtype : dtype
            That of the large products; the state is kept in single precision.
        unroll : bool
            Compile every layer on its own: slower to compile, faster to run on a GPU.

        Returns
        -------
        PairOutput
        """
        h = _linear(pairs.astype(dtype), self.embed).astype(jnp.float32) + facts @ self.embed_facts

        def refine(h: OnAllPairs, layer: Layer) -> tuple[OnAllPairs, None]:
            return layer(h, mask, dtype), None

        h, _ = lax.scan(refine, h, self.layers, unroll=self.shape.depth if unroll else 1)
        embedding = self.last(h)
        return PairOutput(embedding @ self.heads + self.head_bias, embedding)


def _normal(key: Array, rows: int, columns: int) -> Float[Array, "rows columns"]:
    """Draw a linear map that keeps the variance."""
    return jax.random.normal(key, (rows, columns)) * rows**-0.5


def _linear(
    x: Float[Array, "... rows"],
    weight: Float[Array, "rows columns"],
    bias: Float[Array, " columns"] | None = None,
) -> Float[Array, "... columns"]:
    """Apply a linear map in the precision of its input."""
    y = x @ weight.astype(x.dtype)
    return y if bias is None else y + bias.astype(x.dtype)
