"""Item 5: distances of the test graphs from fewer signals than in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, RED, SKY, axes_for, tidy

from . import contest
from .averages import mean_of
from .contest import EXPECTED, FULL, SMALL, Entry
from .drawing import legend_of_figure
from .item import Answer, Outcome, Row, Table, Work
from .models import ADDITIVE, PAPERS, SCORES
from .published import SIGNALS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Covariate shift: distances from 10 to 10,000 signals"
CLAIM = (
    "Models trained on expected distances and tested on those of P signals are less accurate and "
    "less certain the fewer they are; the simpler models hold up better."
)


def run(work: Work) -> Outcome:
    """Score all models at every number of signals, and DPG trained at each number."""
    s = work.settings(FULL, SMALL)
    models = contest.entries(work)
    tests = [*(str(p) for p in s.signals), EXPECTED]
    rows: list[Row] = []
    for name in PAPERS:
        for test in tests:
            rows += [
                nll._replace(what=f"{name}, P = {test}, NLL")
                for nll in contest.rows_of(models, name, test, SIGNALS[name][test])[:1]
            ]
    remedied = {p: [work.once(contest.matched, p, seed, s) for seed in range(2)] for p in s.signals}
    remedy = [_remedied(models, p, remedied[p]) for p in s.signals]
    everyone = [
        [name, test, *scores]
        for name in (*PAPERS, ADDITIVE)
        for test in tests
        if (scores := contest.best_known(models, name, test)) is not None
    ]
    dpg = [row for row in rows if row.what.startswith("DPG")]
    return Outcome(
        [_describe_dpg(dpg), _describe_simple(models, tests), _describe_remedy(remedy)],
        rows,
        [
            Table("The remedy: DPG trained at the P at which it is tested, NLL", _REMEDY, remedy),
            Table("All models, all scores", ["", "P", *SCORES], everyone),
        ],
        {"scores against the number of signals": _figure(models, tests, remedy)},
    )


_REMEDY = ["P", "trained on expected distances", "trained at P", "ECE before", "ECE after"]


def _remedied(models: list[Entry], p: int, matched: list[Answer]) -> list[float]:
    """Compare DPG trained on expected distances with DPG trained at `p` signals."""
    before = contest.values(models, "DPG", str(p))[: len(matched)].mean(0)
    ece = SCORES.index("ECE")
    return [p, before[0], mean_of(matched, "NLL"), before[ece], mean_of(matched, "ECE")]


def _describe_dpg(rows: list[Row]) -> str:
    worst = max((abs(row.away or 0.0) for row in rows), default=0.0)
    word = "holds" if contest.inside(rows) else "holds qualitatively"
    return (
        f"DPG's degradation with fewer signals {word}: the published NLL is at most {worst:.1f} "
        f"standard deviations over our seeds away."
    )


def _describe_simple(models: list[Entry], tests: list[str]) -> str:
    fewest = tests[0]
    nll = {
        name: scores[0]
        for name in PAPERS
        if (scores := contest.best_known(models, name, fewest)) is not None
    }
    simple = min(nll.get("DPG", np.inf), nll.get("PDS", np.inf))
    rich = [nll[name] for name in ("MIMO", "MIMO-E") if name in nll]
    holds = bool(rich) and simple < min(rich)
    words = ", ".join(f"{name} {value:.0f}" for name, value in nll.items())
    word = "holds" if holds else "does not hold"
    return f"Simpler models hold up better at P = {fewest}: {word} (NLL: {words})."


def _describe_remedy(remedy: list[list[float]]) -> str:
    p, before, after, ece, ece_after = remedy[0]
    return (
        f"The remedy is to train on data like those to come: DPG trained at P = {p} has NLL "
        f"{after:.1f} where the one trained on expected distances has {before:.1f}, and ECE "
        f"{ece_after:.3f} instead of {ece:.3f}. Most of what the paper shows under shift is a "
        f"mismatch that a user can avoid."
    )


def _figure(models: list[Entry], tests: list[str], remedy: list[list[float]]) -> Figure:
    axes = axes_for(None, 1, 3, (11, 3.8))
    shown = (("NLL", 0), ("error %", 2), ("ECE", 3))
    x = np.arange(len(tests))
    for axis, (label, k) in zip(axes, shown, strict=True):
        colours = (BLUE, ORANGE, GREEN, RED, SKY)
        for name, colour in zip((*PAPERS, ADDITIVE), colours, strict=True):
            known = [contest.best_known(models, name, test) for test in tests]
            y = [scores[k] for scores in known if scores is not None]
            if len(y) == len(x):
                axis.plot(x, y, "o-", color=colour, markersize=4, label=name)
        if label != "error %":
            at = [row[2] if label == "NLL" else row[4] for row in remedy]
            axis.plot(x[:-1], at, "s--", color=INK, markersize=4, label="DPG, trained at P")
        axis.set(yscale="log", xlabel="signals", title=label)
        axis.set_xticks(x, tests, rotation=30)
        tidy(axis)
    legend_of_figure(axes[0], 6)
    return axes[0].figure
