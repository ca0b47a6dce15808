"""Belief in the edges of one graph, by the trained network: no labels, no fit.

    p_ij = mean over heads k and levels u of sigmoid(c + t (l_ijk - c) + u)

with the logits l of the pair network for the inputs of `inputs.inputs_of`. Where the input is like
the world that the network was trained on, t is 1 and u is 0; where it is not, belief is tempered
(`temper.py`), and a warning says so. The epistemic sd is that over k and u.

A network is compiled for one size of arrays; so graphs are filled up to one of a few sizes: there
are few compilations.
"""

from __future__ import annotations

import warnings
from threading import Lock
from typing import NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit

from ..data.signals import Metric
from ..data.signals import distances as distances_of
from ..edges import Complete, pairs_of
from ..errors import InputError, Message, Remedy, Setting, SettingError
from ..evidence.numerics import correlation
from ..networks.pair import PairNetwork, PairOutput
from ..room import check_pair_states
from ..validate import check_choice, check_distances, check_number, check_signals
from .alarm import Alarm, shipped
from .inputs import Known, inputs_of
from .temper import Law, Tempering, by_rule, contradiction, log_moments, moments, stated_law
from .temper import temper as tempering_of
from .typical import ALARM, Typicality
from .weights import pretrained

# Arrays have one of these sizes, or beyond them a multiple of the last step. Times grow with the
# square to the cube of the size: steps are wide where a graph takes less time than a compilation
# (two seconds), and narrow where it takes more.
SIZES = (12, 20, 32, 50, 80, 125, 200, 250, 320, 400, 500)
STEP = 125
# Negative distances above this share of the largest are rounding.
ROUNDING = 1e-9

# On a CPU, factorisations of two calls at the same time can wait for each other for ever.
one_at_a_time = Lock()


class LostWarning(Message, UserWarning):
    """The data are unlike the world that the network was trained on."""


class PairBeliefs(NamedTuple):
    """What the network believes of each pair of nodes, in `np.triu_indices(N, k=1)` order."""

    probability: Float[np.ndarray, " edges"]
    """The probability of the edge, tempered: the mean over heads and levels."""
    epistemic_sd: Float[np.ndarray, " edges"]
    """The standard deviation of the probability over heads and levels."""
    logits: Float[np.ndarray, "edges heads"]
    """The log odds of the edge, by each head, as the network gives them."""
    embedding: Float[np.ndarray, "edges width"]
    """The state of the network: what its heads read. Symmetric in the two nodes."""
    typicality: Typicality | None
    """How like the training world the input is; None for a network that has no reference, and for
    two nodes."""
    slope: float
    """t. Given a head k and a level u, edges are independent with the log odds
    `centre + slope * (logits[:, k] - centre) + u`."""
    centre: float
    """c."""
    levels: Float[np.ndarray, " levels"]
    """The values of u."""
    level_weights: Float[np.ndarray, " levels"]
    """Their probabilities."""
    contradiction: float
    """How many standard deviations beyond one the stated density is from the network's own; 0 where
    nothing is stated."""

    @property
    def is_lost(self) -> bool:
        """Whether the input is unlike the training world, or the density other than was stated."""
        is_unlike = self.typicality is not None and self.typicality.is_lost
        return is_unlike or self.contradiction > ALARM

    @property
    def log_probabilities(self) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
        """The logarithms of the probability and of its complement, precise where either is tiny."""
        law = Tempering(self.slope, self.centre, self.levels, self.level_weights)
        return log_moments(self.logits, law)

    @property
    def logit(self) -> Float[np.ndarray, " edges"]:
        """The log odds of the edge, of the mean over heads and levels."""
        yes, no = self.log_probabilities
        return yes - no


def beliefs(
    distances: object = None,
    signals: object = None,
    n_signals: float | None = None,
    metric: Metric = "sqeuclidean",
    *,
    density: float | tuple[float, float] | None = None,
    temper: bool = True,
    network: PairNetwork | None = None,
    alarm: Alarm | None = None,
) -> PairBeliefs:
    """Return what the trained network believes of every pair of one graph.

    Nothing is fitted, and no label is needed. The network has seen a simulated world only. Data
    that are unlike it are often noticed, but not always: then belief is tempered, and a
    `LostWarning` says so (docs/pretrained.md has what goes unnoticed).

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
    density : float or (float, float), optional
        What is known of the share of pairs that are joined: a number, or a range that holds it with
        90 %. It matters where the network may be lost, and little where it is not. Where it is far
        from what the network finds, belief is tempered, with a `LostWarning`.
    temper : bool
        False for the network's own probabilities. The warning stays.
    network : PairNetwork, optional
        By default the one that ships with the package.
    alarm : Alarm, optional
        The reference for `network`. Without it, another network than the one that ships is not
        tempered, and there is no warning.

    Returns
    -------
    PairBeliefs
        Finite, whatever finite distances were given.

    Examples
    --------
    >>> from edgebelief.amortise import beliefs
    >>> from edgebelief.data import RandomGeometric, smooth_signals
    >>> graph = RandomGeometric(radius=0.4).sample(key=0, n_nodes=20)
    >>> belief = beliefs(signals=smooth_signals(1, graph, n_signals=200))
    >>> belief.probability.shape, belief.logits.shape
    ((190,), (190, 4))
    >>> belief.typicality.is_lost
    False
    """
    check_choice(metric, "metric", get_args(Metric))
    stated = None if density is None else stated_law(density)
    values = None if signals is None else check_signals(signals, allow_nan=True)
    e, n_nodes = _squared(distances, signals, metric)
    check_pair_states(n_nodes)
    if network is None:
        network, alarm = pretrained(), alarm or shipped()
    if stated is not None and (alarm is None or not temper):
        problem = "can be stated only where belief is tempered, with the reference of the network."
        raise SettingError(problem, argument="density")
    number, is_correlation = _number(n_signals, values), metric == "correlation"
    logits, embedding = evaluate(network, e, values, number, is_correlation)
    typicality, law, contradicts = None, tempering_of(logits), 0.0
    if alarm is not None and n_nodes > 2:
        typicality = alarm.judge(e, values, number, is_correlation, logits, embedding)
        if temper:
            world = alarm.reference.world_law(n_nodes)
            law = by_rule(logits, alarm.rule, typicality.surprise, stated, world)
            contradicts = contradiction(logits, stated)
    probability, sd = moments(logits, law)
    believed = PairBeliefs(
        probability,
        sd,
        logits,
        embedding,
        typicality,
        law.slope,
        law.centre,
        law.levels,
        law.level_weights,
        contradicts,
    )
    if believed.is_lost:
        _warn(believed, stated, temper)
    return believed


def _warn(believed: PairBeliefs, stated: Law | None, temper: bool) -> None:
    found, remedy = believed.typicality, list[str | Remedy]()
    if found is not None and found.is_lost:
        names = ", ".join(entry.name for entry in found.unusual[:3]) or "no single summary"
        problem = (
            f"the data are unlike the world that the network was trained on (surprise "
            f"{found.surprise:.1f}, p-value {found.p_value:.3f}; unusual: {names})"
        )
    else:
        problem = contradicted(believed)
    if stated is None:
        remedy = [Remedy("Say what share of the pairs is joined", Setting("density", ...))]
    slope = believed.slope
    done = f"its log odds were multiplied by {slope:.2f}" if temper else "it was not tempered"
    problem += f". The network's belief may be wrong; {done}"
    remedy.append("fit labelled graphs")
    warnings.warn(LostWarning(problem, remedy=remedy), stacklevel=3)


def contradicted(believed: PairBeliefs) -> str:
    """Say that the stated density is not the network's."""
    return (
        f"the stated share of joined pairs is far from what the network finds in the data, "
        f"{expit(believed.centre):.2g}"
    )


def evaluate(
    network: PairNetwork,
    e: Float[np.ndarray, "nodes nodes"],
    signals: Float[np.ndarray, "signals nodes"] | None,
    n_signals: float,
    is_correlation: bool,
) -> tuple[Float[np.ndarray, "edges heads"], Float[np.ndarray, "edges width"]]:
    """Return the network's logits and states for one graph; its largest distance should be 1.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise import pretrained
    >>> from edgebelief.amortise.predict import evaluate
    >>> evaluate(pretrained(), 1 - np.eye(4), None, np.nan, False)[0].shape
    (6, 4)
    """
    c = np.eye(len(e)) if signals is None else _correlations(signals, len(e))
    output = _run(network, e, c, (n_signals, is_correlation, signals is not None))
    rows, columns = np.triu_indices(len(e), k=1)
    return np.asarray(output.logits)[rows, columns], np.asarray(output.embedding)[rows, columns]


def _run(
    network: PairNetwork, e: np.ndarray, c: np.ndarray, facts: tuple[float, ...]
) -> PairOutput:
    """Run the network on matrices filled up to one of a few sizes; `facts` are those of `Known`."""
    n, size = len(e), padded(len(e))
    fill = (0, size - n)
    e, c = (np.pad(x, (fill, fill)).astype(np.float32) for x in (e, c))
    mask = (np.arange(size) < n).astype(np.float32)
    # In single precision, whatever the caller has told JAX: as in training.
    with one_at_a_time, jax.enable_x64(False):
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
