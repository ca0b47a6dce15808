"""The training world as cases: the same world as that of the training's draws."""

import numpy as np

from edgebelief.amortise.cases import distances_between, world_cases
from edgebelief.amortise.graphs import ErdosRenyi, always
from edgebelief.amortise.world import Cell, Response
from edgebelief.data import distances
from edgebelief.edges import Complete


def test_distances_are_those_of_the_package(rng):
    x = rng.normal(size=(30, 5))
    x[rng.random(x.shape) < 0.2] = np.nan
    for metric in ("sqeuclidean", "correlation"):
        e = Complete(5).to_matrix(distances(x, metric, missing="pairwise"))
        np.testing.assert_allclose(distances_between(x, metric == "correlation"), e, atol=1e-12)


def test_signals_have_the_covariance_of_the_world():
    """With many signals, distances are the expected ones: resistances, up to a constant."""
    response = Response(fewest_signals=20_000, most_signals=20_000, infinite=0.0, signals_given=1.0)
    world = (Cell("ER", 1.0, ErdosRenyi(always(0.5)), response, connected=True),)
    (case,) = world_cases(0, 1, (8, 8), world)
    assert case.signals.shape == (20_000, 8)
    a = Complete(8).to_matrix(case.labels)
    inverse = np.linalg.pinv(np.diag(a.sum(0)) - a)
    own = np.diagonal(inverse)
    resistance = own[:, None] + own - 2 * inverse
    np.testing.assert_allclose(case.e / case.e.sum(), resistance / resistance.sum(), rtol=0.1)
    assert distances_between(case.signals, False).shape == case.e.shape
