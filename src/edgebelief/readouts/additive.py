"""Additive: the paper's readout, plus a smooth curve of each of several features of a pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Int

from ..data.dataset import Stack
from ..edges import Support
from ..errors import InputError, Remedy, Setting, shortened
from ..networks import Output
from .base import Columns, Pairs, PerEdge, Readout
from .curves import AnyArray, Basis, Term, coefficient_slices, curve_of, levels_of, scale_slices
from .features import ALL, OF_DISTANCES, OF_OUTPUT, pair_features, relative_output
from .surface import surface_of

# The name of the term that is a function of several features.
INTERACTIONS = "interactions"
# The names of other parts of a logit, and of their sum, which no covariate may have.
RESERVED = ("weight", "baseline", "slack", "logit", INTERACTIONS)


class AdditiveParams(NamedTuple):
    """delta, b: see `AffineParams`. curves: coefficients, as multiples of their `scales`."""

    delta: Float[ArrayLike, ""]
    b: Float[ArrayLike, ""]
    curves: Float[AnyArray, " curves"]
    scales: Float[AnyArray, " scales"]


class Additive(Readout):
    """logit = delta a - b + sum_k f_k(x_k), with a smooth curve f_k of each feature x_k of a pair.

    Each curve is the sum of a straight line and a nonlinear part, each with a learned scale; a
    category has a height for each of its levels (`edgebelief.readouts.curves`). A scale near zero
    removes its term. With few labels all scales stay small, and the paper's readout remains. The
    prior of the scales is about all curves together: the more there are, the less each is expected
    to say.

    Parameters
    ----------
    features : tuple of str
        The built-in features to use: see `edgebelief.readouts.features`.
    covariates : tuple of str, optional
        Names of pair covariates of the data set to use as further terms; by default all.
    relative : bool
        Whether features are relative to their graph (see `edgebelief.readouts.features`). The model
        then applies to graphs whose distances are in other units, at a small cost in sharpness. The
        network should be given relative distances too; `GraphLearner` does that. For graphs of
        other sizes use only features of the network's output, ``features=OF_NETWORK``: what a
        distance or a rank means depends on the size.
    interactions : bool
        Whether there is one more term, "interactions": a smooth function of all features of the
        distances and all covariates that are numbers, together (`edgebelief.readouts.surface`). It
        may replace all curves, and competes with them: `edgebelief.infer.Mixture` mixes models that
        have one or the other.

    Examples
    --------
    >>> from edgebelief import data, infer, readouts
    >>> graphs = data.GraphDataset.sample(0, data.RandomGeometric(0.4), 10, 10, n_signals=100)
    >>> model = infer.EdgeModel(readout=readouts.Additive(features=("z", "rank sum")))
    >>> posterior = infer.Exact().run(0, model, graphs)
    >>> [term.name for term in posterior.model.readout.terms]
    ['z', 'rank sum']
    """

    features: tuple[str, ...] = eqx.field(static=True, default=ALL)
    covariates: tuple[str, ...] | None = eqx.field(static=True, default=None)
    relative: bool = eqx.field(static=True, default=False)
    interactions: bool = eqx.field(static=True, default=False)
    levels: tuple[tuple[str, tuple[str, ...]], ...] = eqx.field(static=True, default=())
    """The levels of each covariate that is a category; set by `prepared`."""
    unit: float = eqx.field(static=True, default=1.0)
    """What the columns of curves are multiplied by: `prepared` takes one over the root of the
    number of their scales, so that the sum of all curves has the spread of a scale's prior."""
    terms: tuple[Term, ...] = ()
    """Set by `prepared`."""

    params_type = AdditiveParams
    unlisted = ("curves", "scales")

    def __check_init__(self) -> None:
        if unknown := [name for name in self.features if name not in ALL]:
            raise InputError(f"no features are called {unknown}; there are {', '.join(ALL)}.")
        if taken := [name for name in self.covariates or () if name in RESERVED]:
            raise InputError(f"covariates cannot be called {taken}; parts of a logit are. Rename.")
        names = self._names
        if len(set(names)) < len(names):
            raise InputError(f"features and covariates must have different names; got {names}.")

    @property
    def scale(self) -> str | None:
        return "relative" if self.relative else None

    def coefficients(
        self, scales: Float[AnyArray, "... scales"], curves: Float[AnyArray, "... curves"]
    ) -> Float[AnyArray, "... curves"]:
        """Return the factor of each column of `term.curve.columns`."""
        units = [self._unit(term) for term in self.terms for _ in term.curve.scales]
        return np.array(units) * scales[..., self.groups] * curves

    def _unit(self, term: Term) -> float:
        """Return what the columns of a term are multiplied by; a surface has units of its own."""
        return 1.0 if term.name == INTERACTIONS else self.unit

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of all features and covariates."""
        return (*self.features, *(self.covariates or ()))

    @property
    def groups(self) -> Int[np.ndarray, " curves"]:
        """The index of the scale that each coefficient of the curves is a multiple of."""
        firsts = scale_slices(self._terms())
        each = [firsts[t.name].start + scale for t in self._terms() for scale in t.curve.scales]
        return np.array(each)

    @property
    def possible_terms(self) -> dict[str, tuple[str, ...]]:
        levels = dict(self.levels)
        names = (*self._names, INTERACTIONS) if self.interactions else self._names
        return {name: levels.get(name, ()) for name in names}

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

    def pairs(self, stack: Stack) -> Float[np.ndarray, "graphs edges features"] | None:
        features = tuple(name for name in self.features if name in OF_DISTANCES)
        covariates = self.covariates or ()
        if not features and not covariates:
            return None
        if missing := [name for name in covariates if name not in stack.covariates]:
            raise InputError(
                f"the graphs have no covariate {missing}, which this readout was made for; they "
                f"have {list(stack.covariates)}",
                remedy=Remedy("Pass {}, with the same names", Setting("covariates", ...)),
            )
        columns = [pair_features(stack.e, stack.support, features, self.relative)]
        levels = dict(self.levels)
        columns += [
            _as_numbers(name, stack.covariates[name], levels.get(name))[..., None]
            for name in covariates
        ]
        return np.concatenate(columns, -1)

    def inputs(self, output: Output, support: Support, pairs: Pairs | None) -> dict[str, PerEdge]:
        values = self._values(output, support, pairs)
        return {name: jnp.asarray(values[name]) for name in self._names}

    def _values(
        self, output: Output, support: Support, pairs: Pairs | None
    ) -> dict[str, Float[AnyArray, "... edges"]]:
        """Return the values of all features and covariates, by name; NumPy's if `pairs` is.

        Those of several features together have one more axis.
        """
        output = self._scaled(output, support)
        values: dict[str, AnyArray] = {
            name: OF_OUTPUT[name](output, support) for name in self.features if name in OF_OUTPUT
        }
        of_distances = [name for name in self.features if name in OF_DISTANCES]
        of_pairs = [*of_distances, *(self.covariates or ())]
        if of_pairs and pairs is None:
            raise InputError("this readout needs the features of pairs: see EdgeModel.pairs.")
        if pairs is not None:
            values |= {name: pairs[..., k] for k, name in enumerate(of_pairs)}
        values = {name: values[name] for name in self._names}
        if self.interactions and pairs is not None:
            categories = dict(self.levels)
            numbers = [k for k, name in enumerate(of_pairs) if name not in categories]
            values[INTERACTIONS] = pairs[..., numbers]
        return values

    def prepared(self, stacks: Sequence[Stack], outputs: Sequence[Output]) -> Additive:
        """Make a curve of each feature for the values that it has in the data."""
        all_names = dict.fromkeys(name for stack in stacks for name in stack.covariates)
        covariates = tuple(all_names) if self.covariates is None else self.covariates
        levels = {name: names for name in covariates if (names := _levels(name, stacks))}
        readout = replace(self, covariates=covariates, levels=tuple(levels.items()))
        all_values: dict[str, list[np.ndarray]] = {}
        for stack, output in zip(stacks, outputs, strict=True):
            of_stack = readout._values(output, stack.support, readout.pairs(stack))
            for name, values in of_stack.items():
                of_pairs = np.asarray(values, float).reshape(-1, *values.shape[stack.e.ndim :])
                all_values.setdefault(name, []).append(of_pairs)
        terms = []
        for name, parts in all_values.items():
            x = np.concatenate(parts)
            if name == INTERACTIONS:
                basis: Basis | None = surface_of(x)
            else:
                basis = levels_of(x, levels[name]) if name in levels else curve_of(x)
            if basis is not None:
                terms.append(Term(name, basis))
        if not terms:
            raise InputError(
                f"{shortened(', '.join(all_values), 100)}: each of these is the same for all pairs"
                f", so there is nothing to make a curve of",
                remedy=Remedy("Use {}", Setting("readout", "affine")),
            )
        n_scales = sum(term.n_scales for term in terms if term.name != INTERACTIONS)
        return replace(readout, terms=tuple(terms), unit=1 / math.sqrt(max(n_scales, 1)))

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> Columns:
        """Compute the columns that the logits are linear in: a, -1, and those of the curves."""
        values, a = self._values(output, support, pairs), self._scaled(output, support).a
        columns: list[AnyArray] = [a[..., None], -jnp.ones_like(a)[..., None]]
        columns += [self._unit(t) * t.curve.columns(values[t.name]) for t in self._terms()]
        return jnp.concatenate(columns, -1)

    def logits(self, params: AdditiveParams, reduced: Columns) -> PerEdge:
        curves = params.scales[self.groups] * params.curves
        return reduced @ jnp.concatenate([jnp.stack([params.delta, params.b]), curves])

    def parts(self, params: AdditiveParams, reduced: Columns) -> dict[str, PerEdge]:
        curves = params.scales[self.groups] * params.curves
        parts = {"weight": reduced[..., 0] * params.delta, "baseline": reduced[..., 1] * params.b}
        for name, of_term in coefficient_slices(self._terms()).items():
            parts[name] = reduced[..., 2:][..., of_term] @ curves[of_term]
        return parts

    def columns(self, reduced: Columns) -> Columns:
        return reduced

    def _scaled(self, output: Output, support: Support) -> Output:
        return relative_output(output, support) if self.relative else output

    def _terms(self) -> tuple[Term, ...]:
        if not self.terms:
            raise InputError(
                "this readout has not seen data yet, so it has no curves. Every engine's run "
                "prepares it, by edgebelief.infer.prepare.prepare."
            )
        return self.terms


def _levels(name: str, stacks: Sequence[Stack]) -> tuple[str, ...]:
    """Return the levels of a covariate that is a category, none for one that is a number."""
    columns = [stack.covariates[name] for stack in stacks if name in stack.covariates]
    kinds = {column.dtype.kind == "U" for column in columns}
    if len(kinds) > 1:
        raise InputError(f"the covariate {name!r} is a category in one graph, numbers in another.")
    return tuple(sorted({str(x) for c in columns for x in np.unique(c)})) if True in kinds else ()


def _as_numbers(name: str, values: np.ndarray, levels: tuple[str, ...] | None) -> np.ndarray:
    """Return a covariate as numbers: for a category, the index of the level of each pair."""
    if (values.dtype.kind == "U") != (levels is not None):
        was, now = ("numbers", "text") if levels is None else ("a category", "numbers")
        raise InputError(f"the covariate {name!r} was {was} when fitted, and is now {now}.")
    if levels is None:
        return values
    if unknown := sorted({str(x) for x in np.unique(values)} - set(levels)):
        raise InputError(
            f"the covariate {name!r} is {unknown[:5]} for some pairs; the levels that were fitted "
            f"are {list(levels[:8])}. There is no belief about others."
        )
    return np.searchsorted(np.array(levels), values).astype(float)
