import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix, lil_matrix
from scipy.spatial.distance import pdist

from edgebelief.data import ErdosRenyi, GraphDataset, distances, same_group
from edgebelief.data.coerce import Graphs, graphs_from, rescaled, warn_if_alike
from edgebelief.errors import InputError
from problems import readable

NAMES = ["ada", "bob", "cy", "dee"]
LABELS = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])  # dee is alone
VECTOR = LABELS[np.triu_indices(4, k=1)]


@pytest.fixture
def signals(rng):
    return rng.normal(size=(30, 4))


@pytest.fixture
def matrix(signals):
    return np.square(signals[:, :, None] - signals[:, None, :]).mean(0)


def frame_of(values, names=NAMES):
    return pd.DataFrame(values, columns=names)


def square(values, names=NAMES):
    return pd.DataFrame(values, index=names, columns=names)


# Distances and signals


def test_every_form_of_distances_is_the_same_graph(matrix):
    vector = matrix[np.triu_indices(4, k=1)]
    forms = [
        matrix,
        matrix.tolist(),
        tuple(map(tuple, matrix)),
        np.asfortranarray(matrix),
        np.repeat(matrix, 2, axis=1)[:, ::2],
        vector,
        vector.tolist(),
        pd.Series(vector),
        square(matrix),
        square(matrix).loc[NAMES[::-1]],
        GraphDataset([matrix])[0],
    ]
    for form in forms:
        data, single, _ = graphs_from(form)
        assert single
        assert len(data) == 1
        np.testing.assert_array_equal(data[0].e, vector)


def test_every_form_of_several_graphs_is_the_same_data_set(matrix):
    both = np.stack([matrix, 2 * matrix])
    forms = [
        both,
        both.tolist(),
        list(both),
        tuple(both),
        [matrix, (2 * matrix).tolist()],
        [square(matrix), 2 * square(matrix)],
        [matrix, square(2 * matrix)],
        GraphDataset(list(both)),
        list(GraphDataset(list(both))),
    ]
    for form in forms:
        data, single, _ = graphs_from(form)
        assert not single
        for record, one in zip(data, both, strict=True):
            np.testing.assert_array_equal(record.distance_matrix(), one)


def test_a_list_of_one_graph_is_a_list(matrix):
    assert not graphs_from([matrix]).single
    assert not graphs_from(matrix[None]).single
    assert not graphs_from(GraphDataset([matrix])).single


@pytest.mark.parametrize("metric", ["sqeuclidean", "log-euclidean", "correlation"])
def test_signals_become_the_distances_of_the_metric(signals, metric):
    expected = distances(signals, metric)
    for form in (signals, signals.tolist(), frame_of(signals)):
        data, single, tables = graphs_from(form, metric=metric)
        assert single
        np.testing.assert_array_equal(tables[0], signals)
        np.testing.assert_array_equal(data[0].e, expected)
        assert data[0].n_signals == 30
    assert graphs_from(frame_of(signals), metric=metric).data[0].names == tuple(NAMES)
    several = [signals[:, :3], frame_of(signals)]
    data, single, _ = graphs_from(several, metric=metric)
    assert not single
    assert data.n_nodes == (3, 4)
    np.testing.assert_array_equal(data[0].e, distances(signals[:, :3], metric))


def test_distances_come_without_signals(matrix):
    assert graphs_from(matrix).signals is None
    assert graphs_from(GraphDataset([matrix]), metric="correlation").signals is None


def test_a_function_may_be_the_metric(signals):
    for metric in (lambda x: pdist(x.T), lambda x: np.corrcoef(x.T) * 0 + 1 - np.eye(4)):
        data = graphs_from(frame_of(signals), metric=metric).data
        assert data[0].names == tuple(NAMES)
        assert data[0].n_signals == 30
    np.testing.assert_array_equal(
        graphs_from(signals, metric=lambda x: pdist(x.T)).data[0].e, pdist(signals.T)
    )


def test_what_the_metric_raises_is_not_reworded(signals):
    def metric(x):
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "of its own")

    with pytest.raises(UnicodeDecodeError, match="of its own"):
        graphs_from([signals], metric=metric)


@pytest.mark.parametrize(
    "result", [np.ones(3), np.ones((3, 3)), np.ones((4, 4, 4)), np.ones(7), 1.0]
)
def test_a_metric_of_another_graph_is_refused(signals, result):
    with pytest.raises(ValueError, match=r"the metric returned shape .* of 4 nodes"):
        graphs_from(signals, metric=lambda x: result)


def test_gaps_are_left_out_pair_by_pair(signals):
    gappy = signals.copy()
    gappy[:10, 0] = np.nan
    forms = [gappy, frame_of(gappy), np.ma.masked_invalid(gappy), frame_of(gappy).astype("Float64")]
    forms.append(frame_of(gappy).astype(object).where(~np.isnan(gappy), None))
    for form in forms:
        for x, single in ((form, True), ([form], False)):
            with pytest.raises(ValueError, match=r"signals\[0, ('ada'|0)\] is nan"):
                graphs_from(x, metric="sqeuclidean")
            found = graphs_from(x, metric="sqeuclidean", missing="pairwise")
            assert found.single == single
            assert found.data[0].n_signals == 27.5  # 20 of one node, 30 of three
            assert found.data[0].e[0] == pytest.approx(distances(signals[10:])[0])


def test_signals_whose_squares_overflow_are_refused(signals):
    for metric in ("sqeuclidean", "correlation"):
        assert graphs_from(1e140 * signals, metric=metric).data.n_nodes == (4,)
        with pytest.raises(ValueError, match="its square has no number, use another unit"):
            graphs_from(1e155 * signals, metric=metric)


def test_transforms_come_before_distances(signals):
    prices = np.exp(signals)
    for preprocess, by_hand in (
        ("log", np.log(prices)),
        ("diff", np.diff(prices, axis=0)),
        ("log-returns", np.diff(np.log(prices), axis=0)),
        ("standardize", (prices - prices.mean(0)) / prices.std(0)),
    ):
        data = graphs_from(frame_of(prices), metric="sqeuclidean", preprocess=preprocess).data
        np.testing.assert_allclose(data[0].e, distances(by_hand), rtol=1e-12)
        assert data[0].n_signals == len(by_hand)
        assert data[0].names == tuple(NAMES)


# Labels


@pytest.mark.parametrize("names", [None, NAMES])
def test_every_form_of_labels_is_the_same(matrix, signals, names):
    own = [str(i) for i in range(4)] if names is None else names
    graph = nx.relabel_nodes(nx.path_graph(3), dict(enumerate(own)))  # the fourth is not there
    edges = pd.DataFrame({"source": [own[0], own[2]], "target": [own[1], own[1]]})
    other_order = [own[i] for i in (2, 0, 3, 1)]
    forms = [
        LABELS,
        LABELS.tolist(),
        LABELS.astype(bool),
        LABELS.astype(np.float32),
        LABELS + 7 * np.eye(4),  # the diagonal does not count
        VECTOR,
        VECTOR.tolist(),
        csr_array(LABELS),
        csr_matrix(LABELS),
        coo_array(LABELS),
        lil_matrix(LABELS),
        graph,
        nx.compose(graph, nx.Graph([(own[0], own[0])])),  # nor do loops
        square(LABELS, own),
        square(LABELS, own).loc[other_order, other_order],
        square(LABELS, own).astype("Int64"),
        edges,
        edges.astype("category"),
        edges.assign(known=[1, 1]),
        edges.assign(known=[True, True]),
    ]
    x = matrix if names is None else square(matrix, names)
    given = signals if names is None else frame_of(signals, names)
    for form in forms:
        for a in (form, [form]):
            if isinstance(form, np.ndarray | list) and np.ndim(form) == 1 and a is not form:
                continue
            data = graphs_from(x, a).data
            np.testing.assert_array_equal(data[0].a, VECTOR)
            assert data[0].known.all()
        data = graphs_from([x, x], [form, None]).data
        np.testing.assert_array_equal(data[0].a, VECTOR)
        assert not data[1].known.any()
        data = graphs_from(given, form, metric="sqeuclidean").data
        np.testing.assert_array_equal(data[0].a, VECTOR)
        assert data[0].n_signals == 30


def test_labels_of_several_graphs(matrix):
    both = np.stack([matrix, matrix])
    none = nx.empty_graph(4)
    for labels in (
        np.stack([LABELS, 0 * LABELS]),
        [LABELS, none],
        [csr_array(LABELS), none],
        (LABELS.tolist(), (0 * LABELS).tolist()),
        [VECTOR, 0 * VECTOR],
        [nx.path_graph(3), pd.DataFrame({"source": [], "target": []})],
        (one for one in (LABELS, none)),
    ):
        data = graphs_from(both, labels).data
        np.testing.assert_array_equal(data[0].a, VECTOR)
        np.testing.assert_array_equal(data[1].a, 0 * VECTOR)
        assert data.n_labels == 12


def test_unknown_labels_of_every_form(matrix):
    unknown = LABELS.astype(float)
    unknown[0, 1] = unknown[1, 0] = np.nan
    edges = pd.DataFrame({"source": ["0", "1"], "target": ["1", "2"], "there": [None, 1]})
    graph = nx.path_graph(3)
    graph.edges[0, 1]["weight"] = np.nan
    names = [str(i) for i in range(4)]
    forms = [unknown, unknown[np.triu_indices(4, k=1)], square(unknown, names), edges, graph]
    forms += [np.ma.masked_invalid(unknown), square(unknown, names).astype("Int64")]
    for form in forms:
        data = graphs_from(matrix, form).data
        np.testing.assert_array_equal(data[0].known, [False, True, True, True, True, True])
        np.testing.assert_array_equal(data[0].a[1:], VECTOR[1:])


def test_labels_replace_those_of_a_data_set(matrix):
    data = GraphDataset([matrix, matrix], [LABELS, LABELS], [NAMES, NAMES], [5, np.inf])
    for x in (data, list(data)):
        found = graphs_from(x, [None, nx.Graph([("ada", "dee")])]).data
        assert not found[0].known.any()
        np.testing.assert_array_equal(found[1].a, [0, 0, 1, 0, 0, 0])
        assert [record.n_signals for record in found] == [5, np.inf]
        assert found[0].names == tuple(NAMES)
    found = graphs_from(data[0], 1 - LABELS)
    assert found.single
    np.testing.assert_array_equal(found.data[0].a, 1 - VECTOR)
    assert graphs_from(data[0]).data[0] is data[0]


def test_a_graph_of_two_nodes_has_one_label():
    for labels in ([1], [[0, 1], [1, 0]], np.array([1]), nx.path_graph(2)):
        assert graphs_from([[0.0, 2.0], [2.0, 0.0]], labels).data[0].a == [1]


@pytest.mark.parametrize("labels", [LABELS, VECTOR, square(LABELS), csr_array(LABELS)])
def test_what_is_given_is_not_changed(matrix, labels):
    before = labels.copy()
    x = square(matrix)
    graphs_from(x, labels)
    pd.testing.assert_frame_equal(x, square(matrix))
    assert (before != labels).sum().sum() == 0


# Which way signals lie


@pytest.mark.parametrize("label", [LABELS, csr_array(LABELS), nx.path_graph(4), LABELS.tolist()])
def test_signals_on_their_side_are_noticed(signals, label):
    with pytest.raises(ValueError, match=r"shape \(4, 30\), and the labels 4 nodes. Transpose"):
        graphs_from(signals.T, label, metric="sqeuclidean")


def test_a_label_graph_may_leave_out_nodes_unless_that_looks_like_signals_on_their_side(signals):
    six = signals[:6].T  # four observations of six nodes
    path = nx.path_graph(4)
    with pytest.raises(ValueError, match="or give the label graph all of its nodes"):
        graphs_from(six, path, metric="sqeuclidean")
    path.add_nodes_from(range(6))
    assert graphs_from(six, path, metric="sqeuclidean").data[0].a.sum() == 3
    assert graphs_from(six[:3], nx.path_graph(4), metric="sqeuclidean").data.n_nodes == (6,)


def test_as_many_signals_as_pairs_are_not_on_their_side(signals):
    data = graphs_from(signals[:6], VECTOR, metric="sqeuclidean").data
    np.testing.assert_array_equal(data[0].a, VECTOR)


# What is refused


SQUARE = np.ones((3, 3)) - np.eye(3)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (None, TypeError, "X is None"),
        ({"a": SQUARE}, TypeError, "X is a dict"),
        ("distances.csv", TypeError, "X is text"),
        (nx.path_graph(3), TypeError, "X is a graph"),
        (csr_array(SQUARE), TypeError, "X is sparse"),
        ([], ValueError, "X is empty"),
        (np.empty((0, 3, 3)), ValueError, "X is empty"),
        (3.0, ValueError, "X has 0 axes"),
        (np.ones((2, 2, 2, 2)), ValueError, "X has 4 axes"),
        (SQUARE * 1j, TypeError, "must be real"),
        (SQUARE.astype(str), TypeError, "must be numbers"),
        (SQUARE.astype("m8[s]"), TypeError, "must be numbers; got dtype timedelta64"),
        (SQUARE.astype("M8[s]"), TypeError, "must be numbers"),
        ([[10**400] * 2] * 2, TypeError, "X must be an array of numbers"),
        (SQUARE * np.nan, ValueError, r"^distances\[0, 1\] is nan"),
        ([SQUARE, SQUARE * np.nan], ValueError, r"^graph 1: distances\[0, 1\] is nan"),
        ([SQUARE, np.where(SQUARE, np.inf, 0)], ValueError, r"graph 1: distances\[0, 1\] is inf"),
        ([SQUARE, None], TypeError, "graph 1: X must be an array of numbers"),
        ([SQUARE, "x"], TypeError, "graph 1: X must be numbers"),
        ([[[0, 1], [1, 0]], [[0, 1], [1]]], TypeError, "graph 1: X must be an array"),
        (np.ones((5, 3)), ValueError, "square matrix; got shape .* metric='correlation'"),
        ([SQUARE, np.ones((5, 3))], ValueError, "graph 1: distances must be a square matrix"),
        ([[0.0]], ValueError, "at least 2 nodes"),
        (np.ones(4), ValueError, "has 4 entries"),
        (np.triu(SQUARE), ValueError, "not symmetric"),
        (np.ones((3, 3)), ValueError, "the diagonal must be 0"),
        (frame_of(np.eye(4))[["ada", "bob"]], ValueError, "square matrix"),
        (square(LABELS, ["a", "a", "b", "c"]), ValueError, "must differ"),
        ([SQUARE, GraphDataset([SQUARE])[0]], TypeError, "graph 1"),
    ],
    ids=readable,
)
def test_bad_distances_are_refused(x, error, message):
    with pytest.raises(error, match=message):
        graphs_from(x)


class Table:
    """What other libraries call a data frame."""

    columns = ("ada", "bob")


@pytest.mark.parametrize(
    ("a", "error", "message"),
    [
        (3, TypeError, "A must hold the labels of graphs .*; got int"),
        ("edges.csv", TypeError, "got str"),
        ({"ada": 1}, TypeError, "got dict"),
        ([LABELS, LABELS], ValueError, r"labels has shape \(2, 4, 4\)"),
        ([], ValueError, "labels is empty"),
        (
            2 * LABELS,
            ValueError,
            r"'bob'. is 2; labels must be 0 .no edge., 1 .edge. or NaN",
        ),
        (2 * LABELS - 1, ValueError, "map -1 to 0"),
        (np.triu(LABELS), ValueError, r"labels\['ada', 'bob'\] is 1 .* not symmetric"),
        (LABELS[:3, :3], ValueError, "labels has 3 nodes, but the support has 4"),
        (np.ones(5), ValueError, "labels has shape"),
        (np.ones((4, 3)), ValueError, "labels must be a square matrix"),
        (csr_array(np.ones((4, 3))), ValueError, "labels must be a square matrix"),
        ([[1, 2], [1]], TypeError, "labels must be an array of numbers"),
        (nx.path_graph(4), ValueError, r"nodes \['0', '1', '2', '3'\] that X has not"),
        (nx.DiGraph([("ada", "bob")]), ValueError, "must be undirected"),
        (nx.MultiGraph([("ada", "bob")] * 2), ValueError, "'ada', 'bob'. is 2"),
        (nx.Graph([("ada", "bob", {"weight": 0.3})]), ValueError, "'ada', 'bob'. is 0.3"),
        (square(LABELS, list("abcd")), ValueError, "not the nodes expected"),
        (pd.DataFrame({"source": ["ada"], "target": ["zoe"]}), ValueError, "zoe"),
        (pd.DataFrame({"source": ["ada"], "target": ["ada"]}), ValueError, "joined to itself"),
        (pd.DataFrame({"source": ["ada"], "target": [None]}), ValueError, "has no name"),
        (pd.DataFrame({"source": [1.0, np.nan], "target": [1, 2]}), ValueError, "has no name"),
        (
            pd.DataFrame({"source": ["ada"], "target": ["bob"], "p": [0.3]}),
            ValueError,
            "'ada', 'bob'. is 0.3",
        ),
        (
            pd.DataFrame({"source": ["ada", "bob"], "target": ["bob", "ada"]}),
            ValueError,
            "listed twice",
        ),
        (Table(), TypeError, "a Table is no pandas data frame"),
    ],
    ids=readable,
)
def test_bad_labels_are_refused(a, error, message):
    x = square(1.0 - np.eye(4))
    with pytest.raises(error, match=message) as caught:
        graphs_from(x, a)
    assert not str(caught.value).startswith("graph 0")  # the only one
    if error is ValueError:
        with pytest.raises(ValueError, match="graph 1"):
            graphs_from([x, x], [LABELS, a])


def test_as_many_labels_as_graphs(matrix):
    for labels in ([LABELS], np.stack([LABELS] * 3), LABELS, nx.path_graph(4)):
        with pytest.raises(ValueError, match=r"A has the labels of . graphs and X has 2"):
            graphs_from([matrix, matrix], labels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "cosine"}, "metric must be one of .*, or a function; got 'cosine'"),
        ({"metric": None}, "metric must be"),
        ({"metric": np.ones(3)}, "metric must be"),
        ({"metric": "sqeuclidean", "missing": None}, "missing must be one of"),
        ({"metric": "sqeuclidean", "missing": ["error"]}, "missing must be one of"),
        ({"metric": "sqeuclidean", "preprocess": "sqrt"}, "preprocess must be one of"),
        ({"preprocess": "log"}, "preprocess is for signals"),
    ],
)
def test_settings_that_there_are_not(signals, settings, message):
    with pytest.raises(ValueError, match=message):
        graphs_from(signals, **settings)


# What comes out


def test_shapes_follow_the_input():
    one, two, larger = np.ones((3, 3)), np.zeros((3, 3)), np.ones((4, 4))
    data = GraphDataset([one[np.triu_indices(3, k=1)]])
    assert Graphs(data, True).shaped([one]) is one
    np.testing.assert_array_equal(Graphs(data, False).shaped([one, two]), np.stack([one, two]))
    ragged = Graphs(data, False).shaped([one, larger])
    assert isinstance(ragged, list)
    assert [part.shape for part in ragged] == [(3, 3), (4, 4)]


def test_rescaling_leaves_the_data_set_alone():
    data = GraphDataset.sample(0, ErdosRenyi(0.5), n_graphs=2, n_nodes=5)
    new = rescaled(data, [2.0, 0.5])
    np.testing.assert_array_equal(new[0].e, 2 * data[0].e)
    np.testing.assert_array_equal(new[1].e, data[1].e / 2)
    np.testing.assert_array_equal(new[1].a, data[1].a)
    with pytest.raises(ValueError, match="read-only"):
        new[0].e[0] = 1


def test_distances_that_say_nothing_are_warned_about():
    data = GraphDataset([np.ones(6), np.arange(6.0), np.ones(1)])
    with pytest.warns(UserWarning, match="graph 0: all its distances are 1") as caught:
        warn_if_alike(data)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_alike(data[1:])


def test_nodes_of_one_group_are_joined_and_unknown_ones_unknown():
    groups = {"ada": "x", "bob": "x", "cy": "y", "dee": "y", "eve": None, "flo": " ", "gus": "z"}
    nan = np.nan
    labels = same_group(groups, ["dee", "ada", "cy", "eve", "flo", "gus", "who"])
    expected = np.full((7, 7), nan)
    expected[:3, :3] = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(labels, expected)  # bob is not asked for, and ada is not alone
    assert labels.index.tolist() == labels.columns.tolist()


def test_groups_in_the_order_of_the_nodes():
    by_order = same_group([1, 1, np.nan, 2, 2], ["a", "b", "c", "d", "e"])
    by_name = same_group(pd.Series([2, 1, 2, 1], ["e", "b", "d", "a"]), list("abcde"))
    pd.testing.assert_frame_equal(by_order, by_name)
    assert (
        graphs_from(
            pd.DataFrame(np.ones((5, 5)) - np.eye(5), list("abcde"), list("abcde")), by_order
        ).data.n_labels
        == 6
    )


@pytest.mark.parametrize(
    ("groups", "names", "words"),
    [
        (["x", "x"], ["a", "b", "c"], "2 for 3 nodes"),
        ({"a": "x", "b": "y"}, ["a", "b"], "no pair is known"),
        ({"a": "x", "b": "x"}, ["c", "d"], "no pair is known"),
    ],
)
def test_groups_that_say_nothing_are_refused(groups, names, words):
    with pytest.raises(InputError, match=words):
        same_group(groups, names)


def test_ragged_signals_in_a_list_of_graphs_are_refused():
    with pytest.raises(ValueError, match="graph 0: signals must be an array of numbers"):
        graphs_from([[[], None]], metric="sqeuclidean")
