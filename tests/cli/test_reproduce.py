"""The paper from the shell: bad requests are named, results are said and written."""

import pytest


def test_an_unknown_item(edgebelief, tmp_path):
    ran = edgebelief("reproduce", "nothing", "--out", tmp_path / "new")
    assert ran.code == 2
    assert "no item is called 'nothing'; there are sweep, checks" in ran.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--data", "no-such-folder"), "is no folder"), (("--out", "a-file"), "is a file")],
)
def test_folders_that_are_none(edgebelief, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    ran = edgebelief("reproduce", "sweep", "--small", *options)
    assert ran.code == 3
    assert said in ran.err


def test_data_that_are_missing(edgebelief, tmp_path):
    ran = edgebelief("reproduce", "stocks", "--small", "--out", tmp_path)
    assert ran.code == 0
    assert "needs sp500_prices.csv: give its folder as --data" in ran.out
    assert "Needs `sp500_prices.csv`" in (tmp_path / "reproduction.md").read_text()


@pytest.mark.slow
def test_an_item_is_said_and_written(edgebelief, tmp_path):
    first = edgebelief("reproduce", "sweep", "--small", "--out", tmp_path, "--json")
    assert first.code == 0
    found = first.json()["items"]["sweep"]
    again = edgebelief("reproduce", "sweep", "--small", "--out", tmp_path)
    for sentence in found["says"]:
        assert sentence in again.out
    page = (tmp_path / "reproduction.md").read_text()
    assert "a rehearsal, not a result" in page
    for path in found["figures"].values():
        assert (tmp_path / path).is_file()
        assert path in page
