import numpy as np
import pytest

from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import EdgeModel
from edgebelief.infer.exact import slices
from edgebelief.networks import DPG


@pytest.fixture
def data():
    """Graphs of two sizes; three of the first, two of the second, in turn."""
    small = GraphDataset.sample(0, ErdosRenyi(0.4), 3, 6, n_signals=50)
    large = GraphDataset.sample(1, ErdosRenyi(0.4), 2, 7, n_signals=50)
    records = [small[0], large[0], small[1], large[1], small[2]]
    return GraphDataset([r.e for r in records], [r.a for r in records])


def at(data, z):
    model = EdgeModel(DPG(depth=4))
    marginals = model.prior["delta"], model.prior["b"]
    made = slices.Slices(model, data, np.array([1.0, 2.0, 1.0, 1.0, 0.0]), marginals)
    return made.slice_at(z), made.columns_at(z)


@pytest.mark.parametrize("z", [-1.0, 0.3])
def test_graphs_taken_one_by_one_give_what_all_together_give(data, z, monkeypatch):
    together, columns = at(data, z)
    monkeypatch.setattr(slices, "PAIRS", 1)
    assert [len(part.e) for stack in data.stacks() for part in slices._parts(stack)] == [1] * 5
    apart, columns_apart = at(data, z)
    beta = np.array([[30.0, 2.0], [5.0, 0.5]])
    np.testing.assert_allclose(
        apart.labels.log_likelihood(beta), together.labels.log_likelihood(beta), rtol=1e-12
    )
    assert (apart.dead, apart.flat) == (together.dead, together.flat)
    assert [len(each) for each in columns] == [15, 21, 15, 21, 15]
    for one, other in zip(columns, columns_apart, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
