"""Why an edge is believed in: what its logit is the sum of, and the curves behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Array, Float, Int
from scipy.special import expit

from ..data.randomness import Key
from ..errors import InputError, InputTypeError
from ..infer.batch import Batch, ForwardModel
from ..infer.posterior import Posterior
from ..readouts.curves import coefficient_slices
from .predict import as_dataset, batch_of_one

# Draws behind means and bands, and the share of them that a band holds.
DRAWS, LEVEL = 256, 0.9


def explain(
    key: Key | int, posterior: Posterior, data: Any, source: str, target: str, graph: int = 0
) -> pd.DataFrame:
    """What raises and what lowers belief in one edge.

    Parameters
    ----------
    key : JAX key or int
        Of the draws behind the intervals.
    posterior : Posterior
    data : GraphDataset or array_like
        As for `predict`.
    source, target : str
        Names of two nodes.
    graph : int
        In which graph, where there are several.

    Returns
    -------
    DataFrame
        A row per part: its contribution to the logit (mean over the posterior; low and high, the
        ends of the interval that holds 90 %), and the value of the feature where it is a curve of
        one. The contributions add up to the last row, the logit; its odds are exp of it.

    Examples
    --------
    >>> from edgebelief.belief import explain
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=100)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=50)), data)
    >>> explain(0, posterior, data, "0", "1")["part"].tolist()
    ['weight', 'baseline', 'logit']
    """
    data = as_dataset(data)
    record = data[graph]
    places = [_place(record.names, str(name)) for name in (source, target)]
    if places[0] == places[1]:
        raise InputError(f"{source!r} is one node; an edge joins two.")
    rows, cols = record.support.endpoints
    edge = int(np.flatnonzero((rows == min(places)) & (cols == max(places)))[0])
    return explain_edges(key, posterior, data, [edge], graph)[0]


def explain_edges(
    key: Key | int,
    posterior: Posterior,
    data: Any,
    edges: Sequence[int],
    graph: int = 0,
    n: int = DRAWS,
) -> list[pd.DataFrame]:
    """What raises and what lowers belief in some edges of one graph; the network runs `n` times.

    Parameters
    ----------
    key : JAX key or int
        Of the draws behind the intervals.
    posterior : Posterior
    data : GraphDataset or array_like
        As for `predict`.
    edges : sequence of int
        Their places among the graph's pairs.
    graph : int
        In which graph, where there are several.
    n : int
        Draws.

    Returns
    -------
    list of DataFrame
        For each edge, as of `explain`.

    Examples
    --------
    >>> from edgebelief.belief import explain_edges
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=100)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=50)), data)
    >>> first, second = explain_edges(0, posterior, data, [3, 7])
    >>> first["part"].tolist()
    ['weight', 'baseline', 'logit']
    """
    (stack,) = as_dataset(data)[graph : graph + 1].stacks()
    batch = batch_of_one(posterior.model, stack, 0)
    draws = {k: jnp.asarray(v) for k, v in posterior.draws(key, n).items()}
    places = jnp.asarray(edges, int)
    parts, values = _parts_of(posterior.model.forward, draws, batch, places)
    order = posterior.model.readout.part_names
    each = np.stack([np.asarray(parts[name], float) for name in order])  # (parts, draws, edges)
    each = np.concatenate([each, each.sum(0, keepdims=True)])
    means = [np.asarray(values[name], float).mean(0) if name in values else None for name in order]
    low, high = np.quantile(each, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    tables = []
    for k in range(len(edges)):
        table = pd.DataFrame(
            {
                "part": [*order, "logit"],
                "value": [*(np.nan if mean is None else mean[k] for mean in means), np.nan],
                "contribution": each[:, :, k].mean(1),
                "low": low[:, k],
                "high": high[:, k],
            }
        )
        table.attrs["probability"] = float(expit(each[-1, :, k]).mean())
        tables.append(table)
    return tables


def _place(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise InputError(f"no node is called {name!r}; there are {list(names[:8])} ...")
    return names.index(name)


@eqx.filter_jit
def _parts_of(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch, edges: Int[Array, " edges"]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The summands of the logits of some edges, and the features behind them, at each draw."""

    def at(values: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        parts, inputs = forward.parts_at(values, batch)
        return jax.tree.map(lambda x: x[0, edges], (parts, inputs))

    return lax.map(at, draws)


class TermCurve(NamedTuple):
    """A term of an additive readout: its curve over the values that were seen."""

    name: str
    x: Float[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    """The end of the band that holds the whole curve with probability 0.9."""
    high: Float[np.ndarray, " points"]
    size: float
    """How much the term moves the logit: its root mean square over the pairs fitted."""
    levels: tuple[str, ...] = ()
    """What the points are called, of a category."""

    @property
    def matters(self) -> bool:
        """Whether the band leaves zero out anywhere."""
        return bool(((self.low > 0) | (self.high < 0)).any())


def term_curves(posterior: Posterior, key: Key | int = 0) -> list[TermCurve]:
    """The curves of an additive readout, the largest first.

    Examples
    --------
    >>> from edgebelief.belief import term_curves
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.readouts import Additive
    >>> data = GraphDataset.sample(0, RandomGeometric(0.4), 10, n_nodes=10, n_signals=100)
    >>> model = EdgeModel(DPG(depth=50), Additive(features=("z", "rank sum")))
    >>> curves = term_curves(Exact().run(0, model, data))
    >>> sorted(curve.name for curve in curves)
    ['rank sum', 'z']
    """
    readout = posterior.model.readout
    if not readout.terms:
        raise InputTypeError(f"{type(readout).__name__} has no curves; Additive has.")
    draws = posterior.draws(key, 4 * DRAWS)
    coefficients = draws["scales"][:, readout.groups] * draws["curves"]
    found, places = [], coefficient_slices(readout.terms)
    for term in readout.terms:
        some, x = coefficients[:, places[term.name]], term.curve.points
        f = some @ np.asarray(term.curve.columns(jnp.asarray(x)), float).T
        mean, sd = f.mean(0), np.maximum(f.std(0), 1e-12)
        half = np.quantile((np.abs(f - mean) / sd).max(1), LEVEL) * sd
        squares = np.einsum("di,ij,dj->d", some, term.curve.gram, some)
        size = float(np.sqrt(max(squares.mean(), 0.0)))
        ends = mean - half, mean + half
        found.append(TermCurve(term.name, x, mean, *ends, size, term.curve.names))
    return sorted(found, key=lambda curve: -curve.size)


def term_table(posterior: Posterior, key: Key | int = 0) -> pd.DataFrame:
    """The terms of an additive readout: how much each moves the logit, and whether it is needed.

    A term is needed if the band of its curve leaves zero out anywhere.

    Examples
    --------
    >>> from edgebelief.belief import term_table
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.readouts import Additive
    >>> data = GraphDataset.sample(0, RandomGeometric(0.4), 10, n_nodes=10, n_signals=100)
    >>> model = EdgeModel(DPG(depth=50), Additive(features=("z", "rank sum")))
    >>> term_table(Exact().run(0, model, data)).columns.tolist()
    ['term', 'size', 'needed']
    """
    curves = term_curves(posterior, key)
    return pd.DataFrame(
        {
            "term": [curve.name for curve in curves],
            "size": [curve.size for curve in curves],
            "needed": [curve.matters for curve in curves],
        }
    )
