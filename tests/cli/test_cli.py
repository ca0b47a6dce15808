"""The commands on good data: the same numbers as the library, in every format."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import edgebelief as eb
from edgebelief.belief import BeliefWarning, elicit_prior
from edgebelief.cli import main
from edgebelief.data import load_dataset, read_signals, read_table
from edgebelief.infer import Prior, fixed, half_normal, loguniform
from edgebelief.networks import DPG

from .tables import NAMES, square, table

AFFINE = ("--readout", "affine")  # the quickest
COMMANDS = ["simulate", "learn", "belief", "elicit", "fit", "predict", "check", "score"]
COMMANDS += ["explain", "report", "demo", "info"]
# A command of its own takes a second to begin: JAX.
PROGRAM = [sys.executable, "-m", "edgebelief"]


def read_any(path: Path) -> pd.DataFrame:
    """A table of edges as `predict` and `learn` write them."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return pd.DataFrame({name: file[name] for name in file})
    return read_table(path)


def by_pair(path: Path, column: str) -> dict[frozenset, float]:
    if path.suffix == ".graphml":
        edges = nx.read_graphml(path).edges(data=column)
        return {frozenset((i, j)): value for i, j, value in edges}
    found = read_any(path)
    pairs = zip(found["source"], found["target"], strict=True)
    return dict(zip(map(frozenset, pairs), found[column].astype(float), strict=True))


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal_and_has_an_example(edgebelief, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    ran = edgebelief(command, "--help")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert f"Example: edgebelief {command}" in " ".join(ran.out.split())
    assert "--json" in ran.out


def test_help_lists_every_command_in_the_order_of_the_walk(edgebelief):
    ran = edgebelief("--help")
    assert edgebelief() == ran
    assert re.findall(r"│ (\w+) ", ran.out)[-len(COMMANDS) :] == COMMANDS


# The walk


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.npz"])
def test_simulate_is_the_same_for_the_same_seed(edgebelief, tmp_path, name):
    found = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        out = tmp_path / folder / name
        out.parent.mkdir()
        ran = edgebelief("simulate", "--nodes", 6, "--graphs", 2, "--seed", seed, "--out", out)
        assert ran.code == 0, ran
        data = load_dataset(out)[0].e if out.suffix == ".npz" else read_signals(out).to_numpy()
        found.append(data)
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".graphml"])
def test_learn_is_smooth_graph_in_every_format(edgebelief, walk, tmp_path, suffix):
    out = tmp_path / f"edges{suffix}"
    ran = edgebelief("learn", walk / "signals.csv", "--degree", 3, "--out", out, "--json")
    assert ran.code == 0
    learner = eb.SmoothGraph(degree=3).fit(read_signals(walk / "signals.csv"))
    expected = learner.edge_table()
    assert ran.json()["theta"] == learner.theta_
    assert ran.json()["strongest"] == expected.head(10).to_dict("records")
    pairs = map(frozenset, zip(expected["source"], expected["target"], strict=True))
    assert by_pair(out, "weight") == dict(zip(pairs, expected["weight"], strict=True))


def test_predict_holds_the_numbers_of_the_library_in_every_format(edgebelief, walk, tmp_path):
    learner = eb.load(walk / "signals.eb")
    signals = read_signals(walk / "signals.csv")
    expected = learner.edge_table(signals)
    for suffix in (".csv", ".parquet", ".npz"):
        out = tmp_path / f"edges{suffix}"
        ran = edgebelief(
            "predict", walk / "signals.eb", walk / "signals.csv", "--out", out, "--json"
        )
        assert ran.code == 0
        found = read_any(out)
        assert list(found.columns) == list(expected.columns)
        for name in expected.columns:
            kind = str if name in ("source", "target") else float
            assert found[name].astype(kind).tolist() == expected[name].astype(kind).tolist()
        assert ran.json()["most_believed"] == expected.head(10).to_dict("records")
        assert ran.json()["edges"] == expected["decision"].sum()
    graph = tmp_path / "edges.graphml"
    assert (
        edgebelief("predict", walk / "signals.eb", walk / "signals.csv", "--out", graph).code == 0
    )
    decided = expected[expected["decision"] == 1]
    pairs = map(frozenset, zip(decided["source"], decided["target"], strict=True))
    assert by_pair(graph, "probability") == dict(zip(pairs, decided["probability"], strict=True))
    assert set(nx.read_graphml(graph)) == set(signals.columns)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--threshold", "0.9"], {"threshold": 0.9}),
        (["--cost", "3", "1"], {"cost": (3, 1)}),
        (["--fdr", "0.05"], {"fdr": 0.05}),
        (["--top-k", "5"], {"top_k": 5}),
    ],
)
def test_rules_are_those_of_decide(edgebelief, walk, tmp_path, options, rule):
    out = tmp_path / "edges.csv"
    arguments = ["predict", walk / "model.eb", walk / "data.npz", "--out", out, "--level", "0"]
    assert edgebelief(*arguments, "--edges-only", *options).code == 0
    found = read_table(out)
    assert "low" not in found
    learner, data = eb.load(walk / "model.eb"), load_dataset(walk / "data.npz")
    expected = learner.edge_table(data, level=None, **rule)
    expected = expected[expected["decision"] == 1]
    assert found["graph"].astype(int).tolist() == expected["graph"].tolist()
    assert found["source"].tolist() == expected["source"].tolist()


def test_the_most_believed_are_those_of_all_graphs(edgebelief, walk, tmp_path):
    out = tmp_path / "edges.parquet"
    ran = edgebelief("predict", walk / "model.eb", walk / "data.npz", "--out", out, "--json")
    believed = [row["probability"] for row in ran.json()["most_believed"]]
    assert believed == sorted(pd.read_parquet(out)["probability"], reverse=True)[:10]


def test_elicit_check_and_fit_share_a_prior(edgebelief, walk, tmp_path):
    data = load_dataset(walk / "data.npz")
    prior, model, picture = (tmp_path / name for name in ("prior.json", "m.eb", "check.png"))
    belief, sweep = ["--density", "0.2", "0.6", "--depth", "10"], tmp_path / "sweep.png"
    ran = edgebelief(
        "elicit", walk / "data.npz", *belief, "--out", prior, "--plot", sweep, "--json"
    )
    assert ran.code == 0
    expected = elicit_prior(data, density=(0.2, 0.6), network=DPG(depth=10))
    assert ran.json()["interval"] == list(expected.interval)
    assert ran.json()["share"] == expected.share
    assert sweep.read_bytes().startswith(b"\x89PNG")
    ran = edgebelief(
        *(
            "fit",
            walk / "data.npz",
            "--prior",
            prior,
            "--depth",
            10,
            *AFFINE,
            "--out",
            model,
            "--json",
        )
    )
    assert ran.code == 0
    learner = eb.GraphLearner(prior=expected, depth=10, readout="affine").fit(data)
    assert ran.json()["posterior"] == learner.posterior_.summary().to_dict("index")
    assert dict(eb.load(model).prior) == dict(expected)
    options = ["--prior", prior, "--depth", 10, *AFFINE, "--draws", 20, "--seed", 3]
    ran = edgebelief("check", walk / "data.npz", *options, "--out", picture, "--json")
    assert ran.code == 0
    (check,) = eb.GraphLearner(prior=expected, depth=10, readout="affine").predictive_checks(
        data, n=20, key=3
    )
    assert ran.json()["prior"]["mean"] == check.values.mean()
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--network", "pds"], {"network": "pds"}),
        (["--scale", "median"], {"scale": "median"}),
        (["--size-aware"], {"size_aware": True}),
    ],
)
def test_check_draws_from_any_model_that_can_be_fitted(edgebelief, walk, options, settings):
    arguments = ["--depth", 10, *AFFINE, "--draws", 20, "--seed", 3, "--json", *options]
    ran = edgebelief("check", walk / "data.npz", *arguments)
    assert ran.code == 0, ran.err
    learner = eb.GraphLearner(depth=10, readout="affine", **settings)
    (check,) = learner.predictive_checks(load_dataset(walk / "data.npz"), n=20, key=3)
    assert ran.json()["prior"]["mean"] == check.values.mean()


def test_a_prior_file_may_hold_every_marginal(edgebelief, walk, tmp_path):
    prior = tmp_path / "prior.json"
    prior.write_text(
        '{"theta": {"kind": "fixed", "value": 0.2}, "delta": {"kind": "halfnormal", "scale": 9},'
        ' "b": {"kind": "loguniform", "low": 0.1, "high": 10}}'
    )
    fit = ["fit", walk / "data.npz", "--prior", prior, "--depth", 10, *AFFINE]
    assert edgebelief(*fit, "--out", tmp_path / "m.eb").code in (0, 4)
    expected = Prior(theta=fixed(0.2), delta=half_normal(9), b=loguniform(0.1, 10))
    assert eb.load(tmp_path / "m.eb").model_.prior == expected


def test_score_is_the_calibration_report(edgebelief, walk):
    ran = edgebelief("score", walk / "model.eb", walk / "data.npz", "--json")
    assert ran.code == 0
    learner = eb.load(walk / "model.eb")
    with pytest.warns(BeliefWarning, match="the model was fitted to"):
        expected = learner.calibration_report(load_dataset(walk / "data.npz"))
    answer = ran.json()
    assert answer.pop("verdict")["ok"]
    assert "the model was fitted to" in answer.pop("warnings")[0]
    assert answer == {"held_out": None, **expected.as_dict()}
    assert edgebelief("score", walk / "model.eb", walk / "data.npz").out == f"{expected}\n"


def test_report_is_a_page_with_the_command_that_made_it(edgebelief, walk, tmp_path):
    out = tmp_path / "report.html"
    title = "<script>alert(1)</script>"
    arguments = [
        "report",
        walk / "signals.eb",
        walk / "signals.csv",
        "--title",
        title,
        "--out",
        out,
    ]
    ran = edgebelief(*arguments, "-l", walk / "edges.csv")
    assert ran.code == 0
    assert ran.out == f"report: {out.as_uri()}\n"
    page = out.read_text()
    assert title not in page
    assert "edgebelief report" in page


@pytest.mark.slow
def test_demo(edgebelief, tmp_path):
    ran = edgebelief("demo", tmp_path / "demo", "--json")
    assert ran.code == 0
    assert ran.json()["scores"]["error"] < 0.2
    for name in ("held-out graphs", "model", "edges", "report"):
        assert Path(ran.json()[name]).stat().st_size > 0
    assert edgebelief("demo", tmp_path / "demo").code == 3  # it is there


# Labels and nodes


@pytest.fixture
def labels(walk, tmp_path):
    """The edges of signals.csv in every form, nodes in another order."""
    names = list(read_signals(walk / "signals.csv").columns)
    edges = read_table(walk / "edges.csv")
    graph = nx.Graph()
    graph.add_nodes_from(reversed(names))
    graph.add_edges_from(zip(edges["source"], edges["target"], strict=True))
    matrix = nx.to_pandas_adjacency(graph, dtype=int)
    (tmp_path / "matrix.csv").write_text(square(matrix.to_numpy(), list(matrix.columns)))
    matrix.to_parquet(tmp_path / "matrix.parquet")
    nx.write_graphml(graph, tmp_path / "names.graphml")
    numbered = nx.convert_node_labels_to_integers(graph, label_attribute="name")
    nx.write_graphml(numbered, tmp_path / "numbered.graphml")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["matrix.csv", "matrix.parquet", "names.graphml", "numbered.graphml"]
)
def test_labels_mean_the_same_in_every_form(edgebelief, walk, labels, name):
    arguments = ["score", walk / "signals.eb", walk / "signals.csv", "--json", "-l"]
    expected = edgebelief(*arguments, walk / "edges.csv")
    assert edgebelief(*arguments, labels / name) == expected


def test_groups_are_cliques(edgebelief, walk, small):
    Path("groups.csv").write_text("node,group\nbob,x\nada,x\ndee,y\ncy,y\nextra,z\n")
    Path("bare.csv").write_text("ada,x\nbob,x\ncy,y\ndee,y\n")
    cliques = np.kron(np.eye(2, dtype=int), 1 - np.eye(2, dtype=int))
    Path("cliques.csv").write_text(square(cliques))
    arguments = ["score", walk / "model.eb", "distances.csv", "--json"]
    expected = edgebelief(*arguments, "-l", "cliques.csv")
    assert expected.json()["verdict"]["ok"]
    assert edgebelief(*arguments, "--groups", "groups.csv") == expected
    assert edgebelief(*arguments, "--groups", "bare.csv") == expected


def test_several_tables_of_several_sizes(edgebelief, walk, small):
    Path("large.csv").write_text(square(1 - np.eye(5), [*NAMES, "eve"]))
    Path("few.csv").write_text("source,target\nada,eve\n")
    ran = edgebelief(
        *("predict", walk / "model.eb", "distances.csv", "large.csv", "--out", "o.csv")
    )
    assert ran.code == 0
    assert "warning: " in ran.err  # another scale than at the fit
    assert read_table("o.csv")["graph"].tolist() == ["distances"] * 6 + ["large"] * 10
    Path("other").mkdir()
    shutil.copy("distances.csv", "other")
    same = ["predict", walk / "model.eb", "distances.csv", "other/distances.csv"]
    assert edgebelief(*same, "--out", "same.csv").code == 0
    assert set(read_table("same.csv")["graph"]) == {"distances.csv", "other/distances.csv"}
    score = ["score", walk / "model.eb", "distances.csv", "large.csv", "--json"]
    assert edgebelief(*score, "-l", "labels.csv", "-l", "few.csv").code == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nodes.txt", "cy\nada\n\ndee\n"),
        ("nodes.json", '["cy", "ada", "dee"]'),
        ("split.json", '{"train": ["cy", "ada", "dee"], "test": ["bob"]}'),
    ],
)
def test_only_some_nodes(edgebelief, small, name, text):
    Path(name).write_text(text)
    key = ":train" if "split" in name else ""
    ran = edgebelief("learn", "signals.csv", "--nodes", f"{name}{key}", "--out", "o.npz", "--json")
    assert ran.code == 0
    some = read_signals("signals.csv")[["cy", "ada", "dee"]]
    assert ran.json()["strongest"] == eb.SmoothGraph().fit(some).edge_table().to_dict("records")


# Tables as people have them


def test_tables_are_read_as_spreadsheets_write_them(edgebelief, small):
    text = Path("signals.csv").read_text()
    turned = read_signals("signals.csv").T
    forms = {
        "windows.csv": text.replace("\n", "\r\n").encode(),
        "mac.csv": text.replace("\n", "\r").encode(),
        "mark.csv": text.encode("utf-8-sig"),
        "utf16.csv": text.replace(",", "\t").encode("utf-16"),
        "semicolons.csv": text.replace(",", ";").replace(".", ",").encode(),
        "tabs.tsv": text.replace(",", "\t").encode(),
        "quotes.csv": re.sub(r"([^,\n]+)", r'"\1"', text).encode(),
        "dates.csv": "\n".join(
            f"{'day' if i == 0 else f'2020-01-{i:02}'},{line}"
            for i, line in enumerate(text.splitlines())
        ).encode(),
        "turned.csv": square(turned.to_numpy(), list(turned.columns), NAMES).encode(),
    }
    expected = edgebelief("learn", "signals.csv", "--out", "o.csv", "--json", "--force")
    for name, content in forms.items():
        Path(name).write_bytes(content)
        more = ["--transpose"] if name == "turned.csv" else []
        ran = edgebelief("learn", name, "--out", "o.csv", "--json", "--force", *more)
        assert ran == expected, name


def test_numbers_in_the_first_line_are_warned_about(edgebelief, small):
    rows = read_signals("signals.csv").to_numpy()
    Path("years.csv").write_text(table(rows, ["1990", "2000", "2010", "2020"]))
    ran = edgebelief("learn", "years.csv", "--out", "o.csv", "--json")
    assert ran.code == 0
    assert ran.err.startswith("warning: years.csv: its first line holds nothing but numbers")
    assert len(ran.json()["warnings"]) == 1
    for names in (["0", "1", "2", "3"], ["1", "2", "3", "4"], ["01", "1", "x", "3"]):
        Path("numbers.csv").write_text(table(rows, names))
        ran = edgebelief("learn", "numbers.csv", "--out", "o.csv", "--force", "--json")
        assert ran.err == ""
        ends = {row[end] for row in ran.json()["strongest"] for end in ("source", "target")}
        assert ends <= set(names)


WILD = [
    "=cmd()",
    "+1",
    "-x",
    "@y",
    "<script>",
    "[red]x[/red]",
    "[/]",
    "ünï 😀",
    "a,b;c",
    '"',
    "'=z",
]


def test_wild_names_stay_inert_and_come_back(edgebelief, tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, len(WILD)))
    table_in, out = tmp_path / "wild.parquet", tmp_path / "edges.csv"
    pd.DataFrame(rows, columns=WILD).to_parquet(table_in)
    ran = edgebelief("learn", table_in, "--density", "1", "--out", out)
    assert ran.code == 0
    assert "[red]x[/red]" in ran.out
    cells = re.findall(r'(?:^|,)"?([^",\n]?)', out.read_text(), flags=re.M)
    assert not set(cells) & set("=+-@")
    found = read_table(out)
    assert set(found["source"]) | set(found["target"]) == set(WILD)
    again = tmp_path / "again.csv"  # and as labels
    found[["source", "target"]].to_csv(again, index=False)
    assert edgebelief("info", out).code == 0
    for suffix in (".parquet", ".npz", ".graphml"):
        other = tmp_path / f"edges{suffix}"
        assert edgebelief("learn", table_in, "--density", "1", "--out", other).code == 0
        assert by_pair(other, "weight") == by_pair(out, "weight")


def test_names_cannot_command_the_terminal(edgebelief, small):
    rows = read_signals("signals.csv").to_numpy()
    Path("esc.csv").write_text(table(rows, ["\x1b[31mred", "x" * 300, "b\u202ed", "c"]))
    for arguments in (["learn", "esc.csv", "--out", "o.csv"], ["info", "esc.csv"]):
        ran = edgebelief(*arguments)
        assert ran.code == 0
        assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)
        assert "\\x1b[31m" in ran.out


def test_a_graph_of_two_nodes(edgebelief, small):
    Path("two.csv").write_text("a,b\n1,2\n2,2\n3,5\n")
    ran = edgebelief("learn", "two.csv", "--out", "o.csv", "--json")
    assert ran.code == 0
    assert ran.json()["edges"] == 1


# The verdict


def test_a_failed_verdict_is_written_and_told(edgebelief, walk, tmp_path):
    model = tmp_path / "m.eb"
    fit = edgebelief("fit", walk / "huge.npz", "--depth", 10, *AFFINE, "--out", model)
    assert fit.code == 4
    assert model.read_bytes() == (walk / "huge.eb").read_bytes()
    out, page = tmp_path / "edges.csv", tmp_path / "report.html"
    rans = [
        fit,
        edgebelief("predict", model, walk / "huge.npz", "--out", out),
        edgebelief("score", model, walk / "huge.npz"),
        edgebelief("report", model, walk / "huge.npz", "--out", page),
        edgebelief("check", walk / "huge.npz", "--model", model, "--draws", 10),
    ]
    assert [ran.code for ran in rans] == [4] * len(rans)
    assert all("verdict: flat prior network: " in ran.out for ran in rans)
    assert all("(--scale 1e-" in ran.out for ran in rans)
    assert "the model was fitted to" in rans.pop(2).err  # score
    assert all(ran.err == "" for ran in rans)
    assert len(read_table(out)) == 6 * 28
    assert page.is_file()
    ran = edgebelief("score", model, walk / "huge.npz", "--json")
    assert ran.code == 4
    verdict = ran.json()["verdict"]
    assert not verdict["ok"]
    assert verdict["findings"][0]["name"] == "flat prior network"


def test_the_cure_cures(edgebelief, walk, tmp_path):
    said = edgebelief("score", walk / "huge.eb", walk / "huge.npz").out
    (scale,) = set(re.findall(r"--scale (\S+)\)", said))
    arguments = ["fit", walk / "huge.npz", "--depth", 10, *AFFINE, "--scale", scale]
    assert edgebelief(*arguments, "--out", tmp_path / "m.eb").code == 0


def test_another_scale_is_warned_about(edgebelief, walk, tmp_path):
    out = tmp_path / "edges.csv"
    ran = edgebelief("predict", walk / "model.eb", walk / "huge.npz", "--out", out, "--json")
    assert ran.code == 0
    (warning,) = ran.json()["warnings"]
    assert warning.startswith(f"{walk / 'huge.npz'}: the distances are 1e+06 times")
    assert ran.err == f"warning: {warning}\n"


def test_equal_distances_are_warned_about(edgebelief, small):
    Path("equal.csv").write_text(square(1 - np.eye(4)))
    ran = edgebelief("fit", "equal.csv", "-l", "labels.csv", "--depth", 5, *AFFINE, "--out", "m.eb")
    assert ran.code == 4
    assert ran.err.startswith("warning: equal.csv: all its distances are 1;")


# Info


def test_info_tells_files_apart(edgebelief, walk, small):
    Path("groups.csv").write_text("node,group\nada,1\nbob,1\n")
    Path("nodes.json").write_text('["ada", "bob"]')
    nx.write_graphml(nx.path_graph(NAMES), "graph.graphml")
    edgebelief("learn", "signals.csv", "--out", "edges.npz")
    edgebelief("elicit", "distances.csv", "--density", "0.2", "0.9", "--out", "prior.json")
    kinds = {
        walk / "model.eb": "model",
        walk / "data.npz": "data set",
        walk / "edges.csv": "edges",
        "edges.npz": "edges",
        "signals.csv": "signals",
        "distances.csv": "matrix",
        "labels.csv": "matrix",
        "groups.csv": "groups",
        "nodes.json": "nodes",
        "prior.json": "prior",
        "graph.graphml": "graph",
    }
    found = {path: edgebelief("info", path, "--json").json()["kind"] for path in kinds}
    assert found == kinds
    assert edgebelief("info", "distances.csv", "--json").json()["holds"] == "distances"
    assert edgebelief("info", "labels.csv", "--json").json()["holds"] == "labels"
    for path in kinds:
        assert str(path) in edgebelief("info", path).out.splitlines()[0]


def test_info_of_the_machine(edgebelief):
    assert edgebelief("info", "--json").json()["edgebelief"] == eb.__version__


# As a program


def test_force_replaces(edgebelief, small):
    Path("o.csv").write_text("old")
    assert edgebelief("learn", "signals.csv", "--out", "o.csv", "--force").code == 0
    assert Path("o.csv").read_text().startswith('"source"')
    assert not list(Path().glob(".*"))


def test_a_reader_that_leaves(small):
    """`edgebelief ... | head` writes everything, and says nothing of it."""
    command = [*PROGRAM, "simulate", "--out", "o.csv", "--labels", "l.csv"]
    pipe_in, pipe_out = os.pipe()
    os.close(pipe_in)
    with os.fdopen(pipe_out, "w") as out:
        ran = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert Path("l.csv").is_file()


def test_names_that_the_terminal_cannot_show(small):
    rows = read_signals("signals.csv").to_numpy()
    Path("wild.csv").write_text(table(rows, ["😀", "é", "c", "d"]), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [*PROGRAM, "info", "wild.csv"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\\U0001f600" in ran.stdout


def interrupt(command: list[str], begun: Path) -> subprocess.CompletedProcess:
    """Run a command and press Ctrl-C as soon as there is a file `begun`.

    The limits of time are generous: they only keep a command that hangs from hanging the tests.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Jobs in the background ignore Ctrl-C, and so would their children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, **pipes)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            for _ in range(6000):
                if begun.exists():
                    break
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=180)
        finally:
            process.kill()
    begun.unlink()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


MESSAGE = "error: interrupted; nothing was left half-written.\n"

NEVER_ENDS = """
import sys
from pathlib import Path
import jax
from edgebelief.cli import main
from edgebelief.threads import Workers

def compiled(*_):
    Path("begun").touch()
    jax.lax.while_loop(lambda n: n >= 0, lambda n: 1 - n, 0).block_until_ready()

map = Workers.map
Workers.map = lambda workers, function, *each: map(workers, compiled, *each)
sys.exit(main())
"""


def test_ctrl_c_while_it_computes(walk, small):
    """In threads and compiled code, where Python alone would wait for their end."""
    before = sorted(os.listdir())
    fit = ["fit", str(walk / "data.npz"), "--inference", "nuts", "--out", "m.eb", "--json"]
    ran = interrupt([sys.executable, "-c", NEVER_ENDS, *fit], begun=Path("begun"))
    assert (ran.returncode, ran.stderr) == (130, MESSAGE)
    assert '"exit_code": 130' in ran.stdout
    assert sorted(os.listdir()) == before


WRITES_SLOWLY = """
import os, sys, time
from pathlib import Path
import edgebelief.atomic
from edgebelief.belief import elicit_prior
from edgebelief.cli import main

def slow(path, flags):
    Path("begun").touch()
    time.sleep(600)

edgebelief.atomic._flush = slow
sys.argv[1:] = ["simulate", "--out", "o.csv"]
sys.exit(main())
"""


def test_ctrl_c_while_it_writes(small):
    before = sorted(os.listdir())
    ran = interrupt([sys.executable, "-c", WRITES_SLOWLY], begun=Path("begun"))
    assert (ran.returncode, ran.stderr) == (130, MESSAGE)
    assert sorted(os.listdir()) == before


def test_a_call_leaves_signals_alone():
    before = signal.getsignal(signal.SIGINT)
    main(["info"])
    assert signal.getsignal(signal.SIGINT) is before


def test_reproduce_says_where_it_went(edgebelief):
    ran = edgebelief("reproduce", "sweep", "--small")
    assert ran.code == 2
    assert "python -m reproduction" in ran.err


def test_rows_that_are_not_shown_are_counted_and_their_file_named(edgebelief, walk, tmp_path):
    predict = ["predict", walk / "signals.eb", walk / "signals.csv", "--force", "--out"]

    def said(out, *rule):
        return edgebelief(*predict, out, *rule).out.replace("\n", "")

    out = tmp_path / "belief.csv"
    assert f"... and 18 more pairs, in {out}" in said(out)  # 28 pairs, ten shown
    assert f"... and 2 more edges, in {out}" in said(out, "--edges-only", "--top-k", 12)
    assert "more" not in said(out, "--edges-only", "--top-k", 3)
    assert "most probable" not in said(out, "--edges-only", "--top-k", 0)
    graph = tmp_path / "graph.graphml"  # which has the decided edges alone
    assert f"... and 2 more edges, in {graph}" in said(graph, "--top-k", 12)
