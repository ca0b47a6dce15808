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

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ...data.dataset import GraphDataset
from ...data.randomness import Key, generator
from ...errors import DoesNotApply, SettingError
from ...readouts import Affine, Readout
from ..diagnostics import Finding
from ..exact.conditional import Sketch
from ..exact.laplace import SHARE, Place, Places, Shrinkage, weighted_draws
from ..exact.slices import Slices, free_network_parameters
from ..exact.theta import Interpolant, ThetaPoint, ThetaPosterior
from ..exact.weights import WeightedThetaPosterior, WeightPrior
from ..flatness import Flatness
from ..likelihoods import BernoulliEdges, WeightedEdges, WeightParams
from ..model import EdgeModel
from ..priors import Prior
from .base import Engine, Fit

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
# Of many coefficients the marginal of theta need not be known better than the normal approximation
# is good.
LOOSE = 0.2


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
            raise SettingError(f"must be at least 25; got {self.n_draws}.", argument="n_draws")
        if not 0 < self.tol < 1:
            raise SettingError(
                f"must lie between 0 and 1 (posterior sds); got {self.tol!r}.", argument="tol"
            )

    def _fit(
        self,
        key: Key,
        model: EdgeModel,
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
    ) -> Fit:
        _check_model(model)
        if not free_network_parameters(model):
            return self._fit_point(key, model, data, weights)
        if sum(model.sizes.get(name, 1) for name in model.readout.params_type._fields) > 2:
            return self._fit_many(key, model, data, weights)
        marginals = tuple(model.prior[name] for name in model.readout.params_type._fields)
        with Slices(model, data, weights, marginals) as slices:
            interpolant, error = self._explore(slices)
        names = model.logit_parameters
        family = ThetaPosterior.of(names, tuple(model.prior[name] for name in names), interpolant)
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
            continuum=WeightedThetaPosterior.of(family, interpolant) if slices.weighted else family,
        )

    def _fit_many(self, key: Key, model: EdgeModel, data: GraphDataset, weights: np.ndarray) -> Fit:
        """Many coefficients: a normal around the mode at each theta, draws weighted by what is
        left out.
        """
        shrinkage = Shrinkage.of(model)
        learn_key, draw_key = jax.random.split(key)
        with Slices(model, data, weights, shrinkage.own, shrinkage.sds) as slices:
            if shrinkage.n_scales:  # roughly, where the paper's readout is best
                at = most_plausible_z(model, data, weights)
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
        name = free_network_parameters(model)[0]
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
        with Slices(model, data, weights, shrinkage.own, shrinkage.sds) as slices:
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

    def _explore(self, slices: Slices) -> tuple[Interpolant, float]:
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
        slices: Slices,
        nodes: list[ThetaPoint],
        surprises: _Surprises,
        tol: float,
        rough: bool,
        share: float | None = None,
    ) -> list[ThetaPoint]:
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


def most_plausible_z(
    model: EdgeModel, data: GraphDataset, weights: np.ndarray, readout: Readout = Affine()
) -> float:
    """The network's parameter that is most plausible under a readout with the paper's parameters,
    as its place in the prior.
    """
    names = (*model.network.params_type._fields, "delta", "b")
    plain = EdgeModel(model.network, readout, Prior(**{n: model.prior[n] for n in names}))
    marginals = plain.prior["delta"], plain.prior["b"]
    with Slices(plain, data, weights, marginals) as slices:
        nodes = Exact(tol=0.05)._refine(slices, _scan(slices), _Surprises(), tol=0.5, rough=True)
    return _best(nodes).z


class _Surprises:
    """How wrong the interpolant was about the middle of each interval's parent."""

    def __init__(self) -> None:
        self._found: dict[tuple[float, float], float] = {}

    def record(self, now: Interpolant, k: int, node: ThetaPoint) -> None:
        found = now.surprise(node)
        self._found[now.z[k], node.z] = self._found[node.z, now.z[k + 1]] = found

    def errors(self, now: Interpolant) -> np.ndarray:
        """Of each interval: its importance times what is left of its parent's surprise.

        Halving an interval divides a cubic's error by 16 and a kink's by 4.
        """
        surprise = np.array([min(self._found.get(pair, 1.0), 1.0) for pair in pairwise(now.z)])
        return now.importance() * surprise / 4


def applies(model: EdgeModel) -> bool:
    """Whether `Exact` can fit this model."""
    try:
        _check_model(model)
    except DoesNotApply:
        return False
    return True


def _check_model(model: EdgeModel) -> None:
    network = free_network_parameters(model)
    n_free = sum(model.network.sizes.get(name, 1) for name in network)
    if n_free > 1:
        raise DoesNotApply(
            f"Exact adds up over one network parameter; this network has {n_free} in doubt "
            f"({', '.join(network)}). Use NUTS, or fix the others."
        )
    readout = type(model.readout).__name__
    if not model.readout.linear:
        raise DoesNotApply(
            f"Exact needs a readout with a coefficient for each column; {readout} has "
            f"none for the weight. Use NUTS."
        )
    if any(model.prior[name].fixed for name in model.readout.params_type._fields):
        raise DoesNotApply(
            f"Exact adds up over all parameters of {readout}; some are fixed. Use NUTS."
        )
    if not isinstance(model.likelihood, BernoulliEdges | WeightedEdges):
        raise DoesNotApply(
            f"Exact knows Bernoulli edges, with or without weights; the likelihood is "
            f"{type(model.likelihood).__name__}. Use NUTS."
        )
    if model.likelihood.weighted:
        WeightPrior.of(model)
    if network and not model.prior[network[0]].positive:
        raise DoesNotApply(
            f"{network[0]} must be positive, so its prior must be lognormal or loguniform; it is "
            f"{model.prior[network[0]]}."
        )


def _scan(slices: Slices) -> list[ThetaPoint]:
    """Nodes over the whole prior."""
    marginal = slices.marginal
    further = getattr(marginal, "log_sd", 0.0)
    low, high = -REACH, max(REACH, 2 * further + REACH / 2)
    low, high = np.clip([low, high], *marginal.to_z(np.array(_reachable(marginal))))
    fine = np.linspace(low, high, 4001)
    log = np.log(marginal.from_z(fine))
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
            and np.log(marginal.from_z(right.z) / marginal.from_z(left.z)) > FINE_STEP * 1.001
        ]
        if not gaps:
            return nodes
        nodes = sorted([*nodes, *slices.nodes(gaps, nodes, rough=True)], key=lambda node: node.z)


def _best(nodes: list[ThetaPoint]) -> ThetaPoint:
    return max(nodes, key=lambda node: node.g)


def _reachable(marginal: Any) -> tuple[float, float]:
    low, high = THETA_RANGE
    return max(low, getattr(marginal, "low", low)), min(high, getattr(marginal, "high", high))


def _same_plateau(left: ThetaPoint, right: ThetaPoint) -> bool:
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
    interpolant: Interpolant, family: ThetaPosterior, rng: np.random.Generator
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
        name: marginal.from_z(table[:, k])
        for k, (name, marginal) in enumerate(zip(family.names, family.marginals, strict=True))
    }
    if more:
        columns = (np.concatenate(column) for column in zip(*more, strict=True))
        params |= WeightParams(*columns)._asdict()
    return params, share / share.sum(), Flatness(float(dead), float(alike - dead))
