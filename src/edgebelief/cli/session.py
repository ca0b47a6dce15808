"""One run of a command: what it says, what it answers, how it ends.

Words on what goes on go to the standard error; the answer goes to the standard output, as words or,
with --json, as one JSON object. An error is one line, and an exit code that says whose it was.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any

import typer
from rich.console import Console, JustifyMethod
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..errors import InputError, Message, Setting, SettingError, legible, shortened
from .interrupt import INTERRUPTED, MESSAGE

if TYPE_CHECKING:
    import pandas as pd

    from ..infer import Verdict

BUG, USAGE, BAD_INPUT, VERDICT, RESOURCES = 1, 2, 3, 4, 5
# The settings of the library that are options here, under the same names.
OPTIONS = {
    *("bootstrap", "cost", "covariates", "cv", "degree", "density", "depth", "evidence", "fdr"),
    *(
        "inference",
        "level",
        "mass",
        "max_components",
        "metric",
        "missing",
        "network",
        "nodes",
        "prior",
    ),
    *("readout", "scale", "size_aware", "theta", "threshold", "top_k", "preprocess"),
    *("transpose", "weighted", "support", "n_neighbors", "exact"),
}
# Those whose option has another name.
FLAGS = {"n_neighbors": "--neighbours"}
# Characters in a line that is no error: more than any line of ours that holds no hostile name.
WIDEST = 500
# Names come from files, and a terminal obeys what these begin.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

# What the command that runs was called with.
called_with: ContextVar[Sequence[str]] = ContextVar("called_with", default=())


class Misused(SettingError):
    """An option that cannot be, or options that do not go together."""


class Session:
    """What a command says and answers, in words or in JSON."""

    def __init__(self, json: bool):
        self.json = json
        self.answer: dict[str, Any] = {}
        self._notes = _Patient(stderr=True, highlight=False)
        self._out = _Patient(highlight=False, soft_wrap=True)

    def note(self, text: str, style: str = "dim") -> None:
        """Say what is going on."""
        self._notes.print(Text(_shown(text), style=style), soft_wrap=True)

    def say(self, text: str = "", style: str = "") -> None:
        """Say a line of the answer, if it is in words."""
        if not self.json:
            self._out.print(Text(_shown(text), style=style), soft_wrap=True)

    def show(
        self, rows: pd.DataFrame, title: str = "", most: int = 20, rest: str = "more rows"
    ) -> None:
        """Show the first rows of a frame, as a table, if the answer is in words.

        `rest` says what the rows are that are not shown, and where to find them.
        """
        if self.json:
            return
        table = Table(title=Text(title) if title else None, title_justify="left")
        for name in rows.columns:
            justify: JustifyMethod = "right" if rows[name].dtype.kind in "fiu" else "left"
            table.add_column(Text(str(name)), justify=justify, overflow="fold")
        for row in rows.head(most).itertuples(index=False):
            table.add_row(*(Text(_cell(value)) for value in row))
        self._out.print(table)
        if len(rows) > most:
            self.say(f"... and {len(rows) - most:,} {rest}", "dim")

    @contextmanager
    def working(self, what: str, has_bar: bool = False) -> Iterator[None]:
        """Show a spinner with the time while something takes long, on terminals alone.

        Not where the work shows a bar itself (`has_bar`): of two, neither can be read. Bars of
        other work are hidden.
        """
        if has_bar or not self._notes.is_terminal:
            yield
            return
        from ..progress import hidden_bars

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with hidden_bars(), Progress(*columns, console=self._notes, transient=True) as progress:
            progress.add_task(what, total=None)
            yield

    def conclude(self, verdict: Verdict) -> None:
        """Say what a reader of results must know of the fit behind them, and end."""
        for finding in verdict.findings:
            self.say(f"verdict: {finding.name}: {' '.join(finding.message.split())}", "yellow")
        if "rescaling" in verdict.figures:
            factor = f"{verdict.figures['rescaling']:g}"
            self.say(f"remedy: fit to the distances times {factor} (--scale {factor})", "yellow")
        for assumption in verdict.assumptions:
            self.say(f"assumed: {assumption}")
        self.end(verdict)

    def end(self, verdict: Verdict) -> None:
        """End with the exit code of the findings, which are results too, and are written by now."""
        self.answer["verdict"] = verdict_to_json(verdict)
        if not verdict.ok:
            raise typer.Exit(VERDICT)


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the whole verdict, for machines."""
    return {
        "ok": verdict.ok,
        "findings": [finding._asdict() for finding in verdict.findings],
        "assumptions": list(verdict.assumptions),
        "figures": dict(verdict.figures),
    }


@contextmanager
def session(json_wanted: bool) -> Iterator[Session]:
    """Run a command's body: warnings become lines, errors one line and an exit code."""
    this = Session(json_wanted)
    said: list[str] = []

    def warned(message: Warning | str, *_: object, **__: object) -> None:
        text = one_line(message)
        if text not in said:
            said.append(text)
            this.note(f"warning: {text}", "yellow")

    code, problem, bug = 0, "", None
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = warned
        try:
            yield this
        except typer.Exit as stop:
            code = stop.exit_code
        except KeyboardInterrupt:
            code, problem = INTERRUPTED, MESSAGE
        except Exception as error:
            code, problem = _judged(error)
            bug = error if code == BUG else None
    if problem:
        this.answer = {"error": problem, "exit_code": code}
    if json_wanted:
        try:
            _print_json(this.answer | ({"warnings": said} if said else {}))
        except OSError as error:  # the disk that it goes to is full
            _forget(sys.stdout)
            code, problem = _judged(error)
    if problem:
        this.note(f"error: {problem}", "bold red")
    if bug is not None:
        raise bug
    if code:
        raise typer.Exit(code)


def complain(problem: str, code: int, *, json_wanted: bool) -> int:
    """Say what is wrong where no session could begin; returns the code."""
    problem = one_line(problem)
    if json_wanted:
        _print_json({"error": problem, "exit_code": code})
    Session(json_wanted).note(f"error: {problem}", "bold red")
    return code


def option(setting: Setting) -> str | None:
    """Return a setting as a shell writes it; None if it is none of the options.

    Examples
    --------
    >>> from edgebelief.errors import Setting
    >>> option(Setting("top_k", 5)), option(Setting("weighted", True)), option(Setting("tol"))
    ('--top-k 5', '--weighted', None)
    """
    if setting.name not in OPTIONS:
        return None
    flag = FLAGS.get(setting.name, f"--{setting.name.replace('_', '-')}")
    no_value = any(setting.value is value for value in (None, True, ...))
    return flag if no_value else f"{flag} {setting.value}"


def one_line(message: Warning | Exception | str) -> str:
    """Return the shell's sentence of an error or a warning, in one line."""
    text = message.sentence(option) if isinstance(message, Message) else str(message)
    return legible(" ".join(text.split()))


def _judged(error: Exception) -> tuple[int, str]:
    """Return the exit code of an error, and what to say of it."""
    text = one_line(error)
    if isinstance(error, InputError):
        return (USAGE if isinstance(error, SettingError) else BAD_INPUT), text
    if isinstance(error, MemoryError):
        return RESOURCES, text or "not enough memory."
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)
        if error.strerror is not None:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            text = legible(text)
        return (RESOURCES if full else BAD_INPUT), text
    if "RESOURCE_EXHAUSTED" in text:
        return RESOURCES, f"the device is out of memory: {str(error).splitlines()[0]}"
    if isinstance(error, ImportError):  # something optional
        return BAD_INPUT, text
    return BUG, (
        f"a mistake in edgebelief, not in your data ({type(error).__name__}: {text}). Please "
        f"report it, with the lines below."
    )


class _Patient(Console):
    """A console that, when its reader has gone (`| head`), stays silent rather than end us."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _forget(self.file)


def _print_json(answer: dict[str, Any]) -> None:
    try:
        print(json.dumps(_plain(answer), indent=2, allow_nan=False), flush=True)
    except BrokenPipeError:
        _forget(sys.stdout)


def _forget(stream: IO[str]) -> None:
    """Send what is still to come nowhere: Python flushes at its end, and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _shown(text: str) -> str:
    text = _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
    return "\n".join(shortened(line, WIDEST) for line in text.split("\n"))


def _cell(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return _shown(text.replace("\n", "\\n"))


def _plain(value: Any) -> Any:
    """Return a value in JSON's types; NaN, which it has not, is null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
