"""Distances to test on: four kinds, any size."""

import re

import numpy as np

KINDS = ("geometric", "uniform", "with zeros", "with negatives")


def distances_of_kind(kind, n_nodes, rng):
    n_edges = n_nodes * (n_nodes - 1) // 2
    if kind == "geometric":
        i, j = np.triu_indices(n_nodes, k=1)
        points = rng.normal(size=(n_nodes, 3))
        return ((points[i] - points[j]) ** 2).sum(1)
    if kind == "uniform":
        return rng.uniform(size=n_edges)
    if kind == "with zeros":
        return rng.uniform(size=n_edges) * (rng.uniform(size=n_edges) > 0.3)
    if kind == "with negatives":
        return rng.normal(size=n_edges)
    raise ValueError(kind)


def random_problem(seed):
    """(n_nodes, e, theta): N in 2..50, theta in 10^[-3, 2], the kinds in turn."""
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(2, 51))
    theta = 10 ** rng.uniform(-3, 2)
    return n_nodes, distances_of_kind(KINDS[seed % 4], n_nodes, rng), theta


def nearly_complete_pairs(n_nodes):
    """Every pair but (0, 1)."""
    return [(i, j) for i in range(n_nodes) for j in range(i + 1, n_nodes) if (i, j) != (0, 1)]


def readable(case):
    """What a parametrised test calls a case: without addresses, so that all workers agree."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(case))
