"""Evidence for lists of candidate pairs: the same numbers as for all pairs."""

import numpy as np
import pytest

from edgebelief.convex import solve
from edgebelief.data import GraphDataset, distances, nearest_pairs
from edgebelief.edges import Complete, Restricted
from edgebelief.errors import DoesNotApply
from edgebelief.evidence import (
    PartialCorrelation,
    Precision,
    Profile,
    RankCorrelation,
    SignalPrecision,
    SignedCorrelation,
    SmoothStructure,
    applicable,
    compute,
    compute_all,
)
from edgebelief.evidence.choose import OF_CANDIDATES

N = 14


@pytest.fixture(params=[6, 40], ids=["fewer signals than nodes", "more"])
def signals(request):
    rng = np.random.default_rng(request.param)
    return rng.normal(size=(request.param, N)) @ rng.normal(size=(N, N)) + rng.normal(size=N)


def of_candidates(kind, x, k=3):
    support, e = nearest_pairs(x, k)
    data = GraphDataset([e], supports=[support])
    return support, compute_all([kind], data, [x])[0]


@pytest.mark.parametrize(
    "kind",
    [PartialCorrelation(), RankCorrelation(), SignalPrecision(), SignedCorrelation()],
    ids=lambda kind: kind.name,
)
def test_channels_are_entries_of_those_of_all_pairs(kind, signals):
    support, few = of_candidates(kind, signals)
    for name, matrix in zip(kind.channels, kind.of(signals), strict=True):
        np.testing.assert_allclose(few[name], support.to_vector(matrix), rtol=1e-6, atol=1e-9)


def test_precision_of_signals_is_that_of_their_distances(signals):
    ridges = (1e-4, 1e-2, 1.0)
    from_distances = compute([Precision(ridges)], distances(signals))
    from_signals = compute([SignalPrecision(ridges)], distances(signals), signals)
    for r in ridges:
        one, other = from_distances[f"precision {r:g}"], from_signals[f"signal precision {r:g}"]
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-8)


def test_smooth_weights_and_common_neighbours_are_those_of_the_restricted_solution(signals):
    kind = SmoothStructure(thetas=(0.3,), with_resistance=False)
    support, few = of_candidates(kind, signals)
    _, e = nearest_pairs(signals, 3)
    a = solve(e / np.median(e), 0.3, support=support).adjacency()
    root = np.sqrt(a.sum(0))
    b = a / np.outer(root, root)
    common = b @ b / np.sqrt(np.outer(np.diag(b @ b), np.diag(b @ b)))
    np.testing.assert_allclose(few["smooth weight 0.3"], support.to_vector(b), atol=1e-12)
    np.testing.assert_allclose(few["smooth common 0.3"], support.to_vector(common), atol=1e-12)


def test_with_all_pairs_for_candidates_nothing_changes(signals):
    kind = SmoothStructure(with_resistance=False)
    support = Restricted.from_pairs(np.stack(Complete(N).endpoints, 1))
    e = distances(signals)
    dense = compute([kind], e)
    few = compute_all([kind], GraphDataset([e], supports=[support]))[0]
    for name in kind.channels:
        np.testing.assert_allclose(few[name], dense[name], atol=1e-7)


def test_what_needs_all_pairs_says_so(signals):
    with pytest.raises(DoesNotApply, match="all pairs"):
        of_candidates(Profile(), signals)
    with pytest.raises(DoesNotApply, match="all pairs"):
        of_candidates(SmoothStructure(), signals)


def test_what_is_chosen_for_candidates_needs_no_matrix_of_all_pairs():
    x = np.random.default_rng(0).normal(size=(20, N))
    for kind in OF_CANDIDATES:
        assert len(of_candidates(kind, x)[1]) == len(kind.channels)
    names = [kind.name for kind in applicable([2000] * 5, [200] * 5, restricted=True)]
    assert names == [kind.name for kind in OF_CANDIDATES]
    assert [k.name for k in applicable([9000], restricted=True)] == ["smooth"]
