"""The page's sentences. Names come from the caller: they are escaped and kept to themselves."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from markupsafe import Markup

from ..belief.checks import PredictiveCheck
from ..belief.explain import TermCurve
from ..belief.metrics import error
from ..belief.predict import Predictions
from ..infer.posterior import Fingerprint, Posterior
from ..infer.priors import Marginal
from ..readouts import Additive, TwoSlope
from ..version import __version__
from .payload import clean
from .summary import DOUBTFUL, NEAR_CERTAIN, Summary

# What a parameter does, by the name of its sampling site.
MEANINGS = {
    "theta": "How much distance counts, and so how sparse the graph is: with a larger theta fewer "
    "pairs keep a weight above zero, the nearest ones.",
    "delta": "How fast belief grows with the weight that the network gives to a pair: with a large "
    "delta belief is all or nothing.",
    "b": "How little is believed in a pair that the network gives no weight: its probability is "
    "1/(1 + exp(b)).",
    "level": "How large weights are: the logarithm of the weight of an edge to which the network "
    "gives the weight 1.",
    "slope": "How weights follow those of the network: with 1 they are proportional to them, with "
    "0 unrelated.",
    "weight_sd": "How far the logarithm of a weight is from what the network says of it.",
    "slack": "How fast belief falls for pairs without a weight, the further they are from having "
    "one: near zero they are all alike.",
    "alpha": "How much it matters that every node is joined to others: with a larger alpha weights "
    "grow, so that no node is left alone.",
    "beta": "How much large weights cost: with a larger beta many pairs share small weights "
    "instead of few having large ones.",
}
# What b is where pairs without a weight are not all alike.
BASELINES = {
    TwoSlope: "How little is believed in a pair that is at the threshold of having a weight: its "
    "probability is 1/(1 + exp(b)).",
    Additive: "How little is believed in a pair that the network gives no weight, before the "
    "curves add to it: its probability is 1/(1 + exp(b)).",
}
# Settings of readouts that are found in the data, and long.
FOUND = ("levels", "terms")
# Levels of a category that are read out.
READ = 12
# A replicated density is unlike the labels' when so small a share of them is beyond it.
UNLIKE = 0.025


def count(n: float, thing: str, plural: str | None = None) -> str:
    """12 edges, 1 edge, 3,675 pairs."""
    return f"{n:,.0f} {thing if n == 1 else plural or thing + 's'}"


def percent(share: float) -> str:
    """One decimal, and never 0 or 100 unless it is; the sign stays on the line of the number."""
    if not np.isfinite(share):
        return "unknown"
    if 0 < share < 0.0005:
        return "less than 0.1\u00a0%"
    if 0.9995 < share < 1:
        return "more than 99.9\u00a0%"
    return f"{100 * share:.{0 if share in (0, 1) else 1}f}\u00a0%"


def probability(p: float) -> str:
    """Four decimals, and never 0 or 1 unless it is."""
    if 0 < p < 0.00005:
        return "< 0.0001"
    if 0.99995 < p < 1:
        return "> 0.9999"
    return f"{p:.4f}"


def number(x: float) -> str:
    """Four significant digits."""
    if not np.isfinite(x):
        return "unknown" if np.isnan(x) else ("infinite" if x > 0 else "-infinite")
    return f"{x:,.0f}" if abs(x) >= 1e4 and abs(x) < 1e9 else f"{x:.4g}"


def signed(x: float) -> str:
    """What is added to log odds: two decimals are plenty."""
    if abs(x) < 0.005:
        return "0"
    return ("+" if x > 0 else "\u2212") + f"{abs(x):,.{2 if abs(x) < 10 else 1}f}"


def named(name: str) -> Markup:
    """A name inside a sentence: escaped, and its direction of writing kept to itself."""
    return Markup("<bdi>{}</bdi>").format(clean(name))


def said(text: str, *parts: Any) -> Markup:
    """A sentence of ours with parts that may be the caller's."""
    return Markup(text).format(*parts)


def learned(summary: Summary) -> Iterator[Markup]:
    """What was learned, and how sure."""
    s = summary
    low, high = s.n_nodes
    size = f"{low}" if low == high else f"{low} to {high}"
    about = "one graph" if s.n_graphs == 1 else f"{s.n_graphs:,} graphs"
    yield said(
        "This page is about {} of {} nodes{}: {} that could be joined by an edge.",
        about, size, "" if s.n_graphs == 1 else " each", count(s.n_pairs, "pair"),
    )  # fmt: skip
    yield said(
        "{} believed to be {} (probability over one half){}.",
        _so_many(s.n_believed), "an edge" if s.n_believed < 2 else "edges", _near_certain(s),
    )  # fmt: skip
    yield said(
        "{} doubtful, with a probability between {} and {}.", _so_many(s.n_doubtful), *DOUBTFUL
    )


def _so_many(n_pairs: int) -> str:
    return "No pair is" if n_pairs == 0 else count(n_pairs, "pair is", "pairs are")


def _near_certain(s: Summary) -> str:
    limit = f"{NEAR_CERTAIN:g} or more"
    if s.n_believed == 0:
        return ""
    if s.n_near_certain == 0:
        return f"; none of them near certain ({limit})"
    if s.n_near_certain == s.n_believed:
        return f", near certain ({limit})" if s.n_believed == 1 else f", all near certain ({limit})"
    return f"; {s.n_near_certain:,} of them near certain ({limit})"


def doubt(summary: Summary) -> Iterator[Markup]:
    """Where the doubt is, and of what kind."""
    s = summary
    share = s.expected_wrong / s.n_pairs
    yield said(
        "Calling every pair by its likelier side, {} of {} calls ({}) are expected to be wrong.",
        f"{s.expected_wrong:,.1f}", f"{s.n_pairs:,}", percent(share),
    )  # fmt: skip
    if s.n_graphs > 1:
        worst = int(np.argmax(s.wrong_by_graph))
        least = int(np.argmin(s.wrong_by_graph))
        yield said(
            "Most doubt is in graph {}, where {} of the calls are expected to be wrong (in graph "
            "{}, the surest, {}).",
            worst + 1, percent(s.wrong_by_graph[worst]),
            least + 1, percent(s.wrong_by_graph[least]),
        )  # fmt: skip
    if s.doubtful_node is not None:
        node = s.doubtful_node
        yield said(
            "{} is greatest around node {}: its pairs hold {} of the doubt{} (each node would have "
            "{} if it were spread evenly).",
            f"In graph {node.graph + 1} it" if s.n_graphs > 1 else "Doubt", named(node.name),
            percent(node.share), " there" if s.n_graphs > 1 else "", percent(node.even),
        )  # fmt: skip
    if s.weakest and s.n_pairs > 1:
        pair = s.weakest[0]
        yield said(
            "The least certain pair is {} and {}{}, with probability {}.",
            named(pair.source), named(pair.target),
            f" in graph {pair.graph + 1}" if s.n_graphs > 1 else "", f"{pair.mean:.2f}",
        )  # fmt: skip
    yield said(
        "Of all this doubt, {} is about the parameters, and more labels would remove it; the rest "
        "is in the distances themselves.",
        percent(s.epistemic_share),
    )


def rightness(predictions: Predictions, fitted: Fingerprint) -> Iterator[Markup]:
    """How often belief was right; that nobody knows, without labels."""
    data = predictions.data
    n_pairs = sum(record.e.size for record in data)
    if data.n_labels == 0:
        yield said(
            "No label is known for these graphs, so nothing on this page says how often the belief "
            "is right; only how often it expects to be."
        )
        return
    known = [
        (record.a[record.known], belief.mean[record.known])
        for record, belief in zip(data, predictions, strict=True)
    ]
    a, p = (np.concatenate(column) for column in zip(*known, strict=True))
    which = "every pair" if a.size == n_pairs else f"{a.size:,} of {n_pairs:,} pairs"
    yield said(
        "The true answer is known for {}. The likelier side was right for {} of them, where the "
        "belief itself expected {}.",
        which, percent(1 - float(error(predictions))), percent(float(np.maximum(p, 1 - p).mean())),
    )  # fmt: skip
    common = float(a.mean())
    yield said(
        "Always answering “{}” would have been right for {}.",
        "an edge" if common > 0.5 else "no edge", percent(max(common, 1 - common)),
    )  # fmt: skip
    if same_data(fitted, Fingerprint.of(data)):
        yield said(
            "<strong>These are the labels that the model was fitted to: on other graphs expect "
            "somewhat less.</strong>"
        )


def same_data(fitted: Fingerprint, reported: Fingerprint) -> bool:
    """Whether the page is about the graphs and labels that were fitted."""
    return fitted.digest == reported.digest


def needed(terms: Sequence[TermCurve], engine: str) -> Iterator[Markup]:
    """Which terms the labels ask for, and which they do not."""
    if all((curve.low == curve.high).all() for curve in terms):
        yield said(
            "{} gives one value, without a band, so nothing here tells which terms are needed.",
            engine,
        )
        return
    yes = [curve.name for curve in terms if curve.matters]
    no = [curve.name for curve in terms if not curve.matters]
    if not yes:
        yield said("The band of every term includes zero everywhere: the labels need none of them.")
        return
    yield said(
        "<strong>The labels need {}.</strong>",
        "every one of them" if not no and len(yes) > 1 else _listed(yes),
    )
    if no:
        yield said(
            "The band of {} includes zero everywhere: the labels do not need {}.",
            _listed(no), "it" if len(no) == 1 else "them",
        )  # fmt: skip


def _listed(names: Sequence[str]) -> Markup:
    """Names in a sentence: a, b and c."""
    *most, last = (named(name) for name in names)
    return said("{} and {}", Markup(", ").join(most), last) if most else last


def extent(curve: TermCurve) -> tuple[str, str]:
    """Where a term lowers the log odds most, and where it raises them most."""

    def at(k: int) -> str:
        where = curve.levels[k] if curve.levels else number(curve.x[k])
        return f"{signed(curve.mean[k])} at {where}"

    return at(int(np.argmin(curve.mean))), at(int(np.argmax(curve.mean)))


def picture(curve: TermCurve) -> str:
    """A term for those who do not see its picture."""
    if curve.levels:
        named = zip(curve.levels[:READ], curve.mean, strict=False)
        return f"What {curve.name} adds: " + ", ".join(f"{k} {signed(x)}" for k, x in named)
    places = (0, curve.x.size // 2, curve.x.size - 1)
    heights = (f"{signed(curve.mean[k])} at {number(curve.x[k])}" for k in places)
    return f"What {curve.name} adds: " + ", ".join(heights)


def further(sizes: Mapping[str, int]) -> str:
    """The numbers that curves are made of, which no table lists."""
    each = (f"{n:,} {'coefficients' if name == 'curves' else name}" for name, n in sizes.items())
    return f"{count(sum(sizes.values()), 'further number')} ({' and '.join(each)})" if sizes else ""


def meaning(name: str, posterior: Posterior) -> str:
    """What a parameter does, with a number where it helps."""
    model = posterior.model
    if name not in MEANINGS:
        parts = ("network", "readout", "likelihood")
        inside = next(part for part in parts if name in getattr(model, part).params_type._fields)
        return f"A parameter of the {inside}, {type(getattr(model, inside)).__name__}."
    text = MEANINGS[name]
    if name == "b":
        text = BASELINES.get(type(model.readout), text)
        middle = float(posterior.summary()["q50"]["b"])
        text += f" Here that is about {1 / (1 + np.exp(middle)):.2g}."
    return text


def checked(check: PredictiveCheck) -> str:
    """A predictive check in words."""
    low, high = np.quantile(check.values, [0.05, 0.95])
    text = (
        f"In {check.values.size:,} data sets drawn from the {check.source}, a share "
        f"{check.values.mean():.3g} of the pairs is joined on average; "
        f"in nine of ten sets between {low:.3g} and {high:.3g}."
    )
    if check.observed is not None:
        above = check.tail_probability
        text += f" In the labels it is {check.observed:.3g}; {percent(above)} of the sets have more"
        if not UNLIKE <= above <= 1 - UNLIKE:
            text += f": the {check.source} hardly draws graphs like these"
        text += "."
    return text


def settings(
    posterior: Posterior, reported: Fingerprint, given: Mapping[str, Any]
) -> dict[str, str]:
    """What makes the result again, a row each."""
    model = posterior.model
    depth = getattr(model.network, "depth", "unknown")
    rows: dict[str, str] = {
        "network": described(model.network),
        "depth": "converged" if depth is None else f"{depth} layers",
        "readout": described(model.readout),
        "likelihood": described(model.likelihood),
        **{f"prior of {name}": described(marginal) for name, marginal in model.prior.items()},
        "engine": posterior.engine,
        **{f"engine: {name}": str(value) for name, value in posterior.settings.items()},
    }
    if posterior.log_evidence is not None:
        rows["log evidence"] = f"{posterior.log_evidence:.2f}"
    rows["fitted to"] = fingerprint(posterior.fingerprint)
    rows["reported on"] = (
        "the same" if same_data(posterior.fingerprint, reported) else fingerprint(reported)
    )
    rows |= {name: str(value) for name, value in given.items()}
    rows["versions"] = (
        f"edgebelief {__version__}, JAX {version('jax')}, NumPy {version('numpy')}, "
        f"Python {'.'.join(map(str, sys.version_info[:3]))}"
    )
    return rows


def fingerprint(found: Fingerprint) -> str:
    """Which data, in a line."""
    low, high = min(found.n_nodes), max(found.n_nodes)
    size = f"{low}" if low == high else f"{low} to {high}"
    text = f"{count(found.n_graphs, 'graph')} of {size} nodes, {count(found.n_labels, 'label')}"
    if found.n_signals is not None:
        text += f", {number(found.n_signals)} signals each"
    return f"{text}, median distance {found.scale:.4g}, SHA-256 {found.digest}"


def described(thing: Any) -> str:
    """A class with its settings: DPG(depth=200, ...)."""
    if isinstance(thing, Marginal) or hasattr(type(thing), "params_type"):
        parts = (
            f"{one.name}={described(getattr(thing, one.name))}"
            for one in dataclasses.fields(thing)
            if one.name not in FOUND
        )
        return f"{type(thing).__name__}({', '.join(parts)})"
    return repr(float(thing)) if isinstance(thing, float) else repr(thing)
