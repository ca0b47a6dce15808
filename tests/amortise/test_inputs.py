"""Inputs of the pair network: against `evidence`, and their symmetries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.amortise.inputs import CHANNELS, FACTS, RIDGES, Known, absolute, inputs_of
from edgebelief.data import (
    RandomGeometric,
    adjacency_of,
    distances,
    expected_distances,
    smooth_signals,
)
from edgebelief.edges import Complete
from edgebelief.evidence import PartialCorrelation, Precision

N_NODES, CAPACITY = 8, 10
KNOWN = Known(np.float32(30), np.float32(0), np.float32(1))
compute = jax.jit(inputs_of)


@pytest.fixture
def signals():
    return smooth_signals(1, RandomGeometric(0.5).sample(0, N_NODES), 30)


def matrix(vector):
    return Complete(N_NODES).to_matrix(vector)


def run(e, c, known=KNOWN, capacity=CAPACITY, beyond=0.0):
    """Compute with rows beyond the nodes, so that there is one compilation for all tests."""
    full = np.full((2, capacity, capacity), beyond, np.float32)
    n = len(e)
    full[0, :n, :n], full[1, :n, :n] = e, c
    mask = (np.arange(capacity) < n).astype(np.float32)
    inputs = compute(*full, jax.tree.map(jnp.float32, known), mask)
    return np.asarray(inputs.pairs)[:n, :n], np.asarray(inputs.facts)


@pytest.fixture
def data(signals):
    return matrix(distances(signals)), np.corrcoef(signals.T)


def test_relabelling_the_nodes_relabels_the_channels(data, rng):
    order = rng.permutation(N_NODES)
    pairs, facts = run(*data)
    other, same = run(*(x[np.ix_(order, order)] for x in data))
    np.testing.assert_allclose(pairs[np.ix_(order, order)], other, atol=2e-3)
    np.testing.assert_array_equal(facts, same)
    np.testing.assert_allclose(pairs, pairs.swapaxes(0, 1), atol=1e-5)


@pytest.mark.parametrize("beyond", [0.0, 1e3])
def test_rows_that_fill_up_the_arrays_change_nothing(data, beyond):
    pairs, facts = run(*data, beyond=beyond)
    other, same = run(*data, capacity=N_NODES)
    np.testing.assert_allclose(pairs, other, atol=2e-3)
    np.testing.assert_allclose(facts, same, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_distances_changes_nothing(data, scale):
    e, c = data
    np.testing.assert_allclose(run(scale * e, c)[0], run(e, c)[0], atol=2e-3)


@pytest.mark.parametrize("metric", ["sqeuclidean", "correlation"])
def test_precision_is_that_of_evidence(signals, metric):
    """1 - |correlation| is no squared distance: |G| has the moduli of the eigenvalues.

    Here by polynomials, and the scale is up to n^(1/8) of the largest eigenvalue.
    """
    e = matrix(distances(signals, metric))
    pairs, _ = run(e, np.corrcoef(signals.T))
    g = np.linalg.eigvalsh(-0.5 * (e - e.mean(0) - e.mean(0)[:, None] + e.mean()))
    scale = (g**8).sum() ** 0.125 / np.abs(g).max()
    off = ~np.eye(N_NODES, dtype=bool)
    for ridge in (1e-2, 1e-1):
        (expected,) = Precision(ridges=(ridge * scale,)).of(e)
        channel = pairs[..., CHANNELS.index(f"scaled precision {ridge:g}")]
        partial = pairs[..., CHANNELS.index(f"precision {ridge:g}")]
        np.testing.assert_allclose(partial[off], expected[off], atol=0.02)
        assert np.corrcoef(channel[off], expected[off])[0, 1] > 0.9


def test_signed_precision_is_the_partial_correlation(rng):
    x = rng.normal(size=(400, N_NODES)) @ rng.normal(size=(N_NODES, N_NODES))
    x[:, 0] *= -1
    pairs, _ = run(matrix(distances(x)), np.corrcoef(x.T))
    k = np.linalg.inv(np.corrcoef(x.T) + 1e-3 * scale_of(np.corrcoef(x.T)) * np.eye(N_NODES))
    expected = -k / np.sqrt(np.outer(np.diagonal(k), np.diagonal(k)))
    off = ~np.eye(N_NODES, dtype=bool)
    channel = pairs[..., CHANNELS.index("signed precision 0.001")]
    np.testing.assert_allclose(channel[off], expected[off], atol=5e-3)
    (shrunk,) = PartialCorrelation().of(x)
    assert np.corrcoef(channel[off], shrunk[off])[0, 1] > 0.9


def scale_of(m):
    return (np.linalg.eigvalsh(m) ** 8).sum() ** 0.125


def test_absolute_has_the_moduli_of_the_eigenvalues(rng):
    vectors, _ = np.linalg.qr(rng.normal(size=(N_NODES, N_NODES)))
    values = np.array([3.0, -2.0, 1.0, -0.5, 0.1, -0.02, 0.005, 0.0])
    size, scale = jax.jit(absolute)(((vectors * values) @ vectors.T).astype(np.float32))
    np.testing.assert_allclose(size, (vectors * abs(values)) @ vectors.T, atol=2e-4)
    assert float(scale) == pytest.approx((values**8).sum() ** 0.125, rel=1e-5)


def test_without_signals_their_channels_are_empty(data):
    pairs, facts = run(*data, known=KNOWN._replace(has_signals=0.0))
    empty = [k for k, name in enumerate(CHANNELS) if "correlation" in name or "signed" in name]
    assert not pairs[..., empty].any()
    assert facts[FACTS.index("signals given")] == 0


@pytest.mark.parametrize(
    ("n_signals", "infinite", "unknown"), [(30, 0, 0), (np.inf, 1, 0), (np.nan, 0, 1)]
)
def test_facts_tell_what_is_known(data, n_signals, infinite, unknown):
    _, facts = run(*data, known=KNOWN._replace(n_signals=n_signals))
    told = dict(zip(FACTS, facts, strict=True))
    assert told["infinitely many signals"] == infinite
    assert told["unknown number of signals"] == unknown
    counted = not (infinite or unknown)
    assert told["log signals"] == pytest.approx((np.log(30) - 5) / 2.6 if counted else 0, abs=1e-5)
    expected = np.log(30 / N_NODES) / 2.6 if counted else 0
    assert told["log signals per node"] == pytest.approx(expected, abs=1e-5)


def hostile(n):
    rng = np.random.default_rng(0)
    outlier = rng.uniform(size=(n, n))
    outlier[0, 1] = 1e30
    cloud = rng.normal(size=(n, 1))
    return {
        "zero": np.zeros((n, n)),
        "constant": np.ones((n, n)),
        "tiny": np.full((n, n), 1e-38),
        "huge": 1e37 * rng.uniform(size=(n, n)),
        "outlier": outlier,
        "points on a line": (cloud - cloud.T) ** 2,
        "twins": ((np.arange(n) // 2)[:, None] - np.arange(n) // 2) ** 2.0,
        "no metric": rng.uniform(size=(n, n)) ** 8,
        "negative": -rng.uniform(size=(n, n)),
    }


@pytest.mark.parametrize("n", [2, 3, N_NODES])
@pytest.mark.parametrize("name", hostile(2))
def test_hostile_distances_give_finite_channels(name, n):
    e = hostile(n)[name]
    e = (e + e.T) / 2
    for c in (np.eye(n), np.ones((n, n)), -np.ones((n, n)), np.full((n, n), np.nan)):
        for number in (1.0, np.inf, np.nan):
            pairs, facts = run(e, c, Known(number, 1.0, 1.0))
            assert np.isfinite(pairs).all()
            assert np.isfinite(facts).all()
            assert np.abs(pairs).max() < 50


def test_the_finest_ridge_separates_edges_on_expected_distances():
    graph = RandomGeometric(0.5).sample(0, N_NODES)
    pairs, _ = run(matrix(expected_distances(graph)), np.eye(N_NODES))
    channel = pairs[..., CHANNELS.index(f"precision {RIDGES[0]:g}")]
    a = adjacency_of(graph)[np.triu_indices(N_NODES, 1)]
    values = channel[np.triu_indices(N_NODES, 1)]
    assert values[a == 1].min() > values[a == 0].max() + 0.05
