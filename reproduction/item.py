"""An item of the paper: what is run, what comes of it, and how it compares.

A module per table or figure holds `TITLE`, `CLAIM` (what the paper says), `FULL` and `SMALL` (its
settings) and `run(work)`, which returns an `Outcome`. Anything that takes long in it goes through
`work.once`, which keeps the answer in a file: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgebelief.atomic import replacing

# A difference of so many standard errors is one.
FAR = 2.0


class Row(NamedTuple):
    """One figure of the paper beside ours."""

    what: str
    ours: float
    error: float | None = None
    """What ours may be off by: a standard error, or a standard deviation over seeds."""
    paper: float | None = None
    note: str = ""

    @property
    def away(self) -> float | None:
        """The difference in standard errors."""
        if self.paper is None or not self.error:
            return None
        return (self.ours - self.paper) / self.error


@dataclass
class Table:
    """Figures of ours for which the paper has none, or not in this form."""

    title: str
    columns: list[str]
    rows: list[list[Any]]


@dataclass
class Outcome:
    """What an item found.

    Parameters
    ----------
    says : list of str
        Plain sentences: what holds, what does not, why.
    rows : list of Row
    tables : list of Table
    figures : mapping from names to Matplotlib figures
        A name is a few words: it becomes the caption, and the file's name.
    numbers : mapping
        Whatever else one may want to go on with, as JSON can hold it.
    """

    says: list[str]
    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)


class MissingData(Exception):
    """An item needs a file that is not there."""


@dataclass(frozen=True)
class Work:
    """Where an item works, and with what.

    Parameters
    ----------
    out : path
        Pieces and results are kept here.
    data : path, optional
        A folder with the authors' data.
    small : bool
        Settings that take seconds, to see that everything runs.
    say : callable
        Told what goes on.
    """

    out: Path
    data: Path | None = None
    small: bool = False
    say: Callable[[str], None] = lambda text: None
    took: list[float] = field(default_factory=list)
    """Seconds of each piece, whenever it was computed."""

    def settings(self, full: Any, small: Any) -> Any:
        return small if self.small else full

    def file(self, name: str) -> Path:
        """A file of the authors' data."""
        path = None if self.data is None else self.data / name
        if path is None or not path.is_file():
            raise MissingData(name)
        return path

    def has(self, *names: str) -> bool:
        """Whether those files are there."""
        return self.data is not None and all((self.data / name).is_file() for name in names)

    def once(self, function: Callable[..., Any], *arguments: Any, using: Any = ()) -> Any:
        """`function(*arguments, *using)`, from its file if it was called with these before.

        Parameters
        ----------
        function : callable
            Of a module; returns what JSON can hold.
        arguments
            What the answer depends on, as JSON can hold it, or as their repr tells it.
        using : tuple
            Further arguments that only say where things are.
        """
        where = f"{function.__module__.rpartition('.')[2]}.{function.__name__.strip('_')}"
        key = hashlib.sha256(repr(arguments).encode()).hexdigest()[:12]
        path = self.out / "pieces" / f"{where}-{key}.json"
        if path.is_file():
            record = json.loads(path.read_text())
            self.took.append(record["seconds"])
            return record["answer"]
        words = ", ".join(str(x) for x in arguments if isinstance(x, str | int | float))
        self.say(f"{where.replace('.', ': ')} {words}".strip())
        begin = time.perf_counter()
        answer = plain(function(*arguments, *using))
        seconds = time.perf_counter() - begin
        record = {"arguments": repr(arguments), "seconds": seconds, "answer": answer}
        write_json(path, record)
        self.took.append(seconds)
        return answer


def plain(value: Any) -> Any:
    """As JSON can hold it: arrays are lists, what is not finite is null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1))


def slug(words: str) -> str:
    """A file's name from a few words."""
    kept = "".join(c if c.isalnum() else "-" for c in words.lower())
    return "-".join(part for part in kept.split("-") if part)


def kept(name: str, outcome: Outcome, work: Work) -> dict[str, Any]:
    """Write an outcome: numbers as JSON, figures as PNG and SVG."""
    import matplotlib.pyplot as plt

    pictures = {}
    for caption, figure in outcome.figures.items():
        stem = work.out / "images" / "reproduction" / f"{name}-{slug(caption)}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix, resolution in ((".png", 110), (".svg", None)):
            figure.savefig(stem.with_suffix(suffix), dpi=resolution)
        plt.close(figure)
        pictures[caption] = stem.with_suffix(".png").relative_to(work.out).as_posix()
    found = {
        "says": outcome.says,
        "rows": [{**row._asdict(), "away": row.away} for row in outcome.rows],
        "tables": [asdict(table) for table in outcome.tables],
        "figures": pictures,
        "numbers": outcome.numbers,
        "small": work.small,
        "seconds": sum(work.took),
    }
    found = plain(found)
    write_json(work.out / f"{name}.json", found)
    return found
