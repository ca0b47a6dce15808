"""`Report` computes the contents of the page; `html` renders them, `write` saves the page."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import ArrayLike

from ..atomic import replacing
from ..belief.checks import PredictiveCheck, posterior_predictive, prior_predictive
from ..belief.explain import DRAWS, term_curves
from ..belief.predict import Predictions, as_dataset, predict
from ..belief.shift import BeliefWarning, warn_if_unlike
from ..belief.weights import predict_weights
from ..data.dataset import GraphDataset
from ..data.randomness import Key, split
from ..errors import InputError, InputTypeError
from ..infer.posterior import Posterior
from .page import Contents, Expectation, page
from .reasons import Reasons, reasons
from .summary import Pair, Summary

# A predictive check, or the explanation of edges, may take WORK entries of (N, N) arrays over all
# its draws: about ten seconds with 200 layers on two cores. A histogram needs FEWEST draws.
WORK, FEWEST = 2e7, 50


@dataclass(frozen=True)
class Report(Contents):
    """A page about a posterior and its predictions for some graphs. Build it with `of`.

    The page is one self-contained file: it opens from disk and makes no network request. It works
    with a keyboard, on a phone, in dark mode and in print.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
    >>> from edgebelief.networks import DPG
    >>> from edgebelief.report import Report
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    >>> params = {"theta": np.array([0.2]), "delta": np.array([30.0]), "b": np.array([3.0])}
    >>> posterior = Posterior(EdgeModel(DPG(depth=20)), params, np.ones(1), "by hand", {},
    ...                       Fingerprint.of(data), Verdict())
    >>> report = Report.of(posterior, data, title="Two little graphs", check_draws=50)
    >>> report.write(f"{tempfile.mkdtemp()}/report.html").name
    'report.html'
    """

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        data: GraphDataset | ArrayLike,
        *,
        predictions: Predictions | None = None,
        held_out: Predictions | None = None,
        key: Key | int = 0,
        title: str = "Belief in every edge",
        assumptions: Iterable[str] = (),
        settings: Mapping[str, object] | None = None,
        recipe: str = "",
        check_draws: int = 1000,
        reason_draws: int = DRAWS,
        expectations: Iterable[Expectation] = (),
        cautions: Iterable[str] = (),
    ) -> Report:
        """Predict and check the graphs, and compute everything that the page shows.

        Parameters
        ----------
        posterior : Posterior
        data : GraphDataset or array_like
            The graphs to report on; predictions are scored against their labels, where known. The
            distances of one graph are taken as a data set of one.
        predictions : Predictions, optional
            The result of `predict(posterior, data)`, if it was computed before.
        held_out : Predictions, optional
            Predictions of the labels by fits that have not seen them, such as those of
            `GraphLearner.cross_val_predictions`: scores and calibration are then of these.
        key : JAX key or int
            The random key of the predictive checks and of the draws behind curves and reasons.
        title : str
        assumptions : iterable of str
            Sentences that the reader must know, such as where the labels came from.
        settings : mapping, optional
            Further rows of the table of settings.
        recipe : str
            Code or shell commands that reproduce the result.
        check_draws : int
            The largest number of replicated data sets of each predictive check; fewer are drawn
            for large graphs. 0 for no check.
        reason_draws : int
            The largest number of draws behind the explanation of each listed edge; 0 for none.
        expectations : iterable of Expectation
            Of a pretrained learner: what it expects of such data, and what they are like.
        cautions : iterable of str
            Sentences about how the data differ from what the posterior comes from, beside those
            that `predict` warns of.
        """
        if isinstance(assumptions, str):
            raise InputTypeError("assumptions must be a list of sentences; got one string.")
        data = as_dataset(data)
        all_cautions = *_cautions(posterior, data), *cautions
        if predictions is None:
            predictions = predict(posterior, data)
        for name, given in {"predictions": predictions, "held_out": held_out}.items():
            if given is not None and given.data.n_nodes != data.n_nodes:
                problem = f"{name} are of {given.data!r}, but the data are {data!r}"
                raise InputError(f"{problem}: pass predictions for these data.")
        predictions = Predictions(data, tuple(predictions), predictions.log_scores)
        rows = {} if settings is None else {str(k): v for k, v in settings.items()}
        prior_key, posterior_key, terms_key, reasons_key = split(key, 4)
        is_weighted = posterior.model.likelihood.weighted
        has_terms = bool(posterior.model.readout.terms)
        summary = Summary.of(predictions)
        listed = summary.firmest + summary.weakest
        return cls(
            posterior=posterior,
            predictions=predictions,
            title=title,
            assumptions=tuple(assumptions),
            settings={**rows, "key of the report": key if isinstance(key, int) else "a JAX key"},
            recipe=recipe,
            checks=_checks((prior_key, posterior_key), posterior, data, check_draws),
            cautions=all_cautions,
            terms=tuple(term_curves(posterior, terms_key)) if has_terms else (),
            reasons=_reasons(reasons_key, posterior, data, listed, reason_draws),
            weights=_weights(key, posterior, data, listed) if is_weighted else {},
            expectations=tuple(expectations),
            held_out=held_out,
        )

    def html(self) -> str:
        """Return the page as text."""
        return page(self)

    def write(self, path: str | Path) -> Path:
        """Write the page to a file, completely or not at all, and return its path."""
        path = Path(path)
        text = self.html()
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return path


def _cautions(posterior: Posterior, data: GraphDataset) -> tuple[str, ...]:
    """Return the warnings that `predict` would give, as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BeliefWarning)
        warn_if_unlike(posterior, data)
    return tuple(str(w.message) for w in caught if issubclass(w.category, BeliefWarning))


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
    key: Key, posterior: Posterior, data: GraphDataset, listed: tuple[Pair, ...], n: int
) -> Mapping[tuple[int, int], Reasons]:
    if n < 1:
        return {}
    n = _affordable(n, [data.n_nodes[t] for t in {pair.graph for pair in listed}])
    return reasons(key, posterior, data, listed, n)


def _weights(
    key: Key | int, posterior: Posterior, data: GraphDataset, listed: tuple[Pair, ...]
) -> Mapping[tuple[int, int], tuple[float, float, float]]:
    graphs = sorted({pair.graph for pair in listed})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BeliefWarning)  # the cautions have them
        predicted = predict_weights(key, posterior, data[graphs])
    by_graph = dict(zip(graphs, predicted, strict=True))

    def interval(pair: Pair) -> tuple[float, float, float]:
        weight, k = by_graph[pair.graph], pair.edge
        return float(weight.mean[k]), float(weight.low[k]), float(weight.high[k])

    return {(pair.graph, pair.edge): interval(pair) for pair in listed}


def _affordable(n: int, n_nodes: Iterable[int]) -> int:
    """Return the number of draws: `n`, or fewer where graphs are large."""
    return min(n, max(FEWEST, int(WORK // sum(size**2 for size in n_nodes))))
