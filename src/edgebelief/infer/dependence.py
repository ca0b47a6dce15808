"""How much less labels say because those of pairs that share a node depend on each other.

A likelihood that multiplies the probabilities of all pairs takes labels as independent given the
parameters. Where a node is unlike what the model expects (an image of another kind, a company in a
sector of its own), all its pairs are wrong together, and the posterior is too sure. The design
effect compares the variance of the score, sum_ij s_ij with s_ij = (a_ij - p_ij) x_ij, with that of
independent pairs, from residuals of labels that the fit has not seen:

    design effect = sum over pairs, and pairs that share a node with them, of s_ij s_kl
                    / sum over pairs of s_ij^2
                  = (sum_i (sum_j s_ij)^2 - sum_ij s_ij^2) / sum_ij s_ij^2,

for each column x, and the mean over the columns. The likelihood to the power of one over it is the
magnitude adjustment of a composite likelihood.

References
----------
Aronow, Samii, Assenova: Cluster-robust variance estimation for dyadic data. Political Analysis 23
(2015).
Pauli, Racugno, Ventura: Bayesian composite marginal likelihoods. Statistica Sinica 21 (2011).
Ribatet, Cooley, Davison: Bayesian inference from composite likelihoods, with an application to
spatial extremes. Statistica Sinica 22 (2012).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ..data.dataset import GraphDataset

# Estimates below this may be chance: of independent labels on 1 to 20 graphs of 20 nodes they were
# 0.3 to 1.4.
NOTABLE = 1.5


def design_effect(
    data: GraphDataset,
    probabilities: Sequence[Float[np.ndarray, " edges"]],
    columns: Sequence[Float[np.ndarray, "edges columns"]],
) -> float:
    """Estimate the design effect of the labels; 1 where it is not clearly above.

    Parameters
    ----------
    data : GraphDataset
        Graphs with labels.
    probabilities : sequence of array, shape (n_edges,)
        The probability of each pair of each graph, by a fit that has not seen its label.
    columns : sequence of array, shape (n_edges, n_columns)
        The design matrix of each graph.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.data import GraphDataset
    >>> from edgebelief.infer.dependence import design_effect
    >>> star = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]  # all pairs of node 0 are unexpected edges
    >>> graph = GraphDataset([np.ones(6)], [star])
    >>> round(design_effect(graph, [np.full(6, 1e-9)], [np.ones((6, 1))]), 6)
    3.0
    """
    shared = own = np.zeros(1)
    for record, p, x in zip(data, probabilities, columns, strict=True):
        score = np.where(record.known, record.a - p, 0.0)[:, None] * x
        of_nodes = np.zeros((len(record.names), x.shape[1]))
        for ends in record.support.endpoints:
            np.add.at(of_nodes, ends, score)
        squares = (score**2).sum(0)
        shared, own = shared + (of_nodes**2).sum(0) - squares, own + squares
    ratios = shared[own > 0] / own[own > 0]
    effect = float(ratios.mean()) if ratios.size else 1.0
    return effect if effect >= NOTABLE else 1.0
