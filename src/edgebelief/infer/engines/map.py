"""MAP: the most plausible parameters (maximum a posteriori)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...data.randomness import Key
from ...validate import check_choice, check_least
from ..diagnostics import Finding
from ..gradient import optimise
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import Measure, Peak
from ..model import EdgeModel
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine

Space = Literal["constrained", "unconstrained"]


@dataclass(frozen=True)
class MAP(Engine):
    """The most plausible parameters, as a posterior of one point.

    Maximises log p(labels | params) + log p(params) from several starts: the prior's median, and
    the best of a line of network parameters far out on both sides and of draws of the prior. So a
    live network is found even where most of the prior says nothing (distances on another scale).

    A point has no spread: predictions from it are more certain than they should be. Use it for a
    quick look, or where a plug-in estimate is wanted.

    Parameters
    ----------
    space : "constrained" or "unconstrained"
        The density that is maximised: that of the parameters in their own units (the paper's
        choice), or that of the logarithm of the positive ones. They differ by the Jacobian, a sum
        of logs.
    starts : int
        How many maximisations.
    rounds : int, optional
        Most rounds of a climb (L-BFGS; a round is about one gradient). By default 200, and 1,200
        for networks with channels, whose last climb is repeated once. If the search is stopped
        early, that is a finding of the verdict.
    prior : "model" or None
        None leaves the prior's density out: maximum likelihood, started as above. Where labels are
        separable it has no maximum, and the verdict says so.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.engines.map import MAP
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=8, n_signals=20)
    >>> MAP().run(0, EdgeModel(DPG(depth=20)), data).n_draws
    1
    """

    space: Space = "constrained"
    starts: int = 8
    rounds: int | None = None
    prior: Literal["model"] | None = "model"

    def __post_init__(self) -> None:
        check_choice(self.space, "space", get_args(Space))
        otherwise = ", None for maximum likelihood (another prior is an argument of EdgeModel)"
        check_choice(self.prior, "prior", ("model", None), otherwise)
        check_least(self, starts=1)
        if self.rounds is not None:
            check_least(self, rounds=1)

    def _fit(self, key: Key, problem: Problem) -> Fit:
        measure: Measure = "likelihood" if self.prior is None else self.space
        density = LogDensity.of(problem.model, problem.data, problem.counts)
        peak = optimise.highest_peak(key, density, measure, self.starts, self.rounds)
        params = values_of(problem.model, peak.z[None])
        figures = {
            "log density": peak.value,
            "step left": peak.step_left,
            "starts that agree": float(peak.agreeing),
        }
        findings = _runaway(problem.model, peak) if self.prior is None else ()
        findings = findings or optimise.not_converged(peak)
        return Fit(params, np.ones(1), figures, findings, prior_counts=self.prior is not None)


def _runaway(model: EdgeModel, peak: Peak) -> tuple[Finding, ...]:
    """Return the finding that the likelihood has no maximum, if the search ran away or is flat."""
    away = np.abs(peak.z) > 0.99 * optimise.FARTHEST
    curvature = peak.curvature
    if not away.any() and curvature.least > optimise.NO_CURVATURE:
        return ()
    share = np.maximum(away, abs(curvature.flattest))
    names = [name for name, s in zip(model.parameters, share, strict=True) if s > 0.3]
    finding = Finding(
        "no maximum",
        curvature.least,
        f"the likelihood does not fall along {', '.join(names)}: the labels are separable, or say "
        f"nothing about it, and the values returned are where the search ended. Use the prior "
        f"(MAP()), or more labels.",
    )
    return (finding,)
