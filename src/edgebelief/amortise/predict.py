"""Belief in the edges of one graph, by the trained network: no labels, no fit.

    p_ij = mean over heads k of sigmoid(l_ijk),    epistemic sd = sd over heads of sigmoid(l_ijk)

with the logits l of the pair network for the inputs of `inputs.inputs_of`. A network is compiled
for one size of arrays; so graphs are filled up to one of a few sizes: there are few compilations.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, logsumexp

from ..data.signals import Metric
from ..data.signals import distances as distances_of
from ..edges import Complete, pairs_of
from ..errors import InputError, Remedy, Setting, SettingError
from ..evidence.numerics import correlation
from ..networks.pair import PairNetwork, PairOutput
from ..room import check_pair_states
from ..validate import check_choice, check_distances, check_number, check_signals
from .inputs import Known, inputs_of
from .weights import pretrained

# Arrays have one of these sizes, or beyond them a multiple of the last step. Times grow with the
# square to the cube of the size: steps are wide where a graph takes less time than a compilation
# (two seconds), and narrow where it takes more.
SIZES = (12, 20, 32, 50, 80, 125, 200, 250, 320, 400, 500)
STEP = 125
# Negative distances above this share of the largest are rounding.
ROUNDING = 1e-9

# On a CPU, factorisations of two calls at the same time can wait for each other for ever.
_one_at_a_time = Lock()


class PairBeliefs(NamedTuple):
    """What the network believes of each pair of nodes, in `np.triu_indices(N, k=1)` order."""

    probability: Float[np.ndarray, " edges"]
    """The probability of the edge: the mean over heads."""
    epistemic_sd: Float[np.ndarray, " edges"]
    """The standard deviation of the probability over heads."""
    logits: Float[np.ndarray, "edges heads"]
    """The log odds of the edge, by each head."""
    embedding: Float[np.ndarray, "edges width"]
    """The state of the network: what its heads read. Symmetric in the two nodes."""

    @property
    def log_probabilities(self) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
        """The logarithms of the probability and of its complement, precise where either is tiny."""
        logits, log_heads = self.logits.astype(float), np.log(self.logits.shape[1])
        yes, no = (logsumexp(log_expit(sign * logits), axis=1) - log_heads for sign in (1, -1))
        return yes, no

    @property
    def logit(self) -> Float[np.ndarray, " edges"]:
        """The log odds of the edge, of the mean over heads."""
        yes, no = self.log_probabilities
        return yes - no


def beliefs(
    distances: object = None,
    signals: object = None,
    n_signals: float | None = None,
    metric: Metric = "sqeuclidean",
    *,
    network: PairNetwork | None = None,
) -> PairBeliefs:
    """Return what the trained network believes of every pair of one graph.

    Nothing is fitted, and no label is needed. The network has seen a simulated world only; on data
    that are unlike it, it can be wrong and sure of itself (docs/pretrained.md).

    Parameters
    ----------
    distances : array_like, shape (N(N-1)/2,) or (N, N), optional
        As `data.distances` computes them. Multiplying all by a constant changes nothing. By default
        those of the signals; pairs use the signals in which both nodes are there.
    signals : array_like, shape (n_signals, N), optional
        What the distances are of: then the network gets correlations with their signs too. NaN
        where missing.
    n_signals : float, optional
        How many signals the distances average: infinity for expected distances. By default the
        number of `signals`; without them the network is told that it is unknown, and believes less.
    metric : {"sqeuclidean", "log-euclidean", "correlation"}
        Which distances these are; see `data.distances`. Logarithmic ones are taken back to squares,
        whatever was added to them.
    network : PairNetwork, optional
        By default the one that ships with the package.

    Returns
    -------
    PairBeliefs
        Finite, whatever finite distances were given.

    Examples
    --------
    >>> from edgebelief.amortise import beliefs
    >>> from edgebelief.data import RandomGeometric, smooth_signals
    >>> graph = RandomGeometric(radius=0.5).sample(key=0, n_nodes=10)
    >>> belief = beliefs(signals=smooth_signals(1, graph, n_signals=200))
    >>> belief.probability.shape, belief.logits.shape
    ((45,), (45, 4))
    """
    check_choice(metric, "metric", get_args(Metric))
    values = None if signals is None else check_signals(signals, allow_nan=True)
    e, n_nodes = _squared(distances, signals, metric)
    check_pair_states(n_nodes)
    c = np.eye(n_nodes) if values is None else _correlations(values, n_nodes)
    facts = (_number(n_signals, values), metric == "correlation", values is not None)
    output = _run(pretrained() if network is None else network, e, c, facts)
    rows, columns = np.triu_indices(n_nodes, k=1)
    logits, embedding = (np.asarray(x)[rows, columns] for x in output)
    p = expit(logits.astype(float))
    return PairBeliefs(p.mean(1), p.std(1), logits, embedding)


def _run(
    network: PairNetwork, e: np.ndarray, c: np.ndarray, facts: tuple[float, ...]
) -> PairOutput:
    """Run the network on matrices filled up to one of a few sizes; `facts` are those of `Known`."""
    n, size = len(e), padded(len(e))
    fill = (0, size - n)
    e, c = (np.pad(x, (fill, fill)).astype(np.float32) for x in (e, c))
    mask = (np.arange(size) < n).astype(np.float32)
    # In single precision, whatever the caller has told JAX: as in training.
    with _one_at_a_time, jax.enable_x64(False):
        known = Known(*(jnp.float32(fact) for fact in facts))
        output: PairOutput = jax.block_until_ready(_evaluate(network, e, c, known, mask))
        return output


@jax.jit
def _evaluate(
    network: PairNetwork, e: jax.Array, c: jax.Array, known: Known, mask: jax.Array
) -> PairOutput:
    return network(*inputs_of(e, c, known, mask))


def padded(n_nodes: int) -> int:
    """Return the size of the arrays for a graph.

    Examples
    --------
    >>> from edgebelief.amortise.predict import padded
    >>> [padded(n) for n in (2, 20, 21, 500, 501)]
    [12, 20, 32, 500, 625]
    """
    for size in SIZES:
        if n_nodes <= size:
            return size
    return -(-n_nodes // STEP) * STEP


def _squared(
    distances: object, signals: object, metric: Metric
) -> tuple[Float[np.ndarray, "nodes nodes"], int]:
    """Return squared distances, or 1 - |correlation|, as a matrix whose largest entry is 1."""
    if distances is None:
        if signals is None:
            raise InputError("neither distances nor signals were given.", argument="distances")
        kind: Metric = "correlation" if metric == "correlation" else "sqeuclidean"
        distances, metric = distances_of(signals, kind, missing="pairwise"), kind
    e, support = check_distances(distances)
    if support.n_edges < pairs_of(support.n_nodes):
        raise InputError("must be of all pairs.", argument="distances")
    if metric == "log-euclidean":
        e = 10.0 ** (2 * (e - e.max()))
    largest = np.abs(e).max()
    if (e < -ROUNDING * largest).any():
        remedy = Remedy("If they are logarithms, say so", Setting("metric", "log-euclidean"))
        problem = f"has an entry of {e.min():g}, and squared distances are not negative"
        raise InputError(problem, argument="distances", remedy=remedy)
    e = np.maximum(e, 0.0) / (largest if largest > 0 else 1.0)
    return Complete(support.n_nodes).to_matrix(e), support.n_nodes


def _correlations(
    values: Float[np.ndarray, "signals nodes"], n_nodes: int
) -> Float[np.ndarray, "nodes nodes"]:
    if values.shape[1] != n_nodes:
        problem = f"has {values.shape[1]} columns; the distances are of {n_nodes} nodes."
        raise InputError(problem, argument="signals")
    return correlation(values)


def _number(n_signals: float | None, values: np.ndarray | None) -> float:
    """Return the number of signals; NaN if it is unknown."""
    if n_signals is None:
        return np.nan if values is None else len(values)
    number = check_number(n_signals, "n_signals")
    if not number >= 1:
        raise SettingError(f"must be at least 1; got {number:g}.", argument="n_signals")
    return number
