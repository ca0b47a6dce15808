"""Exact: the posterior by numerical integration.

Only theta enters the network's recursion; given theta, the readout's parameters are those of a
logistic regression. So the posterior is a one-parameter family of small integrals:

    p(theta | labels)  ~  p(theta) * integral p(labels | theta, beta) p(beta) dbeta

Theta is scanned over the whole prior, plateaus included, and then intervals are halved where it
matters until the estimated error is below a tolerance (`scan`); the inner integral has its own
error estimate (`quadrature`). Where edges have weights, those are a second regression, independent
of the first given theta (`weights`): the evidence is the product of the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from ...data.randomness import Key, generator
from ...errors import SettingError
from ...validate import check_least
from ..diagnostics import Finding
from ..exact.applies import check_model
from ..exact.chains import chain_draws
from ..exact.conditional import Sketch
from ..exact.laplace import SHARE, ThetaMode, weighted_draws
from ..exact.scan import LARGEST_SHARE, MidpointErrors, most_plausible_z, refine, scan
from ..exact.shrinkage import Shrinkage
from ..exact.slices import Slices, free_network_parameters
from ..exact.theta import Interpolant, ThetaPosterior
from ..exact.weights import WeightedThetaPosterior
from ..likelihoods import WeightParams
from ..model import EdgeModel
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine

# A point whose log density is this near to the highest is integrated, not sketched: sketches are
# wrong by less.
NEAR = 12.0
# The tolerance along theta with many coefficients: the marginal of theta need not be more accurate
# than the normal approximation of the coefficients.
LOOSE = 0.2


@dataclass(frozen=True)
class Exact(Engine):
    """The posterior of a network with one parameter and a readout linear in its coefficients.

    It takes seconds where sampling takes minutes, and gives the evidence and independent draws.
    Parameters of the network that are `fixed` do not count: at most one may be free.

    With up to two coefficients, all parameters are integrated numerically. With a few more, there
    are draws with importance weights (the verdict has Pareto's k), and where coefficients have
    scales that are learned, as in an additive readout, chains (R-hat and effective draws).

    Parameters
    ----------
    tol : float
        With up to two coefficients: the largest error of any posterior mean or sd, in posterior
        sds, and of the log evidence. The estimate is in the verdict ("quadrature error").
    n_draws : int
        With more coefficients: how many draws. Of chains these are kept; there are 4,000 or more.

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
        check_least(self, n_draws=25)
        if not 0 < self.tol < 1:
            problem = f"must lie between 0 and 1 (posterior sds); got {self.tol!r}."
            raise SettingError(problem, argument="tol")

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model = problem.model
        check_model(model)
        if not free_network_parameters(model):
            return self._fit_point(key, problem)
        if sum(model.sizes.get(name, 1) for name in model.readout.params_type._fields) > 2:
            return self._fit_many(key, problem)
        marginals = tuple(model.prior[name] for name in model.readout.params_type._fields)
        with Slices(model, problem.data, problem.counts, marginals) as slices:
            interpolant, error = self._integrate(slices)
        names = model.logit_parameters
        priors = tuple(model.prior[name] for name in names)
        posterior = ThetaPosterior.of(names, priors, interpolant)
        weighted = WeightedThetaPosterior.of(posterior, interpolant) if slices.weighted else None
        return Fit(
            *_points_as_draws(interpolant, posterior, generator(key)),
            figures={"quadrature error": error, "theta nodes": len(interpolant.points)},
            findings=[*_rugged(error, self.tol), *_out_of_budget(interpolant)],
            flatness=interpolant.flatness(),
            log_evidence=interpolant.log_evidence,
            continuum=weighted or posterior,
        )

    def _fit_many(self, key: Key, problem: Problem) -> Fit:
        """Fit many coefficients, around the mode at each theta."""
        model, data, counts = problem.model, problem.data, problem.counts
        shrinkage = Shrinkage.of(model)
        with Slices(model, data, counts, shrinkage.marginals, shrinkage.sds) as slices:
            if shrinkage.n_scales:  # learn them roughly, where the paper's readout is best
                z = problem.network_z
                z = most_plausible_z(model, data, counts) if z is None else z
                shrinkage = slices.learn_scales(shrinkage, z)
            points, errors = scan(slices), MidpointErrors()
            points = refine(slices, points, errors, tol=LOOSE, rough=True, share=LARGEST_SHARE)
            interpolant = Interpolant(points, slices.marginal)
            modes = [
                slices.theta_mode(
                    point,
                    float(np.log(share))
                    + interpolant.log_evidence
                    - point.conditional.log_evidence,
                )
                for point, share in zip(points, interpolant.weights(), strict=True)
                if share > SHARE
            ]
            fit = self._drawn(key, model, slices, shrinkage, modes)
        error = float(errors.estimate(interpolant).sum())
        name = free_network_parameters(model)[0]
        figures = {"quadrature error": error, f"{name} nodes": float(len(points))}
        return replace(
            fit,
            figures={**fit.figures, **figures},
            findings=[*fit.findings, *_rugged(error, LOOSE)],
            flatness=interpolant.flatness(),
        )

    def _fit_point(self, key: Key, problem: Problem) -> Fit:
        """Fit one regression, where all parameters of the network are fixed."""
        model, data, counts = problem.model, problem.data, problem.counts
        shrinkage = Shrinkage.of(model)
        with Slices(model, data, counts, shrinkage.marginals, shrinkage.sds) as slices:
            if shrinkage.n_scales:
                shrinkage = slices.learn_scales(shrinkage, 0.0)
            (point,) = slices.points([0.0], [], rough=True)
            of_weights = point.log_evidence - point.conditional.log_evidence
            modes = [slices.theta_mode(point, of_weights)]
            return self._drawn(key, model, slices, shrinkage, modes)

    def _drawn(
        self,
        key: Key,
        model: EdgeModel,
        slices: Slices,
        shrinkage: Shrinkage,
        modes: list[ThetaMode],
    ) -> Fit:
        """Draw all parameters: by chains where scales are learned, else by importance weights."""
        if shrinkage.n_scales:
            labels = [slices.slice_at(at.z, collapse=False).labels for at in modes]
            return chain_draws(key, model, shrinkage, modes, labels, self.n_draws)
        posteriors = [slices.posterior_at(at.z) for at in modes]
        return weighted_draws(key, model, shrinkage, modes, posteriors, self.n_draws)

    def _integrate(self, slices: Slices) -> tuple[Interpolant, float]:
        """Integrate over theta, with points where they matter; estimate the error of the result.

        A first pass, with Laplace approximations of the inner integrals and a loose tolerance,
        finds out where that is.
        """
        points, errors = scan(slices), MidpointErrors()
        points = refine(slices, points, errors, tol=10 * self.tol, rough=True)
        while True:
            interpolant = Interpolant(points, slices.marginal)
            sketches = _worth_integrating(interpolant)
            if not sketches:
                outer = errors.estimate(interpolant).sum()
                inner = np.array([point.conditional.error for point in points])
                weights = interpolant.weights()
                used = weights > 0
                return interpolant, float(outer + weights[used] @ inner[used])
            points = slices.integrated(points, sketches)
            points = refine(slices, points, errors, tol=self.tol, rough=False)


def _rugged(error: float, tol: float) -> list[Finding]:
    """Return the finding that the estimated error is above the tolerance, if it is."""
    message = (
        f"the estimated error is {error:.2g} posterior sd, above {tol:g}: the posterior is too "
        f"rugged for the rule. Compare with NUTS."
    )
    return [Finding("quadrature error", error, message)] if error > tol else []


def _out_of_budget(interpolant: Interpolant) -> list[Finding]:
    """Return the finding that inner integrals were stopped early, if they matter."""
    stopped = np.array([point.conditional.out_of_budget for point in interpolant.points])
    share = float(interpolant.weights() @ stopped)
    if share < 1e-3:
        return []
    error = max(p.conditional.error for p in interpolant.points if p.conditional.out_of_budget)
    message = (
        f"{stopped.sum()} of {stopped.size} integrals over the readout's parameters, with "
        f"{share:.1%} of the posterior, were stopped at their budget; the error of each is "
        f"estimated at {error:.2g} sd or less. Compare with NUTS."
    )
    return [Finding("integration budget", share, message)]


def _worth_integrating(interpolant: Interpolant) -> list[int]:
    """Return the indices of sketches that may matter: near the top, or beside a large interval."""
    importance = interpolant.importance()
    beside = np.maximum(np.append(importance, 0), np.append(0, importance))
    return [
        k
        for k, point in enumerate(interpolant.points)
        if isinstance(point.conditional, Sketch)
        and (point.g > interpolant.g_max - NEAR or beside[k] > 1e-4)
    ]


def _points_as_draws(
    interpolant: Interpolant, posterior: ThetaPosterior, rng: np.random.Generator
) -> tuple[dict[str, Float[np.ndarray, " draws"]], Float[np.ndarray, " draws"]]:
    """Return the quadrature points of theta and of the readout as draws, and their weights."""
    z, shares, of_weights = [], [], []
    for point, weight in zip(interpolant.points, interpolant.weights(), strict=True):
        if weight < 1e-9:
            continue
        inner = point.conditional.weighted_points()
        z.append(np.column_stack([np.full(len(inner.z), point.z), inner.z]))
        shares.append(weight * inner.weights)
        if point.weights is not None:
            of_weights.append(point.weights.draws(rng, len(inner.z)))
    table, share = np.concatenate(z), np.concatenate(shares)
    each = zip(posterior.names, posterior.marginals, table.T, strict=True)
    params = {name: marginal.from_z(column) for name, marginal, column in each}
    if of_weights:
        columns = (np.concatenate(column) for column in zip(*of_weights, strict=True))
        params |= WeightParams(*columns)._asdict()
    return params, share / share.sum()
