"""An item of the paper: what is run, its results, and how they compare with the published ones.

Each table or figure has a module with `TITLE`, `CLAIM` (what the paper says), `FULL` and `SMALL`
(its settings) and `run(work)`, which returns an `Outcome`. Every slow computation goes through
`work.once`, which stores the answer in a file, so that an interrupted run resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from edgebelief.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A difference of more than two standard errors counts as a difference.
FAR = 2.0
AUTHORS_GRAPHS = "rg032.npz"

# The answer of a computation, as JSON holds it: numbers, texts and lists by name.
Answer = dict[str, Any]
Settings = TypeVar("Settings")


class Row(NamedTuple):
    """One published number beside ours."""

    what: str
    ours: float
    error: float | None = None
    """The uncertainty of ours: a standard error, or a standard deviation over seeds."""
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
    """Results of ours that the paper does not have, or not in this form."""

    title: str
    columns: list[str]
    rows: list[list[Any]]


@dataclass
class Outcome:
    """The results of an item.

    Parameters
    ----------
    says : list of str
        Plain sentences: what holds, what does not, why.
    rows : list of Row
    tables : list of Table
    figures : mapping from names to Matplotlib figures
        A name is a few words: it becomes the caption and the name of the file.
    numbers : mapping
        Further numbers for later use, as JSON can hold them.
    """

    says: list[str]
    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    numbers: Answer = field(default_factory=dict)


class Item(Protocol):
    """The module of an item."""

    TITLE: str
    CLAIM: str

    def run(self, work: Work) -> Outcome:
        """Compute the item, or read it from stored pieces."""


class MissingData(Exception):
    """An item needs a file that does not exist."""


@dataclass(frozen=True)
class Work:
    """The folders and settings that an item works with.

    Parameters
    ----------
    out : path
        The folder for stored pieces and results.
    data : path, optional
        A folder with the authors' data.
    small : bool
        Whether to use settings that take seconds, to see that everything runs.
    say : callable
        Receives progress messages.
    """

    out: Path
    data: Path | None = None
    small: bool = False
    say: Callable[[str], None] = lambda text: None
    took: list[float] = field(default_factory=list)
    """Seconds of each piece, including those of pieces that were stored earlier."""

    def settings(self, full: Settings, small: Settings) -> Settings:
        return small if self.small else full

    def file(self, name: str) -> Path:
        """Return the path of a file of the authors' data."""
        path = None if self.data is None else self.data / name
        if path is None or not path.is_file():
            raise MissingData(name)
        return path

    def has(self, *names: str) -> bool:
        """Tell whether all these files of the authors' data exist."""
        return self.data is not None and all((self.data / name).is_file() for name in names)

    @property
    def authors(self) -> Path | None:
        """The file of the authors' RG(1/3) graphs, or None where it is missing."""
        return self.file(AUTHORS_GRAPHS) if self.has(AUTHORS_GRAPHS) else None

    def once(self, function: Callable[..., Any], *arguments: object, using: Any = ()) -> Any:
        """Return `function(*arguments, *using)`, from its file if it was called like this before.

        Parameters
        ----------
        function : callable
            A function of a module; returns what JSON can hold.
        arguments
            Everything that the answer depends on, as its repr shows it.
        using : tuple
            Further arguments on which the answer does not depend, such as paths.
        """
        title = f"{function.__module__.rpartition('.')[2]}.{function.__name__.strip('_')}"
        key = hashlib.sha256(repr(arguments).encode()).hexdigest()[:12]
        path = self.out / "pieces" / f"{title}-{key}.json"
        if path.is_file():
            record = json.loads(path.read_text())
            self.took.append(record["seconds"])
            return record["answer"]
        words = ", ".join(str(x) for x in arguments if isinstance(x, str | int | float))
        self.say(f"{title.replace('.', ': ')} {words}".strip())
        begin = time.perf_counter()
        answer = jsonable(function(*arguments, *using))
        seconds = time.perf_counter() - begin
        record = {"arguments": repr(arguments), "seconds": seconds, "answer": answer}
        write_json(path, record)
        self.took.append(seconds)
        return answer


def jsonable(value: object) -> Any:
    """Convert to what JSON can hold: arrays become lists, numbers that are not finite null."""
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def write_text(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(text)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file that appears whole or not at all."""
    write_text(path, json.dumps(value, indent=1))


def slug(words: str) -> str:
    """Turn a few words into the name of a file."""
    letters = "".join(c if c.isalnum() else "-" for c in words.lower())
    return "-".join(part for part in letters.split("-") if part)


def save_outcome(name: str, outcome: Outcome, work: Work) -> Answer:
    """Write an outcome, numbers as JSON and figures as PNG and SVG, and return its JSON."""
    import matplotlib.pyplot as plt

    pictures = {}
    for caption, figure in outcome.figures.items():
        stem = work.out / "images" / "reproduction" / f"{name}-{slug(caption)}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(stem.with_suffix(".png"), dpi=110)
        figure.savefig(stem.with_suffix(".svg"))
        plt.close(figure)
        pictures[caption] = stem.with_suffix(".png").relative_to(work.out).as_posix()
    results = jsonable(
        {
            "says": outcome.says,
            "rows": [{**row._asdict(), "away": row.away} for row in outcome.rows],
            "tables": [asdict(table) for table in outcome.tables],
            "figures": pictures,
            "numbers": outcome.numbers,
            "small": work.small,
            "seconds": sum(work.took),
        }
    )
    write_json(work.out / f"{name}.json", results)
    return results
