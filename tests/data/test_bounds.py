"""What is read from files is bounded, whatever they state, and fast up to the bounds."""

import json
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from edgebelief.bounds import MAX_BYTES, MAX_CELLS, check_file
from edgebelief.data import (
    GraphDataset,
    load_dataset,
    pair_covariates,
    read_covariates,
    read_edges,
    read_signals,
    read_table,
    save_dataset,
)
from edgebelief.data.npz import open_npz
from edgebelief.errors import InputError, NoRoom
from edgebelief.estimators import GraphLearner

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# Each reader on its file: what it says, the seconds of processor time, the peak of memory so far.
READ = """
import json, resource, sys, time
from pathlib import Path
import pyarrow.parquet
from edgebelief.cli.graphml import read_graphml
from edgebelief.data import load_dataset, read_signals, read_table

def peak():  # of this program alone, unlike ru_maxrss
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024

start = peak()
for path, reader in json.loads(sys.argv[1]):
    began = time.process_time()
    try:
        said = f"read: {getattr(globals()[reader](Path(path)), 'shape', '')}"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps([said, time.process_time() - began, peak() - start]))
"""


def npy(shape: tuple[int, ...]) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def npz_bomb(path: Path, member: str, states: int | None = None) -> None:
    """Write a sound data set with 0.4 GB of zeros in a member; what it states may be less."""
    save_dataset(path.with_suffix(".sound.npz"), GraphDataset([np.ones(3)], [[1, 0, 1]]))
    n = 3 * 2**24
    with (
        zipfile.ZipFile(path.with_suffix(".sound.npz")) as sound,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for name in sound.namelist():
            if name != f"{member}.npy":
                archive.writestr(name, sound.read(name))
        with archive.open(f"{member}.npy", "w") as file:
            file.write(npy((n if states is None else states,)))
            for _ in range(n // 2**20):
                file.write(bytes(2**23))
    if states is not None:  # the list of members says the same
        real, stated = (len(npy((1,))) + 8 * k for k in (n, states))
        content = path.read_bytes()
        patched = content.replace(real.to_bytes(4, "little"), stated.to_bytes(4, "little"))
        assert patched != content
        path.write_bytes(patched)


def parquet_bomb(path: Path) -> None:
    """Write 30 million equal cells, 240 MB, as runs."""
    column = pa.array(np.zeros(10**6))
    table = pa.table({f"c{i}": column for i in range(3)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(10):
            writer.write_table(table)


def varint(value: int, length: int = 0) -> bytes:
    """Return a whole number as Thrift writes it, with zeros up to a length."""
    digits, value = [], 2 * value
    while value or len(digits) < max(length, 1):
        digits.append(value & 127)
        value >>= 7
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])


def lying_parquet(path: Path) -> None:
    """Write a page of 268 MB; what stands at the end of the file states a few bytes."""
    text = pa.array(["x" * (MAX_BYTES + 1)])
    pq.write_table(pa.table({"a": text}), path, compression="zstd", use_dictionary=False,
                   write_statistics=False)  # fmt: skip
    real = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:].replace(varint(real), varint(100, len(varint(real))))
    assert footer != content[start:]
    path.write_bytes(content[:start] + footer)
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size == 100


def write_all(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the attacks; returns the reader of each and what it must say."""
    npz_bomb(folder / "e.npz", "e")
    npz_bomb(folder / "unused.npz", "unused")
    npz_bomb(folder / "lying.npz", "e", states=3)
    parquet_bomb(folder / "runs.parquet")
    lying_parquet(folder / "lying.parquet")
    long = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 500_000])
    pq.write_table(pa.table({"a": long}), folder / "texts.parquet", store_schema=False)
    pq.write_table(pa.table({"a": [[0.0] * 10**6]}), folder / "lists.parquet")
    (folder / "cells.csv").write_bytes(b"a,b\n" + b"," * (MAX_CELLS + 1) + b"\n")
    with (folder / "bytes.csv").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    lines = [",".join(f"g{i}" for i in range(100_000)), *[",".join(["1.5"] * 100_000)] * 3]
    (folder / "wide.csv").write_text("\n".join(lines))
    entities = [f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(11)]
    (folder / "laughs.graphml").write_text(
        f'<!DOCTYPE g [<!ENTITY a0 "ha">{"".join(entities)}]><graphml>&a11;</graphml>'
    )
    (folder / "tags.graphml").write_text(f"<graphml>{'<key/>' * 2**20}</graphml>")
    return {
        "e.npz": ("load_dataset", "sizes it states"),
        "unused.npz": ("load_dataset", "read: "),
        "lying.npz": ("load_dataset", "damaged"),
        "runs.parquet": ("read_table", "30,000,000 cells; at most 16,777,216"),
        "lying.parquet": ("read_table", "unpacks to at least 268,435,"),
        "texts.parquet": ("read_table", "read: (100000, 1)"),
        "lists.parquet": ("read_table", "lists"),
        "cells.csv": ("read_table", "16,777,220 cells; at most 16,777,216"),
        "bytes.csv": ("read_table", "268,435,457 bytes; at most 268,435,456"),
        "wide.csv": ("read_signals", "read: (3, 100000)"),
        "laughs.graphml": ("read_graphml", "DOCTYPE"),
        "tags.graphml": ("read_graphml", "more than 1,048,576 tags"),
    }


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_bombs_take_little_time_and_memory(tmp_path):
    attacks = write_all(tmp_path)
    todo = json.dumps([(str(tmp_path / name), reader) for name, (reader, _) in attacks.items()])
    ran = subprocess.run([sys.executable, "-c", READ, todo], capture_output=True, text=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(attacks), ran.stderr
    for (name, (_, words)), (said, seconds, megabytes) in zip(
        attacks.items(), answers, strict=True
    ):
        assert words in said, (name, said)
        assert seconds < 2, (name, seconds)
        assert megabytes < 300, (name, megabytes)


def test_texts_of_parquet_are_what_was_written(tmp_path):
    texts = ["b", None, "a", "b", ""]
    numbers = [1.5, None, 0.1, 3, 1e-300]
    pq.write_table(pa.table({"t": texts, "x": numbers}), tmp_path / "t.parquet", row_group_size=2)
    table = read_table(tmp_path / "t.parquet")
    assert table["t"].tolist() == texts
    np.testing.assert_array_equal(table["x"], np.array(numbers, float))


def test_an_index_in_parquet_comes_first_as_pandas_has_it(tmp_path):
    for index in (["p", "q"], pd.Index(["p", "q"], name="day"), pd.date_range("2020", periods=2)):
        frame = pd.DataFrame({"ada": [1.0, 2.0], "bob": [3.0, 4.0]}, index)
        frame.to_parquet(tmp_path / "t.parquet")
        table = read_table(tmp_path / "t.parquet")
        assert list(table.columns) == list(frame.reset_index().columns)
        assert [str(x) for x in table.iloc[:, 0]] == [str(x) for x in frame.index]


@pytest.mark.parametrize(
    "metadata", [b'{"index_columns": 5, "columns": [3]}', b"{", b"[" * 10**5, b"\xff", b"[1]"]
)
def test_damaged_metadata_of_pandas_does_not_matter(tmp_path, metadata):
    table = pa.table({"ada": [1.0, 2.0], "bob": [3.0, 4.0]})
    pq.write_table(table.replace_schema_metadata({b"pandas": metadata}), tmp_path / "t.parquet")
    signals = read_signals(tmp_path / "t.parquet")
    np.testing.assert_array_equal(signals, [[1, 3], [2, 4]])


def test_texts_that_repeat_each_other_are_not_read(tmp_path):
    table = pa.table({"a": ["x" * 1000 + str(i) for i in range(50)]})
    encoding = {"a": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False, column_encoding=encoding)
    with pytest.raises(InputError, match="DELTA_BYTE_ARRAY, which is not read"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_parquet_is_read_or_refused(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": list("xyzxy"), "b": np.arange(5.0)}).to_parquet(path)
    content = path.read_bytes()
    for _ in range(30):
        changed = bytearray(content)
        for place in rng.integers(0, len(changed), 3):
            changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with suppress(InputError, MemoryError):
            read_table(path)


def test_npz_arrays_are_those_that_were_saved(tmp_path):
    arrays = {
        "x": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "none": np.zeros((0, 3)),
        "one": np.array(3),
        "texts": np.array(["é", "long"]),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    with open_npz(tmp_path / "a.npz") as file:
        for name, array in arrays.items():
            found = file.array(name)
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found, array)


def test_python_objects_and_other_zip_archives_are_refused(tmp_path):
    np.savez(tmp_path / "o.npz", x=np.array([{}], object))
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        archive.writestr("notes.txt", "x")
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for k in range(2000):
            archive.writestr(f"{k}.npy", npy((0,)))
    for name in ("o.npz", "z.npz", "many.npz"):
        with pytest.raises(InputError, match="not an npz file, or damaged"):
            load_dataset(tmp_path / name)


def test_numbers_are_read_whole_or_by_column_with_one_answer(tmp_path):
    """A gap sends its column, and no other, on the slower way; neither loses a digit."""
    x = np.random.default_rng(0).normal(size=(50, 4)) * 10.0 ** np.arange(-150, 50).reshape(50, 4)
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(read_signals(tmp_path / "t.csv"), x)
    frame.iloc[7, 2] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(read_signals(tmp_path / "t.csv"), frame)


@pytest.mark.parametrize("cell", ["1_000", "\u0663", "1e", "0x1F", "1+2j", "-nan", "True"])
def test_cells_that_are_no_numbers(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n,4\n5,{cell}\n")
    with pytest.raises(InputError, match="row 4, column 'b': '"):
        read_signals(tmp_path / "t.csv")


def test_thousands_of_covariates_are_read_at_once_and_refused_with_their_number(tmp_path):
    columns = {f"c{i}": np.arange(4) / 10 for i in range(5000)}
    columns["c7"] = list("xyxy")
    pd.DataFrame({"node": list("abcd"), **columns}).to_csv(tmp_path / "c.csv", index=False)
    table = read_covariates(tmp_path / "c.csv")
    assert list(table.columns) == list(columns)
    assert table["c7"].tolist() == columns["c7"]
    np.testing.assert_array_equal(table["c4999"], columns["c4999"])
    with pytest.raises(InputError, match="5,000; a fit takes at most 100"):
        pair_covariates(table, list("abcd"))


def test_an_edge_list_of_too_many_nodes(tmp_path):
    nodes = [f"n{i}" for i in range(4097)]
    edges = pd.DataFrame({"source": nodes[:-1], "target": nodes[1:]})
    edges.to_csv(tmp_path / "e.csv", index=False)
    with pytest.raises(InputError, match="4,097 nodes has 16,785,409 cells; at most 16,777,216"):
        read_edges(tmp_path / "e.csv")


def test_signals_of_too_many_nodes_are_refused_before_their_distances(monkeypatch):
    monkeypatch.setattr("edgebelief.room.available_memory", lambda: 1e6)
    x = np.random.default_rng(0).normal(size=(5, 100))
    with pytest.raises(NoRoom, match=r"100 nodes \(4,950 pairs\) need about 0.0 GB"):
        GraphLearner(metric="correlation").fit(x, nx.path_graph(100))


def test_links_that_lead_to_themselves(tmp_path):
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(InputError, match="link that leads to itself; give the file itself"):
        check_file(tmp_path / "loop.csv")
