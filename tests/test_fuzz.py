"""Whatever comes in: an answer without gaps that were not there, or an `InputError`."""

import io
import warnings

import hypothesis.extra.numpy as hnp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from edgebelief.belief import BeliefWarning
from edgebelief.data import (
    GraphDataset,
    distances,
    load_dataset,
    read_edges,
    read_matrix,
    read_signals,
    read_table,
    save_dataset,
    transformed,
)
from edgebelief.data.coerce import graphs_from
from edgebelief.edges import Complete
from edgebelief.errors import InputError
from edgebelief.estimators import GraphLearner
from edgebelief.infer import InferenceWarning
from edgebelief.validate import (
    as_floats,
    check_distances,
    check_labels,
    check_names,
    check_number,
    check_signals,
    check_stopping,
    check_theta,
    complete_support,
    is_one_graph,
    same_nodes,
)


def answered(call, *arguments, **options):
    """What the call returns; None if it raises an error of ours."""
    try:
        return call(*arguments, **options)
    except (InputError, FileNotFoundError):
        return None


def fuzz(max_examples):
    return settings(
        max_examples=max_examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# Arrays


ODD = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e-300, 1e300, -1e300, 5e-324]
)
DTYPES = st.sampled_from(
    ["f8", ">f8", "f4", "f2", "g", "i1", "u8", "i8", "?", "c16", "U3", "S2", "O", "M8[s]", "m8[s]"]
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4) | st.sampled_from(
    [(3, 3), (4, 4), (2, 3, 3), (2, 4, 4), (6,), (3,), (10,), (5, 3), (2, 5, 3)]
)


@st.composite
def arrays(draw):
    shape = draw(SHAPES)
    with np.errstate(all="ignore"):
        array = draw(hnp.arrays(float, shape, elements=ODD | st.floats(-3, 3)))
        if array.ndim >= 2 and array.shape[-1] == array.shape[-2] and draw(st.booleans()):
            array = np.nan_to_num(array + array.swapaxes(-1, -2))  # distances, nearly
            array[..., np.arange(shape[-1]), np.arange(shape[-1])] = draw(ODD)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.astype(draw(DTYPES))
    return array


def frames_of(array):
    usual = np.ndim(array) == 2 and array.dtype not in (">f8", np.float16)  # pandas has neither
    frame = pd.DataFrame(array if usual else np.eye(3))
    rows, columns = ([f"n{i}" for i in range(n)] for n in frame.shape)
    named = frame.set_axis(columns, axis=1)
    doubled = frame.set_axis(["a"] * frame.shape[1], axis=1)
    square = named.set_axis(rows[::-1], axis=0)
    return st.sampled_from([frame, named, doubled, square, frame.iloc[:0], frame.astype(object)])


ENTRIES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, "", "a", "1.5", b"1", 1j, pd.NA, pd.NaT, object, {}, {1}])
    | st.floats()
    | st.dates()
)
NESTED = st.recursive(ENTRIES, lambda inner: st.lists(inner, max_size=4), max_leaves=12)
GRAPHS = st.sampled_from(
    [
        nx.path_graph(3),
        nx.path_graph(5),
        nx.Graph(),
        nx.DiGraph([(0, 1)]),
        nx.MultiGraph([(0, 1), (0, 1)]),
        nx.Graph([(0, 0), ("a", 1)]),
        nx.Graph([(0, 1, {"weight": np.nan})]),
        nx.Graph([(0, 1, {"weight": "x"})]),
        nx.Graph([("0", 0)]),
    ]
)
EDGES = st.builds(
    pd.DataFrame,
    st.fixed_dictionaries(
        {
            "source": st.lists(st.sampled_from([0, 1, "2", "n1", None]), min_size=2, max_size=2),
            "target": st.lists(st.sampled_from([1, 2, "0", np.nan, 0.0]), min_size=2, max_size=2),
        },
        optional={"there": st.lists(ENTRIES, min_size=2, max_size=2)},
    ),
)
ONE = arrays() | arrays().flatmap(frames_of) | NESTED
LABELS = (
    ONE
    | GRAPHS
    | EDGES
    | arrays()
    .filter(lambda x: x.ndim == 2)
    .map(lambda x: csr_array(x) if x.dtype in (float, np.int64, bool) and x.size else x.tolist())
)
ANYTHING = ONE | LABELS | st.lists(ONE, max_size=3) | st.lists(LABELS, max_size=3)
METRICS = st.sampled_from(
    ["precomputed"] * 3 + ["sqeuclidean", "log-euclidean", "correlation", "cosine", None, 3]
)
TRANSFORMS = st.sampled_from([None] * 4 + ["log", "diff", "log-returns", "standardize", "x"])


@fuzz(900)
@given(ANYTHING, st.none() | ANYTHING, METRICS, st.sampled_from(["error", "pairwise"]), TRANSFORMS)
@pytest.mark.filterwarnings("ignore:.*asymmetric, or its diagonal:UserWarning")
@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:All-NaN")  # nodes of gaps alone
@pytest.mark.filterwarnings("ignore::edgebelief.errors.InputWarning")  # few rows, distances
def test_any_graphs(x, a, metric, missing, transform):
    options = {"metric": metric, "missing": missing, "preprocess": transform}
    found = answered(graphs_from, x, a, **options)
    if found is not None:
        for record in found.data:
            assert np.isfinite(record.e).all()
            assert np.isin(record.a, [0, 1]).all()
            assert len(record.names) == len(set(record.names)) >= 2


@fuzz(500)
@given(ANYTHING, ANYTHING, st.lists(st.text(max_size=3), max_size=4))
@pytest.mark.filterwarnings("ignore:.*asymmetric, or its diagonal:UserWarning")
def test_any_value_at_the_door(value, other, names):
    found = answered(as_floats, value, "this")
    assert found is None or found.dtype == np.float64
    e = answered(check_distances, value)
    if e is not None:
        assert np.isfinite(e[0]).all()
        assert e[0].shape == (e[1].n_edges,)
        labels = answered(check_labels, other, e[1])
        assert labels is None or np.isin(labels[0], [0, 1]).all()
    x = answered(check_signals, value)
    assert x is None or np.isfinite(x).all()
    number = answered(check_number, value, "this")
    assert number is None or type(number) is float
    theta = answered(check_theta, value)
    assert theta is None or 0 < theta < np.inf
    stopping = answered(check_stopping, value, other)
    assert stopping is None or (stopping[0] >= 0 and stopping[1] >= 0)
    answered(check_names, names, 3)
    if isinstance(value, pd.DataFrame):
        answered(same_nodes, value, "this")
    if hasattr(value, "ndim") or hasattr(value, "columns"):
        assert isinstance(is_one_graph(value), bool | np.bool_)
    data = answered(GraphDataset, [value])
    assert data is None or all(np.isfinite(record.e).all() for record in data)


@fuzz(100)
@given(st.integers(0, 10**9))
def test_any_number_of_pairs(n_edges):
    support = answered(complete_support, n_edges)
    assert support is None or Complete(support.n_nodes).n_edges == n_edges


@fuzz(150)
@given(arrays(), METRICS, st.sampled_from(["error", "pairwise"]), TRANSFORMS)
@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:All-NaN")
def test_any_signals(x, metric, missing, transform):
    x = x if transform is None else answered(transformed, x, transform)
    if x is not None and answered(distances, x, metric, missing) is not None:
        assert metric in ("sqeuclidean", "log-euclidean", "correlation")


# Files


NUMBERS = [
    "0",
    "1",
    "1.5",
    "-2e3",
    "1,5",
    "NA",
    "nan",
    "inf",
    "1e999",
    "1_000",
    "0x1",
    "٣",
    "½",
    "",
]
TEXTS = ["a", "b", "é", "'=1", "=1", '"', '""', '"a', "'", " a ", "a;b", "\t", "\x00"]
CELLS = st.sampled_from([*NUMBERS, *TEXTS, "source", "target"]) | st.text(max_size=4)
TABLES = st.builds(
    lambda rows, separator, end, begin: begin + end.join(separator.join(row) for row in rows),
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5)
    )
    | st.lists(st.lists(CELLS, max_size=4), max_size=5),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from(["", "\ufeff", "source,target,d\n", "source;target\n", "node,a,b\n", "0,1\n"]),
)
CONTENTS = TABLES.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@fuzz(500)
@given(CONTENTS, st.sampled_from([".csv", ".tsv", ".txt"]), st.booleans())
def test_any_text_file(folder, contents, suffix, transpose):
    path = folder / f"table{suffix}"
    path.write_bytes(contents)
    table = answered(read_table, path)
    cells = [] if table is None else [str(cell).strip() for cell in table.to_numpy().ravel()]
    gaps = sum(cell in ("", "NA", "NaN", "nan", "None", "<NA>") for cell in cells)
    header = 0 if table is None else sum(str(name) in ("NA", "nan") for name in table.columns)
    signals = answered(read_signals, path, transpose=transpose)
    assert signals is None or signals.isna().to_numpy().sum() <= gaps + header
    matrix = answered(read_matrix, path)
    assert matrix is None or matrix.isna().to_numpy().sum() <= gaps + header
    assert matrix is None or list(matrix.index) == list(matrix.columns)
    edges = answered(read_edges, path, fill=0.0)
    assert edges is None or edges.isna().to_numpy().sum() <= 2 * gaps


@fuzz(60)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_as_parquet(folder, contents, magic):
    path = folder / "table.parquet"
    path.write_bytes(b"PAR1" + contents + b"PAR1" if magic else contents)
    assert answered(read_table, path) is None


@pytest.fixture(scope="module")
def saved(folder):
    path = folder / "saved.npz"
    save_dataset(path, GraphDataset([np.arange(3.0), np.ones(1)], [[1, 0, np.nan], [1]]))
    return path.read_bytes()


@fuzz(100)
@given(st.data())
def test_damaged_data_sets(folder, saved, data):
    contents = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 3))):
        contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    contents = contents[: data.draw(st.integers(0, len(contents)) | st.just(len(contents)))]
    path = folder / "damaged.npz"
    path.write_bytes(contents)
    found = answered(load_dataset, path)
    assert found is None or all(np.isfinite(record.e).all() for record in found)


@pytest.mark.parametrize(
    "arrays",
    [
        {"n_nodes": np.array([-3])},
        {"n_nodes": np.array([2**40])},
        {"n_nodes": np.array([3.5])},
        {"n_nodes": np.array([], int)},
        {"n_nodes": np.array("3")},
        {"e": np.full(3, np.nan)},
        {"e": np.array(["a", "b", "c"])},
        {"a": np.full(3, 2.0)},
        {"names": np.array(["a", "a", "b"])},
        {"n_signals": np.array([1.0, 2.0])},
        {"n_signals": np.array(["x"])},
    ],
)
def test_data_sets_with_odd_arrays(folder, arrays):
    good = {
        "n_nodes": np.array([3]),
        "e": np.ones(3),
        "a": np.ones(3),
        "names": np.array(list("abc")),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **(good | arrays))
    (folder / "odd.npz").write_bytes(buffer.getvalue())
    assert answered(load_dataset, folder / "odd.npz") is None


# What was found on the way


def test_two_observations_of_one_name_are_read_where_nodes_are_rows(folder):
    path = folder / "rows.csv"
    path.write_text("node,Mon,Mon\nada,1,2\nbob,3,4\n")
    signals = read_signals(path, transpose=True)
    np.testing.assert_array_equal(signals, [[1, 3], [2, 4]])


def test_nameless_rows_of_parquet(folder):
    path = folder / "rows.parquet"
    pd.DataFrame({"day": ["Mon", None], "ada": [1.0, 2.0], "bob": [3.0, 4.0]}).to_parquet(path)
    np.testing.assert_array_equal(read_signals(path), [[1, 3], [2, 4]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,source,target\na,b,c\n", "columns must differ"),
        ("source,target,d,d\na,b,1,2\n", "columns must differ"),
        ('source,target\na,"' + "b,\n" * 60_000, "A quote too many"),
    ],
)
def test_edge_lists_that_cannot_be_read(folder, text, message):
    path = folder / "edges.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_edges(path, "d" if ",d" in text else None)


# Fits


@st.composite
def problems(draw):
    """Two graphs of four nodes: distances of odd sizes, few labels."""
    scale = draw(st.sampled_from([1.0, 1e-3, 1e6]) | st.floats(-300, 300).map(lambda x: 10**x))
    entries = st.floats(0, 1) | st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-1, 1)
    e = scale * draw(hnp.arrays(float, (2, 6), elements=entries))
    if draw(st.booleans()):  # of all sizes at once
        e = e * 10.0 ** draw(hnp.arrays(int, (2, 6), elements=st.integers(-150, 150)))
    a = draw(hnp.arrays(float, (2, 6), elements=st.sampled_from([0.0, 1.0, np.nan])))
    settings = draw(
        st.fixed_dictionaries(
            {
                "prior": st.sampled_from(["altered", "original", "flat"]),
                "scale": st.sampled_from([None, "auto", "median", 1e-8, 1e8]),
            }
        )
    )
    return e, a, settings


@pytest.mark.long
@pytest.mark.slow
@fuzz(50)
@given(problems())
def test_any_fit_is_finite_or_refused(problem):
    e, a, settings = problem
    assume(np.isfinite(e).all())
    learner = GraphLearner(**{"depth": 2, "readout": "affine"} | settings)
    with warnings.catch_warnings():
        for category in (InferenceWarning, BeliefWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "graph .: all its distances are", UserWarning)
        if answered(learner.fit, list(e), list(a)) is None:
            return
        p, sd = learner.predict_proba(list(e), return_std=True)
    for values in (p, sd):
        assert np.isfinite(values).all()
        assert ((values >= 0) & (values <= 1)).all()
