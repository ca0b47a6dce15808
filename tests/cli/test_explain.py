"""Readouts, covariates and explanations, from the shell."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgebelief import load
from edgebelief.cli import main
from edgebelief.data import load_dataset, read_table, write_table
from edgebelief.readouts import Additive

pytestmark = pytest.mark.filterwarnings(
    "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws", "ignore:prior dominates"
)
PAIR = ("--source", "0", "--target", "1")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """data.npz: six graphs; roads.csv: what is known of the pairs of all; model.eb: from both."""
    folder = tmp_path_factory.mktemp("explain")
    data = folder / "data.npz"
    simulate = ["simulate", "--nodes", "8", "--graphs", "6", "--signals", "100"]
    assert main([*simulate, "--out", str(data)]) == 0
    rng = np.random.default_rng(0)
    rows, cols = load_dataset(data)[0].support.endpoints
    roads = pd.DataFrame({"source": rows, "target": cols, "km": rng.normal(size=rows.size)})
    roads["road"] = rng.choice(["lane", "motorway"], rows.size)
    write_table(folder / "roads.csv", roads)
    fit = ["fit", str(data), "--depth", "10", "--readout", "additive", "--evidence", "none"]
    code = main([*fit, "-c", str(folder / "roads.csv"), "--out", str(folder / "model.eb")])
    assert code in (0, 4)  # so few labels may leave a finding
    return folder


def test_fit_keeps_terms_and_covariates(fitted):
    readout = load(fitted / "model.eb").model_.readout
    assert isinstance(readout, Additive)
    assert {"km", "road"} <= {term.name for term in readout.terms}


def test_an_edge_is_explained_by_parts_that_add_up(edgebelief, fitted, tmp_path):
    given = [fitted / "model.eb", fitted / "data.npz", "-c", fitted / "roads.csv"]
    ran = edgebelief("explain", *given, *PAIR, "--json", "--out", tmp_path / "why.csv")
    *parts, logit = ran.json()["parts"]
    assert logit["part"] == "logit"
    assert np.isclose(sum(part["contribution"] for part in parts), logit["contribution"])
    table = read_table(tmp_path / "why.csv")
    assert table["part"].tolist() == [part["part"] for part in [*parts, logit]]
    predicted = edgebelief("predict", *given, "--out", tmp_path / "o.csv", "--json")
    assert predicted.code == ran.code
    belief = read_table(tmp_path / "o.csv")
    same = (belief["graph"] == "0") & (belief["source"] == "0") & (belief["target"] == "1")
    p = float(belief["probability"][same].iloc[0])
    assert np.isclose(ran.json()["probability"], p, rtol=1e-6)
    said = edgebelief("explain", *given, *PAIR).out
    assert f"probability {p:.4f}. What its logit is the sum of" in said


def test_a_model_is_explained_by_its_terms(edgebelief, fitted, tmp_path):
    ran = edgebelief("explain", fitted / "model.eb", "--json", "--out", tmp_path / "terms.png")
    terms = ran.json()["terms"]
    assert {"km", "road", "z", "rank sum"} <= {term["term"] for term in terms}
    assert [t["size"] for t in terms] == sorted((t["size"] for t in terms), reverse=True)
    assert (tmp_path / "terms.png").read_bytes().startswith(b"\x89PNG")
    assert not all(term["needed"] for term in terms)
    assert "term_importance" in edgebelief("explain", fitted / "model.eb").out


@pytest.mark.slow
def test_every_command_that_predicts_takes_covariates(edgebelief, fitted, tmp_path):
    given = [fitted / "model.eb", fitted / "data.npz"]
    more = ["-c", fitted / "roads.csv"]
    assert edgebelief("score", *given, *more, "--json").json()["nll"] > 0
    assert edgebelief("report", *given, *more, "--out", tmp_path / "r.html").code in (0, 4)
    page = (tmp_path / "r.html").read_text()
    assert "motorway" in page
    check = ["check", fitted / "data.npz", "--model", fitted / "model.eb", "--draws", "20"]
    assert edgebelief(*check, *more).code in (0, 4)
    ran = edgebelief("score", *given)
    assert ran.code == 3
    assert "no covariate ['km', 'road']" in ran.err


BAD = {
    "half a pair": (["explain", "{model}", "--source", "0"], 2, "all three or none"),
    "no data": (["explain", "{model}", *PAIR], 2, "all three or none"),
    "a picture of a pair": (
        ["explain", "{model}", "{data}", *PAIR, "-c", "{roads}", "--out", "w.png"],
        2,
        "is a table",
    ),
    "no such node": (
        ["explain", "{model}", "{data}", "--source", "0", "--target", "x", "-c", "{roads}"],
        3,
        "no node is called 'x'",
    ),
    "an affine model": (
        ["explain", "{plain}"],
        3,
        "its readout, Affine, has no terms",
    ),
    "covariates of an affine fit": (
        ["fit", "{data}", "-c", "{roads}", "--depth", "10", "--readout", "affine", "--out", "m.eb"],
        3,
        "--readout additive",
    ),
    "two files for six graphs": (
        ["score", "{model}", "{data}", "-c", "{roads}", "-c", "{roads}"],
        3,
        "2 covariate files for 6 graphs",
    ),
    "no such file": (["score", "{model}", "{data}", "-c", "x.csv"], 3, "x.csv: no such file"),
    "an unknown readout": (["fit", "{data}", "--readout", "best", "--out", "m.eb"], 2, "affine"),
    "a new level": (["score", "{model}", "{data}", "-c", "new.csv"], 3, "is ['rail'] for some"),
    "numbers for levels": (["score", "{model}", "{data}", "-c", "7.csv"], 3, "was a category"),
}


@pytest.mark.parametrize("case", BAD)
def test_misuse_is_said(edgebelief, fitted, walk, small, case):
    roads = read_table(fitted / "roads.csv")
    write_table("new.csv", roads.replace("lane", "rail"))
    write_table("7.csv", roads.assign(road="7"))
    words, code, message = BAD[case]
    files = {"model": "model.eb", "data": "data.npz", "roads": "roads.csv"}
    places = {name: fitted / file for name, file in files.items()}
    ran = edgebelief(*(w.format(**places, plain=walk / "model.eb") for w in words))
    assert ran.code == code, ran.err
    assert message in " ".join(ran.err.split())
    assert not Path("m.eb").exists()


@pytest.mark.slow
def test_auto_says_how_it_chose(edgebelief, walk, tmp_path):
    fit = ["fit", walk / "data.npz", "--depth", "10", "--readout", "auto", "--evidence", "none"]
    ran = edgebelief(*fit, "--out", tmp_path / "m.eb", "--json")
    names = [row["name"] for row in ran.json()["comparison"]]
    assert sorted(names) == ["additive", "affine", "two-slope"]
    kind = {"additive": "Additive", "affine": "Affine", "two-slope": "TwoSlope"}[names[0]]
    assert ran.json()["readout"] == kind
    assert type(load(tmp_path / "m.eb").model_.readout).__name__ == kind
