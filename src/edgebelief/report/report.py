"""Report: what a page needs, computed once; `html` writes it, `write` keeps it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import replacing
from ..belief.checks import PredictiveCheck, posterior_predictive, prior_predictive
from ..belief.explain import DRAWS, TermCurve, term_curves
from ..belief.predict import Predictions, as_dataset, predict
from ..belief.shift import BeliefWarning, warn_if_unlike
from ..belief.weights import predict_weights
from ..data.dataset import GraphDataset
from ..data.randomness import Key, split
from ..errors import InputError, InputTypeError
from ..infer.posterior import Posterior
from .summary import Summary

if TYPE_CHECKING:
    from .reasons import Reasons

# Entries of (N, N) arrays that a predictive check, or a look for reasons, may go through; and the
# fewest replicates that still make a histogram: with 200 layers on two cores about ten seconds.
WORK, FEWEST = 2e7, 50


@dataclass(frozen=True)
class Report:
    """A page about a posterior and what it believes of some graphs.

    The page is one file that needs nothing else: it opens from disk, asks no other machine for
    anything, and works with a keyboard, on a phone, in the dark and on paper. Make it with `of`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.report import Report
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    >>> params = {"theta": np.array([0.2]), "delta": np.array([30.0]), "b": np.array([3.0])}
    >>> posterior = Posterior(EdgeModel(DPG(depth=20)), params, np.ones(1), "by hand", {},
    ...                       Fingerprint.of(data), Verdict())
    >>> report = Report.of(posterior, data, title="Two little graphs", check_draws=50)
    >>> report.write(Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """

    posterior: Posterior
    predictions: Predictions
    title: str = "What was learned, and how sure it is"
    assumptions: tuple[str, ...] = ()
    """What the reader has to know to believe the page; a sentence each."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """More rows for the table of settings: the seed of the fit, the files read, ..."""
    recipe: str = ""
    """Code or commands that make the result again."""
    checks: tuple[PredictiveCheck, ...] = ()
    """Of density: from the prior, from the posterior, or none."""
    cautions: tuple[str, ...] = ()
    """What is unlike the fit in these inputs."""
    terms: tuple[TermCurve, ...] = ()
    """Of an additive readout."""
    reasons: Mapping[tuple[int, int], Reasons] = field(default_factory=dict)
    """What raised and lowered the listed edges, by graph and place among its pairs."""
    weights: Mapping[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict)
    """Of those edges, where edges have weights: the mean, and an interval of 90 %."""

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        data: Any,
        *,
        predictions: Predictions | None = None,
        key: Key | int = 0,
        title: str = "What was learned, and how sure it is",
        assumptions: Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
        recipe: str = "",
        check_draws: int = 1000,
        reason_draws: int = DRAWS,
    ) -> Report:
        """Predict, check, and keep what the page will show.

        Parameters
        ----------
        posterior : Posterior
        data : GraphDataset or array_like
            The graphs to report on; labels, where known, are scored. The distances of one graph are
            a data set of one.
        predictions : Predictions, optional
            What `predict(posterior, data)` returned, if it is there already.
        key : JAX key or int
            Of the predictive checks, and of the draws behind curves and reasons.
        title : str
        assumptions : iterable of str
            Sentences that the reader must know, such as where the labels came from.
        settings : mapping, optional
            More rows for the table of settings.
        recipe : str
            Code or shell commands that make the result again.
        check_draws : int
            Replicated data sets of each predictive check, at most: fewer where graphs are large.
            0 for no check.
        reason_draws : int
            Draws behind what raised and lowered each edge that is listed, at most; 0 to leave that
            out.

        Returns
        -------
        Report
        """
        if isinstance(assumptions, str):
            raise InputTypeError("assumptions must be a list of sentences; got one string.")
        data = as_dataset(data)
        cautions = _cautions(posterior, data)
        if predictions is None:
            predictions = predict(posterior, data)
        elif predictions.data.n_nodes != data.n_nodes:
            raise InputError(
                f"predictions are of {predictions.data!r}, but the data are {data!r}: pass what "
                f"predict(posterior, data) returned."
            )
        predictions = Predictions(data, tuple(predictions), predictions.log_scores)
        given = {} if settings is None else {str(k): v for k, v in settings.items()}
        of_prior, of_posterior, of_terms, of_reasons = split(key, 4)
        is_weighted = posterior.model.likelihood.weighted
        has_terms = bool(posterior.model.readout.terms)
        return cls(
            posterior=posterior,
            predictions=predictions,
            title=title,
            assumptions=tuple(assumptions),
            settings={**given, "key of the report": key if isinstance(key, int) else "a JAX key"},
            recipe=recipe,
            checks=_checks((of_prior, of_posterior), posterior, data, check_draws),
            cautions=cautions,
            terms=tuple(term_curves(posterior, of_terms)) if has_terms else (),
            reasons=_reasons(of_reasons, posterior, predictions, reason_draws),
            weights=_weights(key, posterior, predictions) if is_weighted else {},
        )

    @property
    def data(self) -> GraphDataset:
        """The graphs that the page is about."""
        return self.predictions.data

    def html(self) -> str:
        """The page."""
        from .page import page

        return page(self)

    def write(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all; returns its path."""
        path = Path(path)
        text = self.html()
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return path


def _cautions(posterior: Posterior, data: GraphDataset) -> tuple[str, ...]:
    """What `predict` would warn about, as sentences."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", BeliefWarning)
        warn_if_unlike(posterior.fingerprint, data)
    return tuple(str(one.message) for one in found if issubclass(one.category, BeliefWarning))


def _checks(
    keys: tuple[Key, Key], posterior: Posterior, data: GraphDataset, n: int
) -> tuple[PredictiveCheck, ...]:
    if n < 1:
        return ()
    n = _affordable(n, data.n_nodes)
    return (
        prior_predictive(keys[0], posterior.model, data, n=n),
        posterior_predictive(keys[1], posterior, data, n=n),
    )


def _reasons(
    key: Key, posterior: Posterior, predictions: Predictions, n: int
) -> Mapping[tuple[int, int], Reasons]:
    from .reasons import reasons

    if n < 1:
        return {}
    summary = Summary.of(predictions)
    listed = summary.firmest + summary.weakest
    n = _affordable(n, [predictions.data.n_nodes[t] for t in {pair.graph for pair in listed}])
    return reasons(key, posterior, predictions.data, listed, n)


def _weights(
    key: Key | int, posterior: Posterior, predictions: Predictions
) -> Mapping[tuple[int, int], tuple[float, float, float]]:
    summary = Summary.of(predictions)
    listed = summary.firmest + summary.weakest
    graphs = sorted({pair.graph for pair in listed})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BeliefWarning)  # among the cautions
        found = predict_weights(key, posterior, predictions.data[graphs])
    beliefs = dict(zip(graphs, found, strict=True))
    return {
        (pair.graph, pair.edge): tuple(
            float(getattr(beliefs[pair.graph], name)[pair.edge]) for name in ("mean", "low", "high")
        )  # type: ignore[misc]
        for pair in listed
    }


def _affordable(n: int, n_nodes: Iterable[int]) -> int:
    """Fewer draws where graphs are large."""
    return min(n, max(FEWEST, int(WORK // sum(size**2 for size in n_nodes))))
