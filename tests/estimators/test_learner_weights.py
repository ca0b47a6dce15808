import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from edgebelief import GraphLearner, load
from edgebelief.data import GraphDataset, RandomGeometric, load_dataset, save_dataset
from edgebelief.infer import EdgeModel, WeightedEdges
from edgebelief.networks import DPG
from edgebelief.report.words import number
from weighted import PARAMS, drawn_from

DEPTH = 10
NAMES = [f"n{i}" for i in range(8)]


@pytest.fixture(scope="module")
def data():
    base = GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=10, n_nodes=8, n_signals=100)
    return drawn_from(EdgeModel(DPG(depth=DEPTH), likelihood=WeightedEdges()), PARAMS, base, 0)


@pytest.fixture(scope="module")
def learner(data):
    return GraphLearner(readout="affine", depth=DEPTH, weighted=True).fit(data[:8])


def as_graph(matrix):
    return nx.relabel_nodes(nx.from_numpy_array(matrix), dict(enumerate(NAMES)))


def as_edges(matrix):
    rows, cols = np.nonzero(np.triu(matrix))
    return pd.DataFrame(
        {"source": np.array(NAMES)[rows], "target": np.array(NAMES)[cols],
         "weight": matrix[rows, cols], "kind": 1.0}
    )  # fmt: skip


FORMS = {
    "matrix": lambda m: m,
    "sparse": sparse.csr_array,
    "graph": as_graph,
    "edge list": as_edges,
    "frame": lambda m: pd.DataFrame(m, NAMES, NAMES),
}


@pytest.mark.parametrize("form", FORMS)
def test_weights_come_in_the_forms_people_have(data, form):
    learner = GraphLearner(readout="affine", depth=DEPTH, weighted=True)
    X = [pd.DataFrame(record.distance_matrix(), NAMES, NAMES) for record in data]
    A = [FORMS[form](record.weight_matrix()) for record in data]
    found = learner._graphs(X, A).data
    for got, record in zip(found, data, strict=True):
        np.testing.assert_allclose(got.w, record.w)
        np.testing.assert_array_equal(got.a, record.a)


def test_what_no_weight_is_is_refused(data):
    X, w = data[0].distance_matrix(), data[0].weight_matrix()
    i, j = np.argwhere(w > 0)[0]

    def changed(value):
        other = w.copy()
        other[i, j] = other[j, i] = value
        return other

    weighted = GraphLearner(readout="affine", depth=DEPTH, weighted=True)
    for value, cure in ((-1.0, "Take its size"), (np.inf, "say NaN")):
        with pytest.raises(ValueError, match=rf"\['{i}', '{j}'\] is {value:g}.*{cure}"):
            weighted.fit(X, changed(value))
    with pytest.raises(ValueError, match=r"or keep them \(weighted=True\)"):
        GraphLearner(readout="affine", depth=DEPTH).fit(X, w)
    with pytest.raises(TypeError, match="weighted must be True or False"):
        GraphLearner(weighted="yes").fit(X, w)
    with pytest.raises(ValueError, match="has no attribute weight"):
        weighted.fit(X, nx.path_graph(8))
    with pytest.raises(ValueError, match="no column weight"):
        weighted.fit(X, pd.DataFrame({"source": ["0"], "target": ["1"]}))
    with pytest.raises(ValueError, match="every edge has the weight 1"):
        weighted.fit(X, (w > 0).astype(float))
    with pytest.raises(ValueError, match="MIMO has 4"):
        GraphLearner("mimo", weighted=True).fit(X, w)


def test_unknown_weights_do_not_count(data, learner):
    w = np.where(np.arange(28) < 20, data[8].w, np.nan)
    record = GraphDataset([data[8].e], [w], weighted=True)[0]
    np.testing.assert_array_equal(record.known, np.arange(28) < 20)
    np.testing.assert_array_equal(np.isnan(record.w), ~record.known)
    assert np.isfinite(learner.score(GraphDataset([data[8].e], [w], weighted=True)))


@pytest.mark.slow
def test_predictions_go_into_table_graph_and_matrices(data, learner):
    X = data[8].distance_matrix()
    belief = learner.predict_weights(X)
    assert belief.mean.shape == (8, 8)
    np.testing.assert_allclose(belief.probability, learner.predict_proba(X))
    table = learner.edge_table(X)
    columns = ["high", "weight", "weight_low", "weight_high", "decision"]
    assert table.columns.tolist()[-5:] == columns
    row = table.iloc[0]
    i, j = int(row["source"]), int(row["target"])
    assert row["weight"] == belief.mean[i, j]
    assert (row["weight_low"], row["weight_high"]) == (belief.low[i, j], belief.high[i, j])
    assert "weight_low" not in learner.edge_table(X, level=None)
    graph = learner.to_networkx(X)
    assert graph.edges[row["source"], row["target"]]["weight"] == row["weight"]
    several = learner.predict_weights(data[8:])
    assert several.high.shape == (2, 8, 8)
    scores = learner.weight_scores(data[8:])
    assert 0.6 < scores["weight_coverage"] <= 1
    assert 0 < scores["crps"] < scores["crps_given_edge"]
    assert learner.score(data[8:]) > learner.score(
        GraphDataset([r.e for r in data[8:]], [20 * r.w for r in data[8:]], weighted=True)
    )


def test_files_keep_everything(data, learner, tmp_path):
    learner.save(tmp_path / "model.eb")
    again = load(tmp_path / "model.eb")
    assert again.weighted
    assert again.model_.parameters == learner.model_.parameters
    pd.testing.assert_frame_equal(again.posterior_.summary(), learner.posterior_.summary())
    for one, other in zip(
        again.predict_weights(data[8:]), learner.predict_weights(data[8:]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    drawn, before = again.posterior_.draws(1, 50), learner.posterior_.draws(1, 50)
    assert all(np.array_equal(drawn[name], before[name]) for name in before)
    save_dataset(tmp_path / "data.npz", data)
    kept = load_dataset(tmp_path / "data.npz")
    assert all(np.array_equal(one.w, record.w) for one, record in zip(kept, data, strict=True))
    mixed = data[:1] + GraphDataset([data[1].e], [data[1].a])
    with pytest.raises(ValueError, match="of every graph, or of none"):
        save_dataset(tmp_path / "mixed.npz", mixed)


@pytest.mark.slow
def test_report_lists_weights(data, learner, tmp_path):
    page = learner.report(tmp_path / "report.html", data[8:]).read_text()
    table = learner.edge_table(data[8:])
    first = table.sort_values("probability", ascending=False, kind="stable").iloc[0]
    assert "weight, if an edge" in page
    assert f"{number(first['weight'])} ({number(first['weight_low'])} to" in page
    assert "with 1 they are proportional" in page


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore:prior dominates", "ignore:Pareto k", "ignore:R-hat", "ignore:effective draws"
)
def test_additive_readouts_have_weights_too(data, tmp_path):
    learner = GraphLearner(depth=DEPTH, weighted=True, readout="additive").fit(data[:8])
    assert 0.6 < learner.weight_scores(data[8:])["weight_coverage"] <= 1
    learner.save(tmp_path / "model.eb")
    again = load(tmp_path / "model.eb").predict_weights(data[8:])
    np.testing.assert_array_equal(again.low, learner.predict_weights(data[8:]).low)
