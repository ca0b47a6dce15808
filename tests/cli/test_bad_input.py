"""What comes in wrong: exit 3, one line that names the file and the remedy, and nothing written."""

import json
import os
import pickle
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from edgebelief.cli.graphml import read_graphml
from edgebelief.cli.inputs import read_nodes

from .tables import NAMES, PATH, square, table

SIGNALS = np.random.default_rng(1).normal(size=(12, 4)).round(3)
DISTANCES = np.abs(SIGNALS[:4] + SIGNALS[:4].T) * (1 - np.eye(4))


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refused(edgebelief, arguments, *words: str, code: int = 3) -> str:
    """Runs it here; returns the line."""
    before = listing(Path())
    ran = edgebelief(*arguments)
    assert ran.code == code, ran
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]
    assert listing(Path()) == before
    return lines[0]


def with_cell(row: int, column: int, cell: str) -> str:
    rows = [[str(x) for x in row] for row in SIGNALS]
    rows[row][column] = cell
    return table(rows)


def changed(matrix, i: int, j: int, value: float, *, both: bool = False) -> np.ndarray:
    matrix = np.array(matrix, float)
    matrix[i, j] = value
    matrix[j, i] = value if both else matrix[j, i]
    return matrix


BAD_SIGNALS = {
    "a gap": (with_cell(3, 1, ""), "row 5, column 'bob'", "--missing pairwise"),
    "NaN": (with_cell(3, 1, "NaN"), "row 5, column 'bob'", "--missing pairwise"),
    "inf": (with_cell(3, 1, "inf"), "row 5, column 'bob': inf", "empty the cell"),
    "text": (with_cell(3, 1, "x"), "row 5, column 'bob': 'x'", "Correct it"),
    "ragged": (table(SIGNALS) + "1,2\n", "line 14", "2 fields", "must have as many"),
    "two names": (table(SIGNALS, ["ada", "ada", "cy", "dee"]), "['ada']", "Rename"),
    "no name": (table(SIGNALS, ["ada", "", "cy", "dee"]), "node 2", "name every node"),
    "empty": ("", "empty", "a header"),
    "blank": ("\n \n", "empty", "a header"),
    "header alone": ("a,b,c\n", "empty", "rows"),
    "one column": ("a\n1\n2\n", "'a'", "at least two"),
    "one row": (table(SIGNALS[:1]), "at least two rows", "--preprocess none"),
    "decimal commas": (table(SIGNALS).replace(".", ","), "line 2", "semicolons"),
    "no UTF-8": (b"a,b\n\xff\xfe,1\n", "UTF-8", "save it as UTF-8"),
    "Latin-1": (table(SIGNALS, ["b\xf3b", *NAMES[1:]]).encode("latin-1"), "save it as UTF-8"),
    "an open quote": ('"ada,bob\n1,2\n' + "3,4\n" * 40_000, "line", "quote"),
    "distances": (square(DISTANCES), "names on both sides", "--metric precomputed"),
    "on its side": (
        square(SIGNALS[:4, :3], ["t0", "t1", "t2"], NAMES),
        "['t0', 't1', 't2']",
        "--transpose",
    ),
    "on its side, no names": (
        table(SIGNALS.T[1:], [str(x) for x in SIGNALS.T[0]]),
        "same nodes",
        "--transpose",
    ),
}


@pytest.mark.parametrize("kind", BAD_SIGNALS)
def test_signals(edgebelief, small, kind):
    content, *words = BAD_SIGNALS[kind]
    path = Path("bad.csv")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments = ["fit", path, "-l", "labels.csv", "--metric", "sqeuclidean", "--out", "m.eb"]
    if "on its side" not in kind:  # there it is the labels that tell
        words.append("bad.csv")
        refused(edgebelief, ["learn", path, "--out", "o.csv"], *words)
    if kind == "on its side, no names":  # and a warning that numbers were taken for data
        ran = edgebelief(*arguments)
        assert ran.code == 3
        assert "--transpose" in ran.err.splitlines()[-1]
    else:
        refused(edgebelief, arguments, *words)


BAD_DISTANCES = {
    "NaN": (changed(DISTANCES, 0, 1, np.nan), "['ada', 'bob'] is nan", "fill the gap", "--nodes"),
    "inf": (changed(DISTANCES, 0, 1, np.inf, both=True), "['ada', 'bob'] is inf", "--nodes"),
    "asymmetric": (changed(DISTANCES, 0, 1, 9), "['ada', 'bob'] is 9", "average"),
    "similarities": (DISTANCES + np.eye(4), "['ada', 'ada'] is 1", "distances first"),
    "not square": (DISTANCES[:3], "3 rows and 4 columns", "--metric correlation"),
}


@pytest.mark.parametrize("kind", BAD_DISTANCES)
def test_distances(edgebelief, small, kind):
    matrix, *words = BAD_DISTANCES[kind]
    Path("bad.csv").write_text(square(matrix))
    refused(edgebelief, ["fit", "bad.csv", "-l", "labels.csv", "--out", "m.eb"], "bad.csv", *words)


def test_signals_where_distances_are_expected(edgebelief, small):
    arguments = ["fit", "signals.csv", "-l", "labels.csv", "--out", "m.eb"]
    refused(edgebelief, arguments, "signals.csv", "--metric correlation, sqeuclidean or")


def test_names_of_rows_and_columns_that_differ(edgebelief, small):
    Path("bad.csv").write_text(square(DISTANCES, NAMES, ["ada", "bob", "cy", "eve"]))
    arguments = ["fit", "bad.csv", "-l", "labels.csv", "--out", "m.eb"]
    refused(edgebelief, arguments, "bad.csv", "['dee', 'eve']")


def test_constant_series_under_correlation(edgebelief, small):
    Path("bad.csv").write_text(table(np.c_[SIGNALS[:, :3], np.ones(12)]))
    arguments = ["learn", "bad.csv", "--metric", "correlation", "--out", "o.csv"]
    refused(edgebelief, arguments, "bad.csv", "node 'dee' is constant", "--metric sqeuclidean")


def test_logarithm_of_what_has_none(edgebelief, small):
    arguments = ["learn", "signals.csv", "--preprocess", "log-returns", "--out", "o.csv"]
    row = int(np.argwhere(SIGNALS <= 0)[0, 0]) + 2
    refused(edgebelief, arguments, "signals.csv", f"row {row}, column '", "has no logarithm")


BAD_LABELS = {
    "-1 and 1": (square(2 * PATH - 1), "['ada', 'cy'] is -1", "map -1 to 0"),
    "weighted": (square(0.7 * PATH), "['ada', 'bob'] is 0.7", "threshold"),
    "asymmetric": (square(np.triu(PATH)), "['ada', 'bob'] is 1", "average"),
    "fewer nodes": (square(PATH[:3, :3], NAMES[:3]), "['dee']", "It has ['ada',", "--nodes"),
    "all unknown": (square(np.full((4, 4), "")), "every label is empty", "`edgebelief learn`"),
    "more nodes": (square(np.zeros((5, 5), int), [*NAMES, "eve"]), "['eve']", "the same nodes"),
    "other nodes": (square(PATH, ["w", "x", "y", "z"]), "the same nodes"),
    "a pair twice": ("source,target\nada,bob\nbob,ada\n", "row 3", "twice", "Keep one"),
    "a loop": ("source,target\nada,ada\n", "row 2", "joined to itself"),
    "a stranger": ("source,target\nada,zed\n", "['zed']", "the same nodes"),
    "weighted edges": ("source,target,w\nada,bob,2.5\n", "['ada', 'bob'] is 2.5", "threshold"),
    "which column": ("source,target,w,v\nada,bob,1,2\n", "['w', 'v']", "Keep one"),
    "missing columns": ("from,to\nada,bob\n", "edge list (source, target)"),
    "empty": ("", "empty"),
}


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_labels(edgebelief, small, kind):
    text, *words = BAD_LABELS[kind]
    Path("bad.csv").write_text(text)
    arguments = ["fit", "distances.csv", "-l", "bad.csv", "--out", "m.eb"]
    refused(edgebelief, arguments, "bad.csv", *words)


def test_labels_that_are_missing(edgebelief, small):
    arguments = ["fit", "distances.csv", "--out", "m.eb"]
    refused(edgebelief, arguments, "distances.csv", "--labels or --groups")
    several = ["fit", "distances.csv", "distances.csv", "-l", "labels.csv", "--out", "m.eb"]
    refused(edgebelief, several, "labels.csv", "1 label file for 2 graphs", "one for each")


def test_graphml(edgebelief, small):
    arguments = ["fit", "distances.csv", "-l", "bad.graphml", "--out", "m.eb"]
    nx.write_graphml(nx.path_graph(NAMES, nx.DiGraph), "bad.graphml")
    refused(edgebelief, arguments, "bad.graphml", "directed", "undirected")
    Path("bad.graphml").write_text("<graphml>")
    refused(edgebelief, arguments, "bad.graphml", "not GraphML")
    nx.write_graphml(nx.path_graph(4), "bad.graphml")  # numbers for names
    refused(edgebelief, arguments, "bad.graphml", "the same nodes")


def graphml(inside: str, before: str = "") -> str:
    return (
        f'<?xml version="1.0"?>{before}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'<graph edgedefault="undirected">{inside}</graph></graphml>'
    )


NODES = "".join(f'<node id="{name}"/>' for name in NAMES)
EDGE = '<edge source="ada" target="bob"/>'
BAD_GRAPHML = {
    "a stranger": (graphml(NODES + '<edge source="ada" target="zed"/>'), "['zed']", "Add the node"),
    "no end": (graphml(NODES + '<edge source="ada"/>'), "['']", "Add the node"),
    "a node twice": (graphml(NODES + '<node id="ada"/>'), "two nodes", "'ada'", "Remove one"),
    "a loop": (graphml(NODES + '<edge source="ada" target="ada"/>'), "'ada' to itself"),
    "a pair twice": (graphml(NODES + EDGE + EDGE), "twice", "Keep one"),
    "entities": (graphml(NODES, '<!DOCTYPE g [<!ENTITY x "y">]>'), "DOCTYPE", "Remove it"),
    "two graphs": (graphml(NODES + '</graph><graph edgedefault="undirected">'), "more than one"),
    "nested": (graphml("<data>" * 40 + "</data>" * 40), "nested deeper than 32"),
    "one directed edge": (graphml(NODES + EDGE.replace("/>", ' directed="true"/>')), "directed"),
    "no XML": ("source,target", "not GraphML"),
}


@pytest.mark.parametrize("kind", BAD_GRAPHML)
def test_graphml_that_is_no_sound_graph(edgebelief, small, kind):
    text, *words = BAD_GRAPHML[kind]
    Path("bad.graphml").write_text(text)
    arguments = ["fit", "distances.csv", "-l", "bad.graphml", "--out", "m.eb"]
    refused(edgebelief, arguments, "bad.graphml", *words)


def test_graphml_whose_edges_come_before_their_nodes_is_read(small):
    Path("good.graphml").write_text(graphml(EDGE + NODES))
    assert read_graphml(Path("good.graphml")).to_numpy().sum() == 2


@pytest.mark.parametrize(
    "text", ["[" * 10**5, "[" * 40 + "]" * 40, '{"a":' * 900 + "1" + "}" * 900]
)
def test_deep_json(edgebelief, small, text):
    Path("deep.json").write_text(text)
    words = "deep.json", "nested deeper than 32 levels"
    refused(edgebelief, ["learn", "signals.csv", "--out", "o.csv", "--nodes", "deep.json"], *words)
    prior = ["--prior", "deep.json", "-l", "labels.csv", "--out", "m.eb"]
    refused(edgebelief, ["fit", "distances.csv", *prior], *words)
    refused(edgebelief, ["info", "deep.json"], *words)


def test_brackets_in_texts_are_not_depth(small):
    Path("names.json").write_text(json.dumps(["[" * 50, '\\"' + "{" * 50]))
    assert read_nodes("names.json") == ["[" * 50, '\\"' + "{" * 50]


def test_links_that_lead_to_themselves(edgebelief, small):
    for suffix in (".csv", ".npz", ".json", ".graphml", ".parquet", ".eb"):
        Path(f"loop{suffix}").symlink_to(f"loop{suffix}")
    learn = ["learn", "signals.csv", "--out"]
    words = "link that leads to itself", "give another name"
    refused(edgebelief, [*learn, "loop.csv"], "loop.csv", *words)
    refused(edgebelief, [*learn, "loop.csv", "--force"], "loop.csv", *words)
    words = "link that leads to itself", "give the file itself"
    for name in ("loop.csv", "loop.parquet"):
        refused(edgebelief, ["learn", name, "--out", "o.csv"], name, *words)
    refused(edgebelief, ["fit", "loop.npz", "--out", "m.eb"], "loop.npz", *words)
    fit = ["fit", "distances.csv", "--out", "m.eb"]
    refused(edgebelief, [*fit, "-l", "loop.graphml"], "loop.graphml", *words)
    refused(edgebelief, [*fit, "-l", "labels.csv", "--prior", "loop.json"], "loop.json", *words)
    refused(edgebelief, ["info", "loop.json"], "loop.json", *words)
    predict = ["predict", "loop.eb", "distances.csv", "--out", "o.csv"]
    refused(edgebelief, predict, "loop.eb", *words)


LONG = {
    "cell": (
        with_cell(3, 1, "x" * 5000),
        "row 5, column 'bob'",
        "(5,000 characters)",
        "Correct it",
    ),
    "cell of words": (with_cell(3, 1, "x y " * 2000), "row 5, column 'bob'", "characters)"),
    "cell of controls": (with_cell(3, 1, "\x1b" * 5000), "row 5, column 'bob'", "characters)"),
    "number": (with_cell(3, 1, "9" * 9000), "row 5, column 'bob'"),
    "name": (with_cell(3, 1, "").replace("bob", "b" * 10**5), "(100,000 characters)", "missing"),
    "two names": (table(SIGNALS, ["a" * 10**5] * 2 + ["cy", "dee"]), "(100,0", "Rename"),
    "columns": (",".join(f"name{i}" for i in range(10**4)) + "\n1,2\n", "line 2", "fields"),
}


@pytest.mark.parametrize("kind", LONG)
def test_lines_stay_short(edgebelief, small, kind):
    text, *words = LONG[kind]
    Path("bad.csv").write_text(text)
    line = refused(edgebelief, ["learn", "bad.csv", "--out", "o.csv"], "bad.csv", *words)
    assert len(line) <= 500
    ran = edgebelief("learn", "bad.csv", "--out", "o.csv", "--json")
    assert f"error: {ran.json()['error']}\n" == ran.err or "controls" in kind


def test_long_paths_and_options_stay_short(edgebelief, small):
    name = "x" * 50_000
    for arguments in (
        ["info", f"{name}.csv"],
        ["info", "/".join(["x" * 200] * 30)],
        ["learn", "signals.csv", "--out", f"{name}.csv"],
        ["learn", "signals.csv", "--metric", name, "--out", "o.csv"],
        ["learn", "signals.csv", "--nodes", name, "--out", "o.csv"],
    ):
        ran = edgebelief(*arguments)
        assert ran.code in (2, 3)
        assert "characters)" in ran.err
        assert max(map(len, ran.err.splitlines())) <= 500


BAD_GROUPS = {
    "a node twice": ("node,g\nada,1\nbob,1\ncy,2\ndee,2\ndee,1\n", "row 6: 'dee'", "once"),
    "no pair known": ("node,g\nada,1\nbob,2\ncy,\n", "no pair is known"),
    "one column": ("node\nada\n", "two columns"),
    "an adjacency": (square(PATH), "its columns are nodes", "--labels"),
    "nodes elsewhere": ("id,node\n1,ada\n2,bob\n3,cy\n4,dee\n", "its first column has ['1', "),
}


@pytest.mark.parametrize("kind", BAD_GROUPS)
def test_groups(edgebelief, small, kind):
    text, *words = BAD_GROUPS[kind]
    Path("bad.csv").write_text(text)
    arguments = ["fit", "distances.csv", "--groups", "bad.csv", "--out", "m.eb"]
    refused(edgebelief, arguments, "bad.csv", *words)


BAD_NODES = {
    "bad.txt": ("ada\nada\n", "['ada']", "once"),
    "few.txt": ("ada\n", "1 node", "at least two"),
    "odd.json": ("{", "not JSON"),
    "number.json": ("3", "list"),
    "keys.json": ('{"train": ["ada", "bob"]}', "keys.json:KEY", "['train']"),
}


@pytest.mark.parametrize("name", BAD_NODES)
def test_nodes(edgebelief, small, name):
    text, *words = BAD_NODES[name]
    Path(name).write_text(text)
    arguments = ["learn", "signals.csv", "--out", "o.csv", "--nodes"]
    refused(edgebelief, [*arguments, name], name, *words)
    refused(edgebelief, [*arguments, "nowhere.txt"], "nowhere.txt", "no such file")
    Path("other.txt").write_text("ada\nzed\n")
    refused(edgebelief, [*arguments, "other.txt"], "signals.csv", "['zed']", "--nodes")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"ada": [1, 2], "bob": ["x", "y"]}, ("row 2, column 'bob'", "Correct it")),
        ({"ada": [1, 2], "bob": pd.to_datetime(["2020", "2021"])}, ("row 2, column 'bob'",)),
        ({"ada": [1.0, 2.0], "bob": [1.0, None]}, ("row 3, column 'bob'", "--missing")),
    ],
)
def test_parquet_of_mixed_columns(edgebelief, small, columns, words):
    pd.DataFrame(columns).to_parquet("bad.parquet")
    refused(edgebelief, ["learn", "bad.parquet", "--out", "o.csv"], "bad.parquet", *words)


def test_parquet_is_an_extra(edgebelief, small, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Path("x.parquet").write_bytes(b"PAR1")
    for arguments in (["x.parquet", "--out", "o.csv"], ["signals.csv", "--out", "o.parquet"]):
        refused(edgebelief, ["learn", *arguments], ".parquet", "pip install 'edgebelief[data]'")


def test_files_of_another_kind(edgebelief, small):
    for name in ("bad.parquet", "bad.xlsx", "bad.npz", "folder.csv", "none.csv"):
        if "folder" in name:
            Path(name).mkdir()
        elif "none" not in name:
            Path(name).write_text("hello")
        refused(edgebelief, ["elicit", name, "--density", "0.1", "0.5"], name)


class Bomb:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("exploded",))


@pytest.mark.parametrize("name", ["foreign", "objects", "sizes", "nan", "no graphs", "words"])
def test_npz_of_others(edgebelief, small, name):
    ours = {
        "n_nodes": np.array([3]),
        "e": np.ones(3),
        "a": np.ones(3),
        "names": np.array(["x"] * 3),
    }
    others = {
        "foreign": {"x": np.ones(3)},
        "objects": {**ours, "e": np.array([Bomb()] * 3, object)},
        "sizes": {**ours, "e": np.ones(7)},
        "nan": {**ours, "e": np.array([1, np.nan, 1]), "names": np.array(["a", "b", "c"])},
        "no graphs": {k: v[:0] for k, v in ours.items()},
        "words": {**ours, "n_nodes": np.array(["three"])},
    }
    np.savez("bad.npz", **others[name])
    refused(edgebelief, ["fit", "bad.npz", "--out", "m.eb"], "bad.npz")
    refused(edgebelief, ["info", "bad.npz"], "bad.npz")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("kind", ["pickle", "empty", "text", "npz", "newer", "cut", "folder"])
def test_models(edgebelief, walk, small, kind):
    model = (walk / "model.eb").read_bytes()
    contents = {
        "pickle": (pickle.dumps(Bomb()), "pickle"),
        "empty": (b"", "empty", "again"),
        "text": (b"theta = 3\n", "text"),
        "npz": ((walk / "data.npz").read_bytes(), ".npz"),
        "newer": (model.replace(b'"version":"2"', b'"version":"9"'), "newer", "upgrade"),
        "cut": (model[:-8], "damaged", "again"),
        "folder": (None, "folder"),
    }
    content, *words = contents[kind]
    if content is None:
        Path("bad.eb").mkdir()
    else:
        Path("bad.eb").write_bytes(content)
    for command in (["predict", "--out", "o.csv"], ["score"], ["report", "--out", "o.html"]):
        arguments = [command[0], "bad.eb", walk / "data.npz", *command[1:]]
        refused(edgebelief, arguments, "bad.eb", *words)
    refused(edgebelief, ["info", "bad.eb"], "bad.eb", *words)
    assert not Path("exploded").exists()


def test_a_model_and_data_that_do_not_go_together(edgebelief, walk, small):
    by_distances = ["predict", walk / "model.eb", "signals.csv", "--out", "o.csv"]
    refused(edgebelief, by_distances, "signals.csv", "fitted to distances")
    by_signals = ["predict", walk / "signals.eb", "distances.csv", "--out", "o.csv"]
    refused(edgebelief, by_signals, "distances.csv", "fitted to signals")
    refused(edgebelief, ["score", walk / "signals.eb", "signals.csv"], "signals.csv", "--labels")


BAD_PRIORS = {
    "not JSON": ("theta", "not JSON"),
    "a list": ("[1]", "not a prior"),
    "no marginals": ('{"theta": 1}', "not a prior"),
    "unknown kind": ('{"theta": {"kind": "cauchy"}}', "cauchy"),
    "below zero": ('{"theta": {"kind": "lognormal", "median": -1, "log_sd": 1}}', "positive"),
}


@pytest.mark.parametrize("kind", BAD_PRIORS)
def test_priors(edgebelief, small, kind):
    text, *words = BAD_PRIORS[kind]
    Path("bad.json").write_text(text)
    arguments = ["fit", "distances.csv", "-l", "labels.csv", "--out", "m.eb", "--prior"]
    refused(edgebelief, [*arguments, "bad.json"], "bad.json", *words, "edgebelief elicit")
    refused(edgebelief, [*arguments, "none.json"], "none.json", "edgebelief elicit")


def test_outputs(edgebelief, small):
    Path("there.csv").write_text("precious")
    Path("folder.csv").mkdir()
    learn = ["learn", "signals.csv", "--out"]
    refused(edgebelief, [*learn, "there.csv"], "there.csv", "--force")
    refused(edgebelief, [*learn, "folder.csv"], "folder.csv", "is a folder")
    refused(edgebelief, [*learn, "no/o.csv"], "no/o.csv", "make it first")
    refused(edgebelief, [*learn, "o.xlsx"], "o.xlsx", ".csv, .parquet, .graphml or .npz")
    refused(edgebelief, [*learn, "./signals.csv", "--force"], "another file")
    fit = ["fit", "distances.csv", "-l", "labels.csv", "--force", "--out"]
    refused(edgebelief, [*fit, "m.pkl"], "m.pkl", ".eb")
    refused(edgebelief, ["simulate", "--out", "there.csv"], "there.csv", "--force")
    twice = ["simulate", "--out", "o.csv", "--labels", "./o.csv"]
    refused(edgebelief, twice, "o.csv", "give two", code=2)
    refused(edgebelief, ["demo", "there.csv"], "there.csv", "folder")


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="nothing is read-only for root")
def test_read_only_folder(edgebelief, small):
    Path("shut").mkdir(mode=0o500)
    refused(edgebelief, ["learn", "signals.csv", "--out", "shut/o.csv"], "shut/o.csv")


def test_names_that_graphml_cannot_hold(edgebelief, small):
    Path("bad.csv").write_text(table(SIGNALS, ["\x01", *NAMES[1:]]))
    refused(edgebelief, ["learn", "bad.csv", "--out", "o.graphml"], "o.graphml", "use .csv")


def test_what_info_cannot_tell(edgebelief, small):
    Path("prose.txt").write_text("it was a dark\nand stormy night\n")
    line = refused(edgebelief, ["info", "prose.txt"], "prose.txt", "of no known kind")
    assert "edge list" in line
    Path("a.out").write_bytes(b"\x7fELF")
    refused(edgebelief, ["info", "a.out"], "a.out", "of no known kind")
    refused(edgebelief, ["info", "."], "folder")


MISUSED = {
    "no command": ["frobnicate"],
    "no option": ["learn", "signals.csv", "--frobnicate"],
    "no --out": ["learn", "signals.csv"],
    "unknown metric": ["learn", "signals.csv", "--out", "o.csv", "--metric", "cosine"],
    "unknown prior": ["fit", "distances.csv", "-l", "labels.csv", "--out", "o.eb", "--prior", "x"],
    "bad scale": ["fit", "distances.csv", "-l", "labels.csv", "--out", "o.eb", "--scale", "0"],
    "bad density": ["elicit", "distances.csv", "--density", "0.5", "0.1"],
    "two rules": ["learn", "signals.csv", "--out", "o.csv", "--degree", "2", "--theta", "1"],
    "one node": ["simulate", "--out", "o.csv", "--nodes", "1"],
    "both labels": [
        *("fit", "distances.csv", "-l", "labels.csv", "--groups", "labels.csv"),
        *("--out", "o.eb"),
    ],
    "turned distances": [
        "fit",
        "distances.csv",
        "-l",
        "labels.csv",
        "--transpose",
        "--out",
        "o.eb",
    ],
}


@pytest.mark.parametrize("kind", MISUSED)
def test_usage(edgebelief, small, kind):
    refused(edgebelief, MISUSED[kind], code=2)
    ran = edgebelief(*MISUSED[kind], "--json")
    assert ran.code == 2
    assert ran.json()["exit_code"] == 2
    assert f"error: {ran.json()['error']}\n" == ran.err


def test_errors_are_json_too(edgebelief, small):
    ran = edgebelief("info", "none.csv", "--json")
    assert ran.code == 3
    assert ran.json() == {"error": "none.csv: no such file.", "exit_code": 3}
    assert ran.err == "error: none.csv: no such file.\n"


def test_too_large_for_the_machine(edgebelief, small, monkeypatch):
    from edgebelief import room

    monkeypatch.setattr(room, "available_memory", lambda: 2.0**12)
    learn = ["learn", "signals.csv", "--out", "o.csv"]
    refused(edgebelief, learn, "4 nodes", "GB", "--nodes", code=5)
    refused(edgebelief, ["simulate", "--nodes", "9000", "--out", "o.npz"], "20 graphs", code=5)


def test_a_huge_graph_is_refused_before_it_is_made(edgebelief, small):
    arguments = ["simulate", "--nodes", "3000000", "--out", "o.csv"]
    refused(edgebelief, arguments, "3000000 nodes", code=5)


@pytest.mark.parametrize("out", ["o.csv", "o.parquet", "o.npz", "o.graphml"])
def test_disk_full(edgebelief, small, monkeypatch, out):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(edgebelief, ["learn", "signals.csv", "--out", out], "No space left", code=5)


def test_ctrl_c_in_a_call(edgebelief, small, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    refused(edgebelief, ["learn", "signals.csv", "--out", "o.csv"], "interrupted", code=130)


def test_a_bug_has_its_traceback_and_json(edgebelief, small, monkeypatch, capsys):
    from edgebelief.cli import info

    def bug(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(info, "_tell_table", bug)
    with pytest.raises(ZeroDivisionError):
        edgebelief("info", "signals.csv", "--json")
    said = capsys.readouterr()
    assert json.loads(said.out)["exit_code"] == 1
    assert "Please report" in said.err
