"""The options that commands share, so that a name means the same in each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..registry import ENGINES, ENSEMBLES, NETWORKS, PRIORS, READOUTS, STATISTICS, with_meanings

READ, LABELS, HOW, RULE = "What is read", "Labels", "How", "Which edges"


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a parser that refuses every other name. The names are known at run time alone."""
    known = tuple(names)

    def parse(text: str) -> str:
        if text not in known:
            raise typer.BadParameter(f"{text!r} is not one of {str(known)[1:-1]}.")
        return text

    return parse


Data = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        help="One .npz data set, or a table (.csv, .tsv, .parquet) per graph.",
        show_default=False,
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="What `edgebelief fit` wrote.", show_default=False)
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The file to write.", show_default=False)]
OptionalOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="A file to write.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON, for machines.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="INT", min=0, max=2**31 - 1, help="The seed of all that is random."
    ),
]

Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE",
        help="Only these nodes: a file with a name per line, a JSON list, or FILE.json:KEY.",
        rich_help_panel=READ,
    ),
]
Transpose = Annotated[
    bool,
    typer.Option("--transpose", help="Tables have a row per node.", rich_help_panel=READ),
]
Metric = Annotated[
    Literal["precomputed", "sqeuclidean", "log-euclidean", "correlation"],
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Tables hold signals, and this is their distance: sqeuclidean, log-euclidean, "
        "correlation; or they hold distances: precomputed.",
        rich_help_panel=READ,
    ),
]
Missing = Annotated[
    Literal["error", "pairwise"],
    typer.Option(
        "--missing",
        metavar="NAME",
        help="Gaps in signals: error, or pairwise (each pair uses the rows that have both).",
        rich_help_panel=READ,
    ),
]
Transform = Annotated[
    Literal["log", "diff", "log-returns", "standardize"] | None,
    typer.Option(
        "--transform",
        metavar="NAME",
        help="What is done to signals first: log, diff, log-returns (for prices), standardize. By "
        "default, nothing.",
        rich_help_panel=READ,
    ),
]
Labels = Annotated[
    list[Path] | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="FILE",
        help="The known edges: an adjacency with names (0, 1, empty for unknown), an edge list "
        "(source, target), or GraphML. Once per table.",
        rich_help_panel=LABELS,
    ),
]
Groups = Annotated[
    Path | None,
    typer.Option(
        "--groups",
        metavar="FILE",
        help="Or a table of nodes and their groups: nodes of one group are joined.",
        rich_help_panel=LABELS,
    ),
]
Covariates = Annotated[
    list[Path] | None,
    typer.Option(
        "--covariates",
        "-c",
        metavar="FILE",
        help="What else is known: a table with source, target and a column for each thing known "
        "of a pair; or with a row per node. One for all graphs, or once per table.",
        rich_help_panel=READ,
    ),
]
Weighted = Annotated[
    bool,
    typer.Option(
        "--weighted",
        help="Labels are weights: above 0 for an edge, 0 for none, empty for unknown.",
        rich_help_panel=LABELS,
    ),
]
Network = Annotated[
    str,
    typer.Option(
        "--network",
        metavar="NAME",
        parser=one_of(NETWORKS),
        help=f"{with_meanings(NETWORKS)}.",
        rich_help_panel=HOW,
    ),
]
Readout = Annotated[
    str,
    typer.Option(
        "--readout",
        metavar="NAME",
        parser=one_of([*READOUTS, "auto"]),
        help=f"{with_meanings(READOUTS)}, or auto (whichever predicts left-out graphs best).",
        rich_help_panel=HOW,
    ),
]
Inference = Annotated[
    str,
    typer.Option(
        "--inference",
        metavar="NAME",
        parser=one_of(["auto", *ENGINES]),
        help=f"{with_meanings(ENGINES)}, or auto (what suits the network).",
        rich_help_panel=HOW,
    ),
]
Ensemble = Annotated[
    str,
    typer.Option(
        "--ensemble",
        metavar="NAME",
        parser=one_of(ENSEMBLES),
        help=f"{with_meanings(ENSEMBLES)}.",
    ),
]
Statistic = Annotated[
    str,
    typer.Option(
        "--statistic",
        metavar="NAME",
        parser=one_of(STATISTICS),
        help=f"One of {str(STATISTICS)[1:-1]}.",
    ),
]
SizeAware = Annotated[
    bool,
    typer.Option(
        "--size-aware",
        help="A model for graphs of other sizes than those at hand.",
        rich_help_panel=HOW,
    ),
]
Prior = Annotated[
    str,
    typer.Option(
        "--prior",
        metavar="NAME|FILE",
        help=f"{with_meanings(PRIORS)}, or what `edgebelief elicit --out prior.json` wrote.",
        rich_help_panel=HOW,
    ),
]
Density = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--density",
        metavar="LOW HIGH",
        help="Or between which shares of all pairs you believe to be joined, such as 0.05 0.5.",
        rich_help_panel=HOW,
    ),
]
Depth = Annotated[
    int,
    typer.Option(
        "--depth", metavar="INT", min=0, help="Layers of the network.", rich_help_panel=HOW
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="auto|median|relative|NUMBER",
        help="Multiply the distances: by what suits the prior, by one over each graph's median, "
        "or by a number. By default, by nothing.",
        rich_help_panel=HOW,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="P",
        min=0,
        max=1,
        help="Pairs with a probability above this. By default, above 0.5.",
        rich_help_panel=RULE,
    ),
]
Cost = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--cost",
        metavar="EXTRA MISSED",
        help="Or by what a false edge costs, and what a missed one does, such as 3 1.",
        rich_help_panel=RULE,
    ),
]
FDR = Annotated[
    float | None,
    typer.Option(
        "--fdr",
        metavar="SHARE",
        min=0,
        max=1,
        help="Or as many as keep the expected share of false edges below this.",
        rich_help_panel=RULE,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k", metavar="K", min=0, help="Or this many in each graph.", rich_help_panel=RULE
    ),
]

Settings = Callable[[], dict[str, Any]]


def model_settings(
    metric: Metric = "precomputed",
    transform: Transform = None,
    missing: Missing = "error",
    network: Network = "dpg",
    readout: Readout = "affine",
    prior: Prior = "altered",
    density: Density = None,
    depth: Depth = 200,
    scale: Scale = None,
    weighted: Weighted = False,
    size_aware: SizeAware = False,
) -> dict[str, Any]:
    """Return the settings of a `GraphLearner` that these options mean."""
    from .commands import scale_from
    from .priors import prior_from

    return {
        "metric": metric,
        "transform": transform,
        "missing": missing,
        "network": network,
        "readout": readout,
        "prior": prior_from(prior, density),
        "depth": depth,
        "scale": scale_from(scale),
        "weighted": weighted,
        "size_aware": size_aware,
    }


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `model_settings` in the place of its parameter `settings`.

    The command gets a function that returns the settings, to be called within its session: that is
    where a wrong option is reported.
    """
    model = inspect.signature(model_settings, eval_str=True).parameters
    signature = inspect.signature(command, eval_str=True)
    parameters = list(signature.parameters.values())
    at = list(signature.parameters).index("settings")

    @wraps(command)
    def run(**values: Any) -> None:
        chosen = {name: values.pop(name) for name in model}
        command(settings=partial(model_settings, **chosen), **values)

    parameters[at : at + 1] = model.values()
    vars(run)["__signature__"] = signature.replace(parameters=parameters)  # which Typer reads
    return run
