"""What a worker does: one shard, from the path of its order to its table."""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pandas as pd

from ..data.coerce import graphs_from
from ..errors import InputError, Message
from ..estimators import GraphLearner, load
from ..infer import InferenceWarning
from .job import digested, fingerprint, read_job, settings_of
from .plan import FAILURES, MODELS, TABLES, Order, read_order, tables_of
from .reading import Contents, Reader, read_graphs
from .sources import Source, Stamp, stamp_of
from .tables import Entry, Report, read_report, suffix, write_failures, write_table

# Graphs that are predicted together: with 64 of 20 nodes each takes a fifth of its time alone.
BATCH = 64
# Sizes of graphs whose compiled functions are kept: each takes some 20 MB.
MOST_SIZES = 4
# A shard at a time in a process, whatever its threads: memory is bounded, and warnings are caught
# for the whole process.
_one_at_a_time = threading.Lock()
_sizes: set[int] = set()


class Withdrawn(Exception):
    """The order is not there any more: it was done, or its inputs have changed."""


def work(
    order: str | Path,
    read: Reader = read_graphs,
    sentence: Callable[[Exception], str] = str,
) -> Report:
    """Do one shard, and leave one table: what `run` has workers do.

    A graph that is bad, or that the learner fails on, fails alone. The order is removed when the
    table is there. Where there is no order and no table, `Withdrawn` is raised.

    Parameters
    ----------
    order : path
        One of those that `shards` returns.
    read : callable
        How a file is read: see `edgebelief.fleet.reading.Reader`.
    sentence : callable
        How the message of an error is written.

    Examples
    --------
    >>> from edgebelief.fleet import work
    >>> work("nowhere/orders/000008-0123.json")
    Traceback (most recent call last):
    edgebelief.fleet.work.Withdrawn: nowhere/orders/000008-0123.json
    """
    path = Path(order)
    out = path.parent.parent
    with _one_at_a_time:
        try:
            ordered = read_order(path)
        except FileNotFoundError:
            return _done_before(path)
        described = read_job(out)
        if fingerprint(described) != ordered.fingerprint:
            raise Withdrawn(str(path))
        shard = _Shard(out, described, ordered, read, sentence)
        with _caught() as warned:
            table = (_predicted if described["kind"] == "predict" else _fitted)(shard)
        if not path.exists():  # a worker of an earlier run has been here meanwhile
            return _done_before(path)
        report = Report(ordered.fingerprint, tuple(shard.entries), _counted(warned))
        if any(entry.is_done for entry in report.entries):
            write_table(out / TABLES / f"{path.stem}{suffix()}", table, report)
        else:
            write_failures(out / FAILURES / f"{path.stem}.json", report)
        path.unlink(missing_ok=True)
    return report


def _done_before(order: Path) -> Report:
    """Return what became of an order that is gone."""
    for path in tables_of(order):
        return read_report(path)
    raise Withdrawn(str(order))


class _Shard:
    """A shard while it is done."""

    def __init__(
        self,
        out: Path,
        described: Mapping[str, Any],
        order: Order,
        read: Reader,
        sentence: Callable[[Exception], str],
    ):
        self.out, self.described, self.order = out, described, order
        self.entries: list[Entry] = []
        self._read, self._sentence = read, sentence

    def contents(self, source: Source, learner: GraphLearner) -> Contents:
        """Read a file."""
        return self._read(source, learner, self.described["options"])

    def fail(self, source: Source, stamp: Stamp, error: Exception) -> None:
        """Keep why there is no result of a file; of a bug, where."""
        said = self._sentence(error)
        if str(source.data) not in said:
            said = f"{source.data}: {said}"
        known = isinstance(error, Message | OSError | MemoryError)
        trace = "" if known else "".join(traceback.format_exception(error))
        if not known:
            said = f"{source.data}: {type(error).__name__}: {error}"
        self.entries.append(Entry(source.name, stamp, said, trace))


class _Graph(NamedTuple):
    """A graph that was read, and checked."""

    file: int
    """Which of the shard's files it is from."""
    number: int
    """Which of the graphs in that file."""
    X: Any
    covariates: Any
    n_nodes: int


def _predicted(shard: _Shard) -> pd.DataFrame:
    """Predict the graphs of a shard, so many at a time, each time those of one size together."""
    described = shard.described
    learner = _learner(*described["model"])
    settings = {"level": described["level"], **_rule(described["rule"])}
    sources = shard.order.sources
    parts: list[pd.DataFrame] = []
    for first in range(0, len(sources), _even(len(sources))):
        stamps: dict[int, Stamp] = {}
        graphs: list[_Graph] = []
        failed: dict[int, Exception] = {}
        files = range(first, min(first + _even(len(sources)), len(sources)))
        for file in files:
            stamps[file] = stamp_of(sources[file].files)
            try:
                graphs += _checked(shard, file, learner)
            except Exception as error:
                failed[file] = error
        tables: dict[tuple[int, int], pd.DataFrame] = {}
        for n_nodes in sorted({graph.n_nodes for graph in graphs}):
            _forget(n_nodes)
            same = [graph for graph in graphs if graph.n_nodes == n_nodes]
            for k in range(0, len(same), BATCH):
                _predict(learner, same[k : k + BATCH], settings, tables, failed)
        for file in files:
            source = sources[file]
            if file in failed:
                shard.fail(source, stamps[file], failed[file])
                continue
            numbers = [graph.number for graph in graphs if graph.file == file]
            shard.entries.append(Entry(source.name, stamps[file], n_graphs=len(numbers)))
            parts += [_labelled(tables[file, n], source.name, n) for n in numbers]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return table if described["all_pairs"] or not parts else table[table["decision"] == 1]


def _even(n_files: int) -> int:
    """Return how many files are read at a time: at most `BATCH`, and as evenly as may be.

    Arrays of one shape share a compiled function.
    """
    n_batches = -(-n_files // BATCH)
    return -(-n_files // n_batches)


def _checked(shard: _Shard, file: int, learner: GraphLearner) -> Iterator[_Graph]:
    """Read the graphs of a file, and refuse bad ones before others are predicted with them."""
    source = shard.order.sources[file]
    contents = shard.contents(source, learner)
    how = {"metric": learner.metric, "missing": learner.missing, "preprocess": learner.preprocess}
    for number, X in enumerate(contents.X):
        covariates = None if contents.covariates is None else contents.covariates[number]
        graphs = graphs_from(X, covariates=covariates, **how)
        [record] = graphs.data
        # What was measured from signals may be asked for evidence again, by the signals.
        known = graphs.signals is None
        given, beside = (record, None) if known else (X, covariates)
        yield _Graph(file, number, given, beside, len(record.names))


def _predict(
    learner: GraphLearner,
    graphs: Sequence[_Graph],
    settings: Mapping[str, Any],
    tables: dict[tuple[int, int], pd.DataFrame],
    failed: dict[int, Exception],
) -> None:
    """Predict graphs of one size together; if that fails, one by one."""
    graphs = [graph for graph in graphs if graph.file not in failed]
    if not graphs:
        return
    beside = [graph.covariates for graph in graphs]
    covariates = None if all(each is None for each in beside) else beside
    try:
        table = learner.edge_table([g.X for g in graphs], covariates=covariates, **settings)
    except Exception as error:
        if len(graphs) == 1:
            if isinstance(error, InputError) and isinstance(error.graph, int):
                error = error.but(graph=None)  # it is the only one, and needs no number
            failed[graphs[0].file] = error
            return
        for graph in graphs:
            _predict(learner, [graph], settings, tables, failed)
        return
    for t, graph in enumerate(graphs):
        tables[graph.file, graph.number] = table[table["graph"] == t]


def _labelled(table: pd.DataFrame, file: str, number: int) -> pd.DataFrame:
    """Return the rows of a graph with the file that it is from, and which of its graphs it is.

    Names of nodes are texts, so that tables of files with and without names are alike.
    """
    rest = table.drop(columns="graph").astype({"source": str, "target": str})
    rest.insert(0, "file", file)
    rest.insert(1, "graph", number)
    return rest


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in rule.items()}


@lru_cache(maxsize=1)
def _learner(path: str, digest: str) -> GraphLearner:
    """Read a model once for all shards, and only the one that the job is about."""
    if digested(path)[1] != digest:
        problem = "has changed since the job began"
        raise InputError(problem, where=path, remedy="Run it again, to redo all with this model")
    return load(path)


def _fitted(shard: _Shard) -> pd.DataFrame:
    """Fit a model to each file of a shard."""
    settings = settings_of(shard.described)
    tables = []
    for source, model in zip(shard.order.sources, shard.order.models, strict=True):
        stamp = stamp_of(source.files)
        learner = GraphLearner(**settings)
        try:
            contents = shard.contents(source, learner)
            _forget(source.n_nodes)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InferenceWarning)  # the entry has the findings
                learner.fit(contents.X, contents.A, covariates=contents.covariates)
            learner.save(shard.out / MODELS / model)
        except Exception as error:
            shard.fail(source, stamp, error)
            continue
        posterior = learner.posterior_
        summary = posterior.summary().reset_index(names="parameter")
        summary.insert(0, "file", source.name)
        tables.append(summary)
        findings = tuple(finding.name for finding in posterior.verdict.findings)
        n_graphs = len(contents.X)
        done = Entry(source.name, stamp, n_graphs=n_graphs, model=model, findings=findings)
        shard.entries.append(done)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _forget(n_nodes: int) -> None:
    """Forget what was compiled for other sizes of graphs, when there are many of them."""
    if n_nodes not in _sizes and len(_sizes) >= MOST_SIZES:
        jax.clear_caches()
        _sizes.clear()
    _sizes.add(n_nodes)


@contextmanager
def _caught() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings for the report, since nobody reads what a worker prints."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield caught


def _counted(caught: Iterable[warnings.WarningMessage]) -> dict[str, tuple[int, str]]:
    """Return how often there was a warning of each category, and the first of them."""
    counted: dict[str, tuple[int, str]] = {}
    for warning in caught:
        name = warning.category.__name__
        n, first = counted.get(name, (0, str(warning.message)))
        counted[name] = n + 1, first
    return counted
