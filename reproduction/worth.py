"""Item 13: what belief is worth, to someone who may abstain or whose mistakes have a price."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from edgebelief import metrics
from edgebelief.belief.decide import decide
from edgebelief.belief.predict import EdgeBelief, Predictions, predict
from edgebelief.data import (
    GraphDataset,
    RandomGeometric,
    adjacency_of,
    digits,
    distances,
    smooth_signals,
)
from edgebelief.estimators import SmoothGraph
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, PALE, RED, SKY, axes_for, tidy
from edgebelief.readouts.features import OF_DISTANCES, pair_features

from .doubt import BELIEF, POINT, plug_in
from .item import Outcome, Table, Work
from .models import ADDITIVE, fitted

TITLE = "Beyond the paper: what belief is worth"
CLAIM = (
    "The paper's case for belief is that it can be acted on. It shows calibration and "
    "correlation; here are decisions: whom to ask about which pairs, and what mistakes cost."
)
BOOTSTRAP = "bootstrap"
# What an edge too many costs, and what a missed one does.
COSTS = ((1.0, 5.0), (5.0, 1.0))
COVERAGE = np.linspace(0.02, 1, 50)


@dataclass(frozen=True)
class Worth:
    """Graphs and draws of them (by the seeds 0, 1, ...)."""

    n_train: int = 20
    n_test: int = 50
    n_nodes: int = 20
    n_signals: int = 100
    n_digits: int = 3
    """Graphs of 50 images to train on, and to test on."""
    per_class: int = 25
    draws: int = 3
    resamples: int = 50
    """Of the signals, by the bootstrap."""
    n_draws: int = 2000
    """Of the additive readout."""
    depth: int = 200


FULL = Worth()
SMALL = Worth(6, 6, 8, 50, 1, 4, 1, 8, 60, 10)


class Problem(NamedTuple):
    """Graphs to learn from and to be judged on, and the signals behind the latter."""

    train: GraphDataset
    test: GraphDataset
    signals: list[np.ndarray]


def many(draw: int, s: Worth) -> Problem:
    """RG(1/3) with distances from some signals."""
    n = s.n_train + s.n_test
    graphs = [RandomGeometric(0.32).sample(1000 * draw + t, s.n_nodes) for t in range(n)]
    signals = [smooth_signals(1000 * draw + t, g, s.n_signals) for t, g in enumerate(graphs)]
    data = GraphDataset(
        [distances(x) for x in signals], [adjacency_of(g) for g in graphs], n_signals=s.n_signals
    )
    return Problem(data[: s.n_train], data[s.n_train :], signals[s.n_train :])


def one(draw: int, s: Worth) -> Problem:
    """The same, with one graph to learn from."""
    problem = many(draw, s)
    return problem._replace(train=problem.train[:1])


def images(draw: int, s: Worth) -> Problem:
    """scikit-learn's ones and twos; the signals are the pixels."""
    from sklearn.datasets import load_digits

    pixels = load_digits().data
    train, test = digits(draw, s.n_digits, s.n_digits, per_class=s.per_class)
    places = [[int(name.split(":")[1]) for name in record.names] for record in test]
    return Problem(train, test, [pixels[nodes].T for nodes in places])


PROBLEMS: dict[str, Callable[[int, Worth], Problem]] = {
    "RG(1/3), finite signals": many,
    "RG(1/3), finite signals, one training graph": one,
    "scikit-learn digits": images,
}


# The rivals: from a problem to a probability of each pair of the test graphs.


def _distance(data: GraphDataset) -> np.ndarray:
    return np.concatenate([record.e for record in data])[:, None]


def _features(data: GraphDataset) -> np.ndarray:
    parts = [pair_features(r.e[None], len(r.names), OF_DISTANCES)[0] for r in data]
    return np.concatenate(parts)


def _classified(
    problem: Problem, features: Callable[[GraphDataset], np.ndarray], model: Any
) -> Any:
    labels = np.concatenate([record.a for record in problem.train])
    return model.fit(features(problem.train), labels).predict_proba(features(problem.test))[:, 1]


def _by_distance(problem: Problem, seed: int, s: Worth) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=2000))
    return _classified(problem, _distance, model)


def _by_logistic(problem: Problem, seed: int, s: Worth) -> np.ndarray:
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegressionCV(
        Cs=np.logspace(-4, 4, 9), cv=5, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0,),
        use_legacy_attributes=False,
    )  # fmt: skip
    return _classified(problem, _features, make_pipeline(StandardScaler(), model))


def _by_boosting(problem: Problem, seed: int, s: Worth) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(random_state=seed, early_stopping=True)
    return _classified(problem, _features, model)


def _smaller_rank(data: GraphDataset) -> np.ndarray:
    """How many are nearer, seen from that end of a pair from which there are fewer."""
    parts = []
    for record in data:
        matrix = record.distance_matrix()
        np.fill_diagonal(matrix, -np.inf)
        rank = np.argsort(np.argsort(matrix, 1), 1)
        i, j = record.support.endpoints
        parts.append(np.minimum(rank[i, j], rank[j, i]))
    return np.concatenate(parts)


def _by_neighbours(problem: Problem, seed: int, s: Worth) -> np.ndarray:
    """The graph of k nearest neighbours: k and the two frequencies from the training labels."""
    rank, a = _smaller_rank(problem.train), np.concatenate([r.a for r in problem.train])

    def frequencies(k: int) -> np.ndarray:
        sides = (rank > k, rank <= k)
        return np.array([(a[side].sum() + 0.5) / (side.sum() + 1) for side in sides])

    def likelihood(k: int) -> float:
        p = frequencies(k)[(rank <= k) * 1]
        return float(np.log(np.where(a > 0, p, 1 - p)).sum())

    best = max(range(1, int(rank.max()) + 1), key=likelihood)
    return frequencies(best)[(_smaller_rank(problem.test) <= best) * 1]


def _by_bootstrap(problem: Problem, seed: int, s: Worth) -> np.ndarray:
    """In what share of resamples of the signals each pair is joined; density as in training."""
    density = float(np.concatenate([record.a for record in problem.train]).mean())
    parts = []
    for record, x in zip(problem.test, problem.signals, strict=True):
        model = SmoothGraph(density=density, bootstrap=s.resamples, random_state=seed).fit(x)
        i, j = record.support.endpoints
        # None of the resamples is no proof: half a count to either side.
        counts = s.resamples * np.asarray(model.edge_frequencies_)[i, j]
        parts.append((counts + 0.5) / (s.resamples + 1))
    return np.concatenate(parts)


RIVALS: dict[str, Callable[[Problem, int, Worth], np.ndarray]] = {
    "boosting": _by_boosting,
    "logistic": _by_logistic,
    "distance": _by_distance,
    "kNN graph": _by_neighbours,
    BOOTSTRAP: _by_bootstrap,
}
EVERYONE = (BELIEF, ADDITIVE, POINT, *RIVALS)


def contend(who: str, where: str, draw: int, s: Worth) -> dict[str, Any]:
    """The scores of one contestant on one draw."""
    problem = PROBLEMS[where](draw, s)
    if who in RIVALS:
        with warnings.catch_warnings():
            # Of solvers at the ends of their paths.
            warnings.simplefilter("ignore")
            p = RIVALS[who](problem, draw, s)
        found = _predictions(problem.test, p)
    elif who == POINT:
        found = predict(plug_in(problem.train, s.depth, draw), problem.test)
    else:
        name = "DPG" if who == BELIEF else who
        found = predict(fitted(name, problem.train, s.depth, draw, s.n_draws), problem.test)
    return _scores(found)


def _predictions(data: GraphDataset, p: np.ndarray) -> Predictions:
    """Of probabilities whose pairs are independent."""
    ends = np.cumsum([record.e.size for record in data])[:-1]
    beliefs = [EdgeBelief.of(np.clip(some, 1e-6, 1 - 1e-6)) for some in np.split(p, ends)]
    logs = [_log_score(r.a, b.mean) for r, b in zip(data, beliefs, strict=True)]
    return Predictions(data, beliefs, np.array(logs))


def _log_score(a: np.ndarray, p: np.ndarray) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(np.log(np.where(a > 0, p, 1 - p)).sum())


def _scores(found: Predictions) -> dict[str, Any]:
    a = np.concatenate([record.a for record in found.data])
    p = np.concatenate([belief.mean for belief in found])
    risk = risks(a, p)
    answer = {
        "NLL": float(metrics.nll(found)),
        "NLL, pairs apart": -_log_score(a, p) / len(found),
        "error %": 100 * float(metrics.error(found)),
        "area": 100 * float(risk.mean()),
        "risk": 100 * risk[np.ceil(COVERAGE * a.size).astype(int) - 1],
    }
    for cost in COSTS:
        answer[_name(cost)] = _price(a, decide(p, cost=cost), cost)
        answer[f"{_name(cost)}, at 0.5"] = _price(a, decide(p), cost)
    # What it costs to know nothing but the density: the cheaper of no edge and all edges.
    answer["nothing"] = {
        _name(cost): min(_price(a, np.full(a.size, x), cost) for x in (False, True))
        for cost in COSTS
    }
    return answer


def risks(a: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The share of errors among the 1, 2, ... pairs that are the most certain.

    Pairs of equal certainty come in random order: the mean over it.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.worth import risks
    >>> risks(np.array([1, 0, 1, 0]), np.array([0.9, 0.2, 0.2, 0.45])).tolist()
    [0.0, 0.25, 0.3333333333333333, 0.25]
    """
    wrong = ((p > 0.5) != (a > 0)).astype(float)
    doubt, group = np.unique(-np.maximum(p, 1 - p).round(12), return_inverse=True)
    mean = np.bincount(group, wrong, doubt.size) / np.bincount(group, minlength=doubt.size)
    return np.cumsum(mean[np.sort(group)]) / np.arange(1, a.size + 1)


def _price(a: np.ndarray, chosen: np.ndarray, cost: tuple[float, float]) -> float:
    """Mean cost of 100 pairs."""
    extra, missed = cost
    return 100 * float(np.mean(extra * (chosen & (a == 0)) + missed * (~chosen & (a == 1))))


def _name(cost: tuple[float, float]) -> str:
    return f"cost {cost[0]:g}:{cost[1]:g}"


def run(work: Work) -> Outcome:
    """Fit, compare, and say what follows."""
    s = work.settings(FULL, SMALL)
    found = {
        where: {
            who: [work.once(contend, who, where, draw, s) for draw in range(s.draws)]
            for who in EVERYONE
        }
        for where in work.settings(list(PROBLEMS), ["scikit-learn digits"])
    }
    return Outcome(
        [
            _of_abstaining(found),
            _of_costs(found),
            *_of_exceptions(found),
            _of_posterior(found),
            _of_bootstrap(found),
            _of_rivals(found),
        ],
        [],
        [_table(where, found[where], s) for where in found],
        {
            "error among the pairs that are kept, the least certain left out": _curves(found),
            "mean cost of 100 pairs, decided by cost and at one half": _prices(found),
        },
    )


def _mean(some: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([x[key] for x in some]))


def _error(values: np.ndarray) -> Any:
    """Standard error of the mean over draws; of one draw nobody knows."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return values.std(0, ddof=1) / np.sqrt(len(values))


def _gap(a: list[dict[str, Any]], b: list[dict[str, Any]], key: str) -> str:
    """How much lower the first is, paired, with its standard error."""
    gap = np.array([y[key] - x[key] for x, y in zip(a, b, strict=True)])
    return f"{gap.mean():.3g} ± {_error(gap):.2g}"


def _less(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> str:
    """How much less NLL the first has, or more."""
    lower = _mean(a, "NLL") <= _mean(b, "NLL")
    return f"{_gap(a, b, 'NLL')} less" if lower else f"{_gap(b, a, 'NLL')} more"


def _of_abstaining(found: dict[str, Any]) -> str:
    words = []
    for where, who in found.items():
        risk = np.mean([x["risk"] for x in who[ADDITIVE]], 0)
        full, most, half = (risk[np.argmin(np.abs(COVERAGE - c))] for c in (1.0, 0.9, 0.5))
        words.append(f"on {where} {full:.2f}, {most:.2f} and {half:.2f} %")
    return (
        "Belief knows where it errs. The error among all pairs, among the 90 % that are the most "
        "certain and among half of them, by the additive readout: " + "; ".join(words) + "."
    )


def _of_costs(found: dict[str, Any]) -> str:
    words = []
    for where, who in found.items():
        parts = [
            f"{_mean(who[POINT], f'{_name(cost)}, at 0.5'):.3g}, "
            f"{_mean(who[POINT], _name(cost)):.3g} and {_mean(who[ADDITIVE], _name(cost)):.3g} at "
            f"{_name(cost).removeprefix('cost ')}"
            for cost in COSTS
        ]
        words.append(f"on {where} {', '.join(parts)}")
    return (
        "Where an edge too many and a missed one have unequal prices, one half is the wrong "
        "threshold. The mean cost of 100 pairs by the paper's model as a point estimate cut at "
        "0.5, by the same cut by cost, and by the additive readout's belief cut by cost: "
        + "; ".join(words)
        + "."
    )


def _of_exceptions(found: dict[str, Any]) -> list[str]:
    """Where our own belief, cut by cost, costs more than cut at one half."""
    says = []
    for where, who in found.items():
        for name in (BELIEF, ADDITIVE):
            for cost in map(_name, COSTS):
                wise, half = (_mean(who[name], key) for key in (cost, f"{cost}, at 0.5"))
                if wise > half:
                    text = (
                        f"Not so for {name} on {where} at {cost.removeprefix('cost ')}: "
                        f"{wise:.3g} by cost, {half:.3g} at 0.5."
                    )
                    apart = [_mean(who[x], "NLL, pairs apart") for x in (name, BELIEF)]
                    if name == ADDITIVE and apart[0] > apart[1]:
                        text += (
                            f" Its probabilities, pair by pair, are not yet calibrated there (NLL "
                            f"with pairs apart {apart[0]:.3g}, the paper's readout {apart[1]:.3g}, "
                            f"though for whole graphs it is {_mean(who[name], 'NLL'):.3g} and "
                            f"{_mean(who[BELIEF], 'NLL'):.3g}): curves learned from so few labels "
                            f"leave pairs unlike those of the training half open, and most of "
                            f"these are no edges. With few labels decide by the paper's readout."
                        )
                    says.append(text)
    return says


def _of_posterior(found: dict[str, Any]) -> str:
    words = []
    cut = gained = 0.0
    for where, who in found.items():
        for cost in map(_name, COSTS):
            cut += _mean(who[POINT], f"{cost}, at 0.5") - _mean(who[POINT], cost)
            gained += _mean(who[POINT], cost) - _mean(who[BELIEF], cost)
        costs = " and ".join(
            f"{_gap(who[BELIEF], who[POINT], name)} ({name.removeprefix('cost ')})"
            for name in map(_name, COSTS)
        )
        words.append(f"on {where} {_gap(who[BELIEF], who[POINT], 'NLL')} of NLL, {costs} of cost")
    share = "Most of" if cut > 2 * max(gained, 0.0) else "Not most of"
    return (
        f"{share} the saving is the probability and the cut, not the posterior. The paper's model "
        f"at its maximum less the same averaged over its posterior (above 0: averaging is better; "
        f"± standard error over draws): " + "; ".join(words) + "."
    )


def _of_bootstrap(found: dict[str, Any]) -> str:
    words = []
    for where, who in found.items():
        frequency, belief = who[BOOTSTRAP], who[BELIEF]
        words.append(
            f"on {where} NLL {_mean(frequency, 'NLL'):.3g} for {_mean(belief, 'NLL'):.3g}, error "
            f"{_mean(frequency, 'error %'):.1f} % for {_mean(belief, 'error %'):.1f} %"
        )
    worse = all(_mean(who[BOOTSTRAP], "NLL") > _mean(who[BELIEF], "NLL") for who in found.values())
    return (
        "How often an edge comes back when signals are resampled "
        + ("is not" if worse else "is not always a worse guess at")
        + " how likely it is. Frequencies by the bootstrap of the same convex problem, at the "
        "density of the training graphs, against the paper's belief: "
        + "; ".join(words)
        + ". A steady estimate can be steadily wrong; only labels tell."
    )


def _of_rivals(found: dict[str, Any]) -> str:
    words = []
    columns = ("NLL", "NLL, pairs apart", "error %", "area", *map(_name, COSTS))
    for where, who in found.items():
        rival = min(RIVALS, key=lambda name: _mean(who[name], "NLL"))
        ahead = [
            f"{name} ({key.replace('area', 'risk-coverage')})"
            for key in columns
            for name in [min(RIVALS, key=lambda name, key=key: _mean(who[name], key))]  # type: ignore[misc]
            if _mean(who[name], key) < min(_mean(who[own], key) for own in (BELIEF, ADDITIVE))
        ]
        text = (
            f"On {where} the best rival by NLL is {rival}, at {_mean(who[rival], 'NLL'):.3g}; the "
            f"additive readout has {_less(who[ADDITIVE], who[rival])}, the paper's "
            f"{_less(who[BELIEF], who[rival])}"
        )
        text += f"; ahead of both of ours: {', '.join(ahead)}" if ahead else ""
        words.append(text)
    return ". ".join(words) + "."


_KEYS = ("NLL", "NLL, pairs apart", "error %", "area")


def _table(where: str, who: dict[str, Any], s: Worth) -> Table:
    keys = [*_KEYS, *(key for cost in COSTS for key in (_name(cost), f"{_name(cost)}, at 0.5"))]
    rows: list[list[Any]] = []
    for name in EVERYONE:
        values = np.array([[x[key] for key in keys] for x in who[name]])
        spread = _error(values)
        cells = [
            f"{m:.3g} ± {e:.2g}" if k < 4 else f"{m:.3g}"
            for k, (m, e) in enumerate(zip(values.mean(0), spread, strict=True))
        ]
        rows.append([name, *cells])
    nothing = {
        key: float(np.mean([x["nothing"][key] for x in who[BELIEF]])) for key in map(_name, COSTS)
    }
    priced = [x for value in nothing.values() for x in (f"{value:.3g}", None)]
    rows.append(["no edges, or all", *(None for _ in _KEYS), *priced])
    columns = ["", "NLL", "NLL, pairs apart", "error %", "area under risk-coverage, %"]
    columns += [key.replace(", at", " cut at") for key in keys[4:]]
    return Table(f"{where} ({s.draws} draws, ± standard error; costs of 100 pairs)", columns, rows)


_LOOKS = {
    BELIEF: (SKY, "-"), ADDITIVE: (BLUE, "-"), POINT: (INK, ":"), "boosting": (ORANGE, "-"),
    "logistic": (RED, "-"), "distance": (PALE, "-"), "kNN graph": (PALE, "--"),
    BOOTSTRAP: (GREEN, "-"),
}  # fmt: skip


def _curves(found: dict[str, Any]) -> Any:
    axes = axes_for(None, 1, len(found), (4.2 * len(found), 4.4))
    for axis, (where, who) in zip(axes, found.items(), strict=True):
        for name, (colour, style) in _LOOKS.items():
            risk = np.mean([x["risk"] for x in who[name]], 0)
            axis.plot(COVERAGE, risk, color=colour, linestyle=style, linewidth=1.8, label=name)
        axis.set(xlabel="share of pairs that are kept", ylim=(0, None))
        axis.set_title(where.replace(", one", ",\none"), fontsize=10)
        tidy(axis)
    axes[0].set_ylabel("error % among them")
    axes[0].figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
    )
    return axes[0].figure


def _prices(found: dict[str, Any]) -> Any:
    axes = axes_for(None, 1, len(found), (4.2 * len(found), 4.4), sharey=True)
    y = -np.arange(len(EVERYONE))
    for axis, (where, who) in zip(axes, found.items(), strict=True):
        for cost, colour, shift in zip(COSTS, (BLUE, ORANGE), (0.14, -0.14), strict=True):
            wise = [_mean(who[name], _name(cost)) for name in EVERYONE]
            half = [_mean(who[name], f"{_name(cost)}, at 0.5") for name in EVERYONE]
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
    axes[0].figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
    )
    return axes[0].figure
