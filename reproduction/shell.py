"""`python -m reproduction [NAME]...`: the paper's tables and figures from the shell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from edgebelief.cli.session import Misused, Session, session

from . import ITEMS, SHARING, Work, modules, page, reproduce
from .item import Answer


def run_items(this: Session, names: list[str], work: Work, jobs: int) -> None:
    """Run items, print the results of each, and write the page."""
    unknown = [name for name in names if name not in ITEMS]
    if unknown:
        raise Misused(f"no item is called {unknown[0]!r}; the items are {', '.join(ITEMS)}.")
    if work.data is not None and not work.data.is_dir():
        raise Misused(
            f"{work.data} is not a folder; --data names the folder with the authors' data."
        )
    if work.out.exists() and not work.out.is_dir():
        raise Misused(f"{work.out} is a file; --out names a folder.")
    work.out.mkdir(parents=True, exist_ok=True)
    items = {}
    chosen = names or list(ITEMS)
    running = _one_by_one(this, chosen, work) if jobs == 1 else _side_by_side(chosen, work, jobs)
    for k, (name, results) in enumerate(running, 1):
        items[name] = results
        this.say(f"{k}/{len(chosen)}  {name}", "bold")
        _say_results(this, results)
    path = page(work)
    this.say(f"\nAll results, with figures: {path}")
    this.answer = {"page": str(path), "items": items}


def _say_results(this: Session, results: Answer) -> None:
    if "missing" in results:
        this.say(f"     needs {results['missing']}: give its folder as --data")
        return
    for sentence in results["says"]:
        this.say(f"     {sentence}")
    this.say(f"     {results['seconds']:.0f} s, including pieces computed earlier", "dim")


def _one_by_one(this: Session, names: list[str], work: Work) -> Iterator[tuple[str, Answer]]:
    for name in names:
        with this.working(name):
            results = reproduce(name, _reporting(work, lambda text: this.note(f"     {text}")))
        yield name, results


def _side_by_side(names: list[str], work: Work, jobs: int) -> Iterator[tuple[str, Answer]]:
    """Run items in several processes: those in a group of `SHARING` in one process, and first."""
    groups = [[name for name in names if name in group] for group in SHARING]
    groups += [[name] for name in names if not any(name in group for group in SHARING)]
    groups = [group for group in groups if group]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(_group, group, work.out, work.data, work.small) for group in groups]
        try:
            modules()  # the page needs them; import them while the other processes work
            for done in as_completed(running):
                yield from done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _group(names: list[str], out: Path, data: Path | None, small: bool) -> list[tuple[str, Answer]]:
    """Run some items, one after the other, in this process."""

    def say(text: str) -> None:
        print(f"     {text}", file=sys.stderr, flush=True)

    return [(name, reproduce(name, _reporting(Work(out, data, small), say))) for name in names]


def _reporting(work: Work, say: Callable[[str], None]) -> Work:
    """Return the work of one item: it reports to `say`, and counts its own seconds."""
    return replace(work, say=say, took=[])


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help=f"Items: {', '.join(ITEMS)}. By default, all."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder with the authors' data.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for the results.")] = Path(
        "reproduction-output"
    ),
    small: Annotated[
        bool, typer.Option("--small", help="Tiny settings, to see that everything runs.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes run items.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Compute every table and figure of the paper: its numbers beside ours, and which claims hold.

    An interrupted run resumes where it stopped: what is in the folder is not computed again.
    """
    with session(json) as this:
        run_items(this, names or [], Work(out, data, small), jobs)
