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

from .. import __version__, modelfile
from ..data.forms import check_form
from ..infer import (
    MAP,
    NUTS,
    VI,
    BernoulliEdges,
    EdgeModel,
    Exact,
    Finding,
    Fingerprint,
    HalfNormal,
    LogNormal,
    LogUniform,
    Normal,
    Posterior,
    Prior,
    Verdict,
    half_normal,
    lognormal,
    loguniform,
    normal,
)
from ..infer.conditional import Cells
from ..infer.exact import applies
from ..infer.family import Family
from ..modelfile import ModelFileError
from ..networks import DPG, PDS, Network
from ..readouts import Additive, Affine, Readout, TwoSlope
from ..readouts.additive import Term
from ..readouts.curves import Curve
from ..validate import check_number
from .learner import GraphLearner

KIND = "GraphLearner"
# What a file may name, and what makes it: a function that checks, where the class does not.
PARTS: dict[str, Any] = (
    {part.__name__: part for part in (DPG, PDS, Affine, TwoSlope, Additive, BernoulliEdges)}
    | {part.__name__: part for part in (LogNormal, LogUniform, Normal, HalfNormal)}
    | {part.__name__: part for part in (Exact, NUTS, MAP, VI)}
)
MAKERS = PARTS | {
    "LogNormal": lognormal,
    "LogUniform": loguniform,
    "Normal": normal,
    "HalfNormal": half_normal,
}
CURVE = ("knots", "pieces", "mean_squares")
ENGINES = ("Exact", "NUTS", "MAP", "VI")
MODEL = {"network": Network, "readout": Readout, "prior": Prior, "likelihood": BernoulliEdges}
# A file asks for no more layers. So many take 0.15 s a pass on ten nodes; a prediction has dozens.
MOST_LAYERS = 10**6


def save(path: str | Path, learner: GraphLearner) -> None:
    """Write a fitted learner; see `GraphLearner.save`."""
    if not isinstance(learner.metric, str):
        raise ModelFileError(
            "the metric is a function, which a model file does not keep. Compute the distances "
            "with it yourself and fit with metric='precomputed'."
        )
    _check_network(learner._network())
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
    arrays = {"weights": np.asarray(posterior.weights), "n_nodes": np.array(n_nodes, np.int64)}
    arrays |= {f"param.{name}": np.asarray(v) for name, v in posterior.params.items()}
    arrays |= {f"stat.{name}": np.asarray(v) for name, v in posterior.sample_stats.items()}
    if isinstance(posterior.model.readout, Additive):
        terms = posterior.model.readout.terms
        settings["terms"] = [[t.name, t.curve.centre, t.curve.spread] for t in terms]
        for k, term in enumerate(terms):
            arrays |= {f"term.{k}.{n}": np.asarray(getattr(term.curve, n)) for n in CURVE}
    if isinstance(posterior.continuum, Family):
        arrays |= {f"family.{k}": v for k, v in _family_arrays(posterior.continuum).items()}
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
        _demand(isinstance(part, MODEL[name]), f"its {name} is a {type(part).__name__}")
    if isinstance(parts["readout"], Additive):
        terms = _terms(settings["terms"], _under("term.", arrays))
        parts["readout"] = dataclasses.replace(parts["readout"], terms=terms)
    model = EdgeModel(**parts)
    found = settings["posterior"]
    params, stats = _under("param.", arrays), _under("stat.", arrays)
    _check_draws(model, params, arrays["weights"], found["n_chains"], stats)
    _demand(found["engine"] in ENGINES, "its engine is none of ours")
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
        continuum=_family(model, _under("family.", arrays)),
        sample_stats=stats,
    )
    learner = GraphLearner(**{k: _decoded(v) for k, v in settings["learner"].items()})
    _check_learner(learner, settings["learner"])
    seed, scale = settings["seed"], settings["scale"]
    _demand(type(seed) is int and 0 <= seed < 2**32, "its seed is no seed")
    _demand(scale == "median" or (type(scale) is float and 0 < scale < np.inf), "its scale is none")
    learner.seed_, learner.scale_ = seed, scale
    learner.model_, learner.posterior_ = model, posterior
    return learner


def _demand(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ModelFileError(otherwise)


def _check_learner(learner: GraphLearner, given: Mapping[str, Any]) -> None:
    """That it could be fitted, and that nothing is left to defaults."""
    lacking = set(learner.get_params(False)) - set(given)
    _demand(not lacking, f"the learner's settings lack {sorted(lacking)}")
    _check_network(learner._network())
    learner._engine()
    learner._readout()
    check_form(learner.metric, learner.missing, learner.transform)
    _demand(isinstance(learner.metric, str), "its metric is none")
    _demand(isinstance(learner.prior, str | Prior | dict), "its prior is none")
    _demand(isinstance(learner.scale, str | float | int | None), "its scale is none")
    _demand(isinstance(learner.random_state, int | None), "its random_state is none")


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
        fields = [f.name for f in dataclasses.fields(value) if f.name != "terms"]  # those: arrays
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
    for name, value in vars(network).items():
        _demand(name == "depth" or np.isfinite(check_number(value, name)), f"its {name} is {value}")


def _fingerprint(found: dict[str, Any], n_nodes: np.ndarray) -> Fingerprint:
    sound = n_nodes.dtype == np.int64 and n_nodes.ndim == 1 and (n_nodes >= 2).all()
    _demand(sound and len(n_nodes) == found["n_graphs"], "its numbers of nodes are none")
    _demand(type(found["n_labels"]) is int and found["n_labels"] >= 1, "it has no labels")
    scale = check_number(found["scale"], "the scale of the distances")
    _demand(0 <= scale < np.inf, "the scale of its distances is none")
    n_signals = _number_or_none(found["n_signals"])
    _demand(n_signals is None or n_signals >= 1, "its number of signals is none")
    _demand(isinstance(found["digest"], str), "its digest is no text")
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
    _demand(all(isinstance(text, str) for text in texts), "its verdict is no text")
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
    _demand(set(params) == set(model.parameters), "its draws are of other parameters")
    for name, values in {**params, "weights": weights}.items():
        shape = (len(weights), model.sizes[name]) if name in model.sizes else (len(weights),)
        sound = values.dtype == np.float64 and values.shape == shape and weights.ndim == 1
        if not (sound and np.isfinite(values).all()):
            raise ModelFileError(f"its array {name!r} is no vector of finite numbers, one a draw")
    _demand((weights >= 0).all() and abs(weights.sum() - 1) < 1e-6, "its weights are no shares")
    _demand(type(n_chains) is int and n_chains >= 1, "its number of chains is none")
    shape = (n_chains, len(weights) // n_chains)
    fits = n_chains * shape[1] == len(weights) and all(s.shape == shape for s in stats.values())
    _demand(fits, "its draws and what was recorded of them do not fit together")


def _terms(found: list[Any], arrays: dict[str, np.ndarray]) -> tuple[Term, ...]:
    """The curves of an additive readout."""
    terms = []
    for k, (name, centre, spread) in enumerate(found):
        parts = [arrays[f"{k}.{part}"] for part in CURVE]
        knots, pieces, squares = parts
        n_wiggles = squares.size - 1
        sound = (
            isinstance(name, str)
            and type(centre) is type(spread) is float
            and spread > 0
            and knots.ndim == squares.ndim == 1
            and n_wiggles >= 0
            and pieces.shape == (4, knots.size - 1, n_wiggles)
            and (np.diff(knots) > 0).all()
            and all(
                x.dtype == np.float64 and np.isfinite(x).all() for x in (knots, pieces, squares)
            )
        )
        _demand(sound, f"its term {str(name)[:40]!r} is no curve")
        terms.append(Term(name, Curve(centre, spread, knots, pieces, squares)))
    _demand(terms, "its additive readout has no terms")
    return tuple(terms)


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _family_arrays(family: Family) -> dict[str, np.ndarray]:
    """Cells node after node. All cells of a grid have the same sides, which are kept once."""
    sides = [c.sides[:1] if (c.sides == c.sides[:1]).all() else c.sides for c in family.cells]
    plain = ("mean", "sd", "ends", "cumulative", "nodes", "means", "factors")
    return {name: getattr(family, name) for name in plain} | {
        "cells": np.array([len(c.cumulative) for c in family.cells]),
        "cells.centre": np.concatenate([c.centre for c in family.cells]),
        "cells.cumulative": np.concatenate([c.cumulative for c in family.cells]),
        "cells.sides": np.concatenate(sides),
        "cells.distinct": np.array([len(s) for s in sides]),
    }


def _family(model: EdgeModel, arrays: dict[str, np.ndarray]) -> Family | None:
    if not arrays:
        return None
    counts, distinct = arrays.pop("cells"), arrays.pop("cells.distinct")
    parts = {name: arrays.pop(f"cells.{name}") for name in ("centre", "cumulative", "sides")}
    n_nodes, n_params = arrays["means"].shape
    names = model.parameters
    shapes = {
        "mean": (n_params + 1,),
        "sd": (n_params + 1,),
        "ends": arrays["ends"].shape,
        "cumulative": arrays["ends"].shape,
        "nodes": (n_nodes,),
        "means": (n_nodes, n_params),
        "factors": (n_nodes, n_params, n_params),
    }
    floats = [*arrays.values(), *parts.values()]
    sound = (
        applies(model)
        and len(names) == n_params + 1
        and n_nodes >= 2
        and arrays["ends"].ndim == 1
        and arrays["ends"].size >= 2
        and {name: array.shape for name, array in arrays.items()} == shapes
        and counts.shape == distinct.shape == (n_nodes,)
        and counts.dtype == distinct.dtype == np.int64
        and ((counts >= 1) & (counts <= len(parts["centre"]))).all()
        and ((distinct == 1) | (distinct == counts)).all()
        and parts["centre"].shape == (counts.sum(), n_params)
        and parts["cumulative"].shape == (counts.sum(),)
        and parts["sides"].shape == (distinct.sum(), n_params, n_params)
        and all(array.dtype == np.float64 and np.isfinite(array).all() for array in floats)
        and (np.diff(arrays["ends"]) > 0).all()
        and (np.diff(arrays["nodes"]) > 0).all()
    )
    _demand(sound, "its posterior's arrays do not fit together")
    ends, own = np.cumsum(counts)[:-1], np.cumsum(distinct)[:-1]
    for shares in (arrays["cumulative"], *np.split(parts["cumulative"], ends)):
        rises = (np.diff(shares, prepend=0.0) >= 0).all() and abs(shares[-1] - 1) < 1e-6
        _demand(rises, "its posterior's distribution functions do not rise to one")
    sides = [
        np.broadcast_to(some, (n, n_params, n_params))
        for some, n in zip(np.split(parts["sides"], own), counts, strict=True)
    ]
    cells = zip(
        np.split(parts["centre"], ends), sides, np.split(parts["cumulative"], ends), strict=True
    )
    marginals = tuple(model.prior[name] for name in names)
    return Family(names, marginals, **arrays, cells=tuple(Cells(*one) for one in cells))
