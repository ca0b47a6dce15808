"""The data of the page's charts, as one block of JSON.

Many or large graphs would make the page too large to open. This file decides what is left out; the
page says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from markupsafe import Markup
from numpy.typing import ArrayLike

from ..belief.checks import PredictiveCheck
from ..belief.explain import TermCurve
from ..belief.metrics import calibration_curve
from ..belief.predict import EdgeBelief, Predictions
from ..data.dataset import GraphRecord
from ..edges import Complete
from ..infer.posterior import Posterior
from ..plots.graph import GraphDisplay
from ..plots.reliability import ReliabilityDisplay

# All pairs of a graph with at most WHOLE nodes are embedded. For a larger graph the matrices show
# the LARGEST nodes by expected degree, and the drawing the EDGES most probable edges.
WHOLE, LARGEST, EDGES = 300, 200, 5000
# The first graphs of a data set are embedded: at most GRAPHS of them, with at most PAIRS pairs in
# total (about 20 bytes each). The first graph always is.
GRAPHS, PAIRS = 12, 100_000
# The decimals of a probability, more of them within NEAR of 0 and 1 (the page computes its sd from
# it), and the significant digits of other numbers.
DECIMALS, FINE, NEAR, SIGNIFICANT = 6, 12, 0.001, 5
# The largest number of bins of a histogram, of points of a density curve, and of drawn terms.
BINS, POINTS, TERMS = 40, 160, 24


@dataclass(frozen=True)
class Shown:
    """The graphs that the page contains, completely or in part."""

    n_graphs: int
    reduced: tuple[int, ...]
    """The indices of the graphs that are embedded in part."""

    @classmethod
    def of(cls, n_nodes: Sequence[int]) -> Shown:
        sizes = [n * (n - 1) // 2 if n <= WHOLE else LARGEST**2 // 2 + EDGES for n in n_nodes]
        fit = int(np.searchsorted(np.cumsum(sizes), PAIRS, side="right"))
        n_graphs = max(1, min(fit, GRAPHS))
        return cls(n_graphs, tuple(t for t in range(n_graphs) if n_nodes[t] > WHOLE))


def payload(
    predictions: Predictions,
    posterior: Posterior,
    checks: Iterable[PredictiveCheck],
    terms: Sequence[TermCurve] = (),
    scored: Predictions | None = None,
) -> dict[str, object]:
    """Return the data of all charts; `scored` is compared with the labels, or `predictions`."""
    data = predictions.data
    shown = Shown.of(data.n_nodes)
    return {
        "graphs": [graph(data[t], predictions[t]) for t in range(shown.n_graphs)],
        "calibration": calibration(scored or predictions) if data.n_labels else None,
        "marginals": marginals(posterior),
        "checks": [histogram(check) for check in checks],
        "terms": [term(curve) for curve in terms[:TERMS]],
        "limits": {"edges": EDGES},
    }


def graph(record: GraphRecord, belief: EdgeBelief) -> dict[str, object]:
    """Return one graph: names, positions, and vectors over pairs (i < j, row by row)."""
    support, n_nodes = record.support, len(record.names)
    positions = GraphDisplay(record, belief).positions
    x, y = _unit(np.array([positions[name] for name in record.names]))
    degree = support.degrees(np.asarray(belief.mean, float))
    nodes: dict[str, object] = {
        "names": [clean(name) for name in record.names],
        "x": _decimals(x, 4),
        "y": _decimals(y, 4),
        "degree": _significant(degree, 4),
        "nodes": None,
        "edges": None,
    }
    if n_nodes <= WHOLE:
        return {**nodes, **_among(record, belief, np.ones(n_nodes, bool))}
    rows, cols = support.endpoints
    inside = np.zeros(n_nodes, bool)
    inside[np.argsort(-degree, kind="stable")[:LARGEST]] = True
    strongest = belief.order[:EDGES]
    return {
        **nodes,
        "nodes": np.flatnonzero(inside).tolist(),
        **_among(record, belief, inside),
        "edges": {
            "i": rows[strongest].tolist(),
            "j": cols[strongest].tolist(),
            **_pairs(record, belief, strongest),
        },
    }


def _among(
    record: GraphRecord, belief: EdgeBelief, inside: Bool[np.ndarray, " nodes"]
) -> dict[str, object]:
    """Return all pairs of some nodes, row by row; those that are no candidates have no distance."""
    rows, cols = record.support.endpoints
    which = np.flatnonzero(inside[rows] & inside[cols])
    if record.candidates is None:
        return _pairs(record, belief, which)
    place = np.cumsum(inside) - 1
    whole = Complete(int(inside.sum()))
    pairs = place[rows[which]], place[cols[which]]

    def filled(values: np.ndarray, fill: float) -> np.ndarray:
        matrix = np.full((whole.n_nodes, whole.n_nodes), fill)
        matrix[pairs] = np.asarray(values, float)[which]
        return matrix[whole.endpoints]

    known = filled(record.known, 0.0) > 0
    full = record._replace(
        e=filled(record.e, np.nan),
        a=filled(record.a, 0.0),
        known=known,
    )
    beliefs = EdgeBelief.of(filled(belief.mean, 0.0), filled(belief.epistemic_sd, 0.0))
    return _pairs(full, beliefs, np.arange(whole.n_edges))


def _pairs(record: GraphRecord, belief: EdgeBelief, which: np.ndarray) -> dict[str, object]:
    labels = np.where(record.known, record.a, 2).astype(int)[which]
    return {
        "distance": _significant(record.e[which]),
        "mean": _probabilities(np.asarray(belief.mean, float)[which]),
        "epistemic": _significant(belief.epistemic_sd[which], 4),
        # One character per pair: 0 for no edge, 1 for an edge, ? for unknown.
        "label": "".join("01?"[k] for k in labels) if record.known.any() else None,
    }


def calibration(predictions: Predictions) -> dict[str, object]:
    """Return the reliability diagram."""
    display = ReliabilityDisplay.of(calibration_curve(predictions))
    low, high = display.band
    return {
        "confidence": _significant(display.confidence),
        "accuracy": _significant(display.accuracy),
        "count": display.count.astype(int).tolist(),
        "low": _significant(low),
        "high": _significant(high),
        "outside": display.outside.tolist(),
        "edges": _decimals(display.edges, 4),
        "level": display.level,
    }


def marginals(posterior: Posterior) -> dict[str, dict[str, object] | None]:
    """Return the densities of the scalar parameters; None for a point estimate."""
    densities: dict[str, dict[str, object] | None] = {}
    for name, draws in posterior.numbers().items():
        values = draws[posterior.weights > 0]
        if posterior.continuum is None and np.ptp(values) == 0:
            densities[name] = None
            continue
        x, density = posterior.density(name)
        thin = np.linspace(0, x.size - 1, min(x.size, POINTS)).astype(int)
        site, _ = posterior.model.scalar_names[name]
        prior = np.exp(posterior.model.prior[site].distribution.log_prob(x[thin]))
        densities[name] = {
            "x": _significant(x[thin], 6),
            "posterior": _significant(density[thin]),
            "prior": _significant(np.asarray(prior, float)),
        }
    return densities


def histogram(check: PredictiveCheck) -> dict[str, object]:
    """Return a histogram over [0, 1] for the prior, over the range of the values otherwise."""
    values = check.values if check.observed is None else np.append(check.values, check.observed)
    different = np.unique(np.round(values, 12))  # without differences of rounding
    whole = check.source == "prior" or different.size == 1
    edges = np.linspace(0, 1, BINS + 1) if whole else _edges(different, BINS // 2)
    counts, _ = np.histogram(check.values, edges)
    return {
        "source": check.source,
        "edges": _significant(edges, 6),
        "share": _significant(counts / check.values.size),
        "observed": None if check.observed is None else float(f"{check.observed:.6g}"),
        "n": check.values.size,
    }


def _edges(different: Float[np.ndarray, " values"], most: int) -> Float[np.ndarray, " edges"]:
    """Return the edges of at most so many bins for these values, in ascending order.

    A statistic counts, so its values are multiples of a step. Every bin holds equally many of them:
    else some would stay empty, or hold twice as many, and look like a feature of the distribution.
    """
    step = np.diff(different).min()
    n_values = round(np.ptp(different) / step) + 1
    width = step * np.ceil(n_values / most)
    n_bins = int(np.ceil(n_values * step / width - 1e-9))
    return different[0] - step / 2 + width * np.arange(n_bins + 1)


def term(curve: TermCurve) -> dict[str, object]:
    """Return a term of an additive readout, with its credible band."""
    return {
        "name": clean(curve.name),
        "x": _significant(curve.x),
        "mean": _significant(curve.mean, 4),
        "low": _significant(curve.low, 4),
        "high": _significant(curve.high, 4),
        "levels": [clean(level) for level in curve.levels] or None,
        "needed": curve.matters,
    }


def as_json(value: object) -> Markup:
    """Return JSON for a script element, escaped so that it cannot end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # in JSON these occur inside strings only
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def clean(text: str) -> str:
    """Replace what HTML cannot contain, lone surrogates and control characters, by U+FFFD."""
    return "".join(
        "\ufffd" if 0xD800 <= ord(c) < 0xE000 or (ord(c) < 32 and c not in "\t\n") or ord(c) == 127
        else c
        for c in text
    )  # fmt: skip


def _unit(points: Float[np.ndarray, "nodes 2"]) -> Float[np.ndarray, "2 nodes"]:
    """Scale points to the unit square."""
    low, size = points.min(0), np.ptp(points, axis=0)
    return np.where(size > 1e-9, (points - low) / np.where(size > 1e-9, size, 1), 0.5).T


def _probabilities(p: Float[np.ndarray, " pairs"]) -> list[float | int]:
    """Round probabilities; only those that are exactly 0 or 1 become 0 or 1."""
    least = 10.0**-FINE
    near = np.clip(np.round(p, FINE), least, 1 - least)
    rounded = np.where(np.minimum(p, 1 - p) < NEAR, near, np.round(p, DECIMALS))
    return [_short(v) for v in np.where((p > 0) & (p < 1), rounded, p).tolist()]


def _decimals(values: ArrayLike, digits: int) -> list[float | int]:
    return [_short(v) for v in np.round(np.asarray(values, float), digits).tolist()]


def _significant(values: ArrayLike, digits: int = SIGNIFICANT) -> list[float | int | None]:
    return [
        _short(float(f"{v:.{digits}g}")) if np.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]


def _short(value: float) -> float | int:
    """Write 3.0 as 3: two characters less for each of some ten thousand numbers."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
