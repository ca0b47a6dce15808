"""A fitted learner as a model file, and back.

Settings become plain JSON by the name of their class. A file can name only the classes of
`registry.PARTS`, so it can make nothing else. Arrays are kept to the last bit: predictions after
loading are the same numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..amortise.evidence import PretrainedBelief
from ..amortise.inputs import CHANNELS, FACTS
from ..amortise.networkfile import arrays_of, network_of
from ..data.covariates import MAX_COVARIATES
from ..data.reference import MOST_GRAPHS, Reference, has_size
from ..evidence import Custom, Evidence, check_names
from ..infer import EdgeModel, Engine, Finding, Fingerprint, Likelihood, Posterior, Prior, Verdict
from ..infer.exact.theta import ThetaPosterior
from ..infer.exact.weights import WeightedThetaPosterior
from ..infer.posterior import PRETRAINED
from ..networks import Network
from ..networks.pair import PairNetwork
from ..readouts import Readout
from ..registry import PARTS
from ..validate import check_number
from ..version import __version__
from . import modelfile
from .arrays import Arrays, demand, family_in, family_out, terms_in, terms_out, under
from .modelfile import ModelFileError

KIND = "GraphLearner"
MODEL = {"network": Network, "readout": Readout, "prior": Prior, "likelihood": Likelihood}
# Fields that are kept elsewhere (the curves of terms: arrays), or made anew.
APART = ("terms", "state")
# The field of evidence that is a tuned network, and what the names of its arrays begin with.
NETWORK, OF_NETWORK = "network", "network."
# What the names of the arrays of a first pass begin with.
FIRST = "first."
# A file asks for no more channels: a layer takes time with their square.
MOST_CHANNELS = 64
# What columns of a comparison are called in older files.
RENAMED = {"se of behind": "se_behind", "largest k": "largest_k", "log evidence": "log_evidence"}
# What settings of a learner are called in older files, and what they are called now.
RENAMED_SETTINGS = {"transform": "preprocess"}
# Settings that older files lack, and how their learners were fitted.
NEW_SETTINGS = {"evidence": "none"}
# A file asks for no larger numbers in the settings of evidence: trees and iterations take time.
LARGEST = 10**5


class SavedLearner(NamedTuple):
    """What a model file keeps of a fitted learner."""

    settings: dict[str, Any]
    """The arguments of `GraphLearner`, by name."""
    seed: int
    """The seed that the fit used."""
    scale: float | str
    """What distances are multiplied by."""
    comparison: pd.DataFrame | None
    """The comparison of readouts, where one was chosen."""
    posterior: Posterior
    evidence: tuple[Evidence, ...] = ()
    """What the posterior's readout uses."""
    first_pass: Posterior | None = None
    """What terms of the posterior's readout are computed from, where there were two passes."""


def write(path: str | Path, saved: SavedLearner) -> None:
    """Write a fitted learner to a model file."""
    fitted, arrays = _posterior_out(saved.posterior)
    settings = {
        "edgebelief": __version__,
        "learner": {name: _encoded(value) for name, value in saved.settings.items()},
        "seed": saved.seed,
        "scale": saved.scale,
        "evidence": [_encoded(kind) for kind in saved.evidence],
        **fitted,
        "comparison": _comparison_out(saved.comparison),
    }
    for network in tuned_networks(saved.evidence):
        settings[NETWORK] = network.shape._asdict()
        arrays |= {OF_NETWORK + name: array for name, array in arrays_of(network).items()}
    if saved.first_pass is not None:
        settings["first pass"], of_first = _posterior_out(saved.first_pass)
        arrays |= {FIRST + name: array for name, array in of_first.items()}
    modelfile.write(path, KIND, settings, arrays)


def tuned_networks(kinds: Iterable[Evidence]) -> list[PairNetwork]:
    """Return the network of the evidence that has one of its own: none or one."""
    believed = (kind for kind in kinds if isinstance(kind, PretrainedBelief))
    return [kind.network for kind in believed if kind.network is not None]


def _posterior_out(posterior: Posterior) -> tuple[dict[str, Any], Arrays]:
    """Return a posterior and its model as settings and arrays."""
    verdict, fingerprint = posterior.verdict, dataclasses.asdict(posterior.fingerprint)
    n_nodes = fingerprint.pop("n_nodes")  # an array, for there may be many graphs
    reference = posterior.fingerprint.reference
    fingerprint["reference"] = list(reference.names)  # the names of the columns of an array
    settings: dict[str, Any] = {
        "model": {name: _encoded(getattr(posterior.model, name)) for name in MODEL},
        "posterior": {
            "engine": posterior.engine,
            "settings": _encoded(dict(posterior.settings)),
            "fingerprint": fingerprint,
            "verdict": {
                "figures": {name: float(value) for name, value in verdict.figures.items()},
                "findings": [[f.name, float(f.value), f.message] for f in verdict.findings],
                "assumptions": list(verdict.assumptions),
            },
            "log_evidence": posterior.log_evidence,
            "n_chains": posterior.n_chains,
        },
    }
    arrays = {"weights": np.asarray(posterior.weights), "n_nodes": np.array(n_nodes, np.int64)}
    if len(reference):
        columns = np.array(reference.n_nodes, float)[:, None], reference.array
        arrays["reference"] = np.concatenate(columns, axis=1)
    arrays |= {f"param.{name}": np.asarray(v) for name, v in posterior.params.items()}
    arrays |= {f"stat.{name}": np.asarray(v) for name, v in posterior.sample_stats.items()}
    if posterior.model.readout.terms:
        settings["terms"], of_terms = terms_out(posterior.model.readout)
        arrays |= {f"term.{name}": array for name, array in of_terms.items()}
    if isinstance(posterior.continuum, ThetaPosterior | WeightedThetaPosterior):
        arrays |= {f"family.{k}": v for k, v in family_out(posterior.continuum).items()}
    return settings, arrays


def read(path: str | Path, names: Collection[str]) -> SavedLearner:
    """Read what `write` wrote. The caller checks whether its settings make a learner.

    `names` are those of a learner's settings; a setting of an older file comes under its new name.
    """
    kind, settings, arrays = modelfile.read(path)
    if kind != KIND:
        raise ModelFileError(f"{path}: holds a {kind!r}, not a {KIND}.")
    with reading(path):
        saved = _restored(settings, arrays)
        return saved._replace(settings=renamed(saved.settings, names))


def renamed(settings: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the settings of a learner under the names that they have now."""
    now = {old: new for old, new in RENAMED_SETTINGS.items() if new in names}
    both = {new for old, new in now.items() if old in settings and new in settings}
    demand(not both, f"it has the settings {sorted(both)} under an older name, too")
    old = {name: value for name, value in NEW_SETTINGS.items() if name in names}
    return old | {now.get(name, name): value for name, value in settings.items()}


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn errors about contents of a file into a `ModelFileError` that names the file."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"cannot read the model file {str(path)!r}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(
            f"cannot read the model file {str(path)!r}: its contents do not make a learner "
            f"({type(error).__name__}: {error}). Save the model again."
        ) from None


def _restored(settings: dict[str, Any], arrays: Arrays) -> SavedLearner:
    posterior = _posterior_in(settings, arrays)
    first_pass = None
    if settings.get("first pass") is not None:
        first_pass = _posterior_in(settings["first pass"], under(FIRST, arrays))
        known = set(posterior.model.readout.covariates or ())
        needed = set(first_pass.model.readout.covariates or ())
        demand(needed <= known, "its first pass needs what its second does not")
    seed = settings["seed"]
    demand(type(seed) is int and 0 <= seed < 2**32, "its seed is no seed")
    return SavedLearner(
        settings={name: _decoded(value) for name, value in settings["learner"].items()},
        seed=seed,
        scale=settings["scale"],
        comparison=_comparison_in(settings.get("comparison")),
        posterior=posterior,
        evidence=_evidence_in(settings, arrays, posterior.model),
        first_pass=first_pass,
    )


def _posterior_in(settings: dict[str, Any], arrays: Arrays) -> Posterior:
    """Return the posterior that `_posterior_out` was given."""
    parts = {name: _decoded(settings["model"][name]) for name in MODEL}
    for name, part in parts.items():
        demand(isinstance(part, MODEL[name]), f"its {name} is a {type(part).__name__}")
    if parts["readout"].possible_terms:
        terms = terms_in(settings["terms"], under("term.", arrays), parts["readout"])
        parts["readout"] = parts["readout"].with_terms(terms)
    model = EdgeModel(**parts)
    demand(model.is_prepared, "its model has not seen data")
    fitted = settings["posterior"]
    params, stats = under("param.", arrays), under("stat.", arrays)
    _check_draws(model, params, arrays["weights"], fitted["n_chains"], stats)
    engine = PARTS.get(fitted["engine"])
    is_ours = engine is not None and issubclass(engine.load(), Engine)
    demand(is_ours or fitted["engine"] == PRETRAINED, "its engine is none of ours")
    return Posterior(
        model=model,
        params={name: params[name] for name in model.parameters},  # in the order that fits have
        weights=arrays["weights"],
        engine=fitted["engine"],
        settings=dict(_decoded(fitted["settings"])),
        fingerprint=_fingerprint(fitted["fingerprint"], arrays["n_nodes"], arrays.get("reference")),
        verdict=_verdict(fitted["verdict"]),
        log_evidence=_figure_or_none(fitted["log_evidence"]),
        n_chains=fitted["n_chains"],
        continuum=family_in(model, under("family.", arrays)),
        sample_stats=stats,
    )


def check_evidence(kinds: Iterable[Evidence]) -> None:
    """Refuse evidence that is a function, which a model file does not keep."""
    for kind in kinds:
        if isinstance(kind, Custom):
            raise ModelFileError(
                f"the evidence {kind.name!r} is a function, which a model file does not keep. "
                f"Compute it yourself and pass it as covariates, or leave it out."
            )


def _evidence_in(
    settings: Mapping[str, Any], arrays: Arrays, model: EdgeModel
) -> tuple[Evidence, ...]:
    written = settings.get("evidence", [])
    demand(isinstance(written, list), "its evidence is no list")
    kinds = tuple(_decoded(kind) for kind in written)
    demand(all(isinstance(kind, Evidence) for kind in kinds), "its evidence is none")
    known = set(model.readout.covariates or ())
    demand(set(check_names(kinds)) <= known, "its evidence is not what its readout uses")
    if settings.get(NETWORK) is None:
        return kinds
    network = _network_in(settings[NETWORK], under(OF_NETWORK, arrays))
    demand(any(isinstance(kind, PretrainedBelief) for kind in kinds), "its network has no use")
    return tuple(
        replace(kind, network=network) if isinstance(kind, PretrainedBelief) else kind
        for kind in kinds
    )


def _network_in(shape: Any, arrays: Arrays) -> PairNetwork:
    """Return the tuned network; it must take the inputs that this version computes."""
    ours = shape["channels"], shape["facts"]
    demand(ours == (len(CHANNELS), len(FACTS)), "its network is of another version: tune it again")
    demand(all(np.isfinite(array).all() for array in arrays.values()), "its network is not finite")
    return network_of(shape, arrays.__getitem__)


def _check_size(kind: Evidence) -> None:
    """Refuse evidence that would take for ever."""
    numbers: list[object] = []
    for name, value in vars(kind).items():
        apart = name in ("seed", "n_signals", NETWORK)
        if not apart and not isinstance(value, str | bool | None):
            numbers += value if isinstance(value, tuple) else [value]
    sound = all(0 < check_number(x, "a number") <= LARGEST for x in numbers)
    problem = f"the settings of the evidence {kind.name!r} go beyond {LARGEST:,}"
    demand(sound and len(kind.channels) <= MAX_COVARIATES, problem)


def _comparison_out(table: pd.DataFrame | None) -> dict[str, list[Any]] | None:
    """Return the table in JSON's types; JSON has no NaN, so that is None."""
    if table is None:
        return None
    rows = [[None if pd.isna(x) else float(x) for x in row] for row in table.to_numpy()]
    return {"columns": list(table.columns), "index": list(table.index), "rows": rows}


def _comparison_in(written: dict[str, list[Any]] | None) -> pd.DataFrame | None:
    if written is None:
        return None
    names = [*written["columns"], *written["index"]]
    demand(all(isinstance(name, str) for name in names), "its comparison has no names")
    rows = [[np.nan if x is None else _figure(x) for x in row] for row in written["rows"]]
    table = pd.DataFrame(rows, index=written["index"], columns=written["columns"])
    return table.rename(columns=RENAMED)


def settings_to_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a learner in JSON's types; a function is refused.

    Examples
    --------
    >>> from edgebelief.persist.learner import settings_from_json, settings_to_json
    >>> settings_from_json(settings_to_json({"prior": {"density": (0.1, 0.5)}}))
    {'prior': {'density': (0.1, 0.5)}}
    """
    for name, value in settings.items():
        if callable(value) and not dataclasses.is_dataclass(value):
            raise ModelFileError(f"the setting {name} is a function, which no file keeps.")
    return {name: _encoded(value) for name, value in settings.items()}


def settings_from_json(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that `settings_to_json` was given."""
    return {name: _decoded(value) for name, value in written.items()}


def _encoded(value: Any) -> Any:
    """Return the value in JSON's types; a part by the name of its class, with its fields."""
    if isinstance(value, Prior):
        return {"is": "Prior", "of": {name: _encoded(m) for name, m in value.items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        if name not in PARTS or PARTS[name].load() is not type(value):
            raise ModelFileError(
                f"a model file keeps the parts {', '.join(PARTS)}; this learner has a {name}. "
                f"Build a model file of your own with edgebelief.persist.modelfile."
            )
        if isinstance(value, Network):
            check_network(value)
        if isinstance(value, Evidence):
            _check_size(value)
        apart = (*APART, NETWORK) if isinstance(value, Evidence) else APART
        fields = [f.name for f in dataclasses.fields(value) if f.name not in apart]
        return {"is": name, "of": {f: _encoded(getattr(value, f)) for f in fields}}
    if isinstance(value, np.random.RandomState):
        return None  # spent; the seed that was used is kept beside it
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"is": "dict", "of": {str(k): _encoded(v) for k, v in value.items()}}
    if isinstance(value, tuple):
        return {"is": "tuple", "of": [_encoded(item) for item in value]}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return value


def _decoded(value: Any) -> Any:
    """Return what `_encoded` was given; refuse the name of anything but a part."""
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    name, inside = value["is"], value["of"]
    if name == "tuple":
        return tuple(_decoded(item) for item in inside)
    fields = {k: _decoded(v) for k, v in inside.items()}
    if name == "dict":
        return fields
    if name == "Prior":
        return Prior(**fields)
    if name not in PARTS:
        raise ModelFileError(f"it names a part {str(name)[:40]!r} that there is not")
    part = PARTS[name].make(**fields)
    if isinstance(part, Network):
        check_network(part)
    if isinstance(part, Evidence):
        _check_size(part)
    return part


def check_network(network: Network) -> None:
    """Refuse a network of absurd size, or with settings that are not finite."""
    channels = network.n_channels or 1
    problem = f"a network of {channels:,} channels; a model file has {MOST_CHANNELS} at most"
    demand(channels <= MOST_CHANNELS, problem)
    for field in dataclasses.fields(network):
        name, value = field.name, getattr(network, field.name)
        if isinstance(value, Network):
            check_network(value)
        elif field.default is None:  # may be absent, or several numbers
            finite = name in APART or value is None or np.isfinite(value).all()
            demand(finite, f"its {name} is not finite")
        else:
            finite = name == "depth" or np.isfinite(check_number(value, name))
            demand(finite, f"its {name} is {value}")


def _fingerprint(
    written: dict[str, Any], n_nodes: np.ndarray, reference: np.ndarray | None
) -> Fingerprint:
    sound = n_nodes.dtype == np.int64 and n_nodes.ndim == 1 and (n_nodes >= 2).all()
    demand(sound and len(n_nodes) == written["n_graphs"], "its numbers of nodes are none")
    fewest = 1 if written["n_graphs"] else 0  # of a pretrained learner there are neither
    demand(type(written["n_labels"]) is int and written["n_labels"] >= fewest, "it has no labels")
    scale = check_number(written["scale"], "the scale of the distances")
    demand(0 <= scale < np.inf, "the scale of its distances is none")
    n_signals = _figure_or_none(written["n_signals"])
    demand(n_signals is None or n_signals >= 1, "its number of signals is none")
    digest, digests = written["digest"], written.get("digests", [])  # those of older files
    demand(all(isinstance(each, str) for each in (digest, *digests)), "its digest is no text")
    sizes, n_labels = tuple(n_nodes.tolist()), written["n_labels"]
    return Fingerprint(
        len(n_nodes), sizes, n_labels, scale, n_signals, digest, tuple(digests),
        _reference(written.get("reference", []), reference),
    )  # fmt: skip


def _reference(names: Any, written: np.ndarray | None) -> Reference:
    """Return summaries of graphs from their names and an array; none from an older file."""
    demand(isinstance(names, list), "its summaries have no names")
    demand(all(isinstance(name, str) for name in names), "its summaries have no names")
    demand(len(set(names)) == len(names), "its summaries have the same names")
    if written is None:
        return Reference(tuple(names))
    sound = written.dtype == np.float64 and written.ndim == 2 and np.isfinite(written).all()
    sound = sound and written.shape[1] == 1 + len(names) and len(written) <= MOST_GRAPHS
    demand(sound and has_size(written[:, 0].tolist()).all(), "its summaries of graphs are none")
    n_nodes = tuple(int(n) for n in written[:, 0])
    return Reference(tuple(names), n_nodes, tuple(map(tuple, written[:, 1:].tolist())))


def _figure(value: object) -> float:
    return check_number(value, "a figure")


def _figure_or_none(value: object) -> float | None:
    return None if value is None else _figure(value)


def _verdict(written: dict[str, Any]) -> Verdict:
    texts = [*written["assumptions"], *written["figures"]]
    texts += [text for name, _, message in written["findings"] for text in (name, message)]
    demand(all(isinstance(text, str) for text in texts), "its verdict is no text")
    return Verdict(
        {name: _figure(value) for name, value in written["figures"].items()},
        tuple(Finding(name, _figure(value), text) for name, value, text in written["findings"]),
        tuple(written["assumptions"]),
    )


def _check_draws(
    model: EdgeModel,
    params: Mapping[str, np.ndarray],
    weights: np.ndarray,
    n_chains: int,
    stats: Mapping[str, np.ndarray],
) -> None:
    demand(set(params) == set(model.parameters), "its draws are of other parameters")
    for name, values in {**params, "weights": weights}.items():
        shape = (len(weights), model.sizes[name]) if name in model.sizes else (len(weights),)
        sound = values.dtype == np.float64 and values.shape == shape and weights.ndim == 1
        if not (sound and np.isfinite(values).all()):
            raise ModelFileError(f"its array {name!r} is no vector of finite numbers, one a draw")
    demand((weights >= 0).all() and abs(weights.sum() - 1) < 1e-6, "its weights are no shares")
    demand(type(n_chains) is int and n_chains >= 1, "its number of chains is none")
    shape = (n_chains, len(weights) // n_chains)
    fits = n_chains * shape[1] == len(weights) and all(s.shape == shape for s in stats.values())
    demand(fits, "its draws and what was recorded of them do not fit together")
