"""Evidence, from the shell."""

import pytest

from edgebelief import load, registry
from edgebelief.cli import main

pytestmark = pytest.mark.filterwarnings(
    "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws", "ignore:prior dominates"
)


@pytest.fixture(scope="module")
def fitted(walk, tmp_path_factory):
    """A model of the signals of one graph."""
    path = tmp_path_factory.mktemp("evidence") / "model.eb"
    fit = ["fit", walk / "signals.csv", "--labels", walk / "edges.csv", "--metric", "sqeuclidean"]
    more = ["--readout", "additive", "--evidence", "profile, correlation", "--depth", "10"]
    assert main([str(word) for word in [*fit, *more, "--out", path]]) in (0, 4)
    return path


def test_channels_are_terms(edgebelief, fitted, walk):
    assert load(fitted).evidence == ["profile", "correlation"]
    terms = edgebelief("explain", fitted, "--json").json()["terms"]
    assert {"profile", "correlation"} <= {term["term"] for term in terms}
    pair = ["--source", "node0", "--target", "node1"]
    parts = edgebelief("explain", fitted, walk / "signals.csv", *pair, "--json").json()["parts"]
    assert {"profile", "correlation"} <= {part["part"] for part in parts}


def test_an_explanation_leaves_nothing_out(edgebelief, walk, tmp_path):
    model = tmp_path / "model.eb"
    fit = ["fit", walk / "signals.csv", "--labels", walk / "edges.csv", "--metric", "sqeuclidean"]
    every = "likelihood, precision, diffusion, profile"
    more = ["--readout", "additive", "--evidence", every, "--depth", "10", "--out", model]
    said = edgebelief(*fit, *more).out.replace("\n", "")
    terms = load(model).terms()["term"]
    assert len(terms) > 20
    assert f"... and {len(terms) - 20} more terms; edgebelief explain {model} lists all" in said
    listed = edgebelief("explain", model).out
    assert all(f"│ {term} " in listed for term in terms)
    pair = ["--source", "node0", "--target", "node1"]
    parts = edgebelief("explain", model, walk / "signals.csv", *pair).out
    assert all(f"│ {part} " in parts for part in [*terms, "logit"])
    assert "more" not in listed + parts


def test_info_lists_the_evidence(edgebelief, fitted, walk):
    assert "evidence: profile, correlation\n" in edgebelief("info", fitted).out
    assert edgebelief("info", fitted, "--json").json()["evidence"] == ["profile", "correlation"]
    assert edgebelief("info", walk / "model.eb", "--json").json()["evidence"] == []


def test_a_report_lists_the_evidence(edgebelief, fitted, walk, tmp_path):
    page = tmp_path / "page.html"
    assert edgebelief("report", fitted, walk / "signals.csv", "--out", page).code in (0, 4)
    assert "evidence that was used" in page.read_text()
    assert "profile, correlation" in page.read_text()


def test_a_model_of_signals_refuses_distances(edgebelief, fitted, walk, tmp_path):
    ran = edgebelief("predict", fitted, walk / "data.npz", "--out", tmp_path / "o.csv")
    assert ran.code == 3
    said = " ".join(ran.err.split())
    assert "the evidence 'correlation' is computed from signals" in said
    assert "fit the model again with --evidence profile" in said


BAD = {
    "an unknown name": (["--readout", "additive", "--evidence", "profile,best"], "got 'best'"),
    "nothing": (["--readout", "additive", "--evidence", ""], "got ''"),
    "a name twice": (["--readout", "additive", "--evidence", "profile,profile"], "twice"),
    "a readout without terms": (["--evidence", "profile"], "use --readout additive"),
    "signals that are not there": (
        ["--readout", "additive", "--evidence", "profile,forest"],
        "or use --evidence profile",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_misuse_is_said(edgebelief, walk, tmp_path, case):
    words, message = BAD[case]
    ran = edgebelief("fit", walk / "data.npz", *words, "--out", tmp_path / "m.eb")
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_help_lists_all_evidence(edgebelief, monkeypatch):
    monkeypatch.setenv("COLUMNS", "2000")
    said = edgebelief("fit", "--help").out
    assert all(name in said for name in (*registry.EVIDENCE, "auto", "none"))
    assert "the last six need signals" in said
    need_signals = [entry.load().needs_signals for entry in registry.EVIDENCE.values()]
    assert need_signals == [False] * 6 + [True] * 6
