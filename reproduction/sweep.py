"""Item 1: the effect of theta on a graph, and the prior that follows from beliefs about graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from edgebelief.belief import ThetaSweep, theta_sweep
from edgebelief.convex import solve_path
from edgebelief.data import BarabasiAlbert, Ensemble, ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.infer import LogNormal, Marginal, Prior, lognormal
from edgebelief.plots import SweepDisplay
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, RED, SKY, axes_for, tidy

from .averages import column, mean_and_deviation
from .drawing import legend_of_figure
from .item import Answer, Outcome, Row, Table, Work
from .models import authors_graphs
from .published import BELIEFS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "What theta means: density, components, edge weights, and a prior from beliefs"
CLAIM = (
    "Larger theta gives sparser graphs with smaller edge weights. Theta in [0.1, 10] agrees with a "
    "density in [.05, .5] and at most 5 components; Lognormal(0, 4) puts about 75 % there, and "
    "delta of order 100 brings scaled edge weights close to 1."
)
KINDS: dict[str, Ensemble] = {
    "RG(1/3)": RandomGeometric(0.32),
    "ER(1/4)": ErdosRenyi(0.25),
    "BA(1)": BarabasiAlbert(1),
}
# Each box shows these quantiles of the weights of all edges of all graphs.
BOX = {"whislo": 0.05, "q1": 0.25, "med": 0.5, "q3": 0.75, "whishi": 0.95}


@dataclass(frozen=True)
class Sweep:
    """The graphs, and the values of theta."""

    n_graphs: int = 20
    n_nodes: int = 20
    n_inputs: int = 5
    """Graphs that a prior is elicited from; several groups of them show how much they matter."""
    decades: tuple[int, int] = (-3, 2)
    per_decade: int = 12
    boxes_per_decade: int = 2

    @property
    def thetas(self) -> np.ndarray:
        low, high = self.decades
        return np.logspace(low, high, (high - low) * self.per_decade + 1)


FULL = Sweep()
SMALL = Sweep(n_graphs=6, n_nodes=10, n_inputs=3, decades=(-2, 1), per_decade=4)


def run(work: Work) -> Outcome:
    """Sweep theta on three ensembles, and elicit a prior from the paper's beliefs."""
    s = work.settings(FULL, SMALL)
    sweeps = {name: work.once(along, name, s) for name in KINDS}
    ours = [work.once(elicited, k, s) for k in range(s.n_graphs // s.n_inputs)]
    path = work.authors
    on_authors = work.once(elicited, None, s, using=(path,)) if path else None
    shown = on_authors or ours[0]
    whose = "the authors' first" if on_authors else "our first"
    return Outcome(
        [
            _describe_density(sweeps, s),
            _describe_beliefs(sweeps["RG(1/3)"], ours, on_authors, s),
            _describe_weights(sweeps["RG(1/3)"]),
            _describe_delta(sweeps["RG(1/3)"]),
            _describe_prior(ours, shown, f"{whose} {s.n_inputs} graphs"),
            _describe_error(sweeps, shown),
        ],
        _rows(sweeps["RG(1/3)"], ours, on_authors),
        [_priors(shown, whose), _sweeps(sweeps)],
        {
            "density, components and error against the labels along theta": _sweep_figure(sweeps),
            "edge weights along theta": _weights_figure(sweeps),
            "the prior that follows from the beliefs": _prior_figure(shown),
        },
    )


# The answers of `along` for each ensemble.
Sweeps = dict[str, Answer]


def along(name: str, s: Sweep) -> Answer:
    """Solve along theta; return density, components and error of each graph, and the weights."""
    data = GraphDataset.sample(1, KINDS[name], s.n_graphs, s.n_nodes)
    shape = len(data), len(s.thetas)
    density, error, components = np.zeros(shape), np.zeros(shape), np.zeros(shape, int)
    weights: list[list[np.ndarray]] = [[] for _ in s.thetas]
    for t, record in enumerate(data):
        for k, solution in enumerate(solve_path(record.e, s.thetas)):
            edge = record.support.is_edge(solution.weights)
            density[t, k] = edge.mean()
            components[t, k] = record.support.n_components(solution.weights)
            error[t, k] = (edge != (record.a > 0)).mean()
            weights[k].append(solution.weights[edge])
    pooled = [np.concatenate(at_theta) for at_theta in weights]
    boxes = [{key: np.quantile(x, q) for key, q in BOX.items()} for x in pooled]
    return {
        "thetas": s.thetas,
        "density": density,
        "components": components,
        "error": error,
        "labels": [record.a.mean() for record in data],
        "boxes": [box | {"most": x.max()} for box, x in zip(boxes, pooled, strict=True)],
        "boxed every": s.per_decade // s.boxes_per_decade,
    }


def elicited(group: int | None, s: Sweep, path: Path | None = None) -> Answer:
    """Make a prior from the paper's beliefs on a group of inputs (None: the authors' first).

    As the paper does it: theta has probability `mass` where the learned graphs, rather than graphs
    drawn from the model, agree with the beliefs; a typical edge has delta times its weight at 10.
    """
    if group is None and path is not None:
        inputs = authors_graphs(path)["train"][: s.n_inputs]
    else:
        data = GraphDataset.sample(1, KINDS["RG(1/3)"], s.n_graphs, s.n_nodes)
        inputs = data[(group or 0) * s.n_inputs :][: s.n_inputs]
    sweep = theta_sweep(inputs)
    low, high = _interval(inputs, sweep)
    one_sided = (low == 0) != (high == np.inf)
    deviations = ndtri(BELIEFS["mass"] if one_sided else (1 + BELIEFS["mass"]) / 2)
    ends = max(low, sweep.thetas[0]), min(high, sweep.thetas[-1])
    median = np.sqrt(ends[0] * ends[1])
    typical = theta_sweep(inputs, [median]).median_weight[0]
    return {
        "prior": {
            "theta": (float(median), float(np.log(ends[1] / ends[0]) / 2 / deviations)),
            "delta": (float(10 / typical), float(np.sqrt(2))),
            "b": (1.0, float(np.sqrt(2))),
        },
        "interval": (low, high),
        "sweep": [sweep.thetas, sweep.density, sweep.components, sweep.weights],
    }


def _interval(inputs: GraphDataset, sweep: ThetaSweep) -> tuple[float, float]:
    """Return the ends of the thetas whose graphs agree with the beliefs; 0 or inf without an end.

    No graph of the inputs may have more components than are believed.
    """
    low, high = BELIEFS["density"]

    def too_dense(sweep: ThetaSweep) -> np.ndarray:
        return sweep.mean_density > high

    def too_sparse(sweep: ThetaSweep) -> np.ndarray:
        return (sweep.mean_density < low) | (sweep.most_components > BELIEFS["components"])

    def change(rule: Callable[[ThetaSweep], np.ndarray], which: int) -> tuple[float, float]:
        """Between which thetas the rule's value changes: on the sweep, then on finer grids."""
        found = sweep
        for _ in range(3):
            values = rule(found)
            k = np.flatnonzero(values[1:] != values[:-1])[which]
            ends = float(found.thetas[k]), float(found.thetas[k + 1])
            found = theta_sweep(inputs, np.geomspace(*ends, 17))
        return ends

    # The density is only almost monotone: the last change to fewer edges, the first to too few.
    first = change(too_dense, -1)[1] if too_dense(sweep).any() else 0.0
    last = change(too_sparse, 0)[0] if too_sparse(sweep).any() else np.inf
    return first, last


def _lognormals(prior: Mapping[str, Marginal]) -> dict[str, LogNormal]:
    """Return the marginals of a prior, which are all lognormal."""
    return {name: m for name, m in prior.items() if isinstance(m, LogNormal)}


def _prior_of(answer: Answer) -> Prior:
    return Prior(**{name: lognormal(*numbers) for name, numbers in answer["prior"].items()})


def _prior_figure(answer: Answer) -> Figure:
    """Draw the sweep with the beliefs, and where theta has the stated probability."""
    axes = SweepDisplay(ThetaSweep(*(np.array(part) for part in answer["sweep"]))).plot()
    axes[0].axhspan(*BELIEFS["density"], color=GREEN, alpha=0.16, lw=0, zorder=0)
    axes[1].axhline(BELIEFS["components"], color=GREEN, lw=2, ls="--")
    rest = (1 - BELIEFS["mass"]) / 2
    for axis in axes:
        band = _prior_of(answer)["theta"].quantile([rest, 1 - rest])
        axis.axvspan(*band, color=ORANGE, alpha=0.2, lw=0, zorder=0)
    return axes[0].figure


def _mean(sweep: Answer, what: str) -> np.ndarray:
    return np.array(sweep[what]).mean(0)


def _agreeing(sweep: Answer) -> tuple[float, float]:
    """Return the range of theta where the graphs agree with the beliefs on average."""
    density, components = _mean(sweep, "density"), _mean(sweep, "components")
    low, high = BELIEFS["density"]
    agree = (density >= low) & (density <= high) & (components <= BELIEFS["components"])
    thetas = np.array(sweep["thetas"])[agree]
    return float(thetas.min()), float(thetas.max())


def _describe_density(sweeps: Sweeps, s: Sweep) -> str:
    words, rise = [], 0.0
    for name, sweep in sweeps.items():
        density = _mean(sweep, "density")
        rise = max(rise, float(np.diff(density).max()))
        words.append(f"{name} from {density[0]:.2f} to {density[-1]:.3f}")
    least = 1 / (s.n_nodes - 1)
    return (
        f"Larger theta, sparser graphs: {'holds' if rise < 0.002 else 'does not hold'} (mean "
        f"density: {', '.join(words)}; its largest rise between neighbours is {max(rise, 0):.4f}). "
        f"A converged graph keeps an edge at every node, so that no density is below 1/(N-1) = "
        f"{least:.3f}"
        + (": the lower end of the believed range, .05, excludes nothing." if least > 0.05 else ".")
    )


def _describe_beliefs(
    sweep: Answer, ours: list[Answer], on_authors: Answer | None, s: Sweep
) -> str:
    low, high = _agreeing(sweep)
    ends = np.array([_closed(answer) for answer in ours])
    at_ten = _mean(sweep, "components")[np.searchsorted(sweep["thetas"], 9.99)]
    text = (
        f"On average over {s.n_graphs} RG(1/3) graphs the beliefs hold for theta from {low:.2g} to "
        f"{high:.2g}, in the paper from 0.1 to 10 (at 10 our graphs fall into {at_ten:.1f} "
        f"components, and at most 5 are believed)."
    )
    if on_authors:
        thetas, _, components, _ = (np.array(part) for part in on_authors["sweep"])
        few = components[:, thetas <= BELIEFS["theta"][1]].mean(0).max()
        text += (
            f" On the authors' first {s.n_inputs} graphs there are at most {few:.1f} on average "
            f"up to 10: there the paper's range {'holds' if few <= 5 else 'does not hold'}."
        )
    return text + (
        f" If none of {s.n_inputs} graphs may have more than 5, they "
        f"hold up to {ends[:, 1].min():.2g} to {ends[:, 1].max():.2g} for inputs of our own"
        + (f" and up to {_closed(on_authors)[1]:.2g} for the authors'." if on_authors else ".")
    )


def _papers_prior(name: str) -> dict[str, LogNormal]:
    return _lognormals(Prior.named(name))


def _closed(answer: Answer) -> tuple[float, float]:
    """Return the elicited interval, which the sweep's end closes where it is open."""
    low, high = answer["interval"]
    thetas = answer["sweep"][0]
    return max(low, thetas[0]), thetas[-1] if high is None else high


def _describe_weights(sweep: Answer) -> str:
    thetas = np.array(sweep["thetas"])
    high = column(sweep["boxes"], "whishi")
    top = int(high.argmax())
    rises = high[top] > 1.05 * high[0]
    return "Larger theta, smaller edge weights: " + (
        f"holds from theta = {thetas[top]:.2g} on. Below that large weights grow (95 % quantile "
        f"{high[0]:.2f} at {thetas[0]:g}, {high[top]:.2f} at {thetas[top]:.2g}): fewer edges share "
        f"a node's degree."
        if rises
        else f"holds (95 % quantile from {high[0]:.2f} to {high[-1]:.4f})."
    )


def _describe_delta(sweep: Answer) -> str:
    thetas = np.array(sweep["thetas"])
    medians = 100 * column(sweep["boxes"], "med")
    at = {theta: medians[np.abs(np.log(thetas / theta)).argmin()] for theta in (0.1, 1.0, 10.0)}
    near = at[1.0] < 2
    words = ", ".join(f"{value:.1f} at theta = {theta:g}" for theta, value in at.items())
    return (
        f"With delta = 100, its prior's median, the median edge weight is scaled to {words}. "
        + (
            "Close to 1, as the text says."
            if near
            else "The text's 'close to 1' does not hold where most of the prior is: "
            "the scaled weights are of the order of 10."
        )
    )


def _describe_prior(ours: list[Answer], shown: Answer, whose: str) -> str:
    interval = np.array(BELIEFS["theta"])
    original, altered = (_papers_prior(name)["theta"] for name in ("original", "altered"))
    inside = [100 * float(np.ptp(ndtr(theta.to_z(interval)))) for theta in (original, altered)]
    medians = [answer["prior"]["theta"][0] for answer in [*ours, shown]]
    spread = max(medians) / min(medians)
    altering = original.median / altered.median
    return (
        f"Lognormal(0, 4) puts {inside[0]:.1f} % on [0.1, 10]: holds (the altered prior puts "
        f"{inside[1]:.1f} % there). Elicited from the same beliefs on {whose}, theta has the "
        f"median {shown['prior']['theta'][0]:.2g}, where the original has {original.median:g} and "
        f"the altered {altered.median:.2g}; on {len(ours)} draws of inputs of our own "
        f"{', '.join(f'{m:.2g}' for m in medians[:-1])}. Which inputs were taken moves it by up to "
        f"a factor {spread:.1f}, and the paper's alteration by {altering:.1f}."
    )


def _describe_error(sweeps: Sweeps, shown: Answer) -> str:
    median, log_sd = shown["prior"]["theta"]
    words = []
    for name, sweep in sweeps.items():
        error = _mean(sweep, "error")
        theta = sweep["thetas"][int(error.argmin())]
        z = np.log(theta / median) / log_sd
        words.append(f"{name} {100 * error.min():.1f} % at {theta:.2g} (z = {z:+.1f})")
    return (
        f"Against the labels, which the prior has not seen, the converged graph errs least on "
        f"{'; '.join(words)}. z is the distance of log theta from its mean in the prior "
        f"elicited on RG(1/3), in standard deviations."
    )


def _rows(sweep: Answer, ours: list[Answer], on_authors: Answer | None) -> list[Row]:
    ends = np.array([_closed(answer) for answer in ours])
    low, high = _agreeing(sweep)
    what, mean = "theta where beliefs hold", "on average over graphs"
    rows = [
        Row(f"{what}, lower end", low, None, BELIEFS["theta"][0], mean),
        Row(f"{what}, upper end", high, None, BELIEFS["theta"][1], mean),
    ]
    for k, end in enumerate(("lower", "upper")):
        note = "in every graph" + (
            f"; the authors' {_closed(on_authors)[k]:.2g}" if on_authors else ""
        )
        rows.append(
            Row(f"{what}, {end} end", *mean_and_deviation(ends[:, k]), BELIEFS["theta"][k], note),
        )
    original, altered = (_papers_prior(name) for name in ("original", "altered"))
    for name in ("theta", "delta"):
        medians = [answer["prior"][name][0] for answer in ours]
        note = f"altered {altered[name].median:.3g}" + (
            f"; on the authors' graphs {on_authors['prior'][name][0]:.3g}" if on_authors else ""
        )
        rows.append(
            Row(
                f"prior median of {name}",
                *mean_and_deviation(medians),
                original[name].median,
                note,
            )
        )
    return rows


def _priors(shown: Answer, whose: str) -> Table:
    """Tabulate the paper's two priors and the elicited one."""
    named = {f"the paper's {n}": Prior.named(n) for n in ("original", "altered")}
    rows = []
    for title, prior in (named | {f"from the beliefs, {whose} graphs": _prior_of(shown)}).items():
        low, high = prior["theta"].quantile([0.125, 0.875])
        numbers = [f"{m.median:.3g} ({m.log_sd:.2f})" for m in _lognormals(prior).values()]
        rows.append([title, *numbers, f"{low:.2g} to {high:.2g}"])
    columns = ["prior", "theta", "delta", "b", "middle 75 % of theta"]
    return Table("Priors: median (standard deviation of the log)", columns, rows)


def _sweeps(sweeps: Sweeps) -> Table:
    rows = []
    for name, sweep in sweeps.items():
        parts = [_mean(sweep, what) for what in ("density", "components", "error")]
        for k in range(0, len(sweep["thetas"]), sweep["boxed every"]):
            density, components, error = (float(part[k]) for part in parts)
            box = sweep["boxes"][k]
            rows.append(
                [
                    name,
                    sweep["thetas"][k],
                    density,
                    components,
                    100 * error,
                    box["med"],
                    box["most"],
                ]
            )
    columns = ["", "theta", "density", "components", "error %", "median weight", "largest weight"]
    return Table("Along theta, means over the graphs", columns, rows)


def _sweep_figure(sweeps: Sweeps) -> Figure:
    axes = axes_for(None, 2, len(sweeps), (12, 6.2), sharex=True).reshape(2, -1)
    for k, (name, sweep) in enumerate(sweeps.items()):
        shares, pieces = axes[:, k]
        thetas = np.array(sweep["thetas"])
        for what, colour in (("density", BLUE), ("error", RED)):
            shares.plot(thetas, np.array(sweep[what]).T, color=colour, lw=0.6, alpha=0.2)
            label = "density" if what == "density" else "error against the labels"
            shares.plot(thetas, _mean(sweep, what), color=colour, lw=2.2, label=label)
        shares.axhline(
            np.mean(sweep["labels"]), color=INK, lw=1, ls=":", label="density of the labels"
        )
        shares.axhspan(*BELIEFS["density"], color=GREEN, alpha=0.14, lw=0, label="believed")
        pieces.plot(thetas, np.array(sweep["components"]).T, color=BLUE, lw=0.6, alpha=0.2)
        pieces.plot(thetas, _mean(sweep, "components"), color=BLUE, lw=2.2)
        pieces.axhspan(1, BELIEFS["components"], color=GREEN, alpha=0.14, lw=0)
        shares.set(title=name, xscale="log", ylim=(-0.02, 1.04))
        pieces.set(xlabel="theta", ylim=(0.7, None))
        for axis in (shares, pieces):
            axis.axvspan(
                *BELIEFS["theta"], color=ORANGE, alpha=0.12, lw=0, label="the paper's range"
            )
            tidy(axis)
    axes[0, 0].set_ylabel("share of pairs")
    axes[1, 0].set_ylabel("connected components")
    legend_of_figure(axes[0, 0], 5)
    return axes[0, 0].figure


def _weights_figure(sweeps: Sweeps) -> Figure:
    axes = axes_for(None, 1, len(sweeps), (12, 4), sharey=True)
    for axis, (name, sweep) in zip(axes, sweeps.items(), strict=True):
        step = sweep["boxed every"]
        thetas, boxes = sweep["thetas"][::step], sweep["boxes"][::step]
        axis.bxp(
            [{**{key: box[key] for key in BOX}, "fliers": []} for box in boxes],
            positions=thetas,
            widths=[0.5 * theta for theta in thetas],
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": SKY, "alpha": 0.6, "edgecolor": BLUE},
            medianprops={"color": INK, "linewidth": 2},
            whiskerprops={"color": BLUE},
            capprops={"color": BLUE},
        )
        largest = [box["most"] for box in boxes]
        axis.plot(thetas, largest, "v", color=RED, ms=5, label="largest weight")
        line = {"color": ORANGE, "lw": 1.4, "ls": "--"}
        axis.axhline(0.01, **line, label="1/100: delta = 100 scales it to 1")
        axis.set(title=name, xscale="log", yscale="log", xlabel="theta")
        tidy(axis)
    axes[0].set_ylabel("edge weight")
    legend_of_figure(axes[0], 2)
    return axes[0].figure
