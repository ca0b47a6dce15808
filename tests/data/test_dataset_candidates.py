"""Data sets of graphs in which only some pairs may be edges."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from edgebelief.data import GraphDataset, load_dataset, pair_covariates, save_dataset
from edgebelief.data.coerce import Nearest, graphs_from
from edgebelief.data.dataset import Outside, on_candidates
from edgebelief.edges import Complete, Restricted
from edgebelief.errors import InputError

RING = Restricted.from_pairs([(0, 1), (1, 2), (2, 3), (0, 3)])
A = np.array([[0, 1, 1, 0], [1, 0, 0, np.nan], [1, 0, 0, 1], [0, np.nan, 1, 0]], float)


def test_labels_of_candidates_and_of_other_pairs_are_told_apart():
    for labels in (A, sp.csr_array(A)):
        values, outside = on_candidates(labels, RING)
        np.testing.assert_array_equal(values, [1, 0, 1, 0])
        assert outside == Outside(n_labels=1, n_edges=1)  # (0, 2) is an edge, (1, 3) unknown


def test_the_matrix_of_labels_stays_the_callers():
    entries = np.array([1.0, 1.0, 0.0, 0.0, 5.0]), (np.array([0, 1, 1, 2, 3]), [1, 0, 2, 1, 3])
    labels = sp.coo_array(entries, shape=(4, 4)).tocsr()
    before = labels.copy()
    values, _ = on_candidates(labels, RING)
    np.testing.assert_array_equal(values, [1, 0, 0, 0])
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(labels, name), getattr(before, name))


def test_a_data_set_of_all_pairs_is_restricted_to_near_neighbours(rng):
    e = rng.gamma(2.0, size=15)
    a = np.where(rng.uniform(size=15) < 0.2, np.nan, rng.integers(0, 2, 15))
    data = GraphDataset([e], [a], covariates=[{"x": np.arange(15.0)}])
    (record,) = graphs_from(data, nearest=Nearest(2)).data
    matrix = Complete(6).to_matrix(e)
    (expected,) = graphs_from(matrix, Complete(6).to_matrix(a), nearest=Nearest(2)).data
    for name in ("e", "a", "known"):
        np.testing.assert_array_equal(getattr(record, name), getattr(expected, name))
    assert record.outside == expected.outside
    where = Complete(6).to_matrix(np.arange(15.0))
    np.testing.assert_array_equal(record.covariates["x"], record.candidates.to_vector(where))


def test_a_data_set_has_a_stack_for_each_list_of_candidates():
    e = [np.arange(1.0, 5), np.arange(1.0, 7), np.arange(6.0)]
    data = GraphDataset(e, [A, A, None], supports=[RING, None, None])
    stacks = data.stacks()
    assert [stack.places.tolist() for stack in stacks] == [[1, 2], [0]]
    assert [type(stack.support) for stack in stacks] == [Complete, Restricted]
    assert [record.outside for record in data] == [Outside(1, 1), None, None]
    assert data.n_labels == 4 + 5


def test_a_matrix_of_distances_is_read_at_the_candidates():
    matrix = Complete(4).to_matrix(np.arange(1.0, 7))
    data = GraphDataset([matrix], supports=[RING])
    np.testing.assert_array_equal(data[0].e, RING.to_vector(matrix))


def test_covariates_are_looked_up_at_the_candidates():
    names = ["a", "b", "c", "d"]
    nodes = pd.DataFrame({"age": [1.0, 2.0, 4.0, 8.0]}, names)
    everywhere = pair_covariates(nodes, names)["age gap"]
    few = pair_covariates(nodes, names, RING)["age gap"]
    np.testing.assert_array_equal(few, RING.to_vector(Complete(4).to_matrix(everywhere)))
    i, j = RING.endpoints
    table = pd.DataFrame({"source": np.array(names)[j], "target": np.array(names)[i], "x": few})
    np.testing.assert_array_equal(pair_covariates(table, names, RING)["x"], few)
    with pytest.raises(InputError, match="has no row"):
        pair_covariates(table[1:], names, RING)


def test_a_file_keeps_candidates(tmp_path):
    e = [np.arange(1.0, 5), np.arange(1.0, 7)]
    extra = [{"x": np.arange(4.0)}, {"x": np.arange(6.0)}]
    data = GraphDataset(e, [A, A], covariates=extra, supports=[RING, None])
    save_dataset(tmp_path / "data.npz", data)
    again = load_dataset(tmp_path / "data.npz")
    for one, other in zip(data, again, strict=True):
        assert one.names == other.names
        assert one.outside == other.outside
        assert (one.candidates is None) == (other.candidates is None)
        for x, y in zip(one.support.endpoints, other.support.endpoints, strict=True):
            np.testing.assert_array_equal(x, y)
        for name in ("e", "a", "known"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(one.covariates["x"], other.covariates["x"])


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    save_dataset(path, GraphDataset([np.ones(4)], supports=[RING]))
    arrays = dict(np.load(path))
    for name, value in {"pairs": np.zeros((3, 2), int), "outside": np.zeros((2, 2), int)}.items():
        np.savez(path, **{**arrays, name: value})
        with pytest.raises(InputError, match="candidates"):
            load_dataset(path)
    np.savez(path, **{**arrays, "pairs": np.array([[0, 1], [1, 2], [2, 3], [2, 3]])})
    with pytest.raises(InputError, match="more than once"):
        load_dataset(path)
