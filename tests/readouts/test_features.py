import numpy as np
import pytest
from scipy.stats import rankdata

from edgebelief.edges import Complete
from edgebelief.readouts.features import OF_DISTANCES, of_distances

N = 7
SUPPORT = Complete(N)


@pytest.fixture
def e(rng):
    return rng.gamma(2.0, size=N * (N - 1) // 2)


def test_features_against_a_plain_loop(e):
    matrix, found = SUPPORT.to_matrix(e), of_distances(e, SUPPORT)
    assert set(found) == set(OF_DISTANCES)
    for k, (i, j) in enumerate(zip(*SUPPORT.endpoints, strict=True)):
        mine, theirs = (np.delete(matrix[a], a) for a in (i, j))
        assert found["distance"][k] == matrix[i, j]
        for name, of in (("mean", np.mean), ("minimum", np.min), ("spread", np.std)):
            assert np.isclose(found[f"{name} sum"][k], of(mine) + of(theirs))
            assert np.isclose(found[f"{name} gap"][k], abs(of(mine) - of(theirs)))
        here = rankdata(mine)[j - (j > i)], rankdata(theirs)[i - (i > j)]
        assert np.isclose(found["rank sum"][k], np.log(here).sum())
        assert np.isclose(found["rank gap"][k], abs(np.subtract(*np.log(here))))


@pytest.mark.parametrize("relative", [False, True])
def test_renaming_nodes_renames_features(e, rng, relative):
    _, places = SUPPORT.relabel(rng.permutation(N))
    before, after = (
        of_distances(e, SUPPORT, relative),
        of_distances(e[places], SUPPORT, relative),
    )
    for name in OF_DISTANCES:
        np.testing.assert_allclose(after[name], before[name][places], rtol=1e-12, atol=1e-12)


def test_relative_features_do_not_know_the_unit(e):
    one, thousand = (
        of_distances(e, SUPPORT, relative=True),
        of_distances(1000 * e, SUPPORT, relative=True),
    )
    for name in OF_DISTANCES:
        np.testing.assert_allclose(thousand[name], one[name], rtol=1e-10, atol=1e-12)


def test_relative_ranks_end_at_one(e):
    assert np.isclose(of_distances(e, SUPPORT, relative=True)["rank sum"].max(), 0, atol=0.7)


def test_two_nodes_have_features():
    found = of_distances(np.array([3.0]), Complete(2), relative=True)
    assert all(np.isfinite(values).all() for values in found.values())
