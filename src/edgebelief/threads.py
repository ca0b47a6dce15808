"""Threads that use all cores, and that Ctrl-C does not wait for.

Python handles Ctrl-C in the main thread, between two of its own steps. So compiled code runs in
other threads, and the main thread waits for them in a way that an interrupt ends at once. Work that
nobody waits for any more ends at its next call of `check`; compiled code ends when it is done.

The threads are daemons, since Python waits for all others before it ends. But a daemon that returns
from compiled code while Python ends crashes it. So `_end` waits for such work before; only for a
few seconds, if an interrupt is what ends Python.
"""

from __future__ import annotations

import atexit
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

from .cores import n_cores

T = TypeVar("T")
# Seconds between two looks at whether to stop waiting. Only Windows needs them for Ctrl-C: there a
# wait without an end cannot be interrupted. A result ends a wait at once.
LOOK = 0.1
# Seconds that Python waits, at its end, for compiled code that Ctrl-C left behind.
GRACE = 1.5
# Seconds that a part of a long computation takes: long for a call, short for who wants it to end.
PART = 0.5
_of_thread = threading.local()
_busy: set[threading.Thread] = set()


class Abandoned(BaseException):
    """Nobody waits for the work of this thread any more."""


def check() -> None:
    """End the work of this thread if nobody waits for it; work that takes long calls this often."""
    abandoned = getattr(_of_thread, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        raise Abandoned


def paced(steps: int, most: int) -> Iterator[int]:
    """Split steps into parts of at most `most` that take about half a second each; call `check`.

    Examples
    --------
    >>> from edgebelief.threads import paced
    >>> sum(paced(120, most=50))
    120
    """
    n = 1
    while steps > 0:
        check()
        n, begun = min(n, steps), time.perf_counter()
        yield n
        steps -= n
        took = max(time.perf_counter() - begun, 1e-9)
        n = int(min(max(n * PART / took, 1), most))


class Workers:
    """Threads that work until the end of a `with` block, or until an exception leaves it.

    Parameters
    ----------
    n : int, optional
        How many threads; as many as there are cores by default.

    Examples
    --------
    >>> from edgebelief.threads import Workers
    >>> with Workers() as workers:
    ...     list(workers.map(pow, [2, 3], [5, 2]))
    [32, 9]
    """

    def __init__(self, n: int | None = None) -> None:
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._abandoned = threading.Event()
        size = n_cores() if n is None else n
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(size)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._abandoned.set()
        for _ in self._threads:
            self._tasks.put(None)
        if kind is None or issubclass(kind, Exception):
            for thread in self._threads:
                thread.join()

    def map(self, function: Callable[..., T], *each: Iterable[Any]) -> Iterator[T]:
        """Call the function as `map` does, several calls at a time; return the results in order."""
        futures: list[Future[T]] = []
        for arguments in zip(*each, strict=True):
            future: Future[T] = Future()
            work = partial(copy_context().run, function, *arguments)  # context variables are kept
            self._tasks.put((future, work))
            futures.append(future)

        def results() -> Iterator[T]:
            for future in futures:
                while not wait([future], LOOK).done:
                    check()
                yield future.result()

        return results()

    def _work(self) -> None:
        _of_thread.abandoned, thread = self._abandoned, threading.current_thread()
        while (task := self._tasks.get()) is not None:
            future, work = task
            _busy.add(thread)
            try:
                check()
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            _busy.discard(thread)
            del task, future, work  # they may hold large arrays, and the next may be long in coming


def apart(work: Callable[[], T]) -> T:
    """Return what `work` returns, which runs in a thread of its own, so that Ctrl-C is heard.

    Examples
    --------
    >>> from edgebelief.threads import apart
    >>> apart(lambda: 6 * 7)
    42
    """
    with Workers(1) as workers:
        return next(workers.map(lambda run: run(), [work]))


def _end() -> None:
    """Let all work end before Python does; or end Python now, if an interrupt is its end anyway."""
    interrupted = issubclass(getattr(sys, "last_type", None) or object, KeyboardInterrupt)
    patience = time.monotonic() + (GRACE if interrupted else math.inf)
    try:
        while any(thread.is_alive() for thread in list(_busy)):
            if time.monotonic() > patience:
                _die_of_interrupt()
            time.sleep(LOOK / 10)
    except KeyboardInterrupt:
        _die_of_interrupt()


def _die_of_interrupt() -> None:
    """End this process as Ctrl-C ends one that does not handle it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    os._exit(128 + signal.SIGINT)


atexit.register(_end)
