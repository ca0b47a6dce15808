"""`python -m reproduction [NAME]...`: the paper's tables and figures from the shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer

from edgebelief.cli.session import Misused, Session, session

from . import ITEMS, SHARING, Work, modules, page, reproduce

Found = dict[str, Any]


def reproduced(
    this: Session, names: list[str], data: Path | None, out: Path, small: bool, jobs: int
) -> None:
    """Run items, say what each found, and write the page."""
    unknown = [name for name in names if name not in ITEMS]
    if unknown:
        raise Misused(f"no item is called {unknown[0]!r}; there are {', '.join(ITEMS)}.")
    if data is not None and not data.is_dir():
        raise Misused(f"{data}: is no folder; --data is one with the authors' data.")
    if out.exists() and not out.is_dir():
        raise Misused(f"{out}: is a file; --out is the name of a folder.")
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    chosen = names or list(ITEMS)
    run = _one_by_one if jobs == 1 else _side_by_side
    for k, (name, one) in enumerate(run(this, chosen, data, out, small, jobs), 1):
        found[name] = one
        this.say(f"{k}/{len(chosen)}  {name}", "bold")
        _told(this, one)
    path = page(Work(out, data, small))
    this.say(f"\nAll of it, with figures: {path}")
    this.answer = {"page": str(path), "items": found}


def _told(this: Session, one: Found) -> None:
    if "missing" in one:
        this.say(f"     needs {one['missing']}: give its folder as --data")
        return
    for sentence in one["says"]:
        this.say(f"     {sentence}")
    this.say(f"     {one['seconds']:.0f} s, what was there already included", "dim")


def _one_by_one(
    this: Session, names: list[str], data: Path | None, out: Path, small: bool, jobs: int
) -> Iterator[tuple[str, Found]]:
    for name in names:
        work = Work(out, data, small, say=lambda text: this.note(f"     {text}"))
        with this.working(name):
            one = reproduce(name, work)
        yield name, one


def _side_by_side(
    this: Session, names: list[str], data: Path | None, out: Path, small: bool, jobs: int
) -> Iterator[tuple[str, Found]]:
    """Items in processes of their own, but those that share things in one; these go first."""
    groups = [[name for name in names if name in group] for group in SHARING]
    groups += [[name] for name in names if not any(name in group for group in SHARING)]
    groups = [group for group in groups if group]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(_group, some, data, out, small) for some in groups]
        try:
            modules()  # which the page needs, while others work
            for done in as_completed(running):
                yield from done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _group(names: list[str], data: Path | None, out: Path, small: bool) -> list[tuple[str, Found]]:
    def say(text: str) -> None:
        print(f"     {text}", file=sys.stderr, flush=True)

    return [(name, reproduce(name, Work(out, data, small, say=say))) for name in names]


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help=f"Items: {', '.join(ITEMS)}. By default, all."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With the authors' data.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path(
        "reproduction-output"
    ),
    small: Annotated[
        bool, typer.Option("--small", help="Tiny settings: does everything run?")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Items side by side, in processes.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
) -> None:
    """Run every table and figure of the paper: its numbers beside ours, and what holds.

    A run that was stopped goes on where it was; what is in the folder already is not run again.
    """
    with session(json) as this:
        reproduced(this, names or [], data, out, small, jobs)
