"""Warn if the inputs of a prediction differ in kind from those of the fit, or are the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..data.dataset import GraphDataset
from ..errors import Message, Remedy, Setting
from ..infer.posterior import Fingerprint, Posterior
from .typicality import Comparison

# A warning is due if the distances are larger or smaller than the fitted ones by this factor, or if
# their relative noise, sqrt(2/P) for P signals, differs by this much.
SCALE, NOISE = 5.0, 0.1
# Or if graphs are this much larger or smaller than any that was fitted. Fitted to graphs of 40
# nodes, the belief in graphs of 20 has up to twice the log score of a model fitted to those, and
# its mean probability is 0.31 where 0.2 of the pairs are joined; of 80, 0.06 (Erdos-Renyi).
SIZE = 2.0


class BeliefWarning(UserWarning):
    """The inputs of a prediction are not like those of the fit, or, to be scored, the very same; or
    what is predicted is beyond double precision.
    """


class UnlikeWarning(BeliefWarning):
    """Graphs are unlike those that were fitted: see `typicality`."""


class FittedWarning(Message, BeliefWarning):
    """Labels to be scored were fitted."""


@contextmanager
def held_out() -> Iterator[None]:
    """Do not compare graphs with those fitted: all are of one data set, some left out of each fit.

    Of as many fits as there are graphs, one leaves out the most unusual.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlikeWarning)
        yield


def warn_if_unlike(posterior: Posterior, data: GraphDataset) -> None:
    """Warn if distances or graphs are of another scale, noise, size or kind than the fitted.

    The kind is that of `typicality`, and all graphs together decide: of ordinary calls one in a
    hundred warns; with one graph, and fewer than 99 fitted, one in as many as were fitted. So with
    one graph, and fewer than 19 fitted, there is no warning. Where noise or size differ that is
    the warning, and no other is given.
    """
    if not posterior.fingerprint.n_graphs:  # a pretrained network: nothing was fitted
        return
    fitted, new = posterior.fingerprint, Fingerprint.without_reference(data)
    problems = []
    larger = new.scale / fitted.scale if fitted.scale else np.inf
    ratio = 1.0 if new.scale == fitted.scale else larger  # both may be zero
    rescaled = not 1 / SCALE < ratio < SCALE
    if rescaled:
        divide = f", or divide by {ratio:.3g}" if 0 < ratio < np.inf else ""
        problems.append(
            f"the distances are {ratio:.3g} times those that were fitted (medians {new.scale:.3g} "
            f"and {fitted.scale:.3g}). A network reads them on the fitted scale: use the same "
            f"definition (mean or sum over signals?){divide}."
        )
    n_known = len(problems)
    if new.n_signals is not None and fitted.n_signals is not None:
        noise = [float(np.sqrt(2 / n)) for n in (new.n_signals, fitted.n_signals)]
        if abs(noise[0] - noise[1]) > NOISE:
            problems.append(
                f"these distances come from {new.n_signals:g} signals a graph, the fitted from "
                f"{fitted.n_signals:g}: their noise is {noise[0]:.0%} against {noise[1]:.0%}, and "
                f"the belief is calibrated for the latter. Fit on distances from as many signals."
            )
    low, high = min(fitted.n_nodes), max(fitted.n_nodes)
    others = sorted({n for n in new.n_nodes if not low / SIZE < n < high * SIZE})
    # A readout that reads each graph on a scale of its own is made for other sizes; and where near
    # neighbours alone are candidates, as many pairs at a node may be edges whatever the size.
    whole = any(record.candidates is None for record in data)
    if others and whole and posterior.model.readout.scale is None:
        known = f"{low}" if low == high else f"{low} to {high}"
        asked = " and ".join(str(n) for n in dict.fromkeys([others[0], others[-1]]))
        problems.append(
            f"the model was fitted to graphs of {known} nodes, and is asked about {asked}: its "
            f"probabilities tend to be too high in smaller graphs and too low in larger ones. Fit "
            f"graphs of such sizes; for dense ones, a size-aware model may do."
        )
    for problem in problems:
        warnings.warn(problem, BeliefWarning, stacklevel=3)
    if len(problems) == n_known:
        compared = Comparison.of(posterior, data, scale=not rescaled)
        if compared is not None and compared.are_unlike:
            warnings.warn(compared.sentence(), UnlikeWarning, stacklevel=3)


def warn_if_fitted(fitted: Fingerprint, data: GraphDataset) -> None:
    """Warn if labels to be scored, of all graphs or of some, are those that were fitted."""
    labelled = sum(bool(record.known.any()) for record in data)
    if not (seen := fitted.seen(data)):
        return
    graphs = f"{len(seen)} of these {labelled} graphs (by index: {_listed(seen)}) were fitted"
    if len(seen) == labelled:
        graphs = "these are the labels that the model was fitted to"
    by_nodes = Remedy("hold out nodes of these", Setting("cv", "nodes"))
    problem = f"{graphs}, so the scores are optimistic."
    warnings.warn(FittedWarning(problem, remedy=["Score other graphs", by_nodes]), stacklevel=3)


def _listed(indices: list[int]) -> str:
    """Return the first few indices as text."""
    few = ", ".join(map(str, indices[:5]))
    return f"{few}, ..." if len(indices) > 5 else few
