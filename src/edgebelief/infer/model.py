"""EdgeModel: network, readout, prior and likelihood together.

    theta, delta, b ~ prior
    logit_ij        = readout(network(e; theta); delta, b)
    a_ij            ~ Bernoulli(sigmoid(logit_ij))

and where edges have weights, those of the edges that are there given the network (`WeightedEdges`).
The log density and the NumPyro model are the same sum, written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array, Float

from ..data.dataset import GraphDataset, Stack
from ..edges import Support
from ..errors import SettingError
from ..incidence import namespace
from ..networks import DPG, Network, Output
from ..readouts import Readout, papers_readout
from ..validate import complete_support
from .batch import Batch, ForwardModel
from .likelihoods import BernoulliEdges, Likelihood
from .priors import BEYOND, Prior


class EdgeModel(eqx.Module):
    """A Bayesian model of edges given distances.

    Parameters
    ----------
    network : Network
    readout : Readout, optional
        By default the one that the paper gives to the network.
    prior : Prior or str
        A marginal for each parameter of network, readout and likelihood, or the name of one of the
        paper's. Parameters beyond the paper's have one by default.
    likelihood : Likelihood
        `BernoulliEdges` by default; `WeightedEdges` where edges have weights.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.networks import DPG
    >>> model = EdgeModel(DPG(depth=30), prior="altered")
    >>> model.parameters
    ('theta', 'delta', 'b')
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=6)
    >>> model.log_likelihood({"theta": 0.2, "delta": 50.0, "b": 5.0}, data).shape
    (2,)
    """

    network: Network
    readout: Readout
    prior: Prior = eqx.field(static=True)
    likelihood: Likelihood

    def __init__(
        self,
        network: Network | None = None,
        readout: Readout | None = None,
        prior: Prior | str = "altered",
        likelihood: Likelihood | None = None,
    ):
        self.network = DPG() if network is None else network
        self.readout = papers_readout(self.network) if readout is None else readout
        if self.readout.n_channels != self.network.n_channels:
            raise SettingError(
                f"{type(self.network).__name__} has {self.network.n_channels or 'no'} channels, "
                f"and {type(self.readout).__name__} reads {self.readout.n_channels or 'none'}. Use "
                f"{papers_readout(self.network)}."
            )
        self.likelihood = BernoulliEdges() if likelihood is None else likelihood
        if self.likelihood.weighted and self.network.n_channels is not None:
            raise SettingError(
                f"weights follow a network of one channel; {type(self.network).__name__} has "
                f"{self.network.n_channels}. Use DPG or PDS, or edges without weights."
            )
        given = Prior.named(prior, self.network.kind) if isinstance(prior, str) else prior
        beyond = {n: m for n, m in BEYOND.items() if n in self.parameters and n not in given}
        self.prior = given.replace(**beyond) if beyond else given
        missing = set(self.parameters) ^ set(self.prior)
        if missing:
            raise SettingError(
                f"the prior must have a marginal for each of {self.parameters}, and no other; "
                f"it has {tuple(self.prior)}."
            )
        for name in self.prior:
            value = getattr(self.prior[name], "value", None)
            unknown = not self.is_prepared and name in self.readout.unlisted
            if value is not None and not unknown and np.shape(value) != self.shape(name):
                raise SettingError(
                    f"{name} is {self.sizes.get(name, 'one')} number(s), and is fixed at {value}."
                )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters: the network's, the readout's, the likelihood's."""
        return self.logit_parameters + self.likelihood.params_type._fields

    @property
    def logit_parameters(self) -> tuple[str, ...]:
        """The names of those that the logits depend on: the network's and the readout's."""
        return self.network.params_type._fields + self.readout.params_type._fields

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each parameter is that is a vector."""
        return {**self.network.sizes, **self.readout.sizes}

    @property
    def forward(self) -> ForwardModel:
        """The model without its prior."""
        return ForwardModel(self.network, self.readout, self.likelihood)

    @property
    def is_prepared(self) -> bool:
        """Whether network and readout have seen what they need to see of the data."""
        return self.network.is_prepared and self.readout.is_prepared

    @property
    def scalar_names(self) -> dict[str, tuple[str, int | None]]:
        """What tables list: each number's name, the parameter it is of, and its place in that."""
        found: dict[str, tuple[str, int | None]] = {}
        for name in self.parameters:
            if name not in self.sizes:
                found[name] = name, None
            elif name not in self.readout.unlisted:
                found |= {f"{name}[{k}]": (name, k) for k in range(self.sizes[name])}
        return found

    @property
    def free_sizes(self) -> dict[str, int]:
        """How many numbers are to be inferred of each parameter: none of those that are fixed."""
        return {
            name: 0 if self.prior[name].fixed else self.sizes.get(name, 1)
            for name in self.parameters
        }

    @property
    def n_free(self) -> int:
        """How many numbers are to be inferred."""
        return sum(self.free_sizes.values())

    def from_z(self, z: Any) -> dict[str, Any]:
        """The parameters at places z of their priors, (..., n_free)."""
        found, start = {}, 0
        xp = namespace(z)
        for name, n in self.free_sizes.items():
            marginal, shape = self.prior[name], (*z.shape[:-1], *self.shape(name))
            if marginal.fixed:
                found[name] = xp.broadcast_to(xp.asarray(marginal.median, z.dtype), shape)
            else:
                found[name] = marginal.from_z(z[..., start : start + n]).reshape(shape)
            start += n
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a parameter."""
        return (self.sizes[name],) if name in self.sizes else ()

    def pairs(self, stack: Stack) -> Float[Array, "graphs edges features"] | None:
        """What the readout wants to know of each pair; None if nothing."""
        found = self.readout.pairs(stack)
        return None if found is None else jnp.asarray(found)

    def replace(self, **parts: Any) -> EdgeModel:
        """The same with another network, readout, prior or likelihood."""
        own = {name: getattr(self, name) for name in ("network", "readout", "prior", "likelihood")}
        return EdgeModel(**{**own, **parts})

    def logits(
        self,
        params: Mapping[str, Any],
        e: Float[Array, "... edges"],
        support: Support | None = None,
        pairs: Float[Array, "... edges features"] | None = None,
        precomputed: Output | None = None,
    ) -> Float[Array, "... edges"]:
        """The logit of each edge. Pure: use it inside a NumPyro model of your own.

        Parameters
        ----------
        params : mapping from parameter names to numbers
        e : array, shape (..., n_edges)
        support : Support, optional
        pairs : array, shape (..., n_edges, n_features), optional
            What `self.pairs` returns, for readouts that want it.
        precomputed : Output, optional
            What the network's `precompute` returns, so that it is not computed again.
        """
        support = complete_support(e.shape[-1]) if support is None else support
        return self.forward.logits_at(params, Batch(e, support, pairs, precomputed))

    def log_likelihood(
        self, params: Mapping[str, Any], data: GraphDataset
    ) -> Float[Array, " graphs"]:
        """Log p(labels | params) of each graph, in the order of the data set."""
        each = jnp.zeros(len(data))
        for stack in data.stacks():
            batch = Batch.of(self.readout, stack).as_jax()
            each = each.at[stack.places].set(self.forward.log_likelihood_at(params, batch))
        return each

    def log_density(
        self,
        params: Mapping[str, Any],
        data: GraphDataset,
        weights: Float[Array, " graphs"] | None = None,
    ) -> Float[Array, ""]:
        """Log p(params) + sum_t w_t log p(labels_t | params), each parameter in its own units.

        `weights` counts a graph more or less than once (1 by default).
        """
        return self.prior.log_density(params) + self._weighted(params, data, weights)

    def sample(self, data: GraphDataset, weights: Any = None) -> dict[str, Array]:
        """The NumPyro model: a site per parameter, and the factor `labels`.

        Pass ``model.sample`` to `numpyro.infer.NUTS`, or call it inside a model of your own.
        """
        params = {}
        for name, marginal in self.prior.items():
            if marginal.fixed:
                params[name] = jnp.asarray(marginal.median)
                continue
            law = marginal.distribution
            if name in self.sizes:
                law = law.expand([self.sizes[name]]).to_event(1)
            params[name] = numpyro.sample(name, law)
        numpyro.factor("labels", self._weighted(params, data, weights))
        return params

    def _weighted(self, params: Mapping[str, Any], data: GraphDataset, weights: Any) -> Array:
        each = self.log_likelihood(params, data)
        if isinstance(weights, jax.core.Tracer):
            return (weights * each).sum()
        return (check_weights(weights, len(data)) * each).sum()


def check_weights(weights: Any, n_graphs: int) -> Float[np.ndarray, " graphs"]:
    """How often each graph counts: numbers >= 0, one per graph; None for once each."""
    if weights is None:
        return np.ones(n_graphs)
    given = np.asarray(weights, float)
    if given.shape != (n_graphs,) or not (np.isfinite(given) & (given >= 0)).all():
        raise SettingError(
            f"must be {n_graphs} numbers >= 0, one per graph; got {weights}.", argument="weights"
        )
    return given
