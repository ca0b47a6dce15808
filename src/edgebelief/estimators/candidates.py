"""What readout="auto" chooses from, and the choice."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..belief.choose import choose, compared, cross_fitted
from ..belief.crossfit import HeldOut
from ..belief.structure import CHANNELS, with_structure
from ..data.dataset import GraphDataset
from ..data.randomness import Key, split
from ..infer import EdgeModel, HalfNormal, InferenceWarning, Laplace, Posterior, half_t
from ..infer.prepare import prepare
from .evidence import with_covariates

# With fewer labelled graphs than this, nodes are held out in place of graphs. Then there is no
# second pass, and no prior under which single terms may be large: what is learned of a graph from
# its other nodes is no test of how either carries over to another graph.
FEWEST = 3
# What is said of a prior of the scales with heavy tails, and of a second pass, after the name of a
# readout.
HEAVY, TWICE = ", heavy tails", ", two passes"


class Chosen(NamedTuple):
    """A model to be fitted, its data, and the first pass that these come from."""

    model: EdgeModel
    data: GraphDataset
    first_pass: Posterior | None
    comparison: pd.DataFrame
    assumption: str | None
    """What the choice rests on, where it is little."""


def chosen(
    key: Key | int,
    models: Mapping[str, EdgeModel],
    data: GraphDataset,
    counts: Float[np.ndarray, " graphs"],
    vary_scales: bool,
) -> Chosen:
    """Choose among models by what quick fits of them say of labels that they have not seen.

    Of models with learned scales there is also one with heavy tails, if their prior may be varied;
    and there is one whose terms include channels of the beliefs of the best of them.
    """
    n_labelled = sum(r.known.any() and c > 0 for r, c in zip(data, counts, strict=True))
    few = n_labelled < FEWEST
    cv: HeldOut = "nodes" if few else "graphs"
    prepare_key, choose_key, first_key = split(key, 3)
    problems = {name: prepare(prepare_key, model, data, counts) for name, model in models.items()}
    network_z = next((p.network_z for p in problems.values() if p.network_z is not None), None)
    problems = {name: replace(p, network_z=network_z) for name, p in problems.items()}
    for name, problem in list(problems.items()):
        scales = problem.model.prior.get("scales")
        if isinstance(scales, HalfNormal) and vary_scales and not few:
            prior = problem.model.prior.replace(scales=half_t(scales.scale))
            problems[name + HEAVY] = replace(problem, model=problem.model.replace(prior=prior))
    choice = choose(choose_key, problems, cv)
    if few:
        best = choice.best
        assumption = (
            f"{n_labelled} labelled graph{'s' if n_labelled > 1 else ''} cannot show how well a "
            f"readout carries over to other graphs: {best!r} predicts labels of held-out nodes best"
        )
        return Chosen(problems[best].model, data, None, choice.table, assumption)
    # A second pass needs a readout with terms: the best of these, even if another is better.
    for once in [name for name in choice.table.index if problems[name].model.readout.terms][:1]:
        first, model = problems[once], models[once.removesuffix(HEAVY)]
        informed = with_structure(data, choice.predictions[once])
        readout = with_covariates(model.readout, CHANNELS)
        model = EdgeModel(model.network, readout, first.model.prior, model.likelihood)
        second = prepare(prepare_key, model, informed, counts)
        both = {**choice.predictions, once + TWICE: cross_fitted(choose_key, second, cv)}
        choice = compared(both, counts)
        if choice.best == once + TWICE:
            engine = Laplace(network_z=first.network_z)
            with warnings.catch_warnings():  # the fit of the second pass has a verdict of its own
                warnings.simplefilter("ignore", InferenceWarning)
                first_pass = engine.run(first_key, first.model, data, counts)
            return Chosen(second.model, informed, first_pass, choice.table, None)
    return Chosen(problems[choice.best].model, data, None, choice.table, None)
