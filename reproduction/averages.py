"""Means, standard deviations and standard errors, which the items report in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .item import Answer


def column(answers: Iterable[Answer], *path: str) -> np.ndarray:
    """Collect one entry of each answer, named by its keys from the outside in."""
    values = []
    for answer in answers:
        value = answer
        for key in path:
            value = value[key]
        values.append(value)
    return np.array(values, float)


def mean_of(answers: Iterable[Answer], *path: str) -> float:
    """Return the mean of one entry over several answers."""
    return float(column(answers, *path).mean())


def deviation(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the standard deviation over the first axis; NaN for a single value."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(0, ddof=1))


def standard_error(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the first axis; NaN for a single value."""
    return deviation(values) / np.sqrt(len(values))


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(np.mean(values)), float(standard_error(values))


def mean_and_deviation(values: Sequence[float] | np.ndarray) -> tuple[float, float | None]:
    """Return the mean and the standard deviation, which is None for a single value."""
    spread = float(deviation(values))
    return float(np.mean(values)), None if np.isnan(spread) else spread
