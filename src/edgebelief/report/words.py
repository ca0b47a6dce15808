"""The sentences of the page. Names of nodes and terms are user input, and are escaped."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

import numpy as np
from markupsafe import Markup

from ..belief.checks import PredictiveCheck
from ..belief.explain import TermCurve
from ..belief.metrics import error
from ..belief.predict import Predictions
from ..infer.posterior import PRETRAINED, Fingerprint, Posterior
from ..infer.priors import Marginal
from ..readouts import Additive, TwoSlope
from ..version import __version__
from .payload import clean
from .summary import DOUBTFUL, NEAR_CERTAIN, Summary

# The meaning of each parameter, by the name of its sampling site.
MEANINGS = {
    "theta": "The sparsity of the graph: the larger theta, the more a distance counts against an "
    "edge, and the fewer pairs (the nearest) have a positive weight.",
    "delta": "How fast the probability of an edge grows with the weight from the network: if delta "
    "is large, almost all probabilities are near 0 or 1.",
    "b": "The baseline: a pair with weight zero is an edge with probability 1/(1 + exp(b)).",
    "level": "The scale of edge weights: the logarithm of the weight of an edge whose weight from "
    "the network is 1.",
    "slope": "How edge weights depend on the weights from the network: proportional to them if it "
    "is 1, independent of them if it is 0.",
    "weight_sd": "The standard deviation of the logarithm of an edge weight, given the network.",
    "slack": "How fast the probability falls with the distance of a pair from having a weight: if "
    "it is near zero, all pairs without a weight have the same probability.",
    "alpha": "The strength of the log-degree barrier: a larger alpha gives larger weights, so that "
    "every node has neighbours.",
    "beta": "The penalty of large weights: with a larger beta many pairs have small weights "
    "instead of few having large ones.",
}
# The meaning of b for readouts in which pairs without a weight differ.
BASELINES = {
    TwoSlope: "The baseline: a pair at the threshold of having a weight is an edge with "
    "probability 1/(1 + exp(b)).",
    Additive: "The baseline: a pair with weight zero, to which the curves add nothing, is an edge "
    "with probability 1/(1 + exp(b)).",
}
# Fields of readouts that are learned from the data, and too long to print.
LEARNED = ("levels", "terms", "unit")
# The number of levels of a category in the text for screen readers.
READ = 12
# What is said of scores by cross-validation.
HELD_OUT = (
    "Each label is predicted here by a fit with the same settings that has not seen it; the other "
    "probabilities on this page are those of the model itself."
)
# The observed density is called unlikely if at most this share of replicates is beyond it.
UNLIKE = 0.025


def count(n: float, thing: str, plural: str | None = None) -> str:
    """Write a count with its noun: 12 edges, 1 edge, 3,675 pairs."""
    return f"{n:,.0f} {thing if n == 1 else plural or thing + 's'}"


def percent(share: float) -> str:
    """Write a percentage with one decimal; only exact values are written as 0 % or 100 %."""
    if not np.isfinite(share):
        return "unknown"
    if 0 < share < 0.0005:
        return "less than 0.1\u00a0%"
    if 0.9995 < share < 1:
        return "more than 99.9\u00a0%"
    return f"{100 * share:.{0 if share in (0, 1) else 1}f}\u00a0%"


def probability(p: float) -> str:
    """Write a probability, or its sd, with four decimals; only exact values are 0 or 1."""
    if 0 < p < 0.00005:
        return "< 0.0001"
    if 0.99995 < p < 1:
        return "> 0.9999"
    return f"{p:.4f}"


def number(x: float) -> str:
    """Write a number with four significant digits."""
    if not np.isfinite(x):
        return "unknown" if np.isnan(x) else ("infinite" if x > 0 else "-infinite")
    return f"{x:,.0f}" if abs(x) >= 1e4 and abs(x) < 1e9 else f"{x:.4g}"


def signed(x: float) -> str:
    """Write a term of the log odds with its sign and two decimals."""
    if abs(x) < 0.005:
        return "0"
    return ("+" if x > 0 else "\u2212") + f"{abs(x):,.{2 if abs(x) < 10 else 1}f}"


def named(name: str) -> Markup:
    """Return a name for use in a sentence: escaped, with its text direction isolated."""
    return Markup("<bdi>{}</bdi>").format(clean(name))


def said(text: str, *parts: object) -> Markup:
    """Format a sentence; `parts` may be user input, and are escaped."""
    return Markup(text).format(*parts)


def learned(summary: Summary) -> Iterator[Markup]:
    """Yield what was learned: the predicted edges and how certain they are."""
    s = summary
    low, high = s.n_nodes
    size = f"{low}" if low == high else f"{low} to {high}"
    about = "one graph" if s.n_graphs == 1 else f"{s.n_graphs:,} graphs"
    yield said(
        "This page is about {} of {} nodes{}: {} that could be joined by an edge.",
        about, size, "" if s.n_graphs == 1 else " each", count(s.n_pairs, "pair"),
    )  # fmt: skip
    yield said(
        "{} predicted to be {} (probability over one half){}.",
        _pairs_are(s.n_believed), "an edge" if s.n_believed < 2 else "edges", _near_certain(s),
    )  # fmt: skip
    yield said(
        "{} uncertain, with a probability between {} and {}.", _pairs_are(s.n_doubtful), *DOUBTFUL
    )


def _pairs_are(n_pairs: int) -> str:
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


def more_edges(summary: Summary) -> str:
    """Say how many predicted edges are not listed, and where to find them; empty if none."""
    more = summary.n_believed - len(summary.firmest)
    if more <= 0:
        return ""
    return (
        f"… and {count(more, 'more predicted edge')}: edgebelief predict writes all pairs to a "
        "file, edge_table returns them in Python."
    )


def doubt(summary: Summary, is_fitted: bool = True) -> Iterator[Markup]:
    """Yield where the uncertainty is, and how much of it is epistemic."""
    s = summary
    share = s.expected_wrong / s.n_pairs
    yield said(
        "If every pair is classified at probability one half, {} of {} pairs ({}) are expected to "
        "be wrong.",
        f"{s.expected_wrong:,.1f}", f"{s.n_pairs:,}", percent(share),
    )  # fmt: skip
    if s.n_graphs > 1:
        worst, least = int(np.argmax(s.wrong_by_graph)), int(np.argmin(s.wrong_by_graph))
        yield said(
            "Graph {} is the most uncertain: {} of its pairs are expected to be wrong. Graph {} is "
            "the least uncertain: {}.",
            worst + 1, percent(s.wrong_by_graph[worst]),
            least + 1, percent(s.wrong_by_graph[least]),
        )  # fmt: skip
    if s.doubtful_node is not None:
        node = s.doubtful_node
        yield said(
            "{} node {} is the most uncertain: its pairs have {} of the variance (if it were "
            "spread evenly, each node would have {}).",
            f"In graph {node.graph + 1}," if s.n_graphs > 1 else "Of the nodes,",
            named(node.name), percent(node.share), percent(node.even),
        )  # fmt: skip
    if s.weakest and s.n_pairs > 1:
        pair = s.weakest[0]
        yield said(
            "The most uncertain pair is {} and {}{}, with probability {}.",
            named(pair.source), named(pair.target),
            f" in graph {pair.graph + 1}" if s.n_graphs > 1 else "", f"{pair.mean:.2f}",
        )  # fmt: skip
    what = "comes from uncertainty about the parameters, and more labels would remove it"
    rest = "The rest remains even if the parameters are known."
    if not is_fitted:
        what = "is how far the parts of the network disagree, and what is not known of the density"
        rest = "The rest remains even if they agreed."
    said_share = percent(s.epistemic_share)
    yield said("Of the total variance, {} is epistemic: it {}. {}", said_share, what, rest)


def rightness(predictions: Predictions, seen: int, held_out: bool = False) -> Iterator[Markup]:
    """Yield how often the predictions are right, if there are labels.

    `seen` is the number of graphs that were fitted, of those that are predicted.
    """
    data = predictions.data
    n_pairs = sum(record.e.size for record in data)
    if data.n_labels == 0:
        yield said(
            "No label is known for these graphs, so the accuracy cannot be measured. This page "
            "gives the accuracy that the model expects."
        )
        return
    known = [
        (record.a[record.known], belief.mean[record.known])
        for record, belief in zip(data, predictions, strict=True)
    ]
    a, p = (np.concatenate(column) for column in zip(*known, strict=True))
    which = "every pair" if a.size == n_pairs else f"{a.size:,} of {n_pairs:,} pairs"
    yield said(
        "The label is known for {}. The predictions are right for {} of them; the model expected "
        "{}.",
        which, percent(1 - float(error(predictions))), percent(float(np.maximum(p, 1 - p).mean())),
    )  # fmt: skip
    common = float(a.mean())
    yield said(
        "Always predicting “{}” would be right for {}.",
        "an edge" if common > 0.5 else "no edge", percent(max(common, 1 - common)),
    )  # fmt: skip
    if held_out:
        yield said("{}", HELD_OUT)
    if seen:
        which = "These are the labels that the model was fitted to"
        if seen < len(data):
            which = f"{seen} of these {len(data)} graphs were fitted, labels and all"
        yield said(
            "<strong>{}: the accuracy on other graphs is likely to be lower.</strong>", which
        )


def needed(terms: Sequence[TermCurve], engine: str) -> Iterator[Markup]:
    """Yield which terms the labels need, and which they do not."""
    present = [curve for curve in terms if curve.share > 0]
    if not present:
        yield said("The model is a mixture of parts without any of them.")
        return
    if all((curve.low == curve.high).all() for curve in present):
        text = "{} gives a point estimate without a credible band: which terms matter is unknown."
        yield said(text, engine)
        return
    if any(curve.share < 1 for curve in terms):
        yield said(
            "The model is a mixture of parts with some of the terms. What is said and drawn of "
            "a term is about the parts that have it."
        )
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
    """Join names for a sentence: a, b and c."""
    *most, last = (named(name) for name in names)
    return said("{} and {}", Markup(", ").join(most), last) if most else last


def extent(curve: TermCurve) -> tuple[str, str]:
    """Return where a term lowers the log odds most, and where it raises them most."""

    def at(k: int) -> str:
        where = curve.levels[k] if curve.levels else number(curve.x[k])
        return f"{signed(curve.mean[k])} at {where}"

    return at(int(np.argmin(curve.mean))), at(int(np.argmax(curve.mean)))


def picture(curve: TermCurve) -> str:
    """Describe the chart of a term in words, for screen readers."""
    if curve.levels:
        levels = zip(curve.levels[:READ], curve.mean, strict=False)
        return f"What {curve.name} adds: " + ", ".join(f"{k} {signed(x)}" for k, x in levels)
    points = (0, curve.x.size // 2, curve.x.size - 1)
    heights = (f"{signed(curve.mean[k])} at {number(curve.x[k])}" for k in points)
    return f"What {curve.name} adds: " + ", ".join(heights)


def further(sizes: Mapping[str, int]) -> str:
    """Count the parameters of the curves, which no table lists."""
    each = (f"{n:,} {'coefficients' if name == 'curves' else name}" for name, n in sizes.items())
    if not sizes:
        return ""
    return f"{count(sum(sizes.values()), 'further parameter')} ({' and '.join(each)})"


def meaning(name: str, posterior: Posterior) -> str:
    """Describe the meaning of a parameter, with its effect at the posterior median for b."""
    model = posterior.model
    if name not in MEANINGS:
        parts = ("network", "readout", "likelihood")
        inside = next(part for part in parts if name in getattr(model, part).params_type._fields)
        return f"A parameter of the {inside}, {type(getattr(model, inside)).__name__}."
    text = MEANINGS[name]
    if name == "b":
        text = BASELINES.get(type(model.readout), text)
        middle = float(posterior.summary()["q50"]["b"])
        text += f" At the posterior median of b this is {1 / (1 + np.exp(middle)):.2g}."
    return text


def checked(check: PredictiveCheck) -> str:
    """Describe the result of a predictive check."""
    low, high = np.quantile(check.values, [0.05, 0.95])
    text = (
        f"Over {check.values.size:,} data sets drawn from the {check.source}, the mean density is "
        f"{check.values.mean():.3g}; 90 % of them are between {low:.3g} and {high:.3g}."
    )
    if check.observed is not None:
        above = check.tail_probability
        unlike = f": graphs like these are unlikely under the {check.source}"
        text += f" The density of the labels is {check.observed:.3g}; {percent(above)} of the data "
        text += f"sets are denser{'' if UNLIKE <= above <= 1 - UNLIKE else unlike}."
    return text


def settings(
    posterior: Posterior, reported: Fingerprint, further_rows: Mapping[str, object]
) -> dict[str, str]:
    """Return the rows of the table of settings, which reproduce the result."""
    fitted = posterior.fingerprint
    if posterior.engine == PRETRAINED:
        how = "nothing was fitted"
        if fitted.n_graphs:
            how = "it was trained on simulated graphs of one kind, too"
        rows = {"belief": f"of the network that ships with edgebelief; {how}"}
    else:
        rows = _of_fit(posterior)
    rows["reported on"] = "the same" if fitted.digest == reported.digest else fingerprint(reported)
    rows |= {name: str(value) for name, value in further_rows.items()}
    rows["versions"] = (
        f"edgebelief {__version__}, JAX {version('jax')}, NumPy {version('numpy')}, "
        f"Python {'.'.join(map(str, sys.version_info[:3]))}"
    )
    return rows


def _of_fit(posterior: Posterior) -> dict[str, str]:
    """Return the rows about the model, and how and to what it was fitted."""
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
    return rows | {"fitted to": fingerprint(posterior.fingerprint)}


def fingerprint(data: Fingerprint) -> str:
    """Describe a data set in one line."""
    low, high = min(data.n_nodes), max(data.n_nodes)
    size = f"{low}" if low == high else f"{low} to {high}"
    text = f"{count(data.n_graphs, 'graph')} of {size} nodes, {count(data.n_labels, 'label')}"
    if data.n_signals is not None:
        text += f", {number(data.n_signals)} signals each"
    return f"{text}, median distance {data.scale:.4g}, SHA-256 {data.digest}"


def described(part: object) -> str:
    """Write a part of a model with its settings: DPG(depth=200, ...)."""
    is_part = isinstance(part, Marginal) or hasattr(type(part), "params_type")
    if is_part and dataclasses.is_dataclass(part):
        names = [field.name for field in dataclasses.fields(part) if field.name not in LEARNED]
        parts = (f"{name}={described(getattr(part, name))}" for name in names)
        return f"{type(part).__name__}({', '.join(parts)})"
    return repr(float(part)) if isinstance(part, float) else repr(part)
