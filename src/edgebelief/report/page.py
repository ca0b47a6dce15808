"""Render the contents of a report as one HTML page, with styles, scripts and data inline."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ..belief import metrics
from ..belief.checks import PredictiveCheck
from ..belief.explain import TermCurve
from ..belief.predict import Predictions
from ..data.dataset import GraphDataset
from ..errors import InputError
from ..infer.posterior import Fingerprint, Posterior
from ..plots.terms import WORDS
from ..version import __version__
from . import words
from .payload import EDGES, LARGEST, TERMS, WHOLE, Shown, as_json, clean, payload
from .reasons import Reasons
from .summary import DOUBTFUL, NEAR_CERTAIN, Summary

HERE = Path(__file__).parent
Figure = tuple[str, str, str]  # the name of a number, the number, and its meaning

# The scores of the predictions against the labels, with their meanings.
SCORES: dict[str, tuple[Callable[[Predictions], metrics.Score], str]] = {
    "error": (metrics.error, "share of misclassified pairs (at probability one half)"),
    "NLL": (
        metrics.nll,
        "negative log-likelihood: minus the log probability of all labels of a graph; mean over "
        "graphs",
    ),
    "Brier score": (
        metrics.brier,
        "mean squared error of the probability, averaged over the posterior (this includes the "
        "posterior variance)",
    ),
    "Brier score of the mean": (
        metrics.brier_of_mean,
        "mean squared error of the posterior mean probability, which this page shows",
    ),
    "ECE": (
        metrics.ece,
        "expected calibration error: the distance of accuracy from confidence, averaged over pairs",
    ),
}


class Expectation(NamedTuple):
    """A summary of the data of one graph, and what a pretrained network expects of such data."""

    graph: int
    meaning: str
    value: float
    low: float
    high: float
    """Between which nine in ten graphs of the training world are that are like this in size."""

    @property
    def is_unusual(self) -> bool:
        """Whether the value is outside."""
        return not self.low <= self.value <= self.high


@dataclass(frozen=True)
class Contents:
    """What a page shows of a posterior and its predictions for some graphs."""

    posterior: Posterior
    predictions: Predictions
    title: str = "Belief in every edge"
    assumptions: tuple[str, ...] = ()
    """The assumptions that the results depend on; one sentence each."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Further rows of the table of settings: the seed of the fit, the files read, ..."""
    recipe: str = ""
    """Code or commands that reproduce the result."""
    checks: tuple[PredictiveCheck, ...] = ()
    """Predictive checks of the density: from the prior and from the posterior, or none."""
    cautions: tuple[str, ...] = ()
    """In what way these inputs differ from those of the fit."""
    terms: tuple[TermCurve, ...] = ()
    """The curves of an additive readout."""
    reasons: Mapping[tuple[int, int], Reasons] = field(default_factory=dict)
    """What raises and lowers the listed edges, by graph and index of the pair in it."""
    weights: Mapping[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict)
    """The mean and the 90 % interval of the weights of the listed edges, if edges have weights."""
    expectations: tuple[Expectation, ...] = ()
    """Of a learner that was trained before, and not on these data: what it expects of them."""
    held_out: Predictions | None = None
    """Predictions of the labels by fits that have not seen them, to be scored."""

    @property
    def scored(self) -> Predictions:
        """The predictions that are compared with the labels."""
        return self.predictions if self.held_out is None else self.held_out

    @property
    def data(self) -> GraphDataset:
        """The graphs that the page is about."""
        return self.predictions.data


class Parameter(NamedTuple):
    """A row of the table of parameters."""

    name: str
    meaning: str
    posterior: dict[str, str]
    """mean, sd, q5, q50, q95."""
    prior: tuple[str, ...]
    """q5, q50, q95."""
    is_point: bool
    kept: str
    """The width of the posterior relative to the prior; empty if the fit did not record it."""


def page(report: Contents) -> str:
    """Return the page as text."""
    predictions, posterior, data = report.predictions, report.posterior, report.data
    summary, shown = Summary.of(predictions), Shown.of(data.n_nodes)
    seen = 0 if report.held_out else len(posterior.fingerprint.seen(data))
    block = payload(predictions, posterior, report.checks, report.terms, report.scored)
    library, script = _script(get_plotlyjs()), _script((HERE / "page.js").read_text("utf-8"))
    reported = Fingerprint.without_reference(data)
    return _environment().get_template("page.html.j2").render(
        report=report,
        policy=_policy(library, script),
        style=Markup((HERE / "page.css").read_text("utf-8")),
        library=library,
        script=script,
        block=as_json(block),
        summary=summary,
        learned=list(words.learned(summary)),
        more_edges=words.more_edges(summary),
        doubt=list(words.doubt(summary, not report.expectations)),
        rightness=list(words.rightness(report.scored, seen, report.held_out is not None)),
        headlines=list(_headlines(summary, report.scored)),
        figures={name: words.number(x) for name, x in posterior.verdict.figures.items()},
        shown=shown,
        limits={"whole": WHOLE, "largest": LARGEST, "edges": EDGES},
        has_labels=any(data[t].known.any() for t in range(shown.n_graphs)),
        near_certain=NEAR_CERTAIN,
        scores=list(_scores(report.scored)) if data.n_labels else [],
        fitted_here=seen,
        held_out=words.HELD_OUT,
        meanings=WORDS,
        mixed=any(term.share < 1 for term in report.terms),
        needed=list(words.needed(report.terms, posterior.engine)) if report.terms else [],
        n_drawn=min(len(report.terms), TERMS),
        relative=posterior.model.readout.scale == "relative",
        parameters=list(_parameters(posterior)),
        further=words.further(
            {name: posterior.model.sizes[name] for name in posterior.model.readout.unlisted}
        ),
        checks=[(check.source, words.checked(check)) for check in report.checks],
        settings=words.settings(posterior, reported, report.settings),
        version=__version__,
    )  # fmt: skip


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Markup is written here, from parts that are clean already.
        finalize=lambda x: clean(x) if isinstance(x, str) and not isinstance(x, Markup) else x,
    )
    environment.filters |= {
        "signed": words.signed,
        "probability": words.probability,
        "number": words.number,
        "extent": words.extent,
        "picture": words.picture,
        "sentence": lambda text: text[:1].upper() + text[1:],
    }
    return environment


def _script(text: str) -> Markup:
    """Return a script with the line ends that a browser will see, so that its hash matches."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in text.lower() or "<!--" in text:
        raise InputError("this script would end its own element.")
    return Markup(text)


def _policy(*scripts: str) -> str:
    """Return the content security policy: these scripts, inline styles, data images; no network."""
    hashes = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    )
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        f"img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _headlines(summary: Summary, predictions: Predictions) -> Iterator[Figure]:
    """Yield the numbers at the top of the page."""
    yield "pairs", f"{summary.n_pairs:,}", "that could be an edge"
    yield "predicted edges", f"{summary.n_believed:,}", "probability over one half"
    yield "near certain", f"{summary.n_near_certain:,}", f"edges, {NEAR_CERTAIN:g} or more"
    yield "uncertain", f"{summary.n_doubtful:,}", "pairs between {} and {}".format(*DOUBTFUL)
    if predictions.data.n_labels:
        accuracy = 1 - float(metrics.error(predictions))
        yield "accuracy", words.percent(accuracy), "of the pairs with a label"
    else:
        expected = 1 - summary.expected_wrong / summary.n_pairs
        yield "expected accuracy", words.percent(expected), "over all pairs; no label known"


def _scores(predictions: Predictions) -> Iterator[Figure]:
    """Yield the scores of the predictions against the labels."""
    for name, (metric, meaning) in SCORES.items():
        score = metric(predictions)
        spread = f" ± {score.std:.2g}" if np.isfinite(score.per_graph).sum() > 1 else ""
        yield name, f"{float(score):.4g}{spread}", meaning
    every, edges, others = map(words.number, metrics.uncertainty_error_correlation(predictions))
    meaning = (
        f"whether errors are large where the sd is large, 1 is best; over labelled edges {edges}, "
        f"over labelled non-edges {others}"
    )
    yield "correlation of error and sd", every, meaning


def _parameters(posterior: Posterior) -> Iterator[Parameter]:
    model = posterior.model
    if all(model.prior[site].fixed for site, _ in model.scalar_names.values()):
        return
    summary = posterior.summary()
    for name, values in posterior.numbers().items():
        site, _ = posterior.model.scalar_names[name]
        marginal = posterior.model.prior[site]
        spread = posterior.verdict.figures.get(f"{name}: spread / prior's")
        prior = marginal.quantile(np.array([0.05, 0.5, 0.95]))
        yield Parameter(
            name,
            words.meaning(site, posterior),
            {column: words.number(float(summary[column][name])) for column in summary.columns},
            tuple(words.number(float(x)) for x in prior),
            posterior.continuum is None and float(np.ptp(values)) == 0,
            "" if spread is None else words.percent(spread),
        )
