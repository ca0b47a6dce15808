import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from edgebelief.cli import main
from edgebelief.data import GraphDataset, load_dataset, save_dataset

from .tables import PATH, square, table


class Ran(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def edgebelief(capsys):
    """Run the command in this process."""

    def run(*arguments: Any) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def walk(tmp_path_factory) -> Path:
    """A folder with data and fitted models, made by the commands themselves.

    data.npz, model.eb: six graphs of 8 nodes, by distances. signals.csv, edges.csv, signals.eb: one
    graph of 8 nodes, by signals. huge.npz, huge.eb: the distances of data.npz times a million.
    """
    folder = tmp_path_factory.mktemp("walk")

    def run(command: str) -> int:
        words = [str(folder / word) if "." in word[1:] else word for word in command.split()]
        return main(words)

    assert run("simulate --nodes 8 --graphs 6 --signals 100 --out data.npz") == 0
    assert run("simulate --nodes 8 --signals 100 --out signals.csv --labels edges.csv") == 0
    assert run("fit data.npz --depth 10 --readout affine --out model.eb") == 0
    fit = "fit signals.csv --labels edges.csv --metric sqeuclidean --depth 10 --readout affine"
    assert run(f"{fit} --out signals.eb") == 0
    data = load_dataset(folder / "data.npz")
    large = GraphDataset([1e6 * r.e for r in data], [r.a for r in data])
    save_dataset(folder / "huge.npz", large)
    assert run("fit huge.npz --depth 10 --readout affine --out huge.eb") == 4
    return folder


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """The current folder: good tables of four nodes, for others to be made bad."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    signals = rng.normal(size=(12, 4)).round(3)
    distances = np.abs(signals[:4] + signals[:4].T)
    np.fill_diagonal(distances, 0)
    Path("signals.csv").write_text(table(signals))
    Path("distances.csv").write_text(square(distances))
    Path("labels.csv").write_text(square(PATH))
    return tmp_path
