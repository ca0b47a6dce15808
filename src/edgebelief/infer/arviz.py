"""A posterior for ArviZ, for its plots and for leave-one-graph-out scores.

ArviZ from 1.0 on takes xarray's DataTree; before (up to Python 3.11, `pip install arviz` gives
0.23) its own InferenceData, with the same groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any, Literal, Protocol, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.dataset import GraphDataset
from ..data.randomness import Key, as_key
from ..errors import InputError, Remedy, Setting, SettingError
from ..validate import check_choice
from .batch import Batch, ForwardModel
from .model import EdgeModel

Kind = Literal["datatree", "inferencedata"]
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


def to_arviz(
    posterior: Drawn,
    data: GraphDataset,
    key: Key | int,
    n_draws: int = 1000,
    kind: Kind | None = None,
) -> Any:
    """Convert a posterior, and what it says about labelled graphs, to what ArviZ takes.

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
    kind : {"datatree", "inferencedata"}, optional
        By default what the ArviZ that is installed takes: "inferencedata" before 1.0; else, and
        without ArviZ, "datatree", which `arviz_stats` takes, too.

    Returns
    -------
    xarray.DataTree or arviz.InferenceData
        `posterior` (chain, draw); `sample_stats`, for `NUTS`; `log_likelihood` of each graph's
        labels (chain, draw, graph); `prior`; `posterior_predictive` and `prior_predictive`, the
        edge density of each graph drawn anew (over the edges whose labels are known);
        `observed_data`, that of the labels. The coordinate `graph` is the index in the data set.
        Entries of vectors have names: ``tree["posterior"]["scales"].sel(scale="z line")`` is the
        scale of the straight part of the term "z".

    Examples
    --------
    >>> from arviz_stats import loo
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.infer.arviz import to_arviz
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=10)), data)
    >>> tree = to_arviz(posterior, data, key=1, kind="datatree")
    >>> int(loo(tree).n_data_points)
    8
    """
    import arviz_base  # slow to import

    kind = _kind(kind)
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
    entries = _entries(model)
    dims = {"labels": ["graph"], "edge_density": ["graph"]}
    dims |= {name: [dim] for name, (dim, _) in entries.items()}
    coords: dict[str, Any] = {"graph": labelled, **dict(entries.values())}
    tree = arviz_base.from_dict(groups, dims=dims, coords=coords)
    tree.attrs["engine"] = posterior.engine
    tree.attrs["settings"] = ", ".join(f"{k}={v!r}" for k, v in posterior.settings.items())
    if kind == "datatree":
        return tree
    import arviz

    groups = {name: group.to_dataset() for name, group in tree.children.items()}
    return arviz.InferenceData(**groups, attrs=tree.attrs)


def _kind(kind: Kind | None) -> Kind:
    """Return the kind that was asked for, or that suits the ArviZ that is installed."""
    check_choice(kind, "kind", (*get_args(Kind), None))
    try:
        version = metadata.version("arviz")
    except metadata.PackageNotFoundError:
        version = None
    old = version is not None and int(version.split(".")[0]) < 1
    if kind == "inferencedata" and not old:
        there = "it is not installed" if version is None else f"there is {version}"
        raise SettingError(
            f"'inferencedata' needs ArviZ before 1.0, and {there}",
            argument="kind",
            remedy=["pip install 'arviz<1'", Remedy("use {}", Setting("kind", "datatree"))],
        )
    return kind or ("inferencedata" if old else "datatree")


def _entries(model: EdgeModel) -> dict[str, tuple[str, list[str]]]:
    """Return for each parameter that is a vector a dimension, and the names of its entries."""
    entries = {
        name: (f"{name}_entry", [str(k) for k in range(size)]) for name, size in model.sizes.items()
    }
    channels = model.network.n_channels
    if channels is not None and model.network.sizes.get("theta") == channels**2:
        pairs = [f"{j},{k}" for j in range(channels) for k in range(channels)]
        entries["theta"] = "row_and_column", pairs
    if model.readout.n_channels is not None and "delta" in entries:
        entries["delta"] = "channel", entries["delta"][1]
    if model.readout.terms:
        terms = model.readout.terms
        coefficients = [f"{t.name} {x}".strip() for t in terms for x in t.curve.coefficient_names]
        scales = [f"{t.name} {x}".strip() for t in terms for x in t.curve.scale_names]
        entries |= {"curves": ("coefficient", coefficients), "scales": ("scale", scales)}
    return entries


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
