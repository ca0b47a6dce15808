"""Graphs unlike those fitted are noticed; others are not."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from edgebelief.belief import BeliefWarning, cross_predict, predict, typicality
from edgebelief.belief.conformal import p_values, together
from edgebelief.belief.shift import UnlikeWarning, warn_if_unlike
from edgebelief.data import BarabasiAlbert, ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.data.reference import MOST_GRAPHS, OF_FIT, SCALE, Reference, affordable
from edgebelief.data.summaries import OF_DISTANCES
from edgebelief.infer import EdgeModel, Fingerprint, Laplace, Posterior, Verdict
from edgebelief.networks import DPG
from edgebelief.report.report import _cautions

N = 12
PARAMS = {"theta": np.array([0.3]), "delta": np.array([5.0]), "b": np.array([1.0])}


def by_hand(graphs):
    """A posterior of one draw that was fitted to these graphs."""
    fingerprint = Fingerprint.of(graphs)
    return Posterior(EdgeModel(DPG(5)), PARAMS, np.ones(1), "by hand", {}, fingerprint, Verdict())


def said(posterior, graphs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_unlike(posterior, graphs)
    return [str(w.message) for w in caught]


@pytest.fixture(scope="module")
def graphs():
    return GraphDataset.sample(0, RandomGeometric(0.45), 60, N)


@pytest.fixture(scope="module")
def posterior(graphs):
    return by_hand(graphs[:40])


def test_p_values_of_exchangeable_rows_are_uniform():
    """Of rows from one distribution, with heavy tails, and correlated; few beside the columns."""
    rng = np.random.default_rng(0)
    n, found = 19, []
    for _ in range(300):
        rows = rng.standard_t(4, (n + 1, 8)) @ np.triu(np.ones((8, 8)))
        found += p_values(rows[:n], rows[n:], np.zeros(n + 1)).tolist()
    found = np.array(found)
    assert set(np.round(found * (n + 1)).astype(int)) <= set(range(1, n + 2))
    # One in twenty is the smallest, within three standard errors; a random number within steps
    # makes p-values continuous.
    assert abs((found <= 0.05 + 1e-9).mean() - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 300)
    assert kstest(found - rng.random(300) / (n + 1), "uniform").pvalue > 0.01


def test_combined_p_values_warn_no_more_often_than_they_say():
    """Ranks of new among reference numbers, exactly exchangeable."""
    rng = np.random.default_rng(1)
    for n, m in ((8, 50), (20, 5), (50, 100)):
        combined = []
        for _ in range(2000):
            of_reference, new = np.sort(rng.random(n)), rng.random(m)
            p = (1 + n - np.searchsorted(of_reference, new)) / (n + 1)
            combined.append(together(p, n))
        assert (np.array(combined) <= 0.01).mean() <= 0.01


def test_a_linear_dependence_on_size_is_taken_off():
    """Rows that depend on the size alone are usual at any size, those of another size are not."""
    rng = np.random.default_rng(2)
    size = rng.uniform(0, 1, 30)
    rows = 5 * size[:, None] + rng.normal(size=(30, 3)) / 10
    new = np.array([[0.5, 0.5, 0.5], [2.5, 2.5, 2.5]])
    p = p_values(rows, new, np.append(size, [0.5, 0.5]))
    assert p[0] < 0.05 < p[1]


def test_new_graphs_of_the_same_kind_are_usual(posterior, graphs):
    table = typicality(posterior, graphs[40:])
    assert (table["p"] <= 0.05).mean() <= 0.1
    assert not said(posterior, graphs[40:])


@pytest.mark.parametrize("ensemble", [BarabasiAlbert(1), ErdosRenyi(0.7)])
def test_graphs_of_another_kind_are_noticed(posterior, ensemble):
    others = GraphDataset.sample(1, ensemble, 10, N)
    (problem,) = said(posterior, others)
    assert "are unlike the 40 that were fitted" in problem
    assert "in the fit" in problem
    with pytest.warns(UnlikeWarning, match="unlike the 40"):
        predict(posterior, others)
    assert _cautions(posterior, others) == (problem,)


def test_fewer_signals_are_noticed_though_their_number_is_not_said(posterior):
    noisy = GraphDataset.sample(3, RandomGeometric(0.45), 10, N, n_signals=10)
    unnamed = GraphDataset([r.e for r in noisy], [r.label_matrix() for r in noisy])
    assert issubclass(UnlikeWarning, BeliefWarning)
    assert "unlike" in " ".join(said(posterior, unnamed))
    (problem,) = said(posterior, noisy)  # where it is said, the warning is about that
    assert "10 signals a graph" in problem


def test_the_statistic_that_was_shifted_is_named(posterior, graphs):
    """Distances that are four times as large are so in nothing but their size."""
    larger = GraphDataset([4 * r.e for r in graphs[40:]], n_signals=np.inf)
    table = typicality(posterior, larger)
    assert (table["statistic"] == SCALE).mean() > 0.8  # usual graphs are now and then unusual, too
    (problem,) = said(posterior, larger)
    assert "medians: median distance, logarithm: " in problem
    assert ";" not in problem.split(". ")[0]  # nothing else is beyond what was seen
    # Five times and more are another warning's, and then the scale is not compared.
    (problem,) = said(posterior, GraphDataset([9 * r.e for r in graphs[40:]], n_signals=np.inf))
    assert "times those that were fitted" in problem


def test_the_order_of_nodes_changes_nothing(posterior, graphs):
    order = np.random.default_rng(0).permutation(N)
    matrices = [r.distance_matrix() for r in graphs[40:]]
    shuffled = GraphDataset([e[np.ix_(order, order)] for e in matrices], n_signals=np.inf)
    mine, other = typicality(posterior, graphs[40:]), typicality(posterior, shuffled)
    np.testing.assert_array_equal(mine["p"], other["p"])
    np.testing.assert_allclose(mine["value"], other["value"], rtol=1e-6)


def test_without_enough_to_compare_with_nothing_is_said(posterior, graphs):
    trees = GraphDataset.sample(1, BarabasiAlbert(1), 10, N)
    old = replace(posterior, fingerprint=replace(posterior.fingerprint, reference=Reference()))
    for unable in (old, by_hand(graphs[:7])):
        assert not said(unable, trees)
        assert typicality(unable, trees)["p"].isna().all()


def test_graphs_of_sizes_that_were_not_fitted_are_not_compared(posterior):
    larger, other = (GraphDataset.sample(1, BarabasiAlbert(1), 2, n) for n in (16, N))
    table = typicality(posterior, GraphDataset([*(r.e for r in larger), other[0].e]))
    assert table["nodes"].tolist() == [16, 16, N]
    assert table["p"].isna().tolist() == [True, True, False]
    assert table["statistic"].isna().tolist() == [True, True, False]


def test_a_fit_keeps_summaries_of_graphs_that_count_and_have_labels(graphs):
    unlabelled = [np.full((N, N), np.nan)]
    labels = [r.label_matrix() for r in graphs[:9]] + unlabelled
    ten = GraphDataset([r.e for r in graphs[:10]], labels, n_signals=np.inf)
    counts = np.array([0.0, *np.ones(9)])
    kept = Fingerprint.of(ten, counts).reference
    assert kept == Reference.of(ten, range(1, 9))
    assert kept.names == (*OF_DISTANCES, SCALE)
    fitted = Laplace().run(0, EdgeModel(DPG(5)), graphs[:10])
    assert fitted.fingerprint.reference == Reference.of(graphs, range(10))


def test_of_many_or_large_graphs_some_are_summarised():
    many = affordable(np.arange(1000), np.full(1000, 20))
    assert len(many) == MOST_GRAPHS == len(set(many))
    assert affordable(np.arange(50), np.full(50, 500)).tolist() == [0, 7, 14, 21, 28, 35, 42, 49]
    assert len(affordable(np.arange(50), np.full(50, 1000), OF_FIT)) == 10
    assert affordable(np.arange(3), np.full(3, 20)).tolist() == [0, 1, 2]


def test_cross_validation_does_not_compare_its_parts(graphs):
    """Of thirty graphs that are left out one by one, one is the most unusual."""
    thirty = graphs[:30]

    def fit_and_predict(train, test):
        return predict(by_hand(train), test)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_predict(0, thirty, fit_and_predict, "graphs", 30)
    alone = [thirty[[s for s in range(30) if s != t]] for t in range(30)]
    assert any(said(by_hand(rest), thirty[t : t + 1]) for t, rest in enumerate(alone))


def test_distances_that_are_all_alike_or_zero_have_summaries():
    """Without a warning of NumPy or SciPy on the way."""
    alike = GraphDataset([np.full(N * (N - 1) // 2, x) for x in (0.0, 2.0, 1e-300, 1e300)])
    assert np.isfinite(Reference.of(alike, range(4)).array).all()
