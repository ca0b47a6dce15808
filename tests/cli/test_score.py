"""Scores of graphs that were fitted, and of nodes that were held out."""

import numpy as np
import pytest

from edgebelief import GraphLearner, load
from edgebelief.data import load_dataset, save_dataset


def test_held_out_nodes_of_one_graph_are_scored_as_in_python(edgebelief, walk):
    score = ["score", walk / "signals.eb", walk / "signals.csv", "-l", walk / "edges.csv"]
    fitted = edgebelief(*score, "--json").json()
    assert "--cv nodes" in fitted["warnings"][0]
    held_out = edgebelief(*score, "--cv", "nodes", "--json").json()
    assert not any("were fitted" in warning for warning in held_out.get("warnings", []))
    assert held_out["edge_nll"] > fitted["edge_nll"]
    assert held_out["held_out"] == "nodes"


def test_a_report_scores_held_out_nodes(edgebelief, walk, tmp_path):
    of = [walk / "signals.eb", walk / "signals.csv", "-l", walk / "edges.csv", "--cv", "nodes"]
    answer = edgebelief("score", *of, "--json").json()
    edgebelief("report", *of, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "has not seen it" in page
    assert f'<td class="value">{answer["ece"]:.4g}</td>' in page
    ran = edgebelief("report", *of[:2], "--cv", "nodes", "--out", tmp_path / "none.html")
    assert (ran.code, "nothing to hold out" in ran.err) == (3, True)


def test_held_out_graphs_are_predicted_by_fits_to_the_others(edgebelief, walk):
    score = ["score", walk / "model.eb", walk / "data.npz", "--cv", "graphs"]
    learner, data = load(walk / "model.eb"), load_dataset(walk / "data.npz")
    expected = learner.calibration_report(data, cv="graphs").as_dict()
    answer = edgebelief(*score, "--json").json()
    assert {name: answer[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert "a fit that has held out its graph" in edgebelief(*score).out


def test_one_graph_cannot_be_held_out_as_a_whole(edgebelief, walk):
    score = ["score", walk / "signals.eb", walk / "signals.csv", "-l", walk / "edges.csv"]
    ran = edgebelief(*score, "--cv", "graphs")
    assert ran.code == 3
    assert "hold out nodes" in ran.err


def test_fitted_graphs_are_noticed_among_others(edgebelief, walk, tmp_path):
    """Also after saving, in other places, and not where labels differ."""
    data = load_dataset(walk / "data.npz")
    GraphLearner(depth=5, readout="affine").fit(data[:3]).save(tmp_path / "m.eb")
    save_dataset(tmp_path / "mixed.npz", data[4:] + data[1:3])
    score = ["score", tmp_path / "m.eb"]
    (warning,) = edgebelief(*score, tmp_path / "mixed.npz", "--json").json()["warnings"]
    assert "2 of these 4 graphs (by index: 2, 3) were fitted" in warning
    save_dataset(tmp_path / "other.npz", data[3:])
    assert not edgebelief(*score, tmp_path / "other.npz", "--json").json().get("warnings")
    fingerprint = load(tmp_path / "m.eb").posterior_.fingerprint
    assert fingerprint.seen(data) == [0, 1, 2]
    relabelled = type(data)([r.e for r in data], [np.where(r.known, 1 - r.a, r.a) for r in data])
    assert fingerprint.seen(relabelled) == []
