"""One stack of graphs ready to evaluate: where network, readout, likelihood and data meet.

    output  = network(e; theta)              one pass for each value of the network's parameters
    reduced = what is needed of the output   whatever the other parameters
    logits  = readout(reduced; delta, b)
    log p(labels | logits, reduced)          of each graph

Every engine, every prediction and every check evaluates a model through `ForwardModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..data.dataset import GraphDataset, Stack
from ..edges import Support
from ..incidence import namespace
from ..networks import Network, Output
from ..readouts import Readout
from .likelihoods import Likelihood

# Parameters by name: of one evaluation, or draws of them along the first axis.
Values = Mapping[str, Any]


class Parameters(NamedTuple):
    """The parameters of each part of a model, as the named tuple of that part."""

    network: Any
    readout: Any
    likelihood: Any


class Reduced(NamedTuple):
    """What readout and likelihood need of a network's output, whatever their own parameters."""

    readout: Any
    likelihood: Any


class Observed(NamedTuple):
    """The labels of a stack of graphs, as a likelihood takes them."""

    a: Float[Any, "graphs edges"]
    known: Bool[Any, "graphs edges"]
    log_w: Float[Any, "graphs edges"] | None
    """Logarithms of the edge weights that are known, NaN elsewhere."""
    counts: Float[Any, " graphs"]
    """How often each graph counts."""

    @property
    def n_labels(self) -> Float[Any, " graphs"]:
        """The number of known labels of each graph, times how often it counts."""
        return self.counts * self.known.sum(1)


class Batch(eqx.Module):
    """Graphs of one size as arrays, with what is computed once for them.

    The arrays are NumPy's, in float64, until `as_jax` converts them to the precision in force.
    """

    e: Float[Any, "*graphs edges"]
    support: Support
    pairs: Float[Any, "*graphs edges features"] | None = None
    """The features of pairs that the readout asks for."""
    precomputed: Output | None = None
    """What the network computes once, whatever its parameters."""
    observed: Observed | None = None
    """None where labels do not matter."""

    @classmethod
    def of(
        cls, readout: Readout, stack: Stack, counts: Float[np.ndarray, " graphs"] | None = None
    ) -> Batch:
        """Collect what a readout needs of a stack of graphs, and their labels."""
        counts = np.ones(len(stack.e)) if counts is None else counts
        observed = Observed(stack.a, stack.known, stack.log_w, counts)
        return cls(stack.e, stack.support, readout.pairs(stack), observed=observed)

    def part(self, which: Any) -> Batch:
        """Select some of the graphs."""
        return self._map(lambda x: namespace(which).asarray(x)[which])

    def counted(self, factor: Any) -> Batch:
        """Count each graph `factor` times as often."""
        observed = self.labels
        return replace(self, observed=observed._replace(counts=observed.counts * factor))

    @property
    def labels(self) -> Observed:
        """The labels of a batch that has them."""
        assert self.observed is not None
        return self.observed

    def without_labels(self) -> Batch:
        """Drop everything that only a likelihood needs."""
        return replace(self, observed=None)

    def as_jax(self) -> Batch:
        """Convert the arrays to JAX's, in the precision in force."""
        return self._map(jnp.asarray)

    def filled(self, shares: int) -> Batch:
        """Add copies of the first graph, which do not count, until `shares` parts are equal."""
        n_graphs = len(self.e)
        places = np.arange(-(-n_graphs // shares) * shares)
        real = places < n_graphs
        filled = self.part(jnp.asarray(np.where(real, places, 0)))
        counts = jnp.where(real, filled.labels.counts, 0)
        return replace(filled, observed=filled.labels._replace(counts=counts))

    def _map(self, function: Callable[[Any], Any]) -> Batch:
        return self.with_arrays(function, lambda x: x)

    def with_arrays(
        self, of_graphs: Callable[[Any], Any], of_support: Callable[[Any], Any]
    ) -> Batch:
        """Replace the arrays with an axis of graphs by one function, the others by another."""
        arrays = {name: x for name, x in vars(self).items() if name != "support"}
        support = jax.tree.map(of_support, self.support)
        return Batch(support=support, **jax.tree.map(of_graphs, arrays))


class ForwardModel(eqx.Module):
    """A model without its prior: from parameters and a batch to logits and likelihood.

    Compiled functions take it in place of the whole model, so that another prior is no reason to
    compile again.
    """

    network: Network
    readout: Readout
    likelihood: Likelihood

    def batch(self, stack: Stack, counts: Float[np.ndarray, " graphs"] | None = None) -> Batch:
        """Make a batch of a stack, with what the network computes once for it."""
        return with_precomputed(self.network, Batch.of(self.readout, stack, counts))

    def split(self, values: Values) -> Parameters:
        """Sort parameters by the part they belong to."""
        parts = self.network, self.readout, self.likelihood
        return Parameters(
            *(p.params_type(*(values[n] for n in p.params_type._fields)) for p in parts)
        )

    def output(self, network: Any, batch: Batch) -> Output:
        """Run the network at its parameters `network`."""
        return self.network(network, batch.e, batch.support, batch.precomputed)

    def reduce(self, output: Output, batch: Batch) -> Reduced:
        """Keep of the network's output what readout and likelihood need."""
        return Reduced(
            self.readout.reduce(output, batch.support, batch.pairs),
            self.likelihood.reduce(output, batch.support),
        )

    def run(self, params: Parameters, batch: Batch) -> Reduced:
        """Run the network and keep what is needed of its output."""
        return self.reduce(self.output(params.network, batch), batch)

    def logits(self, params: Parameters, reduced: Reduced) -> Float[Array, "*graphs edges"]:
        """The logit of each pair."""
        return self.readout.logits(params.readout, reduced.readout)

    def columns(self, reduced: Reduced) -> Float[Array, "*graphs edges columns"]:
        """The design matrix of a readout that is linear in its coefficients."""
        return self.readout.columns(reduced.readout)

    def log_likelihood(
        self,
        logits: Float[Array, "*graphs edges"],
        params: Parameters,
        reduced: Reduced,
        batch: Batch,
    ) -> Float[Array, "*graphs"]:
        """Log p(labels) of each graph; zero for graphs without labels."""
        if batch.observed is None:
            return jnp.zeros(logits.shape[:-1], logits.dtype)
        a, known, log_w, _ = batch.observed
        own = params.likelihood, reduced.likelihood
        return self.likelihood.log_likelihood(logits, a, known, log_w, *own)

    def log_weights(self, params: Parameters, reduced: Reduced) -> tuple[Array, Array]:
        """Mean and sd of the logarithm of each pair's weight, if it is an edge."""
        return self.likelihood.weight_at(params.likelihood, reduced.likelihood)

    def logits_at(self, values: Values, batch: Batch) -> Float[Array, "*graphs edges"]:
        """The logit of each pair, from parameters by name."""
        params = self.split(values)
        return self.logits(params, self.run(params, batch))

    def log_likelihood_at(self, values: Values, batch: Batch) -> Float[Array, "*graphs"]:
        """Log p(labels) of each graph, from parameters by name."""
        params = self.split(values)
        reduced = self.run(params, batch)
        return self.log_likelihood(self.logits(params, reduced), params, reduced, batch)

    def parts_at(self, values: Values, batch: Batch) -> tuple[dict[str, Array], dict[str, Array]]:
        """The summands of the logits, and the features that its terms are curves of, by name."""
        params = self.split(values)
        output = self.output(params.network, batch)
        parts = self.readout.parts(params.readout, self.reduce(output, batch).readout)
        return parts, self.readout.inputs(output, batch.support, batch.pairs)


def with_precomputed(network: Network, batch: Batch) -> Batch:
    """Run what the network computes once for these graphs, in JAX's precision."""
    output = _precompute(network, jnp.asarray(batch.e), batch.support)
    return replace(batch, precomputed=jax.tree.map(np.asarray, output))


def log_likelihoods(
    forward: ForwardModel, draws: Mapping[str, Float[np.ndarray, "draws ..."]], data: GraphDataset
) -> Float[np.ndarray, "draws graphs"]:
    """Log p(labels of each graph | draw). A network that is the same in all draws runs once."""
    fields = forward.network.params_type._fields
    one_network = all((draws[name] == draws[name][:1]).all() for name in fields)
    evaluate = _with_one_network if one_network else _with_every_network
    arrays = {name: jnp.asarray(values) for name, values in draws.items()}
    table = np.zeros((len(next(iter(draws.values()))), len(data)))
    for stack in data.stacks():
        table[:, stack.places] = evaluate(forward, arrays, forward.batch(stack).as_jax())
    return table


@eqx.filter_jit
def _with_every_network(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch
) -> Float[Array, "draws graphs"]:
    return jax.lax.map(lambda values: forward.log_likelihood_at(values, batch), draws)


@eqx.filter_jit
def _with_one_network(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch
) -> Float[Array, "draws graphs"]:
    first = forward.split({name: values[0] for name, values in draws.items()})
    reduced = forward.run(first, batch)

    def at(values: dict[str, Array]) -> Array:
        params = forward.split(values)
        return forward.log_likelihood(forward.logits(params, reduced), params, reduced, batch)

    return jax.lax.map(at, draws)


@eqx.filter_jit
def run_network(
    network: Network, params: Any, e: Array, support: Support, precomputed: Output | None = None
) -> Output:
    """Run a network alone, compiled once for graphs of a shape whatever is read out of it."""
    return network(params, e, support, precomputed)


@eqx.filter_jit
def _precompute(network: Network, e: Array, support: Support) -> Output | None:
    return network.precompute(e, support)
