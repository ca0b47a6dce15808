"""Sized: the paper's readout for graphs of any size."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float

from ..edges import Support
from ..errors import InputError, SettingError
from ..networks import Output
from .base import Columns, Pairs, PerEdge, Readout

# The log-likelihood ratio from which on edges are said to be as many as in sparse graphs: 20 to 1.
SPARSE = 3.0
# The number of nodes of the paper's graphs; in graphs of that size this is the paper's readout.
REFERENCE = 20


class SizedParams(NamedTuple):
    """delta, b: those of `Affine` in graphs of 20 nodes."""

    delta: Float[ArrayLike, ""]
    b: Float[ArrayLike, ""]


class Sized(Readout):
    """logit = s^growth (delta s a - b), with s = (N - 1) / 19.

    If every node is joined to a fixed share of all others, and distances are divided by their
    median (`GraphLearner` does that), the weights of edges fall as 1/s. The product s a and the
    threshold b/delta then do not depend on the size. How steeply the logit rises beyond the
    threshold does, by an amount that depends on the noise: that is `growth`. For expected distances
    it is 1; the fewer the signals, the lower it is, down to -2. See `docs/sizes.md`.

    Parameters
    ----------
    growth : float, optional
        By default estimated from the data if their graphs have several sizes, else 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief import edges, networks, readouts
    >>> output = networks.DPG()(networks.DPGParams(theta=0.5), jnp.array([1.0, 9.0, 9.0]))
    >>> params = readouts.SizedParams(delta=10.0, b=0.5)
    >>> readouts.Sized(growth=0.0)(params, output, edges.Complete(3)).round(1)  # s = 2/19
    Array([ 0.3, -0.4, -0.4], dtype=float32)
    """

    growth: float | None = eqx.field(static=True, default=None)

    part_names = ("weight", "baseline")
    params_type = SizedParams
    scale = "median"

    def __check_init__(self) -> None:
        number = isinstance(self.growth, int | float) and not isinstance(self.growth, bool)
        if self.growth is not None and not (number and np.isfinite(self.growth)):
            raise SettingError(
                f"must be a number, or None to find it in the data; got {self.growth!r}.",
                argument="growth",
            )

    @property
    def is_prepared(self) -> bool:
        return self.growth is not None

    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> Columns:
        """Compute the two columns that the logits are linear in."""
        if self.growth is None:
            raise InputError(
                "this readout has not seen data yet, so it has no growth. Every engine's run "
                "prepares it, by edgebelief.infer.prepare.prepare; or pass growth=..."
            )
        size = (support.n_nodes - 1) / (REFERENCE - 1)
        grown = size**self.growth
        return jnp.stack([grown * size * output.a, jnp.full_like(output.a, -grown)], -1)

    def logits(self, params: SizedParams, reduced: Columns) -> PerEdge:
        return reduced[..., 0] * params.delta + reduced[..., 1] * params.b

    def columns(self, reduced: Columns) -> Columns:
        return reduced


def sparse_over_dense(
    n_edges: Float[np.ndarray, " graphs"],
    n_pairs: Float[np.ndarray, " graphs"],
    n_nodes: Float[np.ndarray, " graphs"],
) -> float:
    """Compare two rules of how many edges graphs of several sizes have, by their likelihood.

    In dense graphs, which `Sized` is for, each pair is an edge with probability p whatever the
    number of nodes N; in sparse ones with probability d / (N - 1), so that the mean degree is d.
    Each number of edges is binomial, and p and d are at their most likely values.

    Parameters
    ----------
    n_edges, n_pairs, n_nodes : array, shape (n_graphs,)
        Edges among the pairs whose labels are known, the number of these pairs, and of nodes.

    Returns
    -------
    float
        The log-likelihood of the sparse rule minus that of the dense one; 0 for graphs of one size.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.readouts.sized import sparse_over_dense
    >>> nodes = np.array([10.0, 40.0])
    >>> pairs = nodes * (nodes - 1) / 2
    >>> round(sparse_over_dense(1.5 * nodes, pairs, nodes), 1)  # a mean degree of 3
    11.2
    >>> round(sparse_over_dense(0.4 * pairs, pairs, nodes), 1)  # a density of 0.4
    -107.9
    """

    def log_likelihood(p: np.ndarray) -> float:
        p = np.clip(p, 1e-12, 1 - 1e-12)  # a graph without edges, or without gaps, is possible
        return float((n_edges * np.log(p) + (n_pairs - n_edges) * np.log1p(-p)).sum())

    if np.ptp(n_nodes) == 0:
        return 0.0
    dense = log_likelihood(np.full(n_edges.shape, n_edges.sum() / n_pairs.sum()))
    # The most likely mean degree; a graph on N nodes has at most N - 1.
    degrees = np.linspace(0, n_nodes.max() - 1, 2001)[1:]
    sparse = max(log_likelihood(degree / (n_nodes - 1)) for degree in degrees)
    return sparse - dense
