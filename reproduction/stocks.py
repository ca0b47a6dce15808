"""Item 9: sectors of S&P 500 companies from the correlation of their returns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from edgebelief.belief import EdgeBelief, predict
from edgebelief.data import Split, sp500
from edgebelief.plots import EdgesDisplay
from edgebelief.plots.style import BLUE, INK, ORANGE, RED, axes_for, tidy

from .averages import deviation, mean_and_error, mean_of
from .correlation import BELIEF, OVER, POINT, averaged, correlations, fit_contestant, measured
from .item import FAR, Answer, Outcome, Row, Table, Work
from .models import ADDITIVE, moments
from .published import POSTERIORS, STOCKS_CORRELATION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "S&P 500: sectors from returns"
CLAIM = (
    "82 companies of three sectors, one half to train on and one to test on: error and predictive "
    "sd correlate at 0.70 over all pairs, 0.70 over edges and 0.79 over non-edges."
)
# Returns that correlate more than this are of two share classes of one company: no two companies
# exceed 0.91.
SAME_COMPANY = 0.95
FILES = ("sp500_prices.csv", "sp500_sectors.csv", "sp500_split.json")
PUBLISHED = "published"


@dataclass(frozen=True)
class Stocks:
    """How many splits, and the model."""

    splits: int = 20
    """Random splits by the seeds 0, 1, ...: half of each sector."""
    additive: int = 5
    """How many of these splits the additive readout is fitted to."""
    n_draws: int = 4000
    """Draws of the additive readout."""
    depth: int = 200
    keep: int = 0
    """Companies kept of each sector on each side; 0 keeps all."""


FULL = Stocks()
SMALL = Stocks(splits=2, additive=1, n_draws=60, depth=20, keep=4)


def run(work: Work) -> Outcome:
    """Fit, compare, and describe the results."""
    s = work.settings(FULL, SMALL)
    folder = work.file(FILES[0]).parent
    for name in FILES[1:]:
        work.file(name)
    pairs = share_classes(folder)
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
    # The second share class of a company is left out of both graphs.
    second = tuple(later for _, later, _ in pairs)
    single = [
        work.once(fit, BELIEF, seed, second, s, using=(folder,)) for seed in (PUBLISHED, *seeds)
    ]
    return Outcome(
        [
            _describe_published(first),
            _describe_typical(first, splits),
            _describe_point(first, splits),
            _describe_share_classes(pairs, folder, first, splits, single),
            _describe_additive(first, splits),
        ],
        _rows(first, splits),
        [_table(first, splits, single)],
        {
            "the test graph of the published split": _matrices(first[BELIEF], folder, s),
            "correlation of error and sd over random splits": _spread(first, splits),
        },
    )


def log_returns(folder: Path) -> pd.DataFrame:
    """Return the daily log returns, one column for each ticker."""
    prices = pd.read_csv(folder / FILES[0], index_col="date")
    return prices.apply(np.log).diff().iloc[1:]


def share_classes(folder: Path) -> list[tuple[str, str, float]]:
    """Return the pairs of share classes of one company, and how their returns correlate."""
    returns = log_returns(folder)
    matrix = returns.corr().to_numpy()
    names = list(returns.columns)
    close = np.argwhere(np.triu(matrix, 1) > SAME_COMPANY)
    return [(names[i], names[j], float(matrix[i, j])) for i, j in close]


def halves(
    folder: Path,
    seed: str,
    without: tuple[str, ...] = (),
    keep: int = 0,
    by_sector: bool = True,
) -> Split:
    """Return the published split or a random one: half of each sector, or half of all companies.

    `without` are left out; `keep` limits the companies of each sector on each side.
    """
    stored = json.loads((folder / FILES[2]).read_text())
    train, test = stored["tickers_train"], stored["tickers_test"]
    sectors = pd.read_csv(folder / FILES[1], index_col="ticker")["sector"]
    if seed != PUBLISHED:
        everyone = sorted(set(train + test) - set(without))
        rng = np.random.default_rng(int(seed))
        train = []
        groups = [everyone]
        if by_sector:
            groups = [
                [ticker for ticker in everyone if sectors[ticker] == sector]
                for sector in sorted(set(sectors[everyone]))
            ]
        for members in groups:
            # The larger half of an odd number goes to either side at random.
            size = (len(members) + int(rng.integers(2))) // 2
            train += [str(ticker) for ticker in rng.permutation(members)[:size]]
        test = [ticker for ticker in everyone if ticker not in train]
    sides = []
    for side in (train, test):
        kept = [ticker for ticker in side if ticker not in without]
        if keep:
            kept = [
                t for _, part in pd.Series(kept).groupby(list(sectors[kept])) for t in part[:keep]
            ]
        sides.append(kept)
    return sp500(folder, (sides[0], sides[1]))


def fit(name: str, seed: str, without: tuple[str, ...], s: Stocks, folder: Path) -> Answer:
    """Return `measured` on the test graph; for `BELIEF` also moments of the posterior."""
    train, test = halves(folder, seed, without, s.keep)
    posterior = fit_contestant(name, train, s.depth, 0, s.n_draws)
    predictions = predict(posterior, test)
    answer = measured(predictions)
    if name == BELIEF:
        answer |= {"parameters": moments(posterior), "density": float(np.mean(test[0].a))}
    if name == BELIEF and seed == PUBLISHED:
        belief = predictions[0]
        answer |= {"mean": belief.mean, "epistemic sd": belief.epistemic_sd}
    return answer


Fits = dict[str, Answer]
"""The answer of `fit` of each contestant."""
Splits = dict[str, list[Answer]]
"""The answers of `fit` on several splits, of each contestant."""


def _rows(first: Fits, splits: Splits) -> list[Row]:
    rows = []
    spread = deviation(correlations(splits[BELIEF]))
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


def _describe_published(first: Fits) -> str:
    r = first[BELIEF]["correlation"]
    difference = max(abs(x - y) for x, y in zip(r, STOCKS_CORRELATION, strict=True))
    far = max(
        abs(first[BELIEF]["parameters"][name]["mean"] - mean) / sd
        for name, (mean, sd) in POSTERIORS["S&P 500"].items()
    )
    return (
        f"On the published split the paper's numbers "
        f"{'hold' if difference < 0.01 else 'do not hold'}: "
        f"{r[0]:.3f}, {r[1]:.3f} and {r[2]:.3f} for its 0.70, 0.70 and 0.79, and posterior means "
        f"at most {far:.2f} posterior sd from the published."
    )


def _describe_typical(first: Fits, splits: Splits) -> str:
    values = correlations(splits[BELIEF])
    lower = float(np.mean(values[:, 0] < first[BELIEF]["correlation"][0]))
    mean, sd = values.mean(0), deviation(values)
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


def _describe_point(first: Fits, splits: Splits) -> str:
    belief, point = splits[BELIEF], splits[POINT]
    (gap, error), (apart, _) = (
        mean_and_error([b[key] - a[key] for a, b in zip(belief, point, strict=True)])
        for key in ("NLL", "NLL, pairs apart")
    )
    share = mean_of(belief, "epistemic share")
    return (
        f"This needs no posterior: the point estimate has {first[POINT]['correlation'][0]:.3f} on "
        f"the published split and {correlations(point)[:, 0].mean():.2f} over the random ones "
        f"({correlations(belief)[:, 0].mean():.2f} for belief), since the sd is a function of the "
        f"probability. What belief adds is {gap:.1f} ± {error:.1f} of NLL a "
        f"graph over the random splits "
        f"({first[POINT]['NLL'] - first[BELIEF]['NLL']:.1f} on the published one), and nearly all "
        f"of that because pairs share their parameters: if pairs were independent it would be "
        f"{apart:.1f}. Of the variance of a single pair only {100 * share:.1f} % is "
        f"epistemic."
    )


def _describe_share_classes(
    pairs: list[tuple[str, str, float]],
    folder: Path,
    first: Fits,
    splits: Splits,
    single: list[Answer],
) -> str:
    stored = json.loads((folder / FILES[2]).read_text())
    side = {t: k for k in ("tickers_train", "tickers_test") for t in stored[k]}
    across = [f"{a}/{b} ({r:.2f})" for a, b, r in pairs if side[a] != side[b]]
    within = [f"{a}/{b} ({r:.2f})" for a, b, r in pairs if side[a] == side[b]]
    r, before = single[0]["correlation"], first[BELIEF]["correlation"]
    random, base = correlations(single[1:]), correlations(splits[BELIEF])
    moved = np.abs(np.subtract(r, before)) / deviation(base)
    return (
        f"The published split puts share classes of one company, whose returns hardly differ, on "
        f"both sides: {', '.join(across)} (in brackets their correlation); {', '.join(within)} are "
        f"both in one graph. With one class of each company the correlations of the published "
        f"split are {r[0]:.2f}, {r[1]:.2f} and {r[2]:.2f}, the error {single[0]['error %']:.1f} % "
        f"({first[BELIEF]['error %']:.1f} % with both), and random splits have "
        f"{random[:, 0].mean():.2f} over all pairs ({base[:, 0].mean():.2f} with both). "
        + f"Compared with the spread over splits, the second share classes make "
        f"{'no' if moved.max() < 0.5 else 'a'} difference."
    )


def _describe_additive(first: Fits, splits: Splits) -> str:
    paper, ours = splits[BELIEF][: len(splits[ADDITIVE])], splits[ADDITIVE]
    gap, error = mean_and_error([a["NLL"] - b["NLL"] for a, b in zip(paper, ours, strict=True)])
    apart, errors = (
        [mean_of(ours, key), mean_of(paper, key)] for key in ("NLL, pairs apart", "error %")
    )
    spread = f" ± {error:.0f}" if len(ours) > 1 else ""
    a, b = first[BELIEF], first[ADDITIVE]
    return (
        f"The additive readout on the published split: NLL {b['NLL']:.0f} for {a['NLL']:.0f}, "
        f"error {b['error %']:.1f} % for {a['error %']:.1f} %, correlation "
        f"{b['correlation'][0]:.2f} for {a['correlation'][0]:.2f}. On the first {len(ours)} random "
        f"splits its NLL is {gap:.0f}{spread} lower and the error {errors[0]:.1f} % for "
        f"{errors[1]:.1f} %. It gains on the graph as a whole; with independent pairs the NLL is "
        f"{b['NLL, pairs apart']:.0f} for {a['NLL, pairs apart']:.0f} on the published split and "
        f"{apart[0]:.0f} for {apart[1]:.0f} on the random ones. One graph of some 40 nodes is "
        f"little to learn curves from, and the additive model says so: "
        f"{100 * b['epistemic share']:.0f} % of the variance is epistemic, "
        f"{100 * a['epistemic share']:.1f} % by the paper's readout. "
        f"(The NLL of so large a graph is that of a mixture over draws, and still falls as their "
        f"number grows.)"
    )


def _table(first: Fits, splits: Splits, single: list[Answer]) -> Table:
    keys = ("NLL", "NLL, pairs apart", "error %", "ECE", "epistemic share")

    def row(name: str, what: str, answers: list[Answer]) -> list[object]:
        mean, spread = averaged(answers, keys)
        if len(answers) == 1:
            return [name, what, *mean]
        return [name, what, *(f"{m:.3g} ± {e:.2g}" for m, e in zip(mean, spread, strict=True))]

    rows = [row(name, "published", [first[name]]) for name in first]
    rows.append(row(BELIEF, "published, one share class", single[:1]))
    n = len(splits[ADDITIVE])
    rows += [row(name, f"{len(splits[name])} random", splits[name]) for name in (BELIEF, POINT)]
    rows.append(row(BELIEF, f"{len(single) - 1} random, one share class", single[1:]))
    rows += [row(name, f"the first {n} random", splits[name][:n]) for name in (BELIEF, ADDITIVE)]
    return Table(
        "Splits: values, or mean ± sd over splits",
        ["", "split", *(f"correlation, {over}" for over in OVER), *keys],
        rows,
    )


def _matrices(answer: Answer, folder: Path, s: Stocks) -> Figure:
    record = halves(folder, PUBLISHED, (), s.keep).test[0]
    belief = EdgeBelief.of(answer["mean"], answer["epistemic sd"])
    axes = EdgesDisplay(record, belief, spread="total").plot()
    for axis in axes:
        axis.set_xlabel("company, by sector")
    return axes[0].figure


def _spread(first: Fits, splits: Splits) -> Figure:
    (axis,) = axes_for(None, 1, 1, (7.5, 4.2))
    looks = ((BELIEF, BLUE, -0.2), (POINT, INK, 0.0), (ADDITIVE, ORANGE, 0.2))
    for name, colour, shift in looks:
        values = correlations(splits[name])
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
