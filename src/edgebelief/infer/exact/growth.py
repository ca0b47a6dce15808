"""How belief grows with the size of graphs: the exponent of a `Sized` readout.

At the network's most plausible parameters the labels are a logistic regression, whose rows are
multiplied by s^growth in graphs of size s: the evidence of any growth costs no further run of the
network.
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

# Between the least that can be expected of noisy distances, and more than of exact ones.
RANGE = (-3.0, 3.0)


def growth_of(model: EdgeModel, data: GraphDataset, weights: Float[np.ndarray, " graphs"]) -> float:
    """The growth with the highest evidence times a standard normal prior."""
    counted = [r.known.any() and w > 0 for r, w in zip(data, weights, strict=True)]
    if len(np.unique(np.asarray(data.n_nodes)[counted])) < 2:
        return 0.0
    plain, straight = (model.replace(readout=Sized(growth)) for growth in (0.0, 1.0))
    place = (
        most_plausible_z(plain, data, weights, plain.readout)
        if free_network_parameters(model)
        else 0.0
    )
    marginals = tuple(model.prior[name] for name in Sized.params_type._fields)
    with Slices(straight, data, weights, marginals) as slices:
        labels = slices.at(place).labels
    sizes = np.abs(labels.rows[:, 1:])  # of growth 1 it is the size that b is multiplied by
    posterior = LogisticPosterior(labels, marginals)

    def against(growth: float) -> float:
        rows = labels.rows * sizes ** (growth - 1)
        here = posterior._replace(labels=Labels(rows, labels.weights))
        return growth**2 / 2 - sketch(here).log_evidence

    return round(float(minimize_scalar(against, bounds=RANGE, options={"xatol": 1e-3}).x), 3)


def with_growth(model: EdgeModel, data: GraphDataset, weights: np.ndarray) -> EdgeModel:
    """The model with a readout that knows its growth."""
    assert isinstance(model.readout, Sized)
    return model.replace(readout=replace(model.readout, growth=growth_of(model, data, weights)))
