import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebelief.data import (
    GraphDataset,
    load_dataset,
    read_edges,
    read_matrix,
    read_signals,
    save_dataset,
    write_edges,
    write_matrix,
)

NAMES = ["01", "NA", "a,b", 'q"uote', "né", "nan", "x;y;z;w;", "1e3", "node"]


def matrix_of(n, seed=0):
    upper = np.triu(np.random.default_rng(seed).normal(size=(n, n)), 1)
    return upper + upper.T


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
def test_matrix_round_trip_with_awkward_names(tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    write_matrix(path, matrix_of(9), NAMES)
    back = read_matrix(path)
    assert list(back.columns) == list(back.index) == NAMES
    np.testing.assert_array_equal(back.to_numpy(), matrix_of(9))


def test_frames_are_written_by_name_whatever_their_order(tmp_path):
    frame = pd.DataFrame(matrix_of(3), index=list("abc"), columns=list("abc"))
    write_matrix(tmp_path / "m.csv", frame.loc[list("cba")])
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.csv").to_numpy(), matrix_of(3))
    write_edges(tmp_path / "e.csv", frame.loc[list("cba")])
    np.testing.assert_array_equal(read_edges(tmp_path / "e.csv").to_numpy(), matrix_of(3))


@pytest.mark.parametrize("write", ["to_parquet", "to_csv"])
def test_plain_frames_with_numbers_for_names(tmp_path, write):
    path = tmp_path / f"m.{write[3:]}"
    frame = pd.DataFrame(matrix_of(4), columns=[str(i) for i in range(4)])
    getattr(frame, write)(path, index=False)
    np.testing.assert_array_equal(read_matrix(path).to_numpy(), matrix_of(4))


def test_gaps_and_spaces_in_edge_lists(tmp_path):
    (tmp_path / "e.csv").write_text("source,target,d\na ,b,1\na,c,2\n")
    assert list(read_edges(tmp_path / "e.csv").columns) == ["a", "b", "c"]
    frame = pd.DataFrame({"source": ["a", None], "target": ["b", "c"], "d": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "e.parquet")
    with pytest.raises(ValueError, match="an end of the edge has no name"):
        read_edges(tmp_path / "e.parquet")
    names = (name for name in "cab")
    assert list(read_edges(tmp_path / "e.csv", names=names).columns) == ["c", "a", "b"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_edge_round_trip_keeps_order_and_isolated_nodes(tmp_path, suffix):
    path = tmp_path / f"e{suffix}"
    a = np.where(np.arange(66) % 3 == 0, np.arange(66) + 1.0, 0.0)
    names = [str(i) for i in range(12)]
    write_edges(path, a)
    back = read_edges(path, names=names, fill=0.0)
    np.testing.assert_array_equal(back.to_numpy()[np.triu_indices(12, k=1)], a)
    write_edges(path, a, keep_zeros=True)
    np.testing.assert_array_equal(read_edges(path).to_numpy()[np.triu_indices(12, k=1)], a)
    assert list(read_edges(path).columns) == names


A_NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(
    st.lists(A_NAME.filter(lambda name: name.strip() == name), min_size=2, max_size=6, unique=True)
)
@settings(max_examples=60, deadline=None)
def test_any_names_survive_csv(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("csv") / "m.csv"
    write_matrix(path, matrix_of(len(names)), names)
    assert list(read_matrix(path).columns) == names


def test_dataset_round_trip_is_exact(tmp_path):
    data = GraphDataset(
        e=[np.array([0.1, 0.2, 0.3]), np.array([-1.5])],
        a=[[1, np.nan, 0], [1]],
        names=[["é", "b", "c"], ["d", "e"]],
    )
    save_dataset(tmp_path / "d.npz", data)
    for record, other in zip(data, load_dataset(tmp_path / "d.npz"), strict=True):
        assert record.names == other.names
        for field in ("e", "a", "known"):
            np.testing.assert_array_equal(getattr(record, field), getattr(other, field))


@pytest.mark.parametrize(
    "text",
    [
        "node,a,b\na,0,0.5\nb,0.5,0\n",
        "\ufeffnode,a,b\r\na,0,0.5\r\nb,0.5,0\r\n",
        "node;a;b\na;0;0,5\nb;0,5;0\n",
        "node\ta\tb\na\t0\t0.5\nb\t0.5\t0\n",
        "node, a, b\na, 0, 0.5\n\nb, 0.5, 0\n\n",
        ",b,a\na,0.5,0\nb,0,0.5\n",
        '"node","a","b"\n"a","0","0.5"\n"b","0.5","0"\n',
    ],
    ids=["plain", "BOM and CRLF", "decimal commas", "tabs", "spaces", "columns swapped", "quoted"],
)
def test_many_dialects_are_read(tmp_path, text):
    path = tmp_path / "m.csv"
    path.write_bytes(text.encode())
    frame = read_matrix(path)
    assert frame.loc["a", "b"] == frame.loc["b", "a"] == 0.5
    assert frame.loc["a", "a"] == 0


def test_a_matrix_of_numbers_alone_has_numbers_for_names(tmp_path):
    path = tmp_path / "m.csv"
    np.savetxt(path, matrix_of(5), delimiter=",")
    frame = read_matrix(path)
    assert list(frame.columns) == ["0", "1", "2", "3", "4"]
    np.testing.assert_array_equal(frame.to_numpy(), matrix_of(5))


def test_parquet_with_names_in_the_index(tmp_path):
    frame = pd.DataFrame(matrix_of(3), index=list("abc"), columns=list("abc"))
    frame.to_parquet(tmp_path / "m.parquet")
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.parquet").to_numpy(), matrix_of(3))


def test_leading_zeros_of_names_are_kept_in_every_column(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("d,source,target\n1,01,02\n2,02,03\n4,01,NA\n")
    frame = read_edges(path)
    assert list(frame.columns) == ["01", "02", "03", "NA"]
    assert frame.loc["01", "NA"] == 4
    assert np.isnan(frame.loc["02", "NA"])


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_matrix, "", "empty"),
        (read_matrix, "node,a,b\n", "empty"),
        (read_matrix, "node,a,b\na,0,1\n", "1 rows and 2 columns"),
        (read_matrix, "node,a,b\na,0,1\nc,1,0\n", r"not the same nodes: \['b', 'c'\]"),
        (read_matrix, "node,a,a\na,0,1\na,1,0\n", "appear more than once"),
        (read_matrix, "node,a,b\na,0,x\nb,1,0\n", r"row 2, column 'b': 'x', no number"),
        (read_matrix, 'node,a,b\na,0,"1,5"\nb,1,0\n', "Separate with semicolons"),
        (read_matrix, "node,a,b\na,0,1,7\nb,1,0,8\n", r"line 2 .* has 4 fields, the first has 3"),
        (read_matrix, "0,1,2\n1,0,3\n", "1 rows and 2 columns after the first"),
        (read_edges, "from,to,d\na,b,1\n", r"no column \['source', 'target'\]"),
        (read_edges, "source,target,d,w\na,b,1,2\n", "which of .* Say value="),
        (read_edges, "source,target,d\na,b,1\nb,a,2\n", "row 3: the pair 'b', 'a' is listed twice"),
        (read_edges, "source,target,d\na,a,1\n", "row 2: 'a' is joined to itself"),
        (read_edges, "source,target,d\na,,1\n", "row 2: an end of the edge has no name"),
        (read_edges, "source,target,d\na,b,far\n", "row 2, column 'd': 'far', no number"),
    ],
)
def test_bad_files_are_refused_with_row_and_column(tmp_path, reader, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        reader(path)
    assert str(path) in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_matrix(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        read_matrix(tmp_path)
    (tmp_path / "latin.csv").write_bytes("node,é\n".encode("latin-1"))
    with pytest.raises(ValueError, match="not UTF-8"):
        read_matrix(tmp_path / "latin.csv")
    (tmp_path / "m.xlsx").write_bytes(b"x")
    with pytest.raises(ValueError, match="a table is"):
        read_matrix(tmp_path / "m.xlsx")
    np.savez(tmp_path / "other.npz", x=np.ones(2))
    with pytest.raises(ValueError, match="not a data set of ours"):
        load_dataset(tmp_path / "other.npz")


def test_writers_check_what_they_write(tmp_path):
    with pytest.raises(ValueError, match="has 7 entries"):
        write_edges(tmp_path / "e.csv", np.ones(7))
    with pytest.raises(ValueError, match="not symmetric"):
        write_edges(tmp_path / "e.csv", np.triu(np.ones((3, 3)), 1))
    with pytest.raises(ValueError, match="name of another column"):
        write_edges(tmp_path / "e.csv", np.ones(3), value="source")
    with pytest.raises(ValueError, match="must be square"):
        write_matrix(tmp_path / "m.csv", np.ones((3, 2)))
    with pytest.raises(ValueError, match="can be written as"):
        write_matrix(tmp_path / "m.json", matrix_of(3))
    assert list(tmp_path.iterdir()) == []


def test_decimal_commas_in_the_first_column_are_no_names(tmp_path):
    path = tmp_path / "signals.csv"
    path.write_text("ada;bob\n0,5;1\n1,5;2,25\n")
    assert read_signals(path).to_numpy().tolist() == [[0.5, 1], [1.5, 2.25]]


def test_utf_16_is_read(tmp_path):
    path = tmp_path / "signals.csv"
    path.write_bytes("ada\tb\u00f3b\n1\t2\n".encode("utf-16"))
    assert read_signals(path).columns.tolist() == ["ada", "b\u00f3b"]
