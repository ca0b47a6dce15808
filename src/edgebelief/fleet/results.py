"""The results of a job, graph by graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from .job import fingerprint, read_job
from .plan import FAILURES, MODELS, TABLES
from .tables import read_report, read_table, reports_in


class Result(NamedTuple):
    """What became of one graph; of a file of which nothing became, why."""

    file: str
    """The name of the file in the folder of inputs."""
    graph: int = 0
    """Which of the graphs in that file, if it was predicted."""
    table: pd.DataFrame | None = None
    """Of predictions a row per pair; of a fit the summary of the posterior."""
    model: Path | None = None
    """The model file that was fitted."""
    error: str | None = None


def results(out: str | Path) -> Iterator[Result]:
    """Read the results in a folder graph by graph, a shard in memory at a time.

    Those with results come first, by the number of nodes; then those that failed.

    Examples
    --------
    >>> from edgebelief.fleet import results
    >>> next(results("nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: nowhere/job.json: no such file.
    """
    out = Path(out)
    mark = fingerprint(read_job(out))
    failed: dict[str, Result] = {}
    done: set[str] = set()
    for path in reports_in(out / TABLES) + reports_in(out / FAILURES):
        report = read_report(path)
        if report.fingerprint != mark:
            continue
        failed |= {e.file: Result(e.file, error=e.error) for e in report.entries if not e.is_done}
        entries = [entry for entry in report.entries if entry.is_done]
        done |= {entry.file for entry in entries}
        if not entries:
            continue
        rows = read_table(path)
        if entries[0].model is None:
            keys = ["file", "graph"]
            groups = rows.groupby(keys, sort=False).indices if len(rows) else {}
            for entry in entries:
                for number in range(entry.n_graphs):
                    places = groups.get((entry.file, number), [])
                    table = rows.iloc[places].drop(columns=keys, errors="ignore")
                    yield Result(entry.file, number, table.reset_index(drop=True))
        else:
            for entry in entries:
                table = rows[rows["file"] == entry.file].drop(columns="file")
                model = out / MODELS / str(entry.model)
                yield Result(entry.file, table=table.reset_index(drop=True), model=model)
    for file in sorted(set(failed) - done):
        yield failed[file]
