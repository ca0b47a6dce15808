"""A learner that has seen no label: the belief of the pretrained network, as a posterior.

The network's heads, and levels common to all pairs of a graph, are draws of the parameters of a
readout (`readouts.Given`); so everything that is done with a posterior is done with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
import pandas as pd

from ..amortise.cases import Case
from ..amortise.evidence import HEADS, LEVELS, PretrainedBelief
from ..amortise.features import FEATURES
from ..amortise.predict import LostWarning, PairBeliefs, contradicted
from ..amortise.tune import tune
from ..data.coerce import Graphs
from ..data.randomness import split
from ..errors import Remedy, Setting, SettingError
from ..infer import EdgeModel, Fingerprint, Posterior, Prior, Verdict, fixed, normal
from ..infer.posterior import PRETRAINED
from ..networks import DPG
from ..readouts import Given
from ..readouts.given import one_of_each
from ..report.page import Expectation
from .settings import scaled_by
from .simulate import Simulation

# What no label is behind.
NOTHING = Fingerprint(0, (), 0, 0.0, None, "")


def believing(metric: Any, n_signals: float | None, density: Any) -> PretrainedBelief:
    """Return the evidence of a learner for data of this kind."""
    named: Any = None if metric == "precomputed" or not isinstance(metric, str) else metric
    density = tuple(density) if np.ndim(density) else density
    return PretrainedBelief(named, metric != "precomputed", n_signals, density)


def posterior_of(
    kind: PretrainedBelief,
    assumption: str,
    fingerprint: Fingerprint = NOTHING,
    figures: Mapping[str, float] = MappingProxyType({}),
) -> Posterior:
    """Return the posterior whose draws are the heads at each level."""
    params = one_of_each(len(HEADS), len(LEVELS))
    n = len(params.heads)
    # The priors are never used: nothing is fitted.
    prior = Prior(theta=fixed(1.0), heads=normal(0.0, 1.0), levels=normal(0.0, 1.0))
    model = EdgeModel(DPG(1), Given(HEADS, LEVELS), prior)
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
        fingerprint=fingerprint,
        verdict=Verdict(figures=dict(figures), assumptions=(assumption,)),
    )


def assumption_of(kind: PretrainedBelief) -> str:
    """Say what the belief of the network that ships takes for granted."""
    stated = "Nothing was stated about the share of joined pairs"
    if kind.density is not None:
        ends = " to ".join(f"{x:.3g}" for x in np.atleast_1d(np.asarray(kind.density, float)))
        stated = f"The share of joined pairs was stated as {ends}"
    return (
        f"No known edges were given. The belief is that of a network trained on simulated graphs; "
        f"it holds for data like those. {stated}."
    )


def tuned_to(
    simulation: Simulation, seed: int, steps: int | None, progress: bool | None
) -> tuple[PretrainedBelief, Posterior]:
    """Tune the network to graphs of a simulation; return its belief, as evidence and posterior.

    The graphs of the simulation are held out: the tuned network is compared with the one that ships
    on them, and new graphs are compared with them.
    """
    if simulation.n_signals is None:
        problem = 'network="pair" needs the number of signals, as many as you have'
        raise SettingError(problem, remedy=Remedy("say {}", Setting("n_signals", 200)))
    of_held_out, of_steps = split(seed, 2)
    held_out = simulation.drawn(of_held_out, keep_signals=True)
    is_correlation = simulation.metric == "correlation"

    def draw(step: int, n_graphs: int) -> list[Case]:
        more = replace(simulation, n_graphs=n_graphs)
        key = jax.random.fold_in(of_steps, step)
        return _cases(more.drawn(key, keep_signals=True), is_correlation)

    tuned = tune(draw, _cases(held_out, is_correlation), steps=steps, progress=progress)
    named: Any = simulation.metric
    before, after = tuned.before, tuned.after
    figures = {"NLL before tuning": before, "NLL after tuning": after}
    assumption = (
        f"No known edges were given. The belief is that of a network trained on simulated graphs. "
        f"It was trained on {tuned.n_graphs:,} more, {simulation.described()}; "
    )
    if not tuned.is_better:
        # The network that ships, with its alarm.
        kind = PretrainedBelief(named)
        assumption += f"that did not lower the NLL of held-out ones ({before:.3g}), and was undone."
        return kind, posterior_of(kind, assumption, figures=figures)
    kind = PretrainedBelief(named, network=tuned.network)
    assumption += (
        f"that lowered the NLL of a held-out one from {before:.3g} to {after:.3g}. It holds for "
        f"graphs and signals of that kind."
    )
    fingerprint = Fingerprint.of(scaled_by("median", held_out.data))
    return kind, posterior_of(kind, assumption, fingerprint, figures)


def _cases(graphs: Graphs, is_correlation: bool) -> list[Case]:
    assert graphs.signals is not None
    return [
        Case(record.distance_matrix(), x, float(len(x)), is_correlation, record.a, "simulated")
        for record, x in zip(graphs.data, graphs.signals, strict=True)
    ]


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
