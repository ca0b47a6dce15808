"""Item 12: the posterior's draws, other ensembles, and how many training graphs are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgebelief.data import BarabasiAlbert, Ensemble, ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.infer import NUTS, EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.plots import PairDisplay, TraceDisplay
from edgebelief.plots.style import BLUE, INK, axes_for, tidy

from .averages import column, mean_and_deviation, mean_of, standard_error
from .drawing import legend_of_figure
from .item import FAR, Answer, Outcome, Row, Table, Work
from .models import (
    PAPERS_GRAPHS,
    SCORES,
    authors_graphs,
    fitted,
    moments,
    quietly,
    scores_on,
    timed,
    train_and_test,
    with_fixed_theta,
)
from .published import OTHER_ENSEMBLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataTree

TITLE = "Posterior draws, other ensembles, data efficiency"
CLAIM = (
    "Chains of DPG mix (R-hat about 1, at least 1000 effective draws). DPG of depth 30, trained "
    "and tested on each of several ensembles, performs on all. With depth 200 performance does not "
    "improve past 50 training graphs, and the posterior shows little change past 100."
)
KINDS: dict[str, Ensemble] = {
    "RG(1/3)": PAPERS_GRAPHS,
    "RG(1/2)": RandomGeometric(0.5),
    "BA(1)": BarabasiAlbert(1),
    "ER(0.15)": ErdosRenyi(0.15),
    "ER(1/2)": ErdosRenyi(0.5),
}
# On BA(1): a mode of theta, and a large value, where the likelihood is poor.
AT_MODE, STUCK = 0.06, 1.0
PARAMETERS = ("theta", "delta", "b")
EFFECTIVE = "effective draws (bulk)"


@dataclass(frozen=True)
class Settings:
    """Settings of chains, of ensembles, and of training sets of several sizes."""

    n_nodes: int = 20
    n_train: int = 50
    n_test: int = 100
    shallow: int = 30
    """Depth for chains and ensembles, as in the paper."""
    n_warmup: int = 500
    n_draws: int = 1000
    target_accept: float | None = None
    """Of the chains on RG(1/3); None leaves it to `NUTS`, which may run twice."""
    max_tree_depth: int = 10
    seeds: int = 12
    deep: int = 200
    """Depth for data efficiency, as in the paper."""
    sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200)
    pool: int = 400
    most_subsets: int = 6

    def subsets(self, size: int) -> int:
        """Return how many training sets of a size to draw: few that overlap, but at least two."""
        return max(2, min(self.most_subsets, 2 * self.pool // size))


FULL = Settings()
SMALL = Settings(
    n_nodes=8, n_train=6, n_test=6, shallow=10, n_warmup=50, n_draws=50, target_accept=0.8,
    max_tree_depth=3, seeds=2, deep=10, sizes=(2, 6), pool=12, most_subsets=2,
)  # fmt: skip


def run(work: Work) -> Outcome:
    """Run chains on RG(1/3), and fit five ensembles and training sets of several sizes."""
    s = work.settings(FULL, SMALL)
    path = work.authors
    authors = path is not None
    drawn = work.once(chains, authors, s, using=(path,))
    scores = {
        name: [work.once(on_ensemble, name, seed, s) for seed in range(s.seeds)] for name in KINDS
    }
    by_size = {size: work.once(from_few, size, s) for size in s.sizes}
    on_authors = work.once(on_ensemble, "RG(1/3)", None, s, using=(path,)) if authors else None
    stuck = [work.once(with_stuck_chains, seed, s) for seed in range(min(s.seeds, 4))]
    ends = work.once(started_anywhere, 0, s)
    rows = [row for name in KINDS for row in _rows(name, scores[name])]
    if on_authors:
        rows = [_noted(row, on_authors) for row in rows]
    whose = "the authors'" if authors else "our own"
    figures = drawn["figures"]
    return Outcome(
        [
            _describe_chains(drawn, whose, s),
            _describe_ensembles(rows, on_authors),
            _describe_trees(rows, scores["BA(1)"], stuck, ends),
            _describe_sizes(by_size),
            _describe_marginals(by_size),
        ],
        [
            Row("R-hat, largest", figures["R-hat"], None, 1.0, "the paper: about"),
            Row("effective draws, fewest", figures[EFFECTIVE], None, 1000.0, "the paper: at least"),
            *rows,
        ],
        [_chains_table(drawn), _stuck_table(scores["BA(1)"], stuck), _sizes_table(by_size)],
        {
            "trace of the draws": TraceDisplay(_tree(drawn)).plot()[0].figure,
            "pairs of parameters": PairDisplay(_tree(drawn)).plot()[0].figure,
            "training graphs": _figure(by_size),
        },
    )


def chains(authors: bool, s: Settings, path: Path | None) -> Answer:
    """Draw by NUTS, and compare with the moments of the same posterior by `Exact`."""
    if path is not None:
        train = authors_graphs(path)["train"][: s.n_train]
    else:
        train = GraphDataset.sample(0, PAPERS_GRAPHS, s.n_train, s.n_nodes)
    model = EdgeModel(DPG(s.shallow))
    engine = _engine(s, s.n_draws, target_accept=s.target_accept)
    with quietly():
        posterior, seconds = timed(engine.run, 0, model, train)
        exact = Exact().run(0, model, train)
    shape = posterior.n_chains, -1
    return {
        "draws": {name: x.reshape(shape).round(6) for name, x in posterior.params.items()},
        "figures": dict(posterior.verdict.figures),
        "nuts": moments(posterior),
        "exact": moments(exact),
        "seconds": seconds,
    }


def _engine(s: Settings, n_draws: int, **options: Any) -> NUTS:
    return NUTS(s.n_warmup, n_draws, progress=False, max_tree_depth=s.max_tree_depth, **options)


def on_ensemble(name: str, seed: int | None, s: Settings, path: Path | None = None) -> Answer:
    """Train and test DPG on an ensemble; without a seed, on the authors' graphs."""
    train, test = _sampled(name, seed or 0, s, path)
    posterior, seconds = timed(fitted, "DPG", train, s.shallow)
    return {
        "scores": scores_on(posterior, {"test": test})["test"],
        "parameters": moments(posterior),
        "findings": list(posterior.verdict.names),
        "seconds": seconds,
    }


def _sampled(
    name: str, seed: int, s: Settings, path: Path | None = None
) -> tuple[GraphDataset, GraphDataset]:
    return train_and_test(s.n_train, s.n_test, s.n_nodes, 300 + seed, path, KINDS[name])


def with_stuck_chains(seed: int, s: Settings) -> dict[str, float]:
    """Return scores on BA(1) of four chains: one at the mode, and three stuck at large theta."""
    train, test = _sampled("BA(1)", seed, s)
    model = EdgeModel(DPG(s.shallow))
    parts = [with_fixed_theta(model, theta, train) for theta in (AT_MODE, STUCK)]
    params = {
        name: np.concatenate([np.broadcast_to(p.params[name], p.weights.shape) for p in parts])
        for name in parts[0].params
    }
    weights = np.concatenate([0.25 * parts[0].weights, 0.75 * parts[1].weights])
    mixed = replace(parts[0], params=params, weights=weights, continuum=None)
    return scores_on(mixed, {"test": test})["test"]


def started_anywhere(seed: int, s: Settings) -> list[float]:
    """Return the mean theta, on BA(1), of each chain that starts at a draw of the prior."""
    train, _ = _sampled("BA(1)", seed, s)
    engine = _engine(s, max(s.n_draws // 5, 50), init="prior", target_accept=0.8)
    with quietly():
        posterior = engine.run(0, EdgeModel(DPG(s.shallow)), train)
    means = posterior.params["theta"].reshape(posterior.n_chains, -1).mean(1)
    return [float(theta) for theta in means]


def from_few(size: int, s: Settings) -> Answer:
    """Train DPG on subsets of a pool of graphs, and test it on the same other graphs."""
    pool, test = train_and_test(s.pool, s.n_test, s.n_nodes, 400)
    rng = np.random.default_rng(size)
    fits = [
        fitted("DPG", pool[rng.permutation(s.pool)[:size]], s.deep) for _ in range(s.subsets(size))
    ]
    return {
        "scores": [scores_on(posterior, {"test": test})["test"] for posterior in fits],
        "parameters": [moments(posterior) for posterior in fits],
        "densities": {name: fits[0].density(name) for name in PARAMETERS},
    }


def _rows(name: str, answers: list[Answer]) -> list[Row]:
    rows = []
    for score, published in zip(SCORES, OTHER_ENSEMBLES[name], strict=True):
        values = column(answers, "scores", score)
        rows.append(Row(f"{name}, {score}", *mean_and_deviation(values), published))
    return rows


def _describe_chains(drawn: Answer, whose: str, s: Settings) -> str:
    figures = drawn["figures"]
    fine = figures["R-hat"] < 1.01 and figures[EFFECTIVE] >= 1000
    apart = max(
        abs(drawn["nuts"][name]["mean"] - exact["mean"]) / exact["sd"]
        for name, exact in drawn["exact"].items()
    )
    return (
        f"Chains mix on {whose} graphs (depth {s.shallow}): {'holds' if fine else 'does not hold'} "
        f"(R-hat {figures['R-hat']:.3f}, {figures[EFFECTIVE]:.0f} effective draws of "
        f"{4 * s.n_draws}, {figures['divergences']:.0f} divergences). Means differ from those of "
        f"the quadrature by at most {apart:.2f} posterior sd."
    )


def _noted(row: Row, on_authors: Answer) -> Row:
    """Note the score on the authors' graphs in a row about RG(1/3)."""
    name, _, score = row.what.partition(", ")
    if name != "RG(1/3)":
        return row
    return row._replace(note=f"on the authors' graphs {on_authors['scores'][score]:.4g}")


def _describe_ensembles(rows: list[Row], on_authors: Answer | None) -> str:
    away = [row for row in rows if row.away is not None and abs(row.away) > FAR]
    names = {row.what.partition(",")[0] for row in away}
    words = ", ".join(
        f"{row.what} {row.ours:.3g} ± {row.error:.2g} (published {row.paper:.3g})" for row in away
    )
    text = (
        f"Trained and tested on each ensemble: {len(KINDS) - len(names)} of {len(KINDS)} have "
        f"every published score within two standard deviations over our seeds."
    )
    if away:
        text += f" Outside are: {words}."
    if on_authors:
        known = zip(SCORES, OTHER_ENSEMBLES["RG(1/3)"], strict=True)
        largest = max(
            abs(on_authors["scores"][score] / published - 1) for score, published in known
        )
        text += (
            f" On the authors' own RG(1/3) graphs the NLL is {on_authors['scores']['NLL']:.3f} "
            f"(published {OTHER_ENSEMBLES['RG(1/3)'][0]}), and no score differs by more "
            f"than {100 * largest:.0f} %."
        )
    return text


def _describe_trees(
    rows: list[Row], answers: list[Answer], stuck: list[Answer], ends: list[float]
) -> str:
    """Describe the two modes on BA(1), and what the published scores are like."""
    linear = int((column(answers, "parameters", "theta", "mean") < AT_MODE / 4).sum())
    text = (
        f"On BA(1) the posterior has two modes: theta about {AT_MODE}, and theta near 0 with delta "
        f"in the thousands, where no weight is zero and the network is nearly linear. The latter "
        f"has most of the probability for {linear} of {len(answers)} seeds."
    )
    far = [row for row in rows if row.what.startswith("BA(1)") and abs(row.away or 0) > FAR]
    mixed = {score: column(stuck, score) for score in SCORES}
    published = dict(zip(SCORES, OTHER_ENSEMBLES["BA(1)"], strict=True))
    words = "; ".join(
        f"{score} {min(values):.3g} to {max(values):.3g} (published {published[score]:.3g})"
        for score, values in mixed.items()
    )
    near = all(
        0.9 * min(values) <= published[score] <= 1.1 * max(values)
        for score, values in mixed.items()
    )
    if far and near:
        text += (
            f" The published scores are those of neither. They agree with one of four chains at "
            f"theta = {AT_MODE} and three stuck about {STUCK:g}: {words}. The authors' chains "
            f"were not posted, so that this is a guess, but one that fits all four scores. (Chains "
            f"of ours that start at draws of the prior end at theta = "
            f"{', '.join(f'{theta:.2g}' for theta in ends)}.)"
        )
    return text


def _stuck_table(answers: list[Answer], stuck: list[Answer]) -> Table:
    cases = {
        "published": OTHER_ENSEMBLES["BA(1)"],
        "ours": [mean_of(answers, "scores", score) for score in SCORES],
        "one chain of four at the mode": [mean_of(stuck, score) for score in SCORES],
    }
    rows = [[name, *values] for name, values in cases.items()]
    return Table("BA(1), means over seeds", ["", *SCORES], rows)


# The answers of `from_few` by the number of training graphs.
BySize = dict[int, Answer]


def _column(by_size: BySize, size: int, score: str = "NLL") -> np.ndarray:
    return column(by_size[size]["scores"], score)


def _describe_sizes(by_size: BySize) -> str:
    sizes = list(by_size)
    means = {size: _column(by_size, size).mean() for size in sizes}
    last = sizes[-1]
    enough = next(size for size in sizes if means[size] < 1.02 * means[last])
    middle = 50 if 50 in sizes else sizes[-2]
    gain = (means[middle] - means[last]) / means[last]
    errors = {size: standard_error(_column(by_size, size)) for size in sizes}
    words = ", ".join(f"{size}: {means[size]:.2f} ± {errors[size]:.2f}" for size in sizes)
    return (
        f"No improvement past {middle} training graphs: "
        f"{'holds' if gain < 0.01 else 'does not hold'} (with {last} the NLL is lower by "
        f"{100 * gain:.1f} %); {enough} are within 2 % of {last} already. Test NLL by the number "
        f"of training graphs, with standard errors over training sets: {words}."
    )


def _describe_marginals(by_size: BySize) -> str:
    sizes = np.array(list(by_size), float)
    sd = {
        name: np.array([_mean_moment(answer, name, "sd") for answer in by_size.values()])
        for name in PARAMETERS
    }
    most = sizes >= min(5, sizes[-2])
    words = ", ".join(
        f"{name} {np.polyfit(np.log(sizes[most]), np.log(values[most]), 1)[0]:.2f}"
        for name, values in sd.items()
    )
    ratio = np.mean([values[-1] / values[-2] for values in sd.values()])
    last = by_size[int(sizes[-1])]["parameters"][0]
    relative = max(p["sd"] / p["mean"] for p in last.values())
    return (
        f"Posterior sds fall as a power of the number of graphs ({words}; the square-root law is "
        f"-0.5), and from {sizes[-2]:g} to {sizes[-1]:g} graphs by a factor {ratio:.2f}: "
        + (
            "little change past 100 holds only at a glance. The posterior goes on narrowing, but "
            if ratio < 0.85
            else "little change past 100 holds; "
        )
        + f"at {sizes[-1]:g} graphs its sd is at most {100 * relative:.1f} % of its mean, and what "
        f"uncertainty is left hardly changes a prediction."
    )


def _mean_moment(answer: Answer, name: str, moment: str) -> float:
    """Return the mean over training sets of a parameter's posterior mean or sd."""
    return mean_of(answer["parameters"], name, moment)


def _tree(drawn: Answer) -> DataTree:
    import arviz_base

    return arviz_base.from_dict({"posterior": {k: np.array(v) for k, v in drawn["draws"].items()}})


def _chains_table(drawn: Answer) -> Table:
    rows = [
        [name, *(drawn[by][name][what] for by in ("nuts", "exact") for what in ("mean", "sd"))]
        for name in PARAMETERS
    ]
    columns = ["", "NUTS, mean", "NUTS, sd", "quadrature, mean", "quadrature, sd"]
    return Table("The posterior by NUTS and by quadrature", columns, rows)


def _sizes_table(by_size: BySize) -> Table:
    rows = []
    for size, answer in by_size.items():
        scores = [float(_column(by_size, size, score).mean()) for score in SCORES]
        parameters = [
            f"{_mean_moment(answer, name, 'mean'):.3g} ± {_mean_moment(answer, name, 'sd'):.2g}"
            for name in PARAMETERS
        ]
        rows.append([size, len(answer["scores"]), *scores, *parameters])
    columns = ["training graphs", "training sets", *SCORES, *PARAMETERS]
    return Table("Data efficiency (parameters: posterior mean ± sd, averaged)", columns, rows)


def _figure(by_size: BySize) -> Figure:
    from matplotlib import colormaps

    axes = axes_for(None, 1, 4, (14, 3.9))
    sizes = list(by_size)
    for size in sizes:
        values = _column(by_size, size)
        axes[0].plot([size] * len(values), values, "o", color=BLUE, ms=4, alpha=0.4, mew=0)
    means = [_column(by_size, size).mean() for size in sizes]
    axes[0].plot(sizes, means, color=INK, lw=2)
    axes[0].set(xscale="log", xlabel="training graphs", ylabel="test NLL of a graph")
    axes[0].set_xticks(sizes, [str(size) for size in sizes], fontsize=8)
    axes[0].minorticks_off()
    shades = colormaps["viridis_r"](np.linspace(0.1, 1, len(sizes)))
    for axis, name in zip(axes[1:], PARAMETERS, strict=True):
        low, high = _range(by_size, name)
        for size, shade in zip(sizes, shades, strict=True):
            x, density = (np.array(part) for part in by_size[size]["densities"][name])
            if ((x > low) & (x < high)).sum() < 20:  # far wider than the panel
                continue
            axis.plot(x, density / density.max(), color=shade, lw=1.8, label=str(size))
        axis.set(xlabel=name, yticks=[], xlim=(low, high), ylim=(0, 1.05))
    axes[1].set_ylabel("posterior density, each to its peak")
    for axis in axes:
        tidy(axis)
    title = (
        "training graphs (one training set of each; a posterior wider than its panel is left out)"
    )
    legend_of_figure(axes[1], len(sizes), title)
    return axes[0].figure


def _range(by_size: BySize, name: str) -> tuple[float, float]:
    """Return the range of the posteriors without the widest one."""
    ends = []
    for answer in by_size.values():
        x, density = (np.array(part) for part in answer["densities"][name])
        likely = x[density > 0.05 * density.max()]
        ends.append((likely.min(), likely.max()))
    low, high = np.array(ends).T
    return float(np.sort(low)[1]), float(np.sort(high)[-2])
