"""The options that commands share, so that a name means one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

READ, LABELS, HOW, RULE = "What is read", "Labels", "How", "Which edges"

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
    typer.Option("--seed", metavar="INT", min=0, max=2**31 - 1, help="Of all that is random."),
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
        help="Of signals first: log, diff, log-returns (for prices), standardize. By default, "
        "nothing.",
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
Network = Annotated[
    Literal["dpg", "pds", "mimo", "mimo-e"],
    typer.Option(
        "--network",
        metavar="NAME",
        help="dpg, with one parameter; pds; mimo, four channels; or mimo-e, a trained mimo and "
        "more layers on top. The last two take minutes.",
        rich_help_panel=HOW,
    ),
]
Readout = Annotated[
    Literal["affine", "two-slope", "additive", "auto"],
    typer.Option(
        "--readout",
        metavar="NAME",
        help="affine, the paper's; two-slope; additive, with curves of all that is known of a "
        "pair; or auto, whichever predicts left-out graphs best.",
        rich_help_panel=HOW,
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
        help="altered, original, flat, or what `edgebelief elicit --out prior.json` wrote.",
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
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="P",
        min=0,
        max=1,
        help="Those of a probability above this. By default, above 0.5.",
        rich_help_panel=RULE,
    ),
]
Cost = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--cost",
        metavar="EXTRA MISSED",
        help="Or by what an edge too many costs, and a missed one, such as 3 1.",
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
        help="Or as many as keep the expected share of wrong ones below this.",
        rich_help_panel=RULE,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k", metavar="K", min=0, help="Or so many in each graph.", rich_help_panel=RULE
    ),
]
