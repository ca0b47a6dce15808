"""The posterior by adding it up.

Only theta enters the network's recursion; given theta, the readout's parameters are those of a
logistic regression. So the posterior is a one-parameter family of small integrals:

    p(theta | labels)  ~  p(theta) * integral p(labels | theta, beta) p(beta) dbeta

The outer axis is scanned over the whole prior, plateaus and all, and then halved where it matters
until the estimated error is below a tolerance; the inner integral has its own (`cubature`). Where
edges have weights, those are a second regression, independent of the first given theta (`weights`):
the evidence is the product of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from ..cores import n_cores
from ..data.dataset import GraphDataset
from ..data.randomness import Key, generator
from ..readouts import Affine
from .conditional import Sketch
from .cubature import integrate, sketch
from .engine import Engine, Fit
from .family import Family, Interpolant, Node
from .flatness import Flatness, is_alike, is_dead
from .likelihoods import BernoulliEdges, WeightedEdges, WeightParams
from .logistic import FEW, Labels, LogisticPosterior
from .model import EdgeModel
from .priors import Marginal, Prior
from .shrinkage import ROUGH, SHARE, Place, Places, Shrinkage, weighted_draws
from .verdict import Finding
from .weights import WeightedFamily, WeightPosterior, WeightPrior

# The scan reaches so far in prior standard deviations: for mass, and for second moments of a
# lognormal, which lie 2 log_sd further out.
REACH = 8.5
# Neighbours in the scan are first this far apart in log theta, then halved down to the second,
# but not between two plateaus of the same height.
COARSE_STEP, FINE_STEP = 4.0, 1.5
# Networks are not asked for theta outside this range.
THETA_RANGE = (1e-30, 1e30)
# A mode that may be hidden between nodes is looked for if it could come so near the best in log.
HIDDEN = 15.0
# A node so near the best in log is integrated, not sketched: sketches may be wrong by less.
NEAR = 12.0
# No interval holds more than this share at the end, so that the nodes are a rule for predictions.
LARGEST_SHARE = 0.15
MOST_NODES = 400
# Of many coefficients: a node so far below the best is not looked at with all labels, and the
# marginal of theta need not be known better than the normal approximation is good.
FAR, LOOSE = 100.0, 0.2


@dataclass(frozen=True)
class Exact(Engine):
    """The posterior of a network with one parameter and a readout linear in its coefficients.

    Seconds where sampling takes minutes; with the evidence, and independent draws. Parameters of
    the network that are `fixed` do not count: of those in doubt there may be one, or none.

    Of up to two coefficients everything is added up. Of more, and their scales where they have
    some, there are weighted draws: the verdict says how good they are (Pareto k).

    Parameters
    ----------
    tol : float
        Of up to two coefficients: largest error of any posterior mean or sd, in posterior sds, and
        of the log evidence. The estimate is in the verdict ("quadrature error").
    n_draws : int
        Of more: how many draws.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=100)
    >>> posterior = Exact().run(0, EdgeModel(DPG(depth=50)), data)
    >>> posterior.summary().round(3).loc["theta", ["mean", "sd"]].tolist()  # doctest: +SKIP
    >>> posterior.verdict.ok
    True
    """

    tol: float = 0.01
    n_draws: int = 4000

    def __post_init__(self) -> None:
        if self.n_draws < 25:
            raise ValueError(f"n_draws must be at least 25; got {self.n_draws}.")
        if not 0 < self.tol < 1:
            raise ValueError(f"tol must lie between 0 and 1 (posterior sds); got {self.tol!r}.")

    def _fit(
        self,
        key: Key,
        model: EdgeModel,
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
    ) -> Fit:
        _check_model(model)
        if not _in_doubt(model):
            return self._fit_point(key, model, data, weights)
        if sum(model.sizes.get(name, 1) for name in model.readout.params_type._fields) > 2:
            return self._fit_many(key, model, data, weights)
        marginals = tuple(model.prior[name] for name in model.readout.params_type._fields)
        with _Slices(model, data, weights, marginals) as slices:
            interpolant, error = self._explore(slices)
        names = model.of_logits
        family = Family.of(names, tuple(model.prior[name] for name in names), interpolant)
        params, shares, flat = _nodes(interpolant, family, generator(key))
        findings = []
        if error > self.tol:
            findings.append(
                Finding(
                    "quadrature error",
                    error,
                    f"the estimated error is {error:.2g} posterior sd, above {self.tol:g}: the "
                    f"posterior is too rugged for the rule. Compare with NUTS.",
                )
            )
        return Fit(
            params,
            shares,
            figures={"quadrature error": error, "theta nodes": len(interpolant.nodes)},
            findings=findings,
            flatness=flat,
            log_evidence=interpolant.log_evidence,
            continuum=WeightedFamily.of(family, interpolant) if slices.weighted else family,
        )

    def _fit_many(self, key: Key, model: EdgeModel, data: GraphDataset, weights: np.ndarray) -> Fit:
        """Many coefficients: a normal around the mode at each theta, draws weighted by what is
        left out.
        """
        shrinkage = Shrinkage.of(model)
        learn_key, draw_key = jax.random.split(key)
        with _Slices(model, data, weights, shrinkage.own, shrinkage.sds) as slices:
            if shrinkage.n_scales:  # roughly, where the paper's readout is best
                at = likely_place(model, data, weights)
                shrinkage = slices.learn(shrinkage, generator(learn_key), at)
            nodes, surprises = _scan(slices), _Surprises()
            nodes = self._refine(
                slices, nodes, surprises, tol=LOOSE, rough=True, share=LARGEST_SHARE
            )
        interpolant = Interpolant(nodes, slices.marginal)
        error = float(surprises.errors(interpolant).sum())
        shares = interpolant.weights()
        places = Places(
            Place(
                slices.network_at(node.z),
                float(np.log(share)) + interpolant.log_evidence - node.conditional.log_evidence,
                slices.posteriors[node.z],
                shrinkage,
                node.conditional.at,  # type: ignore[attr-defined]  # a Sketch
                node.weights,
            )
            for node, share in zip(nodes, shares, strict=True)
            if share > SHARE
        )
        fit = weighted_draws(draw_key, model, places, self.n_draws)
        name = _in_doubt(model)[0]
        figures = {"quadrature error": error, f"{name} nodes": float(len(nodes))}
        findings = list(fit.findings)
        if error > LOOSE:
            findings.append(
                Finding(
                    "quadrature error",
                    error,
                    f"the estimated error along {name} is {error:.2g} posterior sd: the posterior "
                    f"is too rugged for the rule. Compare with NUTS.",
                )
            )
        dead = float(sum(w for node, w in zip(nodes, shares, strict=True) if node.dead))
        alike = float(sum(w for node, w in zip(nodes, shares, strict=True) if node.alike))
        return replace(
            fit,
            figures={**fit.figures, **figures},
            findings=findings,
            flatness=Flatness(dead, alike - dead),
        )

    def _fit_point(
        self, key: Key, model: EdgeModel, data: GraphDataset, weights: np.ndarray
    ) -> Fit:
        """Nothing of the network is in doubt: one regression."""
        shrinkage = Shrinkage.of(model)
        learn_key, draw_key = jax.random.split(key)
        with _Slices(model, data, weights, shrinkage.own, shrinkage.sds) as slices:
            if shrinkage.n_scales:
                shrinkage = slices.learn(shrinkage, generator(learn_key), 0.0)
            (node,) = slices.nodes([0.0], [], rough=True)
        place = Place(
            slices.network_at(0.0),
            node.log_evidence - node.conditional.log_evidence,  # that of weights
            slices.posteriors[0.0],
            shrinkage,
            node.conditional.at,  # type: ignore[attr-defined]  # a Sketch
            node.weights,
        )
        return weighted_draws(draw_key, model, Places([place]), self.n_draws)

    def _explore(self, slices: _Slices) -> tuple[Interpolant, float]:
        """Nodes where they matter, and the error that is left.

        First with sketches of the inner integrals and a loose tolerance, to find the places.
        """
        nodes, surprises = _scan(slices), _Surprises()
        nodes = self._refine(slices, nodes, surprises, tol=10 * self.tol, rough=True)
        while True:
            now = Interpolant(nodes, slices.marginal)
            rough = _worth_integrating(now)
            if not rough:
                errors = surprises.errors(now)
                inner = np.array([node.conditional.error for node in nodes])
                weights = now.weights()
                return now, float(errors.sum() + weights[weights > 0] @ inner[weights > 0])
            nodes = slices.integrated(nodes, rough)
            nodes = self._refine(slices, nodes, surprises, tol=self.tol, rough=False)

    def _refine(
        self,
        slices: _Slices,
        nodes: list[Node],
        surprises: _Surprises,
        tol: float,
        rough: bool,
        share: float | None = None,
    ) -> list[Node]:
        """Halve intervals until the estimated error is below half of `tol`."""
        while True:
            now = Interpolant(nodes, slices.marginal)
            errors = surprises.errors(now)
            order = np.argsort(errors)
            wanted = np.zeros(len(errors), bool)
            wanted[order[np.cumsum(errors[order]) > tol / 2]] = True
            if not rough:
                share = LARGEST_SHARE * min(1.0, (tol / 0.01) ** 0.25)
            if share is not None:
                wanted |= now.shares() > share
            wanted |= _hiding(now)
            wanted &= np.diff(now.z) > 1e-9 * (1 + np.abs(now.z[1:]))
            if not wanted.any() or len(nodes) > MOST_NODES:
                return nodes
            middles = ((now.z[:-1] + now.z[1:]) / 2)[wanted]
            fresh = slices.nodes(middles, nodes, rough=rough)
            for k, node in zip(np.flatnonzero(wanted), fresh, strict=True):
                surprises.record(now, int(k), node)
            nodes = sorted([*nodes, *fresh], key=lambda node: node.z)


def likely_place(model: EdgeModel, data: GraphDataset, weights: np.ndarray) -> float:
    """The network's parameter that is most plausible under the paper's readout, as its place in
    the prior.
    """
    names = (*model.network.params_type._fields, "delta", "b")
    plain = EdgeModel(model.network, Affine(), Prior(**{n: model.prior[n] for n in names}))
    marginals = plain.prior["delta"], plain.prior["b"]
    with _Slices(plain, data, weights, marginals) as slices:
        nodes = Exact(tol=0.05)._refine(slices, _scan(slices), _Surprises(), tol=0.5, rough=True)
    return _best(nodes).z


class _Surprises:
    """How wrong the interpolant was about the middle of each interval's parent."""

    def __init__(self) -> None:
        self._found: dict[tuple[float, float], float] = {}

    def record(self, now: Interpolant, k: int, node: Node) -> None:
        found = now.surprise(node)
        self._found[now.z[k], node.z] = self._found[node.z, now.z[k + 1]] = found

    def errors(self, now: Interpolant) -> np.ndarray:
        """Of each interval: its importance times what is left of its parent's surprise.

        Halving an interval divides a cubic's error by 16 and a kink's by 4.
        """
        surprise = np.array([min(self._found.get(pair, 1.0), 1.0) for pair in pairwise(now.z)])
        return now.importance() * surprise / 4


class _Slices:
    """The posterior at chosen values of theta, on all cores."""

    def __init__(
        self,
        model: EdgeModel,
        data: GraphDataset,
        weights: np.ndarray,
        marginals: tuple[Marginal, ...],
        sds: Float[np.ndarray, " others"] = np.zeros(0),
    ):
        self.model, self.marginals, self.sds = model, marginals, sds
        own = model.network.params_type._fields
        self._moving = _in_doubt(model)
        self._still = {n: model.prior[n].median for n in own if n not in self._moving}
        self.weighted = model.likelihood.weighted
        self.marginal = model.prior[self._moving[0] if self._moving else own[0]]
        with jax.enable_x64(True):
            self._stacks = [
                (
                    _precise(stack.e, model.readout.pairs(stack)),
                    stack.a.reshape(-1),
                    (stack.known * weights[stack.places, None]).reshape(-1),
                    None if stack.log_w is None else stack.log_w.reshape(-1),
                    stack.support,
                )
                for stack in data.stacks()
            ]
        self.posteriors: dict[float, LogisticPosterior] = {}
        self._best = -np.inf

    def __enter__(self) -> _Slices:
        self._pool = ThreadPoolExecutor(n_cores())
        # A thread per node, and none within: they would wait for each other.
        self._calm = threadpool_limits(1)
        return self

    def __exit__(self, *_: Any) -> None:
        self._calm.restore_original_limits()
        self._pool.shutdown()

    def nodes(self, z: Any, known: list[Node], rough: bool) -> list[Node]:
        """New nodes at `z`, each started from the nearest known one; sketches if `rough`."""
        starts = [
            min(known, key=lambda node: abs(node.z - at)).conditional.mode if known else None
            for at in z
        ]
        return list(self._pool.map(self._node, z, starts, [rough] * len(z)))

    def integrated(self, nodes: list[Node], places: list[int]) -> list[Node]:
        """The same nodes, those at `places` no longer sketches."""

        def again(k: int) -> Node:
            found = integrate(self.posteriors.pop(nodes[k].z), nodes[k].conditional.mode)
            return replace(nodes[k], conditional=found)

        better = dict(zip(places, self._pool.map(again, places), strict=True))
        return [better.get(k, node) for k, node in enumerate(nodes)]

    def at(self, z: float) -> _Slice:
        """The labels as rows of the readout's columns, and what else there is to know."""
        model, labels, dead, alike = self.model, [], True, True
        params, edges = self.network_at(z), []
        with jax.enable_x64(True):
            network = tuple(jnp.asarray(x, jnp.float64) for x in params)
            for given, a, weights, log_w, support in self._stacks:
                # Not the model: another prior is no reason to compile again.
                parts = model.network, model.readout, model.likelihood
                columns, output, more = jax.tree.map(
                    np.asarray, _columns(parts, network, given, support)
                )
                dead &= bool(is_dead(output).all())
                alike &= bool(is_alike(output).all())
                columns = columns.reshape(-1, len(self.marginals) + len(self.sds))
                if not np.isfinite(columns).all():
                    raise FloatingPointError(
                        f"the network's output is not finite at "
                        f"{model.network.params_type(*params)}."
                    )
                labels.append(Labels.collapse(columns, a, weights))
                if self.weighted and log_w is not None:
                    there = ~np.isnan(log_w) & (weights > 0)
                    edges.append((more.reshape(-1)[there], log_w[there], weights[there]))
        return _Slice(Labels.join(labels).compress(), dead, alike, self._weights(edges))

    def _weights(self, edges: Sequence[tuple[np.ndarray, ...]]) -> WeightPosterior | None:
        if not self.weighted:
            return None
        columns = (np.concatenate(column) for column in zip(*edges, strict=True))
        return WeightPosterior.of(WeightPrior.of(self.model), *columns)

    def network_at(self, z: float) -> tuple[Any, ...]:
        """The network's parameters: the one in doubt at `z`, the others where they are fixed."""
        moving = {name: float(self.marginal.value_at(z)) for name in self._moving}
        everything = {**self._still, **moving}
        return tuple(everything[name] for name in self.model.network.params_type._fields)

    def _node(self, z: float, start: np.ndarray | None, rough: bool) -> Node:
        labels, dead, alike, weights = self.at(z)
        posterior = LogisticPosterior(labels, self.marginals, self.sds)
        if posterior.n_params > FEW:
            self.posteriors[z] = posterior
            return Node(z, self._sketch(posterior, start, weights), dead, alike, weights)
        if rough or start is None:
            self.posteriors[z] = posterior
            return Node(z, sketch(posterior, start), dead, alike, weights)
        return Node(z, integrate(posterior, start), dead, alike, weights)

    def learn(self, shrinkage: Shrinkage, rng: np.random.Generator, z: float) -> Shrinkage:
        """Learn scales at `z`, and use them from now on."""
        posterior = LogisticPosterior(self.at(z).labels, self.marginals, self.sds)
        mode = posterior.climb(posterior.starts()[0])
        place = Place(self.network_at(z), 0.0, posterior, shrinkage, mode)
        found = replace(shrinkage, scales=Places([place]).law(rng, ROUGH).typical)
        self.sds = found.sds
        return found

    def _sketch(
        self,
        posterior: LogisticPosterior,
        start: np.ndarray | None,
        weights: WeightPosterior | None,
    ) -> Sketch:
        """Of many coefficients: from a sample of the labels where it cannot matter."""
        simple, beside = posterior.simplified(), 0.0 if weights is None else weights.log_evidence
        near = simple.climb(simple.starts()[0] if start is None else start)
        if near.log_mass + beside < self._best - FAR:
            return Sketch(simple, near)
        mode = posterior.climb(near.z)
        self._best = max(self._best, mode.log_mass + beside)
        return Sketch(posterior, mode)


class _Slice(NamedTuple):
    """What is known at one value of theta."""

    labels: Labels
    dead: bool
    alike: bool
    weights: WeightPosterior | None


def _precise(e: np.ndarray, pairs: np.ndarray | None) -> tuple[Array, Array | None]:
    return jnp.asarray(e, jnp.float64), None if pairs is None else jnp.asarray(pairs, jnp.float64)


@eqx.filter_jit
def _columns(
    parts: tuple[Any, Any, Any], params: tuple[Array, ...], given: Any, support: Any
) -> tuple[Array, Array, Any]:
    """What the logits are linear in, the network's weights, and what the likelihood needs."""
    (network, readout, likelihood), (e, pairs) = parts, given
    output = network(network.params_type(*params), e, support)
    columns = readout.columns(readout.reduce(output, support, pairs))
    return columns, output.a, likelihood.reduce(output, support)


def _in_doubt(model: EdgeModel) -> list[str]:
    """The network's parameters that are not fixed."""
    return [name for name in model.network.params_type._fields if model.in_doubt[name]]


def applies(model: EdgeModel) -> bool:
    """Whether `Exact` can fit this model."""
    try:
        _check_model(model)
    except ValueError:
        return False
    return True


def _check_model(model: EdgeModel) -> None:
    network = _in_doubt(model)
    n_numbers = sum(model.in_doubt[name] for name in network)
    if n_numbers > 1:
        raise ValueError(
            f"Exact adds up over one network parameter; this network has {n_numbers} in doubt "
            f"({', '.join(network)}). Use NUTS, or fix the others."
        )
    readout = type(model.readout).__name__
    if not model.readout.linear:
        raise ValueError(
            f"Exact needs a readout with a coefficient for each column; {readout} has "
            f"none for the weight. Use NUTS."
        )
    if any(model.prior[name].fixed for name in model.readout.params_type._fields):
        raise ValueError(
            f"Exact adds up over all parameters of {readout}; some are fixed. Use NUTS."
        )
    if not isinstance(model.likelihood, BernoulliEdges | WeightedEdges):
        raise ValueError(
            f"Exact knows Bernoulli edges, with or without weights; the likelihood is "
            f"{type(model.likelihood).__name__}. Use NUTS."
        )
    if model.likelihood.weighted:
        WeightPrior.of(model)
    if network and not model.prior[network[0]].positive:
        raise ValueError(
            f"{network[0]} must be positive, so its prior must be lognormal or loguniform; it is "
            f"{model.prior[network[0]]}."
        )


def _scan(slices: _Slices) -> list[Node]:
    """Nodes over the whole prior."""
    marginal = slices.marginal
    further = getattr(marginal, "log_sd", 0.0)
    low, high = -REACH, max(REACH, 2 * further + REACH / 2)
    low, high = np.clip([low, high], *marginal.place_of(np.array(_reachable(marginal))))
    fine = np.linspace(low, high, 4001)
    log = np.log(marginal.value_at(fine))
    n = max(int(np.ceil((log[-1] - log[0]) / COARSE_STEP)), 8)
    z = np.interp(np.linspace(log[0], log[-1], n + 1), log, fine)
    # A loguniform's ends are crowded in log theta: look there in z too.
    z = np.sort(np.concatenate([z, np.linspace(low, high, 9)]))
    z = z[np.diff(z, prepend=-np.inf) > 1e-3 * (high - low)]
    nodes = slices.nodes(z[:1], [], rough=True)  # alone: it compiles
    nodes += slices.nodes(z[1:], nodes, rough=True)
    while True:
        gaps = [
            (left.z + right.z) / 2
            for left, right in pairwise(nodes)
            if not _same_plateau(left, right)
            and np.log(marginal.value_at(right.z) / marginal.value_at(left.z)) > FINE_STEP * 1.001
        ]
        if not gaps:
            return nodes
        nodes = sorted([*nodes, *slices.nodes(gaps, nodes, rough=True)], key=lambda node: node.z)


def _best(nodes: list[Node]) -> Node:
    return max(nodes, key=lambda node: node.g)


def _reachable(marginal: Any) -> tuple[float, float]:
    low, high = THETA_RANGE
    return max(low, getattr(marginal, "low", low)), min(high, getattr(marginal, "high", high))


def _same_plateau(left: Node, right: Node) -> bool:
    difference = left.log_evidence - right.log_evidence
    return left.alike and right.alike and left.dead == right.dead and abs(difference) < 0.01


def _worth_integrating(now: Interpolant) -> list[int]:
    """The sketches that may matter: near the top, or beside an interval with a share in it."""
    importance = now.importance()
    beside = np.maximum(np.append(importance, 0), np.append(0, importance))
    return [
        k
        for k, node in enumerate(now.nodes)
        if isinstance(node.conditional, Sketch) and (node.g > now.top - NEAR or beside[k] > 1e-4)
    ]


def _hiding(now: Interpolant) -> np.ndarray:
    """The intervals in which the slopes on both sides point to a mode that is not yet seen."""
    z, g = now.z, np.array([node.g for node in now.nodes])
    secant = np.diff(g) / np.diff(z)
    found = np.zeros(len(z) - 1, bool)
    for k in range(1, len(z) - 2):
        up, down = secant[k - 1], secant[k + 1]
        if up > 0 > down:
            # where the lines from the left and from the right meet
            meet = (g[k + 1] - g[k] + up * z[k] - down * z[k + 1]) / (up - down)
            if z[k] <= meet <= z[k + 1]:
                bound, ends = g[k] + up * (meet - z[k]), max(g[k], g[k + 1])
                found[k] = bound > g.max() - HIDDEN and bound - ends > 2
    return found


def _nodes(
    interpolant: Interpolant, family: Family, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray, Flatness]:
    """The rule's nodes as weighted draws; and how much of them is flat."""
    weights = interpolant.weights()
    z, shares, more = [], [], []
    dead = alike = 0.0
    for node, weight in zip(interpolant.nodes, weights, strict=True):
        dead += weight * node.dead
        alike += weight * node.alike
        if weight < 1e-9:
            continue
        points, inner = node.conditional.nodes()
        z.append(np.column_stack([np.full(len(points), node.z), points]))
        shares.append(weight * inner)
        if node.weights is not None:
            more.append(node.weights.draws(rng, len(points)))
    table, share = np.concatenate(z), np.concatenate(shares)
    params = {
        name: marginal.value_at(table[:, k])
        for k, (name, marginal) in enumerate(zip(family.names, family.marginals, strict=True))
    }
    if more:
        columns = (np.concatenate(column) for column in zip(*more, strict=True))
        params |= WeightParams(*columns)._asdict()
    return params, share / share.sum(), Flatness(float(dead), float(alike - dead))
