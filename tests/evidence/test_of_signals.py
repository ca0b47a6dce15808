"""Channels from signals, against other libraries and brute force."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mutual_info_score

from edgebelief.evidence import (
    ForestImportance,
    MutualInformation,
    PartialCorrelation,
    RankCorrelation,
    SignedCorrelation,
)


def chain(n_signals, n_nodes, rng):
    """A walk: each node is the one before and noise of its own."""
    return rng.normal(size=(n_signals, n_nodes)).cumsum(1)


def with_gaps(x, rng):
    return np.where(rng.uniform(size=x.shape) < 0.2, np.nan, x)


# Correlations


def test_correlation_with_gaps_is_that_of_pandas(rng):
    x = with_gaps(1e4 + chain(30, 6, rng), rng)
    (channel,) = SignedCorrelation().of(x)
    np.testing.assert_allclose(channel, pd.DataFrame(x).corr(), atol=1e-8)


def test_the_sign_of_a_repression_is_kept(rng):
    x = rng.normal(size=(50, 2))
    x[:, 1] -= 2 * x[:, 0]
    assert SignedCorrelation().of(x)[0][0, 1] == pytest.approx(np.corrcoef(x.T)[0, 1])
    assert RankCorrelation().of(x)[0][0, 1] < -0.8


def test_a_constant_node_is_uncorrelated(rng):
    x = chain(20, 4, rng)
    x[:, 2] = 0.1  # which has no exact mean
    for kind in (SignedCorrelation(), RankCorrelation(), PartialCorrelation()):
        (channel,) = kind.of(x)
        np.testing.assert_allclose(np.delete(channel[2], 2), 0.0, atol=1e-12)


def test_rank_correlation_is_spearmans(rng):
    x = np.round(chain(40, 5, rng), 0)  # with ties
    np.testing.assert_allclose(RankCorrelation().of(x)[0], spearmanr(x).statistic, atol=1e-12)


def test_ranks_with_gaps_are_among_a_nodes_own(rng):
    x = with_gaps(chain(40, 5, rng), rng)
    expected = pd.DataFrame(x).rank().corr()
    np.testing.assert_allclose(RankCorrelation().of(x)[0], expected, atol=1e-10)


def test_partial_correlation_is_that_of_the_shrunken_covariance(rng):
    x = chain(30, 6, rng)
    x = (x - x.mean(0)) / x.std(0)
    k = LedoitWolf(assume_centered=True).fit(x).precision_
    (channel,) = PartialCorrelation().of(7 * x - 3)
    expected = -k / np.sqrt(np.outer(np.diag(k), np.diag(k)))
    np.testing.assert_allclose(channel, expected, atol=1e-10)


def test_partial_correlation_of_many_signals_is_that_of_residuals(rng):
    x = chain(100_000, 4, rng)
    (channel,) = PartialCorrelation().of(x)
    for i, j in [(0, 1), (0, 2), (1, 3)]:
        others = np.delete(x, [i, j], 1)
        left = [x[:, k] - LinearRegression().fit(others, x[:, k]).predict(others) for k in (i, j)]
        assert channel[i, j] == pytest.approx(np.corrcoef(left)[0, 1], abs=0.002)


def test_missing_signals_count_as_the_mean(rng):
    x = with_gaps(chain(30, 5, rng), rng)
    filled = np.where(np.isnan(x), np.nanmean(x, 0), x)
    for kind in (PartialCorrelation(), ForestImportance(n_trees=3)):
        np.testing.assert_allclose(kind.of(x)[0], kind.of(filled)[0], atol=1e-8)


# Mutual information


def information(channel):
    return -np.sign(channel) * np.log1p(-(channel**2)) / 2


def test_information_is_that_of_the_table_of_bins(rng):
    x = chain(80, 4, rng)  # four bins: five signals to each of 16 cells
    (channel,) = MutualInformation().of(x)
    bins = pd.DataFrame(x).apply(lambda column: pd.qcut(column, 4, labels=False)).to_numpy()
    for i in range(4):
        for j in range(i):
            expected = mutual_info_score(bins[:, i], bins[:, j]) - 9 / 160
            assert information(channel[i, j]) == pytest.approx(expected, abs=1e-6)


def test_information_of_independent_signals_is_zero_on_average(rng):
    """Without what is subtracted it would be (6 - 1)^2/400 = 0.0625."""
    channels = [MutualInformation().of(rng.normal(size=(200, 20)))[0] for _ in range(5)]
    values = information(np.concatenate([m[np.triu_indices(20, 1)] for m in channels]))
    assert abs(values.mean()) < 0.1 * 0.0625


def test_information_of_normal_signals_is_their_correlation(rng):
    x = rng.normal(size=(20_000, 2))
    x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
    (channel,) = MutualInformation(bins=16).of(x)
    assert 0.55 < channel[0, 1] < 0.61  # bins lose a little


def test_information_uses_the_signals_that_both_nodes_have(rng):
    x = chain(200, 2, rng)
    x[150:, 1] = np.nan
    x[:, 0] = np.concatenate([x[:150, 0], np.sort(x[:150, 0])[1::3]])  # the same distribution
    full, (channel,) = x[:150], MutualInformation(bins=3).of(x)
    (expected,) = MutualInformation(bins=3).of(full)
    assert information(channel[0, 1]) == pytest.approx(information(expected[0, 1]), abs=0.02)


# Forests


def test_a_forest_finds_the_neighbours_in_a_chain(rng):
    (channel,) = ForestImportance(n_trees=20).of(chain(300, 6, rng))
    near = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) == 1
    far = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) > 1
    assert channel[near].min() > channel[far].max()


def test_importances_are_shares_of_the_explained_variance(rng):
    """Over 1/(N - 1): with two nodes the other explains it all."""
    x = chain(50, 2, rng)
    (channel,) = ForestImportance(n_trees=3).of(x)
    assert channel[0, 1] == pytest.approx(np.log(1.01))


def test_permuting_nodes_permutes_importances_exactly(rng):
    x, order = chain(30, 7, rng), rng.permutation(7)
    kind = ForestImportance(n_trees=5)
    np.testing.assert_array_equal(kind.of(x[:, order])[0], kind.of(x)[0][np.ix_(order, order)])


def test_another_seed_gives_about_the_same(rng):
    x = chain(100, 6, rng)
    first, second = (ForestImportance(n_trees=40, seed=seed).of(x)[0] for seed in (0, 1))
    assert not np.array_equal(first, second)
    above = np.triu_indices(6, 1)
    assert np.corrcoef(first[above], second[above])[0, 1] > 0.95


def test_forests_leave_the_filter_of_warnings_alone(rng):
    """It belongs to the whole process, and forests run in threads."""
    before = list(warnings.filters)
    ForestImportance(n_trees=2).of(chain(20, 4, rng))
    assert warnings.filters == before
