"""The log posterior density with its gradient.

Every engine that follows gradients works in the coordinates z in which each prior is a standard
normal (`Marginal.from_z`). There

    log p(z | labels) = sum_t w_t log p(labels_t | values(z)) - |z|^2 / 2 + const,

every real number is allowed, and the unit is a standard deviation of the prior.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ...data.dataset import GraphDataset
from ...networks import Output
from ..batch import Batch, Parameters
from ..model import EdgeModel, check_weights
from ..sharding import current_mesh, summed_over


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
    batches: tuple[Batch, ...]
    mesh: Mesh | None = eqx.field(static=True, default=None)
    """The devices that the graphs of each batch are spread over; None for one device."""

    @classmethod
    def of(
        cls, model: EdgeModel, data: GraphDataset, weights: ArrayLike | None = None
    ) -> LogDensity:
        """Make the density of a model from the graphs with labels and a weight above zero."""
        counts = check_weights(weights, len(data))
        used = np.array([record.known.any() for record in data]) & (counts > 0)
        kept, counts = data[used], counts[used]
        forward = model.forward
        batches = tuple(forward.batch(s, counts[s.places]) for s in kept.stacks())
        return cls(model, batches, current_mesh())

    def __call__(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Return log p(z, labels), with the constant of the standard normal prior."""
        prior = -(z @ z) / 2 - z.size * np.log(2 * np.pi) / 2
        return prior + self.log_likelihood(z)

    @property
    def n_network(self) -> int:
        """How many of the coordinates z are of the network's parameters."""
        return sum(self.model.free_sizes[name] for name in self.model.network.params_type._fields)

    @property
    def n_readout(self) -> int:
        """How many are of the readout's and the likelihood's parameters."""
        return self.model.n_free - self.n_network

    def log_likelihood(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Return log p(labels | values(z)), over all graphs."""
        if not self.model.network.forward_mode or self.n_network == 0:
            return self._log_likelihood(self.split(z))

        @jax.custom_vjp
        def value(z: Array) -> Array:
            return self._log_likelihood(self.split(z))

        def forward(z: Array) -> tuple[Array, Array]:
            params, back = jax.vjp(self.split, z)
            total, gradient = self._with_gradient(params)
            return total, back(gradient)[0]

        value.defvjp(forward, lambda gradient, out: (out * gradient,))
        return value(z)

    def split(self, z: Float[Array, " parameters"]) -> Parameters:
        """Return the parameters of each part of the model."""
        return self.model.forward.split(self.model.from_z(z))

    def given_output(self, params: Parameters, output: Output, batch: Batch) -> Float[Array, ""]:
        """Return the log-likelihood of a batch's labels, from the network's output."""
        forward = self.model.forward
        reduced = forward.reduce(output, batch)
        logits = forward.logits(params, reduced)
        return batch.labels.counts @ forward.log_likelihood(logits, params, reduced, batch)

    def _log_likelihood(self, params: Parameters) -> Float[Array, ""]:
        forward = self.model.forward

        def of_batch(params: Parameters, batch: Batch) -> Array:
            return self.given_output(params, forward.output(params.network, batch), batch)

        of_graphs = summed_over(self.mesh, of_batch)
        return jnp.stack([of_graphs(params, batch.as_jax()) for batch in self.batches]).sum()

    def _with_gradient(self, params: Parameters) -> tuple[Float[Array, ""], Parameters]:
        """Return the log-likelihood and its gradient, by forward mode through the network."""

        def of_batch(params: Parameters, batch: Batch) -> tuple[Array, Parameters]:
            output, tangents = self.model.network.with_tangents(
                params.network, batch.e, batch.support, batch.precomputed
            )
            value, (by_params, by_output) = jax.value_and_grad(self.given_output, (0, 1))(
                params, output, batch
            )
            by_network = [_chained(by_output, tangent) for tangent in tangents]
            return value, by_params._replace(network=type(params.network)(*by_network))

        of_graphs = summed_over(self.mesh, of_batch)
        total = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        for batch in self.batches:
            total = jax.tree.map(jnp.add, total, of_graphs(params, batch.as_jax()))
        return total


def _chained(by_output: Output, tangent: Output) -> Float[Array, "..."]:
    """Return the derivative by one parameter, or by each entry of a vector (the chain rule)."""
    if tangent.a.ndim > by_output.a.ndim:
        return jax.vmap(lambda entry: _chained(by_output, entry))(tangent)
    parts = [jnp.vdot(by, along) for by, along in zip(by_output, tangent, strict=True)]
    return jnp.stack(parts).sum()


def values_of(
    model: EdgeModel, z: Float[np.ndarray, "draws parameters"]
) -> dict[str, Float[np.ndarray, "draws ..."]]:
    """Convert draws of z to parameters by name, in float64."""
    return {name: np.array(value) for name, value in model.from_z(np.asarray(z, float)).items()}
