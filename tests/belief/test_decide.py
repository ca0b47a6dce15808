from itertools import product

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebelief.belief import decide

SHARES = st.floats(0, 1)
BELIEFS = hnp.arrays(float, st.integers(1, 8), elements=SHARES)
# Ties, certainty and impossibility, as networks with dead edges give them.
TIED = hnp.arrays(float, st.integers(1, 8), elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
COSTS = st.floats(0, 100)
quick = settings(max_examples=80, deadline=None, derandomize=True)


def all_decisions(n):
    return np.array(list(product([False, True], repeat=n)))


@quick
@given(BELIEFS | TIED, COSTS, COSTS)
def test_costs_are_as_low_as_those_of_any_decision(p, extra, missed):
    if extra + missed == 0:
        return
    every = all_decisions(p.size)
    expected = (every * (1 - p) * extra + ~every * p * missed).sum(1)
    chosen = decide(p, cost=(extra, missed))
    found = (chosen * (1 - p) * extra + ~chosen * p * missed).sum()
    assert found <= expected.min() + 1e-9


@quick
@given(BELIEFS | TIED, SHARES)
def test_no_larger_set_keeps_the_false_discovery_rate(p, q):
    every = all_decisions(p.size)
    size = every.sum(1)
    wrong = (every * (1 - p)).sum(1)
    largest = size[wrong <= q * size * (1 + 1e-9)].max()
    chosen = decide(p, fdr=q)
    assert (1 - p[chosen]).sum() <= q * chosen.sum() * (1 + 1e-9) + 1e-300
    # Where a set is allowed by rounding alone, one rule may see it and the other not.
    strictly = size[wrong <= q * size * (1 - 1e-9)].max()
    assert strictly <= chosen.sum() <= largest


@quick
@given(BELIEFS | TIED, st.data())
def test_the_most_believed_are_chosen(p, data):
    k = data.draw(st.integers(0, p.size))
    chosen = decide(p, top_k=k)
    assert chosen.sum() == k
    assert p[chosen].min(initial=1) >= p[~chosen].max(initial=0)
    for rule in ({"fdr": 0.3}, {"threshold": 0.4}, {"cost": (1, 3)}):
        chosen = decide(p, **rule)
        assert p[chosen].min(initial=1) >= p[~chosen].max(initial=0)


@quick
@given(BELIEFS | TIED, SHARES, SHARES)
def test_tolerance_and_thresholds_only_add_or_remove(p, one, other):
    low, high = sorted([one, other])
    assert (decide(p, fdr=low) <= decide(p, fdr=high)).all()
    assert (decide(p, threshold=high) <= decide(p, threshold=low)).all()


@quick
@given(BELIEFS | TIED, st.sampled_from([2.0**-10, 0.5, 8.0, 2.0**10]))
def test_only_the_ratio_of_costs_matters(p, factor):
    assert np.array_equal(decide(p, cost=(3 * factor, factor)), p > 0.75)


@quick
@given(BELIEFS | TIED)
def test_rules_that_agree(p):
    assert np.array_equal(decide(p), p > 0.5)
    assert np.array_equal(decide(p, cost=(1, 1)), decide(p, threshold=0.5))
    assert np.array_equal(decide(p, fdr=0), p == 1)
    assert decide(p, fdr=1).all()
    assert decide(p, top_k=p.size).all()
    assert not decide(p, cost=(1, 0)).any()
    assert np.array_equal(decide(p, cost=(0, 1)), p > 0)


def test_of_equally_believed_ones_the_first_are_chosen():
    assert decide([0.5, 0.9, 0.9, 0.9], top_k=2).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ({"fdr": 0.1, "top_k": 3}, ValueError, "one rule at a time; got fdr and top_k"),
        ({"threshold": 1.5}, ValueError, "threshold must lie between 0 and 1; got 1.5"),
        ({"fdr": np.nan}, ValueError, "fdr must lie between"),
        ({"fdr": "0.1"}, TypeError, "fdr must be a number"),
        ({"cost": 3}, TypeError, "cost must be two numbers"),
        ({"cost": (1, 2, 3)}, TypeError, "cost must be two numbers"),
        ({"cost": (0, 0)}, ValueError, "not both 0"),
        ({"cost": (-1, 2)}, ValueError, "at least 0"),
        ({"cost": (np.inf, 2)}, ValueError, "finite"),
        ({"top_k": 5}, ValueError, "whole number from 0 to 4"),
        ({"top_k": 1.5}, ValueError, "whole number"),
        ({"top_k": -1}, ValueError, "whole number"),
        ({"top_k": np.inf}, ValueError, "whole number"),
        ({"top_k": np.nan}, ValueError, "whole number"),
        ({"top_k": True}, TypeError, "must be a number"),
    ],
)
def test_impossible_rules_are_refused(rule, error, message):
    with pytest.raises(error, match=message):
        decide([0.1, 0.2, 0.3, 0.4], **rule)


@pytest.mark.parametrize("p", [[], [[0.1]], [1.5], [-0.1], [np.nan], 0.3, None, ["a"]])
def test_what_is_no_vector_of_probabilities_is_refused(p):
    with pytest.raises((TypeError, ValueError), match=r"p (must|is empty)"):
        decide(p)
