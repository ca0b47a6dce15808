import numpy as np
import pytest

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, flatness
from edgebelief.networks import DPG


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
def test_shares_are_those_of_looking_at_every_draw(factor, monkeypatch):
    data = GraphDataset.sample(0, RandomGeometric(0.6), 2, n_nodes=5, n_signals=20)
    model, looked = EdgeModel(DPG(depth=5)), []
    look = flatness._look
    monkeypatch.setattr(flatness, "_look", lambda *args: looked.append(1) or look(*args))
    by_halving = flatness.prior_flatness(model, data, factor)
    few = len(looked)
    monkeypatch.setattr(flatness, "COARSE", 10**6)
    assert by_halving == flatness.prior_flatness(model, data, factor)
    assert few * 4 < len(looked) - few
    if factor != 1:
        assert 0 < by_halving.share < 1


def test_halving_finds_every_change_between_the_first_points():
    truth = np.repeat([[False, True], [False, False], [True, False]], [37, 100, 63], axis=0)
    seen = []

    def look(which):
        seen.extend(which)
        return truth[which]

    np.testing.assert_array_equal(flatness._by_halving(look, len(truth)), truth)
    assert len(seen) == len(set(seen)) < 17 + 2 * 4
