"""Evidence of data sets, a user's own evidence, and which applies."""

import threading

import numpy as np
import pandas as pd
import pytest

from edgebelief import registry
from edgebelief.data import GraphDataset, distances
from edgebelief.errors import DoesNotApply, InputError, SettingError
from edgebelief.evidence import (
    Custom,
    Precision,
    Profile,
    RankCorrelation,
    SignedCorrelation,
    SmoothStructure,
    add,
    applicable,
    check_names,
    compute,
    compute_all,
)
from edgebelief.evidence.choose import ALL, OF_CANDIDATES

KINDS = (Precision(), Profile(), RankCorrelation())


@pytest.fixture
def graphs(rng):
    signals = [rng.normal(size=(20, n)).cumsum(1) for n in (5, 7, 5)]
    return GraphDataset([distances(x) for x in signals]), signals


def test_a_data_set_is_its_graphs_one_by_one(graphs):
    data, signals = graphs
    together = compute_all(KINDS, data, signals)
    for record, x, vectors in zip(data, signals, together, strict=True):
        alone = compute(KINDS, record.distance_matrix(), x)
        assert list(vectors) == list(alone) == list(check_names(KINDS))
        for name, values in vectors.items():
            np.testing.assert_array_equal(values, alone[name])


def test_vectors_have_the_order_of_the_pairs(graphs):
    data, signals = graphs
    (channel,) = RankCorrelation().of(signals[1])
    vector = compute_all(KINDS, data, signals)[1]["rank correlation"]
    i, j = data[1].support.endpoints
    np.testing.assert_array_equal(vector, channel[i, j])


def test_graphs_share_the_cores(graphs, monkeypatch):
    """Two evaluations that wait for each other must run at a time."""
    monkeypatch.setattr("edgebelief.threads.n_cores", lambda: 2)
    both = threading.Barrier(2, timeout=60)

    def meet(e):
        both.wait()
        return e

    compute_all([Custom("own", meet)], graphs[0][:2])


def test_added_channels_are_covariates_of_the_pairs(graphs):
    data, signals = graphs
    age = [{"age": np.arange(record.e.size, dtype=float)} for record in data]
    data = GraphDataset([record.e for record in data], covariates=age)
    informed = add(KINDS, data, signals)
    vectors = compute_all(KINDS, data, signals)
    for record, before, channels in zip(informed, data, vectors, strict=True):
        assert list(record.covariates) == ["age", *check_names(KINDS)]
        np.testing.assert_array_equal(record.e, before.e)
        for name, values in {**before.covariates, **channels}.items():
            np.testing.assert_array_equal(record.covariates[name], values)
            assert not record.covariates[name].flags.writeable
    assert list(data[0].covariates) == ["age"]
    assert add([], data) is data


def test_a_covariate_with_the_name_of_a_channel_is_refused(graphs):
    data, _ = graphs
    once = add([Profile()], data)
    with pytest.raises(InputError, match=r"^graph 0: the covariate 'profile' has the name of a"):
        add([Precision(), Profile()], once)


def test_channels_that_are_not_finite_are_refused(graphs):
    """As where squares of distances go beyond double precision."""

    class Broken(Profile):
        def of(self, values):
            return (np.full_like(values, np.inf),)

    with pytest.raises(InputError, match=r"^graph 0: the evidence 'profile' is not finite"):
        add([Broken()], graphs[0][:1])


def test_evidence_from_signals_needs_them(graphs):
    data, signals = graphs
    with pytest.raises(DoesNotApply, match="'rank-correlation' is computed from signals, and"):
        compute_all(KINDS, data)
    with pytest.raises(DoesNotApply, match=r"^graph 1: .*leave it out"):
        compute_all(KINDS, data, [signals[0], None, signals[2]])
    assert compute_all(KINDS[:2], data)[0].keys() == set(check_names(KINDS[:2]))


def test_signals_of_another_graph_are_refused(graphs):
    data, signals = graphs
    with pytest.raises(InputError, match="graph 1: signals have 5 columns; the graph has 7 nodes"):
        compute_all(KINDS, data, [signals[0]] * 3)
    with pytest.raises(InputError, match="are 2 for 3 graphs"):
        compute_all(KINDS, data, signals[:2])
    signals[0][3, 2] = np.inf
    with pytest.raises(InputError, match=r"graph 0: signals\[3, '2'\] is inf"):
        compute_all(KINDS, data, signals)


def test_columns_of_frames_are_matched_by_name(graphs):
    data, signals = graphs
    named = GraphDataset([data[0].e], names=[list("abcde")])
    frame = pd.DataFrame(signals[0], columns=list("abcde"))
    shuffled = frame[list("cadbe")]
    for given in (frame, shuffled):
        (vectors,) = compute_all([SignedCorrelation()], named, [given])
        expected = compute([SignedCorrelation()], data[0].e, signals[0])
        np.testing.assert_allclose(vectors["correlation"], expected["correlation"])
    with pytest.raises(InputError, match="graph 0: signals have 4 columns"):
        compute_all([SignedCorrelation()], named, [frame.drop(columns="b")])
    with pytest.raises(InputError, match="graph 0: signals have the column 'z', which is no node"):
        compute_all([SignedCorrelation()], named, [frame.rename(columns={"b": "z"})])


def test_two_channels_of_one_name_are_refused():
    with pytest.raises(SettingError, match="evidence has the channel 'profile' twice"):
        compute([Profile(), Custom("profile", lambda e: e)], np.ones(6))


# A user's own


def own(function, n_nodes=3):
    return compute([Custom("mine", function)], np.arange(1.0, 1 + n_nodes * (n_nodes - 1) / 2))


def test_a_function_of_distances_or_of_signals_is_evidence(graphs):
    data, signals = graphs
    mine = Custom("mine", lambda e: e**2)
    other = Custom("other", lambda x: x.T @ x, needs_signals=True)
    vectors = compute([mine, other], data[0].e, signals[0])
    np.testing.assert_allclose(vectors["mine"], data[0].e ** 2)
    assert vectors["other"][0] == pytest.approx(signals[0][:, 0] @ signals[0][:, 1])


def test_two_directions_are_averaged_and_the_diagonal_is_free():
    result = np.array([[np.nan, 1.0, 2.0], [3.0, np.inf, 4.0], [6.0, 8.0, np.nan]])
    np.testing.assert_array_equal(own(lambda e: result)["mine"], [2.0, 4.0, 6.0])


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(3), r"must be a matrix \(3, 3\); got shape \(3,\)"),
        (np.ones((2, 2)), r"must be a matrix \(3, 3\)"),
        (np.array([[0, 1, np.nan], [1, 0, 1], [np.nan, 1, 0]]), r"\[0, 2\] is nan; every pair"),
        (None, "must be an array of numbers"),
        (np.full((3, 3), "high"), "text|numbers"),
    ],
)
def test_what_is_no_evidence_is_refused(result, message):
    with pytest.raises(InputError, match=rf"graph 0: .*evidence 'mine'.*{message}"):
        own(lambda e: result)


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [("", abs, "name must be text"), (3, abs, "name must be text"), ("x", 3, "cannot be called")],
)
def test_settings_of_ones_own_are_checked(name, function, message):
    with pytest.raises(SettingError, match=message):
        Custom(name, function)


# Which applies


def test_the_registry_names_what_applies_and_no_other():
    names = [kind.name for kind in ALL]
    # The learner chooses the first; the last is for graphs with few candidates.
    assert ["pretrained", *names, "signal-precision"] == list(registry.EVIDENCE)
    assert {kind.name for kind in OF_CANDIDATES} <= set(registry.EVIDENCE)
    assert all(type(kind) is registry.EVIDENCE[kind.name].load() for kind in ALL)


def test_without_signals_there_is_evidence_from_distances_alone():
    assert applicable([20]) == tuple(kind for kind in ALL if not kind.needs_signals)
    assert applicable([20], [100]) == ALL


def test_what_takes_too_long_is_left_out():
    names = [kind.name for kind in applicable([500], [200])]
    assert "forest" not in names
    assert "likelihood" in names
    assert applicable([10], [10], seconds=0.0) == ()
    estimate = sum(kind.seconds(30, 50) for kind in ALL)
    assert applicable([30], [50], seconds=1.01 * estimate) == ALL
    assert len(applicable([30], [50], seconds=0.99 * estimate)) == len(ALL) - 1


def test_estimates_grow_with_the_data():
    for kind in ALL:
        assert kind.seconds(200, 100) > kind.seconds(20, 100)
        assert kind.seconds(200, 200) >= kind.seconds(200, 100)


def test_smooth_structure_has_a_channel_of_each_kind_for_each_theta():
    assert SmoothStructure(thetas=(0.1, 1.0)).channels[3:] == (
        "smooth weight 1",
        "smooth common 1",
        "smooth resistance 1",
    )
