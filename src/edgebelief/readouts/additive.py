"""Additive: the paper's readout, and a smooth curve of everything else that is known of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from ..data.dataset import Stack
from ..errors import InputError, Remedy, Setting
from ..networks import Output
from .base import Readout
from .curves import Term, coefficient_slices, curve_of, levels_of
from .features import ALL, OF_DISTANCES, OF_OUTPUT, pair_features, relative_output

# What other parts of a logit, and their sum, are called.
RESERVED = ("weight", "baseline", "slack", "logit")


class AdditiveParams(NamedTuple):
    """delta, b: as of `Affine`. curves: the curves' coefficients, in units of `scales`."""

    delta: Any
    b: Any
    curves: Any
    scales: Any


class Additive(Readout):
    """logit = delta a - b + sum_k f_k(x_k), with a smooth curve f_k of each feature x_k of a pair.

    Each curve is a straight line and a wiggle, and each of the two has a scale of its own that is
    learned; a category has a height for each of its levels (`edgebelief.readouts.curves`). A scale
    near zero is a term that is not there: with few labels all of them stay small, and what is left
    is the paper's readout.

    Parameters
    ----------
    features : tuple of str
        Which of the built-in features to use: see `edgebelief.readouts.features`.
    covariates : tuple of str, optional
        Names of pair covariates that the data set carries, as further terms; by default all.
    relative : bool
        Features relative to their graph (see `edgebelief.readouts.features`), so that a model
        carries over to graphs of other units, at a small cost in sharpness. The network should
        then see relative distances too, which `GraphLearner` takes care of. For graphs of other
        sizes, use what the network knows alone, ``features=OF_NETWORK``: distances and ranks mean
        other things in larger graphs.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.readouts import Additive
    >>> data = GraphDataset.sample(0, RandomGeometric(0.4), 10, n_nodes=10, n_signals=100)
    >>> model = EdgeModel(DPG(depth=50), Additive(features=("z", "rank sum")))
    >>> posterior = Exact().run(0, model, data)
    >>> [term.name for term in posterior.model.readout.terms]
    ['z', 'rank sum']
    """

    features: tuple[str, ...] = eqx.field(static=True, default=ALL)
    covariates: tuple[str, ...] | None = eqx.field(static=True, default=None)
    relative: bool = eqx.field(static=True, default=False)
    levels: tuple[tuple[str, tuple[str, ...]], ...] = eqx.field(static=True, default=())
    """The levels of covariates that are categories; found in the data."""
    terms: tuple[Term, ...] = ()
    """Found in the data."""

    params_type = AdditiveParams
    unlisted = ("curves", "scales")

    def __check_init__(self) -> None:
        unknown = [name for name in self.features if name not in ALL]
        if unknown:
            raise InputError(f"no features are called {unknown}; there are {', '.join(ALL)}.")
        names = [*self.features, *(self.covariates or ())]
        taken = [name for name in self.covariates or () if name in RESERVED]
        if taken:
            raise InputError(f"covariates cannot be called {taken}; parts of a logit are. Rename.")
        if len(set(names)) < len(names):
            raise InputError(f"features and covariates must have different names; got {names}.")

    @property
    def scale(self) -> str | None:
        return "relative" if self.relative else None

    @property
    def groups(self) -> Int[np.ndarray, " curves"]:
        """Which scale each coefficient of the curves is in units of."""
        found: list[int] = []
        for term in self._terms():
            first = found[-1] + 1 if found else 0
            found += [first + scale for scale in term.curve.scales]
        return np.array(found)

    @property
    def possible_terms(self) -> dict[str, tuple[str, ...]]:
        levels = dict(self.levels)
        return {name: levels.get(name, ()) for name in (*self.features, *(self.covariates or ()))}

    def with_terms(self, terms: tuple[Term, ...]) -> Additive:
        return replace(self, terms=terms)

    @property
    def part_names(self) -> tuple[str, ...]:
        return ("weight", "baseline", *(term.name for term in self.terms))

    @property
    def is_prepared(self) -> bool:
        return bool(self.terms)

    @property
    def sizes(self) -> dict[str, int]:
        groups = self.groups
        return {"curves": groups.size, "scales": int(groups.max()) + 1}

    def pairs(self, stack):
        features = tuple(name for name in self.features if name in OF_DISTANCES)
        covariates = self.covariates or ()
        if not features and not covariates:
            return None
        missing = [name for name in covariates if name not in stack.covariates]
        if missing:
            raise InputError(
                f"the graphs have no covariate {missing}, which this readout was made for; they "
                f"have {list(stack.covariates)}",
                remedy=Remedy("Pass {}, with the same names", Setting("covariates", ...)),
            )
        found = [pair_features(stack.e, stack.support.n_nodes, features, self.relative)]
        levels = dict(self.levels)
        found += [
            _numbers(name, stack.covariates[name], levels.get(name))[..., None]
            for name in covariates
        ]
        return np.concatenate(found, -1)

    def inputs(self, output: Output, support: Any, pairs: Any) -> dict[str, Any]:
        """The features by name."""
        output = self._own(output, support)
        own = [name for name in self.features if name in OF_OUTPUT]
        found = {name: OF_OUTPUT[name](output, support) for name in own}
        covariates = self.covariates or ()
        given = [name for name in self.features if name in OF_DISTANCES] + list(covariates)
        if given and pairs is None:
            raise InputError("this readout needs the features of pairs: see EdgeModel.pairs.")
        found |= {name: pairs[..., k] for k, name in enumerate(given)}
        return {name: found[name] for name in (*self.features, *covariates)}

    def prepared(self, stacks: Sequence[Stack], outputs: Sequence[Output]) -> Additive:
        """Make curves for the values that the features have in the data."""
        everything = dict.fromkeys(name for stack in stacks for name in stack.covariates)
        covariates = tuple(everything) if self.covariates is None else self.covariates
        levels = tuple((name, _levels(name, stacks)) for name in covariates)
        levels = tuple((name, found) for name, found in levels if found)
        one = Additive(self.features, covariates, self.relative, levels)
        all_values: dict[str, list[np.ndarray]] = {}
        for stack, output in zip(stacks, outputs, strict=True):
            inputs = one.inputs(output, stack.support, one.pairs(stack))
            for name, values in inputs.items():
                all_values.setdefault(name, []).append(np.asarray(values, float).ravel())
        terms = []
        for name, parts in all_values.items():
            x, own = np.concatenate(parts), dict(levels).get(name)
            curve = curve_of(x) if own is None else levels_of(x, own)
            if curve is not None:
                terms.append(Term(name, curve))
        return one.with_terms(tuple(terms))

    def reduce(self, output, support, pairs):
        """The columns that the logits are linear in: a, -1, and the curves'."""
        inputs, a = self.inputs(output, support, pairs), self._own(output, support).a
        columns = [a[..., None], -jnp.ones_like(a)[..., None]]
        columns += [term.curve.columns(inputs[term.name]) for term in self._terms()]
        return jnp.concatenate(columns, -1)

    def logits(self, params, reduced):
        curves = params.scales[self.groups] * params.curves
        return reduced @ jnp.concatenate([jnp.stack([params.delta, params.b]), curves])

    def parts(self, params, reduced):
        curves = params.scales[self.groups] * params.curves
        found = {"weight": params.delta * reduced[..., 0], "baseline": params.b * reduced[..., 1]}
        for name, here in coefficient_slices(self._terms()).items():
            found[name] = reduced[..., 2:][..., here] @ curves[here]
        return found

    def columns(self, reduced):
        return reduced

    def _own(self, output: Output, support: Any) -> Output:
        return relative_output(output, support) if self.relative else output

    def _terms(self) -> tuple[Term, ...]:
        if not self.terms:
            raise InputError(
                "this readout has not seen data yet, so it has no curves: see EdgeModel.prepared."
            )
        return self.terms


def _levels(name: str, stacks: Sequence[Stack]) -> tuple[str, ...]:
    """The levels of a covariate that is a category; none of one that is a number."""
    columns = [stack.covariates[name] for stack in stacks if name in stack.covariates]
    kinds = {column.dtype.kind == "U" for column in columns}
    if len(kinds) > 1:
        raise InputError(f"the covariate {name!r} is a category in one graph, numbers in another.")
    return tuple(sorted({str(x) for c in columns for x in np.unique(c)})) if True in kinds else ()


def _numbers(name: str, values: np.ndarray, levels: tuple[str, ...] | None) -> np.ndarray:
    """A covariate as numbers: of a category, the places of the levels."""
    if (values.dtype.kind == "U") != (levels is not None):
        was, now = ("numbers", "text") if levels is None else ("a category", "numbers")
        raise InputError(
            f"the covariate {name!r} was {was} when this was fitted, and is now {now}."
        )
    if levels is None:
        return values
    unknown = sorted({str(x) for x in np.unique(values)} - set(levels))
    if unknown:
        raise InputError(
            f"the covariate {name!r} is {unknown[:5]} for some pairs; the levels that were fitted "
            f"are {list(levels[:8])}. There is no belief about others."
        )
    return np.searchsorted(np.array(levels), values).astype(float)
