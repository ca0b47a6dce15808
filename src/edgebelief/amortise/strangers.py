"""Worlds that the network was not trained on, on purpose.

Outside its world a network can be sure and wrong. How far to trust it there (`temper.py`) is
learned on the worlds of `FIT`; those of `TEST` are for measuring alone, and share no ensemble,
filter, noise or kind of sign with them. Each is a function of a random generator, a number of nodes
and a number of signals:

    rng, N, P  ->  signals (P, N), adjacency (N, N)

What the training world has is in `world.EVERYTHING`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from .cases import Case, distances_between

Rng = np.random.Generator
Signals = Float[np.ndarray, "signals nodes"]
Adjacency = Float[np.ndarray, "nodes nodes"]
Stranger = Callable[[Rng, int, int], tuple[Signals, Adjacency]]

NODES = (10, 60)
SIGNALS = (20, 500)
# Strangers whose nodes are things in a space, seen by their squared distances alone.
POINTS = ("classes of points", "nested classes", "classes on curves")


def draw_stranger(name: str, seed: int, nodes: tuple[int, int] = NODES) -> Case:
    """Draw a case from a stranger world.

    Parameters
    ----------
    name : str
        One of `FIT` or `TEST`.
    seed : int
    nodes : (int, int)
        The smallest and the largest number of nodes, uniform in the logarithm; so is the number of
        signals. Half of the draws have squared distances, half 1 - |correlation|; signals are
        given in half, and where they are not, their number is unknown in half.

    Returns
    -------
    Case

    Examples
    --------
    >>> from edgebelief.amortise.strangers import draw_stranger
    >>> case = draw_stranger("core and periphery", seed=0)
    >>> case.e.shape[0] * (case.e.shape[0] - 1) // 2 == len(case.labels)
    True
    """
    world = (FIT | TEST)[name]
    # The name is in the seed: two worlds must not share their draws.
    rng = np.random.default_rng([seed, *name.encode()])
    n, p = (round(np.exp(rng.uniform(*np.log(ends)))) for ends in (nodes, SIGNALS))
    points = name in POINTS
    is_correlation, given, unknown = rng.random(3) < (0.0 if points else 0.5, 0.5, 0.5)
    x, a = world(rng, n, p)
    given = bool(given and not points)
    number = np.nan if not given and (unknown or points) else len(x)
    labels = a[np.triu_indices(n, 1)].astype(float)
    e = distances_between(x, bool(is_correlation))
    return Case(e, x if given else None, number, bool(is_correlation), labels, name)


# Parts of several worlds.


def _random_graph(rng: Rng, n: int) -> Adjacency:
    """Draw an Erdos-Renyi graph of 2 to 8 edges a node."""
    return _symmetric(rng.random((n, n)) < min(0.5, rng.uniform(2, 8) / n))


def _symmetric(links: np.ndarray) -> Adjacency:
    upper = np.triu(links, 1).astype(float)
    return upper + upper.T


def _laplacian(a: Adjacency) -> np.ndarray:
    laplacian = np.diag(a.sum(0)) - a
    return laplacian / max(np.linalg.eigvalsh(laplacian)[-1], 1e-9)


def _filtered(
    rng: Rng, a: Adjacency, p: int, response: Callable[[np.ndarray], np.ndarray]
) -> Signals:
    """Draw Gaussian signals with a frequency response: h(L) z, eigenvalues of L from 0 to 1."""
    eigenvalues, vectors = np.linalg.eigh(_laplacian(a))
    return rng.normal(size=(p, len(a))) * response(np.maximum(eigenvalues, 0.0)) @ vectors.T


def _smooth(rng: Rng, a: Adjacency, p: int) -> Signals:
    """Draw signals with covariance L+, as most of the training world has."""
    return _filtered(rng, a, p, lambda w: np.where(w > 1e-9, w + (w <= 1e-9), np.inf) ** -0.5)


def _same(groups: np.ndarray) -> Adjacency:
    return (groups[:, None] == groups) * (1.0 - np.eye(len(groups)))


# The worlds for fitting.


def core_and_periphery(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """A few nodes that are joined to nearly everything, the others hardly to each other."""
    core = np.arange(n) < max(2, round(n * rng.uniform(0.1, 0.35)))
    both, one = np.logical_and.outer(core, core), np.logical_xor.outer(core, core)
    shares = np.where(both, 0.9, np.where(one, rng.uniform(0.3, 0.8), rng.uniform(0.0, 0.05)))
    a = _symmetric(rng.random((n, n)) < shares)
    return _smooth(rng, a, p), a


def anti_smooth(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Neighbours differ as much as they can: the covariance is a power of L."""
    a = _random_graph(rng, n)
    power = rng.uniform(0.25, 1.0)
    return _filtered(rng, a, p, lambda w: w**power), a


def unequal_noise(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Every node has noise of its own, of very different variances."""
    a = _random_graph(rng, n)
    x = _smooth(rng, a, p)
    sd = x.std() * np.exp(rng.normal(-0.5, rng.uniform(1.0, 2.0), n))
    return x + sd * rng.normal(size=x.shape), a


def signed_field(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """A Gaussian Markov random field in which half of the edges push their nodes apart."""
    a = _random_graph(rng, n)
    weights = a * _symmetric(rng.uniform(0.3, 1.0, (n, n)))
    weights = weights * (1 - 2 * _symmetric(rng.random((n, n)) < 0.5))
    precision = np.diag(np.abs(weights).sum(0) * rng.uniform(1.0, 1.5) + 0.05) - weights
    root = np.linalg.cholesky(precision)
    return np.linalg.solve(root.T, rng.normal(size=(n, p))).T, a


def classes_of_points(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Things of a few classes, each class a bent sheet in space; the edge is "the same class".

    As pictures are: a few numbers (slant, width) decide all p coordinates, by curves.
    """
    classes = rng.integers(0, rng.integers(2, 5), n)
    inner = rng.integers(1, 6)
    u = rng.normal(size=(n, inner))
    x = np.empty((n, p))
    for c in range(classes.max() + 1):
        first, second = rng.normal(size=(2, inner, p))
        shift = rng.normal(size=p) * rng.uniform(0.2, 1.2)
        bent = u @ first + rng.uniform(0, 1) * (u**2) @ second
        x[classes == c] = (shift + np.tanh(bent / np.sqrt(inner)))[classes == c]
    x = x + rng.uniform(0, 0.5) * rng.normal(size=x.shape)
    return x.T, _same(classes)


def weak_relation(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Most of the edges in the data are others than those asked about."""
    a = _random_graph(rng, n)
    kept = _symmetric(rng.random((n, n)) < rng.uniform(0.0, 0.5))
    other = _symmetric(rng.random((n, n)) < a.mean())
    return _smooth(rng, np.where(kept > 0, a, other), p), a


def hidden_styles(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Groups with a factor each, which is the edge; and other groups, stronger, which are not."""
    groups = rng.integers(0, rng.integers(2, 9), n)
    x = rng.uniform(0.1, 0.8) * rng.normal(size=(p, n))
    for labels, strength in (
        (groups, rng.uniform(0.1, 0.7)),
        (rng.integers(0, rng.integers(2, 9), n), 1.0),
    ):
        x = x + strength * rng.normal(size=(p, labels.max() + 1))[:, labels]
    x = x + rng.uniform(0, 1.5) * rng.normal(size=(p, 1)) * rng.uniform(0.5, 1.5, n)
    return x, _same(groups)


def hidden_nodes(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Signals on a graph of which only a third of the nodes are seen."""
    whole = _random_graph(rng, 3 * n)
    # The nodes of most edges are seen: else there would be hardly any edge among them.
    seen = np.argsort(-whole.sum(0), kind="stable")[:n]
    return _smooth(rng, whole, p)[:, seen], whole[np.ix_(seen, seen)]


def two_regimes(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """In a part of the signals, other edges are there; those asked about are of the larger part."""
    a, other = _random_graph(rng, n), _random_graph(rng, n)
    of_other = round(p * rng.uniform(0.2, 0.5))
    return np.vstack([_smooth(rng, a, p - of_other), _smooth(rng, other, of_other)]), a


def few_patterns(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """All signals are mixtures of a few smooth ones, and noise."""
    a = _random_graph(rng, n)
    patterns = _smooth(rng, a, int(rng.integers(2, 6)))
    x = np.maximum(rng.normal(size=(p, len(patterns))), 0.0) @ patterns
    return x + x.std() * rng.uniform(0.02, 0.5) * rng.normal(size=x.shape), a


def nested_classes(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Clusters within clusters, of unequal widths; the edge is the same one at either level."""
    coarse = rng.integers(0, rng.integers(2, 5), n)
    fine = rng.integers(0, rng.integers(2, 5), n)
    both = 10 * coarse + fine
    width = np.exp(rng.normal(0, 0.5, 50))
    dimensions = min(p, int(rng.integers(2, 20)))
    x = (
        rng.normal(size=(50, dimensions))[coarse]
        + rng.uniform(0.2, 1) * (rng.normal(size=(50, dimensions))[both])
    )
    x = x + rng.uniform(0.2, 1) * width[both][:, None] * rng.normal(size=(n, dimensions))
    x = x @ rng.normal(size=(dimensions, p)) / np.sqrt(dimensions)
    return x.T, _same(both if rng.random() < 0.3 else coarse)


def regulation(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """A few regulators switch many targets on or off, with saturation, in cascades."""
    directed = np.zeros((n, n))
    for target in range(1, n):  # by an earlier node, more often one that regulates already
        count = min(target, 1 + rng.poisson(0.5))
        weight = directed[:, :target].sum(1)[:target] + 0.3
        directed[rng.choice(target, count, replace=False, p=weight / weight.sum()), target] = 1
    sign = rng.choice([-1.0, 1.0], (n, n), p=[0.4, 0.6])
    slope, threshold = rng.uniform(1, 4), rng.normal(0, 0.5, n)
    x = rng.normal(size=(p, n)) * rng.uniform(0.05, 0.5)
    outside = rng.random(n) < 0.1
    for node in range(n):
        causes = np.flatnonzero(directed[:, node])
        if len(causes) == 0 or outside[node]:
            x[:, node] += rng.normal(size=p)
        if len(causes):
            drive = x[:, causes] * sign[causes, node]
            x[:, node] += np.tanh(slope * (drive - threshold[node])).mean(1)
    return x, np.maximum(directed, directed.T)


# The worlds for tests.


def bipartite(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Two sides, and edges between them alone."""
    side = rng.random(n) < rng.uniform(0.2, 0.5)
    across = side[:, None] != side
    a = _symmetric((rng.random((n, n)) < rng.uniform(0.15, 0.6)) & across)
    return _smooth(rng, a, p), a


def band_pass(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Neither smooth nor rough: the middle of the spectrum."""
    a = _random_graph(rng, n)
    centre, width = rng.uniform(0.3, 0.7), rng.uniform(0.05, 0.2)
    return _filtered(rng, a, p, lambda w: np.exp(-0.5 * ((w - centre) / width) ** 2)), a


def gross_outliers(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """One to five percent of the values are wrong by ten standard deviations or more."""
    a = _random_graph(rng, n)
    x = _smooth(rng, a, p)
    wrong = rng.random(x.shape) < rng.uniform(0.01, 0.05)
    return x + wrong * x.std() * rng.uniform(10, 30) * rng.normal(size=x.shape), a


def multiplicative_noise(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Every value is multiplied by a lognormal number of its own."""
    a = _random_graph(rng, n)
    x = _smooth(rng, a, p)
    return x * np.exp(rng.uniform(0.5, 1.5) * rng.normal(size=x.shape)), a


def feedback(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Structural equations with cycles, and as much repression as activation."""
    directed = (rng.random((n, n)) < min(0.4, rng.uniform(1, 4) / n)) * (1.0 - np.eye(n))
    effects = directed * rng.choice([-1.0, 1.0], (n, n)) * rng.uniform(0.4, 1.2, (n, n))
    radius = np.abs(np.linalg.eigvals(effects)).max()
    effects = effects * min(1.0, 0.9 / max(radius, 1e-9))  # so that it is stable
    x = np.linalg.solve(np.eye(n) - effects, rng.normal(size=(n, p))).T
    return x, np.maximum(directed, directed.T)


def classes_on_curves(rng: Rng, n: int, p: int) -> tuple[Signals, Adjacency]:
    """Things on two or three closed curves in space; the edge is "on the same curve"."""
    classes = rng.integers(0, rng.integers(2, 4), n)
    angle = rng.uniform(0, 2 * np.pi, n)
    x = np.empty((n, p))
    for c in range(classes.max() + 1):
        waves = rng.normal(size=(2, 3, p)) / np.array([1.0, 2.0, 3.0])[:, None]
        k = angle[:, None] * np.array([1, 2, 3])
        there = classes == c
        x[there] = (np.sin(k) @ waves[0] + np.cos(k) @ waves[1])[there]
        x[there] += rng.normal(size=p) * rng.uniform(0.0, 0.5)
    return x.T, _same(classes)


FIT: dict[str, Stranger] = {
    "core and periphery": core_and_periphery,
    "anti-smooth": anti_smooth,
    "unequal noise": unequal_noise,
    "signed field": signed_field,
    "classes of points": classes_of_points,
    "weak relation": weak_relation,
    "hidden styles": hidden_styles,
    "hidden nodes": hidden_nodes,
    "two regimes": two_regimes,
    "few patterns": few_patterns,
    "nested classes": nested_classes,
    "regulation": regulation,
}
TEST: dict[str, Stranger] = {
    "bipartite": bipartite,
    "band-pass": band_pass,
    "gross outliers": gross_outliers,
    "multiplicative noise": multiplicative_noise,
    "feedback": feedback,
    "classes on curves": classes_on_curves,
}
