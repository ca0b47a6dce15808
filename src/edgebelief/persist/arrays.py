"""The arrays of a posterior in a model file: curves of a readout, cells of its quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..infer import EdgeModel
from ..infer.exact.applies import applies
from ..infer.exact.conditional import Cells
from ..infer.exact.theta import ThetaPosterior
from ..infer.exact.weights import SCORES, WeightedThetaPosterior, WeightPrior
from ..readouts import Readout
from ..readouts.curves import Basis, Curve, Levels, Term
from ..readouts.surface import FAR, Surface
from .modelfile import ModelFileError

Arrays = dict[str, np.ndarray]
CURVE = ("knots", "pieces", "gram")
SURFACE = ("centre", "rates", "landmarks", "mix", "means", "gram")
# The arrays of a `WeightedThetaPosterior`.
WEIGHTS = ("mean", "sd", "gram", "pull", "quantiles")


def demand(condition: object, otherwise: str) -> None:
    """Refuse the file with a message unless the condition holds."""
    if not condition:
        raise ModelFileError(otherwise)


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names begin with the prefix, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _are_finite(*arrays: np.ndarray) -> bool:
    return all(x.dtype == np.float64 and bool(np.isfinite(x).all()) for x in arrays)


def terms_out(readout: Readout) -> tuple[list[list[Any]], Arrays]:
    """Return the terms of a readout as settings, a list for each term, and arrays."""
    settings: list[list[Any]] = []
    arrays: Arrays = {}
    for k, term in enumerate(readout.terms):
        curve = term.curve
        if isinstance(curve, Levels):
            settings.append([term.name, list(curve.names)])
            arrays[f"{k}.shares"] = np.asarray(curve.shares)
        elif isinstance(curve, Surface):
            settings.append([term.name])
            arrays |= {f"{k}.{part}": np.asarray(getattr(curve, part)) for part in SURFACE}
        elif isinstance(curve, Curve):
            settings.append([term.name, float(curve.centre), float(curve.spread)])
            parts = np.asarray(curve.knots), curve.of_x, np.asarray(curve.gram)
            arrays |= {f"{k}.{part}": array for part, array in zip(CURVE, parts, strict=True)}
    return settings, arrays


def terms_in(settings: list[list[Any]], arrays: Arrays, readout: Readout) -> tuple[Term, ...]:
    """Return the terms that `terms_out` was given."""
    possible = readout.possible_terms
    terms = []
    for k, (name, *rest) in enumerate(settings):
        demand(isinstance(name, str) and name in possible, f"it has a term {str(name)[:40]!r}")
        read: Callable[..., Basis | None] = (_surface, _levels, _curve)[len(rest)]
        curve = read(arrays, k, *rest)
        if curve is None:
            raise ModelFileError(f"its term {name[:40]!r} is no curve")
        demand(curve.names == possible[name], "its levels are not those named")
        terms.append(Term(name, curve))
    demand(terms, "its additive readout has no terms")
    demand(len({term.name for term in terms}) == len(terms), "it has a term twice")
    return tuple(terms)


def _levels(arrays: Arrays, k: int, names: list[str]) -> Levels | None:
    shares = arrays[f"{k}.shares"]
    sound = (
        isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and shares.shape == (len(names),)
        and shares.dtype == np.float64
        and (shares >= 0).all()
        and (shares > 0).sum() > 1
        and abs(shares.sum() - 1) < 1e-6
    )
    return Levels(tuple(names), shares) if sound else None


def _surface(arrays: Arrays, k: int) -> Surface | None:
    surface = Surface(*(arrays[f"{k}.{part}"] for part in SURFACE))
    if surface.landmarks.ndim != 2 or surface.mix.ndim != 2:
        return None
    (n_landmarks, n_features), n_columns = surface.landmarks.shape, surface.mix.shape[1]
    shapes = [(n_features,), (n_features,), (n_landmarks, n_features), (n_landmarks, n_columns)]
    shapes += [(n_columns,), (n_columns, n_columns)]
    sound = (
        [getattr(surface, part).shape for part in SURFACE] == shapes
        and min(n_landmarks, n_features, n_columns) >= 1
        and _are_finite(*(getattr(surface, part) for part in SURFACE))
        and (surface.rates >= 0).all()
        and np.abs(surface.landmarks).max() <= FAR
    )
    return surface if sound else None


def _curve(arrays: Arrays, k: int, centre: float, spread: float) -> Curve | None:
    knots, pieces, gram = (arrays[f"{k}.{part}"] for part in CURVE)
    sound = (
        type(centre) is type(spread) is float
        and 1e-50 < spread < 1e50  # distances, in float32, have no others
        and knots.ndim == 1
        and knots.size >= 2
        and gram.ndim == 2
        and gram.shape[0] == gram.shape[1] >= 1
        and pieces.shape == (4, knots.size - 1, len(gram) - 1)
        and (np.diff(knots) > 0).all()
        and _are_finite(knots, pieces, gram)
    )
    return Curve.of_powers(centre, spread, knots, pieces, gram) if sound else None


def family_out(family: ThetaPosterior | WeightedThetaPosterior) -> Arrays:
    """Return the arrays of a posterior along theta.

    The cells of one value of theta follow those of the one before. Cells of a grid have the same
    sides, which are kept once.
    """
    if isinstance(family, WeightedThetaPosterior):
        of_weights = {f"weights.{name}": getattr(family, name) for name in WEIGHTS}
        return of_weights | family_out(family.presence)
    sides = [c.sides[:1] if (c.sides == c.sides[:1]).all() else c.sides for c in family.cells]
    plain = ("mean", "sd", "ends", "cumulative", "nodes", "means", "factors")
    return {name: getattr(family, name) for name in plain} | {
        "cells": np.array([len(c.cumulative) for c in family.cells]),
        "cells.centre": np.concatenate([c.centre for c in family.cells]),
        "cells.cumulative": np.concatenate([c.cumulative for c in family.cells]),
        "cells.sides": np.concatenate(sides),
        "cells.distinct": np.array([len(s) for s in sides]),
    }


def family_in(model: EdgeModel, arrays: Arrays) -> ThetaPosterior | WeightedThetaPosterior | None:
    """Return the posterior that `family_out` was given."""
    if not arrays:
        return None
    of_weights = under("weights.", arrays)
    presence = _presence_in(model, {k: x for k, x in arrays.items() if "weights." not in k})
    demand(model.likelihood.weighted == bool(of_weights), "its posterior is not that of its edges")
    if not of_weights:
        return presence
    n_nodes = len(presence.nodes)
    shapes = ((3,), (3,), (n_nodes, 2, 2), (n_nodes, 2), (n_nodes, len(SCORES)))
    sound = (
        {name: x.shape for name, x in of_weights.items()} == dict(zip(WEIGHTS, shapes, strict=True))
        and _are_finite(*of_weights.values())
        and (np.diff(of_weights["quantiles"], axis=1) >= 0).all()
    )
    demand(sound, "what it knows of weights does not fit together")
    return WeightedThetaPosterior(presence, WeightPrior.of(model), **of_weights)


def _presence_in(model: EdgeModel, arrays: Arrays) -> ThetaPosterior:
    counts, distinct = arrays.pop("cells"), arrays.pop("cells.distinct")
    parts = {name: arrays.pop(f"cells.{name}") for name in ("centre", "cumulative", "sides")}
    n_nodes, n_params = arrays["means"].shape
    names = model.logit_parameters
    shapes: dict[str, tuple[int, ...]] = {"nodes": (n_nodes,)}
    shapes |= dict.fromkeys(("mean", "sd"), (n_params + 1,))
    shapes |= dict.fromkeys(("ends", "cumulative"), arrays["ends"].shape)
    shapes |= {"means": (n_nodes, n_params), "factors": (n_nodes, n_params, n_params)}
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
        and _are_finite(*arrays.values(), *parts.values())
        and (np.diff(arrays["ends"]) > 0).all()
        and (np.diff(arrays["nodes"]) > 0).all()
    )
    demand(sound, "its posterior's arrays do not fit together")
    cuts = {name: np.cumsum(distinct if name == "sides" else counts)[:-1] for name in parts}
    split = {name: np.split(array, cuts[name]) for name, array in parts.items()}
    for shares in (arrays["cumulative"], *split["cumulative"]):
        rises = (np.diff(shares, prepend=0.0) >= 0).all() and abs(shares[-1] - 1) < 1e-6
        demand(rises, "its posterior's distribution functions do not rise to one")
    cells = tuple(
        Cells(centre, np.broadcast_to(sides, (len(centre), n_params, n_params)), cumulative)
        for centre, cumulative, sides in zip(*split.values(), strict=True)
    )
    marginals = tuple(model.prior[name] for name in names)
    return ThetaPosterior(names, marginals, **arrays, cells=cells)
