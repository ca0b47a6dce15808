"""The design effect against a sum over all pairs of pairs, and where labels are independent."""

import numpy as np
import pytest

from edgebelief.data import GraphDataset
from edgebelief.infer import dependence
from edgebelief.infer.dependence import design_effect


def test_it_is_the_sum_over_pairs_that_share_a_node(rng, monkeypatch):
    n, x = 7, rng.standard_normal((21, 3))
    a, p = rng.integers(0, 2, 21).astype(float), rng.uniform(0.1, 0.9, 21)
    known = rng.random(21) < 0.8
    graph = GraphDataset([np.ones(21)], [np.where(known, a, np.nan)])
    ends = list(zip(*np.triu_indices(n, 1), strict=True))
    score = np.where(known, a - p, 0)[:, None] * x
    shared = sum(
        score[k] * score[m] for k in range(21) for m in range(21) if {*ends[k]} & {*ends[m]}
    )
    brute = (shared / (score**2).sum(0)).mean()
    monkeypatch.setattr(dependence, "NOTABLE", -np.inf)
    assert design_effect(graph, [p], [x]) == pytest.approx(brute)


def test_independent_labels_count_fully_and_those_of_groups_do_not(rng):
    """Nodes of a kind that was not expected: all their pairs are wrong together."""
    n, n_edges = 30, 435
    rows, cols = np.triu_indices(n, 1)
    p = [np.full(n_edges, 0.3)] * 20
    columns = [np.ones((n_edges, 1))] * 20
    independent = [(rng.random(n_edges) < 0.3) * 1.0 for _ in range(20)]
    e = [np.ones(n_edges)] * 20
    assert design_effect(GraphDataset(e, independent), p, columns) == 1
    grouped = []
    for _ in range(20):
        odds = rng.uniform(0, 0.6, n)  # of each node
        grouped.append((rng.random(n_edges) < (odds[rows] + odds[cols]) / 2) * 1.0)
    # A pair shares a node with 2 (N - 2) others; the correlation is Var(odds) / 4 / (0.3 * 0.7).
    expected = 1 + 2 * (n - 2) * (0.6**2 / 12 / 4) / 0.21
    found = design_effect(GraphDataset(e, grouped), p, columns)
    assert found == pytest.approx(expected, rel=0.25)
