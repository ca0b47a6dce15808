"""Item 5: the same graphs seen through fewer signals than those of the training."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, RED, SKY, axes_for, tidy

from . import contest
from .contest import EXPECTED, FULL, SMALL
from .item import Outcome, Row, Table, Work
from .models import ADDITIVE, PAPERS, SCORES
from .published import SIGNALS

TITLE = "Covariate shift: distances from 10 to 10,000 signals"
CLAIM = (
    "Models trained on expected distances and tested on those of P signals are less accurate and "
    "less certain the fewer they are; the simpler models hold up better."
)


def run(work: Work) -> Outcome:
    """All models at every number of signals; DPG trained at each."""
    s = work.settings(FULL, SMALL)
    found = contest.table_of(work)
    tests = [*(str(p) for p in s.signals), EXPECTED]
    rows: list[Row] = []
    for name in PAPERS:
        for test in tests:
            rows += [
                nll._replace(what=f"{name}, P = {test}, NLL")
                for nll in contest.rows_of(found, name, test, SIGNALS[name][test])[:1]
            ]
    cured = {p: [work.once(contest.matched, p, seed, s) for seed in range(2)] for p in s.signals}
    cure = [_cured(found, p, cured[p]) for p in s.signals]
    everyone = [
        [name, test, *scores]
        for name in (*PAPERS, ADDITIVE)
        for test in tests
        if (scores := _scores(found, name, test)) is not None
    ]
    dpg = [row for row in rows if row.what.startswith("DPG")]
    return Outcome(
        [_of_dpg(dpg), _of_simple(found, tests), _of_cure(cure)],
        rows,
        [
            Table("The cure: DPG trained at the P it is tested at, NLL", _CURE, cure),
            Table("All models, all scores", ["", "P", *SCORES], everyone),
        ],
        {"scores against the number of signals": _figure(found, tests, cure)},
    )


_CURE = ["P", "trained on expected distances", "trained at P", "ECE before", "ECE after"]


def _scores(found: list[contest.Entry], name: str, test: str) -> np.ndarray | None:
    """On the authors' graphs if that was done, else over our seeds."""
    theirs = contest.of_authors(found, name, test)
    own = contest.values(found, name, test)
    if theirs is None and len(own) == 0:
        return None
    return own.mean(0) if theirs is None else theirs


def _cured(found: list[contest.Entry], p: int, matched: list[dict[str, float]]) -> list[Any]:
    before = contest.values(found, "DPG", str(p))[: len(matched)].mean(0)
    after = {score: float(np.mean([one[score] for one in matched])) for score in SCORES}
    ece = SCORES.index("ECE")
    return [p, before[0], after["NLL"], before[ece], after["ECE"]]


def _of_dpg(rows: list[Row]) -> str:
    worst = max((abs(row.away or 0.0) for row in rows), default=0.0)
    word = "holds" if contest.inside(rows) else "holds in kind"
    return (
        f"DPG's degradation with fewer signals {word}: the published NLL is at most {worst:.1f} "
        f"standard deviations over our seeds away."
    )


def _of_simple(found: list[contest.Entry], tests: list[str]) -> str:
    fewest = tests[0]
    nll = {
        name: scores[0] for name in PAPERS if (scores := _scores(found, name, fewest)) is not None
    }
    simple = min(nll.get("DPG", np.inf), nll.get("PDS", np.inf))
    rich = [nll[name] for name in ("MIMO", "MIMO-E") if name in nll]
    holds = bool(rich) and simple < min(rich)
    words = ", ".join(f"{name} {value:.0f}" for name, value in nll.items())
    word = "holds" if holds else "does not hold"
    return f"Simpler models hold up better at P = {fewest}: {word} (NLL: {words})."


def _of_cure(cure: list[list[Any]]) -> str:
    p, before, after, ece, ece_after = cure[0]
    return (
        f"The cure is to train on what will be seen: DPG trained at P = {p} has NLL {after:.1f} "
        f"where the one trained on expected distances has {before:.1f}, and ECE {ece_after:.3f} "
        f"instead of {ece:.3f}. Most of what the paper shows under shift is a mismatch that its "
        f"user can avoid."
    )


def _figure(found: list[contest.Entry], tests: list[str], cure: list[list[Any]]) -> Any:
    axes = axes_for(None, 1, 3, (11, 3.8))
    shown = (("NLL", 0), ("error %", 2), ("ECE", 3))
    x = np.arange(len(tests))
    for axis, (label, k) in zip(axes, shown, strict=True):
        colours = (BLUE, ORANGE, GREEN, RED, SKY)
        for name, colour in zip((*PAPERS, ADDITIVE), colours, strict=True):
            y = [_scores(found, name, test) for test in tests]
            if all(v is not None for v in y):
                axis.plot(x, [v[k] for v in y], "o-", color=colour, markersize=4, label=name)  # type: ignore[index]
        if label != "error %":
            at = [row[2] if label == "NLL" else row[4] for row in cure]
            axis.plot(x[:-1], at, "s--", color=INK, markersize=4, label="DPG, trained at P")
        axis.set(yscale="log", xlabel="signals", title=label)
        axis.set_xticks(x, tests, rotation=30)
        tidy(axis)
    axes[0].figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False
    )
    return axes[0].figure
