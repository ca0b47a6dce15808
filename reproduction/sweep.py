"""Item 1: what theta does to a graph, and the prior that follows from beliefs about graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from edgebelief.belief.elicit import Beliefs, Elicited, ThetaSweep, elicit_prior
from edgebelief.convex import solve_path
from edgebelief.data import BarabasiAlbert, Ensemble, ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.infer import Prior, lognormal
from edgebelief.plots import SweepDisplay
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, RED, SKY, axes_for, tidy

from .item import Outcome, Row, Table, Work
from .models import authors_graphs
from .published import BELIEFS

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
# What a box shows, of the weights of all edges of all graphs.
BOX = {"whislo": 0.05, "q1": 0.25, "med": 0.5, "q3": 0.75, "whishi": 0.95}


@dataclass(frozen=True)
class Sweep:
    """Which graphs, and at which thetas."""

    n_graphs: int = 20
    n_nodes: int = 20
    n_inputs: int = 5
    """Graphs that a prior is made from; others of the same kind say how much that matters."""
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
    """Sweep three kinds of graphs, and make the paper's prior from its beliefs."""
    s = work.settings(FULL, SMALL)
    found = {name: work.once(along, name, s) for name in KINDS}
    ours = [work.once(elicited, k, s) for k in range(s.n_graphs // s.n_inputs)]
    theirs = None
    if work.has("rg032.npz"):
        theirs = work.once(elicited, None, s, using=(work.file("rg032.npz"),))
    shown = theirs or ours[0]
    whose = "the authors' first" if theirs else "our first"
    return Outcome(
        [
            _of_density(found, s),
            _of_beliefs(found["RG(1/3)"], ours, theirs, s),
            _of_weights(found["RG(1/3)"]),
            _of_delta(found["RG(1/3)"]),
            _of_prior(ours, shown, f"{whose} {s.n_inputs} graphs"),
            _of_error(found, shown),
        ],
        _rows(found["RG(1/3)"], ours, theirs),
        [_priors(shown, whose), _sweeps(found)],
        {
            "density, components and error against the labels along theta": _sweep_figure(found),
            "edge weights along theta": _weights_figure(found),
            "the prior that follows from the beliefs": SweepDisplay(_as_elicited(shown))
            .plot()[0]
            .figure,
        },
    )


def along(name: str, s: Sweep) -> dict[str, Any]:
    """Solve along theta: a row per graph of density, components, error; boxes of the weights."""
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
    pooled = [np.concatenate(one) for one in weights]
    boxes = [{key: np.quantile(one, q) for key, q in BOX.items()} for one in pooled]
    return {
        "thetas": s.thetas,
        "density": density,
        "components": components,
        "error": error,
        "labels": [record.a.mean() for record in data],
        "boxes": [box | {"most": one.max()} for box, one in zip(boxes, pooled, strict=True)],
        "boxed every": s.per_decade // s.boxes_per_decade,
    }


def elicited(group: int | None, s: Sweep, path: Path | None = None) -> dict[str, Any]:
    """The prior from the paper's beliefs on a group of inputs; None: the authors' first."""
    if group is None and path is not None:
        inputs = authors_graphs(path)["train"][: s.n_inputs]
    else:
        data = GraphDataset.sample(1, KINDS["RG(1/3)"], s.n_graphs, s.n_nodes)
        inputs = data[(group or 0) * s.n_inputs :][: s.n_inputs]
    prior = elicit_prior(inputs, BELIEFS["density"], BELIEFS["components"], BELIEFS["mass"])
    sweep = prior.sweep
    return {
        "prior": {name: (m.median, m.log_sd) for name, m in prior.items()},  # type: ignore[attr-defined]
        "interval": prior.interval,
        "sweep": [sweep.thetas, sweep.density, sweep.components, sweep.weights],
    }


def _as_elicited(found: dict[str, Any]) -> Elicited:
    prior = Prior(**{name: lognormal(*numbers) for name, numbers in found["prior"].items()})
    thetas, density, components, weights = (np.array(part) for part in found["sweep"])
    sweep = ThetaSweep(thetas, density, components, weights)
    beliefs = Beliefs(BELIEFS["density"], BELIEFS["components"], BELIEFS["mass"])
    low, high = found["interval"]
    return Elicited(prior, beliefs, sweep, (low, np.inf if high is None else high))


def _mean(found: dict[str, Any], what: str) -> np.ndarray:
    return np.array(found[what]).mean(0)


def _agreeing(found: dict[str, Any]) -> tuple[float, float]:
    """Between which thetas the graphs agree with the beliefs on average."""
    density, components = _mean(found, "density"), _mean(found, "components")
    low, high = BELIEFS["density"]
    agree = (density >= low) & (density <= high) & (components <= BELIEFS["components"])
    thetas = np.array(found["thetas"])[agree]
    return float(thetas.min()), float(thetas.max())


def _of_density(found: dict[str, dict[str, Any]], s: Sweep) -> str:
    words, rise = [], 0.0
    for name, one in found.items():
        density = _mean(one, "density")
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


def _of_beliefs(
    found: dict[str, Any], ours: list[dict[str, Any]], theirs: dict[str, Any] | None, s: Sweep
) -> str:
    low, high = _agreeing(found)
    ends = np.array([_closed(one) for one in ours])
    at_ten = _mean(found, "components")[np.searchsorted(found["thetas"], 9.99)]
    said = (
        f"On average over {s.n_graphs} RG(1/3) graphs the beliefs hold for theta from {low:.2g} to "
        f"{high:.2g}, in the paper from 0.1 to 10 (at 10 our graphs fall into {at_ten:.1f} "
        f"components, and at most 5 are believed)."
    )
    if theirs:
        thetas, _, components, _ = (np.array(part) for part in theirs["sweep"])
        few = components[:, thetas <= BELIEFS["theta"][1]].mean(0).max()
        said += (
            f" On the authors' first {s.n_inputs} graphs there are at most {few:.1f} on average "
            f"up to 10: there the paper's range {'holds' if few <= 5 else 'does not hold'}."
        )
    return said + (
        f" If none of {s.n_inputs} graphs may have more than 5, as elicit_prior reads it, they "
        f"hold up to {ends[:, 1].min():.2g} to {ends[:, 1].max():.2g} for inputs of our own"
        + (f" and up to {_closed(theirs)[1]:.2g} for the authors'." if theirs else ".")
    )


def _closed(found: dict[str, Any]) -> tuple[float, float]:
    """The interval; the sweep's end where it is open."""
    low, high = found["interval"]
    thetas = found["sweep"][0]
    return max(low, thetas[0]), thetas[-1] if high is None else high


def _of_weights(found: dict[str, Any]) -> str:
    thetas = np.array(found["thetas"])
    high = np.array([box["whishi"] for box in found["boxes"]])
    top = int(high.argmax())
    rises = high[top] > 1.05 * high[0]
    return "Larger theta, smaller edge weights: " + (
        f"holds from theta = {thetas[top]:.2g} on. Below that large weights grow (95 % quantile "
        f"{high[0]:.2f} at {thetas[0]:g}, {high[top]:.2f} at {thetas[top]:.2g}): fewer edges share "
        f"a node's degree."
        if rises
        else f"holds (95 % quantile from {high[0]:.2f} to {high[-1]:.4f})."
    )


def _of_delta(found: dict[str, Any]) -> str:
    thetas = np.array(found["thetas"])
    medians = 100 * np.array([box["med"] for box in found["boxes"]])
    at = {theta: medians[np.abs(np.log(thetas / theta)).argmin()] for theta in (0.1, 1.0, 10.0)}
    near = at[1.0] < 2
    words = ", ".join(f"{value:.1f} at theta = {theta:g}" for theta, value in at.items())
    return (
        f"With delta = 100, its prior's median, the median edge weight is scaled to {words}. "
        + (
            "Close to 1, as the text says."
            if near
            else "The text's 'close to 1' does not hold where the prior has most of its mass: "
            "the scaled weights are of the order of 10."
        )
    )


def _of_prior(ours: list[dict[str, Any]], shown: dict[str, Any], whose: str) -> str:
    interval = np.array(BELIEFS["theta"])
    original, altered = (Prior.named(name)["theta"] for name in ("original", "altered"))
    inside = [100 * float(np.ptp(ndtr(one.to_z(interval)))) for one in (original, altered)]
    medians = [one["prior"]["theta"][0] for one in [*ours, shown]]
    spread = max(medians) / min(medians)
    altering = original.median / altered.median
    return (
        f"Lognormal(0, 4) puts {inside[0]:.1f} % on [0.1, 10]: holds (the altered prior puts "
        f"{inside[1]:.1f} % there). Made from the same beliefs on {whose}, theta has the median "
        f"{shown['prior']['theta'][0]:.2g}, where the original has {original.median:g} and the "
        f"altered {altered.median:.2g}; on {len(ours)} draws of inputs of our own "
        f"{', '.join(f'{m:.2g}' for m in medians[:-1])}. Which inputs were taken moves it by up to "
        f"a factor {spread:.1f}, and the paper's alteration by {altering:.1f}."
    )


def _of_error(found: dict[str, dict[str, Any]], shown: dict[str, Any]) -> str:
    median, log_sd = shown["prior"]["theta"]
    words = []
    for name, one in found.items():
        error = _mean(one, "error")
        theta = one["thetas"][int(error.argmin())]
        place = np.log(theta / median) / log_sd
        words.append(f"{name} {100 * error.min():.1f} % at {theta:.2g} (z = {place:+.1f})")
    return (
        f"Against the labels, which the prior has not seen, the converged graph errs least on "
        f"{'; '.join(words)}. z is the place of that theta in the prior elicited on RG(1/3), in "
        f"its standard deviations."
    )


def _rows(
    found: dict[str, Any], ours: list[dict[str, Any]], theirs: dict[str, Any] | None
) -> list[Row]:
    ends = np.array([_closed(one) for one in ours])
    low, high = _agreeing(found)
    mean = "on average over graphs"
    rows = [
        Row("theta where beliefs hold, lower end", low, None, BELIEFS["theta"][0], mean),
        Row("theta where beliefs hold, upper end", high, None, BELIEFS["theta"][1], mean),
    ]
    for k, end in enumerate(("lower", "upper")):
        note = "in every graph" + (f"; the authors' {_closed(theirs)[k]:.2g}" if theirs else "")
        rows.append(
            Row(f"the same, {end} end", *_spread(ends[:, k]), BELIEFS["theta"][k], note),
        )
    original, altered = (Prior.named(name) for name in ("original", "altered"))
    for name in ("theta", "delta"):
        medians = np.array([one["prior"][name][0] for one in ours])
        spread = medians.std(ddof=1) if len(medians) > 1 else None
        note = f"altered {altered[name].median:.3g}" + (
            f"; on the authors' graphs {theirs['prior'][name][0]:.3g}" if theirs else ""
        )
        rows.append(
            Row(f"prior median of {name}", medians.mean(), spread, original[name].median, note)
        )
    return rows


def _spread(values: np.ndarray) -> tuple[float, float | None]:
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None


def _priors(shown: dict[str, Any], whose: str) -> Table:
    """The paper's two and ours, side by side."""
    named = {f"the paper's {n}": Prior.named(n) for n in ("original", "altered")}
    rows = []
    for title, prior in (
        named | {f"from the beliefs, {whose} graphs": _as_elicited(shown)}
    ).items():
        low, high = prior["theta"].quantile([0.125, 0.875])
        numbers = [f"{m.median:.3g} ({m.log_sd:.2f})" for m in prior.values()]  # type: ignore[attr-defined]
        rows.append([title, *numbers, f"{low:.2g} to {high:.2g}"])
    columns = ["prior", "theta", "delta", "b", "middle 75 % of theta"]
    return Table("Priors: median (standard deviation of the log)", columns, rows)


def _sweeps(found: dict[str, dict[str, Any]]) -> Table:
    rows = []
    for name, one in found.items():
        parts = [_mean(one, what) for what in ("density", "components", "error")]
        for k in range(0, len(one["thetas"]), one["boxed every"]):
            density, components, error = (float(part[k]) for part in parts)
            box = one["boxes"][k]
            rows.append(
                [name, one["thetas"][k], density, components, 100 * error, box["med"], box["most"]]
            )
    columns = ["", "theta", "density", "components", "error %", "median weight", "largest weight"]
    return Table("Along theta, means over the graphs", columns, rows)


def _sweep_figure(found: dict[str, dict[str, Any]]) -> Any:
    axes = axes_for(None, 2, len(found), (12, 6.2), sharex=True).reshape(2, -1)
    for k, (name, one) in enumerate(found.items()):
        shares, pieces = axes[:, k]
        thetas = np.array(one["thetas"])
        for what, colour in (("density", BLUE), ("error", RED)):
            shares.plot(thetas, np.array(one[what]).T, color=colour, lw=0.6, alpha=0.2)
            label = "density" if what == "density" else "error against the labels"
            shares.plot(thetas, _mean(one, what), color=colour, lw=2.2, label=label)
        shares.axhline(
            np.mean(one["labels"]), color=INK, lw=1, ls=":", label="density of the labels"
        )
        shares.axhspan(*BELIEFS["density"], color=GREEN, alpha=0.14, lw=0, label="believed")
        pieces.plot(thetas, np.array(one["components"]).T, color=BLUE, lw=0.6, alpha=0.2)
        pieces.plot(thetas, _mean(one, "components"), color=BLUE, lw=2.2)
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
    axes[0, 0].figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False
    )
    return axes[0, 0].figure


def _weights_figure(found: dict[str, dict[str, Any]]) -> Any:
    axes = axes_for(None, 1, len(found), (12, 4), sharey=True)
    for axis, (name, one) in zip(axes, found.items(), strict=True):
        every = one["boxed every"]
        thetas, boxes = one["thetas"][::every], one["boxes"][::every]
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
    legend_of = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*legend_of, loc="outside upper center", ncols=2, frameon=False)
    return axes[0].figure
