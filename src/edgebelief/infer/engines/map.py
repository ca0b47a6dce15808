"""MAP: the most plausible parameters (maximum a posteriori)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...data.randomness import Key
from ...errors import SettingError
from ..diagnostics import Finding
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import (
    FARTHEST,
    NO_CURVATURE,
    Measure,
    Peak,
    highest_peak,
    not_converged,
)
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
        if self.space not in ("constrained", "unconstrained"):
            raise SettingError(
                f"must be constrained or unconstrained; got {self.space!r}.", argument="space"
            )
        if self.prior not in ("model", None):
            raise SettingError(
                f'must be "model", or None for maximum likelihood; got {self.prior!r}. '
                f"Another prior is an argument of EdgeModel.",
                argument="prior",
            )
        if self.starts < 1:
            raise SettingError(f"must be at least 1; got {self.starts}.", argument="starts")
        if self.rounds is not None and self.rounds < 1:
            raise SettingError(
                f"must be at least 1, or None; got {self.rounds}.", argument="rounds"
            )

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model, data, counts = problem.model, problem.data, problem.counts
        measure: Measure = "likelihood" if self.prior is None else self.space
        density = LogDensity.of(model, data, counts)
        peak = highest_peak(key, density, measure, self.starts, self.rounds)
        params = values_of(model, peak.z[None])
        figures = {
            "log density": peak.value,
            "step left": peak.step_left,
            "starts that agree": float(peak.agreeing),
        }
        findings = list(_runaway(model, peak) if self.prior is None else ())
        findings = findings or list(not_converged(peak))
        return Fit(params, np.ones(1), figures, findings, prior_counts=self.prior is not None)


def _runaway(model: EdgeModel, peak: Peak) -> list[Finding]:
    """Return the finding that the likelihood has no maximum, if the search ran away or is flat."""
    away = np.abs(peak.z) > 0.99 * FARTHEST
    curvature = peak.curvature
    if not away.any() and curvature.least > NO_CURVATURE:
        return []
    share = np.maximum(away, abs(curvature.flattest))
    names = [name for name, s in zip(model.parameters, share, strict=True) if s > 0.3]
    return [
        Finding(
            "no maximum",
            curvature.least,
            f"the likelihood does not fall along {', '.join(names)}: the labels are separable, or "
            f"say nothing about it, and the values returned are where the search ended. Use the "
            f"prior (MAP()), or more labels.",
        )
    ]
