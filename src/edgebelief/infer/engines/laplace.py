"""Laplace: a normal approximation at one theta, in a fraction of a second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...data.randomness import Key, generator
from ...validate import check_least
from ..exact.applies import check_model
from ..exact.plugin import PlugIn
from ..likelihoods import WeightParams
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine


@dataclass(frozen=True)
class Laplace(Engine):
    """A normal distribution around the mode of the readout's coefficients, at one theta.

    For the models that `Exact` fits, in a hundredth of its time. Theta is the most plausible value
    under the paper's readout, and scales that are learned are at typical values (empirical Bayes).
    What it leaves out makes its belief a little worse, and its spread too small. Use it where many
    fits are compared, as ``GraphLearner(readout="auto")`` does; then let `Exact` fit the best.

    Parameters
    ----------
    n_draws : int
    network_z : float, optional
        Theta, as the coordinate in which its prior is standard normal, where it is known.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.engines.laplace import Laplace
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=8, n_signals=100)
    >>> posterior = Laplace().run(0, EdgeModel(DPG(depth=20)), data)
    >>> round(float(posterior.summary().loc["theta", "sd"]), 6)
    0.0
    """

    n_draws: int = 200
    network_z: float | None = None

    def __post_init__(self) -> None:
        check_least(self, n_draws=1)

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model, rng = problem.model, generator(key)
        check_model(model)
        z = problem.network_z if self.network_z is None else self.network_z
        plug_in = PlugIn(model, problem.data, problem.counts, z)
        fitted, n = plug_in.fit([record.known for record in problem.data]), self.n_draws
        columns = [np.tile(np.asarray(x, float), (n, *[1] * np.ndim(x))) for x in plug_in.network]
        scales = np.tile(fitted.shrinkage.scales, (n, 1))
        columns += fitted.shrinkage.params(fitted.draws(rng, n), scales)
        params = dict(zip(model.logit_parameters, columns, strict=True))
        if plug_in.weights is not None:
            params |= WeightParams(*plug_in.weights.draws(rng, n))._asdict()
        return Fit(params, np.full(n, 1 / n), {"log density": fitted.mode.f})
