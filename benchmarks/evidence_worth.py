"""What each kind of evidence is worth to two plain classifiers, beside the features of distances.

One draw of each data set of the race (`benchmarks/quality.py`); ridge logistic regression and
boosting as the rivals there. A cell is the NLL per test graph with pairs as independent: logistic /
boosting.

    OMP_NUM_THREADS=1 python benchmarks/evidence_worth.py [--data FOLDER] [--only NAME ...]
                                                          [--draw K]
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import quality
from common import parser
from reproduction.models import log_score
from reproduction.rivals import (
    Classifier,
    Problem,
    features_of_pairs,
    labels,
    ridge_logistic,
)

from edgebelief.data import GraphDataset
from edgebelief.evidence import (
    Diffusion,
    Evidence,
    ForestImportance,
    MostLikelyGraph,
    MutualInformation,
    PartialCorrelation,
    Precision,
    Profile,
    RankCorrelation,
    SignedCorrelation,
    SmoothStructure,
    compute_all,
)

OF_SIGNALS: tuple[Evidence, ...] = (
    PartialCorrelation(), SignedCorrelation(), RankCorrelation(), MutualInformation(),
    ForestImportance(),
)  # fmt: skip
OF_DISTANCES: tuple[Evidence, ...] = (
    MostLikelyGraph(), Precision(), Diffusion(), Profile(), SmoothStructure(),
)  # fmt: skip
ROWS: dict[str, tuple[Evidence, ...]] = {
    "base": (),
    "+ likelihood": (MostLikelyGraph(),),
    "+ precision": (Precision(),),
    "+ diffusion, profile": (Diffusion(), Profile()),
    "+ smooth": (SmoothStructure(),),
    "+ all of distances": OF_DISTANCES,
    "+ all of signals": OF_SIGNALS,
    "+ all": (*OF_DISTANCES, *OF_SIGNALS),
}


def boosting() -> Classifier:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0, early_stopping=True)


CLASSIFIERS: tuple[Callable[[], Classifier], ...] = (ridge_logistic, boosting)


def evidence_of(
    evidence: tuple[Evidence, ...], data: GraphDataset, signals: list[np.ndarray] | None
) -> dict[str, np.ndarray]:
    """Return the channels of all pairs of all graphs, one graph after the other."""
    parts = compute_all(evidence, data, signals)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def nlls(problem: Problem, train: np.ndarray, test: np.ndarray) -> list[float]:
    """Return the NLL per test graph of each classifier."""
    results = []
    for make in CLASSIFIERS:
        model = make()
        model.fit(train, labels(problem.train))
        p = model.predict_proba(test)[:, 1]
        results.append(-log_score(labels(problem.test), p) / len(problem.test))
    return results


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", nargs="*", default=[], choices=list(quality.DATA))
    options.add_argument("--draw", type=int, default=0)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.only or quality.DATA:
        if arguments.data is None and name in quality.WITH_FOLDER:
            print(f"{name}: needs --data")
            continue
        problem = quality.DATA[name][0](arguments.data, arguments.draw)
        sides = problem.signals or (None, None)
        usable = tuple(
            kind for kind in ROWS["+ all"] if not kind.needs_signals or problem.signals is not None
        )
        start = time.perf_counter()
        channels = [evidence_of(usable, d, x) for d, x in zip(problem[:2], sides, strict=True)]
        print(f"{name}: evidence {time.perf_counter() - start:.1f} s", flush=True)
        base = [features_of_pairs(d) for d in problem[:2]]
        for row, kinds in ROWS.items():
            names = [c for kind in kinds if kind in usable for c in kind.channels]
            if kinds and not names:
                continue
            tables = [
                np.column_stack([b, *(c[n] for n in names)])
                for b, c in zip(base, channels, strict=True)
            ]
            shown = " / ".join(f"{nll:.2f}" for nll in nlls(problem, *tables))
            print(f"  {row:22s} {shown}", flush=True)


if __name__ == "__main__":
    main()
