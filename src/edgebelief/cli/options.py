"""The options that commands share, so that a name means the same in each of them."""

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .. import registry
from ..bounds import check_file
from ..errors import InputError
from .paths import NOT_NODES, check_folder, check_target, split_key
from .session import FLAGS, Misused

if TYPE_CHECKING:
    from .inputs import Given


def option(usage: str, help: str, **more: Any) -> Any:
    """Return an option from its flags and what they take, such as "--labels -l FILE"."""
    flags = [word for word in usage.split() if word.startswith("-")]
    takes = " ".join(usage.split()[len(flags) :])
    return typer.Option(*flags, metavar=takes or None, help=help, **more)


def argument(metavar: str, help: str) -> Any:
    """Return an argument whose default the help does not show."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def _one_of(flag: str, table: registry.Table | Sequence[str], auto: str = "", **more: Any) -> Any:
    """Return an option that takes one of these names, or "auto" where that means something."""
    help = f"One of {str(table)[1:-1]}"
    if isinstance(table, Mapping):
        help = registry.with_meanings(table)
    names = list(table)
    if auto:
        names, help = [*names, "auto"], f"{help}, or auto ({auto})"

    def parse(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is not one of {str(names)[1:-1]}.")
        return text

    return option(f"{flag} NAME", f"{help}.", parser=parse, **more)


# The headings under which the help lists options.
_read = partial(option, rich_help_panel="What is read")
_labels = partial(option, rich_help_panel="Labels")
_how = partial(option, rich_help_panel="How")
_how_one_of = partial(_one_of, rich_help_panel="How")
_rule = partial(option, rich_help_panel="Which edges")
_rule_by_share = partial(_rule, min=0, max=1)

Model = Annotated[Path, argument("MODEL", "What `edgebelief fit` wrote.")]
Data = Annotated[
    list[Path], argument("DATA", "One .npz data set, or a table (.csv, .tsv, .parquet) per graph.")
]
Out = Annotated[Path, option("--out -o", "The file to write.", show_default=False)]
OptionalOut = Annotated[Path | None, option("--out -o", "A file to write.", show_default=False)]
Force = Annotated[bool, option("--force", "Replace a file that is there.")]
Json = Annotated[bool, option("--json", "Answer in JSON, for machines.")]
Jobs = Annotated[
    int | None,
    option("--jobs INT", "Of a folder: processes at work; by default one for each core.", min=1),
]
Seed = Annotated[int, option("--seed INT", "The seed of all that is random.", min=0, max=2**31 - 1)]
Ensemble = Annotated[str, _one_of("--ensemble", registry.ENSEMBLES)]
Statistic = Annotated[str, _one_of("--statistic", registry.STATISTICS)]
Inference = Annotated[
    str, _how_one_of("--inference", registry.ENGINES, auto="what suits the network")
]
# Of the model that a prior is made for: the one that will be fitted.
Readout = Annotated[str, _how_one_of("--readout", registry.READOUTS)]
Depth = Annotated[int, _how("--depth INT", "Layers of the network.", min=1, max=10**5)]
Nodes = Annotated[
    str | None,
    _read(
        "--nodes FILE",
        "Only these nodes: a file with a name per line, a JSON list, or FILE.json:KEY.",
    ),
]
Transpose = Annotated[bool, _read("--transpose", "Tables have a row per node.")]
Metric = Annotated[
    Literal["precomputed", "sqeuclidean", "log-euclidean", "correlation"],
    _read(
        "--metric NAME",
        "Tables hold signals, and this is their distance: correlation, sqeuclidean, log-euclidean; "
        "or they hold distances: precomputed.",
    ),
]
Missing = Annotated[
    Literal["error", "pairwise"],
    _read(
        "--missing NAME",
        "Gaps in signals: error, or pairwise (each pair uses the rows that have both).",
    ),
]
Preprocess = Annotated[
    Literal["auto", "none", "standardize", "log", "diff", "log-returns"],
    _read(
        "--preprocess NAME",
        "What is done to signals first: standardize, log, diff, log-returns (for prices), or none. "
        "auto standardizes each column for sqeuclidean and log-euclidean, so that units do not "
        "matter; a correlation needs nothing.",
    ),
]
# The old name of --preprocess.
Transform = Annotated[
    Literal["log", "diff", "log-returns", "standardize"] | None,
    option("--transform NAME", "Now --preprocess.", hidden=True),
]
AllPairs = Annotated[
    bool, option("--all-pairs/--edges-only", "Write every pair, or the decided edges.")
]
Covariates = Annotated[
    list[Path] | None,
    _read(
        "--covariates -c FILE",
        "What else is known: a table with source, target and a column for each thing known of a "
        "pair; or with a row per node. One for all graphs, or once per table.",
    ),
]


HeldOut = Annotated[
    Literal["nodes", "graphs"] | None,
    _how(
        "--cv NAME",
        "Hold out a fifth of the nodes (nodes) or of the graphs (graphs) at a time, and predict "
        "them by a fit to the rest: the way to score the graphs that were fitted. One labelled "
        "graph has nodes alone to hold out.",
    ),
]


def preprocessing(preprocess: str, transform: str | None, metric: str) -> str | None:
    """Return what the library calls `preprocess`, from the option, its old name and the metric."""
    if transform is not None:
        if preprocess != "auto":
            raise Misused("--transform is the old name of --preprocess; give one of them.")
        warnings.warn("--transform is called --preprocess now.", FutureWarning, stacklevel=2)
        preprocess = transform
    if preprocess == "auto":
        return "standardize" if metric in ("sqeuclidean", "log-euclidean") else None
    return None if preprocess == "none" else preprocess


def refuse_jobs(jobs: int | None) -> None:
    """Refuse --jobs where there is no folder: one graph uses all cores anyway."""
    if jobs is not None:
        raise Misused("--jobs is for a folder; otherwise all cores are at work.")


@dataclass(frozen=True)
class Tables:
    """The options that say which graphs are read."""

    data: Data
    nodes: Nodes = None
    transpose: Transpose = False
    covariates: Covariates = None

    def check(
        self,
        *more: Path,
        out: Path | None = None,
        suffixes: Sequence[str] = (),
        force: bool = False,
    ) -> None:
        """Refuse, before any work, what cannot be read or written; `more` is read too."""
        read = [*more, *self.data, *(self.covariates or [])]
        nodes = [] if self.nodes is None else [split_key(self.nodes)[0]]
        if out is not None:
            check_target(out, force, suffixes, [*read, *nodes])
        for path in read:
            check_file(path)
        for path in nodes:
            check_file(path, NOT_NODES)
        alone = len(self.data) == 1 and not self.nodes and not self.transpose
        if not alone and any(path.suffix.lower() == ".npz" for path in self.data):
            raise InputError(
                f"{self.data[0]}: an npz data set holds all graphs; it goes alone, and not "
                f"with --nodes or --transpose."
            )

    def check_folder(self, *more: Path, out: Path, force: bool = False) -> None:
        """Refuse, before any work, what is no folder of graphs, or no folder for their results."""
        if len(self.data) > 1:
            raise Misused(f"{self.data[0]}: a folder goes alone.")
        beside = {"--labels": getattr(self, "labels", None), "--covariates": self.covariates}
        for flag, paths in beside.items():
            if paths and len(paths) > 1:
                raise Misused(
                    f"give one {flag} with a folder: a folder with a file for each graph."
                )
        files = [path for paths in beside.values() for path in paths or [] if not path.is_dir()]
        groups = getattr(self, "groups", None)
        files += [] if groups is None else [groups]
        for path in [*more, *files]:
            check_file(path)
        if self.nodes is not None:
            check_file(split_key(self.nodes)[0], NOT_NODES)
        check_folder(out, force)

    def given(self) -> "Given":
        """Return what these options point at."""
        from .inputs import Given

        named = {name: value for name, value in vars(self).items() if value is not None}
        return Given(named.pop("data"), **named)


@dataclass(frozen=True)
class LabelledTables(Tables):
    """The options that say which graphs are read, and where their known edges are."""

    labels: Annotated[
        list[Path] | None,
        _labels(
            "--labels -l FILE",
            "The known edges: an adjacency with names (0, 1, empty for unknown), an edge list "
            "(source, target), or GraphML. Once per table.",
        ),
    ] = None
    groups: Annotated[
        Path | None,
        _labels(
            "--groups FILE",
            "Or a table of nodes and their groups: nodes of one group are joined. Pairs of a node "
            "without a group, or alone in one, are unknown.",
        ),
    ] = None

    def check(self, *more: Path, **written: Any) -> None:
        """Refuse, before any work, what cannot be read or written; `more` is read too."""
        self._check_labels()
        groups = [] if self.groups is None else [self.groups]
        super().check(*more, *(self.labels or []), *groups, **written)

    def check_folder(self, *more: Path, **written: Any) -> None:
        """Refuse, before any work, what is no folder of graphs, or no folder for their results."""
        self._check_labels()
        for path in self.labels or []:
            if not path.is_dir():
                raise Misused(f"{path}: with a folder, --labels is a folder too, a file for each.")
        super().check_folder(*more, **written)

    def _check_labels(self) -> None:
        if self.labels and self.groups:
            raise Misused("give --labels or --groups, not both.")


@dataclass(frozen=True)
class ModelOptions:
    """The options that say which model is fitted, or checked."""

    metric: Metric = "precomputed"
    preprocess: Preprocess = "auto"
    transform: Transform = None
    missing: Missing = "error"
    network: Annotated[str, _how_one_of("--network", registry.NETWORKS)] = "dpg"
    readout: Annotated[
        str,
        _how_one_of("--readout", registry.READOUTS, auto="whichever predicts left-out graphs best"),
    ] = "affine"
    evidence: Annotated[
        str,
        _how(
            "--evidence auto|none|NAME,NAME,...",
            "What the whole graph says about each pair, for --readout additive: "
            f"{registry.with_meanings(registry.EVIDENCE)}. auto takes what the data allow within "
            "half a minute; the last six need signals (--metric), then also to predict.",
        ),
    ] = "auto"
    prior: Annotated[
        str,
        _how(
            "--prior NAME|FILE",
            f"{registry.with_meanings(registry.PRIORS)}, or what `edgebelief elicit --out "
            "prior.json` wrote.",
        ),
    ] = "altered"
    density: Annotated[
        tuple[float, float] | None,
        _how(
            "--density LOW HIGH",
            "Or between which shares of all pairs you believe to be joined, such as 0.05 0.5.",
        ),
    ] = None
    depth: Depth = 200
    scale: Annotated[
        str | None,
        _how(
            "--scale auto|median|relative|NUMBER",
            "Multiply the distances: by what suits the prior, by one over each graph's median, or "
            "by a number. By default, by nothing.",
        ),
    ] = None
    weighted: Annotated[
        bool,
        _labels(
            "--weighted", "Labels are weights: above 0 for an edge, 0 for none, empty for unknown."
        ),
    ] = False
    size_aware: Annotated[
        bool, _how("--size-aware", "A model for graphs of other sizes than those at hand.")
    ] = False
    support: Annotated[
        Literal["complete", "knn"],
        _how(
            "--support complete|knn",
            "Which pairs may be edges: all, or, for large graphs, those of near neighbours alone.",
        ),
    ] = "complete"
    n_neighbors: Annotated[
        int,
        _how("--neighbours K", "For --support knn: how many each node chooses.", min=1),
    ] = 20

    def check(self) -> None:
        """Refuse what no learner takes, before any file is looked at."""
        from .priors import check_name

        check_name(self.prior)
        self._scale()
        self._evidence()

    def refuse_beside(self, model: Path) -> None:
        """Refuse all of these options beside a fitted model, which would not heed them."""
        for field in fields(self):
            if getattr(self, field.name) != field.default:
                flag = FLAGS.get(field.name, f"--{field.name.replace('_', '-')}")
                raise Misused(f"{flag} is for a model to be fitted; {model} has its own settings.")

    def settings(self) -> dict[str, Any]:
        """Return the settings of a `GraphLearner` that these options mean."""
        from .priors import prior_from

        named = asdict(self) | {"scale": self._scale(), "evidence": self._evidence()}
        named["preprocess"] = preprocessing(self.preprocess, named.pop("transform"), self.metric)
        return named | {"prior": prior_from(self.prior, named.pop("density"))}

    def _evidence(self) -> str | list[str]:
        if self.evidence in ("auto", "none"):
            return self.evidence
        names = [name.strip() for name in self.evidence.split(",")]
        if unknown := [name for name in names if name not in registry.EVIDENCE]:
            raise Misused(
                f"--evidence is auto, none or names with commas between, of "
                f"{str(list(registry.EVIDENCE))[1:-1]}; got {unknown[0]!r}."
            )
        return names

    def _scale(self) -> str | float | None:
        if self.scale is None or self.scale in ("auto", "median", "relative"):
            return self.scale
        with suppress(ValueError):
            if 0 < float(self.scale) < math.inf:
                return float(self.scale)
        raise Misused(f"--scale is auto, median, relative or a number above 0; got {self.scale!r}.")


@dataclass(frozen=True)
class Rule:
    """The options that say which pairs are decided to be edges."""

    threshold: Annotated[
        float | None,
        _rule_by_share(
            "--threshold P", "Pairs with a probability above this. By default, above 0.5."
        ),
    ] = None
    cost: Annotated[
        tuple[float, float] | None,
        _rule(
            "--cost EXTRA MISSED",
            "Or by what a false edge costs, and what a missed one does, such as 3 1.",
        ),
    ] = None
    fdr: Annotated[
        float | None,
        _rule_by_share(
            "--fdr SHARE", "Or as many as keep the expected share of false edges below this."
        ),
    ] = None
    top_k: Annotated[int | None, _rule("--top-k K", "Or this many in each graph.", min=0)] = None
