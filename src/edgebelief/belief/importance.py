"""How much worse labels that were held out are predicted without a term, or without several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..data.dataset import GraphDataset, GraphRecord
from ..data.randomness import Key, split
from ..errors import InputTypeError, SettingError
from ..infer.engines.auto import default_engine
from ..infer.engines.exact import Exact
from ..infer.engines.mixture import Mixture
from ..infer.model import EdgeModel
from ..infer.posterior import Posterior, weighted_quantile
from ..infer.prepare import Problem
from ..infer.priors import fixed
from ..progress import progress_bar
from .crossfit import FOLDS, HeldOut, cross_predict
from .metrics import LEAST
from .predict import Predictions, predict

# Draws behind a prediction: their noise is the same with and without a term, and small beside the
# standard error.
DRAWS = 1000


def term_importance(
    key: Key | int,
    posterior: Posterior,
    data: GraphDataset,
    together: Sequence[Sequence[str]] = (),
    cv: HeldOut = "nodes",
    n_folds: int = FOLDS,
    refit: bool = False,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Leave out each term of an additive readout in turn, and score labels that are held out.

    The score is the sum over the labels of the log probability that a fit gives them which has not
    seen them (`cross_predict`). A term whose information others have as well can be left out at no
    loss, however large its curve is; leave such terms out `together` to see what they carry.

    Each fit has the coefficients and the scales of the remaining terms in doubt, and keeps the
    network's parameters at their posterior median (of several parameters, at the draw with the
    largest weight): this takes a fraction of the time, and changes little, as parameters of the
    network are learned from all labels and no term depends on them much. ``refit=True`` has them
    in doubt, too. There are ``n_folds * (1 + n_terms + len(together))`` fits.

    Parameters
    ----------
    key : JAX key or int
    posterior : Posterior
        A fit of an additive readout to `data`. The knots of its curves are kept.
    data : GraphDataset
    together : sequence of sequences of str
        Groups of terms to leave out together, such as ``[("x", "copy of x")]``.
    cv : "nodes" or "graphs"
        What is held out: see `cross_predict`.
    n_folds : int
    refit : bool
        Whether the network's parameters are inferred again in each fit.
    progress : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.

    Returns
    -------
    DataFrame
        A row for each term, and for each group, the largest loss first: term; loss, by how much
        the score falls without it; and its standard error se. Where graphs are held out it comes
        from the differences between graphs; else from those between nodes, whose pairs are
        dependent (Aronow, Samii and Assenova 2015).

    Examples
    --------
    >>> from edgebelief import belief, data, infer, readouts
    >>> graphs = data.GraphDataset.sample(0, data.RandomGeometric(0.4), 4, 10, n_signals=100)
    >>> model = infer.EdgeModel(readout=readouts.Additive(features=("z", "rank sum")))
    >>> posterior = infer.Exact(n_draws=1000).run(0, model, graphs)
    >>> table = belief.term_importance(0, posterior, graphs, cv="graphs", n_folds=2)
    >>> sorted(table["term"]), table.columns.tolist()
    (['rank sum', 'z'], ['term', 'loss', 'se'])
    """
    model = posterior.model if refit else _network_fixed(posterior)
    left_out = [(), *((name,) for name in _names(model)), *_groups(model, together)]
    fold_key, fit_key = split(key, 2)
    with progress_bar(progress, total=n_folds * len(left_out), desc="terms") as bar:

        def score(names: tuple[str, ...]) -> list[Float[np.ndarray, " edges"]]:
            """Return the log probability of each label, by fits without these terms."""
            kept = [name for name in _names(model) if name not in names]
            without = model.with_terms(kept)

            def fit_and_predict(train: GraphDataset, test: GraphDataset) -> Predictions:
                beliefs = predict(_fit(fit_key, posterior, without, train), test)
                bar.update()
                return beliefs

            found = cross_predict(fold_key, data, fit_and_predict, cv, n_folds)
            each = zip(data, found, strict=True)
            return [_log_probabilities(record, belief.mean) for record, belief in each]

        whole = score(())
        rows = []
        for names in left_out[1:]:
            each = [a - b for a, b in zip(whole, score(names), strict=True)]
            loss = sum(float(x.sum()) for x in each)
            rows.append((" + ".join(names), loss, _standard_error(data, each, cv)))
    table = pd.DataFrame(rows, columns=["term", "loss", "se"])
    return table.sort_values("loss", ascending=False, kind="stable", ignore_index=True)


def _names(model: EdgeModel) -> list[str]:
    if not model.readout.terms:
        raise InputTypeError(f"{type(model.readout).__name__} has no terms; Additive has.")
    return [term.name for term in model.readout.terms]


def _groups(model: EdgeModel, together: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    names, groups = _names(model), []
    for group in together:
        if isinstance(group, str) or not set(group) <= set(names) or len(set(group)) < 2:
            raise SettingError(
                f"is a list of groups of two terms or more, such as [({names[0]!r}, "
                f"{names[-1]!r})]; got {group!r} in it. The terms are {names}.",
                argument="together",
            )
        groups.append(tuple(dict.fromkeys(group)))
    return groups


def _network_fixed(posterior: Posterior) -> EdgeModel:
    """Return the model with the network's parameters at their posterior median, or at a draw."""
    model, weights = posterior.model, posterior.weights
    names = model.network.params_type._fields
    draws = {name: posterior.params[name] for name in names if not model.prior[name].fixed}
    values = {name: x[int(np.argmax(weights))] for name, x in draws.items()}
    if len(draws) == 1 and next(iter(draws.values())).ndim == 1:
        values = {n: weighted_quantile(x, weights, [0.5])[0] for n, x in draws.items()}
    return model.replace(prior=model.prior.replace(**{n: fixed(x) for n, x in values.items()}))


def _fit(key: Key, posterior: Posterior, model: EdgeModel, train: GraphDataset) -> Posterior:
    """Fit a model that is prepared, with no more draws than are needed."""
    engine = default_engine(model)
    engine = replace(engine, n_draws=DRAWS) if isinstance(engine, Exact) else engine
    if posterior.engine == Mixture.__name__ and isinstance(engine, Exact):
        engine = Mixture(posterior.settings["parts"], posterior.settings["shares"], engine)
    fit = engine._fit(key, Problem(model, train, np.ones(len(train))))
    return replace(
        posterior, model=model, params=fit.params, weights=fit.weights, n_chains=1,
        continuum=None, sample_stats={}, log_evidence=None,
    )  # fmt: skip


def _log_probabilities(
    record: GraphRecord, p: Float[np.ndarray, " edges"]
) -> Float[np.ndarray, " edges"]:
    """Return the log probability of each label, zero where there is none: see `edge_nll`."""
    of_label = np.where(record.a == 1, p, 1 - p)
    return np.where(record.known, np.log(np.maximum(of_label, LEAST)), 0.0)


def _standard_error(
    data: GraphDataset, each: list[Float[np.ndarray, " edges"]], cv: HeldOut
) -> float:
    """Return the standard error of the sum of differences d over all labels of all graphs.

    Over graphs, sqrt(T) times the sd of their sums. Within a graph, with d_ij taken from its mean,
    pairs are dependent if they share a node, so that the variance is the sum of all d_ij d_kl with
    one in common: sum_i (sum_j d_ij)^2 - sum_ij d_ij^2, each pair counted once.
    """
    if cv == "graphs":
        sums = np.array([d.sum() for d, r in zip(each, data, strict=True) if r.known.any()])
        return float(np.sqrt(sums.size) * sums.std(ddof=1)) if sums.size > 1 else np.nan
    variance = 0.0
    for record, d in zip(data, each, strict=True):
        if not record.known.any():
            continue
        centred = np.where(record.known, d - d[record.known].mean(), 0.0)
        squares = float(centred @ centred)
        of_nodes = np.asarray(record.support.to_matrix(centred), float).sum(1)
        # Where few nodes make the estimate too small, that of independent pairs.
        variance += max(float(of_nodes @ of_nodes) - squares, squares)
    return float(np.sqrt(variance))
