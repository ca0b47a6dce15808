"""Compute evidence: of one graph, or of the graphs of a data set on all cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from ..data import GraphDataset, GraphRecord
from ..data.dataset import frozen
from ..errors import DoesNotApply, InputError, Remedy, Setting, SettingError
from ..progress import progress_bar
from ..threads import Workers
from ..validate import check_signals
from .base import Evidence

Vectors = dict[str, Float[np.ndarray, " edges"]]
"""A vector over the pairs for each channel, by its name."""


def compute(evidence: Sequence[Evidence], e: object, signals: object = None) -> Vectors:
    """Compute what the data of one graph say about each pair.

    Parameters
    ----------
    evidence : sequence of Evidence
    e : array_like, (n_edges,) or (N, N)
        Distances.
    signals : array_like (P, N), optional
        The signals behind them, NaN where missing; evidence with `needs_signals` needs them.

    Returns
    -------
    dict of str to ndarray (n_edges,)
        The channels by name.

    Examples
    --------
    >>> from edgebelief.evidence import Precision, compute
    >>> found = compute([Precision(ridges=(1e-6, 1e-2))], [1.0, 2.0, 1.0])  # a path's resistances
    >>> abs(found["precision 1e-06"]).round(3)
    array([0.707, 0.   , 0.707])
    """
    return compute_all(evidence, GraphDataset([e]), None if signals is None else [signals])[0]


def compute_all(
    evidence: Sequence[Evidence], data: GraphDataset, signals: Iterable[Any] | None = None
) -> list[Vectors]:
    """Compute what the data say about each pair, of every graph of a data set, on all cores.

    It shows progress on terminals, where it takes more than three seconds.

    Parameters
    ----------
    evidence : sequence of Evidence
    data : GraphDataset
    signals : iterable of array_like (P, N), optional
        The signals behind the distances of each graph, NaN where missing.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.evidence import Profile, compute_all
    >>> data = GraphDataset([[1.0, 2.0, 2.0, 2.0, 2.0, 1.0], [1.0, 2.0, 1.0]])
    >>> [vectors["profile"].size for vectors in compute_all([Profile()], data)]
    [6, 3]
    """
    check_names(evidence)
    given = [None] * len(data) if signals is None else list(signals)
    if len(given) != len(data):
        problem = f"are {len(given)} for {len(data)} graphs; one for each."
        raise InputError(problem, argument="signals")
    checked = [_checked(evidence, t, *pair) for t, pair in enumerate(zip(data, given, strict=True))]
    # The slowest first, so that no core is left alone with one at the end.
    jobs = [
        (kind.seconds(len(record.names), 0 if x is None else len(x)), k, t)
        for t, (record, x) in enumerate(zip(data, checked, strict=True))
        for k, kind in enumerate(evidence)
    ]
    order = [(t, k) for _, k, t in sorted(jobs, reverse=True)]

    def job(place: tuple[int, int]) -> Vectors:
        t, k = place
        return _vectors(evidence[k], t, data[t], checked[t])

    bar = progress_bar(total=len(order), desc="evidence", delay=3)
    results: dict[tuple[int, int], Vectors] = {}
    # One thread per job and none within its linear algebra: they would wait for each other.
    with bar, Workers() as workers, threadpool_limits(1):
        for place, vectors in zip(order, workers.map(job, order), strict=True):
            results[place] = vectors
            bar.update()
    kinds = range(len(evidence))
    return [{name: v for k in kinds for name, v in results[t, k].items()} for t in range(len(data))]


def add(
    evidence: Sequence[Evidence], data: GraphDataset, signals: Iterable[Any] | None = None
) -> GraphDataset:
    """Return the data set with the channels as covariates of its pairs.

    An additive readout makes a term of each covariate: this is how evidence becomes terms.
    `GraphLearner` does it in `fit` and whenever it predicts; call it yourself where you work with
    networks, readouts and engines.

    Parameters
    ----------
    evidence, data, signals
        As for `compute_all`.

    Examples
    --------
    >>> from edgebelief import evidence
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> graphs = GraphDataset.sample(0, RandomGeometric(0.4), 3, n_nodes=8, n_signals=100)
    >>> list(evidence.add([evidence.Profile()], graphs)[0].covariates)
    ['profile']
    """
    names = check_names(evidence)
    for t, record in enumerate(data):
        if taken := [name for name in names if name in record.covariates]:
            problem = f"the covariate {taken[0]!r} has the name of a channel of the evidence"
            without = Remedy("leave the evidence out ({})", Setting("evidence", "none"))
            raise InputError(problem, graph=t, remedy=["Rename the covariate", without])
    if not names:
        return data
    records = []
    for record, vectors in zip(data, compute_all(evidence, data, signals), strict=True):
        channels = {name: frozen(values) for name, values in vectors.items()}
        known = {**record.covariates, **channels}
        records.append(record._replace(covariates=known))
    return GraphDataset._of(records)


def check_names(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return the names of all channels; refuse two of one name.

    Examples
    --------
    >>> from edgebelief.evidence import Diffusion, Profile, check_names
    >>> check_names([Profile(), Diffusion(powers=(2, 4))])
    ('profile', 'diffusion 2', 'diffusion 4')
    """
    names = tuple(name for kind in evidence for name in kind.channels)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SettingError(f"has the channel {twice[0]!r} twice.", argument="evidence")
    return names


def _checked(
    evidence: Sequence[Evidence], t: int, record: GraphRecord, x: Any
) -> Float[np.ndarray, "signals nodes"] | None:
    """Return the signals of a graph as an array; None where no evidence needs them."""
    needy = [kind.name for kind in evidence if kind.needs_signals]
    if not needy:
        return None
    if x is None:
        problem = (
            f"the evidence {needy[0]!r} is computed from signals, and there are only distances"
        )
        raise DoesNotApply(problem, graph=t, remedy=["pass the signals", "leave it out"])
    try:
        array = check_signals(x, record.names, allow_nan=True)
        if array.shape[1] != len(record.names):
            problem = f"have {array.shape[1]} columns; the graph has {len(record.names)} nodes."
            raise InputError(problem, argument="signals")
        return array[:, _order(x, record.names)]
    except InputError as error:
        raise error.but(graph=t) from None


def _order(x: Any, names: Sequence[str]) -> list[int]:
    """Return which columns of signals are the nodes of the graph, in its order.

    Columns without names, and those of a graph whose nodes have only numbers, are in that order.
    """
    numbers = [str(i) for i in range(len(names))]
    columns = [str(name) for name in getattr(x, "columns", names)]
    if sorted(columns) == sorted(names):
        return [columns.index(name) for name in names]
    if list(names) == numbers:
        return list(range(len(names)))
    other = next(name for name in columns if name not in names)
    problem = f"have the column {other!r}, which is no node of the graph."
    raise InputError(problem, argument="signals")


def _vectors(
    kind: Evidence, t: int, record: GraphRecord, x: Float[np.ndarray, "signals nodes"] | None
) -> Vectors:
    try:
        if record.candidates is None:
            values = record.distance_matrix() if not kind.needs_signals else x
            assert values is not None
            rows, cols = record.support.endpoints
            each = [m[rows, cols] for m in kind.of_graph(values, record.n_signals)]
        else:
            each = list(kind.of_candidates(record.e, record.candidates, x))
    except InputError as error:
        raise error.but(graph=t) from None
    vectors = dict(zip(kind.channels, each, strict=True))
    for name, vector in vectors.items():
        if not np.isfinite(vector).all():
            problem = f"the evidence {name!r} is not finite: the numbers are too large or too small"
            raise InputError(problem, graph=t, remedy="Rescale them")
    return vectors
