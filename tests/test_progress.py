"""Bars are shown on terminals, and one at a time."""

import io

import pytest

from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import VI, EdgeModel
from edgebelief.networks import DPG
from edgebelief.progress import hidden_bars, progress_bar


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def count(**settings):
    with progress_bar(total=2, desc="work", **settings) as bar:
        bar.update(2)


def test_bars_are_shown_on_terminals_unless_they_are_hidden(monkeypatch):
    monkeypatch.setattr("sys.stderr", stderr := Terminal())
    with hidden_bars():
        count()
        assert not stderr.getvalue()
        count(shown=True)
        assert "work: 100%" in stderr.getvalue()
    stderr.truncate(0)
    count()
    assert "work: 100%" in stderr.getvalue()


def test_no_bar_where_stderr_is_no_terminal(monkeypatch):
    monkeypatch.setattr("sys.stderr", stderr := io.StringIO())
    count()
    assert not stderr.getvalue()


@pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")  # of ten steps alone
def test_an_engine_shows_no_bar_under_a_spinner(monkeypatch):
    monkeypatch.setattr("sys.stderr", stderr := Terminal())
    data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=5, n_signals=20)
    with hidden_bars():
        VI(steps=10).run(0, EdgeModel(DPG(depth=3)), data)
    assert "VI" not in stderr.getvalue()
    VI(steps=10).run(0, EdgeModel(DPG(depth=3)), data)
    assert "VI: 100%" in stderr.getvalue()
