"""The evidence of a learner: what its setting means, what applies, and data sets with its channels.

Only readouts with terms use evidence. Each channel is a covariate of the pairs, and so a term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..amortise.evidence import Pretrained
from ..data.coerce import Graphs
from ..data.dataset import GraphDataset
from ..errors import InputError, Remedy, Setting, SettingError, SettingTypeError
from ..evidence import Custom, Evidence, add, applicable, check_names
from ..evidence.choose import SECONDS
from ..readouts import Readout
from ..registry import EVIDENCE

Kinds = tuple[Evidence, ...]

# "auto" asks the pretrained network about graphs up to this size: a larger one takes more than ten
# seconds and several gigabytes.
MOST_NODES = 600


def evidence_of(setting: object) -> Kinds | None:
    """Return the evidence that a setting means; None for "auto"."""
    if isinstance(setting, str) and setting in ("auto", "none"):
        return None if setting == "auto" else ()
    if not isinstance(setting, list | tuple):
        problem = f"must be auto, none, or a list of {list(EVIDENCE)}; got {setting!r}."
        raise SettingError(problem, argument="evidence")
    kinds = tuple(_kind(each) for each in setting)
    check_names(kinds)
    return kinds


def _kind(given: object) -> Evidence:
    if isinstance(given, Evidence):
        return given
    if isinstance(given, str) and given in EVIDENCE:
        return EVIDENCE[given].make()
    name = getattr(given, "__name__", None)
    if callable(given) and not isinstance(given, type):
        if name is None or name == "<lambda>":
            problem = "has a function without a name"
            remedy = "use edgebelief.evidence.Custom(name, function)"
            raise SettingError(problem, argument="evidence", remedy=remedy)
        return Custom(name, given)
    if isinstance(given, str):
        problem = f"{given!r} is none; there are {list(EVIDENCE)}."
        raise SettingError(problem, argument="evidence")
    problem = f"is a list of names, Evidence objects and functions; got {given!r} in it."
    raise SettingTypeError(problem, argument="evidence")


def has_terms(readout: Readout) -> bool:
    """Whether a readout has terms, or will have some once it is prepared."""
    return bool(readout.possible_terms) or readout.covariates != ()


def check_used(setting: object, readout: Readout, remedy: Remedy | None) -> None:
    """Refuse evidence that is asked for, where the readout has no terms for it."""
    if not evidence_of(setting) or has_terms(readout):
        return
    remedies = [Remedy("leave {} out", Setting("evidence"))]
    raise SettingError(
        f"is for readouts with terms; the readout is {type(readout).__name__}",
        argument="evidence",
        remedy=remedies if remedy is None else [remedy, *remedies],
    )


def evidence_for(settings: Mapping[str, Any], readout: Readout, graphs: Graphs) -> Kinds:
    """Return the evidence that a fit of this readout to these graphs uses.

    "auto" is for readouts that are named: one that is given as an object says itself what its terms
    are, and may be made for graphs of other sizes.
    """
    kinds = evidence_of(settings["evidence"])
    if not has_terms(readout):
        return ()
    if kinds is None:
        if not isinstance(settings["readout"], str):
            return ()
        sizes = graphs.data.n_nodes
        n_signals = None if graphs.signals is None else [float(len(x)) for x in graphs.signals]
        restricted = any(record.candidates is not None for record in graphs.data)
        kinds = applicable(sizes, n_signals, restricted=restricted)
        affordable = sum(Pretrained().seconds(n, 0) for n in sizes) <= SECONDS
        if affordable and max(sizes) <= MOST_NODES and not restricted:
            kinds = (Pretrained(), *kinds)
    return tuple(_suited(kind, settings["metric"], graphs) for kind in kinds)


def _suited(kind: Evidence, metric: object, graphs: Graphs) -> Evidence:
    """Return the pretrained network's evidence for the distances, and signals, that there are."""
    if not (isinstance(kind, Pretrained) and kind.metric is None):
        return kind
    if not isinstance(metric, str) or metric == "precomputed":
        # Squared distances are not negative; logarithms of distances are on both sides of zero.
        has_negative = any((record.e < 0).any() for record in graphs.data)
        metric = "log-euclidean" if has_negative else "sqeuclidean"
    return replace(kind, metric=metric, needs_signals=graphs.signals is not None)  # type: ignore[arg-type]


def with_covariates(readout: Readout, names: Iterable[str]) -> Readout:
    """Return the readout with these among its covariates, where it lists some."""
    if not has_terms(readout) or readout.covariates is None:
        return readout
    listed = dict.fromkeys((*readout.covariates, *names))
    return replace(readout, covariates=tuple(listed))  # type: ignore[call-arg]


def informed(
    kinds: Kinds, data: GraphDataset, signals: Sequence[Any] | None, is_fitted: bool
) -> GraphDataset:
    """Return the data with the channels as covariates, for a fit or for a model that `is_fitted`.

    This is the one place where the graphs of a learner get their evidence.
    """
    if signals is None and any(kind.needs_signals for kind in kinds):
        raise _no_signals(kinds, is_fitted)
    return add(kinds, data, signals)


def _no_signals(kinds: Kinds, is_fitted: bool) -> InputError:
    of_signals = [kind.name for kind in kinds if kind.needs_signals]
    of_distances = [kind.name for kind in kinds if not kind.needs_signals]
    problem = (
        f"the evidence {', '.join(map(repr, of_signals))} is computed from signals, and there are "
        f"only distances"
    )
    without = Setting("evidence", ",".join(of_distances), python=f"evidence={of_distances}")
    if not of_distances:
        without = Setting("evidence", "none")
    if not is_fitted:
        signals = Remedy("give signals, and say which distance: {}", Setting("metric", ...))
        return SettingError(problem, remedy=[signals, Remedy("use {}", without)])
    refit = Remedy("fit the model again with {}", without)
    return InputError(f"the model uses signals: {problem}", remedy=["give signals", refit])
