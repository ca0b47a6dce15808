"""A learner that has seen no label: the belief of the pretrained network, as a posterior.

The network's heads, and levels common to all pairs of a graph, are draws of the parameters of a
readout (`readouts.Given`); so everything that is done with a posterior is done with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ..amortise.evidence import HEADS, LEVELS, PretrainedBelief
from ..amortise.features import FEATURES
from ..amortise.predict import LostWarning, PairBeliefs, contradicted
from ..data.coerce import Graphs
from ..infer import EdgeModel, Fingerprint, Posterior, Prior, Verdict, fixed, normal
from ..infer.posterior import PRETRAINED
from ..networks import DPG
from ..readouts import Given
from ..readouts.given import one_of_each
from ..report.page import Expectation

# What no label is behind.
NOTHING = Fingerprint(0, (), 0, 0.0, None, "")


def believing(metric: Any, n_signals: float | None, density: Any) -> PretrainedBelief:
    """Return the evidence of a learner for data of this kind."""
    named: Any = None if metric == "precomputed" or not isinstance(metric, str) else metric
    density = tuple(density) if np.ndim(density) else density
    return PretrainedBelief(named, metric != "precomputed", n_signals, density)


def posterior_of(kind: PretrainedBelief) -> Posterior:
    """Return the posterior whose draws are the heads at each level."""
    params = one_of_each(len(HEADS), len(LEVELS))
    n = len(params.heads)
    # The priors are never used: nothing is fitted.
    prior = Prior(theta=fixed(1.0), heads=normal(0.0, 1.0), levels=normal(0.0, 1.0))
    model = EdgeModel(DPG(1), Given(HEADS, LEVELS), prior)
    stated = "nothing was stated about the share of joined pairs"
    if kind.density is not None:
        ends = " to ".join(f"{x:.3g}" for x in np.atleast_1d(np.asarray(kind.density, float)))
        stated = f"the share of joined pairs was stated as {ends}"
    assumption = (
        f"No known edges were given. The belief is that of a network trained on simulated graphs; "
        f"it holds for data like those. {stated[0].upper()}{stated[1:]}."
    )
    return Posterior(
        model=model,
        params={
            "theta": np.ones(n),
            "heads": np.asarray(params.heads),
            "levels": np.asarray(params.levels),
        },
        weights=np.full(n, 1 / n),
        engine=PRETRAINED,
        settings={},
        fingerprint=NOTHING,
        verdict=Verdict(assumptions=(assumption,)),
    )


def believed(kind: PretrainedBelief, graphs: Graphs) -> list[PairBeliefs]:
    """Return all that the network says of each graph, without the warnings."""
    each = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWarning)
        for t, record in enumerate(graphs.data):
            if kind.needs_signals:
                assert graphs.signals is not None
                values = np.asarray(graphs.signals[t], float)
            else:
                values = record.distance_matrix()
            each.append(kind.believed(values, record.n_signals))
    return each


def typicality_table(each: list[PairBeliefs]) -> pd.DataFrame:
    """Return how like the training world each graph is, a row per graph."""
    rows = []
    messages = cautions(each)
    for t, belief in enumerate(each):
        n_nodes = round((1 + np.sqrt(1 + 8 * len(belief.probability))) / 2)
        row: dict[str, Any] = {"graph": t, "nodes": n_nodes, "p": np.nan, "statistic": None}
        row |= {"value": np.nan, "low": np.nan, "high": np.nan, "surprise": np.nan}
        row |= {"slope": belief.slope, "lost": False, "message": messages.get(t, "")}
        if (found := belief.typicality) is not None:
            row |= {"p": found.p_value, "surprise": found.surprise, "lost": belief.is_lost}
            for most in found.unusual[:1]:
                row |= {"statistic": most.name, "value": most.value}
                row |= {"low": most.low, "high": most.high}
        rows.append(row)
    return pd.DataFrame(rows)


def cautions(each: list[PairBeliefs]) -> dict[int, str]:
    """Return what is to be said of the graphs on which the network may be lost."""
    lost = {t: belief for t, belief in enumerate(each) if belief.is_lost}
    return {t: _caution(t if len(each) > 1 else None, belief) for t, belief in lost.items()}


def _caution(t: int | None, belief: PairBeliefs) -> str:
    """Say what is unlike the training world, why, and what was done about it."""
    found, remedy = belief.typicality, ""
    if found is not None and found.is_lost:
        which = "these data are" if t is None else f"graph {t + 1} is"
        why = "; ".join(
            f"{FEATURES[entry.name]}: {entry.value:.3g}, expected {entry.low:.3g} to "
            f"{entry.high:.3g}"
            for entry in found.unusual[:3]
        )
        what = (
            f"{which} unlike the world that the network was trained on (p = {found.p_value:.2g}): "
            f"{why or 'no single summary, but their combination'}"
        )
        remedy = "state the share of joined pairs if you know it, "
    else:
        what = contradicted(belief) if t is None else f"graph {t + 1}: {contradicted(belief)}"
    return (
        f"{what}. Its log odds were multiplied by {belief.slope:.2f}, and may be wrong all the "
        f"same: take the order of the pairs as a suggestion, {remedy}or fit labelled graphs."
    )


def expectations(each: list[PairBeliefs]) -> Iterator[Expectation]:
    """Yield what the network expects of each graph, beside what it is like."""
    for t, belief in enumerate(each):
        if belief.typicality is not None:
            for entry in belief.typicality.summaries:
                values = entry.value, entry.low, entry.high
                yield Expectation(t, FEATURES[entry.name], *values)
