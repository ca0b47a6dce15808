"""A posterior as an ArviZ DataTree, for its plots and for leave-one-graph-out scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.dataset import GraphDataset
from ..data.randomness import Key, as_key
from ..errors import InputError
from .batch import Batch, ForwardModel
from .model import EdgeModel

Draws = Mapping[str, Float[np.ndarray, "chains draws ..."]]


class Drawn(Protocol):
    """What is needed of a posterior: its draws, and chains where it has some."""

    @property
    def model(self) -> EdgeModel: ...
    @property
    def params(self) -> Mapping[str, np.ndarray]: ...
    @property
    def sample_stats(self) -> Mapping[str, np.ndarray]: ...
    @property
    def engine(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def n_chains(self) -> int: ...
    @property
    def n_draws(self) -> int: ...
    def draws(self, key: Key | int, n: int = 1000) -> dict[str, np.ndarray]: ...


def to_arviz(posterior: Drawn, data: GraphDataset, key: Key | int, n_draws: int = 1000) -> Any:
    """An ArviZ DataTree of a posterior and of what it says about labelled graphs.

    The unit of data is the graph: edges of one graph share its distances, so that leaving out
    single edges would be no test. Graphs without a known label are left out.

    Parameters
    ----------
    posterior : Posterior
    data : GraphDataset
        The graphs that it was fitted to (or new ones).
    key : JAX key or int
    n_draws : int
        How many draws, at most, of posterior and prior; each is a pass through the network for
        all graphs. Chains are kept, every so many draws of them.

    Returns
    -------
    xarray.DataTree
        `posterior` (chain, draw); `sample_stats`, for `NUTS`; `log_likelihood` of each graph's
        labels (chain, draw, graph); `prior`; `posterior_predictive` and `prior_predictive`, the
        edge density of each graph drawn anew (over the edges whose labels are known);
        `observed_data`, that of the labels. The coordinate `graph` is the place in the data set.

    Examples
    --------
    >>> from arviz_stats import loo
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.infer.arviz import to_arviz
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=10)), data)
    >>> tree = to_arviz(posterior, data, key=1)
    >>> int(loo(tree).n_data_points)
    8
    """
    import arviz_base  # slow to import

    labelled = np.flatnonzero([record.known.any() for record in data])
    if not labelled.size:
        raise InputError(
            f"none of the {len(data)} graphs has a known label, so there is no likelihood to "
            f"report; pass the labelled data that the posterior was fitted to."
        )
    graphs, model = data[labelled], posterior.model
    draw_key, prior_key, after_key, before_key = jax.random.split(as_key(key), 4)
    kept = _every(posterior.n_draws // posterior.n_chains, n_draws // posterior.n_chains)
    after = _chains(posterior, draw_key, n_draws, kept)
    drawn = model.prior.sample(prior_key, n_draws, model.sizes)
    prior = {name: np.asarray(values, float)[None] for name, values in drawn.items()}
    log_likelihood, after_density = _pass(model, after, graphs, after_key)
    _, prior_density = _pass(model, prior, graphs, before_key)
    observed = np.array([record.a[record.known].mean() for record in graphs])
    groups: dict[str, Any] = {
        "posterior": after,
        "log_likelihood": {"labels": log_likelihood},
        "posterior_predictive": {"edge_density": after_density},
        "prior": prior,
        "prior_predictive": {"edge_density": prior_density},
        "observed_data": {"edge_density": observed},
    }
    if posterior.sample_stats:
        groups["sample_stats"] = {k: v[:, kept] for k, v in posterior.sample_stats.items()}
    dims = {"labels": ["graph"], "edge_density": ["graph"]}
    tree = arviz_base.from_dict(groups, dims=dims, coords={"graph": labelled})
    tree.attrs["engine"] = posterior.engine
    tree.attrs["settings"] = ", ".join(f"{k}={v!r}" for k, v in posterior.settings.items())
    return tree


def _chains(posterior: Drawn, key: Key, n: int, kept: np.ndarray) -> dict[str, np.ndarray]:
    """The chains of an engine that has them; else one chain of equally weighted draws."""
    if not posterior.sample_stats:
        return {name: values[None] for name, values in posterior.draws(key, n).items()}
    return {
        name: values.reshape(posterior.n_chains, -1, *values.shape[1:])[:, kept]
        for name, values in posterior.params.items()
    }


def _every(n: int, at_most: int) -> np.ndarray:
    """Places of evenly spaced draws of a chain of `n`, the last among them."""
    step = -(-n // max(at_most, 1))
    return np.arange(n - 1, -1, -step)[::-1]


def _pass(
    model: EdgeModel, draws: Draws, data: GraphDataset, key: Key
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the log-likelihood and the edge density of a replicate, by draw and graph."""
    shape = next(iter(draws.values())).shape[:2]
    flat = {name: jnp.asarray(x.reshape(-1, *x.shape[2:])) for name, x in draws.items()}
    keys = jax.random.split(key, int(np.prod(shape)))
    likelihood, density = np.empty((2, keys.size, len(data)))
    for stack in data.stacks():
        stack_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, stack.support.n_nodes)
        batch = model.forward.batch(stack).as_jax()
        of_stack = _pass_stack(model.forward, flat, stack_keys, batch)
        likelihood[:, stack.places], density[:, stack.places] = map(np.asarray, of_stack)
    return likelihood.reshape(*shape, -1), density.reshape(*shape, -1)


@eqx.filter_jit
def _pass_stack(
    forward: ForwardModel, draws: dict[str, Array], keys: Array, batch: Batch
) -> tuple[Float[Array, "draws graphs"], Float[Array, "draws graphs"]]:
    known = batch.labels.known

    def at(drawn: tuple[dict[str, Array], Array]) -> tuple[Array, Array]:
        values, key = drawn
        params = forward.split(values)
        reduced = forward.run(params, batch)
        logits = forward.logits(params, reduced)
        replicate = jax.random.bernoulli(key, jax.nn.sigmoid(logits)) & known
        likelihood = forward.log_likelihood(logits, params, reduced, batch)
        return likelihood, replicate.sum(-1) / known.sum(-1)

    return jax.lax.map(at, (draws, keys))
