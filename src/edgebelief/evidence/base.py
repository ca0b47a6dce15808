"""Evidence: what the data say about a pair of nodes, the whole graph considered."""

from __future__ import annotations

import abc

import numpy as np
from jaxtyping import Float

from ..edges import Support
from ..errors import DoesNotApply

OnPairs = Float[np.ndarray, "nodes nodes"]
"""A symmetric matrix with one value for each pair of nodes; its diagonal means nothing."""
OnEdges = Float[np.ndarray, " edges"]
"""One value for each candidate pair."""
Values = Float[np.ndarray, "rows nodes"]
"""What evidence is computed from: distances (N, N), or signals (P, N) with NaN where missing."""


class Evidence(abc.ABC):
    """Channels, each a number for every pair, from the distances or the signals of one graph.

    A subclass is a frozen dataclass of settings. Each channel is symmetric, finite, and permuted
    as the nodes are. It has no unit: multiplying all distances, or the signals of a node, by a
    constant changes nothing, save where a class says otherwise.
    """

    name: str
    """The name of the class in settings, such as "precision"."""
    needs_signals: bool = False
    """Whether it is computed from the signals; otherwise it is from the distances."""

    @property
    @abc.abstractmethod
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, such as "precision 1e-04"."""

    @abc.abstractmethod
    def of(self, values: Values) -> tuple[OnPairs, ...]:
        """Return one matrix for each channel.

        Parameters
        ----------
        values : ndarray
            Signals (P, N) if `needs_signals`, with NaN where missing; else distances (N, N), with
            a diagonal of zeros.
        """

    def of_graph(self, values: Values, n_signals: float | None) -> tuple[OnPairs, ...]:
        """Return `of` a graph whose distances are the mean over so many signals; None if unknown.

        Only for evidence that depends on that number.
        """
        return self.of(values)

    def of_candidates(
        self,
        e: Float[np.ndarray, " edges"],
        support: Support,
        signals: Float[np.ndarray, "signals nodes"] | None,
    ) -> tuple[Float[np.ndarray, " edges"], ...]:
        """Return one vector over the candidates for each channel, in memory O(edges + signals)."""
        problem = f"the evidence {self.name!r} is computed for all pairs, and here only some may be"
        raise DoesNotApply(f"{problem} edges", remedy="leave it out")

    @abc.abstractmethod
    def seconds(self, n_nodes: int, n_signals: float) -> float:
        """Return about how long `of` takes on one core of 2020s hardware."""

    def seconds_of_candidates(self, n_nodes: int, n_signals: float) -> float:
        """Return about how long `of_candidates` takes, with some tens of candidates at a node."""
        return self.seconds(n_nodes, n_signals)
