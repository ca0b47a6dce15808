"""Terms of a mixture are those of the parts that have them."""

from dataclasses import replace

import numpy as np
import pytest

from edgebelief.belief import term_curves, term_table
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, Laplace, Mixture
from edgebelief.networks import DPG
from edgebelief.readouts import Additive

TERMS = ("z", "rank sum")


@pytest.fixture(scope="module")
def mixed():
    """The paper's readout, a curve of z, and both curves."""
    data = GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=8, n_nodes=10, n_signals=50)
    model = EdgeModel(DPG(20), Additive(features=TERMS))
    engine = Mixture(((), ("z",), TERMS), (0.5, 0.3, 0.2), Laplace(n_draws=1000))
    posterior = engine.run(0, model, data)
    # Curves far from zero, where there are some.
    curves = posterior.params["curves"]
    curves = np.where(curves == 0, 0.0, 5 + 0.1 * curves)
    scales = np.ones_like(posterior.params["scales"])
    return replace(posterior, params={**posterior.params, "curves": curves, "scales": scales})


def test_the_share_of_a_term_is_that_of_the_parts_with_it(mixed):
    share = term_table(mixed).set_index("term")["share"]
    assert share["z"] == pytest.approx(0.5)
    assert share["rank sum"] == pytest.approx(0.2)
    unmixed = replace(mixed, engine="Laplace")
    assert (term_table(unmixed)["share"] == 1).all()


def test_the_band_of_a_term_is_that_of_the_parts_with_it(mixed):
    """The same as of the draws of those parts alone; with zeros for the others it holds zero."""
    has_z = (mixed.params["curves"] != 0).any(1)
    alone = replace(
        mixed,
        engine="Laplace",
        params={name: draws[has_z] for name, draws in mixed.params.items()},
        weights=mixed.weights[has_z] / mixed.weights[has_z].sum(),
    )
    band, expected, with_zeros = (
        next(curve for curve in term_curves(each) if curve.name == "z")
        for each in (mixed, alone, replace(mixed, engine="Laplace"))
    )
    width = expected.high - expected.low
    # About a thousand draws each, so that ends of bands have an error of some percent.
    np.testing.assert_allclose(band.mean, expected.mean, atol=0.1 * width.max())
    np.testing.assert_allclose(band.high - band.low, width, rtol=0.2)
    assert band.size == pytest.approx(expected.size, rel=0.2)
    assert band.matters
    assert not with_zeros.matters
