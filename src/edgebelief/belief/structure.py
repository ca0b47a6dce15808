"""Belief about belief: what the probabilities of all edges say about one pair.

Nodes that have the same neighbours, as far as these are believed in, are more likely to be joined
themselves where graphs have clusters; in other graphs less likely, or it says nothing. So channels
of the matrix P of probabilities are features of pairs, like evidence, and a second fit learns what
they are worth. It must be given the probabilities that a fit has for graphs it has not seen: those
of labels that were fitted know the answer (`cross_predict`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from ..data.dataset import GraphDataset, frozen
from ..edges import Support
from ..errors import InputError
from ..evidence.smooth import resistances
from .predict import EdgeBelief

CHANNELS = ("belief conflict", "belief cosine", "belief resistance")
# Probabilities are kept this far from 0 and 1, so that resistances are finite.
LEAST = 1e-9


def structure(
    p: Float[np.ndarray, " edges"], support: Support
) -> dict[str, Float[np.ndarray, " edges"]]:
    """Compute the channels of one graph, for each pair (i, j) from the other pairs alone.

        conflict    the mean over other nodes k of p_ik (1 - p_jk) + (1 - p_ik) p_jk
        cosine      of the rows i and j of P, without the nodes i and j
        resistance  the log effective resistance in the graph with weights P, without the edge
                    between i and j, less the median over pairs

    What is believed of the pair itself is left out: the terms of the first pass say it, and would
    compete with a channel that repeats it. Each channel is symmetric, permuted as the nodes are,
    and relative to the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.belief.structure import structure
    >>> from edgebelief.edges import Complete
    >>> p = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 0.0])  # a triangle 0 1 2, and 3 alone
    >>> structure(p, Complete(4))["belief conflict"].round(6)
    array([0., 0., 1., 0., 1., 1.])
    """
    pair = support.to_matrix(np.clip(p, LEAST, 1 - LEAST))
    n, d, common = len(pair), pair.sum(0), pair @ pair
    conflict = (d[:, None] + d - 2 * pair - 2 * common) / max(n - 2, 1)
    squares = (pair**2).sum(0)[:, None] - pair**2  # of row i without node j
    cosine = common / np.sqrt(np.maximum(squares * squares.T, LEAST**4))
    through = support.to_vector(resistances(pair))
    # Conductances in parallel add up: the rest of the graph has that of all less the edge's own.
    own = support.to_vector(pair) / d.mean()
    rest = np.log(through) - np.log(np.maximum(1 - own * through, LEAST))
    vectors = (
        support.to_vector((conflict + conflict.T) / 2),
        support.to_vector((cosine + cosine.T) / 2),
        rest - np.median(rest),
    )
    return dict(zip(CHANNELS, vectors, strict=True))


def with_structure(data: GraphDataset, beliefs: Iterable[EdgeBelief]) -> GraphDataset:
    """Return the data with the channels of a belief in each graph as covariates of its pairs."""
    records = []
    for t, (record, edges) in enumerate(zip(data, beliefs, strict=True)):
        if taken := [name for name in CHANNELS if name in record.covariates]:
            problem = f"the covariate {taken[0]!r} has the name of a channel of beliefs"
            raise InputError(problem, graph=t, remedy="Rename it")
        channels = structure(edges.mean, record.support)
        known = {name: frozen(values) for name, values in channels.items()}
        records.append(record._replace(covariates={**record.covariates, **known}))
    return GraphDataset._of(records)
