"""Weighted edges, from the shell."""

import numpy as np
import pandas as pd
import pytest

from edgebelief.data import load_dataset, read_table, save_dataset, write_edges, write_matrix
from edgebelief.data.dataset import GraphDataset

pytestmark = pytest.mark.filterwarnings("ignore:prior dominates")


@pytest.fixture
def roads(edgebelief, tmp_path):
    """data.npz: six graphs with weights. distances.csv, weights.csv: the first of them."""
    drawn = tmp_path / "drawn.npz"
    simulate = ("--nodes", 8, "--graphs", 6, "--signals", 100)
    assert edgebelief("simulate", *simulate, "--out", drawn).code == 0
    rng = np.random.default_rng(0)
    plain = load_dataset(drawn)
    w = [r.a * np.exp(1 - r.e + 0.3 * rng.standard_normal(r.e.size)) for r in plain]
    data = GraphDataset([r.e for r in plain], w, n_signals=100, weighted=True)
    save_dataset(tmp_path / "data.npz", data)
    write_matrix(tmp_path / "distances.csv", data[0].distance_matrix(), data[0].names)
    write_edges(tmp_path / "weights.csv", data[0].w, data[0].names)
    return tmp_path


@pytest.mark.slow
def test_fit_predict_score(edgebelief, roads):
    fit = ("fit", roads / "data.npz", "--depth", 10, "--readout", "affine", "--weighted")
    ran = edgebelief(*fit, "--out", roads / "model.eb", "--json")
    assert ran.code in (0, 4)
    assert ran.json()["weighted"]
    assert {"level", "slope", "weight_sd"} <= set(ran.json()["posterior"])
    given = (roads / "model.eb", roads / "data.npz")
    assert edgebelief("predict", *given, "--out", roads / "o.csv").code == ran.code
    table = read_table(roads / "o.csv")
    low, mean, high = (
        pd.to_numeric(table[name]) for name in ("weight_low", "weight", "weight_high")
    )
    assert ((low < mean) & (mean < high)).mean() > 0.9
    scored = edgebelief("score", *given, "--json").json()
    assert 0.7 < scored["weight_coverage"] <= 1
    assert scored["crps"] > 0
    assert "90 % intervals hold" in edgebelief("score", *given).out


def test_labels_are_weights_when_asked(edgebelief, roads):
    fit = (
        "fit",
        roads / "distances.csv",
        "--labels",
        roads / "weights.csv",
        "--depth",
        10,
        "--readout",
        "affine",
    )
    ran = edgebelief(*fit, "--out", roads / "one.eb")
    assert ran.code == 3
    assert "keep them (--weighted)" in ran.err
    assert edgebelief(*fit, "--weighted", "--out", roads / "one.eb").code in (0, 4)
    check = ("check", *fit[1:], "--draws", 20, "--json")
    assert edgebelief(*check).code == 3
    checked = edgebelief(*check, "--weighted").json()["prior"]
    assert checked["observed"] == (load_dataset(roads / "data.npz")[0].w > 0).mean()
    (roads / "groups.csv").write_text("node,group\n" + "".join(f"{i},x\n" for i in range(8)))
    ran = edgebelief("fit", roads / "distances.csv", "--groups", roads / "groups.csv",
                     "--weighted", "--out", roads / "two.eb")  # fmt: skip
    assert ran.code == 2
    assert "not by how much" in ran.err
