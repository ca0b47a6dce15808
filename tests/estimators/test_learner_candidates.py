"""GraphLearner(support="knn"): belief in graphs in which only near neighbours may be edges."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsTransformer

from edgebelief import GraphLearner, load, metrics
from edgebelief.data import ErdosRenyi, adjacency_of, distances, nearest_pairs, smooth_signals
from edgebelief.edges import Complete
from edgebelief.errors import InputError, InputTypeError, SettingError
from edgebelief.persist.modelfile import ModelFileError

N, P, K = 12, 200, 2
SETTINGS = {"metric": "sqeuclidean", "readout": "affine", "depth": 30}


@pytest.fixture(scope="module")
def graphs():
    drawn = [ErdosRenyi(0.3).sample(t, N) for t in range(5)]
    x = [smooth_signals(t, graph, P) for t, graph in enumerate(drawn)]
    return x, [adjacency_of(graph) for graph in drawn]


@pytest.fixture(scope="module")
def learner(graphs):
    x, a = graphs
    return GraphLearner(support="knn", n_neighbors=K, **SETTINGS).fit(x[:4], a[:4])


def test_with_all_pairs_for_candidates_it_is_the_dense_learner(graphs):
    """An oracle: the same network, labels and posterior, on the two layouts of a graph."""
    x, a = graphs
    dense = GraphLearner(**SETTINGS).fit(x[:4], a[:4])
    sparse = GraphLearner(support="knn", n_neighbors=N - 1, **SETTINGS).fit(x[:4], a[:4])
    one, other = dense.predict_proba(x[4]), sparse.predict_proba(x[4])
    assert sp.issparse(other)
    assert other.nnz == N * (N - 1)
    np.testing.assert_allclose(other.toarray(), one, atol=2e-5)
    assert np.isnan(sparse.missed_)  # there are no other pairs


def test_candidates_are_the_nearest_pairs(learner, graphs):
    x, _ = graphs
    support, _ = nearest_pairs(x[4], K)
    p = learner.predict_proba(x[4])
    rows, cols = sp.triu(p).nonzero()
    assert set(zip(rows, cols, strict=True)) == set(zip(*support.endpoints, strict=True))
    assert (p != p.T).nnz == 0


def test_edges_that_are_no_candidates_are_counted(learner, graphs):
    x, a = graphs
    missed = found = 0
    for signals, adjacency in zip(x[:4], a[:4], strict=True):
        support, _ = nearest_pairs(signals, K)
        found += support.to_vector(adjacency).sum()
        missed += np.triu(adjacency, 1).sum() - support.to_vector(adjacency).sum()
    assert missed > 0
    assert learner.missed_ == pytest.approx((missed + 0.5) / (missed + found + 1))
    assert f"{missed:g} of {missed + found:g} known edges" in str(learner.posterior_.verdict)
    row = learner.outside(x[4]).iloc[0]
    p = sp.triu(learner.predict_proba(x[4])).sum()
    assert row["candidates"] + row["others"] == N * (N - 1) / 2
    assert row["expected"] == pytest.approx(learner.missed_ / (1 - learner.missed_) * p)


def test_labels_in_every_form_are_the_same(learner, graphs):
    x, a = graphs
    forms = [
        [sp.csr_array(each) for each in a[:4]],
        [nx.from_numpy_array(each) for each in a[:4]],
        [pd.DataFrame(np.argwhere(np.triu(each)), columns=["source", "target"]) for each in a[:4]],
    ]
    expected = learner.posterior_.fingerprint.digest
    for labels in forms:
        other = GraphLearner(support="knn", n_neighbors=K, inference="laplace", **SETTINGS)
        assert other.fit(x[:4], labels).posterior_.fingerprint.digest == expected
        assert other.missed_ == learner.missed_


def test_unknown_labels_count_neither_way(graphs):
    x, a = graphs
    unknown = np.where(np.add.outer(np.arange(N), np.arange(N)) % 3 == 0, np.nan, a[0])
    learner = GraphLearner(support="knn", n_neighbors=K, inference="laplace", **SETTINGS)
    labels = [[form(unknown), *a[1:4]] for form in (np.asarray, sp.csr_array)]
    dense, sparse = (learner.fit(x[:4], each).posterior_.fingerprint for each in labels)
    assert dense == sparse
    supports = [nearest_pairs(signals, K)[0] for signals in x[:4]]
    known = np.isfinite(supports[0].to_vector(unknown)).sum()
    assert dense.n_labels == known + sum(support.n_edges for support in supports[1:])


def test_distances_are_a_dense_or_a_sparse_matrix(learner, graphs):
    x, a = graphs
    settings = {**SETTINGS, "metric": "precomputed"}
    other = GraphLearner(support="knn", n_neighbors=K, **settings)
    dense = [Complete(N).to_matrix(distances(signals)) for signals in x]
    listed = [support.to_sparse(e) for support, e in (nearest_pairs(signals, K) for signals in x)]
    expected = learner.predict_proba(x[4]).toarray()
    for values in (dense, listed):
        found = other.fit(values[:4], a[:4]).predict_proba(values[4])
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)
    with pytest.raises(InputTypeError, match="support"):
        GraphLearner(**settings).fit(listed[0], a[0])


def test_a_larger_graph_is_no_surprise(learner):
    """Warnings are errors: nodes have as many candidates in graphs of all sizes."""
    signals = smooth_signals(7, ErdosRenyi(0.1).sample(7, 4 * N), P)
    scale = learner.posterior_.fingerprint.scale / np.median(nearest_pairs(signals, K)[1])
    assert learner.predict_proba(np.sqrt(scale) * signals).shape == (4 * N, 4 * N)


def test_another_search_may_be_given(learner, graphs):
    x, a = graphs
    search = KNeighborsTransformer(n_neighbors=K, algorithm="brute")
    other = GraphLearner(support="knn", n_neighbors=K, neighbors=search, **SETTINGS)
    found = other.fit(x[:4], a[:4]).predict_proba(x[4])
    np.testing.assert_array_equal(found.toarray(), learner.predict_proba(x[4]).toarray())


def test_everything_a_learner_says_is_about_candidates(learner, graphs, tmp_path):
    x, a = graphs
    support, _ = nearest_pairs(x[4], K)
    table = learner.edge_table(x[4])
    assert len(table) == support.n_edges
    assert learner.decide(x[4], top_k=5).sum() == 10
    drawn = learner.sample_graphs(x[4], n=3)
    assert [each.shape for each in drawn] == [(N, N)] * 3
    beliefs = learner.predictions(x[4], a[4])
    assert metrics.edge_nll(beliefs) > 0
    assert learner.score(x[4], a[4]) < 0
    first = table.iloc[0]
    assert learner.explain(x[4], first["source"], first["target"]).shape[0] >= 2
    others = set(zip(*np.triu_indices(N, 1), strict=True)) - set(
        zip(*support.endpoints, strict=True)
    )
    with pytest.raises(InputError, match="no near neighbours"):
        learner.explain(x[4], *min(others))
    assert np.isnan(learner.typicality(x[4])["p"][0])
    graph = learner.to_networkx(x[4])
    assert graph.number_of_nodes() == N
    learner.save(tmp_path / "sparse.eb")
    again = load(tmp_path / "sparse.eb")
    p = learner.predict_proba(x[4])
    np.testing.assert_array_equal(again.predict_proba(x[4]).toarray(), p.toarray())
    assert again.missed_ == learner.missed_
    assert learner.report(tmp_path / "sparse.html", x[4], a[4]).exists()


def test_settings_and_data_that_do_not_fit_are_refused(graphs, tmp_path):
    x, a = graphs
    cases = [
        ({"support": "nearest"}, "support"),
        ({"support": "knn", "n_neighbors": 0}, "n_neighbors"),
        ({"support": "knn", "missing": "pairwise"}, "missing"),
        ({"support": "knn", "metric": lambda x: x}, "metric"),
        ({"support": "knn", "size_aware": True, "readout": "auto"}, "size_aware"),
        ({"neighbors": KNeighborsTransformer()}, "support"),
    ]
    for settings, match in cases:
        with pytest.raises((SettingError, InputTypeError), match=match):
            GraphLearner(**{**SETTINGS, **settings}).fit(x[:2], a[:2])
    gap = np.where(np.arange(N) == 3, np.nan, x[0])
    with pytest.raises(InputError, match="fill the gaps") as caught:
        GraphLearner(support="knn", **SETTINGS).fit(gap, a[0])
    assert "pairwise" not in str(caught.value)
    one_way = sp.csr_array(np.triu(a[0]))
    with pytest.raises(InputError, match="symmetric"):
        GraphLearner(support="knn", n_neighbors=K, **SETTINGS).fit(x[0], one_way)
    search = KNeighborsTransformer(n_neighbors=K)
    learner = GraphLearner(support="knn", n_neighbors=K, neighbors=search, **SETTINGS)
    learner.set_params(inference="laplace").fit(x[:2], a[:2])
    with pytest.raises(ModelFileError, match="search"):
        learner.save(tmp_path / "m.eb")
