"""Channels of beliefs: against loops over nodes and graphs without the edge; their symmetries."""

import numpy as np
import pytest

from edgebelief.belief import EdgeBelief
from edgebelief.belief.structure import CHANNELS, structure, with_structure
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.edges import Complete
from edgebelief.evidence.smooth import GROUND

N = 7


@pytest.fixture
def p(rng):
    return rng.uniform(0.02, 0.98, N * (N - 1) // 2)


def by_loops(p):
    """Each channel from its definition, pair by pair."""
    pair = Complete(N).to_matrix(p)
    channels = np.empty((3, p.size))
    degree = pair.sum(0).mean()
    for t, (i, j) in enumerate(zip(*Complete(N).endpoints, strict=True)):
        others = [k for k in range(N) if k not in (i, j)]
        x, y = pair[i, others], pair[j, others]
        channels[0, t] = np.mean(x * (1 - y) + (1 - x) * y)
        channels[1, t] = x @ y / np.sqrt((x @ x) * (y @ y))
        without = pair.copy()
        without[i, j] = without[j, i] = 0
        laplacian = (np.diag(without.sum(0)) - without) / degree + GROUND * np.eye(N)
        ends = np.eye(N)[i] - np.eye(N)[j]
        channels[2, t] = np.log(ends @ np.linalg.solve(laplacian, ends))
    channels[2] -= np.median(channels[2])
    return channels


def test_channels_are_those_of_their_definition(p):
    found = structure(p, Complete(N))
    assert tuple(found) == CHANNELS
    for values, expected in zip(found.values(), by_loops(p), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-10)


def test_what_is_believed_of_the_pair_itself_does_not_count(p):
    """But for the median of resistances, and the mean degree that they are relative to."""
    other = p.copy()
    other[4] = 1 - p[4]
    for name in CHANNELS[:2]:
        values = [structure(x, Complete(N))[name][4] for x in (p, other)]
        np.testing.assert_allclose(*values, atol=1e-12)


def test_channels_are_permuted_as_the_nodes_are(p, rng):
    order, support = rng.permutation(N), Complete(N)
    moved = support.to_vector(support.to_matrix(p)[np.ix_(order, order)])
    for name, values in structure(p, support).items():
        expected = support.to_vector(support.to_matrix(values)[np.ix_(order, order)])
        np.testing.assert_allclose(structure(moved, support)[name], expected, atol=1e-10)


@pytest.mark.parametrize("certain", [0.0, 1.0])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_certain_beliefs_have_finite_channels(certain, n):
    found = structure(np.full(n * (n - 1) // 2, certain), Complete(n))
    assert all(np.isfinite(values).all() for values in found.values())


def test_channels_are_covariates_and_keep_their_names(p):
    data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=1, n_nodes=N, n_signals=100)
    informed = with_structure(data, [EdgeBelief.of(p)])
    assert tuple(informed[0].covariates) == CHANNELS
    with pytest.raises(ValueError, match="Rename it"):
        with_structure(informed, [EdgeBelief.of(p)])
