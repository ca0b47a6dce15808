"""Do a job with any executor: order what is missing, have it done, say what became of it."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from joblib.externals.loky import ProcessPoolExecutor

from ..cores import n_cores
from ..errors import SettingError
from ..progress import progress_bar
from ..validate import check_whole
from .job import Job
from .plan import Order, Plan, alone, prepare
from .tables import Report, Warned, added
from .work import Withdrawn, work

# Shards given to each process of a pool that can break: one that it does, and one to go on with.
AHEAD = 2
# How often a shard is tried whose processes die, the last time alone.
TRIES = 3
# Seconds between two looks at jobs that cannot be waited for (submitit's).
LOOK = 0.5
# Variables that say how many threads a process may use.
THREADS = ("LOKY_MAX_CPU_COUNT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


# Shards that have ended, and how to get at the result of each, which may raise.
Ended = Iterator[tuple[Path, Callable[[], Report]]]


class Failure(NamedTuple):
    """Why there is no result of a graph."""

    file: str
    """The name of the file in the folder of inputs."""
    error: str
    traceback: str = ""
    """Where that is no fault of the file's."""
    is_input: bool = True
    """Whether the file is at fault, rather than the machine or the program."""


class Outcome(NamedTuple):
    """What became of a job."""

    done: tuple[str, ...]
    """Names of the files whose results were made by this run."""
    skipped: tuple[str, ...]
    """Names of those that had results."""
    failed: tuple[Failure, ...]
    """Those without a result. The next run tries them again."""
    left_out: tuple[str, ...]
    """Names in the folder of inputs that are no graphs, but for hidden ones."""
    warnings: Warned
    """What there was to warn of, by category: how often, and the first of them; of all results."""
    findings: Mapping[str, int]
    """Of all fits: how many verdicts found what wrong."""
    is_redone: bool
    """Whether there were results of other settings, or of another model, which are gone."""

    def __str__(self) -> str:
        parts = [f"{len(self.done)} done"]
        if self.skipped:
            parts.append(f"{len(self.skipped)} had results")
        parts.append(f"{len(self.failed)} failed")
        return ", ".join(parts)


def shards(job: Job, n_workers: int = 1) -> list[Path]:
    """Order what is missing, and return the path of each shard, for a mapper of your own.

    `run` does this and more. A shard is done by `work(path)`, in any process on any machine that
    sees the folders.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief import GraphLearner
    >>> from edgebelief.data import ErdosRenyi, GraphDataset, save_dataset
    >>> from edgebelief.fleet import Predict, results, shards, work
    >>> graphs = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=100)
    >>> with TemporaryDirectory() as folder:
    ...     GraphLearner(readout="affine", depth=20).fit(graphs[:4]).save(f"{folder}/model.eb")
    ...     Path(folder, "subjects").mkdir()
    ...     save_dataset(f"{folder}/subjects/ada.npz", graphs[4:5])
    ...     save_dataset(f"{folder}/subjects/bob.npz", graphs[5:])
    ...     job = Predict(
    ...         model=f"{folder}/model.eb", inputs=f"{folder}/subjects", out=f"{folder}/beliefs"
    ...     )
    ...     reports = [work(path) for path in shards(job)]
    ...     sorted((result.file, len(result.table)) for result in results(f"{folder}/beliefs"))
    [('ada.npz', 28), ('bob.npz', 28)]
    """
    with alone(Path(job.out).absolute()):
        return list(prepare(job, n_workers).orders)


def run(
    job: Job,
    executor: Any = None,
    n_jobs: int | None = None,
    *,
    progress: bool | None = None,
    do: Callable[[str], Report] = work,
) -> Outcome:
    """Do what is missing of a job, and keep the results in its folder.

    The same call goes on where an earlier one ended, however it ended. Inputs that have changed
    since are done again; all of them, if the model or a setting has changed.

    Parameters
    ----------
    job : Predict or Fit
    executor : optional
        Who works: a `concurrent.futures.Executor`, or what has its `submit`: Dask's
        ``client.get_executor()``, a `submitit` executor for SLURM. Or a function that returns a new
        one: then a pool whose process dies is made anew, and nothing fails by that. By default,
        processes by joblib's loky. Workers are given paths and must see the folders. Processes must
        not be forks, which inherit a JAX that hangs:
        ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``.
    n_jobs : int, optional
        How many workers there are: by default as many as cores. With one, or with work for one,
        and no executor, it is done in this process.
    progress : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.
    do : callable
        What a worker does with the path of an order: `work`, or a partial of it.

    Returns
    -------
    Outcome
        What was done, and what failed; a shard that fails does not stop the others.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from edgebelief import load
    >>> from edgebelief.data import ErdosRenyi, GraphDataset, save_dataset
    >>> from edgebelief.fleet import Fit, results, run
    >>> graphs = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=3, n_nodes=8, n_signals=100)
    >>> with TemporaryDirectory() as folder:
    ...     save_dataset(f"{folder}/ada.npz", graphs)
    ...     settings = {"readout": "affine", "depth": 20}
    ...     job = Fit(inputs=folder, out=f"{folder}/models", settings=settings)
    ...     print(run(job, n_jobs=1))
    ...     print(run(job, n_jobs=1))
    ...     [result] = results(f"{folder}/models")
    ...     load(result.model).predict_proba(graphs).shape
    1 done, 0 failed
    0 done, 1 had results, 0 failed
    (3, 8, 8)
    """
    n_workers = n_cores() if n_jobs is None else check_whole(n_jobs, "n_jobs", 1)
    if executor is not None and not callable(executor) and not hasattr(executor, "submit"):
        problem = f"is a {type(executor).__name__}; it must have `submit`, or return what has"
        raise SettingError(problem, argument="executor")
    refuse_forks(executor)
    with alone(Path(job.out).absolute()):
        plan = prepare(job, n_workers)
        paths = list(plan.orders)
        n_workers = min(n_workers, len(paths)) if executor is None else n_workers
        ended: Ended
        if executor is None and n_workers <= 1:
            ended = ((path, partial(do, str(path))) for path in paths)
        elif executor is None:
            ended = _by_pools(partial(_processes, n_workers), do, paths, n_workers)
        elif hasattr(executor, "submit"):
            ended = _by_executor(executor, do, paths)
        else:
            ended = _by_pools(executor, do, paths, n_workers)
        return _outcome(plan, ended, progress)


def _outcome(plan: Plan, ended: Ended, progress: bool | None) -> Outcome:
    """Gather what became of the shards while they end."""
    done: list[str] = []
    failed: list[Failure] = []
    warned, findings = plan.warnings, plan.findings.copy()
    total = sum(len(order.sources) for order in plan.orders.values())
    with progress_bar(progress, total=total, desc="graphs", unit=" graphs") as bar:
        for path, result in ended:
            order = plan.orders[path]
            bar.update(len(order.sources))
            try:
                report = result()
            except Exception as error:
                failed += _failures(order, error)
                continue
            for entry in report.entries:
                if entry.error is None:
                    done.append(entry.file)
                    findings.update(entry.findings)
                else:
                    is_input = not entry.traceback
                    failure = Failure(entry.file, entry.error, entry.traceback, is_input)
                    failed.append(failure)
            warned = added(warned, report.warnings)
    ordered = tuple(sorted(failed))
    return Outcome(
        tuple(sorted(done)), plan.done, ordered, plan.left_out, warned, findings, plan.is_redone
    )


def _failures(order: Order, error: Exception) -> list[Failure]:
    """Return why the graphs of a shard have no results that failed as a whole."""
    trace = "".join(traceback.format_exception(error))
    why = f"{type(error).__name__}: {error}".rstrip(".: ")
    if isinstance(error, BrokenExecutor):
        why = "the process at work on it died (killed, or out of memory?)"
    elif isinstance(error, Withdrawn):
        why = "its order was withdrawn by another run"
    shared = f", with {len(order.sources) - 1} others" if len(order.sources) > 1 else ""
    said = f"its shard failed{shared}: {why}. Run it again to try again."
    return [
        Failure(source.name, f"{source.data}: {said}", trace, False) for source in order.sources
    ]


def refuse_forks(executor: Any) -> None:
    """Refuse an executor whose processes are forks of this one, in which JAX's threads are dead."""
    context = getattr(executor, "_mp_context", None) or getattr(executor, "_context", None)
    method = getattr(context, "get_start_method", None)
    if method is not None and method() == "fork":
        raise SettingError(
            "forks this process, and JAX hangs in a fork; make it with "
            "mp_context=multiprocessing.get_context('spawn')",
            argument="executor",
        )


def _processes(n_jobs: int) -> ProcessPoolExecutor:
    """Make a pool of new processes that share the cores, and leave the accelerator alone.

    Each would reserve most of its memory.
    """
    threads = str(max(n_cores() // n_jobs, 1))
    env = {
        **dict.fromkeys(THREADS, threads),
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
    }
    return ProcessPoolExecutor(
        max_workers=n_jobs, env=env, initializer=_end_with, initargs=(os.getpid(),)
    )


def _end_with(parent: int) -> None:
    """End this process soon after its parent, which one that waits for work would not notice.

    Ctrl-C, which a terminal sends to all of them, is for the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def look() -> None:
        while os.getppid() == parent:
            sleep(1.0)
        os._exit(1)

    threading.Thread(target=look, name="parent", daemon=True).start()


def _by_executor(executor: Any, do: Callable[[str], Report], paths: Iterable[Path]) -> Ended:
    """Give all shards to an executor that is somebody else's."""
    flight: dict[Any, Path] = {}
    for path in paths:
        try:
            flight[executor.submit(do, str(path))] = path
        except Exception as error:  # such as a pool that broke before
            yield path, partial(_raise, error)
    while flight:
        for future in _some_done(flight):
            yield flight.pop(future), future.result


def _raise(error: Exception) -> Report:
    raise error


def _by_pools(
    make: Callable[[], Any], do: Callable[[str], Report], paths: Iterable[Path], n_jobs: int
) -> Ended:
    """Give shards to a pool; when one of its processes dies, make a new pool and go on.

    Nobody says which shard a process died of, so all that were under way are tried again: together,
    then alone. One whose processes die to the last has failed.
    """
    queue, suspects = deque(paths), deque[Path]()
    losses: Counter[Path] = Counter()
    while queue or suspects:
        pool = make()
        refuse_forks(pool)
        flight: dict[Any, Path] = {}
        lost: list[tuple[Path, Exception]] = []
        try:
            while flight or ((queue or suspects) and not lost):
                width = 1 if suspects else AHEAD * n_jobs
                while not lost and len(flight) < width and (queue or suspects):
                    path = suspects.popleft() if suspects else queue.popleft()
                    try:
                        flight[pool.submit(do, str(path))] = path
                    except BrokenExecutor as error:
                        lost.append((path, error))
                    if losses[path] >= TRIES - 1:
                        break  # alone
                for future in _some_done(flight):
                    path, problem = flight.pop(future), future.exception()
                    if isinstance(problem, BrokenExecutor):
                        lost.append((path, problem))
                    else:
                        yield path, future.result
        finally:
            for future in flight:  # after an interrupt
                future.cancel()
            pool.shutdown(wait=True)
        losses.update(path for path, _ in lost)
        for path, problem in lost:
            if losses[path] >= TRIES:
                yield path, partial(_raise, problem)
            elif losses[path] == TRIES - 1:
                suspects.append(path)
            else:
                queue.appendleft(path)


def _some_done(flight: Iterable[Any]) -> list[Any]:
    """Wait until at least one is done; return all that are."""
    futures = list(flight)
    if not futures:
        return []
    if all(isinstance(future, Future) for future in futures):
        return list(wait(futures, return_when=FIRST_COMPLETED).done)
    while not (done := [future for future in futures if future.done()]):
        sleep(LOOK)
    return done
