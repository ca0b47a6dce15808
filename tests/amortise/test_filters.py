"""Filters against the same by eigenvectors, in double precision."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from edgebelief.amortise.filters import FILTERS, Strengths, filter_matrix

N_NODES, CAPACITY = 7, 9
MASK = (np.arange(CAPACITY) < N_NODES).astype(np.float32)


@pytest.fixture(scope="module")
def compute():
    return jax.jit(filter_matrix)


@pytest.fixture
def weights(rng):
    """Two components, one of them a pair; lognormal weights."""
    links = np.triu(rng.uniform(size=(5, 5)) < 0.6, 1) | np.eye(5, k=1, dtype=bool)
    w = np.zeros((CAPACITY, CAPACITY), np.float32)
    w[:5, :5] = np.triu(links, 1) * np.exp(0.5 * rng.normal(size=(5, 5)))
    w[5, 6] = 1.0
    return w + w.T


def laplacian(weights, normalised):
    d = weights.sum(0)
    if normalised:
        return np.eye(len(d)) - weights / np.sqrt(np.outer(d, d))
    return np.diag(d) - weights


def expected(name, weights, normalised, key):
    """F, or F F' where F is unique to a rotation only."""
    w = weights[:N_NODES, :N_NODES].astype(float)
    matrix = laplacian(w, normalised)
    # At least the largest eigenvalue, and at most n^(1/8) times it.
    scale = (np.linalg.eigvalsh(matrix) ** 8).sum() ** 0.125
    assert 1 <= scale / np.linalg.eigvalsh(matrix)[-1] <= N_NODES**0.125
    matrix, itself = matrix / scale, np.eye(N_NODES)
    s = Strengths(*(float(x) for x in Strengths.random(jax.random.split(key)[0])))
    adjacency = itself - laplacian(w, True)
    return {
        "inverse root": lambda: np.linalg.pinv(matrix, rcond=1e-9, hermitian=True),
        "inverse": lambda: np.linalg.pinv(matrix, rcond=1e-9, hermitian=True),
        "killed": lambda: np.linalg.inv(matrix + s.kappa * itself),
        "tikhonov": lambda: np.linalg.inv(itself + s.weight * matrix),
        "heat": lambda: expm(-s.t * matrix),
        "polynomial": lambda: np.linalg.matrix_power(itself + s.alpha * adjacency, 3),
        "autoregressive": lambda: np.linalg.inv(itself - s.rho**2 * adjacency @ adjacency),
    }[name]()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("normalised", [0, 1])
@pytest.mark.parametrize("name", FILTERS[:-1])
def test_filters_are_their_formulas(name, normalised, seed, compute, weights):
    key = jax.random.key(seed)
    f = np.asarray(compute(key, weights, MASK, FILTERS.index(name), normalised), float)
    assert not f[N_NODES:].any()
    assert not f[:, N_NODES:].any()
    f = f[:N_NODES, :N_NODES]
    if name in ("inverse root", "killed", "autoregressive"):
        f = f @ f.T
    answer = expected(name, weights, normalised, key)
    np.testing.assert_allclose(f, answer, atol=2e-3 * np.abs(answer).max())


@pytest.mark.parametrize("seed", range(6))
def test_structural_equations_have_the_graph_as_their_skeleton(seed, compute, weights):
    """F = (I - B)^-1 D, so that F^-1 has an entry for every cause, and B has no cycle."""
    f = np.asarray(compute(jax.random.key(seed), weights, MASK, FILTERS.index("structural"), 0))
    inverse = np.linalg.inv(f[:N_NODES, :N_NODES].astype(float))
    b = np.eye(N_NODES) - inverse / np.diagonal(inverse)[:, None]
    there = np.abs(b) > 1e-4
    np.testing.assert_array_equal(there | there.T, weights[:N_NODES, :N_NODES] > 0)
    assert not np.linalg.matrix_power(there.astype(int), N_NODES).any()
    effects = np.abs(b) * np.sqrt(np.maximum(there.sum(1), 1))[:, None]
    assert effects[there].min() > 0.3 * 0.7 - 1e-3
    assert effects[there].max() < 1.0 * 1.6 + 1e-3


def test_half_of_structural_graphs_have_effects_of_either_sign(compute, weights):
    kind = FILTERS.index("structural")
    negative = []
    for seed in range(40):
        f = np.asarray(compute(jax.random.key(seed), weights, MASK, kind, 0), float)
        inverse = np.linalg.inv(f[:N_NODES, :N_NODES])
        off = inverse[~np.eye(N_NODES, dtype=bool)]
        negative.append((off > 1e-4).any())  # F^-1 has -B
    assert 8 <= sum(negative) <= 32
