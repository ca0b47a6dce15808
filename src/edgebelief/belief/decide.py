"""From belief to a graph: which edges to act on.

What is best depends on what mistakes cost, so a rule is a statement about mistakes:

    threshold   an edge where p > t
    cost        where acting costs less on average than not acting:  (1 - p) c_extra < p c_missed
    fdr         as many as possible, the most believed first, while the expected share of wrong ones
                among them, mean(1 - p), stays at most q  (the Bayesian false discovery rate)
    top_k       the k most believed
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ..errors import InputError, SettingError, SettingTypeError
from ..validate import as_floats, check_number


def decide(
    p: Any,
    *,
    threshold: float | None = None,
    cost: tuple[float, float] | None = None,
    fdr: float | None = None,
    top_k: int | None = None,
) -> Bool[np.ndarray, " edges"]:
    """Which edges to believe in. One rule at a time; a threshold of 0.5 by default.

    Parameters
    ----------
    p : array_like, shape (n_edges,)
        The probability of each edge.
    threshold : float
        An edge where p is above it.
    cost : (float, float)
        What an edge too many costs, and what a missed one costs. Only their ratio matters; equal
        costs are a threshold of 0.5.
    fdr : float
        The share of wrong edges among those chosen that is tolerated, in expectation.
    top_k : int
        How many edges. Of equally believed ones the first.

    Returns
    -------
    array of bool, shape (n_edges,)

    Examples
    --------
    >>> from edgebelief.belief import decide
    >>> p = [0.99, 0.9, 0.6, 0.2]
    >>> decide(p).tolist()
    [True, True, True, False]
    >>> decide(p, cost=(3, 1)).tolist()  # an edge too many is three times as bad as a missed one
    [True, True, False, False]
    >>> decide(p, fdr=0.2).tolist()  # expected share of wrong ones: (0.01 + 0.1 + 0.4) / 3 = 0.17
    [True, True, True, False]
    >>> decide(p, top_k=1).tolist()
    [True, False, False, False]
    """
    p = _probabilities(p)
    given = {
        name: value
        for name, value in
        (("threshold", threshold), ("cost", cost), ("fdr", fdr), ("top_k", top_k))
        if value is not None
    }  # fmt: skip
    if len(given) > 1:
        raise SettingError(f"one rule at a time; got {' and '.join(given)}.")
    if cost is not None:
        return p > _break_even(cost)
    if fdr is not None:
        return _most_within(p, _share(fdr, "fdr"))
    if top_k is not None:
        return _best(p, top_k)
    return p > _share(0.5 if threshold is None else threshold, "threshold")


def _probabilities(p: Any) -> Float[np.ndarray, " edges"]:
    p = as_floats(p, "p")
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(
            f"must be a vector of probabilities, one per edge; shape {p.shape}.", argument="p"
        )
    return p


def _share(value: Any, what: str) -> float:
    number = check_number(value, what)
    if not 0 <= number <= 1:
        raise SettingError(f"must lie between 0 and 1; got {number:g}.", argument=what)
    return number


def _break_even(cost: Any) -> float:
    try:
        extra, missed = (check_number(value, "cost") for value in cost)
    except (TypeError, ValueError):
        raise SettingTypeError(
            f"must be two numbers, of an edge too many and of a missed one; got {cost!r}.",
            argument="cost",
        ) from None
    if not (extra >= 0 and missed >= 0 and 0 < extra + missed < np.inf):
        raise SettingError(
            f"must be two numbers at least 0, finite, and not both 0; got {cost!r}.",
            argument="cost",
        )
    return extra / (extra + missed)


def _most_within(p: np.ndarray, share: float) -> np.ndarray:
    order = np.argsort(-p, kind="stable")
    expected = np.cumsum(1 - p[order]) / np.arange(1, p.size + 1)  # never falls: p goes down
    kept = int(np.searchsorted(expected, share * (1 + 1e-12), side="right"))
    chosen = np.zeros(p.size, bool)
    chosen[order[:kept]] = True
    return chosen


def _best(p: np.ndarray, k: Any) -> np.ndarray:
    number = check_number(k, "top_k")
    if not (number.is_integer() and 0 <= number <= p.size):
        raise SettingError(
            f"must be a whole number from 0 to {p.size}, the pairs; got {k!r}.", argument="top_k"
        )
    chosen = np.zeros(p.size, bool)
    chosen[np.argsort(-p, kind="stable")[: int(number)]] = True
    return chosen
