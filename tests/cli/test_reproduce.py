"""The paper from the shell: bad requests are named, results are said and written."""

import pytest

from edgebelief.paper import ITEMS, SHARING


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


@pytest.mark.slow
def test_items_side_by_side(edgebelief, tmp_path):
    ran = edgebelief("reproduce", "stocks", "sweep", "--small", "--jobs", 2, "--out", tmp_path)
    assert ran.code == 0
    assert "2/2  " in ran.out
    assert "needs sp500_prices.csv" in ran.out
    assert "included" in ran.out
    assert (tmp_path / "sweep.json").is_file()


def test_items_that_share_things_are_items():
    together = [name for group in SHARING for name in group]
    assert set(together) <= set(ITEMS)
    assert len(set(together)) == len(together)
