"""The options that commands share, so that a name means the same in each of them."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..registry import ENGINES, ENSEMBLES, NETWORKS, PRIORS, READOUTS, STATISTICS, with_meanings

READ, LABELS, HOW, RULE = "What is read", "Labels", "How", "Which edges"


def option(usage: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option from its flags and what they take, such as "--labels -l FILE".

    The panel is the heading under which the help lists it.
    """
    flags = [word for word in usage.split() if word.startswith("-")]
    takes = " ".join(usage.split()[len(flags) :])
    return typer.Option(*flags, metavar=takes or None, help=help, rich_help_panel=panel, **more)


def _one_of(names: Collection[str], flag: str, help: str, panel: str | None = None) -> Any:
    """Return an option that takes one of these names, of a table that is read at run time."""

    def parse(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is not one of {str(list(names))[1:-1]}.")
        return text

    return option(f"{flag} NAME", help, panel, parser=parse)


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
Out = Annotated[Path, option("--out -o", "The file to write.", show_default=False)]
OptionalOut = Annotated[Path | None, option("--out -o", "A file to write.", show_default=False)]
Force = Annotated[bool, option("--force", "Replace a file that is there.")]
Json = Annotated[bool, option("--json", "Answer in JSON, for machines.")]
Seed = Annotated[
    int,
    option("--seed INT", "The seed of all that is random.", min=0, max=2**31 - 1),
]
Ensemble = Annotated[str, _one_of(ENSEMBLES, "--ensemble", f"{with_meanings(ENSEMBLES)}.")]
Statistic = Annotated[str, _one_of(STATISTICS, "--statistic", f"One of {str(STATISTICS)[1:-1]}.")]

Nodes = Annotated[
    str | None,
    option(
        "--nodes FILE",
        "Only these nodes: a file with a name per line, a JSON list, or FILE.json:KEY.",
        READ,
    ),
]
Transpose = Annotated[bool, option("--transpose", "Tables have a row per node.", READ)]
Metric = Annotated[
    Literal["precomputed", "sqeuclidean", "log-euclidean", "correlation"],
    option(
        "--metric NAME",
        "Tables hold signals, and this is their distance: sqeuclidean, log-euclidean, correlation; "
        "or they hold distances: precomputed.",
        READ,
    ),
]
Missing = Annotated[
    Literal["error", "pairwise"],
    option(
        "--missing NAME",
        "Gaps in signals: error, or pairwise (each pair uses the rows that have both).",
        READ,
    ),
]
Transform = Annotated[
    Literal["log", "diff", "log-returns", "standardize"] | None,
    option(
        "--transform NAME",
        "What is done to signals first: log, diff, log-returns (for prices), standardize. By "
        "default, nothing.",
        READ,
    ),
]
Covariates = Annotated[
    list[Path] | None,
    option(
        "--covariates -c FILE",
        "What else is known: a table with source, target and a column for each thing known of a "
        "pair; or with a row per node. One for all graphs, or once per table.",
        READ,
    ),
]
Labels = Annotated[
    list[Path] | None,
    option(
        "--labels -l FILE",
        "The known edges: an adjacency with names (0, 1, empty for unknown), an edge list (source, "
        "target), or GraphML. Once per table.",
        LABELS,
    ),
]
Groups = Annotated[
    Path | None,
    option(
        "--groups FILE",
        "Or a table of nodes and their groups: nodes of one group are joined.",
        LABELS,
    ),
]
Weighted = Annotated[
    bool,
    option(
        "--weighted",
        "Labels are weights: above 0 for an edge, 0 for none, empty for unknown.",
        LABELS,
    ),
]
Network = Annotated[str, _one_of(NETWORKS, "--network", f"{with_meanings(NETWORKS)}.", HOW)]
Readout = Annotated[
    str,
    _one_of(
        [*READOUTS, "auto"],
        "--readout",
        f"{with_meanings(READOUTS)}, or auto (whichever predicts left-out graphs best).",
        HOW,
    ),
]
Inference = Annotated[
    str,
    _one_of(
        ["auto", *ENGINES],
        "--inference",
        f"{with_meanings(ENGINES)}, or auto (what suits the network).",
        HOW,
    ),
]
SizeAware = Annotated[
    bool,
    option("--size-aware", "A model for graphs of other sizes than those at hand.", HOW),
]
Prior = Annotated[
    str,
    option(
        "--prior NAME|FILE",
        f"{with_meanings(PRIORS)}, or what `edgebelief elicit --out prior.json` wrote.",
        HOW,
    ),
]
Density = Annotated[
    tuple[float, float] | None,
    option(
        "--density LOW HIGH",
        "Or between which shares of all pairs you believe to be joined, such as 0.05 0.5.",
        HOW,
    ),
]
Depth = Annotated[int, option("--depth INT", "Layers of the network.", HOW, min=0)]
Scale = Annotated[
    str | None,
    option(
        "--scale auto|median|relative|NUMBER",
        "Multiply the distances: by what suits the prior, by one over each graph's median, or by a "
        "number. By default, by nothing.",
        HOW,
    ),
]
Threshold = Annotated[
    float | None,
    option(
        "--threshold P",
        "Pairs with a probability above this. By default, above 0.5.",
        RULE,
        min=0,
        max=1,
    ),
]
Cost = Annotated[
    tuple[float, float] | None,
    option(
        "--cost EXTRA MISSED",
        "Or by what a false edge costs, and what a missed one does, such as 3 1.",
        RULE,
    ),
]
FDR = Annotated[
    float | None,
    option(
        "--fdr SHARE",
        "Or as many as keep the expected share of false edges below this.",
        RULE,
        min=0,
        max=1,
    ),
]
TopK = Annotated[int | None, option("--top-k K", "Or this many in each graph.", RULE, min=0)]


@dataclass(frozen=True)
class ModelOptions:
    """The options that say which model is fitted, or checked."""

    metric: Metric = "precomputed"
    transform: Transform = None
    missing: Missing = "error"
    network: Network = "dpg"
    readout: Readout = "affine"
    prior: Prior = "altered"
    density: Density = None
    depth: Depth = 200
    scale: Scale = None
    weighted: Weighted = False
    size_aware: SizeAware = False

    def settings(self) -> dict[str, Any]:
        """Return the settings of a `GraphLearner` that these options mean."""
        from .commands import scale_from
        from .priors import prior_from

        named = asdict(self)
        named["prior"] = prior_from(self.prior, named.pop("density"))
        named["scale"] = scale_from(self.scale)
        return named


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ModelOptions` in the place of its parameter `chosen`."""
    signature = inspect.signature(command, eval_str=True)
    parameters = list(signature.parameters.values())
    at = list(signature.parameters).index("chosen")

    @wraps(command)
    def run(**values: Any) -> None:
        chosen = {field.name: values.pop(field.name) for field in fields(ModelOptions)}
        command(chosen=ModelOptions(**chosen), **values)

    parameters[at : at + 1] = inspect.signature(ModelOptions).parameters.values()
    vars(run)["__signature__"] = signature.replace(parameters=parameters)  # which Typer reads
    return run
