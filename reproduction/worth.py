"""Item 13: the value of belief where one may abstain, or where mistakes have a price."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebelief import SmoothGraph, metrics
from edgebelief.belief import Predictions, decide, predict
from edgebelief.data import GraphDataset, digits
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, PALE, RED, SKY, axes_for, tidy

from .averages import column, mean_and_error, mean_of, standard_error
from .correlation import BELIEF, POINT, fit_contestant
from .drawing import legend_of_figure
from .item import Answer, Outcome, Table, Work
from .models import ADDITIVE, PAPERS_GRAPHS, labels_and_means, log_score
from .rivals import RIVALS, Problem, as_predictions, from_signals, labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Beyond the paper: what belief is worth"
CLAIM = (
    "The paper's case for belief is that it can be acted on. It shows calibration and "
    "correlation; this item is about decisions: which pairs to leave open, and what mistakes cost."
)
BOOTSTRAP = "bootstrap"
# The cost of a false edge, and of a missed one.
COSTS = ((1.0, 5.0), (5.0, 1.0))
COVERAGE = np.linspace(0.02, 1, 50)


@dataclass(frozen=True)
class Worth:
    """The numbers of graphs, and of draws of them (by the seeds 0, 1, ...)."""

    n_train: int = 20
    n_test: int = 50
    n_nodes: int = 20
    n_signals: int = 100
    n_digits: int = 3
    """Numbers of training and of test graphs of images."""
    per_class: int = 25
    draws: int = 3
    resamples: int = 50
    """Resamples of the signals by the bootstrap."""
    n_draws: int = 2000
    """Draws of the additive readout."""
    depth: int = 200


FULL = Worth()
SMALL = Worth(6, 6, 8, 50, 1, 4, 1, 8, 60, 10)


def many_training_graphs(draw: int, s: Worth) -> Problem:
    """Draw graphs of RG(1/3), with distances from finitely many signals."""
    return from_signals(PAPERS_GRAPHS, draw, s.n_train, s.n_test, s.n_nodes, s.n_signals)


def one_training_graph(draw: int, s: Worth) -> Problem:
    """Draw the same graphs, with only one to learn from."""
    problem = many_training_graphs(draw, s)
    return problem._replace(train=problem.train[:1])


def images(draw: int, s: Worth) -> Problem:
    """Draw graphs of scikit-learn's ones and twos; the signals are the pixels."""
    from sklearn.datasets import load_digits

    pixels = load_digits().data

    def signals(data: GraphDataset) -> list[np.ndarray]:
        rows = [[int(name.split(":")[1]) for name in record.names] for record in data]
        return [pixels[images].T for images in rows]

    train, test = digits(draw, s.n_digits, s.n_digits, per_class=s.per_class)
    return Problem(train, test, (signals(train), signals(test)))


PROBLEMS: dict[str, Callable[[int, Worth], Problem]] = {
    "RG(1/3), finite signals": many_training_graphs,
    "RG(1/3), finite signals, one training graph": one_training_graph,
    "scikit-learn digits": images,
}


def by_bootstrap(problem: Problem, seed: int, resamples: int) -> np.ndarray:
    """Return how often resamples of the signals join each pair, at the density of training."""
    assert problem.signals is not None
    density = float(labels(problem.train).mean())
    parts = []
    for record, x in zip(problem.test, problem.signals[1], strict=True):
        model = SmoothGraph(
            density=density, preprocess=None, bootstrap=resamples, random_state=seed
        ).fit(x)
        i, j = record.support.endpoints
        # A pair that no resample joins is not impossible: half a count to either side.
        counts = resamples * np.asarray(model.edge_frequencies_)[i, j]
        parts.append((counts + 0.5) / (resamples + 1))
    return np.concatenate(parts)


ALL_RIVALS = (*RIVALS, BOOTSTRAP)
EVERYONE = (BELIEF, ADDITIVE, POINT, *ALL_RIVALS)


def contend(who: str, where: str, draw: int, s: Worth) -> Answer:
    """Return the scores of one contestant on one draw."""
    problem = PROBLEMS[where](draw, s)
    if who in ALL_RIVALS:
        with warnings.catch_warnings():
            # Solvers of scikit-learn warn at the ends of their regularisation paths.
            warnings.simplefilter("ignore")
            if who == BOOTSTRAP:
                p = by_bootstrap(problem, draw, s.resamples)
            else:
                p = RIVALS[who](problem, draw)
        return _scores(as_predictions(problem.test, p))
    posterior = fit_contestant(who, problem.train, s.depth, draw, s.n_draws)
    return _scores(predict(posterior, problem.test))


def _scores(predictions: Predictions) -> Answer:
    a, p = labels_and_means(predictions)
    risk = risks(a, p)
    answer = {
        "NLL": float(metrics.nll(predictions)),
        "NLL, pairs apart": -log_score(a, p) / len(predictions),
        "error %": 100 * float(metrics.error(predictions)),
        "area": 100 * float(risk.mean()),
        "risk": 100 * risk[np.ceil(COVERAGE * a.size).astype(int) - 1],
    }
    for cost in COSTS:
        answer[_name(cost)] = _price(a, decide(p, cost=cost), cost)
        answer[f"{_name(cost)}, at 0.5"] = _price(a, decide(p), cost)
    # The cost of knowing nothing but the density: the cheaper of no edge and all edges.
    answer["nothing"] = {
        _name(cost): min(_price(a, np.full(a.size, x), cost) for x in (False, True))
        for cost in COSTS
    }
    return answer


def risks(a: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the share of errors among the 1, 2, ... most certain pairs.

    It is the mean over the order of pairs that are equally certain.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.worth import risks
    >>> risks(np.array([1, 0, 1, 0]), np.array([0.9, 0.2, 0.2, 0.45])).tolist()
    [0.0, 0.25, 0.3333333333333333, 0.25]
    """
    wrong = ((p > 0.5) != (a > 0)).astype(float)
    levels, group = np.unique(-np.maximum(p, 1 - p).round(12), return_inverse=True)
    mean = np.bincount(group, wrong, levels.size) / np.bincount(group, minlength=levels.size)
    return np.cumsum(mean[np.sort(group)]) / np.arange(1, a.size + 1)


def _price(a: np.ndarray, chosen: np.ndarray, cost: tuple[float, float]) -> float:
    """Return the mean cost of 100 pairs."""
    extra, missed = cost
    return 100 * float(np.mean(extra * (chosen & (a == 0)) + missed * (~chosen & (a == 1))))


def _name(cost: tuple[float, float]) -> str:
    return f"cost {cost[0]:g}:{cost[1]:g}"


def run(work: Work) -> Outcome:
    """Fit, compare, and describe the results."""
    s = work.settings(FULL, SMALL)
    results = {
        where: {
            who: [work.once(contend, who, where, draw, s) for draw in range(s.draws)]
            for who in EVERYONE
        }
        for where in work.settings(list(PROBLEMS), ["scikit-learn digits"])
    }
    return Outcome(
        [
            _describe_abstaining(results),
            _describe_costs(results),
            *_describe_exceptions(results),
            _describe_posterior(results),
            _describe_bootstrap(results),
            _describe_rivals(results),
        ],
        [],
        [_table(where, results[where], s) for where in results],
        {
            "error among the pairs that are kept, the least certain left out": _curves(results),
            "mean cost of 100 pairs, decided by cost and at one half": _prices(results),
        },
    )


# The answers of `contend` on all draws, by problem and contestant.
ByContestant = dict[str, list[Answer]]
Results = dict[str, ByContestant]


def _gap(a: list[Answer], b: list[Answer], key: str) -> str:
    """Return how much lower the first is, draw by draw, with its standard error."""
    gap, error = mean_and_error(column(b, key) - column(a, key))
    return f"{gap:.3g} ± {error:.2g}"


def _less(a: list[Answer], b: list[Answer]) -> str:
    """Return how much less NLL the first has, or how much more."""
    lower = mean_of(a, "NLL") <= mean_of(b, "NLL")
    return f"{_gap(a, b, 'NLL')} less" if lower else f"{_gap(b, a, 'NLL')} more"


def _describe_abstaining(results: Results) -> str:
    words = []
    for where, who in results.items():
        risk = column(who[ADDITIVE], "risk").mean(0)
        full, most, half = (risk[np.argmin(np.abs(COVERAGE - c))] for c in (1.0, 0.9, 0.5))
        words.append(f"on {where} {full:.2f}, {most:.2f} and {half:.2f} %")
    return (
        "Belief tells where it errs. The error among all pairs, among the 90 % that are the most "
        "certain and among half of them, by the additive readout: " + "; ".join(words) + "."
    )


def _describe_costs(results: Results) -> str:
    words = []
    for where, who in results.items():
        parts = [
            f"{mean_of(who[POINT], f'{_name(cost)}, at 0.5'):.3g}, "
            f"{mean_of(who[POINT], _name(cost)):.3g} and {mean_of(who[ADDITIVE], _name(cost)):.3g} "
            f"at {_name(cost).removeprefix('cost ')}"
            for cost in COSTS
        ]
        words.append(f"on {where} {', '.join(parts)}")
    return (
        "Where a false edge and a missed one have unequal prices, one half is the wrong "
        "threshold. The mean cost of 100 pairs by the paper's model as a point estimate cut at "
        "0.5, by the same cut by cost, and by the additive readout's belief cut by cost: "
        + "; ".join(words)
        + "."
    )


def _describe_exceptions(results: Results) -> list[str]:
    """Describe where a threshold by cost is worse than one half for our own models."""
    says = []
    for where, who in results.items():
        for name in (BELIEF, ADDITIVE):
            for cost in map(_name, COSTS):
                wise, half = (mean_of(who[name], key) for key in (cost, f"{cost}, at 0.5"))
                if wise > half:
                    text = (
                        f"Not so for {name} on {where} at {cost.removeprefix('cost ')}: "
                        f"{wise:.3g} by cost, {half:.3g} at 0.5."
                    )
                    apart = [mean_of(who[x], "NLL, pairs apart") for x in (name, BELIEF)]
                    if name == ADDITIVE and apart[0] > apart[1]:
                        text += (
                            f" Its probabilities, pair by pair, are not yet calibrated there (NLL "
                            f"with pairs apart {apart[0]:.3g}, the paper's readout {apart[1]:.3g}, "
                            f"though for whole graphs it is {mean_of(who[name], 'NLL'):.3g} and "
                            f"{mean_of(who[BELIEF], 'NLL'):.3g}): curves learned from so few "
                            f"labels give pairs unlike those of the training a probability near "
                            f"one half, and most of these are no edges. With few labels, decide by "
                            f"the paper's readout."
                        )
                    says.append(text)
    return says


def _describe_posterior(results: Results) -> str:
    words = []
    cut = gained = 0.0
    for where, who in results.items():
        for cost in map(_name, COSTS):
            cut += mean_of(who[POINT], f"{cost}, at 0.5") - mean_of(who[POINT], cost)
            gained += mean_of(who[POINT], cost) - mean_of(who[BELIEF], cost)
        costs = " and ".join(
            f"{_gap(who[BELIEF], who[POINT], name)} ({name.removeprefix('cost ')})"
            for name in map(_name, COSTS)
        )
        words.append(f"on {where} {_gap(who[BELIEF], who[POINT], 'NLL')} of NLL, {costs} of cost")
    share = "Most of" if cut > 2 * max(gained, 0.0) else "Not most of"
    return (
        f"{share} the saving is due to the probability and the threshold, not to the posterior. "
        f"The paper's model at its maximum minus the same averaged over its posterior (above 0: "
        f"averaging is better; ± standard error over draws): " + "; ".join(words) + "."
    )


def _describe_bootstrap(results: Results) -> str:
    words = []
    for where, who in results.items():
        frequency, belief = who[BOOTSTRAP], who[BELIEF]
        words.append(
            f"on {where} NLL {mean_of(frequency, 'NLL'):.3g} for {mean_of(belief, 'NLL'):.3g}, "
            f"error {mean_of(frequency, 'error %'):.1f} % for {mean_of(belief, 'error %'):.1f} %"
        )
    worse = all(
        mean_of(who[BOOTSTRAP], "NLL") > mean_of(who[BELIEF], "NLL") for who in results.values()
    )
    return (
        "How often an edge recurs when signals are resampled "
        + ("is not" if worse else "is not always a worse estimate of")
        + " how likely it is. Frequencies by the bootstrap of the same convex problem, at the "
        "density of the training graphs, against the paper's belief: "
        + "; ".join(words)
        + ". A stable estimate can be wrong in a stable way; only labels tell."
    )


def _lowest(who: ByContestant, key: str) -> str:
    """Return the rival with the lowest mean."""
    return min(ALL_RIVALS, key=lambda name: mean_of(who[name], key))


def _describe_rivals(results: Results) -> str:
    words = []
    columns = ("NLL", "NLL, pairs apart", "error %", "area", *map(_name, COSTS))
    for where, who in results.items():
        rival = _lowest(who, "NLL")
        ahead = [
            f"{name} ({key.replace('area', 'risk-coverage')})"
            for key in columns
            for name in [_lowest(who, key)]
            if mean_of(who[name], key) < min(mean_of(who[ours], key) for ours in (BELIEF, ADDITIVE))
        ]
        text = (
            f"On {where} the best rival by NLL is {rival}, at {mean_of(who[rival], 'NLL'):.3g}; "
            f"the additive readout has {_less(who[ADDITIVE], who[rival])}, the paper's "
            f"{_less(who[BELIEF], who[rival])}"
        )
        text += f"; ahead of both of ours: {', '.join(ahead)}" if ahead else ""
        words.append(text)
    return ". ".join(words) + "."


_KEYS = ("NLL", "NLL, pairs apart", "error %", "area")


def _table(where: str, who: ByContestant, s: Worth) -> Table:
    keys = [*_KEYS, *(key for cost in COSTS for key in (_name(cost), f"{_name(cost)}, at 0.5"))]
    rows: list[list[object]] = []
    for name in EVERYONE:
        values = np.array([[x[key] for key in keys] for x in who[name]])
        spread = standard_error(values)
        cells = [
            f"{m:.3g} ± {e:.2g}" if k < 4 else f"{m:.3g}"
            for k, (m, e) in enumerate(zip(values.mean(0), spread, strict=True))
        ]
        rows.append([name, *cells])
    nothing = [mean_of(who[BELIEF], "nothing", key) for key in map(_name, COSTS)]
    priced = [x for value in nothing for x in (f"{value:.3g}", None)]
    rows.append(["no edges, or all", *(None for _ in _KEYS), *priced])
    columns = ["", "NLL", "NLL, pairs apart", "error %", "area under risk-coverage, %"]
    columns += [key.replace(", at", " cut at") for key in keys[4:]]
    return Table(f"{where} ({s.draws} draws, ± standard error; costs of 100 pairs)", columns, rows)


_LOOKS = {
    BELIEF: (SKY, "-"), ADDITIVE: (BLUE, "-"), POINT: (INK, ":"), "boosting": (ORANGE, "-"),
    "logistic": (RED, "-"), "distance": (PALE, "-"), "kNN graph": (PALE, "--"),
    BOOTSTRAP: (GREEN, "-"),
}  # fmt: skip


def _curves(results: Results) -> Figure:
    axes = axes_for(None, 1, len(results), (4.2 * len(results), 4.4))
    for axis, (where, who) in zip(axes, results.items(), strict=True):
        for name, (colour, style) in _LOOKS.items():
            risk = column(who[name], "risk").mean(0)
            axis.plot(COVERAGE, risk, color=colour, linestyle=style, linewidth=1.8, label=name)
        axis.set(xlabel="share of pairs that are kept", ylim=(0, None))
        axis.set_title(where.replace(", one", ",\none"), fontsize=10)
        tidy(axis)
    axes[0].set_ylabel("error % among them")
    legend_of_figure(axes[0], 4)
    return axes[0].figure


def _prices(results: Results) -> Figure:
    axes = axes_for(None, 1, len(results), (4.2 * len(results), 4.4), sharey=True)
    y = -np.arange(len(EVERYONE))
    for axis, (where, who) in zip(axes, results.items(), strict=True):
        for cost, colour, shift in zip(COSTS, (BLUE, ORANGE), (0.14, -0.14), strict=True):
            wise = [mean_of(who[name], _name(cost)) for name in EVERYONE]
            half = [mean_of(who[name], f"{_name(cost)}, at 0.5") for name in EVERYONE]
            words = _name(cost).removeprefix("cost ")
            axis.hlines(y + shift, wise, half, color=colour, linewidth=1.5, alpha=0.5)
            axis.plot(wise, y + shift, "o", color=colour, markersize=6, label=f"{words}, by cost")
            axis.plot(half, y + shift, "|", color=colour, markersize=11, markeredgewidth=2,
                      label=f"{words}, at 0.5")  # fmt: skip
        axis.set_xlim(0, None)
        axis.set_xlabel("mean cost of 100 pairs")
        axis.set_title(where.replace(", one", ",\none"), fontsize=10)
        axis.set_yticks(y, EVERYONE)
        tidy(axis)
    legend_of_figure(axes[0], 4)
    return axes[0].figure
