"""What readout="auto" is made of: parts of an additive readout, each with a share.

The parts are candidates by themselves: the paper's readout; a curve of how far a pair is above or
below the network's threshold; curves of everything; a surface over everything; and, where it is
among the evidence, the belief of the pretrained network, with hardly a change. Quick fits show how
well each predicts labels that it has not seen, and the shares are those with which the mixture of
all predicts best. Then there is a second pass, in which what the first believes of all other pairs
is known of a pair. Where residuals of such fits show that labels of pairs with a node in common
depend on each other, all labels count less (`infer.dependence`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..amortise.evidence import CHANNEL
from ..belief import BeliefWarning, Predictions, predict
from ..belief.choose import compared, cross_fitted, cross_predicted, gain, mixed, shares_of
from ..belief.crossfit import HeldOut
from ..belief.structure import CHANNELS, with_structure
from ..data.dataset import GraphDataset, frozen
from ..data.randomness import Key, generator, split
from ..infer import (
    EdgeModel,
    Engine,
    Exact,
    HalfNormal,
    InferenceWarning,
    Laplace,
    Mixture,
    Posterior,
    half_normal,
)
from ..infer.dependence import design_effect
from ..infer.exact.plugin import PlugIn
from ..infer.exact.recalibrate import Recalibration
from ..infer.exact.slices import free_network_parameters
from ..infer.prepare import Problem, prepare
from ..readouts import Additive, Readout
from ..readouts.additive import INTERACTIONS
from ..readouts.curves import Curve
from .evidence import with_covariates

# With fewer labelled graphs than this, nodes are held out in place of graphs. Then there is no
# second pass, and no wider prior of the scales: what is learned of a graph from
# its other nodes is no test of how either carries over to another graph.
FEWEST = 3
# A part with a smaller share is left out: it changes probabilities by less than the others are in
# doubt, and takes as long.
LEAST = 0.1
# With more labels, parts are chosen on so many of them, and a normal approximation at one theta
# takes the place of chains: it loses little with so many, where chains take hours.
MANY_LABELS = 20_000
# Standard errors by which a mixture must predict better than the pretrained network alone.
CLEARLY = 2.0
# Names of candidates; what is said of a second pass, and of a wider prior of the scales: the usual
# one is too narrow where labels are nearly separable, as with expected distances.
AFFINE, THRESHOLD, ADDITIVE = "affine", "threshold", "additive"
PRETRAINED = "pretrained"
TWICE, WIDE = ", two passes", ", wide scales"
WIDER = 10 / 3
# The figure of a verdict that says how many labels count as one.
DESIGN = "design effect"


class Chosen(NamedTuple):
    """A model to be fitted, by which engine, its data, and the first pass that these come from."""

    model: EdgeModel
    engine: Engine
    data: GraphDataset
    first_pass: Posterior | None
    comparison: pd.DataFrame
    assumption: str | None
    """What the choice rests on, where it is little."""
    design_effect: float
    """How many labels count as one, because those of pairs with a common node are dependent."""


def chosen(
    key: Key | int,
    model: EdgeModel,
    data: GraphDataset,
    counts: Float[np.ndarray, " graphs"],
    engine: Exact | Laplace,
    vary_scales: bool,
) -> Chosen:
    """Choose parts of an additive model, and their shares; `engine` is to fit them.

    If the prior of the scales may be varied, a wider one is also tried. Where labels are many, the
    choice is made on some of them.
    """
    some = thinned(key, data, MANY_LABELS)
    choice = _chosen(key, model, some, counts, engine, vary_scales)
    if some is data:
        return choice
    # A label depends on those of its nodes' other pairs: on as many more as there are.
    effect = 1 + (choice.design_effect - 1) * data.n_labels / some.n_labels
    records = zip(choice.data, data, strict=True)
    labelled = GraphDataset._of([made._replace(known=given.known) for made, given in records])
    return choice._replace(data=labelled, design_effect=effect)


def _chosen(
    key: Key | int,
    model: EdgeModel,
    data: GraphDataset,
    counts: Float[np.ndarray, " graphs"],
    engine: Exact | Laplace,
    vary_scales: bool,
) -> Chosen:
    n_labelled = sum(r.known.any() and c > 0 for r, c in zip(data, counts, strict=True))
    few = n_labelled < FEWEST
    cv: HeldOut = "nodes" if few else "graphs"
    prepare_key, fold_key, first_key = split(key, 3)
    assert isinstance(model.readout, Additive)
    whole = model.replace(readout=replace(model.readout, interactions=True))
    problem = prepare(prepare_key, whole, data, counts)
    parts = _parts(problem.model)
    dependence = _design_effect(fold_key, problem, parts, cv)
    problem = replace(problem, counts=counts / dependence)
    predictions = {name: _cross_fitted(fold_key, problem, parts[name], cv) for name in parts}
    curves = ADDITIVE
    if vary_scales and not few:
        wide = _with_wide_scales(problem)
        tried = _cross_fitted(fold_key, wide, parts[ADDITIVE], cv)
        if compared({WIDE: tried, "": predictions[ADDITIVE]}, counts).best == WIDE:
            problem, curves = wide, ADDITIVE + WIDE
            predictions = _renamed(predictions | {ADDITIVE: tried}, curves)
            parts = _renamed(parts, curves)
    first = _Shares.of(predictions, counts, parts)
    # A second pass needs resistances between all pairs.
    if few or any(record.candidates is not None for record in data):
        assumption = _of_few(int(n_labelled)) if few else None
        return first.chosen(problem, parts, engine, None, assumption, dependence)
    informed = with_structure(data, mixed(predictions, first.all))
    readout = with_covariates(whole.readout, CHANNELS)
    second = EdgeModel(model.network, readout, problem.model.prior, model.likelihood)
    again = prepare(prepare_key, second, informed, problem.counts)
    again = replace(again, network_z=problem.network_z)
    of_second = _parts(again.model)
    for name, part in ((curves, ADDITIVE), (INTERACTIONS, INTERACTIONS)):
        predictions[name + TWICE] = _cross_fitted(fold_key, again, of_second[part], cv)
        parts[name + TWICE] = of_second[part]
    both = _Shares.of(predictions, counts, parts)
    if not any(TWICE in name for name in both.kept):
        return first._replace(table=both.table).chosen(
            problem, parts, engine, None, None, dependence
        )
    # Of both passes there is one surface, the second's: the first's has other landmarks.
    if INTERACTIONS in both.kept:
        one_surface = {k: v for k, v in predictions.items() if k != INTERACTIONS}
        both = _Shares.of(one_surface, counts, parts)._replace(table=both.table)
    quick = Laplace(network_z=problem.network_z)
    of_first = first.chosen(problem, parts, quick, None, None, dependence)
    with warnings.catch_warnings():  # the fit of the second pass has a verdict of its own
        warnings.simplefilter("ignore", InferenceWarning)
        first_pass = of_first.engine.run(first_key, of_first.model, data, problem.counts)
    first_pass = with_figure(first_pass, DESIGN, dependence)
    return both.chosen(again, parts, engine, first_pass, None, dependence)


def engine_for(n_labels: int) -> Exact | Laplace:
    """Return the engine that fits parts to so many labels in a minute or so."""
    return Exact() if n_labels <= MANY_LABELS else Laplace(n_draws=400)


def thinned(key: Key | int, data: GraphDataset, most: int) -> GraphDataset:
    """Return the data with at most about so many labels known, the same share in each graph.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.estimators.candidates import thinned
    >>> data = GraphDataset([np.ones(45)], [np.ones(45)])
    >>> thinned(0, data, 20).n_labels, thinned(0, data, 50) is data
    (20, True)
    """
    share = most / max(data.n_labels, 1)
    if share >= 1:
        return data
    random, records = generator(key), []
    for record in data:
        places = np.flatnonzero(record.known)
        kept = random.choice(places, round(share * len(places)), replace=False)
        known = np.zeros(len(record.known), bool)
        known[kept] = True
        records.append(record._replace(known=frozen(known)))
    return GraphDataset._of(records)


def _of_few(n_labelled: int) -> str:
    """Say what a choice by held-out nodes rests on."""
    return (
        f"{n_labelled} labelled graph{'s' if n_labelled > 1 else ''} cannot show how well a "
        f"readout carries over to other graphs: shares are those that predict labels of "
        f"held-out nodes best"
    )


def with_first_pass(
    key: Key | int, first_pass: Posterior, data: GraphDataset, held_out: HeldOut | None = None
) -> GraphDataset:
    """Add what a first pass believes of all other pairs to the data.

    With `held_out`, that of first passes which have not seen the labels of a pair.
    """
    if held_out is None:
        with warnings.catch_warnings():  # the second pass warns of the same
            warnings.simplefilter("ignore", BeliefWarning)
            return with_structure(data, predict(first_pass, data))
    model, z = first_pass.model, None
    if names := free_network_parameters(model):
        z = float(model.prior[names[0]].to_z(first_pass.params[names[0]][0]))
    counts = np.full(len(data), 1 / first_pass.verdict.figures.get(DESIGN, 1.0))
    problem = Problem(model, data, counts, z)
    if first_pass.engine != Mixture.__name__:
        return with_structure(data, cross_fitted(key, problem, held_out))
    parts, shares = first_pass.settings["parts"], first_pass.settings["shares"]
    each = [_cross_fitted(key, problem, part, held_out) for part in parts]
    return with_structure(data, mixed(dict(enumerate(each)), dict(enumerate(shares))))


def with_figure(posterior: Posterior, name: str, value: float) -> Posterior:
    """Add a figure to the verdict of a posterior."""
    verdict = posterior.verdict
    return replace(posterior, verdict=replace(verdict, figures={**verdict.figures, name: value}))


def _parts(model: EdgeModel) -> dict[str, tuple[str, ...]]:
    """Return the names of the terms of each candidate; of several with the same terms, the first.

    Where all pairs look alike, there may be no curve of z, say.
    """
    names = [term.name for term in model.readout.terms]
    parts = {
        AFFINE: (),
        ADDITIVE: tuple(name for name in names if name != INTERACTIONS),
        INTERACTIONS: tuple(name for name in names if name == INTERACTIONS),
        THRESHOLD: tuple(name for name in names if name == "z"),
    }
    # Of weights the pretrained network knows nothing.
    are_numbers = any(
        term.name == CHANNEL and isinstance(term.curve, Curve) for term in model.readout.terms
    )
    if are_numbers and not model.likelihood.weighted:
        parts[PRETRAINED] = (CHANNEL,)
    first = {terms: name for name, terms in reversed(parts.items())}
    return {name: terms for name, terms in parts.items() if first[terms] == name}


def _cross_fitted(
    key: Key | int, problem: Problem, names: tuple[str, ...], cv: HeldOut
) -> Predictions:
    """Predict each label by quick fits of a part that have not seen it."""
    of_part = replace(problem, model=problem.model.with_terms(names))
    if names == (CHANNEL,):
        belief = Recalibration(of_part.model.readout.terms[0], problem.data, problem.counts)
        return cross_predicted(key, belief, problem.data, cv)
    return cross_fitted(key, of_part, cv)


def _design_effect(
    key: Key | int, problem: Problem, parts: Mapping[str, tuple[str, ...]], cv: HeldOut
) -> float:
    """Estimate how many labels count as one: the smaller of what residuals of two parts show.

    Those of curves may be few and large, where labels are nearly separable; those of the paper's
    readout lack what the curves know.
    """
    curves = problem.model.with_terms(parts[ADDITIVE])
    columns = PlugIn(curves, problem.data, problem.counts, problem.network_z).columns
    effects = []
    for name in (AFFINE, ADDITIVE):
        p = [belief.mean for belief in _cross_fitted(key, problem, parts[name], cv)]
        effects.append(design_effect(problem.data, p, columns))
    return min(effects)


def _with_wide_scales(problem: Problem) -> Problem:
    """Return the problem with a prior by which curves may say more."""
    scales = problem.model.prior["scales"]
    assert isinstance(scales, HalfNormal)
    prior = problem.model.prior.replace(scales=half_normal(WIDER * scales.scale))
    return replace(problem, model=problem.model.replace(prior=prior))


def _of_features(readout: Readout, names: set[str]) -> Readout:
    """Return an additive readout that needs nothing but features and covariates of these names."""
    assert isinstance(readout, Additive)
    return replace(
        readout,
        features=tuple(name for name in readout.features if name in names),
        covariates=tuple(name for name in readout.covariates or () if name in names),
        levels=tuple(each for each in readout.levels if each[0] in names),
    )


Value = TypeVar("Value")


def _renamed(by_name: Mapping[str, Value], curves: str) -> dict[str, Value]:
    """Give the candidate of curves another name."""
    return {curves if name == ADDITIVE else name: value for name, value in by_name.items()}


class _Shares(NamedTuple):
    """The shares of candidates in the best mixture."""

    all: Mapping[str, float]
    kept: Mapping[str, float]
    """Without those whose share is small."""
    table: pd.DataFrame

    @classmethod
    def of(
        cls,
        predictions: Mapping[str, Predictions],
        counts: Float[np.ndarray, " graphs"],
        parts: Mapping[str, tuple[str, ...]],
    ) -> _Shares:
        every = shares_of(predictions, counts)
        if PRETRAINED in every and len(every) > 1:
            # What has seen no label cannot be overfitted: other parts must show that they help.
            better, error = gain(predictions, every, PRETRAINED, counts)
            if better < CLEARLY * error:
                every = {name: float(name == PRETRAINED) for name in every}
        least = min(LEAST, max(every.values()))
        kept = {name: predictions[name] for name in every if every[name] >= least}
        kept_shares = shares_of(kept, counts)
        table = compared(predictions, counts).table
        shown = [kept_shares.get(name, 0.0) for name in table.index]
        return cls(every, kept_shares, table.assign(share=shown))

    def chosen(
        self,
        problem: Problem,
        parts: Mapping[str, tuple[str, ...]],
        engine: Exact | Laplace,
        first_pass: Posterior | None,
        assumption: str | None,
        dependence: float,
    ) -> Chosen:
        """Make the choice: a mixture, whose model has no more terms than its parts."""
        names = tuple(parts[name] for name in self.kept)
        used = {term for part in names for term in part}
        model = problem.model.with_terms(used)
        if used and INTERACTIONS not in used:  # which is of all features
            model = model.replace(readout=_of_features(model.readout, used))
        shares = tuple(self.kept.values())
        is_mixture = len(names) > 1 or names == ((CHANNEL,),)
        by = Mixture(names, shares, engine, CHANNEL) if is_mixture else engine
        return Chosen(model, by, problem.data, first_pass, self.table, assumption, dependence)
