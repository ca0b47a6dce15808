"""Render a report as one HTML page, with styles, scripts and data inline."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ..belief import metrics
from ..belief.predict import Predictions
from ..errors import InputError
from ..infer.posterior import Fingerprint, Posterior
from ..plots.terms import WORDS
from ..version import __version__
from . import words
from .contents import Contents
from .payload import EDGES, LARGEST, TERMS, WHOLE, Shown, as_json, clean, payload
from .summary import DOUBTFUL, NEAR_CERTAIN, Summary

HERE = Path(__file__).parent


class Figure(NamedTuple):
    """A number with its name and meaning."""

    name: str
    value: str
    meaning: str


class Parameter(NamedTuple):
    """A row of the table of parameters."""

    name: str
    meaning: str
    posterior: dict[str, str]
    """mean, sd, q5, q50, q95."""
    prior: tuple[str, str, str]
    """q5, q50, q95."""
    is_point: bool
    kept: str
    """The width of the posterior relative to the prior; empty if the fit did not record it."""


class Term(NamedTuple):
    """A term of an additive readout."""

    name: str
    meaning: str
    size: str
    needed: bool
    picture: str
    """The text that replaces the chart for screen readers."""
    lowest: str
    highest: str


def page(report: Contents) -> str:
    """Return the page as text."""
    predictions, posterior, data = report.predictions, report.posterior, report.data
    summary, shown = Summary.of(predictions), Shown.of(data.n_nodes)
    block = payload(predictions, posterior, report.checks, report.terms)
    library, script = _script(get_plotlyjs()), _script((HERE / "page.js").read_text("utf-8"))
    reported = Fingerprint.of(data)
    return _environment().get_template("page.html.j2").render(
        title=report.title,
        policy=_policy(library, script),
        style=Markup((HERE / "page.css").read_text("utf-8")),
        library=library,
        script=script,
        block=as_json(block),
        summary=summary,
        data=data,
        learned=list(words.learned(summary)),
        doubt=list(words.doubt(summary)),
        rightness=list(words.rightness(predictions, posterior.fingerprint)),
        headlines=list(_headlines(summary, predictions)),
        verdict=posterior.verdict,
        figures={name: words.number(x) for name, x in posterior.verdict.figures.items()},
        cautions=report.cautions,
        assumptions=report.assumptions,
        shown=shown,
        limits={"whole": WHOLE, "largest": LARGEST, "edges": EDGES},
        has_labels=any(data[t].known.any() for t in range(shown.n_graphs)),
        near_certain=NEAR_CERTAIN,
        scores=list(_scores(predictions)) if data.n_labels else [],
        fitted_here=words.same_data(posterior.fingerprint, reported),
        reasons=report.reasons,
        weights=report.weights,
        terms=list(_terms(report)),
        needed=list(words.needed(report.terms, posterior.engine)) if report.terms else [],
        n_drawn=min(len(report.terms), TERMS),
        relative=posterior.model.readout.scale == "relative",
        parameters=list(_parameters(posterior)),
        further=words.further(
            {name: posterior.model.sizes[name] for name in posterior.model.readout.unlisted}
        ),
        engine=posterior.engine,
        checks=[(check.source, words.checked(check)) for check in report.checks],
        settings=words.settings(posterior, reported, report.settings),
        recipe=report.recipe,
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
    low, high = DOUBTFUL
    yield Figure("pairs", f"{summary.n_pairs:,}", "that could be an edge")
    yield Figure("predicted edges", f"{summary.n_believed:,}", "probability over one half")
    yield Figure(
        "near certain",
        f"{summary.n_near_certain:,}",
        f"edges, probability {NEAR_CERTAIN:g} or more",
    )
    yield Figure(
        "uncertain", f"{summary.n_doubtful:,}", f"pairs, probability between {low} and {high}"
    )
    if predictions.data.n_labels:
        accuracy = 1 - float(metrics.error(predictions))
        yield Figure("accuracy", words.percent(accuracy), "of the pairs with a label")
    else:
        expected = 1 - summary.expected_wrong / summary.n_pairs
        yield Figure("expected accuracy", words.percent(expected), "over all pairs; no label known")


def _scores(predictions: Predictions) -> Iterator[Figure]:
    """Yield the scores of the predictions against the labels."""
    several = len(predictions) > 1

    def value(score: metrics.Score) -> str:
        return f"{float(score):.4g}" + (f" ± {score.std:.2g}" if several else "")

    yield Figure(
        "error", value(metrics.error(predictions)),
        "share of misclassified pairs (at probability one half)",
    )  # fmt: skip
    yield Figure(
        "NLL", value(metrics.nll(predictions)),
        "negative log-likelihood: minus the log probability of all labels of a graph; mean over "
        "graphs",
    )  # fmt: skip
    yield Figure(
        "Brier score", value(metrics.brier(predictions)),
        "mean squared error of the probability, averaged over the posterior (this includes the "
        "posterior variance)",
    )  # fmt: skip
    yield Figure(
        "Brier score of the mean", value(metrics.brier_of_mean(predictions)),
        "mean squared error of the posterior mean probability, which this page shows",
    )  # fmt: skip
    yield Figure(
        "ECE", value(metrics.ece(predictions)),
        "expected calibration error: the distance of accuracy from confidence, averaged over pairs",
    )  # fmt: skip
    correlation = metrics.uncertainty_error_correlation(predictions)
    yield Figure(
        "correlation of error and sd", words.number(correlation.all),
        f"whether errors are large where the sd is large, 1 is best; over labelled edges "
        f"{words.number(correlation.present)}, over labelled non-edges "
        f"{words.number(correlation.absent)}",
    )  # fmt: skip


def _terms(report: Contents) -> Iterator[Term]:
    for curve in report.terms:
        lowest, highest = words.extent(curve)
        yield Term(
            curve.name,
            WORDS.get(curve.name, "a covariate of the pair"),
            f"{curve.size:.2g}",
            curve.matters,
            words.picture(curve),
            lowest,
            highest,
        )


def _parameters(posterior: Posterior) -> Iterator[Parameter]:
    summary = posterior.summary()
    for name, values in posterior.numbers().items():
        site, _ = posterior.model.scalar_names[name]
        marginal = posterior.model.prior[site]
        spread = posterior.verdict.figures.get(f"{name}: spread / prior's")
        low, middle, high = (
            words.number(float(x)) for x in marginal.quantile(np.array([0.05, 0.5, 0.95]))
        )
        yield Parameter(
            name,
            words.meaning(site, posterior),
            {column: words.number(float(summary[column][name])) for column in summary.columns},
            (low, middle, high),
            posterior.continuum is None and float(np.ptp(values)) == 0,
            "" if spread is None else words.percent(spread),
        )
