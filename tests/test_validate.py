import numpy as np
import pandas as pd
import pytest

from edgebelief import solve
from edgebelief.edges import Complete, Restricted
from edgebelief.validate import (
    check_distances,
    check_edge_weights,
    check_labels,
    check_names,
    check_signals,
)


def square(n=4):
    matrix = np.arange(1.0, n * n + 1).reshape(n, n)
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0)
    return matrix


def broken(i, j, value, symmetric=True):
    matrix = square()
    matrix[i, j] = value
    if symmetric:
        matrix[j, i] = value
    return matrix


@pytest.mark.parametrize(
    ("e", "error", "message"),
    [
        (broken(1, 3, np.nan), ValueError, r"distances\[1, 3\] is nan; fill the gap"),
        (broken(0, 2, np.inf), ValueError, r"distances\[0, 2\] is inf"),
        (broken(0, 2, -np.inf), ValueError, r"distances\[0, 2\] is -inf: two nodes with identical"),
        (broken(3, 1, np.nan, symmetric=False), ValueError, r"distances\[1, 3\] is nan"),
        (broken(1, 3, 7.0, symmetric=False), ValueError, r"\[1, 3\] is 7 but \[3, 1\] is 22"),
        (broken(2, 2, 1.0), ValueError, r"distances\[2, 2\] is 1; the diagonal must be 0"),
        (np.eye(4) + square(), ValueError, "similarities"),
        (np.full(7, 1.0), ValueError, r"has 7 entries; a graph on N nodes has N\(N-1\)/2"),
        (np.zeros((1, 1)), ValueError, "at least 2 nodes"),
        (np.zeros((3, 4)), ValueError, "use edgebelief.data.distances"),
        (np.zeros((2, 3, 3)), ValueError, "one by one or use a GraphDataset"),
        (np.zeros(0), ValueError, "empty"),
        (np.array(["near", "far", "far"]), TypeError, "must be numbers"),
        (np.array([1, "2", 3], dtype=object), TypeError, "text"),
        (np.array([1j, 2, 3]), TypeError, "must be real"),
        ([[0, 1], [1]], TypeError, "array of numbers"),
        (5.0, ValueError, "vector"),
        (None, TypeError, "array of numbers"),
        (np.ma.masked_array([1, 2, -999.0], [0, 0, 1]), ValueError, r"distances\[1, 2\] is nan"),
        ([[0, 10000, 5], [9999, 0, 7], [5, 7, 0]], ValueError, "not symmetric"),
        ([[0, 2], [2, 1]], ValueError, r"distances\[1, 1\] is 1"),
        ([[0, 500.5, 7], [500.75, 0, 1000.5], [7, 1000.5, 0]], ValueError, "not symmetric"),
    ],
)
def test_bad_distances_are_refused_with_place_and_remedy(e, error, message):
    with pytest.raises(error, match=message):
        solve(e, 1.0)


def test_messages_use_the_names_of_a_data_frame():
    frame = pd.DataFrame(broken(1, 3, np.nan), columns=list("abcd"), index=list("abcd"))
    with pytest.raises(ValueError, match=r"distances\['b', 'd'\] is nan"):
        solve(frame, 1.0)


@pytest.mark.parametrize("diagonal", [0.0, -np.inf])
def test_diagonal_of_zero_or_minus_infinity_is_ignored(diagonal):
    matrix = square()
    np.fill_diagonal(matrix, diagonal)
    e, support = check_distances(matrix)
    assert support.n_nodes == 4
    np.testing.assert_array_equal(e, square()[np.triu_indices(4, k=1)])


def test_asymmetry_of_rounding_size_is_averaged_with_one_warning():
    matrix = square()
    matrix[0, 1] += 1e-12
    matrix[2, 2] = 1e-13
    with pytest.warns(UserWarning, match="by rounding") as caught:
        e, _ = check_distances(matrix)
    assert len(caught) == 1
    assert e[0] == pytest.approx(square()[0, 1] + 0.5e-12, abs=1e-15)


def test_rounding_of_float32_data_counts_as_rounding():
    matrix = square().astype(np.float32)
    matrix[0, 1] = np.nextafter(matrix[0, 1], np.float32(100))
    with pytest.warns(UserWarning, match="by rounding"):
        check_distances(matrix)


def test_negative_distances_are_legitimate_and_untouched():
    e, _ = check_distances(np.array([-1.0, -1e-17, 2.0]))
    np.testing.assert_array_equal(e, [-1.0, -1e-17, 2.0])


def test_the_callers_array_is_not_changed():
    matrix = square()
    matrix.flags.writeable = False
    before = matrix.copy()
    solve(matrix, 1.0)
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize(
    ("theta", "error"),
    [(0, ValueError), (-1, ValueError), (np.nan, ValueError), (np.inf, ValueError),
     ("big", TypeError), ("1.0", TypeError), (None, TypeError), ([1.0, 2.0], TypeError),
     (True, TypeError), (10**400, TypeError)],
)  # fmt: skip
def test_bad_theta_is_refused(theta, error):
    with pytest.raises(error, match="theta must be"):
        solve(np.ones(3), theta)


def test_support_and_distances_must_fit():
    ring = Restricted.from_pairs([(0, 1), (1, 2), (2, 3), (3, 0)])
    with pytest.raises(ValueError, match="has 6 entries, but the support has 4"):
        solve(np.ones(6), 1.0, support=ring)
    with pytest.raises(ValueError, match="has 3 nodes, but the support has 4"):
        solve(np.ones((3, 3)) - np.eye(3), 1.0, support=ring)


def test_gaps_outside_a_support_do_not_matter():
    ring = Restricted.from_pairs([(0, 1), (1, 2), (2, 3), (3, 0)])
    e, _ = check_distances(broken(0, 2, np.nan), ring)
    assert np.isfinite(e).all()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 1, 2]), r"labels\[1, 2\] is 2; .* Perhaps threshold"),
        (np.array([-1, 1, 1]), r"labels\[0, 1\] is -1; .* Perhaps map -1 to 0"),
        (np.array([0.5, 1, 0]), r"0 \(no edge\), 1 \(edge\) or NaN"),
        (np.zeros(4), r"labels has shape \(4,\)"),
        (np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), r"labels\[0, 1\] is 1 .* not symmetric"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        check_labels(labels, Complete(3))


def test_unknown_labels_are_masked():
    a, known = check_labels(np.array([1, np.nan, 0]), Complete(3))
    np.testing.assert_array_equal(a, [1, 0, 0])
    np.testing.assert_array_equal(known, [True, False, True])


def test_bad_names_are_refused():
    with pytest.raises(ValueError, match=r"\['x'\] appear more than once"):
        check_names(["x", "y", "x"], 3)
    with pytest.raises(ValueError, match="node names: 2 for 3 nodes"):
        check_names(["x", "y"], 3)


def test_bad_signals_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, 1.0]})
    with pytest.raises(ValueError, match=r"signals\[0, 'b'\] is nan; fill the gaps, drop the row"):
        check_signals(frame)
    with pytest.raises(ValueError, match="at least two nodes"):
        check_signals(np.ones((5, 1)))


def test_start_must_be_positive_duals():
    with pytest.raises(ValueError, match="start must be 3 positive duals"):
        solve(np.ones(3), 1.0, start=[1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"tol": "a"}, TypeError, "tol must be a number"),
        ({"tol": np.nan}, ValueError, "tol must be at least 0"),
        ({"max_iter": -3}, ValueError, "max_iter must be a whole number"),
        ({"max_iter": 2.5}, ValueError, "max_iter must be a whole number"),
        ({"support": [(0, 1), (1, 2)]}, TypeError, "Restricted.from_pairs"),
    ],
)
def test_bad_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        solve(np.ones(3), 1.0, **settings)


def test_overflow_is_refused():
    with pytest.raises(ValueError, match=r"overflows|theta must be from"):
        solve(np.full(3, 1e200), 1e200)


def test_rows_of_a_data_frame_follow_its_columns():
    frame = pd.DataFrame(square(), index=list("abcd"), columns=list("abcd"))
    shuffled = frame.loc[list("dbca")]
    np.testing.assert_array_equal(check_distances(shuffled)[0], check_distances(frame)[0])
    unnamed = pd.DataFrame(square(), columns=list("abcd"))
    np.testing.assert_array_equal(check_distances(unnamed)[0], check_distances(frame)[0])
    with pytest.raises(
        ValueError, match=r"rows of distances are not the nodes expected: \['d', 'x'\]"
    ):
        check_distances(frame.rename(index={"d": "x"}))


def test_diagonal_of_labels_is_ignored():
    a, known = check_labels(np.eye(3), Complete(3))
    assert not a.any()
    assert known.all()


def test_label_known_on_one_side_only_is_refused():
    labels = np.zeros((3, 3))
    labels[0, 1] = np.nan
    with pytest.raises(ValueError, match="fill in both"):
        check_labels(labels, Complete(3))


@pytest.mark.parametrize("weight", [1e-150, 1e-16, 1e16, 1e150])
def test_weights_in_an_odd_unit_are_refused(weight):
    """Their logarithms are beyond the prior of the level, and means of lognormals overflow."""
    with pytest.raises(ValueError, match=r"labels\[0, 1\] is .*from 1e-15 to 1e\+15.*another unit"):
        check_edge_weights([weight, 2.0, 0.0], Complete(3))
    kept = check_edge_weights([1e-15, 1e15, 0.0], Complete(3))
    np.testing.assert_array_equal(kept, [1e-15, 1e15, 0])
