"""Item 6: graphs of another kind than those of the training."""

from __future__ import annotations

import numpy as np

from . import contest
from .contest import EXPECTED, OTHERS
from .item import Outcome, Row, Table, Work
from .models import ADDITIVE, PAPERS, SCORES
from .published import ENSEMBLES

TITLE = "Label mismatch: other ensembles than the training's"
CLAIM = (
    "Trained on RG(1/3), tested on RG(1/2), ER(1/2) and BA(1): uncertainty tells that something is "
    "different, and MIMO-E generalises best on RG(1/2) and BA(1)."
)


def run(work: Work) -> Outcome:
    """All models on the other ensembles."""
    found = contest.table_of(work)
    rows: list[Row] = []
    for name in PAPERS:
        for kind in OTHERS:
            rows += [
                row._replace(what=f"{kind}: {row.what}")
                for row in contest.rows_of(found, name, kind, ENSEMBLES[name][kind])
            ]
    dpg = [row for row in rows if ": DPG" in row.what]
    everyone = []
    for kind in (EXPECTED, *OTHERS):
        for name in (*PAPERS, ADDITIVE):
            own, theirs = contest.values(found, name, kind), contest.of_authors(found, name, kind)
            if len(own) or theirs is not None:
                shown = theirs if theirs is not None else own.mean(0)
                label = "RG(1/3)" if kind == EXPECTED else kind
                everyone.append([label, name, *np.asarray(shown)])
    return Outcome(
        [
            f"DPG on graphs of our own: every published score is "
            f"{'inside' if contest.inside(dpg) else 'NOT inside'} our mean ± 2 standard "
            f"deviations over seeds.",
            _of_best(everyone),
            "Test graphs of the other kinds are drawn by us for every model (the authors' were not "
            "posted); standard deviations of ours are over draws of training and test graphs.",
        ],
        rows,
        [Table("All models", ["tested on", "", *SCORES], everyone)],
    )


def _of_best(everyone: list[list[object]]) -> str:
    words = []
    for kind in OTHERS:
        nll = {row[1]: float(row[2]) for row in everyone if row[0] == kind}  # type: ignore[arg-type]
        papers = {name: nll[name] for name in PAPERS if name in nll}
        best = min(papers, key=lambda name: papers[name])
        words.append(
            f"{kind}: {best} ({papers[best]:.1f}; additive {nll.get(ADDITIVE, np.nan):.1f})"
        )
    return "Of the paper's models the best NLL has, on " + "; ".join(words) + "."
