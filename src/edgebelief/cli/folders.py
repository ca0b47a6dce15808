"""A folder of graphs in a shell: predictions of all of them, or a model for each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..data import GraphDataset
from ..errors import InputError
from ..estimators import GraphLearner, load
from ..fleet import Fit, Job, Outcome, Predict, run, work
from ..fleet.reading import Contents, read_graphs
from ..fleet.sources import Source
from .commands import need_labels
from .inputs import Given, count
from .paths import split_key
from .session import BAD_INPUT, RESOURCES, Session, one_line, verdict_to_json

# Lines of failures that are shown; JSON has all.
MOST_SHOWN = 10


def folder_predicted(
    this: Session,
    model: Path,
    given: Given,
    out: Path,
    settings: Mapping[str, Any],
    jobs: int | None,
) -> None:
    """Run `edgebelief predict` on a folder."""
    verdict = load(model).posterior_.verdict  # before any process is made
    job = Predict(model=model, out=out, **_inputs_of(given), **settings)
    outcome = _run(this, job, jobs)
    this.say(f"{_counted(outcome, 'predicted')}; written to {out / 'tables'}")
    if outcome.failed:
        this.answer["verdict"] = verdict_to_json(verdict)
    _end_if_failed(this, outcome)
    this.conclude(verdict)


def each_fitted(
    this: Session, given: Given, out: Path, settings: Mapping[str, Any], jobs: int | None
) -> None:
    """Run `edgebelief fit --each` on a folder."""
    job = Fit(out=out, **_inputs_of(given), settings=settings)
    outcome = _run(this, job, jobs)
    this.say(f"{_counted(outcome, 'fitted')}; models: {out / 'models'}")
    for name, n in sorted(outcome.findings.items()):
        this.say(
            f"verdict of {count(n, 'fit')}: {name} (edgebelief info MODEL says more)", "yellow"
        )
    this.answer["findings"] = dict(outcome.findings)
    _end_if_failed(this, outcome)


def _inputs_of(given: Given) -> dict[str, Any]:
    """Return what a job takes of these options: folders with a file for each graph, and files."""
    beside = {"labels": given.labels, "covariates": given.covariates}
    paths = {what: some[0] for what, some in beside.items() if some}
    if given.groups is not None:
        paths["groups"] = given.groups
    options: dict[str, Any] = {what: str(path.absolute()) for what, path in paths.items()}
    options |= {"transpose": given.transpose, "nodes": None}
    if given.nodes is not None:
        paths["nodes"], key = split_key(given.nodes)
        options["nodes"] = f"{paths['nodes'].absolute()}{'' if key is None else f':{key}'}"
    return {
        "inputs": given.paths[0],
        "companions": {what: path for what, path in paths.items() if path.is_dir()},
        "common": {what: path for what, path in paths.items() if not path.is_dir()},
        "options": options,
    }


def _run(this: Session, job: Job, jobs: int | None) -> Outcome:
    """Do the job, and say of it what is the same for predictions and fits."""
    do = partial(work, read=read_given, sentence=one_line)
    with this.working("", has_bar=True), _silent_tracker():
        outcome = run(job, n_jobs=jobs, do=do)
    if outcome.is_redone:
        this.note(
            "the results there were of other settings, or of another model: all is done again"
        )
    if outcome.left_out:
        some = ", ".join(outcome.left_out[:5])
        rest = f" and {len(outcome.left_out) - 5} more" if len(outcome.left_out) > 5 else ""
        this.note(f"left out, for they are no graphs in files: {some}{rest}")
    for category, (n, first) in outcome.warnings.items():
        times = "" if n == 1 else f" ({category}, {n} times; the first)"
        this.note(f"warning{times}: {one_line(first)}", "yellow")
    this.answer = {
        "out": str(job.out),
        "done": len(outcome.done),
        "had_results": len(outcome.skipped),
        "failed": [{"file": each.file, "error": each.error} for each in outcome.failed],
        "left_out": list(outcome.left_out),
        "warned": {name: {"times": n, "first": m} for name, (n, m) in outcome.warnings.items()},
    }
    return outcome


@contextmanager
def _silent_tracker() -> Iterator[None]:
    """Keep the process that tidies up after ours silent: after Ctrl-C it counts what it found."""
    before = os.environ.get("PYTHONWARNINGS")
    silent = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = silent if before is None else f"{before},{silent}"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _counted(outcome: Outcome, done: str) -> str:
    parts = [f"{len(outcome.done)} {done}"]
    if outcome.skipped:
        parts.append(f"{len(outcome.skipped)} had results already")
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} failed")
    n_files = len(outcome.done) + len(outcome.skipped) + len(outcome.failed)
    return f"{count(n_files, 'file')}: {', '.join(parts)}"


def _end_if_failed(this: Session, outcome: Outcome) -> None:
    """Say which graphs failed, and why, and end; the results of the others are written."""
    if not outcome.failed:
        return
    for failure in outcome.failed[:MOST_SHOWN]:
        this.note(f"failed: {failure.error}", "bold red")
    if len(outcome.failed) > MOST_SHOWN:
        rest = len(outcome.failed) - MOST_SHOWN
        this.note(f"... and {rest:,} more; --json lists all", "bold red")
    traces = [failure.traceback for failure in outcome.failed if failure.traceback]
    for trace in traces[:1]:  # the first tells enough
        this.note(trace)
    this.note("The same command tries those that failed again.")
    raise typer.Exit(BAD_INPUT if all(each.is_input for each in outcome.failed) else RESOURCES)


def read_given(source: Source, learner: GraphLearner, options: Mapping[str, Any]) -> Contents:
    """Read a file as `edgebelief predict` and `fit` read it alone."""
    path = source.data
    suffix = path.suffix.lower()
    plain = not options["nodes"] and not options["transpose"]
    if suffix in (".npz", ".npy") and not plain:
        raise InputError("--nodes and --transpose are for tables.", where=path)
    beside = {what: source.files.get(what) for what in ("labels", "covariates")}
    for what, file in beside.items():
        if file is None and what in options:
            shared = Path(options[what])
            if shared.is_dir():
                raise InputError(f"no file in {shared} has its {what}.", where=path)
            beside[what] = str(shared)
    if suffix == ".npy":
        if options.get("groups"):
            raise InputError("--groups is for tables, whose nodes have names.", where=path)
        return read_graphs(
            source._replace(files={"data": str(path), **_there(beside)}), learner, {}
        )
    given = Given(
        [path],
        options["nodes"],
        options["transpose"],
        labels=[Path(beside["labels"])] if beside["labels"] else (),
        groups=Path(options["groups"]) if options.get("groups") else None,
        covariates=[Path(beside["covariates"])] if beside["covariates"] else (),
    )
    X, A = given.read_for(learner, fitted=hasattr(learner, "posterior_"))
    if not hasattr(learner, "posterior_"):
        need_labels(given, X, A, "Without any known edge, see `edgebelief learn`.")
    covariates = given.apply(_covariates, X)
    if isinstance(X, GraphDataset):
        return Contents(list(X), A, covariates)
    assert not isinstance(X, list)  # as one table was read
    return Contents([X], A, None if covariates is None else [covariates])


def _there(beside: Mapping[str, str | None]) -> dict[str, str]:
    return {what: file for what, file in beside.items() if file is not None}


def _covariates(X: Any, covariates: Any = None) -> Any:
    return covariates
