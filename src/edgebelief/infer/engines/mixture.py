"""Mixture: posteriors of models that have some of the terms of one readout, with given shares.

A readout with all terms contains each of them: the coefficients of terms that a part does not have
are zero. So a draw of the mixture is a draw of the parameters of the whole model, and everything
that is done with a posterior is done with a mixture of several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from ...data.randomness import Key, generator, split
from ...errors import SettingError
from ...readouts import Readout
from ...readouts.curves import coefficient_slices, scale_slices
from ..diagnostics import Finding
from ..exact import recalibrate
from ..exact.scan import most_plausible_z
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine
from .exact import Exact
from .laplace import Laplace

# The fewest draws of a part.
FEWEST = 400
# Figures of which the worst is the smallest; of others it is the largest.
SMALLEST = ("effective draws", "effective draws (parameters)", "acceptance")


@dataclass(frozen=True)
class Mixture(Engine):
    """A mixture of posteriors of a model with some of its readout's terms, and with others.

    Where no model is the true one, a mixture whose shares are those that predict held-out labels
    best (stacking: Yao, Vehtari, Simpson and Gelman 2018) predicts better than any of them, and
    than the one with all terms. ``GraphLearner(readout="auto")`` chooses parts and shares.

    Parameters
    ----------
    parts : tuple of tuples of str
        The names of the terms that each part has. Names of terms that the model does not have are
        ignored. A part without terms is the paper's readout.
    shares : tuple of float
        Of each part; they add up to one.
    engine : Exact or Laplace
        Fits each part. Of its draws, each part gets its share.
    trusted : str, optional
        The name of a covariate that holds log odds from elsewhere. The part with this term alone is
        that belief, without the network: see `edgebelief.infer.exact.recalibrate`.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Laplace, Mixture
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.readouts import Additive
    >>> data = GraphDataset.sample(0, RandomGeometric(0.4), 5, n_nodes=8, n_signals=100)
    >>> model = EdgeModel(DPG(20), Additive(features=("z", "rank sum")))
    >>> engine = Mixture(parts=((), ("z", "rank sum")), shares=(0.25, 0.75), engine=Laplace())
    >>> posterior = engine.run(0, model, data)
    >>> without = (posterior.params["curves"] == 0).all(1)
    >>> round(float(posterior.weights[without].sum()), 6)
    0.25
    """

    parts: tuple[tuple[str, ...], ...] = ((),)
    shares: tuple[float, ...] = (1.0,)
    engine: Exact | Laplace = field(default_factory=Exact)
    trusted: str | None = None

    def __post_init__(self) -> None:
        shares = np.array(self.shares, float)
        if not (len(shares) == len(self.parts) >= 1 and (shares > 0).all()):
            problem = f"are {self.shares} for {len(self.parts)} parts; one above 0 for each."
            raise SettingError(problem, argument="shares")
        if not np.isclose(shares.sum(), 1, atol=1e-6):
            raise SettingError(f"must add up to 1; got {shares.sum():g}.", argument="shares")

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model = problem.model
        fits, params = [], []
        for k, names, share in zip(
            split(key, len(self.parts)), self.parts, self.shares, strict=True
        ):
            part = model.with_terms(names)
            n_draws = max(round(share * self.engine.n_draws), min(FEWEST, self.engine.n_draws))
            of_part = replace(problem, model=part)
            if names == (self.trusted,):
                fit = _recalibrated(k, of_part, n_draws)
            else:
                fit = replace(self.engine, n_draws=n_draws)._fit(k, of_part)
            fits.append(fit)
            params.append(_embedded(fit, part.readout, model.readout))
        shares = np.array(self.shares) / sum(self.shares)
        return Fit(
            {name: np.concatenate([each[name] for each in params]) for name in model.parameters},
            np.concatenate([s * fit.weights for s, fit in zip(shares, fits, strict=True)]),
            _worst([fit.figures for fit in fits]) | {"parts": float(len(fits))},
            _findings(fits),
        )


def _recalibrated(key: Key, problem: Problem, n_draws: int) -> Fit:
    """Fit slope and level of log odds from elsewhere, the only term of the model."""
    (term,) = problem.model.readout.terms
    belief = recalibrate.Recalibration(term, problem.data, problem.counts)
    mode = belief.fit([record.known for record in problem.data])
    beta = recalibrate.draws(mode, generator(key), n_draws)
    z = most_plausible_z(problem.model, problem.data, problem.counts)
    params = recalibrate.as_params(problem.model, term, beta, z)
    return Fit(params, np.full(n_draws, 1 / n_draws), {"effective draws": float(n_draws)})


def _embedded(fit: Fit, part: Readout, whole: Readout) -> dict[str, Float[np.ndarray, "draws ..."]]:
    """Return the draws of a part as parameters of the whole model."""
    if not whole.terms:
        return dict(fit.params)
    n, sizes = len(fit.weights), whole.sizes
    embedded = {"curves": np.zeros((n, sizes["curves"])), "scales": np.zeros((n, sizes["scales"]))}
    for name, slices in (("curves", coefficient_slices), ("scales", scale_slices)):
        into, of = slices(whole.terms), slices(part.terms)
        for term in part.terms:
            embedded[name][:, into[term.name]] = fit.params[name][:, of[term.name]]
    return {**fit.params, **embedded}


def _worst(figures: list[Mapping[str, float]]) -> dict[str, float]:
    """Return the worst of each figure, over the parts that have it."""
    names = dict.fromkeys(name for each in figures for name in each)
    worst = {}
    for name in names:
        values = [each[name] for each in figures if name in each]
        worst[name] = min(values) if name in SMALLEST else max(values)
    return worst


def _findings(fits: list[Fit]) -> list[Finding]:
    """Return the findings of all parts; of those of one name, the first."""
    findings = {f.name: f for fit in reversed(fits) for f in fit.findings}
    return list(findings.values())
