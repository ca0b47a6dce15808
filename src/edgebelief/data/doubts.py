"""Warn of tables of signals that look wrong: too few rows, distances, unequal scales, trends.

Distances are computed all the same, and mean little: squared differences of columns on unequal
scales compare the scales; two series that wander are correlated whether joined or not (spurious
regression); and a table that lies on its side gives a graph of its observations.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from ..errors import InputWarning, Remedy, Setting

# Fewer rows than these say too little about a column's spread, or about its memory.
FEW, FEW_FOR_TRENDS = 8, 50
# Standard deviations of smooth signals differ by a factor of up to 12 in our ensembles (trees), and
# by up to 13 where they are those of 8 rows.
SCALES = 20.0
# Where the sd of the columns' means is above the median sd within columns, squared distances are
# more the columns' levels than their movements.
MEANS = 1.0
# With r the autocorrelation at lag one, P (1 - r) is below 11 for nine in ten random walks (Dickey
# and Fuller's coefficient test at 10 %), and near P for signals without memory.
UNIT_ROOT = 11.0

_SAMPLE = re.compile(
    r"(sample|subject|subj|patient|donor|cell|obs|observation|replicate|gsm|srr|err|tcga|day|week"
    r"|month|time)[-_ .]?[0-9].*|[0-9]{4}[-/][0-9]{1,2}([-/].*)?",
    re.IGNORECASE,
)
_NODE = re.compile(
    r"(gene|probe|node|region|roi|station|sensor|stock|ensg|ensmusg)[-_ .]?[0-9].*",
    re.IGNORECASE,
)
# Genes (TP53) and stocks (AAPL) by their symbols; letters of DNA alone are the barcode of a cell.
_SYMBOL = re.compile(r"(?![ACGTN]{8,}(-[0-9]+)?$)[A-Z]{2,6}[A-Z0-9]{0,4}([-.][A-Z0-9]{1,4})?")


def warn_of_doubts(
    x: Float[np.ndarray, "signals nodes"],
    metric: object,
    sides: tuple[Iterable[object], Iterable[object]] | None = None,
    *,
    graph: int | None = None,
    stacklevel: int = 3,
) -> None:
    """Warn of what looks wrong in signals, as they enter the metric.

    Parameters
    ----------
    x : ndarray, shape (n_signals, N)
        Finite, but for gaps (NaN).
    metric : str or callable
        Scales matter to "sqeuclidean" and "log-euclidean" alone.
    sides : two sequences of names, optional
        Of the rows and of the columns.
    graph : int, optional
        The index of the graph, for the message.
    stacklevel : int
        As in `warnings.warn`.
    """
    found = [_two_rows(x, metric), _matrix_of_pairs(x, sides)]
    if len(x) >= FEW and metric in ("sqeuclidean", "log-euclidean"):
        found.append(_unequal(x))
    if len(x) >= FEW_FOR_TRENDS:
        found.append(_trending(x))
    if sides is not None:
        found.append(_on_its_side(*sides))
    for warning in found:
        if warning is not None:
            warnings.warn(warning.but(graph=graph), stacklevel=stacklevel)


def _two_rows(x: Float[np.ndarray, "signals nodes"], metric: object) -> InputWarning | None:
    # Standardized, any two values are 1 and -1.
    if len(x) != 2 or not (metric == "correlation" or np.allclose(np.abs(x), 1)):
        return None
    problem = "there are two rows; standardized, or as correlations, all pairs of values are alike"
    return InputWarning(f"{problem}, or opposite, and distances say no more", remedy="Add rows")


def _matrix_of_pairs(
    x: Float[np.ndarray, "signals nodes"], sides: tuple[Iterable[object], Iterable[object]] | None
) -> InputWarning | None:
    if x.shape[0] != x.shape[1]:
        return None
    rows, columns = ([str(name) for name in side] for side in sides or ((), ()))
    is_named = rows == columns and not all(name.isdigit() for name in rows)
    if not is_named and not np.array_equal(x, x.T):
        return None
    return InputWarning(
        "rows and columns are alike, as in a matrix of distances, and it is read as signals",
        remedy=Remedy("If it holds distances, say so", Setting("metric", "precomputed")),
    )


def _unequal(x: Float[np.ndarray, "signals nodes"]) -> InputWarning | None:
    means, sds = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    moving = sds > 1e-12 * np.nanmax(np.abs(x), axis=0)  # a constant has no scale
    if moving.sum() < 2:
        return None
    low, high = sds[moving].min(), sds[moving].max()
    if high <= SCALES * low and means.std() <= MEANS * np.median(sds[moving]):
        return None
    return InputWarning(
        f"the columns are on unequal scales: standard deviations from {low:.3g} to {high:.3g}, "
        f"means from {means.min():.3g} to {means.max():.3g}. Squared differences compare these "
        f"more than how nodes move together",
        remedy=[
            Remedy("Standardize them ({})", Setting("preprocess", "standardize")),
            Remedy("use {}", Setting("metric", "correlation")),
        ],
    )


def _trending(x: Float[np.ndarray, "signals nodes"]) -> InputWarning | None:
    centred = x - np.nanmean(x, axis=0)
    there = ~np.isnan(centred)
    pairs = (there[1:] & there[:-1]).sum(0)
    squares = np.nansum(centred**2, axis=0) / np.maximum(there.sum(0), 1)
    products = np.nansum(centred[1:] * centred[:-1], axis=0) / np.maximum(pairs, 1)
    usable = (pairs >= FEW_FOR_TRENDS - 1) & (squares > 0)
    if not usable.any():
        return None
    r = products[usable] / squares[usable]
    wander = len(x) * (1 - r) < UNIT_ROOT
    if wander.mean() <= 0.5:
        return None
    return InputWarning(
        f"{wander.sum()} of {x.shape[1]} columns wander like prices (median autocorrelation from "
        f"row to row {np.median(r):.3f}); such series are alike whether joined or not",
        remedy=[
            Remedy("Compare their changes ({})", Setting("preprocess", "log-returns")),
            Remedy("{} where values may be negative", Setting("preprocess", "diff")),
        ],
    )


def _on_its_side(rows: Iterable[object], columns: Iterable[object]) -> InputWarning | None:
    in_rows, in_columns = [str(name) for name in rows], [str(name) for name in columns]
    samples = _share(_SAMPLE, in_columns) > 0.8 and _share(_SAMPLE, in_rows) < 0.2
    nodes = any(
        _share(kind, in_rows) > 0.8 and _share(kind, in_columns) < 0.2 for kind in (_NODE, _SYMBOL)
    )
    nodes = nodes and _share(_SAMPLE, in_rows) < 0.2
    if not nodes and (not samples or all(name.isdigit() for name in in_rows)):
        return None
    return InputWarning(
        f"a column is a node, and the columns are called {in_columns[0]!r}, {in_columns[1]!r}, ...,"
        f" the rows {in_rows[0]!r}, ...: the table seems to lie on its side",
        remedy=Remedy("If so, transpose it", Setting("transpose", True, python="X.T")),
    )


def _share(pattern: re.Pattern[str], names: list[str]) -> float:
    return float(np.mean([pattern.fullmatch(name) is not None for name in names]))
