"""Progress bars: on terminals by default, and one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tqdm.auto import tqdm

_hidden: ContextVar[bool] = ContextVar("_hidden", default=False)


def progress_bar(shown: bool | None = None, **settings: Any) -> tqdm:
    """Return a bar; by default it is shown if stderr is a terminal and bars are not hidden."""
    from tqdm.auto import tqdm  # solvers, which have bars, must be there without it

    if shown is None:
        shown = sys.stderr.isatty() and not _hidden.get()
    return tqdm(disable=not shown, **settings)


@contextmanager
def hidden_bars() -> Iterator[None]:
    """Show no bar unless it is asked for, under a caller that shows something else meanwhile."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


class Stage(NamedTuple):
    """A part of a long computation, and how many seconds it took."""

    name: str
    seconds: float


@contextmanager
def timed_stage(name: str, stages: list[Stage]) -> Iterator[None]:
    """Append to `stages` how long what follows takes; a stage of that name grows."""
    start = perf_counter()
    yield
    seconds = perf_counter() - start
    for k, stage in enumerate(stages):
        if stage.name == name:
            stages[k] = Stage(name, stage.seconds + seconds)
            return
    stages.append(Stage(name, seconds))
