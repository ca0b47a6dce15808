import numpy as np
import pandas as pd
import pytest

from edgebelief.data import ErdosRenyi, GraphDataset, expected_distances


@pytest.fixture
def ragged():
    return GraphDataset(
        e=[np.arange(3.0), np.arange(6.0), np.arange(3.0) + 1],
        a=[[1, 0, 1], [0, 0, np.nan, 1, 1, 1], None],
        names=[["a", "b", "c"], ["p", "q", "r", "s"], ["x", "y", "z"]],
    )


def test_ragged_graphs_masks_and_names_are_kept(ragged):
    assert len(ragged) == 3
    assert ragged.n_nodes == (3, 4, 3)
    assert ragged.n_labels == 8
    assert ragged[1].names == ("p", "q", "r", "s")
    np.testing.assert_array_equal(ragged[1].known, [1, 1, 0, 1, 1, 1])
    assert not ragged[2].known.any()
    assert np.isnan(ragged[1].label_matrix()[0, 3])
    assert ragged[0].distance_matrix()[1, 2] == 2.0
    assert repr(ragged) == "<GraphDataset: 3 graphs of 3 to 4 nodes, 8 of 12 labels known>"


def test_stacks_hold_every_graph_once(ragged):
    stacks = ragged.stacks()
    assert [stack.support.n_nodes for stack in stacks] == [3, 4]
    np.testing.assert_array_equal(stacks[0].places, [0, 2])
    for stack in stacks:
        for row, place in enumerate(stack.places):
            np.testing.assert_array_equal(stack.e[row], ragged[int(place)].e)
            np.testing.assert_array_equal(stack.a[row], ragged[int(place)].a)
            np.testing.assert_array_equal(stack.known[row], ragged[int(place)].known)


def test_indexing_like_an_array(ragged):
    assert ragged[-1].names == ragged[2].names
    assert ragged[1:].n_nodes == (4, 3)
    assert ragged[[2, 0]].n_nodes == (3, 3)
    assert ragged[np.array([False, True, False])].n_nodes == (4,)
    assert (ragged[:1] + ragged[2:]).n_nodes == (3, 3)
    with pytest.raises(IndexError):
        ragged[5]
    for nothing in (slice(0, 0), []):
        with pytest.raises(IndexError, match="at least one graph"):
            ragged[nothing]


def test_the_callers_arrays_stay_the_callers():
    e = np.array([[1.0, 2, 3], [4, 5, 6]])
    data = GraphDataset(e)
    e[0, 0] = 99
    assert data[0].e[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        data[0].e[0] = 5


def test_labels_in_data_frames_are_matched_by_name():
    e = pd.DataFrame([[0, 1, 2], [1, 0, 3], [2, 3, 0.0]], index=list("abc"), columns=list("abc"))
    a = pd.DataFrame([[0, 0, 1], [0, 0, 0], [1, 0, 0]], index=list("cab"), columns=list("cab"))
    record = GraphDataset([e], [a])[0]
    assert record.names == ("a", "b", "c")
    np.testing.assert_array_equal(record.a, [0, 0, 1])  # the edge is b-c
    whole = pd.DataFrame([[0, 1, 0], [1, 0, 0], [0, 0, 0]])  # numbers for names
    np.testing.assert_array_equal(GraphDataset([e.to_numpy()], [whole[[2, 0, 1]]])[0].a, [1, 0, 0])
    with pytest.raises(ValueError, match="graph 0: the columns of labels are not the nodes"):
        GraphDataset([e], [a.rename(columns={"a": "x"})])


@pytest.mark.parametrize("one", [np.ones(3), np.ones((3, 3)) - np.eye(3), pd.DataFrame(np.eye(3))])
def test_one_graph_alone_is_refused(one):
    with pytest.raises(TypeError, match=r"for one graph pass \[e\]"):
        GraphDataset(one)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"e": []}, "at least one graph"),
        ({"e": [np.ones(3), np.ones(4)]}, "graph 1: distances has 4 entries"),
        (
            {"e": [np.ones(3)], "a": [[0, 1, 2]]},
            r"graph 0: labels\['1', '2'\] is 2; labels must",
        ),
        ({"e": [np.ones(3)], "a": []}, r"a \(labels\) has 0 entries for 1 graphs"),
        ({"e": [np.ones(3)], "names": [["a", "b", "a"]]}, r"graph 0: .*\['a'\] appear more"),
        ({"e": [[1, np.nan, 3]], "names": [["a"]]}, r"graph 0: "),
        ({"e": [[1, np.nan, 3]], "names": [["a", "b", "c"]]}, r"\['a', 'c'\] is nan"),
    ],
)
def test_bad_graphs_are_named_by_their_place(arguments, message):
    with pytest.raises(ValueError, match=message):
        GraphDataset(**arguments)


def test_sample_is_reproducible_and_of_the_ensemble():
    data = GraphDataset.sample(3, ErdosRenyi(0.5), 4, 8)
    again = GraphDataset.sample(3, ErdosRenyi(0.5), 4, 8)
    for record, other in zip(data, again, strict=True):
        np.testing.assert_array_equal(record.e, other.e)
        np.testing.assert_allclose(record.e, expected_distances(record.label_matrix()), rtol=1e-12)
    assert len({record.a.tobytes() for record in data}) > 1
    noisy = GraphDataset.sample(3, ErdosRenyi(0.5), 4, 8, n_signals=5000)
    np.testing.assert_array_equal(noisy[0].a, data[0].a)  # the same graphs, measured
    np.testing.assert_allclose(noisy[0].e, data[0].e, rtol=0.15)
