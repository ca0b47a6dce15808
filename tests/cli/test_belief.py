"""edgebelief belief: a graph without labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from edgebelief.amortise import beliefs
from edgebelief.data import RandomGeometric, distances, smooth_signals

NAMES = [f"gene{k}" for k in range(12)]


@pytest.fixture(scope="module")
def signals():
    return smooth_signals(1, RandomGeometric(0.45).sample(0, 12), 200)


@pytest.fixture
def table(signals, tmp_path):
    path = tmp_path / "signals.csv"
    pd.DataFrame(signals, columns=NAMES).to_csv(path, index=False)
    return path


def by_pair(path):
    found = pd.read_csv(path)
    pairs = zip(found["source"], found["target"], strict=True)
    return dict(zip(map(frozenset, pairs), found["probability"], strict=True))


def check_same(found, believed):
    expected = dict(zip(zip(*np.triu_indices(12, 1), strict=True), believed, strict=True))
    for (i, j), p in expected.items():
        assert found[frozenset((NAMES[i], NAMES[j]))] == pytest.approx(p, abs=3e-3)


def test_it_writes_what_the_network_believes(edgebelief, table, signals, tmp_path):
    out, page = tmp_path / "belief.csv", tmp_path / "belief.html"
    ran = edgebelief("belief", table, "--density", 0.1, 0.6, "--out", out, "--report", page)
    assert ran.code == 0, ran
    standard = (signals - signals.mean(0)) / signals.std(0)
    check_same(by_pair(out), beliefs(signals=standard, density=(0.1, 0.6)).probability)
    assert "look like those that the network was trained on" in " ".join(ran.out.split())
    assert "What the network expects" in page.read_text("utf-8")


def test_nodes_in_rows_and_gaps(edgebelief, signals, tmp_path):
    x = np.where(np.random.default_rng(0).uniform(size=signals.shape) < 0.03, np.nan, signals)
    path, out = tmp_path / "genes.csv", tmp_path / "belief.csv"
    pd.DataFrame(x.T, index=NAMES).to_csv(path)
    ran = edgebelief("belief", path, "--transpose", "--metric", "correlation", "--out", out)
    assert ran.code in (0, 4), ran
    check_same(by_pair(out), beliefs(signals=x, metric="correlation").probability)


def test_distances_and_their_number_of_signals(edgebelief, signals, tmp_path):
    path, out = tmp_path / "distances.csv", tmp_path / "belief.csv"
    e = np.zeros((12, 12))
    e[np.triu_indices(12, 1)] = distances(signals)
    pd.DataFrame(e + e.T, index=NAMES, columns=NAMES).to_csv(path)
    settings = ("--metric", "precomputed", "--n-signals", 200)
    ran = edgebelief("belief", path, *settings, "--out", out)
    assert ran.code == 0, ran
    check_same(by_pair(out), beliefs(e + e.T, n_signals=200).probability)


def test_it_says_when_it_is_lost(edgebelief, tmp_path):
    digits = load_digits()
    images = digits.data[digits.target < 2][:24]
    e = pd.DataFrame(((images[:, None] - images) ** 2).sum(-1))
    e.index = e.columns = [f"image{k}" for k in range(24)]
    path, out, page = (tmp_path / name for name in ("odd.csv", "belief.csv", "odd.html"))
    e.to_csv(path)
    options = ("--metric", "precomputed", "--out", out, "--report", page, "--json")
    ran = edgebelief("belief", path, *options)
    assert ran.code == 4, ran
    assert out.exists()
    (row,) = ran.json()["typicality"]
    assert row["lost"]
    assert row["slope"] < 1
    assert "warning" not in ran.err
    assert "unlike the world" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--n-signals", 20], "--metric precomputed"),
        (["--density", 0.5, 0.1], "low to high"),
        (["--density", 0.0, 1.5], "between 0 and 1"),
        (["--covariates", "signals.csv"], "go with labels"),
        (["--fdr", 0.1, "--top-k", 3], "fdr"),
    ],
)
def test_wrong_options_are_refused(edgebelief, table, tmp_path, arguments, match):
    arguments = [table if a == "signals.csv" else a for a in arguments]
    ran = edgebelief("belief", table, "--out", tmp_path / "belief.csv", *arguments)
    assert ran.code in (2, 3), ran
    assert match in " ".join((ran.out + ran.err).split())
    assert not (tmp_path / "belief.csv").exists()
