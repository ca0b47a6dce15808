"""Progress bars: on terminals by default, and one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm.auto import tqdm

_hidden: ContextVar[bool] = ContextVar("_hidden", default=False)


def progress_bar(shown: bool | None = None, **settings: Any) -> tqdm:
    """Return a bar; by default it is shown if stderr is a terminal and bars are not hidden."""
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
