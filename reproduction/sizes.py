"""Item 7: which parameters carry over to larger graphs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from edgebelief.belief import BeliefWarning, predict
from edgebelief.convex import Solution, solve, solve_path
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.estimators.settings import scaled_by
from edgebelief.infer import MAP, EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, RED, axes_for, legend_above, tidy
from edgebelief.readouts import Sized

from .item import Answer, Outcome, Row, Table, Work
from .models import SMALLEST, labels_and_means, moments, quietly
from .published import MAP_BY_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Larger graphs: theta against N, trends of the parameters, extrapolation"
CLAIM = (
    "theta(N) = theta_i sqrt((N_i - 1)/(N - 1)) coincides with the best theta on ER(1/4). MAP "
    "estimates at N = 20 ... 200 follow trends (delta linear in N) that extrapolate to N = 1000."
)
ENSEMBLE = ErdosRenyi(0.25)
# The rules for theta, from its best value at the smallest size.
LINES = ("the paper's", "its inverse", "relative to the median")
# The paper's recipe for larger graphs: theta of the largest size, delta on a line, and this b.
B_BEYOND = 13.0
# Single precision cannot tell a probability of an error below this from zero.
FINEST = 6e-8


@dataclass(frozen=True)
class Sizes:
    """The sizes and numbers of graphs."""

    sweep: tuple[int, ...] = (20, 50, 100, 200, 400)
    n_swept: int = 3
    n_thetas: int = 25
    train: tuple[int, ...] = (20, 50, 80, 100, 150, 200)
    n_train: int = 10
    test: tuple[tuple[int, int], ...] = ((250, 3), (500, 2), (1000, 1))
    """Sizes, and how many graphs of each."""
    depth: int = 200

    @property
    def thetas(self) -> np.ndarray:
        return np.geomspace(0.05, 2.0, self.n_thetas)


FULL = Sizes()
SMALL = Sizes((10, 14, 20), 2, 9, (10, 14), 2, ((20, 1),), 10)


def run(work: Work) -> Outcome:
    """Find the best theta at each size, and extrapolate to larger graphs in two ways."""
    s = work.settings(FULL, SMALL)
    swept = [work.once(swept_at, n, s) for n in s.sweep]
    lines = [work.once(on_lines, n, swept[0]["theta"], s) for n in s.sweep]
    fits = [work.once(fitted_at, n, s) for n in s.train]
    recipe = extrapolation(s.train, fits)
    extrapolated = [work.once(by_recipe, n, count, recipe, s) for n, count in s.test]
    sized = work.once(by_size, s)
    tests = [n for n, _ in s.test]
    beyond = [
        [n, a["NLL"], max(b["NLL"], FINEST), a["error %"], b["error %"]]
        for n, a, b in zip(tests, extrapolated, sized["tests"], strict=True)
    ]
    return Outcome(
        [
            _describe_theta(swept, lines, s),
            _describe_distances(swept, s),
            _describe_trends(fits, recipe, s),
            _describe_transfer(beyond, sized),
        ],
        [row for n, fit in zip(s.train, fits, strict=True) for row in _rows(n, fit)],
        [
            Table(
                "Converged network: the best theta, and F1 there and on each line",
                ["N", "best theta", "F1", *(f"F1, {name}" for name in LINES)],
                [
                    [n, best["theta"], best["best F1"], *(at[name] for name in LINES)]
                    for n, best, at in zip(s.sweep, swept, lines, strict=True)
                ],
            ),
            Table(
                "Expected distances",
                ["N", "mean", "maximum"],
                [
                    [n, best["mean"], best["maximum"]]
                    for n, best in zip(s.sweep, swept, strict=True)
                ],
            ),
            Table(
                "Beyond the training sizes: NLL of a pair, and error",
                ["N", "NLL, recipe", "NLL, size-aware", "error %, recipe", "error %, size-aware"],
                beyond,
            ),
        ],
        {
            "the best theta against N": _draw_theta(swept, s),
            "expected distances against N": _draw_distances(swept, s),
            "trends of MAP estimates": _draw_trends(fits, recipe, s),
            "larger graphs": _draw_transfer(beyond),
        },
        {"swept": swept, "lines": lines, "fits": fits, "recipe": recipe, "sized": sized},
    )


def graphs(n_nodes: int, n_graphs: int, use: int) -> GraphDataset:
    """Sample graphs of one size; `use` separates those for sweeping, training and testing."""
    return GraphDataset.sample(10_000 * use + n_nodes, ENSEMBLE, n_graphs, n_nodes)


def swept_at(n_nodes: int, s: Sizes) -> Answer:
    """Return F1 of the converged network's edges at each theta, and moments of the distances."""
    data = graphs(n_nodes, s.n_swept, 0)
    f1 = np.mean([[_f1(x, r.a) for x in solve_path(r.e, s.thetas)] for r in data], axis=0)
    return {
        "f1": f1,
        "theta": float(s.thetas[f1.argmax()]),
        "best F1": float(f1.max()),
        "mean": float(np.mean([r.e.mean() for r in data])),
        "maximum": float(np.mean([r.e.max() for r in data])),
    }


def on_lines(n_nodes: int, theta: float, s: Sizes) -> dict[str, float]:
    """Return F1 at the theta of each rule, which start from the best theta of the smallest size."""
    first, data = s.sweep[0], graphs(n_nodes, s.n_swept, 0)
    ratio = float(np.sqrt((first - 1) / (n_nodes - 1)))
    median = np.mean([np.median(r.e) for r in graphs(first, s.n_swept, 0)])
    scores = []
    for r in data:
        thetas = theta * ratio, theta / ratio, theta * median / np.median(r.e)
        scores.append([_f1(solve(r.e, float(by_rule)), r.a) for by_rule in thetas])
    return dict(zip(LINES, np.mean(scores, axis=0).tolist(), strict=True))


def fitted_at(n_nodes: int, s: Sizes) -> dict[str, float]:
    """Return the MAP estimate at one size, and its training NLL of a pair."""
    model, data = EdgeModel(DPG(s.depth)), graphs(n_nodes, s.n_train, 1)
    with quietly():
        posterior = MAP(starts=2).run(0, model, data)
    params = {name: float(value[0]) for name, value in posterior.params.items()}
    return params | {"NLL": _point_scores(model, params, data)["NLL"]}


def extrapolation(sizes: tuple[int, ...], fits: list[dict[str, float]]) -> dict[str, float]:
    """Fit the paper's recipe: delta on a line, theta of the largest size, b = 13."""
    slope, start = np.polyfit(sizes, [fit["delta"] for fit in fits], 1)
    return {"theta": fits[-1]["theta"], "slope": float(slope), "start": float(start), "b": B_BEYOND}


def by_recipe(n_nodes: int, count: int, recipe: dict[str, float], s: Sizes) -> dict[str, float]:
    """Return the scores of the recipe on larger graphs."""
    delta = recipe["slope"] * n_nodes + recipe["start"]
    params = {"theta": recipe["theta"], "delta": delta, "b": recipe["b"]}
    return _point_scores(EdgeModel(DPG(s.depth)), params, graphs(n_nodes, count, 2))


def by_size(s: Sizes) -> Answer:
    """Fit one size-aware model to the graphs of all sizes; return its scores on larger graphs."""
    records = [record for n in s.train for record in graphs(n, s.n_train, 1)]
    train = GraphDataset([r.e for r in records], [r.a for r in records])
    with quietly():
        model = EdgeModel(DPG(s.depth), Sized())
        posterior = Exact().run(0, model, scaled_by(model.readout.scale, train))
    tests = []
    for n, count in s.test:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BeliefWarning)
            predictions = predict(posterior, scaled_by(model.readout.scale, graphs(n, count, 2)))
        a, p = labels_and_means(predictions)
        wrong = np.where(a == 1, 1 - p, p)
        tests.append(_scores(-np.log1p(-np.minimum(wrong, 1 - SMALLEST)), wrong > 0.5))
    readout = posterior.model.readout
    assert isinstance(readout, Sized)
    return {
        "growth": readout.growth,
        "parameters": moments(posterior),
        "tests": tests,
    }


def _point_scores(
    model: EdgeModel, params: dict[str, float], data: GraphDataset
) -> dict[str, float]:
    """Return the scores at one value of the parameters."""
    losses, wrong = [], []
    for r in data:
        logit = np.asarray(_logits(model, params, jnp.asarray(r.e)), float)
        signed = np.where(r.a == 1, logit, -logit)
        losses.append(np.logaddexp(0, -signed))
        wrong.append(signed < 0)
    return _scores(np.concatenate(losses), np.concatenate(wrong))


@jax.jit
def _logits(model: EdgeModel, params: dict[str, float], e: jax.Array) -> jax.Array:
    return model.logits(params, e)


def _scores(loss: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    return {"NLL": float(loss.mean()), "error %": 100 * float(wrong.mean())}


def _f1(solution: Solution, a: np.ndarray) -> float:
    """Return the F1 score of the edges of a solution."""
    has = np.asarray(solution.support.is_edge(np.asarray(solution.weights)))
    correct = (has & (a == 1)).sum()
    return float(2 * correct / max(has.sum() + (a == 1).sum(), 1))


def _rows(n_nodes: int, fit: dict[str, float]) -> list[Row]:
    published = MAP_BY_SIZE.get(n_nodes)
    if published is None:
        return []
    names = ("theta", "delta", "b", "NLL")
    return [
        Row(f"N = {n_nodes}, MAP, {name}", fit[name], None, value)
        for name, value in zip(names, published, strict=True)
    ]


def _describe_theta(swept: list[Answer], lines: list[Answer], s: Sizes) -> str:
    best = ", ".join(f"{f['theta']:.2f}" for f in swept)
    at = {name: ", ".join(f"{f1[name]:.2f}" for f1 in lines) for name in LINES}
    holds = all(f1[LINES[0]] > 0.9 * f["best F1"] for f1, f in zip(lines, swept, strict=True))
    return (
        f"The paper's line for theta {'holds' if holds else 'does not hold'} on these data. At N = "
        f"{', '.join(map(str, s.sweep))} the best theta of the converged network is {best}; F1 is "
        f"{at[LINES[0]]} on the paper's line, {at[LINES[1]]} on its inverse, and {at[LINES[2]]} "
        f"where theta times the median distance is constant."
    )


def _describe_distances(swept: list[Answer], s: Sizes) -> str:
    first, last = swept[0], swept[-1]
    return (
        f"From N = {s.sweep[0]} to {s.sweep[-1]} the mean of the expected distances goes from "
        f"{first['mean']:.2f} to {last['mean']:.2f} and their maximum from {first['maximum']:.2f} "
        f"to {last['maximum']:.2f}: they concentrate, and the scale that theta refers to moves."
    )


def _describe_trends(fits: list[Answer], recipe: dict[str, float], s: Sizes) -> str:
    theta = ", ".join(f"{fit['theta']:.3f}" for fit in fits)
    return (
        f"MAP at N = {', '.join(map(str, s.train))}: theta {theta}; delta is "
        f"{recipe['slope']:.2f} N {recipe['start']:+.1f} (published 7.76 N - 68.5). The largest "
        f"sizes are separable, so that the prior alone determines delta and b there."
    )


def _describe_transfer(beyond: list[list[float]], sized: Answer) -> str:
    better = all(row[2] <= row[1] for row in beyond)
    words = "; ".join(f"{row[2]:.2g} for {row[1]:.2g} at N = {row[0]}" for row in beyond)
    return (
        f"One size-aware model (growth {sized['growth']:.2f}), with its posterior, is "
        f"{'no worse' if better else 'NOT everywhere as good'} than the paper's recipe of one fit "
        f"for each size. NLL of a pair: {words}. {FINEST:.0e} is as little as single precision "
        f"can tell from zero; the model's own may be less."
    )


def _draw_theta(swept: list[Answer], s: Sizes) -> Figure:
    (axis,) = axes_for(None, 1, 1, (6.4, 4.2))
    n, theta = np.array(s.sweep), swept[0]["theta"]
    root = np.sqrt((n[0] - 1) / (n - 1))
    axis.plot(n, [f["theta"] for f in swept], "o-", color=INK, label="best")
    axis.plot(n, theta * root, "--", color=RED, label=LINES[0])
    axis.plot(n, theta / root, "--", color=ORANGE, label=LINES[1])
    means = np.array([f["mean"] for f in swept])
    axis.plot(n, theta * means[0] / means, color=BLUE, label="theta times mean constant")
    axis.set(xscale="log", yscale="log", xlabel="N", ylabel="theta")
    _mark(axis, s.sweep)
    tidy(axis)
    legend_above(axis, 2)
    return axis.figure


def _draw_distances(swept: list[Answer], s: Sizes) -> Figure:
    (axis,) = axes_for(None, 1, 1, (6.4, 3.8))
    for name, colour in (("mean", BLUE), ("maximum", ORANGE)):
        axis.plot(s.sweep, [f[name] for f in swept], "o-", color=colour, label=name)
    axis.set(xscale="log", xlabel="N", ylabel="expected distance")
    _mark(axis, s.sweep)
    tidy(axis)
    legend_above(axis)
    return axis.figure


def _mark(axis: Axes, sizes: tuple[int, ...]) -> None:
    """Mark the sizes themselves, instead of powers of ten."""
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.minorticks_off()


def _draw_trends(fits: list[Answer], recipe: dict[str, float], s: Sizes) -> Figure:
    axes = axes_for(None, 1, 3, (10, 3.6))
    shared = [n for n in s.train if n in MAP_BY_SIZE]
    for k, (axis, name) in enumerate(zip(axes, ("theta", "delta", "b"), strict=True)):
        axis.plot(s.train, [fit[name] for fit in fits], "o-", color=BLUE, label="ours")
        axis.plot(shared, [MAP_BY_SIZE[n][k] for n in shared], "s", color=ORANGE, label="published")
        axis.set(xlabel="N", ylabel=name)
        tidy(axis)
    n = np.array(s.train)
    axes[1].plot(n, recipe["slope"] * n + recipe["start"], ":", color=INK)
    legend_above(axes[0])
    return axes[0].figure


def _draw_transfer(beyond: list[list[float]]) -> Figure:
    (axis,) = axes_for(None, 1, 1, (6.4, 3.8))
    n = [row[0] for row in beyond]
    for k, name, colour in ((1, "the paper's recipe", RED), (2, "size-aware", GREEN)):
        axis.plot(n, [row[k] for row in beyond], "o-", color=colour, label=name)
    axis.set(yscale="log", xlabel="N", ylabel="NLL of a pair")
    tidy(axis)
    legend_above(axis)
    return axis.figure
