"""EdgeModel: network, readout, prior and likelihood together.

    theta, delta, b ~ prior
    logit_ij        = readout(network(e; theta); delta, b)
    a_ij            ~ Bernoulli(sigmoid(logit_ij))

and where edges have weights, a model of the weights too (`WeightedEdges`). The log density and the
NumPyro model are the same sum, written once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..data.dataset import GraphDataset, Stack
from ..edges import Support
from ..errors import InputError, SettingError, SettingTypeError
from ..incidence import Array as AnyArray
from ..incidence import namespace
from ..networks import DPG, Network, Output
from ..readouts import Readout, papers_readout
from ..validate import complete_support
from .batch import Batch, ForwardModel, Values
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
        A marginal for each parameter of network, readout and likelihood, or the name of a prior of
        the paper. Parameters that the paper does not have get a marginal by default.
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
        self._check_parts(network, readout, prior, likelihood)
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
        stated = Prior.named(prior, self.network.kind) if isinstance(prior, str) else prior
        added = {n: m for n, m in BEYOND.items() if n in self.parameters and n not in stated}
        self.prior = stated.replace(**added) if added else stated
        if set(self.parameters) != set(self.prior):
            raise SettingError(
                f"the prior must have a marginal for each of {self.parameters}, and no other; "
                f"it has {tuple(self.prior)}."
            )
        # The vectors of a readout that is not prepared are as long as the data will have it.
        sizes = self.sizes if self.is_prepared else self.network.sizes
        for name in self.prior:
            value = getattr(self.prior[name], "value", None)
            unknown = not self.is_prepared and name in self.readout.unlisted
            shape = (sizes[name],) if name in sizes else ()
            if value is not None and not unknown and np.shape(value) != shape:
                raise SettingError(
                    f"{name} is {sizes.get(name, 'one')} number(s), and is fixed at {value}."
                )

    @staticmethod
    def _check_parts(network: object, readout: object, prior: object, likelihood: object) -> None:
        """Refuse parts that are no parts, such as the names that `GraphLearner` takes."""
        for name, part, type_, example in (
            ("network", network, Network, "edgebelief.networks.DPG()"),
            ("readout", readout, Readout, "edgebelief.readouts.Affine()"),
            ("prior", prior, Prior | str, "edgebelief.infer.Prior.named('altered')"),
            ("likelihood", likelihood, Likelihood, "edgebelief.infer.BernoulliEdges()"),
        ):
            if not isinstance(part, type_ | None):
                raise SettingTypeError(
                    f"must be an object such as {example}; got {part!r}. GraphLearner takes names.",
                    argument=name,
                )

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters: the network's, the readout's, the likelihood's."""
        return self.logit_parameters + self.likelihood.params_type._fields

    @property
    def logit_parameters(self) -> tuple[str, ...]:
        """The names of the parameters of the logits: the network's and the readout's."""
        return self.network.params_type._fields + self.readout.params_type._fields

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each parameter that is a vector."""
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
        """The scalars that tables list, by name: the parameter, and the index in a vector."""
        scalars: dict[str, tuple[str, int | None]] = {}
        for name in self.parameters:
            if name not in self.sizes:
                scalars[name] = name, None
            elif name not in self.readout.unlisted:
                scalars |= {f"{name}[{k}]": (name, k) for k in range(self.sizes[name])}
        return scalars

    @property
    def free_sizes(self) -> dict[str, int]:
        """The number of scalars to infer of each parameter; none of one that is fixed."""
        sizes, prior = self.sizes, self.prior
        return {n: 0 if prior[n].fixed else sizes.get(n, 1) for n in self.parameters}

    @property
    def n_free(self) -> int:
        """The number of scalars to infer."""
        return sum(self.free_sizes.values())

    def from_z(self, z: AnyArray) -> dict[str, AnyArray]:
        """Map coordinates z, (..., n_free), whose prior is standard normal, to parameters."""
        values, start = {}, 0
        xp = namespace(z)
        for name, n in self.free_sizes.items():
            marginal, shape = self.prior[name], (*z.shape[:-1], *self.shape(name))
            if marginal.fixed:
                values[name] = xp.broadcast_to(xp.asarray(marginal.median, z.dtype), shape)
            else:
                values[name] = marginal.from_z(z[..., start : start + n]).reshape(shape)
            start += n
        return values

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a parameter."""
        return (self.sizes[name],) if name in self.sizes else ()

    def pairs(self, stack: Stack) -> Float[Array, "graphs edges features"] | None:
        """Compute the features of pairs that the readout asks for; None if it asks for none."""
        features = self.readout.pairs(stack)
        return None if features is None else jnp.asarray(features)

    def replace(self, **parts: Any) -> EdgeModel:
        """Return a model with another network, readout, prior or likelihood."""
        own = {name: getattr(self, name) for name in ("network", "readout", "prior", "likelihood")}
        return EdgeModel(**{**own, **parts})

    def with_terms(self, names: Collection[str]) -> EdgeModel:
        """Return the model whose readout has only the terms of these names.

        Without any it is the paper's readout.
        """
        readout = self.readout
        kept = tuple(term for term in readout.terms if term.name in names)
        if kept or not readout.terms:
            return self.replace(readout=readout.with_terms(kept))
        if readout.scale is not None:
            raise InputError(
                f"without terms a {readout.scale} readout is not the paper's; keep one, or compare "
                f"it with another readout by `compare`."
            )
        kept_priors = {name: of for name, of in self.prior.items() if name not in readout.unlisted}
        return self.replace(readout=papers_readout(self.network), prior=Prior(**kept_priors))

    def logits(
        self,
        params: Values,
        e: Float[AnyArray, "... edges"],
        support: Support | None = None,
        pairs: Float[Array, "... edges features"] | None = None,
        precomputed: Output | None = None,
    ) -> Float[Array, "... edges"]:
        """Compute the logit of each edge. Pure: use it inside a NumPyro model of your own.

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

    def log_likelihood(self, params: Values, data: GraphDataset) -> Float[Array, " graphs"]:
        """Compute log p(labels | params) of each graph, in the order of the data set."""
        each = jnp.zeros(len(data))
        for stack in data.stacks():
            batch = Batch.of(self.readout, stack).as_jax()
            each = each.at[stack.places].set(self.forward.log_likelihood_at(params, batch))
        return each

    def log_density(
        self, params: Values, data: GraphDataset, weights: ArrayLike | None = None
    ) -> Float[Array, ""]:
        """Compute log p(params) + sum_t w_t log p(labels_t | params), in the parameters' own units.

        `weights` counts a graph more or less than once (1 by default).
        """
        return self.prior.log_density(params) + self._weighted(params, data, weights)

    def sample(self, data: GraphDataset, weights: ArrayLike | None = None) -> dict[str, Array]:
        """Run the NumPyro model: a site per parameter, and the factor `labels`.

        Pass ``model.sample`` to `numpyro.infer.NUTS`, or call it inside a model of your own.
        """
        import numpyro

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

    def _weighted(self, params: Values, data: GraphDataset, weights: ArrayLike | None) -> Array:
        each = self.log_likelihood(params, data)
        if isinstance(weights, jax.core.Tracer):
            return (weights * each).sum()
        return (check_weights(weights, len(data)) * each).sum()


def check_weights(weights: ArrayLike | None, n_graphs: int) -> Float[np.ndarray, " graphs"]:
    """Check how often each graph counts: numbers >= 0, one per graph; None for once each."""
    if weights is None:
        return np.ones(n_graphs)
    counts = np.asarray(weights, float)
    if counts.shape != (n_graphs,) or not (np.isfinite(counts) & (counts >= 0)).all():
        raise SettingError(
            f"must be {n_graphs} numbers >= 0, one per graph; got {weights}.", argument="weights"
        )
    return counts
