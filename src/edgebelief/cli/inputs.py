"""From files to graphs: what a path may hold, which nodes are wanted, where labels come from."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from ..data.coerce import check_has_weights, weight_column
from ..data.covariates import pair_covariates
from ..data.dataset import GraphDataset
from ..data.files import (
    edges_to_matrix,
    load_dataset,
    read_covariates,
    read_matrix,
    read_signals,
)
from ..data.tables import read_table
from ..edges import Complete
from ..validate import check_edge_weights, check_labels, check_names
from .outputs import need_parquet
from .session import Misused, NoRoom, is_expected
from .words import about_an_option

if TYPE_CHECKING:
    from ..estimators import GraphLearner

SIGNALS = ("sqeuclidean", "log-euclidean", "correlation")


class WrongMetric(ValueError):
    """A table that is signals where distances are expected, or the other way round."""

    def __init__(self, text: str, cure: str):
        super().__init__(text)
        self.cure = cure


@dataclass(frozen=True)
class Given:
    """What a user points at: tables or a data set, the wanted nodes, where labels come from.

    Parameters
    ----------
    paths : sequence of Path
        One npz data set, or a table per graph.
    nodes : str, optional
        A file with the names of the wanted nodes: see `read_nodes`.
    transpose : bool
        Whether tables of signals have a row per node.
    labels : sequence of Path
        A file for each graph: an adjacency with names, an edge list, or GraphML.
    groups : Path, optional
        A table with a row per node, its name first and then its group; nodes of one group are
        joined.
    covariates : sequence of Path
        A table for each graph, or one for all: see `edgebelief.data.read_covariates`.
    """

    paths: Sequence[Path]
    nodes: str | None = None
    transpose: bool = False
    labels: Sequence[Path] = ()
    groups: Path | None = None
    covariates: Sequence[Path] = ()

    @property
    def read_files(self) -> list[Path]:
        """Every file that is read."""
        nodes = [] if self.nodes is None else [_split_key(self.nodes)[0]]
        groups = [] if self.groups is None else [self.groups]
        return [*self.paths, *self.labels, *groups, *nodes, *self.covariates]

    def read(self, metric: str, missing: str, weighted: bool = False) -> tuple[Any, Any]:
        """What `GraphLearner` takes for X and A: tables are distances if `metric` says so."""
        X = self._data(metric, missing)
        return X, self._labels(X, weighted)

    def read_for(self, learner: GraphLearner) -> tuple[Any, Any]:
        """The same for a fitted model, which knows what it takes."""
        try:
            return self.read(learner.metric, learner.missing, learner.weighted)
        except WrongMetric as error:
            takes = "distances" if learner.metric == "precomputed" else "signals"
            raise ValueError(f"{error} The model was fitted to {takes}; give it such.") from None

    def known_of(self, X: Any) -> dict[str, Any]:
        """What else is known of the pairs of X, as an argument of the learner; or nothing."""
        if not self.covariates:
            return {}
        names = names_of(X)
        if len(self.covariates) not in (1, len(names)):
            raise ValueError(
                f"{self.covariates[-1]}: {_count(len(self.covariates), 'covariate file')} for "
                f"{_count(len(names), 'graph')}: give one for each, in their order, or one for all."
            )
        paths = list(self.covariates) * (len(names) if len(self.covariates) == 1 else 1)
        found = [
            _covariates(*one, self.nodes is not None) for one in zip(paths, names, strict=True)
        ]
        return {"covariates": found if isinstance(X, list | GraphDataset) else found[0]}

    def blame(self, work: Callable[[], Any]) -> Any:
        """What `work` returns; complaints and warnings about the data say which file it was."""
        try:
            with warnings.catch_warnings(record=True) as found:
                result = work()
        except (ValueError, TypeError) as error:
            if not is_expected(error):
                raise
            raise ValueError(self._named(str(error))) from None
        for warning in found:
            named = self._named(str(warning.message))
            warnings.warn(warning.category(named), stacklevel=2)
        return result

    def _named(self, text: str) -> str:
        if not self.transpose:  # row 1 of a file is its header
            found = r"signals\[(\d+), ('.*?')\]"
            text = re.sub(found, lambda at: f"row {int(at[1]) + 2}, column {at[2]}:", text)
        number = re.match(r"graph (\d+): ", text)
        if any(str(path) in text for path in self.paths) or about_an_option(text):
            return text
        if number and self.paths[0].suffix.lower() != ".npz":
            return f"{self.paths[int(number[1])]}: {text[number.end() :]}"
        return f"{self.paths[0]}: {text}" if len(self.paths) == 1 else text

    def _data(self, metric: str, missing: str) -> Any:
        if any(path.suffix.lower() == ".npz" for path in self.paths):
            if len(self.paths) > 1 or self.nodes or self.transpose:
                raise ValueError(
                    f"{self.paths[0]}: an npz data set holds all graphs; it goes alone, and not "
                    f"with --nodes or --transpose."
                )
            data = _data_set(self.paths[0])
            check_room(max(data.n_nodes), len(data))
            return data
        if self.transpose and metric == "precomputed":
            raise Misused("--transpose is for signals; distances are the same on their side.")
        wanted = None if self.nodes is None else read_nodes(self.nodes)
        frames = [_table(path, metric, missing, wanted, self.transpose) for path in self.paths]
        check_room(max(frame.shape[1] for frame in frames), len(frames))
        return frames[0] if len(frames) == 1 else frames

    def _labels(self, X: Any, weighted: bool) -> Any:
        """A label matrix for each graph, or None where nothing was given."""
        names, rows = names_of(X), rows_of(X)
        if self.labels and self.groups:
            raise Misused("give --labels or --groups, not both.")
        if self.groups is not None and weighted:
            raise Misused("--groups says which nodes are joined, not by how much; give --labels.")
        if self.groups is not None:
            return [_same_group(self.groups, *some) for some in zip(names, rows, strict=True)]
        if not self.labels:
            return None
        if len(self.labels) != len(names):
            raise ValueError(
                f"{self.labels[-1]}: {_count(len(self.labels), 'label file')} for "
                f"{_count(len(names), 'graph')}: give one for each, in their order."
            )
        some_nodes = self.nodes is not None
        graphs = zip(self.labels, names, rows, strict=True)
        return [_label_matrix(*graph, some_nodes, weighted) for graph in graphs]


def names_of(data: Any) -> list[list[str]]:
    """The node names of each graph of X."""
    if isinstance(data, GraphDataset):
        return [list(record.names) for record in data]
    frames = data if isinstance(data, list) else [data]
    return [[str(name) for name in frame.columns] for frame in frames]


def rows_of(data: Any) -> list[list[str]]:
    """What the rows of each table are called; nothing where there is no table."""
    if isinstance(data, GraphDataset):
        return [[] for _ in data]
    frames = data if isinstance(data, list) else [data]
    return [[str(name) for name in frame.index] for frame in frames]


def read_nodes(source: str) -> list[str]:
    """Node names from a file: a name per line, a JSON list, or FILE.json:KEY for one within it."""
    path, key = _split_key(source)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {_absent(path)}; --nodes is a file with node names.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not text in UTF-8; node names are, one per line.") from None
    if path.suffix.lower() == ".json":
        found = _names_from_json(path, text, key)
    else:
        found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(set(found)) < len(found):
        twice = [name for name, times in Counter(found).items() if times > 1]
        raise ValueError(f"{path}: {twice[:5]} are named more than once; name each node once.")
    if len(found) < 2:
        raise ValueError(f"{path}: names {_count(len(found), 'node')}; a graph has at least two.")
    return found


def _split_key(source: str) -> tuple[Path, str | None]:
    path = Path(source)
    if path.exists() or ".json:" not in source:
        return path, None
    before, key = source.split(".json:", 1)
    return Path(f"{before}.json"), key


def _names_from_json(path: Path, text: str, key: str | None) -> list[str]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON ({error}).") from None
    if isinstance(found, dict):
        if key not in found:
            known = [name for name, value in found.items() if isinstance(value, list)]
            raise ValueError(f"{path}: which list? Say {path}:KEY, one of {known[:8]}.")
        found = found[key]
    if not isinstance(found, list) or not all(isinstance(name, str | int) for name in found):
        raise ValueError(f"{path}: node names must be a list of texts.")
    return [str(name) for name in found]


def check_room(n_nodes: int, n_graphs: int) -> None:
    """Refuse what cannot fit, before the machine starts to swap.

    Some forty arrays of (N, N) doubles are alive at the worst moment, and two for each graph.
    """
    needed = 8.0 * n_nodes**2 * (40 + 2 * n_graphs)
    there = available_memory()
    if there is not None and needed > 0.9 * there:
        raise NoRoom(
            f"{_count(n_graphs, 'graph')} of {n_nodes} nodes need about {needed / 2**30:.1f} GB of "
            f"memory, and {there / 2**30:.1f} GB are free. Use fewer nodes (--nodes), or a larger "
            f"machine."
        )


def available_memory() -> float | None:
    """Bytes, or None where nobody says."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None  # not Linux: then it is found out the hard way


def _table(
    path: Path, metric: str, missing: str, wanted: list[str] | None, transpose: bool
) -> pd.DataFrame:
    """Distances or signals of one graph, of the wanted nodes."""
    if path.suffix.lower() == ".parquet":
        need_parquet(path)
    if metric == "precomputed":
        frame = _distances(path)
        return frame if wanted is None else _chosen(frame, wanted, path).loc[wanted]
    frame = read_signals(path, transpose=transpose)
    _warn_of_no_header(frame, path)
    if list(frame.index) == list(frame.columns):
        text = f"{path}: has the nodes' names on both sides, as distances have."
        raise WrongMetric(text, "Say --metric precomputed if that is what they are.")
    if wanted is not None:
        frame = _chosen(frame, wanted, path)
    if frame.shape[1] < 2:
        raise ValueError(
            f"{path}: has one node, {frame.columns[0]!r}; a graph has at least two. A column per "
            f"node, separated by commas, semicolons or tabs."
        )
    if "" in frame.columns:
        place = list(frame.columns).index("")
        side = "row" if transpose else "column"
        raise ValueError(f"{path}: a {side} has no name (node {place + 1}); name every node.")
    _check_gaps(frame, path, missing, transpose)
    return frame


def _warn_of_no_header(frame: pd.DataFrame, path: Path) -> None:
    """Numbers in the first line may be names after all."""
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
    """Here, where the row of the file is still known."""
    bad = ~np.isfinite(frame.to_numpy()) if missing == "error" else np.isinf(frame.to_numpy())
    if not bad.any():
        return
    p, i = np.argwhere(bad)[0]
    name, value = frame.columns[i], frame.iloc[p, i]
    cure = "--missing pairwise uses for each pair what there is"
    what = f"{value}; correct it, or empty the cell ({cure})"
    if np.isnan(value):
        what = f"a gap; fill it, leave the node out (--nodes), or allow gaps: {cure}"
    more = f" ({bad.sum()} such cells in all)" if bad.sum() > 1 else ""
    # Line 1 is the header; where nodes are rows, row and column change places.
    row, column = (i + 2, repr(frame.index[p])) if transpose else (p + 2, repr(name))
    raise ValueError(f"{path}, row {row}, column {column}: {what}{more}.")


def _distances(path: Path) -> pd.DataFrame:
    try:
        return read_matrix(path)
    except ValueError as error:
        if "empty" in str(error):
            raise
        names = f"{', '.join(SIGNALS[:-1])} or {SIGNALS[-1]}"
        cure = f"If these are signals (rows observations, columns nodes), say --metric {names}."
        raise WrongMetric(str(error), cure) from None


def _chosen(frame: pd.DataFrame, wanted: list[str], path: Path) -> pd.DataFrame:
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{path}: has no column for {missing[:5]}"
            f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}, named in --nodes; it "
            f"has {[str(name) for name in frame.columns[:5]]} ..."
        )
    return frame[wanted]


def _label_matrix(
    path: Path, names: list[str], rows: list[str], some_nodes: bool, weighted: bool
) -> pd.DataFrame:
    matrix = _as_matrix(path, names, weighted)
    strangers = [name for name in matrix.columns if name not in set(names)]
    missing = [name for name in names if name not in matrix.columns]
    if missing or (strangers and not some_nodes):
        odd, where = (missing, "are not in it") if missing else (strangers, "are not in the data")
        raise ValueError(
            f"{path}: nodes {odd[:5]} {where}; labels and data must name the same nodes."
            f"{_on_its_side(list(matrix.columns), names, rows)}"
        )
    matrix = matrix.loc[names, names]
    try:
        check = check_edge_weights if weighted else check_labels
        check(matrix, Complete(len(names)), names)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from None
    return matrix


def _as_matrix(path: Path, names: list[str], weighted: bool) -> pd.DataFrame:
    if path.suffix.lower() == ".graphml":
        return read_graphml(path, weighted)
    table = read_table(path)
    if {"source", "target"} <= set(table.columns):
        ends = set(table["source"].astype(str)) | set(table["target"].astype(str))
        everyone = [*names, *sorted(ends - set(names))]
        value = weight_column(table, str(path)) if weighted else None
        return edges_to_matrix(table, value, names=everyone, fill=0.0, where=str(path))
    try:
        return read_matrix(path)
    except ValueError as error:
        forms = "Labels are an adjacency with names, an edge list (source, target), or GraphML."
        raise ValueError(f"{error} {forms}") from None


def _on_its_side(labelled: list[str], names: list[str], rows: list[str]) -> str:
    """A hint, where the labels name none of the columns but perhaps the rows."""
    unlike = not set(labelled) & set(names)
    named = rows != [str(i) for i in range(len(rows))]
    if unlike and (len(labelled) == len(rows) or (named and set(labelled) & set(rows))):
        return " The data lie on their side, it seems: --transpose."
    return ""


def read_graphml(path: Path, weighted: bool = False) -> pd.DataFrame:
    """The adjacency of a graph; a node is called by its attribute name or label, or else its id."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {_absent(path)}.")
    try:
        graph = nx.read_graphml(path)
    except Exception as error:
        raise ValueError(f"{path}: not GraphML ({error}).") from None
    if graph.is_directed():
        raise ValueError(
            f"{path}: the graph is directed; edges here have no direction. Save it as undirected."
        )
    named: dict[Any, str] = {}
    for key in ("name", "label"):
        if not named and all(key in attributes for _, attributes in graph.nodes(data=True)):
            named = {node: str(attributes[key]) for node, attributes in graph.nodes(data=True)}
    named = named or {node: str(node) for node in graph}
    check_names(named.values(), len(named), f"{path}: node names")
    named_graph = nx.Graph(nx.relabel_nodes(graph, named))
    if weighted:
        try:
            check_has_weights(named_graph)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return nx.to_pandas_adjacency(named_graph, weight="weight" if weighted else None)


def _same_group(path: Path, names: list[str], rows: list[str]) -> pd.DataFrame:
    found = read_groups(path, names)
    missing = [name for name in names if name not in found]
    if missing:
        first = list(found)[:3]
        raise ValueError(
            f"{path}: no group for nodes {missing[:5]}; its first column has {first} ..."
            f"{_on_its_side(list(found), names, rows)}"
        )
    group = np.array([found[name] for name in names])
    same = (group[:, None] == group[None, :]).astype(float)
    np.fill_diagonal(same, 0.0)
    return pd.DataFrame(same, index=names, columns=names)


def read_groups(path: Path, names: Collection[str] = ()) -> dict[str, str]:
    """The group of each node: a table with the node first and then its group.

    A header that is one of the `names` is a row like the others.
    """
    table = read_table(path)
    if table.shape[1] < 2:
        raise ValueError(f"{path}: groups are a table of two columns, the node and its group.")
    rows = table.iloc[:, :2].astype(str).to_numpy().tolist()
    header = [str(name) for name in table.columns[:2]]
    no_header = header[0] in names and header[0] not in (row[0] for row in rows)
    found: dict[str, str] = {}
    for line, (name, group) in enumerate([header, *rows] if no_header else rows, 2 - no_header):
        if name in found:
            raise ValueError(f"{path}, row {line}: {name!r} has a group already; name it once.")
        if group.strip() in ("", "nan", "None", "<NA>"):
            raise ValueError(f"{path}, row {line}: {name!r} has no group; give it one of its own.")
        found[name] = group
    return found


def _covariates(path: Path, names: list[str], some_nodes: bool) -> dict[str, np.ndarray]:
    """Of the pairs of one graph; of pairs whose nodes are not wanted, none."""
    frame = read_covariates(path)
    if some_nodes and {"source", "target"} <= set(frame.columns):
        wanted = frame["source"].isin(names) & frame["target"].isin(names)
        frame = frame[wanted]
    try:
        return pair_covariates(frame, names)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from None


def _data_set(path: Path) -> GraphDataset:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {_absent(path)}.")
    try:
        return load_dataset(path)
    except MemoryError:
        raise
    except Exception as error:  # a zip file can be wrong in many ways
        text = str(error)
        if text.startswith("graph "):
            raise ValueError(f"{path}: {text}") from None
        why = text if str(path) in text else f"{path}: damaged, or another kind of file."
        if "pickle" in text:
            why = f"{path}: another kind of file, or one with Python objects, which are not read."
        raise ValueError(f"{why} `edgebelief simulate` and save_dataset write data sets.") from None


def _absent(path: Path) -> str:
    return "is a folder" if path.is_dir() else "no such file"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
