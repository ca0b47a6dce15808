"""What a new user's table of signals meets."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgebelief import load
from edgebelief.data import ErdosRenyi, adjacency_of, smooth_signals


@pytest.fixture
def expression(tmp_path, monkeypatch):
    """A table of signals on a known graph, in columns with baselines and units of their own."""
    monkeypatch.chdir(tmp_path)
    graph = ErdosRenyi(0.08).sample(1, n_nodes=40)
    rng, x = np.random.default_rng(1), smooth_signals(2, graph, n_signals=100)
    values = rng.lognormal(0, 1, 40) * x + 5 * rng.lognormal(1, 1, 40)
    names = [f"G{i}" for i in range(40)]
    pd.DataFrame(values, columns=names).to_csv("expression.csv", index=False)
    return pd.DataFrame(adjacency_of(graph), names, names)


def test_learn_finds_edges_among_columns_of_unequal_scales(edgebelief, expression):
    def precision(*more):
        arguments = ["learn", "expression.csv", "--degree", 4, "--out", "o.csv", "--force", *more]
        ran = edgebelief(*arguments)
        best = pd.read_csv("o.csv").head(20)
        return ran, np.mean(
            [expression.loc[i, j] for i, j in zip(best.source, best.target, strict=True)]
        )

    ran, share = precision()
    assert share >= 0.6
    assert "standardized" in ran.out
    raw, share = precision("--preprocess", "none")
    assert share <= 0.3
    assert "unequal scales" in raw.err
    assert "--preprocess standardize" in raw.err


def test_fit_and_elicit_standardize_like_learn(edgebelief, expression):
    edges = expression.reset_index(names="node")
    edges.to_csv("edges.csv", index=False)
    fit = [
        "fit",
        "expression.csv",
        "-l",
        "edges.csv",
        "--metric",
        "sqeuclidean",
        "--depth",
        5,
        "--readout",
        "affine",
    ]
    ran = edgebelief(*fit, "--out", "m.eb")
    assert load("m.eb").preprocess == "standardize"
    assert "unequal scales" not in ran.err
    edgebelief(*fit, "--out", "raw.eb", "--preprocess", "none")
    assert load("raw.eb").preprocess is None
    told = ["expression.csv", "--metric", "sqeuclidean", "--depth", 5, "--readout", "affine"]
    assert "standardized first" in edgebelief("elicit", *told, "--density", 0.05, 0.4).out
    assert "standardized first" in edgebelief("check", *told, "--draws", 20).out


def test_prices_are_doubted(edgebelief, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = np.random.default_rng(0).normal(size=(200, 8))
    pd.DataFrame(np.exp(0.01 * steps.cumsum(0))).to_csv("prices.csv", index=False)
    learn = ["learn", "prices.csv", "--out", "o.csv", "--force", "--metric", "correlation"]
    ran = edgebelief(*learn)
    assert "wander like prices" in ran.err
    assert "--preprocess log-returns" in ran.err
    assert "wander" not in edgebelief(*learn, "--preprocess", "log-returns").err


def test_transform_is_the_old_name_of_preprocess(edgebelief, expression):
    learn = ["learn", "expression.csv", "--out", "o.csv", "--force", "--json"]
    old, new = (edgebelief(*learn, flag, "diff") for flag in ("--transform", "--preprocess"))
    said = old.json()
    assert "called --preprocess now" in said["warnings"].pop(0)
    assert said == new.json()
    assert "--transform" not in edgebelief("learn", "--help").out


def test_groups_may_be_unknown(edgebelief, walk, small):
    Path("groups.csv").write_text("node,group\nada,x\nbob,x\ncy,\ndee,y\n")
    Path("known.csv").write_text("node,ada,bob,cy,dee\nada,0,1,,\nbob,1,0,,\ncy,,,0,\ndee,,,,0\n")
    score = ["score", walk / "model.eb", "distances.csv", "--json"]
    assert edgebelief(*score, "--groups", "groups.csv") == edgebelief(*score, "-l", "known.csv")


def test_groups_that_are_covariates_too_are_a_leak(edgebelief, small):
    Path("groups.csv").write_text("node,group\nada,x\nbob,x\ncy,y\ndee,y\n")
    fit = ["fit", "distances.csv", "--groups", "groups.csv", "--depth", 5, "--out", "m.eb"]
    more = ["--covariates", "groups.csv", "--readout", "additive", "--evidence", "none"]
    assert "both --groups and --covariates" in edgebelief(*fit, *more).err
    shutil.copy("groups.csv", "copy.csv")
    more[1] = "copy.csv"
    assert "copy.csv: is a copy of --groups" in edgebelief(*fit, *more, "--force").err


def test_labels_that_are_covariates_too_are_a_leak(edgebelief, small):
    Path("pairs.csv").write_text("source,target,road\nada,bob,1\ncy,dee,1\nada,dee,1\n")
    fit = ["fit", "distances.csv", "--labels", "pairs.csv", "--depth", 5, "--out", "m.eb"]
    more = ["--covariates", "pairs.csv", "--readout", "additive"]
    assert "both --labels and --covariates" in edgebelief(*fit, *more).err


def test_learn_on_nearest_neighbours_says_what_they_missed(edgebelief, expression):
    learn = ["learn", "expression.csv", "--theta", 1, "--force", "--out", "o.csv"]
    edgebelief(*learn)
    everything = pd.read_csv("o.csv")
    few = ["--support", "knn", "--neighbours", 2]
    assert "were no candidates" in edgebelief(*learn, *few).out
    assert len(pd.read_csv("o.csv")) < len(everything)
    assert "this is the graph on all pairs" in edgebelief(*learn, *few, "--exact").out
    pd.testing.assert_frame_equal(pd.read_csv("o.csv"), everything, atol=1e-6)


def test_options_for_neighbours_are_named_as_options(edgebelief, expression):
    learn = ["learn", "expression.csv", "--out", "o.csv"]
    wrong = edgebelief(*learn, "--exact")
    assert wrong.code == 2
    assert "--support knn" in wrong.err
