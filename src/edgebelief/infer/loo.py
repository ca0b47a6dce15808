"""How well a posterior would predict each graph had it not seen it, without fitting again.

Draws are weighted to forget a graph (Pareto-smoothed importance sampling; Vehtari, Gelman and Gabry
2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp

from ..data.dataset import GraphDataset
from ..edges import Support
from .arviz import log_likelihoods
from .model import EdgeModel, labels_of, params_of

# Fewer draws than this have no tail of five, which is the least that Pareto's k is found from.
ENOUGH = 25


def psis_loo(
    model: EdgeModel,
    draws: Mapping[str, Float[np.ndarray, "draws ..."]],
    data: GraphDataset,
    counts: Float[np.ndarray, " graphs"],
) -> tuple[Float[np.ndarray, " graphs"], Float[np.ndarray, " graphs"]]:
    """Log score of each graph that counts, as if left out; and Pareto's k of forgetting it.

    Parameters
    ----------
    model : EdgeModel
    draws : mapping from parameter names to arrays
        Of the posterior given all graphs, equally weighted.
    data : GraphDataset
    counts : array
        How often each graph counted; 0 for those to skip.
    """
    fits = _fits(model, draws, data)
    scores, k = np.zeros(len(data)), np.zeros(len(data))
    for t in np.flatnonzero(counts):
        scores[t], k[t] = _forgotten(fits[:, t], counts[t])
    if len(np.unique(fits, axis=0)) < ENOUGH:
        k[counts > 0] = np.inf
    return scores, k


def _forgotten(fits: Float[np.ndarray, " draws"], count: float) -> tuple[float, float]:
    """The log score of a graph whose labels counted so often, as if left out; and Pareto's k.

    Draws that fit it equally well, such as copies of one, are one value that counts for all: ties
    have no tail.
    """
    from arviz_stats.base import array_stats  # slow to import

    values, times = np.unique(fits, return_counts=True)
    minus_log = count * values - np.log(times)
    if len(values) >= ENOUGH:
        log_weights, k = array_stats.psislw(minus_log)
    else:
        log_weights, k = -minus_log, 0.0 if len(values) == 1 else np.inf
    return float(logsumexp(log_weights + values) - logsumexp(log_weights)), float(k)


def _fits(
    model: EdgeModel, draws: Mapping[str, np.ndarray], data: GraphDataset
) -> Float[np.ndarray, "draws graphs"]:
    """Log p(labels of each graph | draw). Of a network not in doubt there is one pass."""
    if any(model.free_sizes[name] for name in model.network.params_type._fields):
        return log_likelihoods(model, {name: x[None] for name, x in draws.items()}, data)[0]
    network = params_of(model.network, {name: jnp.asarray(x[0]) for name, x in draws.items()})
    others = {
        name: jnp.asarray(x)
        for name, x in draws.items()
        if name not in model.network.params_type._fields
    }
    found = np.zeros((len(next(iter(draws.values()))), len(data)))
    for stack in data.stacks():
        given = jnp.asarray(stack.e), labels_of(stack), model.pairs(stack)
        # Not the model: another prior is no reason to compile again.
        parts = model.network, model.readout, model.likelihood
        found[:, stack.places] = _after_network(parts, network, others, given, stack.support)
    return found


@eqx.filter_jit
def _after_network(
    parts: tuple[Any, Any, Any],
    params: Any,
    draws: dict[str, Array],
    given: Any,
    support: Support,
) -> Float[Array, "draws graphs"]:
    (network, readout, likelihood), (e, (a, known, log_w), pairs) = parts, given
    output = network(params, e, support)
    reduced, more = readout.reduce(output, support, pairs), likelihood.reduce(output, support)

    def one(drawn: dict[str, Array]) -> Array:
        logits = readout.logits(params_of(readout, drawn), reduced)
        own = params_of(likelihood, drawn)
        return likelihood.log_likelihood(logits, a, known, log_w, own, more)

    return jax.lax.map(one, draws)


def stacking_weights(
    scores: Float[np.ndarray, "models graphs"], counts: Float[np.ndarray, " graphs"]
) -> Float[np.ndarray, " models"]:
    """The shares with which a mixture of models predicts left-out graphs best.

    Maximises the sum over graphs of log sum_k w_k exp(scores_kt), by the EM iteration of mixture
    weights: concave, and every round gains. (Stacking: Yao, Vehtari, Simpson and Gelman 2018.)

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.infer.loo import stacking_weights
    >>> scores = np.array([[-1.0, -9.0, -1.0], [-9.0, -1.0, -9.0]])
    >>> stacking_weights(scores, np.ones(3)).round(2)  # each graph by the model that knows it
    array([0.67, 0.33])
    """
    used = counts > 0
    share = np.full(len(scores), 1 / len(scores))
    for _ in range(ROUNDS):
        joint = scores[:, used] + np.log(np.maximum(share, 1e-300))[:, None]
        each = np.exp(joint - logsumexp(joint, axis=0))
        new = each @ counts[used] / counts[used].sum()
        moved, share = np.abs(new - share).max(), new
        if moved < 1e-7:
            break
    return share


# Of the EM iteration; a few hundred are usual.
ROUNDS = 10_000
