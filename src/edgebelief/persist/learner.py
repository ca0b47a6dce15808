"""A fitted learner as a model file, and back.

Settings become plain JSON by the name of their class; only the classes listed here can be named, so
a file can make nothing else. Arrays are kept to the last bit: predictions after loading are the
same numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import __version__
from ..data.coerce import check_form
from ..estimators.learner import GraphLearner
from ..estimators.settings import BY_GRAPH, engine_of, likelihood_of, network_of, readouts_of
from ..infer import (
    MAP,
    NUTS,
    VI,
    BernoulliEdges,
    EdgeModel,
    Exact,
    Finding,
    Fingerprint,
    Fixed,
    HalfNormal,
    Likelihood,
    LogNormal,
    LogUniform,
    Modes,
    Normal,
    Posterior,
    Prior,
    Verdict,
    WeightedEdges,
    fixed,
    half_normal,
    lognormal,
    loguniform,
    normal,
)
from ..infer.exact.theta import ThetaPosterior
from ..infer.exact.weights import WeightedThetaPosterior
from ..networks import DPG, MIMO, PDS, Network, StochasticHead
from ..readouts import Additive, Affine, Channels, Readout, Shift, Sized, TwoSlope
from ..validate import check_number
from . import modelfile
from .arrays import demand, family_in, family_out, terms_in, terms_out, under
from .modelfile import ModelFileError

KIND = "GraphLearner"
# What a file may name, and what makes it: a function that checks, where the class does not.
PARTS: dict[str, Any] = (
    {part.__name__: part for part in (DPG, PDS, MIMO, StochasticHead)}
    | {part.__name__: part for part in (BernoulliEdges, WeightedEdges)}
    | {part.__name__: part for part in (Affine, TwoSlope, Additive, Shift, Channels, Sized)}
    | {part.__name__: part for part in (LogNormal, LogUniform, Normal, HalfNormal, Fixed)}
    | {part.__name__: part for part in (Exact, NUTS, MAP, VI, Modes)}
)
MAKERS = PARTS | {
    "LogNormal": lognormal,
    "LogUniform": loguniform,
    "Normal": normal,
    "HalfNormal": half_normal,
    "Fixed": fixed,
}
ENGINES = ("Exact", "NUTS", "MAP", "VI", "Modes")
MODEL = {"network": Network, "readout": Readout, "prior": Prior, "likelihood": Likelihood}
# Fields that are kept elsewhere (the curves of terms: arrays), or made anew.
APART = ("terms", "state")
# A file asks for no more layers. So many take 0.15 s a pass on ten nodes; a prediction has dozens.
MOST_LAYERS = 10**6
# Nor for more channels: a layer takes time with their square.
MOST_CHANNELS = 64


def save(path: str | Path, learner: GraphLearner) -> None:
    """Write a fitted learner; see `GraphLearner.save`."""
    if not isinstance(learner.metric, str):
        raise ModelFileError(
            "the metric is a function, which a model file does not keep. Compute the distances "
            "with it yourself and fit with metric='precomputed'."
        )
    _check_network(network_of(learner.network, learner.depth))
    posterior = learner.posterior_
    fingerprint = dataclasses.asdict(posterior.fingerprint)
    n_nodes = fingerprint.pop("n_nodes")  # an array, for there may be many graphs
    settings = {
        "edgebelief": __version__,
        "learner": {name: _encoded(value) for name, value in learner.get_params(False).items()},
        "seed": learner.seed_,
        "scale": learner.scale_,
        "model": {name: _encoded(getattr(posterior.model, name)) for name in MODEL},
        "posterior": {
            "engine": posterior.engine,
            "settings": _encoded(dict(posterior.settings)),
            "fingerprint": fingerprint,
            "verdict": {
                "figures": {k: float(v) for k, v in posterior.verdict.figures.items()},
                "findings": [
                    [finding.name, float(finding.value), finding.message]
                    for finding in posterior.verdict.findings
                ],
                "assumptions": list(posterior.verdict.assumptions),
            },
            "log_evidence": posterior.log_evidence,
            "n_chains": posterior.n_chains,
        },
    }
    settings["comparison"] = _comparison_out(learner.comparison_)
    arrays = {"weights": np.asarray(posterior.weights), "n_nodes": np.array(n_nodes, np.int64)}
    arrays |= {f"param.{name}": np.asarray(v) for name, v in posterior.params.items()}
    arrays |= {f"stat.{name}": np.asarray(v) for name, v in posterior.sample_stats.items()}
    if posterior.model.readout.terms:
        settings["terms"], of_terms = terms_out(posterior.model.readout)
        arrays |= {f"term.{name}": array for name, array in of_terms.items()}
    if isinstance(posterior.continuum, ThetaPosterior | WeightedThetaPosterior):
        arrays |= {f"family.{k}": v for k, v in family_out(posterior.continuum).items()}
    modelfile.write(path, KIND, settings, arrays)


def load(path: str | Path) -> GraphLearner:
    """Read a learner that `GraphLearner.save` wrote.

    Nothing in the file is executed. A file that is damaged, of a newer version or no model at all
    is refused with a message.

    Parameters
    ----------
    path : path

    Returns
    -------
    GraphLearner
        Fitted; its predictions are the same numbers as before.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from edgebelief import GraphLearner, load
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=200)
    >>> learner = GraphLearner(depth=50).fit(data)
    >>> with TemporaryDirectory() as folder:
    ...     learner.save(Path(folder) / "model.eb")
    ...     again = load(Path(folder) / "model.eb")
    >>> bool(np.array_equal(again.predict_proba(data), learner.predict_proba(data)))
    True
    """
    kind, settings, arrays = modelfile.read(path)
    if kind != KIND:
        raise ModelFileError(f"{path}: holds a {kind!r}, not a {KIND}.")
    try:
        return _restored(settings, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"cannot read the model file {str(path)!r}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(
            f"cannot read the model file {str(path)!r}: its contents do not make a learner "
            f"({type(error).__name__}: {error}). Save the model again."
        ) from None


def _restored(settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> GraphLearner:
    parts = {name: _decoded(settings["model"][name]) for name in MODEL}
    for name, part in parts.items():
        demand(isinstance(part, MODEL[name]), f"its {name} is a {type(part).__name__}")
    if parts["readout"].possible_terms:
        terms = terms_in(settings["terms"], under("term.", arrays), parts["readout"])
        parts["readout"] = parts["readout"].with_terms(terms)
    model = EdgeModel(**parts)
    demand(model.is_prepared, "its model has not seen data")
    found = settings["posterior"]
    params, stats = under("param.", arrays), under("stat.", arrays)
    _check_draws(model, params, arrays["weights"], found["n_chains"], stats)
    demand(found["engine"] in ENGINES, "its engine is none of ours")
    posterior = Posterior(
        model=model,
        params={name: params[name] for name in model.parameters},  # in the order that fits have
        weights=arrays["weights"],
        engine=found["engine"],
        settings=dict(_decoded(found["settings"])),
        fingerprint=_fingerprint(found["fingerprint"], arrays["n_nodes"]),
        verdict=_verdict(found["verdict"]),
        log_evidence=_number_or_none(found["log_evidence"]),
        n_chains=found["n_chains"],
        continuum=family_in(model, under("family.", arrays)),
        sample_stats=stats,
    )
    learner = GraphLearner(**{k: _decoded(v) for k, v in settings["learner"].items()})
    _check_learner(learner, settings["learner"])
    seed, scale = settings["seed"], settings["scale"]
    demand(type(seed) is int and 0 <= seed < 2**32, "its seed is no seed")
    demand(scale in BY_GRAPH or (type(scale) is float and 0 < scale < np.inf), "its scale is none")
    learner.seed_, learner.scale_ = seed, scale
    learner.comparison_ = _comparison_in(settings.get("comparison"))
    learner.model_, learner.posterior_ = model, posterior
    return learner


def _comparison_out(table: pd.DataFrame | None) -> Any:
    """JSON has no NaN: None."""
    if table is None:
        return None
    rows = [[None if pd.isna(x) else float(x) for x in row] for row in table.to_numpy()]
    return {"columns": list(table.columns), "index": list(table.index), "rows": rows}


def _comparison_in(found: Any) -> pd.DataFrame | None:
    if found is None:
        return None
    names = [*found["columns"], *found["index"]]
    demand(all(isinstance(name, str) for name in names), "its comparison has no names")
    rows = [
        [np.nan if x is None else check_number(x, "a figure") for x in r] for r in found["rows"]
    ]
    return pd.DataFrame(rows, index=found["index"], columns=found["columns"])


def _check_learner(learner: GraphLearner, given: Mapping[str, Any]) -> None:
    """That it could be fitted, and that nothing is left to defaults."""
    lacking = set(learner.get_params(False)) - set(given)
    demand(not lacking, f"the learner's settings lack {sorted(lacking)}")
    _check_network(network_of(learner.network, learner.depth))
    engine_of(learner.inference)
    network = network_of(learner.network, learner.depth)
    readouts_of(learner.readout, network, learner.size_aware)
    check_form(learner.metric, learner.missing, learner.transform)
    likelihood_of(learner.weighted)
    demand(isinstance(learner.metric, str), "its metric is none")
    demand(isinstance(learner.prior, str | Prior | dict), "its prior is none")
    demand(isinstance(learner.scale, str | float | int | None), "its scale is none")
    demand(isinstance(learner.random_state, int | None), "its random_state is none")


def _encoded(value: Any) -> Any:
    """In JSON's types; a part by the name of its class, with its fields."""
    if isinstance(value, Prior):
        return {"is": "Prior", "of": {name: _encoded(m) for name, m in value.items()}}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        if PARTS.get(name) is not type(value):
            raise ModelFileError(
                f"a model file keeps the parts {', '.join(PARTS)}; this learner has a {name}. "
                f"Build a model file of your own with edgebelief.modelfile."
            )
        if isinstance(value, Network):
            _check_network(value)
        fields = [f.name for f in dataclasses.fields(value) if f.name not in APART]
        return {"is": name, "of": {f: _encoded(getattr(value, f)) for f in fields}}
    if isinstance(value, np.random.RandomState):
        return None  # spent; the seed that was used is kept beside it
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"is": "dict", "of": {str(k): _encoded(v) for k, v in value.items()}}
    if isinstance(value, tuple):
        return {"is": "tuple", "of": [_encoded(one) for one in value]}
    if isinstance(value, list):
        return [_encoded(one) for one in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    name, inside = value["is"], value["of"]
    if name == "tuple":
        return tuple(_decoded(one) for one in inside)
    fields = {k: _decoded(v) for k, v in inside.items()}
    if name == "dict":
        return fields
    if name == "Prior":
        return Prior(**fields)
    if name not in MAKERS:
        raise ModelFileError(f"it names a part {str(name)[:40]!r} that there is not")
    part = MAKERS[name](**fields)
    if isinstance(part, Network):
        _check_network(part)
    return part


def _check_network(network: Network) -> None:
    if network.depth is not None and network.depth > MOST_LAYERS:
        raise ModelFileError(
            f"a network of {network.depth:,} layers; a model file has {MOST_LAYERS:,} at most. "
            f"depth=None is the limit of many"
        )
    channels = network.n_channels or 1
    if channels > MOST_CHANNELS:
        raise ModelFileError(
            f"a network of {channels:,} channels; a model file has {MOST_CHANNELS} at most"
        )
    if isinstance(network, StochasticHead):
        _check_network(network.base)
        demand(np.isfinite(network.theta or 0.0).all(), "its base's theta is not finite")
        return
    for name, value in vars(network).items():
        demand(name == "depth" or np.isfinite(check_number(value, name)), f"its {name} is {value}")


def _fingerprint(found: dict[str, Any], n_nodes: np.ndarray) -> Fingerprint:
    sound = n_nodes.dtype == np.int64 and n_nodes.ndim == 1 and (n_nodes >= 2).all()
    demand(sound and len(n_nodes) == found["n_graphs"], "its numbers of nodes are none")
    demand(type(found["n_labels"]) is int and found["n_labels"] >= 1, "it has no labels")
    scale = check_number(found["scale"], "the scale of the distances")
    demand(0 <= scale < np.inf, "the scale of its distances is none")
    n_signals = _number_or_none(found["n_signals"])
    demand(n_signals is None or n_signals >= 1, "its number of signals is none")
    demand(isinstance(found["digest"], str), "its digest is no text")
    return Fingerprint(
        n_graphs=len(n_nodes),
        n_nodes=tuple(n_nodes.tolist()),
        n_labels=found["n_labels"],
        scale=scale,
        n_signals=n_signals,
        digest=found["digest"],
    )


def _number_or_none(value: Any) -> float | None:
    return None if value is None else check_number(value, "a figure")


def _verdict(found: dict[str, Any]) -> Verdict:
    texts = [*found["assumptions"], *found["figures"]]
    texts += [text for name, _, message in found["findings"] for text in (name, message)]
    demand(all(isinstance(text, str) for text in texts), "its verdict is no text")
    return Verdict(
        {name: check_number(value, "a figure") for name, value in found["figures"].items()},
        tuple(Finding(n, check_number(v, "a figure"), text) for n, v, text in found["findings"]),
        tuple(found["assumptions"]),
    )


def _check_draws(
    model: EdgeModel,
    params: Mapping[str, np.ndarray],
    weights: np.ndarray,
    n_chains: Any,
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
