"""The evidence that applies to some data, within a time."""

from __future__ import annotations

from collections.abc import Sequence

from .base import Evidence
from .correlation import PartialCorrelation, RankCorrelation, SignedCorrelation
from .diffusion import Diffusion
from .forest import ForestImportance
from .information import MutualInformation
from .likelihood import MostLikelyGraph
from .precision import Precision, SignalPrecision
from .profile import Profile
from .smooth import SmoothStructure

# In the order of what they are worth for their time.
ALL: tuple[Evidence, ...] = (
    MostLikelyGraph(),
    Precision(),
    Diffusion(),
    Profile(),
    SmoothStructure(),
    PartialCorrelation(),
    SignedCorrelation(),
    RankCorrelation(),
    MutualInformation(),
    ForestImportance(),
)
# For graphs of which only some pairs are candidates: what is computed without all pairs.
OF_CANDIDATES: tuple[Evidence, ...] = (
    SmoothStructure(with_resistance=False),
    SignalPrecision(),
    PartialCorrelation(),
    SignedCorrelation(),
    RankCorrelation(),
)
# "auto" may take this many seconds on one core.
SECONDS = 30.0


def applicable(
    n_nodes: Sequence[int],
    n_signals: Sequence[float] | None = None,
    seconds: float = SECONDS,
    *,
    restricted: bool = False,
) -> tuple[Evidence, ...]:
    """Return the evidence that can be computed from such data within a time, in a fixed order.

    Parameters
    ----------
    n_nodes : sequence of int
        The number of nodes of each graph.
    n_signals : sequence of float, optional
        The number of signals of each graph; None if there are distances alone.
    seconds : float
        What all of it may take on one core, by estimate.
    restricted : bool
        Whether only some pairs of each graph are candidates.

    Examples
    --------
    >>> from edgebelief.evidence import applicable
    >>> [kind.name for kind in applicable([20] * 5)]
    ['likelihood', 'precision', 'diffusion', 'profile', 'smooth']
    >>> "forest" in [kind.name for kind in applicable([500], [200])]
    False
    """
    counts = [0.0] * len(n_nodes) if n_signals is None else n_signals
    chosen = []
    for kind in OF_CANDIDATES if restricted else ALL:
        if kind.needs_signals and n_signals is None:
            continue
        time = kind.seconds_of_candidates if restricted else kind.seconds
        cost = sum(time(n, p) for n, p in zip(n_nodes, counts, strict=True))
        if cost <= seconds:
            chosen.append(kind)
            seconds -= cost
    return tuple(chosen)
