"""python -m edgebelief.amortise."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from edgebelief.amortise import __main__ as command
from edgebelief.amortise import weights
from edgebelief.amortise.networkfile import load_network

from .conftest import TINY

# What a machine that only trains need not have.
NOT_FOR_TRAINING = (
    "arviz", "arviz_base", "arviz_stats", "joblib", "matplotlib", "networkx", "numpyro", "pandas",
    "plotly", "rich", "scoringrules", "sklearn", "threadpoolctl", "tqdm", "typer",
)  # fmt: skip
BLOCKED = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {NOT_FOR_TRAINING}:
            raise ImportError("not here: " + name)

sys.meta_path.insert(0, Blocker())
import edgebelief.amortise.__main__
assert "edgebelief.amortise.predict" not in sys.modules
"""


def test_training_needs_few_packages():
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_run_writes_everything_and_fails_if_it_has_learned_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "SMALL", replace(TINY, steps=2, rate=0.0))  # it cannot learn
    files = {name: tmp_path / name for name in ("out", "checkpoint", "log")}
    options = [f"--{name}={path}" for name, path in files.items()]
    with pytest.raises(SystemExit, match="no better than the base rate"):
        command.main(["--small", "--exam-every", "0", "--every", "1", *options])
    assert load_network(files["out"]).shape == TINY.shape
    assert files["checkpoint"].stat().st_size > 2 * files["out"].stat().st_size
    records = [json.loads(line) for line in files["log"].read_text().splitlines()]
    assert [r["step"] for r in records if "up to 5 nodes" in r] == [1, 2]
    fresh = records[-1]["fresh"]
    assert fresh["mean"] >= fresh["base"] > 0
    assert "fresh draws of up to 5 nodes" in capsys.readouterr().out


def test_the_command_ships_weights(monkeypatch, tmp_path, capsys):
    shipped = []
    monkeypatch.setattr(command, "ship", lambda path: shipped.append(path) or "1234")
    command.main(["--ship", str(weights.FILE)])
    assert shipped == [weights.FILE]
    assert "SHA-256 1234" in capsys.readouterr().out
