"""Additive: the paper's readout, and a smooth curve of everything else that is known of a pair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from ..networks import Output
from .base import Readout
from .curves import Curve, curve_of
from .features import ALL, OF_DISTANCES, OF_OUTPUT, pair_features


class AdditiveParams(NamedTuple):
    """delta, b: as of `Affine`. curves: the curves' coefficients, in units of `scales`."""

    delta: Any
    b: Any
    curves: Any
    scales: Any


class Additive(Readout):
    """logit = delta a - b + sum_k f_k(x_k), with a smooth curve f_k of each feature x_k of a pair.

    Each curve is a straight line and a wiggle (`edgebelief.readouts.curves`), and each of the two
    has a scale of its own that is learned. A scale near zero is a term that is not there: with few
    labels all of them stay small, and what is left is the paper's readout.

    Parameters
    ----------
    features : tuple of str
        Which of the built-in features to use: see `edgebelief.readouts.features`.
    covariates : tuple of str
        Names of pair covariates that the data set carries, as further terms.
    relative : bool
        Features of distances relative to their graph (distances over their median, ranks over
        N - 1), so that a model carries over to graphs of other sizes and scales, at a small cost
        in sharpness. The network should then see relative distances too:
        ``GraphLearner(scale="median")`` does both.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Exact
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.readouts import Additive
    >>> data = GraphDataset.sample(0, RandomGeometric(0.4), n_graphs=5, n_nodes=10)
    >>> model = EdgeModel(DPG(depth=50), Additive(features=("z", "rank sum")))
    >>> posterior = Exact().run(0, model, data)
    >>> [term.name for term in posterior.model.readout.terms]
    ['z', 'rank sum']
    """

    features: tuple[str, ...] = eqx.field(static=True, default=ALL)
    covariates: tuple[str, ...] = eqx.field(static=True, default=())
    relative: bool = eqx.field(static=True, default=False)
    terms: tuple[Term, ...] = ()

    params_type = AdditiveParams

    def __check_init__(self) -> None:
        unknown = [name for name in self.features if name not in ALL]
        if unknown:
            raise ValueError(f"no features are called {unknown}; there are {', '.join(ALL)}.")
        names = [*self.features, *self.covariates]
        if len(set(names)) < len(names):
            raise ValueError(f"features and covariates must have different names; got {names}.")

    @property
    def groups(self) -> Int[np.ndarray, " curves"]:
        """Which scale each coefficient of the curves is in units of."""
        found: list[int] = []
        for term in self._terms():
            first = found[-1] + 1 if found else 0
            found += [first] + [first + 1] * term.curve.n_wiggles
        return np.array(found)

    @property
    def is_prepared(self) -> bool:
        return bool(self.terms)

    @property
    def sizes(self) -> dict[str, int]:
        groups = self.groups
        return {"curves": groups.size, "scales": int(groups.max()) + 1}

    def pairs(self, stack):
        names = tuple(name for name in self.features if name in OF_DISTANCES) + self.covariates
        if not names:
            return None
        missing = [name for name in self.covariates if name not in stack.covariates]
        if missing:
            raise ValueError(
                f"the data have no covariates {missing}, which this readout was made for; they "
                f"have {list(stack.covariates)}."
            )
        n_nodes = stack.support.n_nodes
        return pair_features(stack.e, n_nodes, names, stack.covariates, self.relative)

    def inputs(self, output: Output, support: Any, pairs: Any) -> dict[str, Any]:
        """The features by name."""
        own = [name for name in self.features if name in OF_OUTPUT]
        found = {name: OF_OUTPUT[name](output, support) for name in own}
        given = [name for name in self.features if name in OF_DISTANCES] + list(self.covariates)
        if given and pairs is None:
            raise ValueError("this readout needs the features of pairs: see EdgeModel.pairs.")
        found |= {name: pairs[..., k] for k, name in enumerate(given)}
        return {name: found[name] for name in (*self.features, *self.covariates)}

    def prepared(self, seen: Iterable[tuple[Output, Any, Any]]) -> Additive:
        """With curves made for the values that the features have in the data."""
        all_values: dict[str, list[np.ndarray]] = {}
        for output, support, pairs in seen:
            for name, values in self.inputs(output, support, pairs).items():
                all_values.setdefault(name, []).append(np.asarray(values, float).ravel())
        made = ((name, curve_of(np.concatenate(parts))) for name, parts in all_values.items())
        terms = tuple(Term(name, curve) for name, curve in made if curve is not None)
        return Additive(self.features, self.covariates, self.relative, terms)

    def reduce(self, output, support, pairs):
        """The columns that the logits are linear in: a, -1, and the curves'."""
        inputs = self.inputs(output, support, pairs)
        columns = [output.a[..., None], -jnp.ones_like(output.a)[..., None]]
        columns += [term.curve.columns(inputs[term.name]) for term in self._terms()]
        return jnp.concatenate(columns, -1)

    def logits(self, params, reduced):
        curves = params.scales[self.groups] * params.curves
        return reduced @ jnp.concatenate([jnp.stack([params.delta, params.b]), curves])

    def parts(self, params, reduced):
        curves = params.scales[self.groups] * params.curves
        found = {"weight": params.delta * reduced[..., 0], "baseline": params.b * reduced[..., 1]}
        first = 2
        for term in self._terms():
            last = first + 1 + term.curve.n_wiggles
            found[term.name] = reduced[..., first:last] @ curves[first - 2 : last - 2]
            first = last
        return found

    def columns(self, reduced):
        return reduced

    def _terms(self) -> tuple[Term, ...]:
        if not self.terms:
            raise ValueError(
                "this readout has not seen data yet, so it has no curves: see EdgeModel.prepared."
            )
        return self.terms


class Term(eqx.Module):
    """A feature and the curve of it."""

    name: str = eqx.field(static=True)
    curve: Curve
