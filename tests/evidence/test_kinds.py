"""What holds of every kind of evidence, whatever the data."""

import dataclasses
import warnings

import numpy as np
import pytest

from edgebelief.amortise.evidence import Pretrained, PretrainedBelief
from edgebelief.amortise.predict import LostWarning
from edgebelief.data import ErdosRenyi, adjacency_of, distances, smooth_signals
from edgebelief.edges import Complete
from edgebelief.errors import InputError
from edgebelief.evidence import (
    Custom,
    Diffusion,
    ForestImportance,
    MostLikelyGraph,
    MutualInformation,
    PartialCorrelation,
    Precision,
    Profile,
    RankCorrelation,
    SignalPrecision,
    SignedCorrelation,
    SmoothStructure,
)
from edgebelief.evidence.choose import ALL
from problems import KINDS, distances_of_kind

EVIDENCE = (
    Pretrained(),
    Pretrained(needs_signals=True),
    PretrainedBelief(),
    PretrainedBelief(needs_signals=False, density=(0.1, 0.4)),
    MostLikelyGraph(),
    Precision(),
    Diffusion(),
    Profile(),
    SmoothStructure(),
    SmoothStructure(with_resistance=False),
    SignalPrecision(),
    PartialCorrelation(),
    SignedCorrelation(),
    RankCorrelation(),
    MutualInformation(),
    ForestImportance(n_trees=5),
    Custom("squares", lambda e: e**2),
    Custom("covariance", lambda x: np.nan_to_num(x).T @ np.nan_to_num(x), needs_signals=True),
)
OF_DISTANCES = [kind for kind in EVIDENCE if not kind.needs_signals]
OF_SIGNALS = [kind for kind in EVIDENCE if kind.needs_signals]
every = pytest.mark.parametrize("kind", EVIDENCE, ids=lambda kind: kind.name)
of_distances = pytest.mark.parametrize("kind", OF_DISTANCES, ids=lambda kind: kind.name)
of_signals = pytest.mark.parametrize("kind", OF_SIGNALS, ids=lambda kind: kind.name)


def pairs(matrix):
    return Complete(len(matrix)).to_vector(matrix)


def check(kind, values):
    """Whether each channel is a symmetric matrix with a finite number for each pair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWarning)  # of the pretrained network, rightly
        channels = kind.of(values.copy())
    assert len(channels) == len(kind.channels)
    for matrix in channels:
        assert matrix.shape == (values.shape[1],) * 2
        assert np.isfinite(pairs(matrix)).all()
        np.testing.assert_allclose(pairs(matrix), pairs(matrix.T), rtol=1e-7, atol=1e-9)


@pytest.fixture(scope="module")
def graph():
    graph = ErdosRenyi(0.3).sample(3, 12)
    x = smooth_signals(4, graph, 300)
    gaps = np.random.default_rng(0).uniform(size=x.shape) < 0.05
    return {
        "a": pairs(adjacency_of(graph)),
        "distances": Complete(12).to_matrix(distances(x)),
        "signals": np.where(gaps, np.nan, x),
    }


def values_for(kind, graph):
    return graph["signals" if kind.needs_signals else "distances"]


@every
def test_each_channel_is_symmetric_and_finite(kind, graph):
    check(kind, values_for(kind, graph))


@every
def test_permuting_nodes_permutes_pairs(kind, graph, rng):
    values, order = values_for(kind, graph), rng.permutation(12)
    moved = values[:, order] if kind.needs_signals else values[np.ix_(order, order)]
    # Six layers of a network in single precision round to about this.
    tolerance = 2e-3 if kind.name.startswith("pretrained") else 1e-4
    for before, after in zip(kind.of(values), kind.of(moved), strict=True):
        np.testing.assert_allclose(
            pairs(after), pairs(before[np.ix_(order, order)]), rtol=tolerance, atol=tolerance
        )


@every
def test_values_are_left_as_they_are(kind, graph):
    values = values_for(kind, graph).copy()
    kind.of(values)
    np.testing.assert_array_equal(values, values_for(kind, graph))


@every
def test_it_has_a_name_and_settings_that_stay(kind):
    assert kind.name
    assert len(set(kind.channels)) == len(kind.channels)
    assert hash(kind) is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind.name = "other"
    assert kind.seconds(100, 200.0) >= 0


@pytest.mark.parametrize("kind", [k for k in OF_DISTANCES if k.name != "squares"], ids=str)
def test_the_unit_of_distances_changes_nothing(kind, graph):
    e = graph["distances"]
    for before, after in zip(kind.of(e), kind.of(1e5 * e), strict=True):
        np.testing.assert_allclose(pairs(after), pairs(before), rtol=1e-4, atol=1e-4)


# A covariance has units, and so have the squared distances that the network is shown.
WITH_UNIT = ("covariance", "pretrained", "signal-precision")
WITHOUT_UNIT = [k for k in OF_SIGNALS if not k.name.startswith(WITH_UNIT)]


@pytest.mark.parametrize("kind", WITHOUT_UNIT, ids=str)
def test_the_unit_of_signals_changes_nothing(kind, graph, rng):
    """Powers of 2 round nothing, so that trees make the same choices."""
    x = graph["signals"]
    scale = 2.0 ** rng.integers(-3, 4, size=12)
    for before, after in zip(kind.of(x), kind.of(x * scale), strict=True):
        np.testing.assert_allclose(pairs(after), pairs(before), rtol=1e-7, atol=1e-7)


@of_distances
def test_it_tells_edges_from_other_pairs(kind, graph):
    """By rank, by the best of the channels."""
    from sklearn.metrics import roc_auc_score

    scores = [roc_auc_score(graph["a"], pairs(m)) for m in kind.of(values_for(kind, graph))]
    assert max(max(score, 1 - score) for score in scores) > 0.7


@of_distances
@pytest.mark.parametrize("n_nodes", [2, 3, 4, 11])
def test_degenerate_distances_give_finite_channels(kind, n_nodes, rng):
    n_edges = n_nodes * (n_nodes - 1) // 2
    outlier = np.ones(n_edges)
    outlier[0] = 1e9
    twins = (rng.integers(0, 2, size=(2, n_nodes))[:, :, None] * [1.0, 0.0]).sum((0, 2))
    twins = pairs((twins[:, None] - twins) ** 2)
    cases = [np.zeros(n_edges), np.ones(n_edges), outlier, twins]
    cases += [np.exp(5 * rng.normal(size=n_edges)), -np.ones(n_edges)]
    cases += [distances_of_kind(name, n_nodes, rng) for name in KINDS]
    for e in cases:
        check(kind, Complete(n_nodes).to_matrix(e))


@of_signals
@pytest.mark.parametrize(("n_signals", "n_nodes"), [(1, 3), (2, 2), (3, 8), (40, 3)])
def test_degenerate_signals_give_finite_channels(kind, n_signals, n_nodes, rng):
    x = rng.standard_cauchy(size=(n_signals, n_nodes)) ** 3
    constant, twins, empty, near = x.copy(), x.copy(), x.copy(), x.copy()
    constant[:, 0] = 0.1
    twins[:, -1] = twins[:, 0]
    empty[:, 0] = np.nan
    near[:, 0] = 1e8 + 1e-9 * x[:, 0]
    for case in (x, constant, twins, near, np.round(x), np.full_like(x, 7.0)):
        check(kind, case)
    if kind.name.startswith("pretrained"):  # it needs distances, and there are none
        with pytest.raises(InputError, match="node 0 appears in 0 signals"):
            kind.of(empty)
    else:
        check(kind, empty)


@pytest.mark.parametrize("kind", [k for k in ALL if k.name != "forest"], ids=str)
def test_channels_warn_of_nothing_on_plain_data(kind, graph):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind.of(values_for(kind, graph))
