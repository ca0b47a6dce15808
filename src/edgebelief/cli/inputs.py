"""From files to graphs: what a path may hold, which nodes are wanted, where labels come from."""

from __future__ import annotations

import filecmp
import json
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, TypeVar

import numpy as np
import pandas as pd

from ..bounds import check_bytes, check_file
from ..data.coerce import same_group, weight_column
from ..data.covariates import pair_covariates
from ..data.dataset import GraphDataset
from ..data.files import edges_to_matrix, load_dataset, read_covariates, read_matrix, read_signals
from ..data.tables import read_table
from ..edges import Complete
from ..errors import InputError, InputWarning, Message, SettingError
from ..persist.strictjson import MAX_DEPTH, is_deep
from ..room import check_room
from ..validate import check_edge_weights, check_labels
from .graphml import read_graphml
from .paths import NOT_NODES, check_kinds, need_parquet, split_key
from .session import one_line

if TYPE_CHECKING:
    from ..estimators import GraphLearner

SIGNALS = ("correlation", "sqeuclidean", "log-euclidean")
# Of names and priors, as JSON or in lines: a million names.
MAX_TEXT_BYTES = 2**24
# What a learner takes for X and A: tables are data frames.
Data = GraphDataset | pd.DataFrame | list[pd.DataFrame]
Labels = list[pd.DataFrame] | None
T = TypeVar("T")
M = TypeVar("M", bound=Message)


class WrongMetric(InputError):
    """A table that is signals where distances are expected, or the other way round."""


@dataclass(frozen=True)
class Given:
    """What a user points at, by the options of the same names: see `options.LabelledTables`."""

    paths: Sequence[Path]
    nodes: str | None = None
    transpose: bool = False
    labels: Sequence[Path] = ()
    groups: Path | None = None
    covariates: Sequence[Path] = ()

    def read(
        self, metric: str, missing: str, weighted: bool = False, all_pairs: bool = True
    ) -> tuple[Data, Labels]:
        """Return what `GraphLearner` takes for X and A; `metric` says whether X is distances.

        With `all_pairs`, graphs are refused whose pairs do not fit in memory; without, edge lists
        stay lists.
        """
        check_kinds(metric, self.transpose, self.groups, weighted)
        X = self._data(metric, missing, all_pairs)
        return X, self._labels(X, weighted, all_pairs)

    def read_for(self, learner: GraphLearner, fitted: bool = True) -> tuple[Data, Labels]:
        """Return X and A for a learner, which knows what it takes."""
        try:
            all_pairs = learner.support == "complete"
            return self.read(learner.metric, learner.missing, learner.weighted, all_pairs)
        except WrongMetric as error:
            if not fitted:
                raise
            takes = "distances" if learner.metric == "precomputed" else "signals"
            remedy = f"The model was fitted to {takes}; give it such"
            raise error.but(remedy=remedy) from None

    def apply(self, method: Callable[..., T], X: Data, *arguments: Any, **settings: Any) -> T:
        """Call a learner's method on X, with the covariates of its pairs."""
        known = self._covariates_of(X)
        return self.blame(lambda: method(X, *arguments, **known, **settings))

    def _covariates_of(self, X: Data) -> dict[str, Any]:
        if not self.covariates:
            return {}
        names = _names_of(X)
        if len(self.covariates) not in (1, len(names)):
            raise InputError(
                f"{self.covariates[-1]}: {count(len(self.covariates), 'covariate file')} for "
                f"{count(len(names), 'graph')}: give one for each, in their order, or one for all."
            )
        paths = list(self.covariates) * (len(names) if len(self.covariates) == 1 else 1)
        pairs = zip(paths, names, strict=True)
        covariates = [_covariates(path, nodes, self.nodes is not None) for path, nodes in pairs]
        return {"covariates": covariates if isinstance(X, list | GraphDataset) else covariates[0]}

    def blame(self, work: Callable[[], T]) -> T:
        """Return what `work` does; errors and warnings about the data name the file."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                result = work()
        except InputError as error:
            raise self._placed(error) from None
        for warning in caught:
            message = warning.message
            if isinstance(message, Message):
                message = self._placed(message)
            elif len(self.paths) == 1:
                message = warning.category(f"{self.paths[0]}: {message}")
            warnings.warn(message, stacklevel=2)
        return result

    def _placed(self, message: M) -> M:
        """Return an error or a warning about a graph with the file that holds it."""
        if isinstance(message, SettingError) or isinstance(message.where, str | Path):
            return message  # about no file, or one is named already
        graph, path = message.graph, str(self.paths[0])
        if isinstance(graph, int) and self.paths[0].suffix.lower() != ".npz":
            path = str(self.paths[graph])
        elif len(self.paths) > 1:
            return message
        elif graph is not None:  # one of those in a data set
            path = f"{path}: graph {graph}"
        match message.argument, message.where:
            case "signals" | "X", (int(row), node) if not self.transpose:
                place = f"{path}, row {row + 2}, column {node!r}"  # row 1 is the header
                return message.but(graph=None, argument=None, where=place)
        return message.but(graph=path)

    def _data(self, metric: str, missing: str, all_pairs: bool) -> Data:
        if any(path.suffix.lower() == ".npz" for path in self.paths):
            data = _data_set(self.paths[0])
            check_room(max(data.n_nodes), len(data))
            return data
        wanted = None if self.nodes is None else read_nodes(self.nodes)
        frames = [_table(path, metric, missing, wanted, self.transpose) for path in self.paths]
        if all_pairs:
            check_room(max(frame.shape[1] for frame in frames), len(frames))
        return frames[0] if len(frames) == 1 else frames

    def _labels(self, X: Data, weighted: bool, all_pairs: bool) -> Labels:
        """Return a label matrix, or an edge list, for each graph; None where nothing was given."""
        names, rows = _names_of(X), _names_of(X, "index")
        for path in self.labels if self.groups is None else [self.groups]:
            self._warn_of_leak(path, "--labels" if self.groups is None else "--groups")
        if self.groups is not None:
            return [_same_group(self.groups, *some) for some in zip(names, rows, strict=True)]
        if not self.labels:
            return None
        if len(self.labels) != len(names):
            raise InputError(
                f"{self.labels[-1]}: {count(len(self.labels), 'label file')} for "
                f"{count(len(names), 'graph')}: give one for each, in their order."
            )
        labels = []
        for path, nodes, of_rows in zip(self.labels, names, rows, strict=True):
            listed = None if all_pairs else _listed(path, nodes, self.nodes is not None)
            if listed is None:
                some_nodes = self.nodes is not None
                listed = _label_matrix(path, nodes, of_rows, some_nodes, weighted)
            labels.append(listed)
        return labels

    def _warn_of_leak(self, labels: Path, option: str) -> None:
        """Warn of covariates that are the labels: the same file, or a copy of it."""
        for path in self.covariates:
            if path.exists() and labels.exists() and filecmp.cmp(path, labels, shallow=False):
                what = option.removeprefix("--")
                both = f"is both {option} and --covariates"
                problem = (
                    f"{both if path.samefile(labels) else f'is a copy of {option}'}: the labels "
                    f"are then known from the covariates, and belief in graphs without {what} will "
                    f"be wrong"
                )
                remedy = f"Leave the column with the {what} out of the covariates"
                warnings.warn(InputWarning(problem, where=path, remedy=remedy), stacklevel=2)


def _names_of(data: Data, axis: Literal["columns", "index"] = "columns") -> list[list[str]]:
    """Return the node names of each graph; on the other axis, those of the rows of each table."""
    if isinstance(data, GraphDataset):
        return [list(record.names) if axis == "columns" else [] for record in data]
    frames = data if isinstance(data, list) else [data]
    return [[str(name) for name in getattr(frame, axis)] for frame in frames]


def read_nodes(source: str) -> list[str]:
    """Read node names: a name per line, a JSON list, or FILE.json:KEY for one within it."""
    path, key = split_key(source)
    check_file(path, NOT_NODES)
    if path.suffix.lower() == ".json":
        names = _names_from_json(path, key)
    else:
        lines = _read_text(path, "node names are, one per line").splitlines()
        names = [line.strip() for line in lines if line.strip()]
    if len(set(names)) < len(names):
        twice = [name for name, times in Counter(names).items() if times > 1]
        raise InputError(f"{path}: {twice[:5]} are named more than once; name each node once.")
    if len(names) < 2:
        raise InputError(f"{path}: names {count(len(names), 'node')}; a graph has at least two.")
    return names


def _names_from_json(path: Path, key: str | None) -> list[str]:
    names = read_json(path)
    if isinstance(names, dict):
        if key not in names:
            known = [name for name, value in names.items() if isinstance(value, list)]
            raise InputError(f"{path}: which list? Say {path}:KEY, one of {known[:8]}.")
        names = names[key]
    if not are_names(names):
        raise InputError(f"{path}: node names must be a list of texts.")
    return [str(name) for name in names]


def are_names(value: object) -> TypeGuard[list[str | int]]:
    """Whether a value from JSON is a list of node names."""
    return isinstance(value, list) and all(isinstance(name, str | int) for name in value)


def read_json(path: Path, remedy: str = "") -> Any:
    """Read a JSON file."""
    text = _read_text(path, remedy)
    try:
        if is_deep(text, MAX_DEPTH):  # or the error of something else would be recursion
            raise InputError(f"it is nested deeper than {MAX_DEPTH} levels")
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error}).", where=path, remedy=remedy) from None


def _read_text(path: Path, remedy: str) -> str:
    check_bytes(path.stat().st_size, path, most=MAX_TEXT_BYTES)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not text in UTF-8.", where=path, remedy=remedy) from None


def _table(
    path: Path, metric: str, missing: str, wanted: list[str] | None, transpose: bool
) -> pd.DataFrame:
    """Read the distances or signals of one graph, of the wanted nodes."""
    if path.suffix.lower() == ".parquet":
        need_parquet(path)
    if metric == "precomputed":
        frame = _distances(path)
        return frame if wanted is None else _chosen(frame, wanted, path).loc[wanted]
    frame = read_signals(path, transpose=transpose)
    _warn_of_no_header(frame, path)
    if list(frame.index) == list(frame.columns):
        raise WrongMetric(
            "has the nodes' names on both sides, as distances have",
            where=path,
            remedy="Say --metric precomputed if that is what they are",
        )
    frame = frame if wanted is None else _chosen(frame, wanted, path)
    if frame.shape[1] < 2:
        raise InputError(
            f"{path}: has one node, {frame.columns[0]!r}; a graph has at least two. A column per "
            f"node, separated by commas, semicolons or tabs."
        )
    if "" in frame.columns:
        place = list(frame.columns).index("")
        side = "row" if transpose else "column"
        raise InputError(f"{path}: a {side} has no name (node {place + 1}); name every node.")
    _check_gaps(frame, path, missing, transpose)
    return frame


def _warn_of_no_header(frame: pd.DataFrame, path: Path) -> None:
    """Warn of numbers in the first line, which may be names after all."""
    names = [str(i) for i in range(frame.shape[1])]
    if list(frame.columns) != names:
        return
    header = [str(name) for name in read_table(path).columns]
    if names not in (header, header[1:]):
        warnings.warn(
            f"{path}: its first line holds nothing but numbers ({', '.join(header[:3])}, ...) and "
            f"was read as data; nodes are called 0, 1, ... Were these their names? Then put a "
            f"letter before each.",
            stacklevel=2,
        )


def _check_gaps(frame: pd.DataFrame, path: Path, missing: str, transpose: bool) -> None:
    """Refuse gaps here, where the row of the file is still known."""
    bad = ~np.isfinite(frame.to_numpy()) if missing == "error" else np.isinf(frame.to_numpy())
    if not bad.any():
        return
    p, i = np.argwhere(bad)[0]
    name, value = frame.columns[i], frame.iloc[p, i]
    cure = "--missing pairwise uses for each pair what there is"
    what = f"{value}; correct it, or empty the cell ({cure})"
    if np.isnan(value):
        what = f"a gap; fill it, leave the node out (--nodes), or allow gaps: {cure}"
    count = f" ({bad.sum()} such cells in all)" if bad.sum() > 1 else ""
    # Line 1 is the header; where nodes are rows, row and column change places.
    row, column = (i + 2, repr(frame.index[p])) if transpose else (p + 2, repr(name))
    raise InputError(f"{path}, row {row}, column {column}: {what}{count}.")


def _distances(path: Path) -> pd.DataFrame:
    try:
        return read_matrix(path)
    except InputError as error:
        if error.remedy:  # an empty file or a bad cell, which is wrong in signals too
            raise
        names = f"{', '.join(SIGNALS[:-1])} or {SIGNALS[-1]}"
        remedy = f"If these are signals (rows observations, columns nodes), say --metric {names}"
        raise WrongMetric(error.problem, where=error.where, remedy=remedy) from None


def _chosen(frame: pd.DataFrame, wanted: list[str], path: Path) -> pd.DataFrame:
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise InputError(
            f"{path}: has no column for {missing[:5]}"
            f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}, named in --nodes; it "
            f"has {[str(name) for name in frame.columns[:5]]} ..."
        )
    return frame[wanted]


def _label_matrix(
    path: Path, names: list[str], rows: list[str], some_nodes: bool, weighted: bool
) -> pd.DataFrame:
    matrix = _as_matrix(path, names, weighted)
    known = set(names)
    strangers = [name for name in matrix.columns if name not in known]
    missing = [name for name in names if name not in matrix.columns]
    if missing or (strangers and not some_nodes):
        odd, where, hint = strangers, "are not in the data", ""
        if missing:
            odd, where = missing, "are not in it"
            hint = f" It has {[str(name) for name in matrix.columns[:3]]} ..."
            if known & set(matrix.columns):
                hint += " Leave the missing out of the data (--nodes), or add them: an empty cell"
                hint += " is an unknown label."
            hint += _on_its_side(list(matrix.columns), names, rows)
        raise InputError(
            f"{path}: nodes {odd[:5]} {where}; labels and data must name the same nodes.{hint}"
        )
    matrix = matrix.loc[names, names]
    try:
        check = check_edge_weights if weighted else check_labels
        check(matrix, Complete(len(names)), names)
    except InputError as error:
        raise error.but(graph=str(path)) from None
    return matrix


def _listed(path: Path, names: list[str], some_nodes: bool) -> pd.DataFrame | None:
    """Return labels as an edge list between these nodes, if that is what the file holds."""
    if path.suffix.lower() == ".graphml":
        return None
    table = read_table(path)
    if not {"source", "target"} <= set(table.columns):
        return None
    ends = table[["source", "target"]].astype(str)
    inside = ends.isin(set(names)).all(axis=1)
    if not (some_nodes or inside.all()):
        odd = sorted(set(ends[~inside].to_numpy().ravel()) - set(names))[:5]
        problem = f"{path}: nodes {odd} are not in the data; labels and data must name the same"
        raise InputError(f"{problem} nodes.")
    return table[inside.to_numpy()]


def _as_matrix(path: Path, names: list[str], weighted: bool) -> pd.DataFrame:
    if path.suffix.lower() == ".graphml":
        return read_graphml(path, weighted)
    table = read_table(path)
    if {"source", "target"} <= set(table.columns):
        ends = set(table["source"].astype(str)) | set(table["target"].astype(str))
        everyone = [*names, *sorted(ends - set(names))]
        value = weight_column(table, path) if weighted else None
        return edges_to_matrix(table, value, names=everyone, fill=0.0, where=path)
    try:
        return read_matrix(path)
    except InputError as error:
        forms = "Labels are an adjacency with names, an edge list (source, target), or GraphML"
        problem = one_line(error.but(where=None))
        raise InputError(problem, where=error.where, remedy=forms) from None


def _on_its_side(labelled: list[str], names: list[str], rows: list[str]) -> str:
    """Return a hint, where the labels name none of the columns but perhaps the rows."""
    unlike = not set(labelled) & set(names)
    named = rows != [str(i) for i in range(len(rows))]
    if unlike and (len(labelled) == len(rows) or (named and set(labelled) & set(rows))):
        return " The data lie on their side, it seems: --transpose."
    return ""


def _same_group(path: Path, names: list[str], rows: list[str]) -> pd.DataFrame:
    groups = read_groups(path, names)
    if not set(groups) & set(names):
        raise InputError(
            f"{path}: no group for nodes {names[:5]}; its first column has {list(groups)[:3]} ..."
            f"{_on_its_side(list(groups), names, rows)}"
        )
    try:
        return same_group(groups, names)
    except InputError as error:
        raise error.but(where=path) from None


def read_groups(path: Path, names: Collection[str] = ()) -> dict[str, str]:
    """Read the group of each node: a table with the node first and then its group.

    A header that is one of the `names` is a row like the others. The group of a node may be empty.
    """
    table = read_table(path)
    if table.shape[1] < 2:
        raise InputError(f"{path}: groups are a table of two columns, the node and its group.")
    others = [str(name) for name in table.columns[1:]]
    if len(others) > 1 and set(others) <= set(names):
        problem = "its columns are nodes, as of an adjacency; give that as --labels"
        raise InputError(problem, where=path, remedy="Groups are a table of a node and its group")
    rows = table.iloc[:, :2].astype(str).to_numpy().tolist()
    header = [str(name) for name in table.columns[:2]]
    no_header = header[0] in names and header[0] not in (row[0] for row in rows)
    groups: dict[str, str] = {}
    for line, (name, group) in enumerate([header, *rows] if no_header else rows, 2 - no_header):
        if name in groups:
            raise InputError(f"{path}, row {line}: {name!r} has a group already; name it once.")
        groups[name] = "" if group.strip() in ("nan", "None", "<NA>") else group.strip()
    return groups


def _covariates(path: Path, names: list[str], some_nodes: bool) -> dict[str, np.ndarray]:
    """Read the covariates of the pairs of one graph, of the wanted nodes."""
    frame = read_covariates(path)
    if some_nodes and {"source", "target"} <= set(frame.columns):
        frame = frame[frame["source"].isin(names) & frame["target"].isin(names)]
    try:
        return pair_covariates(frame, names)
    except InputError as error:
        raise error.but(graph=str(path)) from None


def _data_set(path: Path) -> GraphDataset:
    check_file(path)
    try:
        return load_dataset(path)
    except InputError as error:
        if error.graph is not None:
            raise error.but(graph=f"{path}: graph {error.graph}") from None
        remedy = "`edgebelief simulate` and save_dataset write data sets"
        raise error.but(where=path, remedy=remedy) from None


def count(n: int, what: str) -> str:
    """Return a number and what it counts, in the plural where it is not one."""
    return f"{n} {what}{'' if n == 1 else 's'}"
