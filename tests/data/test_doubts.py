import warnings

import numpy as np
import pandas as pd
import pytest

from edgebelief import SmoothGraph
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    Heat,
    RandomGeometric,
    SquareRootInverse,
    Tikhonov,
    distances,
    smooth_signals,
    transformed,
)
from edgebelief.data.coerce import graphs_from, warn_if_on_their_side
from edgebelief.data.dataset import GraphDataset
from edgebelief.data.doubts import warn_of_doubts
from edgebelief.errors import InputWarning


def warned(x, metric="sqeuclidean", sides=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_doubts(np.asarray(x, float), metric, sides)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("filter", [SquareRootInverse(), Heat(), Tikhonov()], ids=str)
@pytest.mark.parametrize("n_signals", [5, 20, 200])
def test_signals_that_we_simulate_are_not_doubted(filter, n_signals):
    for ensemble in (RandomGeometric(radius=0.4), ErdosRenyi(0.2), BarabasiAlbert(1)):
        graph = ensemble.sample(0, n_nodes=30)
        assert warned(smooth_signals(1, graph, n_signals, filter)) == []


def test_unequal_scales_matter_to_squared_distances_alone(rng):
    x = rng.normal(size=(40, 4)) * [1, 2, 3, 50]
    [message] = warned(x)
    assert "unequal scales" in message
    assert "preprocess='standardize'" in message
    assert warned(x, "correlation") == []
    assert warned(transformed(x, "standardize")) == []


def test_distances_are_no_signals(rng):
    x = rng.normal(size=(6, 6))
    frame = pd.DataFrame(x + x.T, list("abcdef"), list("abcdef"))
    with pytest.warns(InputWarning, match="metric='precomputed'"):
        graphs_from(frame, metric="correlation")
    with pytest.warns(InputWarning, match="metric='precomputed'"):
        SmoothGraph(degree=2).fit(frame)
    [message] = warned(frame, "correlation")
    assert "matrix of distances" in message
    assert warned(x, "correlation", sides=(range(6), range(6))) == []


def test_two_rows_say_little_once_scales_are_gone(rng):
    x = rng.normal(size=(2, 6))
    for messages in (warned(x, "correlation"), warned(transformed(x, "standardize"))):
        assert ["there are two rows" in message for message in messages] == [True]
    assert warned(x) == warned(rng.normal(size=(3, 6)), "correlation") == []
    assert np.unique(distances(transformed(x, "standardize")).round(9)).tolist() == [0, 4]
    np.testing.assert_allclose(distances(x, "correlation"), 0, atol=1e-12)


def test_unequal_scales_of_eight_rows(rng):
    assert len(warned(rng.normal(size=(8, 4)) * [1, 2, 3, 200])) == 1
    assert warned(rng.normal(size=(8, 30))) == []


def test_unequal_means(rng):
    x = rng.normal(size=(40, 4))
    assert warned(x + 5) == []
    [message] = warned(x + 5 * np.arange(4))
    assert "means from" in message


def test_prices_wander_and_returns_do_not(rng):
    prices = 100 * np.exp(0.01 * rng.normal(size=(250, 5)).cumsum(0))
    [message] = warned(prices, "correlation")
    assert "columns wander" in message
    assert "preprocess='log-returns'" in message
    assert warned(transformed(prices, "log-returns"), "correlation") == []
    with_gaps = np.where(rng.uniform(size=prices.shape) < 0.05, np.nan, prices)
    assert len(warned(with_gaps, "correlation")) == 1


@pytest.mark.parametrize(
    ("rows", "columns", "odd"),
    [
        (["gene1", "gene2", "gene3"], ["a", "b"], True),
        (["TP53", "BRCA1", "EGFR"], ["sample_1", "sample_2"], True),
        (["GOOG", "AAPL", "XOM"], ["2020-01-01", "2020-01-02"], True),
        (["TP53", "BRCA1", "HLA-A"], ["control 1", "treated 1"], True),
        (
            ["AAACCTGAGAAACCAT-1", "AAACCTGAGAAACCGC-1", "CCCTGATGTTTAAAAT-1"],
            ["Gapdh", "Tp53"],
            False,
        ),
        (["SRR1", "SRR2", "SRR3"], ["Gapdh", "Tp53"], False),
        (["P01", "P02", "P03"], ["left hippocampus", "right hippocampus"], False),
        (["sample_1", "sample_2", "sample_3"], ["TP53", "BRCA1"], False),
        (["2020-01-01", "2020-01-02", "2020-01-03"], ["GOOG", "AAPL"], False),
        ([0, 1, 2], ["node0", "node1"], False),
        ([0, 1, 2], ["day1", "day2"], False),
        (["Mon", "Tue", "Wed"], ["s1", "s2"], False),
    ],
)
def test_tables_on_their_side(rng, rows, columns, odd):
    frame = pd.DataFrame(rng.normal(size=(3, 2)), index=rows, columns=columns)
    if odd:
        with pytest.warns(InputWarning, match="on its side"):
            graphs_from(frame, metric="sqeuclidean")
    else:
        graphs_from(frame, metric="sqeuclidean")


def test_signals_with_as_many_rows_as_the_model_has_nodes(rng):
    data = graphs_from(rng.normal(size=(6, 4)), metric="sqeuclidean").data
    with pytest.warns(InputWarning, match="4 nodes and 6 signals.*of 6 nodes.*X.T"):
        warn_if_on_their_side(data, (6,))
    warn_if_on_their_side(data, (4, 6))
    warn_if_on_their_side(data, (5,))
    warn_if_on_their_side(GraphDataset([np.ones(3)]), (6,))
