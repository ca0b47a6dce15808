"""Item 9: sectors of S&P 500 companies from the correlation of their returns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgebelief.belief.predict import EdgeBelief, predict
from edgebelief.data import sp500
from edgebelief.data.real import Split
from edgebelief.plots import EdgesDisplay
from edgebelief.plots.style import BLUE, INK, ORANGE, RED, axes_for, tidy

from .doubt import BELIEF, OVER, POINT, measured, plug_in
from .item import FAR, Outcome, Row, Table, Work
from .models import ADDITIVE, fitted
from .published import POSTERIORS, STOCKS_CORRELATION

TITLE = "S&P 500: sectors from returns"
CLAIM = (
    "82 companies of three sectors, one half to train on and one to test on: error and predictive "
    "sd correlate at 0.70 over all pairs, 0.70 over edges and 0.79 over non-edges."
)
# Returns that correlate more are those of two share classes of one company: the next pair of
# companies is at 0.91.
TWINS = 0.95
FILES = ("sp500_prices.csv", "sp500_sectors.csv", "sp500_split.json")
PUBLISHED = "published"


@dataclass(frozen=True)
class Stocks:
    """How many splits."""

    splits: int = 20
    """Half of each sector at random, by the seeds 0, 1, ..."""
    additive: int = 5
    """On so many of them, too."""
    n_draws: int = 4000
    """Of the additive readout."""
    depth: int = 200
    keep: int = 0
    """Companies of each sector and side; 0: all."""


FULL = Stocks()
SMALL = Stocks(splits=2, additive=1, n_draws=60, depth=20, keep=4)


def run(work: Work) -> Outcome:
    """Fit, compare, and say what follows."""
    s = work.settings(FULL, SMALL)
    folder = work.file(FILES[0]).parent
    for name in FILES[1:]:
        work.file(name)
    pairs = twins(folder)
    first = {
        name: work.once(fit, name, PUBLISHED, (), s, using=(folder,))
        for name in (BELIEF, POINT, ADDITIVE)
    }
    seeds = [str(k) for k in range(s.splits)]
    splits = {
        name: [work.once(fit, name, seed, (), s, using=(folder,)) for seed in seeds]
        for name in (BELIEF, POINT)
    }
    splits[ADDITIVE] = [
        work.once(fit, ADDITIVE, seed, (), s, using=(folder,)) for seed in seeds[: s.additive]
    ]
    # One share class of a company is enough: the second is left out of both graphs.
    second = tuple(later for _, later, _ in pairs)
    alone = {
        name: [
            work.once(fit, name, seed, second, s, using=(folder,)) for seed in (PUBLISHED, *seeds)
        ]
        for name in (BELIEF,)
    }
    return Outcome(
        [
            _of_published(first),
            _of_typical(first, splits),
            _of_point(first, splits),
            _of_twins(pairs, folder, first, splits, alone[BELIEF]),
            _of_additive(first, splits),
        ],
        _rows(first, splits),
        [_table(first, splits, alone[BELIEF])],
        {
            "the test graph of the published split": _matrices(first[BELIEF], folder, s),
            "correlation of error and sd over random splits": _spread(first, splits),
        },
    )


def twins(folder: Path) -> list[tuple[str, str, float]]:
    """Share classes of one company, and how their returns correlate."""
    prices = pd.read_csv(folder / FILES[0], index_col="date")
    matrix = prices.apply(np.log).diff().iloc[1:].corr().to_numpy()
    names = list(prices.columns)
    close = np.argwhere(np.triu(matrix, 1) > TWINS)
    return [(names[i], names[j], float(matrix[i, j])) for i, j in close]


def halves(folder: Path, seed: str, without: tuple[str, ...] = (), keep: int = 0) -> Split:
    """The published split, or half of each sector by a seed; some companies left out."""
    stored = json.loads((folder / FILES[2]).read_text())
    train, test = stored["tickers_train"], stored["tickers_test"]
    sectors = pd.read_csv(folder / FILES[1], index_col="ticker")["sector"]
    if seed != PUBLISHED:
        everyone = sorted(set(train + test) - set(without))
        rng = np.random.default_rng(int(seed))
        train = []
        for sector in sorted(set(sectors[everyone])):
            members = [ticker for ticker in everyone if sectors[ticker] == sector]
            # Of an odd number the larger half goes to either side.
            size = (len(members) + int(rng.integers(2))) // 2
            train += [str(ticker) for ticker in rng.permutation(members)[:size]]
        test = [ticker for ticker in everyone if ticker not in train]
    sides = []
    for side in (train, test):
        left = [ticker for ticker in side if ticker not in without]
        if keep:
            left = [
                t for _, part in pd.Series(left).groupby(list(sectors[left])) for t in part[:keep]
            ]
        sides.append(left)
    return sp500(folder, (sides[0], sides[1]))


def fit(name: str, seed: str, without: tuple[str, ...], s: Stocks, folder: Path) -> dict[str, Any]:
    """What `measured` says of the test graph; for belief also the posterior."""
    train, test = halves(folder, seed, without, s.keep)
    if name == POINT:
        posterior = plug_in(train, s.depth)
    else:
        posterior = fitted("DPG" if name == BELIEF else name, train, s.depth, 0, s.n_draws)
    found = predict(posterior, test)
    answer = measured(found)
    if name == BELIEF:
        moments = posterior.summary()[["mean", "sd"]].to_dict("index")
        answer |= {"parameters": moments, "density": float(np.mean(test[0].a))}
    if name == BELIEF and seed == PUBLISHED:
        answer |= {"mean": found[0].mean, "epistemic sd": found[0].epistemic_sd}
    return answer


def _values(found: list[dict[str, Any]]) -> np.ndarray:
    """Correlations, a row per split."""
    return np.array([one["correlation"] for one in found], float)


def _rows(first: dict[str, Any], splits: dict[str, Any]) -> list[Row]:
    rows = []
    spread = _values(splits[BELIEF]).std(0, ddof=1)
    for k, over in enumerate(OVER):
        rows.append(
            Row(
                f"correlation, {over}",
                first[BELIEF]["correlation"][k],
                float(spread[k]),
                STOCKS_CORRELATION[k],
                f"the published split; ± is the sd over {len(splits[BELIEF])} random splits",
            )
        )
    for name, (mean, _) in POSTERIORS["S&P 500"].items():
        ours = first[BELIEF]["parameters"][name]
        rows.append(
            Row(f"posterior, {name}", ours["mean"], ours["sd"], mean, "± is the posterior's sd")
        )
    return rows


def _of_published(first: dict[str, Any]) -> str:
    r = first[BELIEF]["correlation"]
    off = max(abs(x - y) for x, y in zip(r, STOCKS_CORRELATION, strict=True))
    far = max(
        abs(first[BELIEF]["parameters"][name]["mean"] - mean) / sd
        for name, (mean, sd) in POSTERIORS["S&P 500"].items()
    )
    return (
        f"On the published split the paper's figures {'hold' if off < 0.01 else 'do not hold'}: "
        f"{r[0]:.3f}, {r[1]:.3f} and {r[2]:.3f} for its 0.70, 0.70 and 0.79, and posterior means "
        f"at most {far:.2f} posterior sd from the published."
    )


def _of_typical(first: dict[str, Any], splits: dict[str, Any]) -> str:
    values = _values(splits[BELIEF])
    lower = float(np.mean(values[:, 0] < first[BELIEF]["correlation"][0]))
    mean, sd = values.mean(0), values.std(0, ddof=1)
    away = (STOCKS_CORRELATION[0] - mean[0]) / sd[0]
    words = ", ".join(
        f"{m:.2f} ± {e:.2f} ({over})" for m, e, over in zip(mean, sd, OVER, strict=True)
    )
    return (
        f"0.70 is {'within' if abs(away) <= FAR else 'outside'} what other splits give, on the "
        f"{'high' if away > 0 else 'low'} side: over {len(values)} random halves of each sector "
        f"the correlations are {words}; over all pairs they range from {values[:, 0].min():.2f} to "
        f"{values[:, 0].max():.2f}, and {100 * lower:.0f} % are below that of the published split. "
        f"Calibrated probabilities like those of the published split have "
        f"{first[BELIEF]['if calibrated'][0]:.2f}."
    )


def _of_point(first: dict[str, Any], splits: dict[str, Any]) -> str:
    belief, point = splits[BELIEF], splits[POINT]
    gap, apart = (
        np.array([b[key] - a[key] for a, b in zip(belief, point, strict=True)])
        for key in ("NLL", "NLL, pairs apart")
    )
    share = np.mean([one["epistemic share"] for one in belief])
    return (
        f"It takes no posterior: the point estimate has {first[POINT]['correlation'][0]:.3f} on "
        f"the published split and {_values(point)[:, 0].mean():.2f} over the random ones "
        f"({_values(belief)[:, 0].mean():.2f} for belief), since the sd is a function of the "
        f"probability. What belief adds is {gap.mean():.1f} ± "
        f"{gap.std(ddof=1) / np.sqrt(len(gap)):.1f} of NLL a graph over the random splits "
        f"({first[POINT]['NLL'] - first[BELIEF]['NLL']:.1f} on the published one), and nearly all "
        f"of it by knowing that pairs share their parameters: pair by pair it is "
        f"{apart.mean():.1f}. Of the variance of a single pair only {100 * share:.1f} % is "
        f"epistemic."
    )


def _of_twins(
    pairs: list[tuple[str, str, float]],
    folder: Path,
    first: dict[str, Any],
    splits: dict[str, Any],
    alone: list[dict[str, Any]],
) -> str:
    stored = json.loads((folder / FILES[2]).read_text())
    side = {t: k for k in ("tickers_train", "tickers_test") for t in stored[k]}
    across = [f"{a}/{b} ({r:.2f})" for a, b, r in pairs if side[a] != side[b]]
    within = [f"{a}/{b} ({r:.2f})" for a, b, r in pairs if side[a] == side[b]]
    r, before = alone[0]["correlation"], first[BELIEF]["correlation"]
    random, base = _values(alone[1:]), _values(splits[BELIEF])
    moved = np.abs(np.subtract(r, before)) / base.std(0, ddof=1)
    return (
        f"The published split puts share classes of one company, whose returns hardly differ, on "
        f"both sides: {', '.join(across)} (in brackets their correlation); {', '.join(within)} are "
        f"both in one graph. With one class of each company the correlations of the published "
        f"split are {r[0]:.2f}, {r[1]:.2f} and {r[2]:.2f}, the error {alone[0]['error %']:.1f} % "
        f"({first[BELIEF]['error %']:.1f} % with both), and random splits have "
        f"{random[:, 0].mean():.2f} over all pairs ({base[:, 0].mean():.2f} with both). "
        + ("The twins make no difference" if moved.max() < 0.5 else "The twins make a difference")
        + " beside the spread over splits."
    )


def _of_additive(first: dict[str, Any], splits: dict[str, Any]) -> str:
    paper, ours = splits[BELIEF][: len(splits[ADDITIVE])], splits[ADDITIVE]
    gap = np.array([a["NLL"] - b["NLL"] for a, b in zip(paper, ours, strict=True)])
    apart, errors = (
        [float(np.mean([one[key] for one in some])) for some in (ours, paper)]
        for key in ("NLL, pairs apart", "error %")
    )
    spread = f" ± {gap.std(ddof=1) / np.sqrt(len(gap)):.0f}" if len(gap) > 1 else ""
    a, b = first[BELIEF], first[ADDITIVE]
    return (
        f"The additive readout on the published split: NLL {b['NLL']:.0f} for {a['NLL']:.0f}, "
        f"error {b['error %']:.1f} % for {a['error %']:.1f} %, correlation "
        f"{b['correlation'][0]:.2f} for {a['correlation'][0]:.2f}. On the first {len(gap)} random "
        f"splits its NLL is {gap.mean():.0f}{spread} lower and the error {errors[0]:.1f} % for "
        f"{errors[1]:.1f} %. What it gains is the NLL of the graph as a whole; pair by pair it is "
        f"{b['NLL, pairs apart']:.0f} for {a['NLL, pairs apart']:.0f} on the published split and "
        f"{apart[0]:.0f} for {apart[1]:.0f} on the random ones. One graph of some 40 nodes is "
        f"little to learn curves from, and its belief says so: {100 * b['epistemic share']:.0f} % "
        f"of the variance is epistemic, {100 * a['epistemic share']:.1f} % by the paper's readout. "
        f"(The NLL of so large a graph is that of a mixture over draws: it still falls as their "
        f"number grows.)"
    )


def _table(first: dict[str, Any], splits: dict[str, Any], alone: list[dict[str, Any]]) -> Table:
    keys = ("NLL", "NLL, pairs apart", "error %", "ECE", "epistemic share")

    def row(name: str, what: str, some: list[dict[str, Any]]) -> list[Any]:
        numbers = np.array([[*one["correlation"], *(one[k] for k in keys)] for one in some], float)
        mean = numbers.mean(0)
        if len(some) == 1:
            return [name, what, *mean]
        spread = numbers.std(0, ddof=1)
        return [name, what, *(f"{m:.3g} ± {e:.2g}" for m, e in zip(mean, spread, strict=True))]

    rows = [row(name, "published", [first[name]]) for name in first]
    rows.append(row(BELIEF, "published, one share class", alone[:1]))
    n = len(splits[ADDITIVE])
    rows += [row(name, f"{len(splits[name])} random", splits[name]) for name in (BELIEF, POINT)]
    rows.append(row(BELIEF, f"{len(alone) - 1} random, one share class", alone[1:]))
    rows += [row(name, f"the first {n} random", splits[name][:n]) for name in (BELIEF, ADDITIVE)]
    return Table(
        "Splits: values, or mean ± sd over splits",
        ["", "split", *(f"correlation, {over}" for over in OVER), *keys],
        rows,
    )


def _matrices(found: dict[str, Any], folder: Path, s: Stocks) -> Any:
    record = halves(folder, PUBLISHED, (), s.keep).test[0]
    belief = EdgeBelief.of(found["mean"], found["epistemic sd"])
    axes = EdgesDisplay(record, belief, spread="total").plot()
    for axis in axes:
        axis.set_xlabel("company, by sector")
    return axes[0].figure


def _spread(first: dict[str, Any], splits: dict[str, Any]) -> Any:
    (axis,) = axes_for(None, 1, 1, (7.5, 4.2))
    looks = ((BELIEF, BLUE, -0.2), (POINT, INK, 0.0), (ADDITIVE, ORANGE, 0.2))
    for name, colour, shift in looks:
        values = _values(splits[name])
        jitter = np.linspace(-0.06, 0.06, len(values)) if len(values) > 1 else np.zeros(1)
        for k in range(len(OVER)):
            axis.plot(
                k + shift + jitter, values[:, k], "o", color=colour, markersize=4, alpha=0.6,
                label=f"{name}, {len(values)} splits" if k == 0 else None,
            )  # fmt: skip
            axis.plot(
                k + shift, first[name]["correlation"][k], "D", color=colour, markersize=8,
                markeredgecolor="white", zorder=3,
                label="diamonds: the published split" if k == 0 and name == BELIEF else None,
            )  # fmt: skip
    for k, value in enumerate(STOCKS_CORRELATION):
        label = "the paper" if k == 0 else None
        axis.plot([k - 0.35, k + 0.35], [value, value], color=RED, linestyle="--", label=label)
    axis.set_xticks(range(len(OVER)), OVER)
    axis.set_ylabel("correlation of |error| and sd")
    tidy(axis)
    axis.figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return axis.figure
