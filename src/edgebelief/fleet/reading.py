"""One file of a folder as what a learner takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..bounds import check_file
from ..data.files import edges_to_matrix, load_dataset, read_covariates, read_matrix, read_signals
from ..data.tables import read_table
from ..errors import InputError
from ..estimators import GraphLearner
from .sources import Source


class Contents(NamedTuple):
    """The graphs of one file, in the forms that `GraphLearner` takes them one by one."""

    X: list[Any]
    """Distances or signals of each graph: a frame, an array, or a record of a data set."""
    A: list[Any] | None = None
    """Labels of each, where there are some beside the file."""
    covariates: list[Any] | None = None
    """Covariates of the pairs of each, where there are some beside the file."""


# How a file is read: the source, the learner that it is for, and options of the reader's own.
Reader = Callable[[Source, GraphLearner, Mapping[str, Any]], Contents]


def read_graphs(source: Source, learner: GraphLearner, options: Mapping[str, Any]) -> Contents:
    """Read a data set (.npz), an array (.npy) or a table, by what the learner's metric takes.

    An array is one graph, (N, N) distances or (P, N) signals, or several with a first axis more.
    Labels are an adjacency (.npy, or a table with names) or an edge list; there are no options.
    """
    if options:
        raise InputError(f"there is no option {sorted(options)[0]!r} of reading.")
    X = _graphs(source.data, learner.metric)
    A = None
    if "labels" in source.files:
        A = [_labels(Path(source.files["labels"]), X)]
    covariates = None
    if "covariates" in source.files:
        covariates = [read_covariates(source.files["covariates"])] * len(X)
    return Contents(X, A, covariates)


def _graphs(path: Path, metric: Any) -> list[Any]:
    if path.suffix.lower() == ".npz":
        return list(load_dataset(path))
    if path.suffix.lower() == ".npy":
        array = read_array(path)
        if array.ndim not in (2, 3):
            problem = f"has shape {array.shape}; one graph has two axes, and several have three"
            raise InputError(problem, where=path)
        return [array] if array.ndim == 2 else list(array)
    return [read_matrix(path) if metric == "precomputed" else read_signals(path)]


def read_array(path: Path) -> np.ndarray:
    """Read the numbers of an npy file, and refuse one with Python objects."""
    check_file(path)
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"not an npy file of numbers ({error}).", where=path) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise InputError("not an npy file of numbers.", where=path)
    return array


def _labels(path: Path, X: list[Any]) -> Any:
    if len(X) > 1:
        problem = f"labels for a file of {len(X)} graphs; a data set brings its own"
        raise InputError(problem, where=path)
    if path.suffix.lower() == ".npy":
        return read_array(path)
    table = read_table(path)
    if not {"source", "target"} <= set(table.columns):
        return read_matrix(path)
    names = [str(name) for name in X[0].columns] if isinstance(X[0], pd.DataFrame) else None
    return edges_to_matrix(table, names=names, fill=0.0, where=path)
