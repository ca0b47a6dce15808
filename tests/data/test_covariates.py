"""What is known of pairs: every form means the same, and what is wrong is said."""

import numpy as np
import pandas as pd
import pytest

from edgebelief.data import (
    GraphDataset,
    load_dataset,
    pair_covariates,
    read_covariates,
    save_dataset,
)
from edgebelief.data.coerce import graphs_from
from problems import readable

NAMES = ("ada", "bob", "cy")
PAIRS = pd.DataFrame(
    {
        "target": ["bob", "ada", "cy"],
        "source": ["cy", "bob", "ada"],
        "rain": [3.0, 1.0, 2.0],
        "kind": ["road", "rail", "road"],
        "known": [True, False, True],
    }
)
# In the order of the pairs: ada-bob, ada-cy, bob-cy.
RAIN, KIND, KNOWN = [1.0, 2.0, 3.0], ["rail", "road", "road"], [0.0, 1.0, 1.0]


def test_a_frame_of_pairs_in_any_order_either_way_round():
    found = pair_covariates(PAIRS, NAMES)
    assert found["rain"].tolist() == RAIN
    assert found["kind"].tolist() == KIND
    assert found["known"].tolist() == KNOWN
    assert not found["rain"].flags.writeable


def test_matrices_and_vectors_are_the_same():
    rain = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]], float)
    kind = np.array([["", "rail", "road"], ["rail", "", "road"], ["road", "road", ""]])
    named = pd.DataFrame(rain, NAMES, NAMES).loc[["cy", "ada", "bob"], ["cy", "ada", "bob"]]
    for given in (rain, named, RAIN):
        assert pair_covariates({"rain": given}, NAMES)["rain"].tolist() == RAIN
    for given in (kind, KIND, pd.Categorical(KIND)):
        assert pair_covariates({"kind": given}, NAMES)["kind"].tolist() == KIND


def test_a_frame_of_nodes_says_how_far_apart_and_whether_the_same():
    nodes = pd.DataFrame({"age": [50, 30, 34], "team": ["x", "y", "x"]}, ["cy", "ada", "bob"])
    found = pair_covariates(nodes, NAMES)
    assert found["age gap"].tolist() == [4.0, 20.0, 16.0]
    assert found["same team"].tolist() == [0.0, 0.0, 1.0]


BAD = {
    "a number": (3, "data frame"),
    "a missing pair": (PAIRS[:2], "'ada', 'cy' has no row"),
    "a pair twice": (PAIRS.iloc[[0, 1, 2, 0]], "two rows"),
    "a stranger": (PAIRS.replace("cy", "dee"), "not among the nodes"),
    "a node with itself": (PAIRS.assign(source=PAIRS["target"]), "paired with itself"),
    "a gap": (PAIRS.assign(rain=[1.0, np.nan, 2.0]), "'rain' is missing for bob, ada"),
    "a gap of text": (PAIRS.assign(kind=["a", None, "b"]), "'kind' is missing"),
    "infinite": (PAIRS.assign(rain=[1.0, np.inf, 2.0]), "infinite"),
    "nothing": (PAIRS[["source", "target"]], "there are none"),
    "no mapping": ({}, "there are none"),
    "a wrong shape": ({"rain": np.ones((2, 2))}, "shape"),
    "asymmetric": ({"rain": np.arange(9.0).reshape(3, 3)}, "not symmetric"),
    "asymmetric text": ({"kind": np.array(list("abcdefghi")).reshape(3, 3)}, "not symmetric"),
    "a missing node": (pd.DataFrame({"age": [1, 2]}, ["ada", "bob"]), "no row for nodes"),
    "durations": ({"rain": pd.to_timedelta([1, 2, 3])}, "numbers"),
}


@pytest.mark.parametrize("case", BAD, ids=readable)
def test_what_is_wrong_is_said(case):
    given, message = BAD[case]
    with pytest.raises((TypeError, ValueError), match=message):
        pair_covariates(given, NAMES)


def test_a_data_set_keeps_them_through_labels_files_and_slices(tmp_path):
    e = np.array([1.0, 2.0, 3.0])
    given = [PAIRS, {"rain": RAIN, "kind": KIND, "known": KNOWN}]
    data = GraphDataset([e, e], names=[NAMES, NAMES], covariates=given)
    data = graphs_from(data, [np.array([1, 0, 1])] * 2).data
    save_dataset(tmp_path / "d.npz", data)
    for same in (data, data[::-1], load_dataset(tmp_path / "d.npz")):
        for record in same:
            assert record.covariates["kind"].tolist() == KIND
            assert record.covariates["rain"].tolist() == RAIN
    (stack,) = data.stacks()
    assert stack.part(slice(1)).covariates["kind"].shape == (1, 3)
    with pytest.raises(TypeError, match="several graphs"):
        GraphDataset([e], names=[NAMES], covariates=PAIRS)
    with pytest.raises(ValueError, match="graph 1: covariates"):
        GraphDataset([e, e], names=[NAMES, NAMES], covariates=[PAIRS, PAIRS[:1]])
    with pytest.raises(ValueError, match="same covariates"):
        save_dataset(tmp_path / "e.npz", data + GraphDataset([e]))


def test_new_ones_join_those_that_are_there():
    data = GraphDataset([[1.0, 2.0, 3.0]], names=[NAMES], covariates=[{"rain": RAIN}])
    found = graphs_from(data, covariates=[{"kind": KIND}]).data
    assert set(found[0].covariates) == {"rain", "kind"}
    with pytest.raises(ValueError, match="those of 2 graphs and X has 1"):
        graphs_from(data, covariates=[{"kind": KIND}] * 2)


def test_damaged_files_are_refused(tmp_path):
    data = GraphDataset([[1.0, 2.0, 3.0]], names=[NAMES], covariates=[{"rain": RAIN}])
    save_dataset(tmp_path / "d.npz", data)
    arrays = dict(np.load(tmp_path / "d.npz"))
    for change in ({"covariate.0": np.ones(2)}, {"covariates": np.array(["rain", "rain"])}):
        np.savez(tmp_path / "e.npz", **(arrays | change))
        with pytest.raises(ValueError, match="damaged"):
            load_dataset(tmp_path / "e.npz")


def test_tables_of_pairs_and_of_nodes(tmp_path):
    pairs, nodes = tmp_path / "pairs.csv", tmp_path / "nodes.csv"
    PAIRS.to_csv(pairs, index=False)
    assert pair_covariates(read_covariates(pairs), NAMES)["rain"].tolist() == RAIN
    nodes.write_text("name;age;team\nada;30,5;x\nbob;34,5;y\ncy;50,5;x\n")
    found = pair_covariates(read_covariates(nodes), NAMES)
    assert found["age gap"].tolist() == [4.0, 20.0, 16.0]
    assert found["same team"].tolist() == [0.0, 1.0, 0.0]
    nodes.write_text("name,age\nada,30\nbob,\ncy,50\n")
    with pytest.raises(ValueError, match="'age' is missing for bob"):
        pair_covariates(read_covariates(nodes), NAMES)
    nodes.write_text("source,target\nada,bob\n")
    with pytest.raises(ValueError, match="no covariates"):
        read_covariates(nodes)
