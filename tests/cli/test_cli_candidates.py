"""Large graphs in the shell: --support knn."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgebelief.cli import main
from edgebelief.data import ErdosRenyi, adjacency_of, nearest_pairs, smooth_signals

N, K = 10, 3
FIT = ["fit", "one.csv", "two.csv", "--labels", "one edges.csv", "--labels", "two edges.csv"]
FIT += ["--metric", "sqeuclidean", "--readout", "affine", "--depth", "20", "--inference", "laplace"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"n{i}" for i in range(N)]
    for t, name in enumerate(["one", "two"]):
        graph = ErdosRenyi(0.4).sample(t, N)
        x = pd.DataFrame(smooth_signals(t, graph, 80), columns=names)
        x.to_csv(f"{name}.csv", index=False)
        i, j = np.nonzero(np.triu(adjacency_of(graph)))
        edges = pd.DataFrame({"source": np.array(names)[i], "target": np.array(names)[j]})
        edges.to_csv(f"{name} edges.csv", index=False)
    return x


def test_a_fit_and_a_prediction_are_about_candidates(files, capsys):
    fit = [*FIT, "--support", "knn", "--neighbours", str(K), "--out", "m.eb"]
    assert main(fit) in (0, 4)
    assert "only near neighbours" in capsys.readouterr().out
    assert main(["predict", "m.eb", "two.csv", "--out", "belief.csv"]) == 0
    x = files / files.std(ddof=0)  # as the shell does for squared distances
    support, _ = nearest_pairs(x, K)
    assert len(pd.read_csv("belief.csv")) == support.n_edges
    assert main(["report", "m.eb", "two.csv", "--out", "page.html"]) == 0
    page = Path("page.html").read_text("utf-8")
    assert "null" in page  # no distance
    assert "only near neighbours" in page


def test_labels_of_unknown_nodes_are_refused(files, capsys):
    table = pd.read_csv("two edges.csv")
    table.loc[0, "source"] = "stranger"
    table.to_csv("two edges.csv", index=False)
    assert main([*FIT, "--support", "knn", "--out", "m.eb"]) == 3
    assert "stranger" in capsys.readouterr().err
