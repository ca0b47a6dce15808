"""The file that a shard leaves: a table of results, and an entry for each graph that it was about.

Parquet where pyarrow is installed, with the entries in its metadata; npz elsewhere, with a column
an array and the entries a text. It appears whole or not at all, so what there is is done.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..atomic import replacing
from ..data.npz import open_npz
from ..data.parquet import read_parquet
from ..errors import InputError
from .sources import Stamp

KEY = b"edgebelief"
ENTRIES = "entries"


# Warnings by category: how often, and the first of them.
Warned = Mapping[str, tuple[int, str]]


def added(some: Warned, more: Warned) -> Warned:
    """Return two counts of warnings as one.

    Examples
    --------
    >>> from edgebelief.fleet.tables import added
    >>> added({"A": (1, "x")}, {"A": (2, "y"), "B": (1, "z")})
    {'A': (3, 'x'), 'B': (1, 'z')}
    """
    total = dict(some)
    for category, (n, first) in more.items():
        before, message = total.get(category, (0, first))
        total[category] = before + n, message
    return total


class Entry(NamedTuple):
    """What became of one file of the inputs."""

    file: str
    stamp: Stamp
    """Of the file, and those that go with it, before they were read."""
    error: str | None = None
    """Why there is no result, in a sentence."""
    traceback: str = ""
    """Where that is a bug."""
    n_graphs: int = 1
    model: str | None = None
    """The name of the model file that was fitted."""
    findings: tuple[str, ...] = ()
    """What the verdict found wrong with the fit."""

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return self.error is None


class Report(NamedTuple):
    """The entries of a shard, and what there was to warn of."""

    fingerprint: str
    """Of the job."""
    entries: tuple[Entry, ...]
    warnings: Warned

    def as_text(self) -> str:
        """Return the report as JSON."""
        entries = [entry._asdict() for entry in self.entries]
        return json.dumps({**self._asdict(), "entries": entries}, allow_nan=False)

    @classmethod
    def from_text(cls, text: str | bytes) -> Report:
        """Read what `as_text` wrote."""
        content = json.loads(text)
        entries = tuple(
            Entry(**{**e, "stamp": _pairs(e["stamp"]), "findings": tuple(e["findings"])})
            for e in content["entries"]
        )
        warned = {name: (int(n), str(first)) for name, (n, first) in content["warnings"].items()}
        return cls(content["fingerprint"], entries, warned)


def _pairs(stamp: Sequence[Sequence[int]]) -> Stamp:
    return tuple((size, time) for size, time in stamp)


def suffix() -> str:
    """Return the suffix of the files that this machine writes."""
    return ".npz" if find_spec("pyarrow") is None else ".parquet"


def write_table(path: Path, table: pd.DataFrame, report: Report) -> None:
    """Write the file of a shard, by the suffix of its path."""
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            arrow = pa.Table.from_pandas(table, preserve_index=False)
            metadata = {**(arrow.schema.metadata or {}), KEY: report.as_text().encode()}
            pq.write_table(arrow.replace_schema_metadata(metadata), temporary)
        else:
            texts = {name for name in table if table[name].dtype.kind not in "fiub"}
            arrays: dict[str, Any] = {
                str(name): table[name].to_numpy(str if name in texts else None) for name in table
            }
            arrays[ENTRIES] = np.array([report.as_text()])
            # Not `savez`, which has an argument of its own that is called file.
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, array in arrays.items():
                    with archive.open(f"{name}.npy", "w") as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)


def write_failures(path: Path, report: Report) -> None:
    """Write the report of a shard of which no graph has a result: an empty table has no columns."""
    with replacing(path) as temporary:
        temporary.write_text(report.as_text())


def read_report(path: Path) -> Report:
    """Read the entries alone; a file that is damaged, or not of ours, is an `InputError`."""
    try:
        if path.suffix == ".json":
            return Report.from_text(path.read_text())
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return Report.from_text(pq.read_schema(path).metadata[KEY])
        with open_npz(path) as file:
            return Report.from_text(str(file.array(ENTRIES)[0]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"is no file of results of a fleet ({error}).", where=path) from None


def read_table(path: Path) -> pd.DataFrame:
    """Read the rows."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        described = pq.read_metadata(path)
        if not described.num_rows:  # no edge was decided; such a file has no pages to look at
            return pd.DataFrame(columns=described.schema.names)
        return read_parquet(path)
    with open_npz(path) as file:
        columns = {name: file.array(name) for name in file.described if name != ENTRIES}
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype=object if column.dtype.kind == "U" else None)
            for name, column in columns.items()
        }
    )


def reports_in(folder: Path) -> list[Path]:
    """Return the files of a folder that hold reports, in the order of their names."""
    if not folder.is_dir():
        return []
    visible = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in visible if path.suffix in (".parquet", ".npz", ".json"))
