"""Decide which edges to act on, given the probability p of each.

The best choice depends on what mistakes cost, so each rule is a statement about mistakes:

    threshold   an edge where p > t
    cost        an edge where acting costs less in expectation:  (1 - p) c_extra < p c_missed
    fdr         the most probable edges, as many as keep the expected share of wrong ones among
                them, mean(1 - p), at most q  (the Bayesian false discovery rate)
    top_k       the k most probable edges
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from ..errors import InputError, SettingError, SettingTypeError
from ..validate import as_floats, check_number
from .predict import EdgeBelief


def decide(
    p: ArrayLike | EdgeBelief,
    *,
    threshold: float | None = None,
    cost: tuple[float, float] | None = None,
    fdr: float | None = None,
    top_k: int | None = None,
) -> Bool[np.ndarray, " edges"]:
    """Choose edges by one rule; by default those with a probability above 0.5.

    Parameters
    ----------
    p : array_like, shape (n_edges,), or EdgeBelief
        The probability of each edge. An `EdgeBelief` also tells edges apart whose probability is 1
        to all its digits.
    threshold : float
        Choose the edges with p above it.
    cost : (float, float)
        The cost of a wrong edge, and that of a missed one. Only their ratio matters; equal costs
        are a threshold of 0.5.
    fdr : float
        The largest tolerated expected share of wrong edges among those chosen.
    top_k : int
        The number of edges to choose, by their logit; of equally probable ones the first.

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
    belief = p if isinstance(p, EdgeBelief) else EdgeBelief.of(_probabilities(p))
    p = belief.mean
    rules = {"threshold": threshold, "cost": cost, "fdr": fdr, "top_k": top_k}
    stated = [name for name, value in rules.items() if value is not None]
    if len(stated) > 1:
        raise SettingError(f"one rule at a time; got {' and '.join(stated)}.")
    if cost is not None:
        return p > _break_even(cost)
    if fdr is not None:
        # The mean of 1 - p over the most probable edges; ascending, as the sorted p descend.
        expected = np.cumsum(1 - p[belief.order]) / np.arange(1, p.size + 1)
        largest = _share(fdr, "fdr") * (1 + 1e-12)
        return _best(belief, int(np.searchsorted(expected, largest, side="right")))
    if top_k is not None:
        return _best(belief, top_k)
    return p > _share(0.5 if threshold is None else threshold, "threshold")


def _probabilities(p: ArrayLike) -> Float[np.ndarray, " edges"]:
    p = as_floats(p, "p")
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        problem = f"must be a vector of probabilities, one per edge; shape {p.shape}."
        raise InputError(problem, argument="p")
    return p


def _share(value: object, what: str) -> float:
    number = check_number(value, what)
    if not 0 <= number <= 1:
        raise SettingError(f"must lie between 0 and 1; got {number:g}.", argument=what)
    return number


def _break_even(cost: tuple[float, float]) -> float:
    """Return the probability above which acting costs less than not acting."""
    try:
        extra, missed = (check_number(value, "cost") for value in cost)
    except (TypeError, ValueError):
        raise SettingTypeError(
            f"must be two numbers, of an edge too many and of a missed one; got {cost!r}.",
            argument="cost",
        ) from None
    if not (extra >= 0 and missed >= 0 and 0 < extra + missed < np.inf):
        problem = f"must be two numbers at least 0, finite, and not both 0; got {cost!r}."
        raise SettingError(problem, argument="cost")
    return extra / (extra + missed)


def _best(belief: EdgeBelief, k: int) -> Bool[np.ndarray, " edges"]:
    number = check_number(k, "top_k")
    if not (number.is_integer() and 0 <= number <= belief.mean.size):
        problem = f"must be a whole number from 0 to {belief.mean.size}, the pairs; got {k!r}."
        raise SettingError(problem, argument="top_k")
    chosen = np.zeros(belief.mean.size, bool)
    chosen[belief.order[: int(number)]] = True
    return chosen
