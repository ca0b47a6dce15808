"""Small reports by hand, and a reader for their pages."""

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from edgebelief.belief import EdgeBelief, Predictions, TermCurve
from edgebelief.data import GraphDataset
from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
from edgebelief.networks import DPG
from edgebelief.report import Report
from edgebelief.report.reasons import Part, Reasons
from edgebelief.report.summary import Summary

ROADS = ("lane", "motorway", "none")
PARAMS = {"theta": 0.2, "delta": 30.0, "b": 3.0}


def posterior_of(data, *, n_draws=40, verdict=None, engine="by hand", fitted=None):
    """Draws around PARAMS, or PARAMS alone."""
    rng = np.random.default_rng(0)
    params = {
        name: np.array([value]) if n_draws == 1 else rng.normal(value, value / 20, n_draws)
        for name, value in PARAMS.items()
    }
    return Posterior(
        EdgeModel(DPG(depth=20)), params, np.full(n_draws, 1 / n_draws), engine, {"tol": 0.01},
        Fingerprint.of(data if fitted is None else fitted), verdict or Verdict(),
    )  # fmt: skip


def believed(data, means, epistemic=0.02):
    """Predictions with these probabilities, scored as if edges were independent."""
    beliefs = [EdgeBelief.of(p, epistemic) for p in means]
    scores = [
        np.log(np.where(record.a == 1, b.mean, 1 - b.mean)[record.known]).sum()
        for record, b in zip(data, beliefs, strict=True)
    ]
    return Predictions(data, beliefs, np.array(scores))


def random_report(n_nodes, *, labels="all", names=None, seed=0, n_draws=40, **more):
    """A report on random distances and belief: no network is run, nothing checked or explained."""
    rng = np.random.default_rng(seed)
    e, a, means = [], [], []
    for n in n_nodes:
        size = n * (n - 1) // 2
        means.append(rng.beta(0.4, 0.8, size))
        e.append(rng.uniform(1, 9, size))
        label = (rng.uniform(size=size) < means[-1]).astype(float)
        hidden = {"all": 0.0, "some": 0.5, "none": 1.1}[labels]
        a.append(np.where(rng.uniform(size=size) < hidden, np.nan, label))
    data = GraphDataset(e, a, names)
    posterior = posterior_of(
        data, n_draws=n_draws, verdict=more.pop("verdict", None), fitted=more.pop("fitted", None)
    )
    more = {"check_draws": 0, "reason_draws": 0, **more}
    return Report.of(posterior, data, predictions=believed(data, means), **more)


def curve(name, height, levels=()):
    """A term that is as high everywhere, with a band of 0.4 either way."""
    n = len(levels) or 5
    mean = np.full(n, float(height))
    return TermCurve(
        name, np.arange(float(n)), mean, mean - 0.4, mean + 0.4, abs(height), tuple(levels)
    )


def reasoned(parts):
    """Reasons with these parts: (name, contribution), or (name, contribution, value)."""
    listed = tuple(
        Part(name, *(value or ("",)), x, x - 1, x + 1, share=0.5) for name, x, *value in parts
    )
    total = sum(part.contribution for part in listed)
    return Reasons(total, total - 1, total + 1, listed, 0, 0.0)


def explained(report, names, levels):
    """The report with terms and reasons whose names are these."""
    terms = [curve(name, k % 3 - 1.0) for k, name in enumerate(names)]
    terms.insert(0, curve(names[-1], 1.0, levels))
    listed = Summary.of(report.predictions)
    pairs = {(pair.graph, pair.edge) for pair in listed.firmest + listed.weakest}
    spread = [(name, (-1.0) ** k, levels[k % len(levels)]) for k, name in enumerate(names)]
    found = {
        pair: reasoned([("weight", 0.5), *(spread[k % len(names) :] + spread)[:4]])
        for k, pair in enumerate(sorted(pairs))
    }
    return replace(report, terms=tuple(terms), reasons=found)


class Page(HTMLParser):
    """What a browser would find in the page: elements, attributes, words, scripts."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words, self.scripts = [], [], []
        self._inside = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("td", "th", "dt", "dd", "p", "h3", "li"):
            self.words.append(" ")
        if tag in ("script", "style"):
            self._inside = tag
            if tag == "script":
                self.scripts.append((dict(attrs), []))

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = None

    def handle_data(self, text):
        if self._inside == "script":
            self.scripts[-1][1].append(text)
        elif self._inside is None:
            self.words.append(text)

    @property
    def text(self):
        """The words, with single spaces."""
        return " ".join("".join(self.words).replace("\u00a0", " ").split())

    @property
    def tags(self):
        return Counter(tag for tag, _ in self.elements)

    @property
    def data(self):
        """The block of JSON."""
        (block,) = ["".join(parts) for attrs, parts in self.scripts if "type" in attrs]
        return json.loads(block)


def ids(page):
    return {attrs["id"] for _, attrs in page.elements if "id" in attrs}
