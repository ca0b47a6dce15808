"""Item 14: how deep a network need be; beyond the paper, infinitely deep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.plots.style import BLUE, INK, ORANGE, axes_for, tidy

from .item import FAR, Outcome, Row, Table, Work
from .models import SCORES, authors_graphs, quietly, scores_on, timed
from .published import ENSEMBLES, OTHER_ENSEMBLES, POSTERIORS

TITLE = "Depth: 30 layers, 200, and the solution itself"
CLAIM = (
    "200 layers, since predictions did not improve significantly beyond; 30 in an appendix "
    "(RG(1/3): NLL 10.33 and 11.18). The converged network, depth=None, is beyond the paper."
)
PUBLISHED = {30: OTHER_ENSEMBLES["RG(1/3)"], 200: ENSEMBLES["DPG"]["RG(1/3)"]}
PARAMETERS = ("theta", "delta", "b")


@dataclass(frozen=True)
class Depths:
    """Which depths, on what."""

    depths: tuple[int | None, ...] = (30, 200, 1000, None)
    n_nodes: int = 20
    n_train: int = 50
    n_test: int = 100
    seeds: int = 4


FULL = Depths()
SMALL = Depths((20, None), n_nodes=10, n_train=6, n_test=6, seeds=2)


def run(work: Work) -> Outcome:
    """Fit and score DPG at each depth, on the authors' graphs and on some of our own."""
    s = work.settings(FULL, SMALL)
    theirs = work.has("rg032.npz")
    path = (work.file("rg032.npz"),) if theirs else (None,)
    own = {
        depth: [work.once(at_depth, depth, seed, s, using=(None,)) for seed in range(s.seeds)]
        for depth in s.depths
    }
    of_authors = (
        {depth: work.once(at_depth, depth, None, s, using=path) for depth in s.depths}
        if theirs
        else {}
    )
    return Outcome(
        [
            _of_depth(own),
            _of_limit(own),
            _of_posterior(of_authors or {depth: many[0] for depth, many in own.items()}),
            _of_seconds(own),
            *([] if theirs else ["The authors' graphs (rg032.npz) were not at hand."]),
        ],
        _rows(own, of_authors),
        [_table(own, "our own graphs"), *([_one_table(of_authors)] if theirs else [])],
        {"depth": _figure(own, of_authors)},
    )


def at_depth(depth: int | None, seed: int | None, s: Depths, path: Path | None) -> dict[str, Any]:
    """Scores, posterior and seconds; the authors' graphs if there is no seed."""
    if seed is None and path is not None:
        graphs = authors_graphs(path)
        train, test = graphs["train"][: s.n_train], graphs["test"][: s.n_test]
    else:
        n_graphs = s.n_train + s.n_test
        both = GraphDataset.sample(seed or 0, RandomGeometric(0.32), n_graphs, s.n_nodes)
        train, test = both[: s.n_train], both[s.n_train :]
    model = EdgeModel(DPG(depth))
    with quietly():
        posterior, seconds = timed(Exact().run, 0, model, train)
        found, to_predict = timed(scores_on, posterior, {"test": test})
    return {
        "scores": found["test"],
        "parameters": posterior.summary()[["mean", "sd"]].to_dict("index"),
        "theta": posterior.density("theta"),
        "log evidence": posterior.log_evidence,
        "findings": list(posterior.verdict.names),
        "dead": posterior.verdict.figures["prior mass dead"],
        "seconds": seconds,
        "seconds to predict": to_predict,
    }


Many = dict[int | None, list[dict[str, Any]]]


def _name(depth: int | None) -> str:
    return "converged" if depth is None else str(depth)


def _scores(many: list[dict[str, Any]], score: str = "NLL") -> np.ndarray:
    return np.array([one["scores"][score] for one in many])


def _rows(own: Many, of_authors: dict[int | None, dict[str, Any]]) -> list[Row]:
    rows = []
    for depth, many in own.items():
        for k, score in enumerate(SCORES):
            values = _scores(many, score)
            published = PUBLISHED[depth][k] if depth in PUBLISHED else None
            if published is None:
                continue
            note = ""
            if of_authors:
                note = f"on the authors' graphs {of_authors[depth]['scores'][score]:.4g}"
            error = float(values.std(ddof=1))
            what = f"depth {_name(depth)}, {score}"
            rows.append(Row(what, float(values.mean()), error, published, note))
    if of_authors and 200 in of_authors:
        for name, (mean, sd) in POSTERIORS["RG(1/3), DPG"].items():
            ours = of_authors[200]["parameters"][name]
            note = f"the authors' graphs; ± is the posterior's sd, published {sd:.3g}"
            rows.append(Row(f"depth 200, {name}", ours["mean"], ours["sd"], mean, note))
    return rows


def _of_depth(own: Many) -> str:
    words = ", ".join(f"{_name(d)}: {_scores(many).mean():.2f}" for d, many in own.items())
    said = f"Test NLL on graphs of our own, by depth: {words}."
    deeper = [depth for depth in own if depth is not None and depth > 200]
    if 200 in own and deeper:
        gain, error = _gain(own, 200, deeper[-1])
        share = gain / _scores(own[200]).mean()
        said += (
            f" No significant improvement beyond 200: "
            f"{'holds' if share < 0.01 else 'does not hold'} (with {deeper[-1]} layers the NLL is "
            f"lower by {gain:.3f} ± {error:.3f}, {100 * share:.2f} %)."
        )
    return said


def _gain(own: Many, one: int, other: int | None, score: str = "NLL") -> tuple[float, float]:
    """How much lower the score of the other depth is on the same graphs; its standard error."""
    gain = _scores(own[one], score) - _scores(own[other], score)
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))


def _of_limit(own: Many) -> str:
    against = 200 if 200 in own else max(depth for depth in own if depth is not None)
    gain, error = _gain(own, against, None)
    errors, its_error = _gain(own, against, None, "error %")
    pairs = zip(own[None], own[against], strict=True)
    evidence = np.mean([one["log evidence"] - two["log evidence"] for one, two in pairs])
    if abs(gain) < FAR * error:
        verdict = "no different from"
    else:
        verdict = "better than" if gain > 0 else "worse than"
    return (
        f"The converged network is {verdict} depth {against}: less by {gain:.3f} ± {error:.3f} in "
        f"NLL and by {errors:.3f} ± {its_error:.3f} in error % (the same graphs; standard errors "
        f"over seeds), with a log evidence higher by {evidence:.1f}. It has no depth and no "
        f"initial state to choose, and is dead at no theta (depth {against} is, for "
        f"{100 * own[against][0]['dead']:.1f} % of the prior)."
    )


def _of_posterior(found: dict[int | None, dict[str, Any]]) -> str:
    shallow = min(depth for depth in found if depth is not None and depth >= 20)
    deep = max(depth for depth in found if depth is not None and depth <= 200)
    last = found[None]["parameters"]["theta"]
    words = []
    for depth in dict.fromkeys((shallow, deep)):
        theta = found[depth]["parameters"]["theta"]
        words.append(
            f"{theta['mean']:.4f} ± {theta['sd']:.4f} at depth {depth} "
            f"({(theta['mean'] - last['mean']) / last['sd']:+.1f} of the converged one's sds away)"
        )
    return (
        f"Theta is {', '.join(words)} and {last['mean']:.4f} ± {last['sd']:.4f} for the converged "
        f"network."
    )


def _of_seconds(own: Many) -> str:
    words = ", ".join(
        f"{_name(depth)}: {np.median([one['seconds'] for one in many]):.1f} and "
        f"{np.median([one['seconds to predict'] for one in many]):.1f}"
        for depth, many in own.items()
    )
    return f"Seconds to fit and to predict (median over seeds), by depth: {words}."


def _table(own: Many, whose: str) -> Table:
    rows = []
    for depth, many in own.items():
        scores = [float(_scores(many, score).mean()) for score in SCORES]
        thetas = [one["parameters"]["theta"] for one in many]
        theta = [np.mean([one[what] for one in thetas]) for what in ("mean", "sd")]
        evidence = float(np.mean([one["log evidence"] for one in many]))
        seconds = float(np.median([one["seconds"] for one in many]))
        rows.append([_name(depth), *scores, f"{theta[0]:.4f} ± {theta[1]:.4f}", evidence, seconds])
    columns = ["depth", *SCORES, "theta", "log evidence", "seconds to fit"]
    return Table(f"By depth, {whose} (means over {len(many)})", columns, rows)


def _one_table(found: dict[int | None, dict[str, Any]]) -> Table:
    table = _table({depth: [one] for depth, one in found.items()}, "the authors' graphs")
    return Table("By depth, the authors' graphs", table.columns, table.rows)


def _figure(own: Many, of_authors: dict[int | None, dict[str, Any]]) -> Any:
    from matplotlib import colormaps

    axes = axes_for(None, 1, 3, (13, 3.9))
    x = np.arange(len(own))
    for axis, score in zip(axes, ("NLL", "error %"), strict=False):
        each = np.array([_scores(many, score) for many in own.values()])
        axis.plot(x, each, color=BLUE, lw=0.8, alpha=0.5)
        axis.plot(x, each.mean(1), "o-", color=BLUE, lw=2.2, label="our graphs (thin: a seed)")
        if of_authors:
            theirs = [one["scores"][score] for one in of_authors.values()]
            axis.plot(x, theirs, "s-", color=ORANGE, ms=5, label="the authors' graphs")
        at = [k for k, depth in enumerate(own) if depth in PUBLISHED]
        printed = [PUBLISHED[depth][SCORES.index(score)] for depth in own if depth in PUBLISHED]
        axis.plot(x[at], printed, "x", color=INK, ms=9, mew=2.2, label="published")
        axis.set_xticks(x, [_name(depth) for depth in own])
        axis.set(xlabel="depth", ylabel=f"test {score}")
    shown = of_authors or {depth: many[0] for depth, many in own.items()}
    shades = colormaps["viridis_r"](np.linspace(0.1, 1, len(shown)))
    for (depth, one), shade in zip(shown.items(), shades, strict=True):
        points, density = (np.array(part) for part in one["theta"])
        keep = density > 1e-3 * density.max()
        style = "--" if depth is None else "-"
        axes[2].plot(points[keep], density[keep], style, color=shade, lw=1.8, label=_name(depth))
    axes[2].set(xlabel="theta", ylabel="posterior density", ylim=(0, None))
    axes[2].locator_params(axis="x", nbins=5)
    axes[2].legend(frameon=False, fontsize=8, title="depth")
    for axis in axes:
        tidy(axis)
    axes[0].figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False
    )
    return axes[0].figure
