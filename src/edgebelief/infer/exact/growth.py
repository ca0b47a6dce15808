"""How belief grows with the size of graphs: the exponent of a `Sized` readout.

At the network's most plausible parameters the labels are a logistic regression, whose rows are
multiplied by s^growth in graphs of size s. So the evidence of any growth is computed without
another run of the network.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from ...data.dataset import GraphDataset
from ...readouts import Sized
from ..model import EdgeModel
from .quadrature import sketch
from .regression import Labels, LogisticPosterior
from .scan import most_plausible_z
from .slices import Slices, free_network_parameters

# The least growth that noisy distances can be expected to give, and more than exact ones give.
RANGE = (-3.0, 3.0)


def growth_of(model: EdgeModel, data: GraphDataset, weights: Float[np.ndarray, " graphs"]) -> float:
    """Return the growth with the highest evidence times a standard normal prior."""
    counted = [r.known.any() and w > 0 for r, w in zip(data, weights, strict=True)]
    if len(np.unique(np.asarray(data.n_nodes)[counted])) < 2:
        return 0.0
    plain, straight = (model.replace(readout=Sized(growth)) for growth in (0.0, 1.0))
    free = free_network_parameters(model)
    network_z = most_plausible_z(plain, data, weights, plain.readout) if free else 0.0
    marginals = tuple(model.prior[name] for name in Sized.params_type._fields)
    with Slices(straight, data, weights, marginals) as slices:
        labels = slices.slice_at(network_z).labels
    sizes = np.abs(labels.rows[:, 1:])  # with growth 1, b is multiplied by the size
    posterior = LogisticPosterior(labels, marginals)

    def minus_log_posterior(growth: float) -> float:
        rows = labels.rows * sizes ** (growth - 1)
        with_growth = posterior._replace(labels=Labels(rows, labels.weights))
        return growth**2 / 2 - sketch(with_growth).log_evidence

    best = minimize_scalar(minus_log_posterior, bounds=RANGE, options={"xatol": 1e-3}).x
    return round(float(best), 3)


def with_growth(
    model: EdgeModel, data: GraphDataset, weights: Float[np.ndarray, " graphs"]
) -> EdgeModel:
    """Return the model with a readout whose growth has been estimated from the data."""
    assert isinstance(model.readout, Sized)
    return model.replace(readout=replace(model.readout, growth=growth_of(model, data, weights)))
