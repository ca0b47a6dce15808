"""A folder of graphs in a shell."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from edgebelief.fleet import results
from graph_folders import check_complete, check_equal, make

from .tables import table

pytest.importorskip("pyarrow")
PREDICT = [sys.executable, "-W", "ignore", "-m", "edgebelief", "predict"]


@pytest.fixture
def folder(tmp_path, walk) -> Path:
    """Tables of signals of 8 nodes: two that are alike, a broken one, and what is no graph."""
    path = tmp_path / "graphs"
    path.mkdir()
    shutil.copy(walk / "signals.csv", path / "ada.csv")
    shutil.copy(walk / "signals.csv", path / "bob.csv")
    (path / "broken.csv").write_text("x,y,z\n1,2,3\n1,oops,2\n")
    (path / "pair.csv").write_text(table([[1, 2], [2, 1], [0, 5]], ["x", "y"]))
    (path / "notes.md").write_text("of Monday")
    (path / ".ada.csv.swp").write_text("x")
    (path / "sub").mkdir()
    return path


def test_a_folder_is_predicted_and_its_bad_file_fails_alone(edgebelief, walk, folder, tmp_path):
    out = tmp_path / "beliefs"
    command = ["predict", walk / "signals.eb", folder, "--out", out, "--jobs", 1]
    ran = edgebelief(*command)
    assert ran.code == 3
    assert ran.out.startswith("4 files: 3 predicted, 1 failed; written to")
    assert "left out, for they are no graphs in files: notes.md, sub" in ran.err
    assert f"failed: {folder / 'broken.csv'}, row 3, column 'y': 'oops', no number" in ran.err
    assert "The same command tries those that failed again." in ran.err
    alone = tmp_path / "alone.csv"
    assert edgebelief("predict", walk / "signals.eb", folder / "ada.csv", "--out", alone).code == 0
    frame = pd.read_csv(alone)
    tables = {result.file: result.table for result in results(out) if result.error is None}
    assert len(tables["pair.csv"]) == 1
    for name in ("ada.csv", "bob.csv"):
        pd.testing.assert_frame_equal(
            tables[name].astype(dict(frame.dtypes)), frame, check_exact=False, rtol=1e-12
        )
    (folder / "broken.csv").unlink()
    ran = edgebelief(*command, "--json")
    assert ran.code == 0
    answer = ran.json()
    assert (answer["done"], answer["had_results"], answer["failed"]) == (0, 3, [])
    assert answer["verdict"]["ok"]
    assert answer["warned"]["BeliefWarning"]["times"] >= 1  # of the pair, from the first run


def test_options_of_reading_are_heeded_and_a_change_of_them_redoes_all(
    edgebelief, walk, folder, tmp_path
):
    out, nodes = tmp_path / "beliefs", tmp_path / "nodes.txt"
    for name in ("broken.csv", "pair.csv"):
        (folder / name).unlink()
    nodes.write_text("node0\nnode1\nnode2\n")
    command = ["predict", walk / "signals.eb", folder, "--out", out, "--jobs", 1, "--level", 0]
    edgebelief(*command, "--nodes", nodes, "--json")
    assert {len(result.table) for result in results(out)} == {3}
    nodes.write_text("node0\nnode1\nnode2\nnode3\n")
    ran = edgebelief(*command, "--nodes", nodes)
    assert "of other settings" in ran.err
    assert {len(result.table) for result in results(out)} == {6}


def test_a_model_for_each_file(edgebelief, walk, folder, tmp_path):
    out, labels = tmp_path / "models", tmp_path / "labels"
    labels.mkdir()
    shutil.copy(walk / "edges.csv", labels / "ada.csv")
    fit = ["fit", "--each", folder, "--out", out, "--metric", "sqeuclidean", "--depth", 10]
    fit += ["--readout", "affine", "--labels", labels, "--jobs", 1, "--inference", "laplace"]
    ran = edgebelief(*fit)
    assert ran.code == 3
    assert "4 files: 1 fitted, 3 failed" in ran.out
    assert f"{folder / 'bob.csv'}: no file in {labels} has its labels." in ran.err
    ran = edgebelief("predict", out / "models" / "ada.eb", folder / "ada.csv", "-o", out / "b.csv")
    assert ran.code == 0
    for name in ("bob.csv", "broken.csv", "pair.csv"):
        (folder / name).unlink()
    ran = edgebelief(*fit)
    assert ran.code == 0, ran.err
    assert "1 file: 0 fitted, 1 had results already" in ran.out


REFUSED = [
    (["fit", "graphs", "--out", "m.eb"], 2, "--each fits a model to each of its files"),
    (["fit", "--each", "graphs", "--out", "m.eb"], 2, "the results are a folder; name one"),
    (["fit", "--each", "graphs", "-o", "m", "-l", "graphs/ada.csv"], 2, "--labels is a folder too"),
    (["predict", "m.eb", "graphs", "--out", "b.csv"], 2, "the results are a folder; name one"),
    (["predict", "m.eb", "graphs", "graphs", "--out", "b"], 2, "a folder goes alone"),
    (["predict", "none.eb", "graphs", "--out", "b"], 3, "none.eb: no such file"),
    (["predict", "m.eb", "graphs", "--out", "b", "--force"], 2, "go on where they ended"),
    (["predict", "m.eb", "graphs", "--out", "none/b"], 3, "there is no folder none"),
    (["predict", "m.eb", "graphs", "--out", "graphs"], 2, "a folder of inputs"),
    (["predict", "m.eb", "graphs", "--out", "."], 3, "holds other files"),
    (["predict", "m.eb", "graphs/sub", "--out", "b"], 3, "holds no graphs"),
    (["predict", "m.eb", "graphs/ada.csv", "--out", "b.csv", "--jobs", "2"], 2, "--jobs is for a"),
    (["fit", "graphs/ada.csv", "--out", "m2.eb", "--jobs", "2"], 2, "--jobs is for a folder"),
]


@pytest.mark.parametrize(("command", "code", "message"), REFUSED)
def test_what_cannot_be_is_refused(edgebelief, walk, folder, monkeypatch, command, code, message):
    monkeypatch.chdir(folder.parent)
    shutil.copy(walk / "signals.eb", "m.eb")
    ran = edgebelief(*command)
    assert (ran.code, message in ran.err) == (code, True), ran.err


def wait_until_alone(session):
    """The workers of a command that was killed end by themselves."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        listed = subprocess.run(
            ["ps", "-s", str(session), "-o", "stat=,args="], capture_output=True
        )
        alive = [line for line in listed.stdout.decode().splitlines() if "popen_loky" in line]
        if not alive:
            return
        time.sleep(0.5)
    raise AssertionError(alive)


def killed_and_resumed(model, folder, out, n_kills, rng, others_too):
    """Kill the command, and its workers too, at random times; then let it end."""
    command = [*PREDICT, model, folder, "--out", out, "--jobs", "2", "--level", "0"]
    for _ in range(n_kills):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_for_orders = time.monotonic() + 60
        while not (out / "orders").exists() and time.monotonic() < wait_for_orders:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 12))
        if others_too():
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        wait_until_alone(process.pid)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr


@pytest.mark.parametrize(
    "n_kills", [pytest.param(2, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.slow)]
)
def test_killed_at_random_times_nothing_is_lost_or_done_twice(edgebelief, walk, tmp_path, n_kills):
    model, folder = walk / "model.eb", make(tmp_path / "graphs", 400)
    rng = random.Random(n_kills)
    out = tmp_path / "out"
    killed_and_resumed(model, folder, out, n_kills, rng, lambda: rng.random() < 0.5)
    check_complete(folder, out)
    whole = tmp_path / "whole"
    edgebelief("predict", model, folder, "--out", whole, "--jobs", 1, "--level", 0)
    check_equal(out, whole)
