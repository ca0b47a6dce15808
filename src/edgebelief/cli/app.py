"""The commands, in the order in which they are used.

What a command needs is imported when all that can be checked without it is checked, so that
neither `--help` nor a wrong option waits for JAX.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import InputError
from . import options as o
from .command import in_session
from .paths import (
    EDGES,
    ONE_GRAPH,
    PAGES,
    PICTURES,
    TABLES,
    check_at_most_one,
    check_kinds,
    check_readable,
    check_target,
)
from .session import Misused, Session, session

app = typer.Typer(
    help="Learn graphs from data, with calibrated belief in every edge.\n\n"
    "Exit codes: 0 fine, 2 usage, 3 bad input, 4 the verdict failed (results are written), "
    "5 resources, 130 interrupted.",
    epilog="Begin with `edgebelief demo`; see `edgebelief COMMAND --help` for each.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def command(example: str) -> Callable[[Callable[..., None]], Any]:
    """Make a function a command, with --json and an example in its help."""
    return lambda run: app.command(epilog=f"Example: {example}")(in_session(run))


def _version(wanted: bool) -> None:
    if wanted:
        from ..version import __version__

        print(f"edgebelief {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, o.option("--version", "Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@command("`edgebelief simulate --out signals.csv --labels edges.csv --nodes 30`")
def simulate(
    this: Session,
    out: o.Out,
    labels: Annotated[
        Path | None, o.option("--labels -l", "With a table: a second one, of the true edges.")
    ] = None,
    ensemble: o.Ensemble = "geometric",
    density: Annotated[
        float, o.option("--density SHARE", "Share of the pairs that are joined.", max=1)
    ] = 0.2,
    nodes: Annotated[int, o.option("--nodes INT", "Nodes of each graph.", min=2, max=10**7)] = 20,
    signals: Annotated[
        int, o.option("--signals INT", "Signals on each graph.", min=1, max=10**8)
    ] = 200,
    graphs: Annotated[
        int, o.option("--graphs INT", "Graphs, in an .npz data set.", min=1, max=10**5)
    ] = 20,
    seed: o.Seed = 0,
    force: o.Force = False,
) -> None:
    """Draw random graphs and smooth signals on them: data to try things on.

    An .npz gets a data set of several graphs with their distances and edges; a .csv or .parquet the
    signals on one graph, with its edges beside it.
    """
    many = out.suffix.lower() == ".npz"
    check_target(out, force, (".npz", *TABLES))
    if labels is not None:
        if many:
            raise Misused(f"{out}: an npz data set holds its labels; --labels goes with a table.")
        check_target(labels, force, TABLES)
        if os.path.realpath(labels) == os.path.realpath(out):
            raise Misused(f"{out}: --out and --labels are one file; give two.")
    from .commands import simulated

    wanted = {"ensemble": ensemble, "density": density}
    sizes = {"n_nodes": nodes, "n_signals": signals, "n_graphs": graphs}
    simulated(this, out, labels, wanted | sizes, seed, many)


@command("`edgebelief learn signals.csv --degree 4 --out edges.csv`")
def learn(
    this: Session,
    data: Annotated[Path, o.argument("DATA", "A table: a row per observation, a column per node.")],
    out: o.Out,
    degree: Annotated[
        float | None, o.option("--degree NUMBER", "Wanted mean number of neighbours.")
    ] = None,
    density: Annotated[
        float | None, o.option("--density SHARE", "Or wanted share of joined pairs.")
    ] = None,
    theta: Annotated[
        float | None,
        o.option("--theta NUMBER", "Or the sparsity parameter itself. By default, 1.", min=0),
    ] = None,
    bootstrap: Annotated[
        int,
        o.option(
            "--bootstrap INT",
            "Resamples, for how often each edge comes back.",
            min=0,
            max=10**5,
        ),
    ] = 0,
    support: Annotated[
        Literal["complete", "knn"],
        o.option(
            "--support NAME",
            "Candidate pairs: complete, all; or knn, nearest neighbours, for large graphs.",
        ),
    ] = "complete",
    neighbours: Annotated[
        int,
        o.option("--neighbours INT", "With knn: how many each node chooses.", min=1, max=10**4),
    ] = 20,
    exact: Annotated[
        bool, o.option("--exact", "With knn: add the pairs that were missed, until none is.")
    ] = False,
    metric: o.Metric = "sqeuclidean",
    preprocess: o.Preprocess = "auto",
    transform: o.Transform = None,
    missing: o.Missing = "error",
    nodes: o.Nodes = None,
    transpose: o.Transpose = False,
    seed: o.Seed = 0,
    force: o.Force = False,
) -> None:
    """Learn one graph from signals alone: no labels, no belief.

    It is the graph on which the signals are smooth. Writes its edges (.csv, .parquet, .npz) or the
    graph (.graphml).
    """
    tables = o.Tables([data], nodes, transpose)
    tables.check(out=out, suffixes=EDGES, force=force)
    if data.suffix.lower() == ".npz":
        raise InputError(
            f"{data}: `edgebelief learn` takes one table; `edgebelief fit` a data set."
        )
    sparsity = {"theta": theta, "degree": degree, "density": density}
    check_at_most_one(sparsity)
    check_kinds(metric, transpose)
    done_first = o.preprocessing(preprocess, transform, metric)
    settings: dict[str, Any] = {"metric": metric, "missing": missing, "preprocess": done_first}
    settings |= {"bootstrap": bootstrap, "random_state": seed}
    settings |= {"support": support, "n_neighbors": neighbours, "exact": exact}
    from .commands import learned

    learned(this, tables.given(), out, {**settings, **sparsity})


@command(
    "`edgebelief belief signals.csv --density 0.03 0.15 --out belief.csv --report report.html`"
)
def belief(
    this: Session,
    out: o.Out,
    tables: o.Tables,
    rule: o.Rule,
    density: Annotated[
        tuple[float, float] | None,
        o.option(
            "--density LOW HIGH",
            "Between which shares of all pairs you believe to be joined (90 % sure).",
        ),
    ] = None,
    report: Annotated[
        Path | None, o.option("--report FILE", "Also write a page to open in a browser (.html).")
    ] = None,
    metric: o.Metric = "sqeuclidean",
    n_signals: Annotated[
        float | None,
        o.option(
            "--n-signals NUMBER",
            "With --metric precomputed: of how many signals the distances are the mean.",
            min=1,
        ),
    ] = None,
    preprocess: o.Preprocess = "auto",
    missing: o.Missing = "pairwise",
    all_pairs: o.AllPairs = True,
    seed: o.Seed = 0,
    force: o.Force = False,
) -> None:
    """Believe in the edges of a graph without any label: a network that has seen many graphs.

    It ships with edgebelief and was trained on simulated graphs. Writes a row per pair (.csv,
    .parquet, .npz) or the decided graph (.graphml). Where the data are unlike all that it has seen,
    it says so, believes less, and the exit code is 4.
    """
    if tables.covariates:
        raise Misused("--covariates go with labels; see `edgebelief fit`.")
    tables.check(out=out, suffixes=EDGES, force=force)
    tables.check(out=report, suffixes=PAGES, force=force)
    check_at_most_one(asdict(rule))
    check_kinds(metric, tables.transpose)
    if n_signals is not None and metric != "precomputed":
        raise Misused("--n-signals is for --metric precomputed; of signals it is known.")
    if out.suffix.lower() == ".graphml" and len(tables.data) > 1:
        raise Misused(f"{out}: {ONE_GRAPH}")
    done_first = None if metric == "precomputed" else o.preprocessing(preprocess, None, metric)
    settings: dict[str, Any] = {"metric": metric, "missing": missing, "preprocess": done_first}
    settings |= {"density": density, "n_signals": n_signals, "random_state": seed}
    from .commands import believed

    believed(this, tables.given(), out, report, settings, asdict(rule), all_pairs)


@command("`edgebelief elicit data.npz --density 0.05 0.5 --out prior.json`")
def elicit(
    this: Session,
    data: o.Data,
    density: Annotated[
        tuple[float, float],
        o.option(
            "--density LOW HIGH", "Between which shares of all pairs you believe to be joined."
        ),
    ],
    max_components: Annotated[
        int | None,
        o.option("--max-components INT", "Into how many pieces a graph falls at most.", min=1),
    ] = None,
    mass: Annotated[float, o.option("--mass P", "How sure you are of that.", min=0, max=1)] = 0.95,
    readout: o.Readout = "affine",
    depth: o.Depth = 200,
    out: o.OptionalOut = None,
    plot: Annotated[
        Path | None,
        o.option("--plot FILE", "Draw what theta means, and the prior (.png, .svg or .pdf)."),
    ] = None,
    metric: o.Metric = "precomputed",
    preprocess: o.Preprocess = "auto",
    transform: o.Transform = None,
    missing: o.Missing = "error",
    nodes: o.Nodes = None,
    transpose: o.Transpose = False,
    force: o.Force = False,
) -> None:
    """Turn what you believe about the graphs into a prior, before any label is looked at.

    Graphs drawn from the model then have a density in that range with probability --mass. Prints
    what theta, the sparsity parameter, means on these data, and the prior; --out keeps it, for
    `edgebelief fit --prior prior.json`; --plot draws it.
    """
    tables = o.Tables(data, nodes, transpose)
    tables.check(out=out, suffixes=(".json",), force=force)
    tables.check(out=plot, suffixes=PICTURES, force=force)
    check_kinds(metric, transpose)
    done_first = o.preprocessing(preprocess, transform, metric)
    settings = {"metric": metric, "preprocess": done_first, "missing": missing}
    beliefs = {"density": density, "max_components": max_components, "mass": mass}
    model = {"readout": readout, "depth": depth}
    from .commands import elicited

    elicited(this, tables.given(), settings, beliefs, model, out, plot)


@command("`edgebelief fit returns.csv --metric correlation --groups sectors.csv --out model.eb`")
def fit(
    this: Session,
    out: o.Out,
    tables: o.LabelledTables,
    model: o.ModelOptions,
    inference: o.Inference = "auto",
    each: Annotated[
        bool,
        o.option("--each", "Of a folder: a model for each of its files, into the folder --out."),
    ] = False,
    jobs: o.Jobs = None,
    seed: o.Seed = 0,
    force: o.Force = False,
) -> None:
    """Learn from graphs whose edges are known how to believe in the edges of others.

    Writes a model file (.eb) for `predict`, `score`, `check`, `explain` and `report`. An npz data
    set brings its own labels and covariates.

    `edgebelief fit --each FOLDER --out MODELS` fits a model to each file of a folder; --labels is
    then a folder with a file of the same name for each. The same command goes on after an end.
    """
    model.check()
    if each:
        tables.check_folder(out=out, force=force)
    elif any(path.is_dir() for path in tables.data):
        raise Misused(f"{tables.data[0]}: is a folder; --each fits a model to each of its files.")
    else:
        o.refuse_jobs(jobs)
        tables.check(out=out, suffixes=(".eb",), force=force)
    check_kinds(model.metric, tables.transpose, tables.groups, model.weighted)
    settings = {**model.settings(), "inference": inference, "random_state": seed}
    if each:
        from .folders import each_fitted

        return each_fitted(this, tables.given(), out, settings, jobs)
    from .commands import fitted

    fitted(this, tables.given(), settings, out)


@command("`edgebelief predict model.eb new.csv --fdr 0.05 --out edges.csv`")
def predict(
    this: Session,
    model: o.Model,
    out: o.Out,
    tables: o.Tables,
    rule: o.Rule,
    level: Annotated[
        float, o.option("--level P", "Level of the credible intervals; 0 for none.", min=0, max=1)
    ] = 0.9,
    all_pairs: o.AllPairs = True,
    jobs: o.Jobs = None,
    force: o.Force = False,
) -> None:
    """Predict the edges of new graphs, with belief in every pair.

    Writes a row per pair: probability, its spread, an interval, a decision (.csv, .parquet, .npz);
    or the decided graph (.graphml). A model of weighted edges adds the weight and its interval.

    `edgebelief predict MODEL FOLDER --out BELIEFS` predicts each file of a folder, into a folder of
    tables. The same command goes on after an end, and does again what has changed.
    """
    if any(path.is_dir() for path in tables.data):
        tables.check_folder(model, out=out, force=force)
        check_at_most_one(asdict(rule))
        from .folders import folder_predicted

        how = {"level": level or None, "rule": asdict(rule), "all_pairs": all_pairs}
        return folder_predicted(this, model, tables.given(), out, how, jobs)
    o.refuse_jobs(jobs)
    tables.check(model, out=out, suffixes=EDGES, force=force)
    check_at_most_one(asdict(rule))
    if out.suffix.lower() == ".graphml" and len(tables.data) > 1:
        raise Misused(f"{out}: {ONE_GRAPH}")
    from .commands import predicted

    predicted(this, model, tables.given(), out, level, asdict(rule), all_pairs)


@command("`edgebelief check data.npz --prior flat`")
def check(
    this: Session,
    tables: o.LabelledTables,
    chosen: o.ModelOptions,
    model: Annotated[
        Path | None,
        o.option(
            "--model -m", "A fitted model, with settings of its own; else the prior is checked."
        ),
    ] = None,
    statistic: o.Statistic = "density",
    draws: Annotated[int, o.option("--draws INT", "Data sets to draw.", min=10, max=10**6)] = 1000,
    out: o.OptionalOut = None,
    seed: o.Seed = 0,
    force: o.Force = False,
) -> None:
    """Compare the graphs that the prior, or a fitted model, expects with the labels of these data.

    --out draws a picture (.png, .svg or .pdf).
    """
    more = [] if model is None else [model]
    tables.check(*more, out=out, suffixes=PICTURES, force=force)
    if model is None:
        check_kinds(chosen.metric, tables.transpose, tables.groups, chosen.weighted)
    else:
        chosen.refuse_beside(model)
    settings = chosen.settings()
    how = {"statistic": statistic, "n": draws, "key": seed}
    from .commands import checked

    checked(this, model, tables.given(), settings, how, out)


@command("`edgebelief score model.eb held-out.npz`")
def score(this: Session, model: o.Model, tables: o.LabelledTables, cv: o.HeldOut = None) -> None:
    """Score a model's belief on graphs whose edges are known.

    With --cv its settings are scored: they are fitted again to parts of these graphs, and each
    label is predicted by a fit that has not seen it.
    """
    tables.check(model)
    from .commands import scored

    scored(this, model, tables.given(), cv)


@command(
    "`edgebelief explain model.eb new.csv --source AAPL --target MSFT`; without a pair, what the "
    "model has learned."
)
def explain(
    this: Session,
    model: o.Model,
    data: Annotated[
        list[Path] | None, o.argument("DATA", "Where the pair is, as for `predict`.")
    ] = None,
    source: Annotated[str | None, o.option("--source NODE", "One end of the pair.")] = None,
    target: Annotated[str | None, o.option("--target NODE", "The other end.")] = None,
    graph: Annotated[
        int, o.option("--graph INT", "In which graph, where there are several.", min=0)
    ] = 0,
    nodes: o.Nodes = None,
    transpose: o.Transpose = False,
    covariates: o.Covariates = None,
    out: o.OptionalOut = None,
    force: o.Force = False,
) -> None:
    """Explain why an edge is believed in: what raises and what lowers its probability.

    Without a pair: the terms of an additive model, how much each moves belief, and whether the
    labels need it; --out draws their curves (.png, .svg or .pdf), or writes the table (.csv).
    """
    about_a_pair = source is not None and target is not None
    if (source is None) != (target is None) or about_a_pair != bool(data):
        raise Misused("a pair is --source, --target and the DATA it is in; give all three or none.")
    tables = o.Tables(data or [], nodes, transpose, covariates)
    tables.check(model, out=out, suffixes=(*PICTURES, *TABLES), force=force)
    if about_a_pair and out is not None and out.suffix.lower() in PICTURES:
        raise Misused(f"{out}: the explanation of a pair is a table; use .csv or .parquet.")
    from .commands import explained

    pair = None if source is None or target is None else (source, target, graph)
    explained(this, model, tables.given(), pair, out)


@command("`edgebelief report model.eb new.csv --out report.html`")
def report(
    this: Session,
    model: o.Model,
    out: o.Out,
    tables: o.LabelledTables,
    title: Annotated[str, o.option("--title", "The heading of the page.")] = "",
    cv: o.HeldOut = None,
    force: o.Force = False,
) -> None:
    """Write one page to open and to send: the graph, the belief, its scores, how it was made.

    With --cv its scores are those of labels that were held out, as in `edgebelief score`.
    """
    tables.check(model, out=out, suffixes=PAGES, force=force)
    from .commands import reported

    reported(this, model, tables.given(), out, title, cv)


@command("`edgebelief demo`")
def demo(
    this: Session,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write.")] = Path(
        "edgebelief-demo"
    ),
    seed: o.Seed = 0,
    force: o.Force = False,
) -> None:
    """Run every step on built-in handwritten digits, ending in a report to open."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        "held-out graphs": folder / "held-out.npz",
        "model": folder / "model.eb",
        "edges": folder / "edges.csv",
        "report": folder / "report.html",
    }
    for path in paths.values():
        check_target(path, force, (path.suffix,))
    from .demo import walk

    walk(this, paths, seed)


@app.command(hidden=True, context_settings={"ignore_unknown_options": True})
def reproduce(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)
    ] = None,
) -> None:
    """Say where the paper's tables and figures are run now: in the source repository."""
    with session("--json" in (words or [])):
        raise Misused(
            "reproduce is no longer part of the command. In a checkout of the source repository: "
            "`make reproduce`, or `python -m reproduction NAME --small`."
        )


@command("`edgebelief info model.eb`")
def info(
    this: Session,
    path: Annotated[Path | None, o.argument("FILE", "A model, a data set, a table, ...")] = None,
) -> None:
    """Say what a file holds; without one, versions and devices."""
    if path is not None:
        check_readable(path)
    from .info import told

    told(this, path)
