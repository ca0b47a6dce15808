"""The page's numbers: what its charts draw, as one block of JSON.

Graphs can be many and large, and a page has to open. What is left out is decided here, and said on
the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from ..belief.checks import PredictiveCheck
from ..belief.explain import TermCurve
from ..belief.metrics import calibration_curve
from ..belief.predict import EdgeBelief, Predictions
from ..data.dataset import GraphRecord
from ..infer.posterior import Posterior
from ..plots.graph import GraphDisplay
from ..plots.reliability import ReliabilityDisplay

# A graph of up to WHOLE nodes is embedded whole. Of a larger one the matrices show the LARGEST
# nodes by expected degree, and the drawing the EDGES strongest edges.
WHOLE, LARGEST, EDGES = 300, 200, 5000
# The first graphs of a set are embedded: at most so many, while their pairs are at most so many
# (about 20 bytes each). The first always is.
GRAPHS, PAIRS = 12, 100_000
# Digits: of a probability (its sd is computed from it in the page), significant ones of the rest.
DECIMALS, SIGNIFICANT = 6, 5
# Bins of a histogram, and points of a density curve, at most. Terms that are drawn, at most.
BINS, POINTS, TERMS = 40, 160, 24


@dataclass(frozen=True)
class Shown:
    """Which graphs and which part of them the page holds."""

    n_graphs: int
    reduced: tuple[int, ...]
    """Places of graphs that are not embedded whole."""

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
) -> dict[str, Any]:
    """Everything that is drawn."""
    data = predictions.data
    shown = Shown.of(data.n_nodes)
    return {
        "graphs": [graph(data[t], predictions[t]) for t in range(shown.n_graphs)],
        "calibration": calibration(predictions) if data.n_labels else None,
        "marginals": marginals(posterior),
        "checks": [histogram(check) for check in checks],
        "terms": [term(curve) for curve in terms[:TERMS]],
        "limits": {"edges": EDGES},
    }


def graph(record: GraphRecord, belief: EdgeBelief) -> dict[str, Any]:
    """One graph: names, places, and vectors over pairs (i < j, row by row)."""
    support, n_nodes = record.support, len(record.names)
    places = GraphDisplay(record, belief).positions
    x, y = _unit(np.array([places[name] for name in record.names]))
    found: dict[str, Any] = {
        "names": [clean(name) for name in record.names],
        "x": _decimals(x, 4),
        "y": _decimals(y, 4),
        "degree": _significant(support.to_matrix(np.asarray(belief.mean, float)).sum(0), 4),
        "nodes": None,
        "edges": None,
    }
    if n_nodes <= WHOLE:
        return {**found, **_pairs(record, belief, np.arange(record.e.size))}
    rows, cols = support.endpoints
    degree = support.to_matrix(np.asarray(belief.mean, float)).sum(0)
    inside = np.zeros(n_nodes, bool)
    inside[np.argsort(-degree, kind="stable")[:LARGEST]] = True
    strongest = np.argsort(-belief.mean, kind="stable")[:EDGES]
    return {
        **found,
        "nodes": np.flatnonzero(inside).tolist(),
        **_pairs(record, belief, np.flatnonzero(inside[rows] & inside[cols])),
        "edges": {
            "i": rows[strongest].tolist(),
            "j": cols[strongest].tolist(),
            **_pairs(record, belief, strongest),
        },
    }


def _pairs(record: GraphRecord, belief: EdgeBelief, which: np.ndarray) -> dict[str, Any]:
    labels = np.where(record.known, record.a, 2).astype(int)[which]
    return {
        "distance": _significant(record.e[which]),
        "mean": _decimals(belief.mean[which], DECIMALS),
        "epistemic": _significant(np.round(belief.epistemic_sd[which], DECIMALS), 4),
        # A character for each: no edge, edge, unknown.
        "label": "".join("01?"[k] for k in labels) if record.known.any() else None,
    }


def calibration(predictions: Predictions) -> dict[str, Any]:
    """The reliability diagram."""
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


def marginals(posterior: Posterior) -> dict[str, Any]:
    """Densities of the parameters that are a number; None where there is none (a point)."""
    found: dict[str, Any] = {}
    for name, draws in posterior.numbers().items():
        values = draws[posterior.weights > 0]
        if posterior.continuum is None and np.ptp(values) == 0:
            found[name] = None
            continue
        x, density = posterior.density(name)
        thin = np.linspace(0, x.size - 1, min(x.size, POINTS)).astype(int)
        of, _ = posterior.model.scalar_names[name]
        prior = np.exp(posterior.model.prior[of].distribution.log_prob(x[thin]))
        found[name] = {
            "x": _significant(x[thin], 6),
            "posterior": _significant(density[thin]),
            "prior": _significant(np.asarray(prior, float)),
        }
    return found


def histogram(check: PredictiveCheck) -> dict[str, Any]:
    """Of the prior over all densities; of the posterior, which is narrow, over its own range."""
    values = check.values if check.observed is None else np.append(check.values, check.observed)
    whole = check.source == "prior" or np.ptp(values) == 0
    edges = np.linspace(0, 1, BINS + 1) if whole else np.histogram_bin_edges(values, BINS // 2)
    counts, _ = np.histogram(check.values, edges)
    return {
        "source": check.source,
        "edges": _significant(edges, 6),
        "share": _significant(counts / check.values.size),
        "observed": None if check.observed is None else float(f"{check.observed:.6g}"),
        "n": check.values.size,
    }


def term(curve: TermCurve) -> dict[str, Any]:
    """A term of an additive readout, with its band."""
    return {
        "name": clean(curve.name),
        "x": _significant(curve.x),
        "mean": _significant(curve.mean, 4),
        "low": _significant(curve.low, 4),
        "high": _significant(curve.high, 4),
        "levels": [clean(level) for level in curve.levels] or None,
        "needed": curve.matters,
    }


def as_json(value: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element or start another."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # inside JSON these appear in strings only
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def clean(text: str) -> str:
    """Without what no page can hold: lone surrogates and control characters become U+FFFD."""
    return "".join(
        "\ufffd" if 0xD800 <= ord(c) < 0xE000 or (ord(c) < 32 and c not in "\t\n") or ord(c) == 127
        else c
        for c in text
    )  # fmt: skip


def _unit(points: Float[np.ndarray, "nodes 2"]) -> Float[np.ndarray, "2 nodes"]:
    """Into the unit square."""
    low, size = points.min(0), np.ptp(points, axis=0)
    return np.where(size > 1e-9, (points - low) / np.where(size > 1e-9, size, 1), 0.5).T


def _decimals(values: Any, digits: int) -> list[float | int]:
    return [_short(v) for v in np.round(np.asarray(values, float), digits).tolist()]


def _significant(values: Any, digits: int = SIGNIFICANT) -> list[float | int | None]:
    return [
        _short(float(f"{v:.{digits}g}")) if np.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]


def _short(value: float) -> float | int:
    """3 for 3.0: two characters less, some ten thousand times."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
