"""What a command can refuse without NumPy and JAX, it refuses before it loads them."""

import json
import subprocess
import sys

import pytest

from edgebelief.cli.app import app

SLOW = {"jax", "numpyro", "numpy", "pandas", "scipy", "sklearn", "networkx", "matplotlib", "plotly"}
# Runs commands in one process, and tells after each of them what it has loaded.
RUN = """
import contextlib, io, json, sys
from edgebelief.cli import main
cases, slow = json.loads(sys.argv[1])
told = []
for case in cases:
    words = io.StringIO()
    with contextlib.redirect_stderr(words), contextlib.redirect_stdout(words):
        code = main(case)
    told.append([code, " ".join(words.getvalue().split()), sorted(set(slow) & set(sys.modules))])
print(json.dumps(told))
"""
# What is called, the exit code, and a part of what is said. old.* are files that are there.
HELP = [
    (["--help"], 0, "calibrated belief"),
    (["--version"], 0, "edgebelief"),
    *[([command.callback.__name__, "--help"], 0, "Usage") for command in app.registered_commands],
]
REFUSED = [
    (["simulate", "--out", "old.npz"], 3, "--force replaces it"),
    (["simulate", "--out", "new.npz", "--labels", "new.csv"], 2, "holds its labels"),
    (["simulate", "--out", "new.csv", "--labels", "new.csv"], 2, "are one file"),
    (["learn", "none.csv", "--out", "new.csv"], 3, "none.csv: no such file"),
    (["learn", "old.csv", "--out", "old.csv"], 3, "is read by this command"),
    (["learn", "old.npz", "--out", "new.csv"], 3, "takes one table"),
    (["learn", "old.csv", "--out", "new.csv", "--theta=1", "--degree=2"], 2, "not both"),
    (["learn", "old.csv", "--out", "new.doc"], 3, "must end in"),
    (["elicit", "none.npz", "--density", "0.1", "0.2"], 3, "none.npz: no such file"),
    (["elicit", "old.csv", "--density", "0.1", "0.2", "--out", "old.json"], 3, "--force"),
    (["elicit", "old.csv", "--density", "0.1", "0.2", "--transpose"], 2, "--transpose is for"),
    (["elicit", "old.csv", "--density", "a", "0.2"], 2, "valid number"),
    (["fit", "none.npz", "--out", "new.eb"], 3, "none.npz: no such file"),
    (["fit", "old.npz", "--out", "old.eb"], 3, "--force replaces it"),
    (["fit", "old.npz", "--out", "none/new.eb"], 3, "there is no folder none"),
    (["fit", "old.npz", "--nodes", "A", "--out", "new.eb"], 3, "A: no such file; --nodes is a"),
    (["fit", "old.npz", "old.csv", "--out", "new.eb"], 3, "holds all graphs"),
    (["fit", "old.csv", "--out", "new.eb", "--network", "dgp"], 2, "is not one of"),
    (["fit", "old.csv", "--out", "new.eb", "--prior", "dense"], 2, "--prior is"),
    (["fit", "old.csv", "--out", "new.eb", "--prior", "none.json"], 3, "none.json: no such file"),
    (["fit", "old.csv", "--out", "new.eb", "--scale", "big"], 2, "--scale is"),
    (["fit", "old.csv", "--out", "new.eb", "--labels=old.csv", "--groups=old.csv"], 2, "not both"),
    (["fit", "old.csv", "--out", "new.eb", "--groups=old.csv", "--weighted"], 2, "by how much"),
    (["fit", "old.csv", "--out", "new.eb", "-c", "none.csv"], 3, "none.csv: no such file"),
    (["predict", "none.eb", "old.csv", "--out", "new.csv"], 3, "none.eb: no such file"),
    (["predict", "old.eb", "old.csv", "--out", "old.csv"], 3, "is read by this command"),
    (["predict", "old.eb", "old.csv", "-o", "new.csv", "--fdr=.1", "--top-k=2"], 2, "not both"),
    (["predict", "old.eb", "old.csv", "old.csv", "-o", "new.graphml"], 2, "holds one graph"),
    (["check", "old.npz", "--out", "old.png"], 3, "--force replaces it"),
    (["check", "old.npz", "--model", "none.eb"], 3, "none.eb: no such file"),
    (["check", "old.npz", "--model", "old.eb", "--size-aware"], 2, "old.eb has its own settings"),
    (["check", "old.csv", "--groups", "old.csv", "--weighted"], 2, "by how much"),
    (["belief", "none.csv", "--out", "new.csv"], 3, "none.csv: no such file"),
    (["belief", "old.csv", "--out", "new.csv", "--report", "old.html"], 3, "--force replaces it"),
    (["belief", "old.csv", "--out", "new.csv", "--n-signals", "20"], 2, "--metric precomputed"),
    (["belief", "old.csv", "-o", "new.csv", "-c", "old.csv"], 2, "go with labels"),
    (["score", "old.eb", "none.npz"], 3, "none.npz: no such file"),
    (["explain", "old.eb", "--source", "a"], 2, "give all three or none"),
    (["explain", "none.eb"], 3, "none.eb: no such file"),
    (["explain", "old.eb", "old.csv", "--source=a", "--target=b", "-o", "new.png"], 2, "a table"),
    (["report", "old.eb", "old.csv", "--out", "old.html"], 3, "--force replaces it"),
    (["demo", "old.csv"], 3, "is a file"),
    (["demo", "."], 3, "held-out.npz: is there already"),
    (["reproduce"], 2, "make reproduce"),
    (["info", "none.eb"], 3, "none.eb: no such file"),
    (["info", "old.doc"], 3, "of no known kind"),
    (["fit", "old.csv", "--nonsense", "3"], 2, "No such option"),
]
CASES = [*HELP, *REFUSED]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    for suffix in ("csv", "npz", "eb", "json", "png", "html", "doc"):
        (folder / f"old.{suffix}").touch()
    (folder / "held-out.npz").touch()
    cases = json.dumps([[case for case, *_ in CASES], sorted(SLOW)])
    run = subprocess.run(
        [sys.executable, "-c", RUN, cases], capture_output=True, text=True, cwd=folder
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: " ".join(CASES[n][0]))
def test_is_said_before_anything_slow_is_loaded(told, number):
    _, code, part = CASES[number]
    ended, words, loaded = told[number]
    assert (ended, loaded) == (code, []), words
    assert part in words


def test_every_command_has_something_to_refuse():
    assert {command.callback.__name__ for command in app.registered_commands} == {
        case[0] for case, *_ in REFUSED
    }
