"""Item 8: the value of the informative prior, and of a posterior over some parameters only."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebelief.data import GraphDataset
from edgebelief.infer import MAP, NUTS, EdgeModel
from edgebelief.networks import DPG
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, PALE, axes_for, legend_above, tidy

from .averages import column, deviation, mean_and_error, mean_of
from .drawing import GREY
from .gradients import chained, gradient_seconds
from .item import FAR, Answer, Outcome, Row, Table, Work
from .models import (
    PAPERS_GRAPHS,
    SCORES,
    authors_graphs,
    fitted,
    four_scores,
    quietly,
    with_fixed_theta,
)
from .published import ABLATION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Ablations: a flat prior, and a posterior over some of the parameters only"
CLAIM = (
    "With 50 graphs the informative prior makes inference faster (7.8 times) and 5 times as "
    "effective, with the same scores; with 2 graphs NLL and ECE are 37 % and 13.7 % better with "
    "it. A posterior over part of the parameters is better than a point estimate."
)
INFORMATIVE, FLAT = "DPG", "DPG-U"
PRIORS = {INFORMATIVE: "altered", FLAT: "flat"}
# The parameters that have a posterior; the others are fixed at a point.
POINT, READOUT, ALL = "nothing (MAP)", "the readout", "everything"
# Columns of the published table before and after the scores.
SECONDS, EFFECTIVE = 0, 5
# The seconds of the published table are for this many draws.
PAPERS_DRAWS = 4000


@dataclass(frozen=True)
class Graphs:
    """The graphs, and the depth of the network."""

    pool: int = 200
    n_test: int = 100
    n_nodes: int = 20
    depth: int = 30


@dataclass(frozen=True)
class Ablations:
    """The numbers and sizes of training sets, and the chains."""

    subsets: tuple[tuple[int, int], ...] = ((50, 20), (5, 20), (2, 20), (1, 20))
    """Numbers of training graphs, and how many random sets of each number."""
    partial: tuple[tuple[int, int], ...] = ((50, 10), (2, 20))
    """Numbers of training graphs and sets for a posterior over part of the parameters."""
    chains: tuple[int, ...] = (50, 5, 2, 1)
    chain_subsets: int = 2
    """On how many of the sets NUTS runs as well."""
    n_warmup: int = 300
    n_draws: int = 200
    graphs: Graphs = Graphs()


FULL = Ablations()
SMALL = Ablations(
    subsets=((6, 2),), partial=((6, 1),), chains=(6,), chain_subsets=1, n_warmup=50,
    n_draws=50, graphs=Graphs(pool=12, n_test=6, n_nodes=8, depth=10),
)  # fmt: skip


def run(work: Work) -> Outcome:
    """Fit under both priors; at a point, and with a posterior over some or all parameters."""
    s = work.settings(FULL, SMALL)
    path = None if work.small else work.authors
    authors, using = path is not None, (path,)
    pairs = {
        size: [work.once(both, size, k, authors, s.graphs, using=using) for k in range(n)]
        for size, n in s.subsets
    }
    partly = {
        size: [work.once(partial, size, k, authors, s.graphs, using=using) for k in range(n)]
        for size, n in s.partial
    }
    ran = {
        size: {
            name: [
                work.once(chains, name, size, k, s.n_warmup, s.n_draws, s.graphs)
                for k in range(s.chain_subsets)
            ]
            for name in PRIORS
        }
        for size in s.chains
    }
    on_first = work.once(on_authors, tuple(pairs), s.graphs, using=using) if authors else {}
    return Outcome(
        [
            *_describe_scores(pairs),
            *_describe_authors(on_first, pairs),
            *_describe_text(pairs),
            *_describe_chains(ran, pairs),
            *_describe_partial(partly, pairs),
            _describe_test(authors, s.graphs),
        ],
        _rows(pairs, ran, on_first),
        [_differences(pairs), _chains(ran, pairs), _partial(partly, pairs)],
        {"what a flat prior costs, and what doubt in part is worth": _figure(pairs, partly)},
        {"pairs": pairs, "partial": partly, "chains": ran},
    )


def subset(size: int, k: int, s: Graphs) -> GraphDataset:
    """Return the `k`-th random training set of `size` graphs."""
    pool = sampled(1, s.pool, s.n_nodes)
    rng = np.random.default_rng([size, k])
    return pool[np.sort(rng.choice(s.pool, size, replace=False))]


def tests(s: Graphs, path: Path | None) -> GraphDataset:
    """Return the authors' test graphs, or graphs of our own."""
    if path is not None:
        return authors_graphs(path)["test"][: s.n_test]
    return sampled(2, s.n_test, s.n_nodes)


@cache
def sampled(seed: int, n: int, n_nodes: int) -> GraphDataset:
    """Sample graphs of RG(1/3)."""
    return GraphDataset.sample(seed, PAPERS_GRAPHS, n, n_nodes)


def both(size: int, k: int, authors: bool, s: Graphs, path: Path | None) -> Answer:
    """Fit the same training set under both priors by `Exact`."""
    train, test = subset(size, k, s), tests(s, path)
    answer = {}
    for name in PRIORS:
        begin = time.process_time()
        posterior = fitted(name, train, s.depth)
        seconds = time.process_time() - begin
        theta = posterior.summary().loc["theta"]
        answer[name] = four_scores(posterior, test) | {
            "seconds": seconds,
            "theta": [theta["mean"], theta["sd"]],
            "findings": list(posterior.verdict.names),
        }
    return answer


def partial(size: int, k: int, authors: bool, s: Graphs, path: Path | None) -> Answer:
    """Score a point estimate, and the same theta with a posterior over the readout."""
    train, test = subset(size, k, s), tests(s, path)
    with quietly():
        point = MAP().run(0, EdgeModel(DPG(s.depth)), train)
    readout = with_fixed_theta(point.model, point.params["theta"][0], train)
    return {POINT: four_scores(point, test), READOUT: four_scores(readout, test)}


def chains(name: str, size: int, k: int, n_warmup: int, n_draws: int, s: Graphs) -> Answer:
    """Run NUTS on the `k`-th training set, and time a gradient."""
    model = EdgeModel(DPG(s.depth), prior=PRIORS[name])
    train = subset(size, k, s)
    deepest = 10 if n_draws >= 100 else 3  # few draws only show that everything runs
    engine = NUTS(n_warmup, n_draws, target_accept=0.8, max_tree_depth=deepest, progress=False)
    posterior, figures = chained(engine, model, train)
    values = {name: float(np.median(x)) for name, x in posterior.params.items()}
    seconds = gradient_seconds(model, train, values)
    effective = figures["effective draws"]["theta"]
    return figures | {
        "theta": posterior.params["theta"].mean(),
        "seconds of a gradient": seconds,
        "seconds": seconds * figures["gradients"] * PAPERS_DRAWS / posterior.n_draws,
        "a second": effective / (seconds * figures["gradients"]),
    }


def on_authors(sizes: tuple[int, ...], s: Graphs, path: Path) -> Answer:
    """Train on the first of the authors' graphs by `Exact`, and score on their test graphs."""
    graphs = authors_graphs(path)
    return {
        str(size): {
            name: four_scores(fitted(name, graphs["train"][:size], s.depth), graphs["test"])
            for name in PRIORS
        }
        for size in sizes
    }


# The answers of `both` or of `partial` by the number of training graphs.
Pairs = dict[int, list[Answer]]
# The answers of `chains` by the number of training graphs and the name of the prior.
Ran = dict[int, dict[str, list[Answer]]]


def _losses(answers: list[Answer], score: str = "NLL") -> np.ndarray:
    """Return the score of the flat prior minus that of the informative one, set by set."""
    return column(answers, FLAT, score) - column(answers, INFORMATIVE, score)


def _lost(answers: list[Answer], score: str = "NLL") -> tuple[float, float]:
    """Return what the flat prior loses: the mean over sets and its standard error."""
    return mean_and_error(_losses(answers, score))


def _share(answers: list[Answer], score: str) -> float:
    """Return what the informative prior gains, in % of the flat one's score."""
    return 100 * (1 - mean_of(answers, INFORMATIVE, score) / mean_of(answers, FLAT, score))


def _with_error(pair: tuple[float, float], form: str = ".2f") -> str:
    return f"{pair[0]:z{form}} ± {pair[1]:.1g}"


def _describe_scores(pairs: Pairs) -> list[str]:
    most, few = max(pairs), [size for size in pairs if size < max(pairs)]
    same = abs(_lost(pairs[most])[0]) < 0.01 * mean_of(pairs[most], FLAT, "NLL")
    worse = {size: _lost(pairs[size]) for size in few}
    sure = [size for size, (mean, error) in worse.items() if mean > FAR * error]
    words = "; ".join(f"{_with_error(worse[size])} with {size}" for size in few)
    return [
        f"With {most} graphs both priors have the same scores: "
        f"{'holds' if same else 'does not hold'} (NLL flat minus informative "
        f"{_with_error(_lost(pairs[most]), '.3f')}, paired over {len(pairs[most])} training "
        "sets).",
        f"With few graphs the informative prior is better: {'holds' if sure else 'is not seen'} "
        f"(NLL lost by the flat prior: {words}). The gain is in the mean over training sets; the "
        "paper has one set of each size, and on one set the sign may go either way: "
        f"{_either(pairs, few)}.",
    ]


def _either(pairs: Pairs, few: list[int]) -> str:
    shares = []
    for size in few:
        lost = _losses(pairs[size])
        shares.append(f"{int((lost < 0).sum())} of {lost.size} sets of {size}")
    return f"the flat prior has the lower NLL on {', '.join(shares)}"


def _describe_authors(on_first: Answer, pairs: Pairs) -> list[str]:
    """Describe how the published table compares with fits to the first graphs."""
    known = [size for size in pairs if str(size) in on_first and size in ABLATION]
    if not known:
        return []
    differences = [
        abs(on_first[str(size)][name]["NLL"] / ABLATION[size][name][1] - 1)
        for size in known
        for name in PRIORS
    ]
    fewest = min(known)
    with_many, with_few = (ABLATION[size][INFORMATIVE][1] for size in (max(known), fewest))
    nll = column(pairs[fewest], INFORMATIVE, "NLL")
    return [
        f"The published table is that of the first T of the authors' graphs: trained on those, "
        f"`Exact` is within {100 * max(differences):.1f} % of every NLL in it. That its T = "
        f"{fewest} does better than its T = {max(known)} ({with_few} against {with_many}) is luck "
        f"with the first: over our {len(pairs[fewest])} sets of {fewest} NLL is {nll.mean():.1f} "
        f"with a standard deviation of {nll.std():.1f}."
    ]


def _describe_text(pairs: Pairs) -> list[str]:
    """Describe the sentence of the paper about two graphs."""
    if 2 not in pairs:
        return []
    flat, informative = ABLATION[2][FLAT], ABLATION[2][INFORMATIVE]
    nll, ece, seconds = (100 * (1 - informative[k] / flat[k]) for k in (1, 4, SECONDS))
    return [
        f"The NLL that is 37 % better with two graphs is an error of the paper: its own table has "
        f"{flat[1]} and {informative[1]}, which is {nll:.1f} %; {seconds:.1f} % is the gain in the "
        f"column of seconds. Its {ece:.1f} % of ECE is what the table has. Ours, over "
        f"{len(pairs[2])} sets: {_share(pairs[2], 'NLL'):.1f} % of NLL and "
        f"{_share(pairs[2], 'ECE'):.1f} % of ECE."
    ]


def _describe_chains(ran: Ran, pairs: Pairs) -> list[str]:
    most = max(ran)
    failed = {
        name: [bad for size in ran for bad in _failed(ran[size][name], pairs[size], name)]
        for name in PRIORS
    }
    exact = {name: np.median(column(pairs[most], name, "seconds")) for name in PRIORS}
    return [
        _describe_efficiency(ran[most], pairs[most], most),
        f"Under the flat prior {sum(failed[FLAT])} of {len(failed[FLAT])} runs of NUTS, and under "
        f"the informative one {sum(failed[INFORMATIVE])} of {len(failed[INFORMATIVE])}, ended more "
        f"than half a standard deviation from the mean of `Exact`, or with an R-hat above 1.05: "
        f"the posterior has minor modes, and some chains start in one and stay. The table marks "
        f"these runs as failed; their efficiency means nothing.",
        f"`Exact` integrates over the whole prior and needs no chains: {exact[INFORMATIVE]:.1f} "
        f"and {exact[FLAT]:.1f} processor seconds for {most} graphs (medians, informative and "
        f"flat).",
    ]


def _describe_efficiency(of: dict[str, list[Answer]], exact: list[Answer], size: int) -> str:
    """Describe the training sets on which the chains of both priors converged."""
    failed = np.any([_failed(of[name], exact, name) for name in PRIORS], axis=0)
    if failed.all():
        return f"With {size} graphs on no training set the chains of both priors converged."
    pooled = {
        name: _pooled([answer for answer, bad in zip(of[name], failed, strict=True) if not bad])
        for name in PRIORS
    }
    slower = pooled[FLAT]["seconds"] / pooled[INFORMATIVE]["seconds"]
    better = pooled[INFORMATIVE]["a second"] / pooled[FLAT]["a second"]
    verdict = "holds" if slower > 3 and better > 2 else "does not hold for ours"
    return (
        f"That the informative prior makes chains faster with {size} graphs (7.8 times) and more "
        f"effective (5 times) {verdict}: where the chains of both priors converged "
        f"({int((~failed).sum())} of {failed.size} sets), draws under the flat prior take "
        f"{slower:.1f} times as long, and the informative one has {better:.1f} times the effective "
        f"draws of theta a second. So few sets prove little; our chains start at a mode whose "
        f"curvature is known, which may be the reason, and was not tested."
    )


def _pooled(answers: list[Answer]) -> dict[str, float]:
    return {key: mean_of(answers, key) for key in ("seconds", "a second")}


def _failed(answers: list[Answer], exact: list[Answer], name: str) -> list[bool]:
    """Tell which chains missed the theta of `Exact`, or disagree with each other."""
    marks = []
    for answer, pair in zip(answers, exact, strict=False):
        mean, sd = pair[name]["theta"]
        marks.append(abs(answer["theta"] - mean) > 0.5 * sd or answer["R-hat"] > 1.05)
    return marks


def _describe_partial(partly: Pairs, pairs: Pairs) -> list[str]:
    says = []
    for size, answers in partly.items():
        full = pairs[size][: len(answers)]
        whole = column(full, INFORMATIVE, "NLL")
        point = mean_and_error(column(answers, POINT, "NLL") - whole)
        readout = mean_and_error(column(answers, READOUT, "NLL") - whole)
        share = 100 * (1 - readout[0] / point[0]) if point[0] else np.nan
        matters = point[0] > FAR * point[1] and point[0] > 0.01 * whole.mean()
        says.append(
            f"{size} training graphs: a point loses {_with_error(point, '.3f')} of NLL against a "
            f"posterior over everything, theta at a point with a posterior over the readout "
            f"{_with_error(readout, '.3f')}. "
            + (
                f"A posterior over the readout alone gains {share:.0f} % of what a full one gains."
                if matters
                else "So a posterior gains next to nothing here, in part or whole."
            )
        )
        brier = [mean_of(answers, name, "Brier x100") for name in (POINT, READOUT)]
        brier.append(mean_of(full, INFORMATIVE, "Brier x100"))
        if matters and brier == sorted(brier):
            says.append(
                f"The Brier score is the other way round ({', '.join(f'{x:.2f}' for x in brier)} "
                f"with a posterior over nothing, the readout, everything): the paper averages the "
                f"scores of draws instead of scoring the mean of draws, which counts uncertainty "
                f"as error."
            )
    says.append(
        "The paper's own figures on this are those of MIMO-E against MIMO (9.1 % of NLL), whose "
        "base was not trained to convergence: see the item on generalisation."
    )
    return says


def _describe_test(authors: bool, s: Graphs) -> str:
    whose = "the authors' test graphs" if authors else "test graphs of our own"
    return (
        f"Training sets are drawn from {s.pool} graphs of our own, and tested on {whose}; ± "
        "beside published figures is the standard deviation over training sets, of which the "
        "paper has one."
    )


def _rows(pairs: Pairs, ran: Ran, on_first: Answer) -> list[Row]:
    rows = []
    for size, answers in pairs.items():
        for name in PRIORS:
            published = ABLATION.get(size, {}).get(name)
            for k, score in enumerate(SCORES, 1):
                values = column(answers, name, score)
                first = on_first.get(str(size), {}).get(name, {}).get(score)
                note = "" if first is None else f"{_first(size)}: {first:.4g}"
                rows.append(
                    Row(
                        f"T = {size}, {name}, {score}",
                        float(values.mean()),
                        float(deviation(values)),
                        published and published[k],
                        note,
                    )
                )
        for name in PRIORS if size in ran else ():
            published = ABLATION.get(size, {}).get(name)
            for what, key, k in (
                (f"seconds of {PAPERS_DRAWS} draws", "seconds", SECONDS),
                ("effective draws of theta a second", "a second", EFFECTIVE),
            ):
                ours = _pooled(ran[size][name])[key]
                failed = _failed(ran[size][name], answers, name)
                note = "processor seconds without warm-up; another machine"
                note += f"; {sum(failed)} of {len(failed)} runs failed" if any(failed) else ""
                rows.append(
                    Row(f"T = {size}, {name}, {what}", ours, None, published and published[k], note)
                )
    return rows


def _first(size: int) -> str:
    return f"the authors' first {size} graphs" if size > 1 else "the authors' first graph"


def _differences(pairs: Pairs) -> Table:
    rows = [
        [
            size,
            len(answers),
            *(
                _with_error(_lost(answers, score), ".4f" if score == "ECE" else ".3f")
                for score in SCORES
            ),
            f"{_share(answers, 'NLL'):.1f} %",
            float(np.median(column(answers, INFORMATIVE, "seconds"))),
            float(np.median(column(answers, FLAT, "seconds"))),
        ]
        for size, answers in pairs.items()
    ]
    columns = ["T", "sets", *SCORES, "of NLL", "seconds, informative", "seconds, flat"]
    return Table(
        "Flat minus informative, paired, ± standard error; seconds of `Exact`", columns, rows
    )


def _chains(ran: Ran, pairs: Pairs) -> Table:
    rows = []
    for size, by_name in ran.items():
        for name in PRIORS:
            failed = _failed(by_name[name], pairs[size], name)
            for k, (answer, bad) in enumerate(zip(by_name[name], failed, strict=True)):
                rows.append(
                    [
                        size,
                        name,
                        k,
                        answer["gradients"],
                        1000 * answer["effective draws"]["theta"] / answer["gradients"],
                        answer["a second"],
                        answer["steps a draw"],
                        answer["R-hat"],
                        int(answer["divergences"]),
                        "yes" if bad else "",
                    ]
                )
    columns = ["T", "", "set", "gradients", "effective draws of theta per 1000", "a second"]
    columns += ["steps a draw", "R-hat", "divergences", "failed"]
    return Table("NUTS, four chains; a second of one processor", columns, rows)


def _partial(partly: Pairs, pairs: Pairs) -> Table:
    rows = []
    for size, answers in partly.items():
        whole = [{ALL: pair[INFORMATIVE]} for pair in pairs[size][: len(answers)]]
        for name, entries in ((POINT, answers), (READOUT, answers), (ALL, whole)):
            rows.append([size, len(answers), name, *(mean_of(entries, name, x) for x in SCORES)])
    columns = ["T", "sets", "", *SCORES]
    return Table("What has a posterior, informative prior: means over sets", columns, rows)


def _figure(pairs: Pairs, partly: Pairs) -> Figure:
    axes = axes_for(None, 1, 3, (12, 3.9))
    sizes = sorted(pairs)
    x = np.arange(len(sizes))
    for name, colour, shift in ((INFORMATIVE, BLUE, -0.08), (FLAT, ORANGE, 0.08)):
        values = [mean_and_error(column(pairs[size], name, "NLL")) for size in sizes]
        mean, error = np.array(values).T
        label = "informative" if name == INFORMATIVE else "flat"
        axes[0].errorbar(x + shift, mean, error, fmt="o-", color=colour, markersize=5, label=label)
        known = [k for k, size in enumerate(sizes) if size in ABLATION]
        at = [ABLATION[sizes[k]][name][1] for k in known]
        axes[0].plot(
            x[known] + shift,
            at,
            "D",
            color=colour,
            markerfacecolor="none",
            label=f"{label}, published",
        )
    axes[0].set(ylabel="test NLL", xlabel="training graphs")
    rng = np.random.default_rng(0)
    for k, size in enumerate(sizes):
        lost = _losses(pairs[size])
        spread = rng.uniform(-0.12, 0.12, lost.size)
        first = k == 0
        axes[1].plot(
            k + spread,
            lost,
            "o",
            color=PALE,
            markersize=4,
            label="a training set" if first else None,
        )
        mean, error = mean_and_error(lost)
        axes[1].errorbar(
            k, mean, error, fmt="s", color=INK, capsize=4,
            label="mean ± standard error" if first else None,
        )  # fmt: skip
    axes[1].axhline(0, color=GREY, linewidth=1, linestyle=":")
    axes[1].set(ylabel="NLL lost by the flat prior", xlabel="training graphs")
    for axis in axes[:2]:
        axis.set_xticks(x, [str(size) for size in sizes])
    shown = sorted(partly)
    for name, colour, shift in ((POINT, ORANGE, -0.12), (READOUT, GREEN, 0.12)):
        losses = [
            mean_and_error(column(partly[size], name, "NLL") - whole)
            for size in shown
            for whole in [column(pairs[size][: len(partly[size])], INFORMATIVE, "NLL")]
        ]
        mean, error = np.array(losses).T
        axes[2].errorbar(
            np.arange(len(shown)) + shift, mean, error, fmt="o", color=colour, capsize=4,
            label=f"posterior over: {name}",
        )  # fmt: skip
    axes[2].axhline(0, color=GREY, linewidth=1, linestyle=":")
    axes[2].set(ylabel="NLL lost against a full posterior", xlabel="training graphs")
    axes[2].set_xticks(range(len(shown)), [str(size) for size in shown])
    axes[2].set_xlim(-0.5, len(shown) - 0.5)
    for axis, columns in zip(axes, (2, 1, 1), strict=True):
        tidy(axis)
        legend_above(axis, columns)
    return axes[0].figure
