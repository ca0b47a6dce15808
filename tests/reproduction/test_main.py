"""The paper from the shell: errors name the bad request, results are printed and written."""

import json
from typing import Any, NamedTuple

import pytest
from reproduction.shell import main
from typer import Typer
from typer.testing import CliRunner

from reproduction import ITEMS, SHARING


class Ran(NamedTuple):
    """The exit code and the output of a run."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def reproduction():
    """Run `python -m reproduction` in this process."""
    app = Typer()
    app.command()(main)

    def run(*arguments: Any) -> Ran:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


def test_an_unknown_item(reproduction, tmp_path):
    ran = reproduction("nothing", "--out", tmp_path / "new")
    assert ran.code == 2
    assert "no item is called 'nothing'; the items are sweep, checks" in ran.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--data", "no-such-folder"), "is not a folder"), (("--out", "a-file"), "is a file")],
)
def test_bad_folders(reproduction, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    ran = reproduction("sweep", "--small", *options)
    assert ran.code == 2
    assert said in ran.err


def test_missing_data(reproduction, tmp_path):
    ran = reproduction("stocks", "--small", "--out", tmp_path)
    assert ran.code == 0
    assert "needs sp500_prices.csv: give its folder as --data" in ran.out
    assert "Needs `sp500_prices.csv`" in (tmp_path / "reproduction.md").read_text()


@pytest.mark.slow
def test_results_are_printed_and_written(reproduction, tmp_path):
    first = reproduction("sweep", "--small", "--out", tmp_path, "--json")
    assert first.code == 0
    results = first.json()["items"]["sweep"]
    again = reproduction("sweep", "--small", "--out", tmp_path)
    for sentence in results["says"]:
        assert sentence in again.out
    page = (tmp_path / "reproduction.md").read_text()
    assert "a test that everything runs, not a result" in page
    for path in results["figures"].values():
        assert (tmp_path / path).is_file()
        assert path in page


@pytest.mark.slow
def test_items_side_by_side(reproduction, tmp_path):
    ran = reproduction("stocks", "sweep", "--small", "--jobs", 2, "--out", tmp_path)
    assert ran.code == 0
    assert "2/2  " in ran.out
    assert "needs sp500_prices.csv" in ran.out
    assert "including pieces computed earlier" in ran.out
    assert (tmp_path / "sweep.json").is_file()


def test_groups_that_share_a_process_are_items():
    together = [name for group in SHARING for name in group]
    assert set(together) <= set(ITEMS)
    assert len(set(together)) == len(together)
