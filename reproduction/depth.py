"""Item 14: how deep a network needs to be; beyond the paper, the converged network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.plots.style import BLUE, INK, ORANGE, axes_for, tidy

from .averages import column, mean_and_deviation, mean_and_error, mean_of
from .drawing import legend_of_figure
from .item import FAR, Answer, Outcome, Row, Table, Work
from .models import SCORES, moments, quietly, scores_on, timed, train_and_test
from .published import ENSEMBLES, OTHER_ENSEMBLES, POSTERIORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Depth: 30 layers, 200, and the solution itself"
CLAIM = (
    "200 layers, since predictions did not improve significantly beyond; 30 in an appendix "
    "(RG(1/3): NLL 10.33 and 11.18). The converged network, depth=None, is beyond the paper."
)
PUBLISHED = {30: OTHER_ENSEMBLES["RG(1/3)"], 200: ENSEMBLES["DPG"]["RG(1/3)"]}
PARAMETERS = ("theta", "delta", "b")


@dataclass(frozen=True)
class Depths:
    """The depths, and the graphs."""

    depths: tuple[int | None, ...] = (30, 200, 1000, None)
    n_nodes: int = 20
    n_train: int = 50
    n_test: int = 100
    seeds: int = 4


FULL = Depths()
SMALL = Depths((20, None), n_nodes=10, n_train=6, n_test=6, seeds=2)


def run(work: Work) -> Outcome:
    """Fit and score DPG at each depth, on the authors' graphs and on graphs of our own."""
    s = work.settings(FULL, SMALL)
    path = work.authors
    ours = {
        depth: [work.once(at_depth, depth, seed, s, using=(None,)) for seed in range(s.seeds)]
        for depth in s.depths
    }
    on_authors = {
        depth: work.once(at_depth, depth, None, s, using=(path,)) for depth in s.depths if path
    }
    return Outcome(
        [
            _describe_depth(ours),
            _describe_limit(ours),
            _describe_posterior(
                on_authors or {depth: answers[0] for depth, answers in ours.items()}
            ),
            _describe_seconds(ours),
            *([] if path else ["The authors' graphs (rg032.npz) were missing."]),
        ],
        _rows(ours, on_authors),
        [_table(ours, "our own graphs"), *([_authors_table(on_authors)] if path else [])],
        {"depth": _figure(ours, on_authors)},
    )


def at_depth(depth: int | None, seed: int | None, s: Depths, path: Path | None) -> Answer:
    """Return scores, posterior and seconds; without a seed, on the authors' graphs."""
    train, test = train_and_test(s.n_train, s.n_test, s.n_nodes, seed, path)
    model = EdgeModel(DPG(depth))
    with quietly():
        posterior, seconds = timed(Exact().run, 0, model, train)
        scores, to_predict = timed(scores_on, posterior, {"test": test})
    return {
        "scores": scores["test"],
        "parameters": moments(posterior),
        "theta": posterior.density("theta"),
        "log evidence": posterior.log_evidence,
        "findings": list(posterior.verdict.names),
        "dead": posterior.verdict.figures["prior mass dead"],
        "seconds": seconds,
        "seconds to predict": to_predict,
    }


# The answers of `at_depth` by depth (None: converged): over our seeds, or on the authors' graphs.
Ours = dict[int | None, list[Answer]]
Authors = dict[int | None, Answer]


def _name(depth: int | None) -> str:
    return "converged" if depth is None else str(depth)


def _scores(answers: list[Answer], score: str = "NLL") -> np.ndarray:
    return column(answers, "scores", score)


def _rows(ours: Ours, on_authors: Authors) -> list[Row]:
    rows = []
    for depth, answers in ours.items():
        for k, score in enumerate(SCORES):
            if depth not in PUBLISHED:
                continue
            note = ""
            if on_authors:
                note = f"on the authors' graphs {on_authors[depth]['scores'][score]:.4g}"
            what = f"depth {_name(depth)}, {score}"
            mean_spread = mean_and_deviation(_scores(answers, score))
            rows.append(Row(what, *mean_spread, PUBLISHED[depth][k], note))
    if on_authors and 200 in on_authors:
        for name, (mean, sd) in POSTERIORS["RG(1/3), DPG"].items():
            estimate = on_authors[200]["parameters"][name]
            note = f"the authors' graphs; ± is the posterior's sd, published {sd:.3g}"
            rows.append(Row(f"depth 200, {name}", estimate["mean"], estimate["sd"], mean, note))
    return rows


def _describe_depth(ours: Ours) -> str:
    words = ", ".join(f"{_name(d)}: {_scores(answers).mean():.2f}" for d, answers in ours.items())
    text = f"Test NLL on graphs of our own, by depth: {words}."
    deeper = [depth for depth in ours if depth is not None and depth > 200]
    if 200 in ours and deeper:
        gain, error = _gain(ours, 200, deeper[-1])
        share = gain / _scores(ours[200]).mean()
        text += (
            f" No significant improvement beyond 200: "
            f"{'holds' if share < 0.01 else 'does not hold'} (with {deeper[-1]} layers the NLL is "
            f"lower by {gain:.3f} ± {error:.3f}, {100 * share:.2f} %)."
        )
    return text


def _gain(ours: Ours, depth: int, other: int | None, score: str = "NLL") -> tuple[float, float]:
    """Return how much lower the score of the other depth is, paired, and its standard error."""
    return mean_and_error(_scores(ours[depth], score) - _scores(ours[other], score))


def _describe_limit(ours: Ours) -> str:
    against = 200 if 200 in ours else max(depth for depth in ours if depth is not None)
    gain, error = _gain(ours, against, None)
    errors, its_error = _gain(ours, against, None, "error %")
    evidence = np.mean(column(ours[None], "log evidence") - column(ours[against], "log evidence"))
    if abs(gain) < FAR * error:
        verdict = "no different from"
    else:
        verdict = "better than" if gain > 0 else "worse than"
    return (
        f"The converged network is {verdict} depth {against}: less by {gain:.3f} ± {error:.3f} in "
        f"NLL and by {errors:.3f} ± {its_error:.3f} in error % (the same graphs; standard errors "
        f"over seeds), with a log evidence higher by {evidence:.1f}. It has no depth and no "
        f"initial state to choose, and is dead at no theta (depth {against} is, for "
        f"{100 * ours[against][0]['dead']:.1f} % of the prior)."
    )


def _describe_posterior(answers: Authors) -> str:
    shallow = min(depth for depth in answers if depth is not None and depth >= 20)
    deep = max(depth for depth in answers if depth is not None and depth <= 200)
    last = answers[None]["parameters"]["theta"]
    words = []
    for depth in dict.fromkeys((shallow, deep)):
        theta = answers[depth]["parameters"]["theta"]
        words.append(
            f"{theta['mean']:.4f} ± {theta['sd']:.4f} at depth {depth} "
            f"({(theta['mean'] - last['mean']) / last['sd']:+.1f} of the converged one's sds away)"
        )
    return (
        f"Theta is {', '.join(words)} and {last['mean']:.4f} ± {last['sd']:.4f} for the converged "
        f"network."
    )


def _describe_seconds(ours: Ours) -> str:
    words = ", ".join(
        f"{_name(depth)}: {np.median(column(answers, 'seconds')):.1f} and "
        f"{np.median(column(answers, 'seconds to predict')):.1f}"
        for depth, answers in ours.items()
    )
    return f"Seconds to fit and to predict (median over seeds), by depth: {words}."


def _table(ours: Ours, whose: str) -> Table:
    rows = []
    for depth, answers in ours.items():
        scores = [float(_scores(answers, score).mean()) for score in SCORES]
        theta = [mean_of(answers, "parameters", "theta", what) for what in ("mean", "sd")]
        evidence = mean_of(answers, "log evidence")
        seconds = float(np.median(column(answers, "seconds")))
        rows.append([_name(depth), *scores, f"{theta[0]:.4f} ± {theta[1]:.4f}", evidence, seconds])
    columns = ["depth", *SCORES, "theta", "log evidence", "seconds to fit"]
    return Table(f"By depth, {whose} (means over {len(answers)})", columns, rows)


def _authors_table(answers: Authors) -> Table:
    table = _table({depth: [answer] for depth, answer in answers.items()}, "the authors' graphs")
    return Table("By depth, the authors' graphs", table.columns, table.rows)


def _figure(ours: Ours, on_authors: Authors) -> Figure:
    from matplotlib import colormaps

    axes = axes_for(None, 1, 3, (13, 3.9))
    x = np.arange(len(ours))
    for axis, score in zip(axes, ("NLL", "error %"), strict=False):
        by_seed = np.array([_scores(answers, score) for answers in ours.values()])
        axis.plot(x, by_seed, color=BLUE, lw=0.8, alpha=0.5)
        axis.plot(x, by_seed.mean(1), "o-", color=BLUE, lw=2.2, label="our graphs (thin: a seed)")
        if on_authors:
            axis.plot(x, column(on_authors.values(), "scores", score), "s-", color=ORANGE, ms=5,
                      label="the authors' graphs")  # fmt: skip
        at = [k for k, depth in enumerate(ours) if depth in PUBLISHED]
        printed = [PUBLISHED[depth][SCORES.index(score)] for depth in ours if depth in PUBLISHED]
        axis.plot(x[at], printed, "x", color=INK, ms=9, mew=2.2, label="published")
        axis.set_xticks(x, [_name(depth) for depth in ours])
        axis.set(xlabel="depth", ylabel=f"test {score}")
    shown = on_authors or {depth: answers[0] for depth, answers in ours.items()}
    shades = colormaps["viridis_r"](np.linspace(0.1, 1, len(shown)))
    for (depth, answer), shade in zip(shown.items(), shades, strict=True):
        points, density = (np.array(part) for part in answer["theta"])
        keep = density > 1e-3 * density.max()
        style = "--" if depth is None else "-"
        axes[2].plot(points[keep], density[keep], style, color=shade, lw=1.8, label=_name(depth))
    axes[2].set(xlabel="theta", ylabel="posterior density", ylim=(0, None))
    axes[2].locator_params(axis="x", nbins=5)
    axes[2].legend(frameon=False, fontsize=8, title="depth")
    for axis in axes:
        tidy(axis)
    legend_of_figure(axes[0], 3)
    return axes[0].figure
