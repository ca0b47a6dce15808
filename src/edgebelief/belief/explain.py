"""Explain the belief in an edge by the summands of its logit, and by the curves behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..data.randomness import Key
from ..errors import InputError, InputTypeError
from ..infer.batch import Batch, ForwardModel
from ..infer.engines.mixture import Mixture
from ..infer.posterior import Posterior
from ..readouts.curves import coefficient_slices
from .predict import DataLike, as_dataset, batch_of_one, predict, quantiles_of

# The number of draws for means and intervals, and the posterior probability of the intervals.
DRAWS, LEVEL = 256, 0.9


def explain(
    key: Key | int, posterior: Posterior, data: DataLike, source: str, target: str, graph: int = 0
) -> pd.DataFrame:
    """Split the logit of one edge into what raises it and what lowers it.

    Parameters
    ----------
    key : JAX key or int
        The key of the draws from the posterior.
    posterior, data
        As for `predict`.
    source, target : str
        Names of two nodes.
    graph : int
        The index of the graph, where there are several.

    Returns
    -------
    DataFrame
        A row for each summand of the logit: its contribution (the posterior mean; low and high are
        the ends of the 90 % credible interval), and the value of the feature for a summand that is
        a curve of one. The contributions add up to the last row, the logit; the odds of the edge
        are exp(logit). ``attrs["probability"]`` is the probability that `predict` returns.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 5, n_nodes=8, n_signals=100)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> belief.explain(0, posterior, graphs, "0", "1")["part"].tolist()
    ['weight', 'baseline', 'logit']
    """
    data = as_dataset(data)
    record = data[graph]
    for name in map(str, (source, target)):
        if name not in record.names:
            raise InputError(f"no node is called {name!r}; there are {list(record.names[:8])} ...")
    ends = [record.names.index(str(name)) for name in (source, target)]
    if ends[0] == ends[1]:
        raise InputError(f"{source!r} is one node; an edge joins two.")
    rows, cols = record.support.endpoints
    found = np.flatnonzero((rows == min(ends)) & (cols == max(ends)))
    if not found.size:
        problem = f"{source!r} and {target!r} are no near neighbours: they are taken for no edge"
        raise InputError(problem, graph=graph if len(data) > 1 else None)
    edge = int(found[0])
    table = explain_edges(key, posterior, data, [edge], graph)[0]
    # That of `predict`: the mean of so few draws may differ from it in the second digit.
    table.attrs["probability"] = float(predict(posterior, data[graph : graph + 1])[0].mean[edge])
    return table


def explain_edges(
    key: Key | int,
    posterior: Posterior,
    data: DataLike,
    edges: Sequence[int],
    graph: int = 0,
    n: int = DRAWS,
) -> list[pd.DataFrame]:
    """Split the logits of several edges of one graph into what raises and what lowers them.

    Parameters
    ----------
    key, posterior, data, graph
        As for `explain`.
    edges : sequence of int
        The indices of the edges in the edge vector of the graph.
    n : int
        The number of draws; the network runs once for each.

    Returns
    -------
    list of DataFrame
        The table that `explain` returns, for each edge.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.4), 5, n_nodes=8, n_signals=100)
    >>> posterior = infer.Exact().run(0, infer.EdgeModel(), graphs)
    >>> first, second = belief.explain_edges(0, posterior, graphs, [3, 7])
    >>> first["part"].tolist()
    ['weight', 'baseline', 'logit']
    """
    (stack,) = as_dataset(data)[graph : graph + 1].stacks()
    batch = batch_of_one(posterior.model, stack, 0)
    draws = {k: jnp.asarray(v) for k, v in posterior.draws(key, n).items()}
    parts, features = _summands(posterior.model.forward, draws, batch, jnp.asarray(edges, int))
    order = posterior.model.readout.part_names
    # The contributions, (parts, draws, edges); the last part is their sum, the logit.
    each = np.stack([np.asarray(parts[name], float) for name in order])
    each = np.concatenate([each, each.sum(0, keepdims=True)])
    inputs = {name: np.asarray(x, float).mean(0) for name, x in features.items()}
    low, high = np.quantile(each, quantiles_of(LEVEL), axis=1)
    tables = []
    for k in range(len(edges)):
        table = pd.DataFrame(
            {
                "part": [*order, "logit"],
                "value": [*(inputs[x][k] if x in inputs else np.nan for x in order), np.nan],
                "contribution": each[:, :, k].mean(1),
                "low": low[:, k],
                "high": high[:, k],
            }
        )
        tables.append(table)
    return tables


# Numbers for some edges of one graph, at each draw, by name.
OfEdges = dict[str, Float[Array, "draws edges"]]


@eqx.filter_jit
def _summands(
    forward: ForwardModel, draws: dict[str, Array], batch: Batch, edges: Int[Array, " edges"]
) -> tuple[OfEdges, OfEdges]:
    """Compute the summands of the logits, and the features that they are curves of."""
    return lax.map(
        lambda values: jax.tree.map(lambda x: x[0, edges], forward.parts_at(values, batch)), draws
    )


class TermCurve(NamedTuple):
    """The curve of a term of an additive readout, over the range of its feature in the data."""

    name: str
    x: Float[np.ndarray, "points ..."]
    mean: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    """The lower end of the simultaneous band, which holds the whole curve with probability 0.9."""
    high: Float[np.ndarray, " points"]
    size: float
    """The root mean square of the term over the fitted pairs, in units of the logit."""
    levels: tuple[str, ...] = ()
    """The names of the points, if the feature is a category."""
    share: float = 1.0
    """The share of the posterior that has the term: below one where it is a mixture of models with
    some of the terms. All else is about this share."""

    @property
    def matters(self) -> bool:
        """Whether the band excludes zero at any point."""
        return bool(((self.low > 0) | (self.high < 0)).any())


def term_curves(posterior: Posterior, key: Key | int = 0) -> list[TermCurve]:
    """Compute the curves of an additive readout, those with the largest `size` first.

    Functions of several features are no curves: `term_table` lists them.

    Examples
    --------
    >>> from edgebelief import belief, data, infer, readouts
    >>> graphs = data.GraphDataset.sample(0, data.RandomGeometric(0.4), 10, 10, n_signals=100)
    >>> model = infer.EdgeModel(readout=readouts.Additive(features=("z", "rank sum")))
    >>> curves = belief.term_curves(infer.Exact().run(0, model, graphs))
    >>> sorted(curve.name for curve in curves)
    ['rank sum', 'z']
    """
    return [curve for curve in _functions(posterior, key) if curve.x.ndim == 1]


def _functions(posterior: Posterior, key: Key | int) -> list[TermCurve]:
    """Compute the functions of all terms, those of several features too."""
    readout = posterior.model.readout
    if not readout.terms:
        raise InputTypeError(f"{type(readout).__name__} has no curves; Additive has.")
    curves, slices = [], coefficient_slices(readout.terms)
    coefficients: dict[bytes, np.ndarray] = {}  # for each set of draws that have a term
    for term in readout.terms:
        has_term = np.ones(posterior.n_draws, bool)
        if posterior.engine == Mixture.__name__:
            has_term = (posterior.params["curves"][:, slices[term.name]] != 0).any(1)
        if (pattern := has_term.tobytes()) not in coefficients:
            draws = _that_are(posterior, has_term).draws(key, 4 * DRAWS)
            coefficients[pattern] = np.asarray(
                readout.coefficients(draws["scales"], draws["curves"])
            )
        share = min(float(posterior.weights @ has_term), 1.0)
        of_term, x = coefficients[pattern][:, slices[term.name]], term.curve.points
        f = of_term @ np.asarray(term.curve.columns(jnp.asarray(x)), float).T
        mean, sd = f.mean(0), np.maximum(f.std(0), 1e-12)
        half = np.quantile((np.abs(f - mean) / sd).max(1), LEVEL) * sd
        squares = np.einsum("di,ij,dj->d", of_term, term.curve.gram, of_term)
        size = float(np.sqrt(max(squares.mean(), 0.0)))
        low, high, levels = mean - half, mean + half, term.curve.names
        curves.append(TermCurve(term.name, x, mean, low, high, size, levels, share))
    return sorted(curves, key=lambda curve: -curve.size)


def _that_are(posterior: Posterior, kept: Bool[np.ndarray, " draws"]) -> Posterior:
    """Return the posterior of the draws that are kept; the same if that is all of them, or none.

    In a mixture, draws of parts that do not have a term have zeros for it.
    """
    weights = posterior.weights * kept
    if kept.all() or weights.sum() == 0:
        return posterior
    return replace(posterior, weights=weights / weights.sum())


def term_table(posterior: Posterior, key: Key | int = 0) -> pd.DataFrame:
    """Tabulate the terms of an additive readout: size, whether it is needed, and the share with it.

    A term is needed if the band of its curve excludes zero at any point; that of a function of
    several features at any of its landmarks. Where the posterior is a mixture of models with some
    of the terms, `size` and `needed` are about those that have the term, and `share` is how much of
    the mixture that is; else it is one.

    Examples
    --------
    >>> from edgebelief import belief, data, infer, readouts
    >>> graphs = data.GraphDataset.sample(0, data.RandomGeometric(0.4), 10, 10, n_signals=100)
    >>> model = infer.EdgeModel(readout=readouts.Additive(features=("z", "rank sum")))
    >>> belief.term_table(infer.Exact().run(0, model, graphs)).columns.tolist()
    ['term', 'size', 'needed', 'share']
    """
    rows = [(c.name, c.size, c.matters, c.share) for c in _functions(posterior, key)]
    return pd.DataFrame(rows, columns=["term", "size", "needed", "share"])
