"""What the pretrained network believes of each pair, as evidence: terms of readouts with labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from ..data.signals import Metric
from ..edges import Complete
from ..errors import SettingError, SettingTypeError
from ..evidence.base import Evidence, OnPairs, Values
from ..networks.pair import PairNetwork
from ..validate import check_choice, check_number
from .predict import PairBeliefs, beliefs
from .temper import stated_law
from .weights import pretrained

# The name of the channel, and of the term that it becomes. The default's mixture trusts a covariate
# of this name, which no covariate of a user's should have.
CHANNEL = "pretrained log odds"


@dataclass(frozen=True)
class Pretrained(Evidence):
    """The log odds of an edge by the pretrained network, which has seen no label of yours.

    With labels it is a feature like others: a curve of it is learned, so that it is recalibrated
    where it is wrong, and left alone where it is right. See docs/pretrained.md. Squared distances,
    and so this, depend on the units of the nodes' signals, where these differ.

    Parameters
    ----------
    metric : {"sqeuclidean", "log-euclidean", "correlation"}, optional
        Which distances there are, or are to be computed from signals. None leaves it to the
        learner, which knows; else distances are squared ones, or logarithms if some are negative.
    needs_signals : bool
        Whether the network is given signals, or their distances alone.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.evidence import Pretrained
    >>> path = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])  # resistances
    >>> (logit,) = Pretrained().of(path)
    >>> bool(logit[0, 1] > logit[0, 2])
    True
    """

    metric: Metric | None = None
    needs_signals: bool = False

    name = "pretrained"

    def __post_init__(self) -> None:
        _check_kind(self.metric, self.needs_signals)

    @property
    def channels(self) -> tuple[str, ...]:
        return (CHANNEL,)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        return self.of_graph(values, None)

    def of_graph(self, values: Values, n_signals: float | None) -> tuple[OnPairs, ...]:
        # Where there are labels they say what the network is worth: no alarm, and no tempering.
        if self.needs_signals:
            metric = self.metric or "sqeuclidean"
            believed = beliefs(signals=values, metric=metric, network=pretrained())
        else:
            metric = self.metric or _likely_metric(values)
            believed = beliefs(values, n_signals=n_signals, metric=metric, network=pretrained())
        return (_on_pairs(believed.logit, values.shape[1]),)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 4.0 * (n_nodes / 500) ** 2.5  # measured from 20 to 500 nodes


# The names of the channels of `PretrainedBelief`, and the number of levels of a graph: equally
# probable ones, by their middles, whose mean and variance are within 2 % of those of a normal law.
N_LEVELS = 16
HEADS = tuple(f"pretrained head {k + 1}" for k in range(4))
LEVELS = tuple(f"pretrained level {k + 1}" for k in range(N_LEVELS))


@dataclass(frozen=True)
class PretrainedBelief(Evidence):
    """What the pretrained network believes of a graph, for a learner that has seen no label.

    Parameters
    ----------
    metric : {"sqeuclidean", "log-euclidean", "correlation"}, optional
        Which distances there are, or are to be computed from signals. None: squared ones, or
        logarithms if some are negative.
    needs_signals : bool
        Whether the network is given signals, or their distances alone.
    n_signals : float, optional
        Of how many signals distances are the mean, where the data do not say.
    density : float or (float, float), optional
        See `edgebelief.amortise.beliefs`.
    network : PairNetwork, optional
        Instead of the one that ships: a tuned one, which has no alarm, so that its belief is not
        tempered. It cannot go with `density`.
    """

    metric: Metric | None = None
    needs_signals: bool = True
    n_signals: float | None = None
    density: float | tuple[float, float] | None = None
    network: PairNetwork | None = field(default=None, repr=False, compare=False)

    name = "pretrained belief"

    def __post_init__(self) -> None:
        _check_kind(self.metric, self.needs_signals)
        if self.n_signals is not None and not check_number(self.n_signals, "n_signals") >= 1:
            raise SettingError(f"must be at least 1; got {self.n_signals:g}.", argument="n_signals")
        if self.density is not None:
            stated_law(self.density)

    @property
    def channels(self) -> tuple[str, ...]:
        return (*HEADS, *LEVELS)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        return self.of_graph(values, None)

    def of_graph(self, values: Values, n_signals: float | None) -> tuple[OnPairs, ...]:
        believed = self.believed(values, n_signals)
        n_nodes = values.shape[1]
        heads = (believed.centre + believed.slope * (believed.logits - believed.centre)).T
        levels = quantiles(believed.levels, believed.level_weights, N_LEVELS)
        of_levels = [np.full((n_nodes, n_nodes), level) for level in levels]
        return (*(_on_pairs(head, n_nodes) for head in heads), *of_levels)

    def believed(self, values: Values, n_signals: float | None = None) -> PairBeliefs:
        """Return all that the network says of a graph."""
        by: dict[str, Any] = {"density": self.density, "network": self.network}
        if self.needs_signals:
            return beliefs(signals=values, metric=self.metric or "sqeuclidean", **by)
        metric = self.metric or _likely_metric(values)
        number = self.n_signals if n_signals is None else n_signals
        return beliefs(values, n_signals=number, metric=metric, **by)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return Pretrained().seconds(n_nodes, n_signals)


def _likely_metric(distances: Values) -> Metric:
    """Squared distances are not negative; logarithms of distances are on both sides of zero."""
    return "log-euclidean" if (distances < 0).any() else "sqeuclidean"


def _check_kind(metric: object, needs_signals: object) -> None:
    if metric is not None:
        check_choice(metric, "metric", get_args(Metric))
    if not isinstance(needs_signals, bool):
        problem = f"must be True or False; got {needs_signals!r}."
        raise SettingTypeError(problem, argument="needs_signals")


def quantiles(
    points: Float[np.ndarray, " points"], weights: Float[np.ndarray, " points"], n: int
) -> Float[np.ndarray, " n"]:
    """Return the means of `n` equally probable parts of a discrete law, in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.amortise.evidence import quantiles
    >>> quantiles(np.array([0.0, 1.0]), np.array([0.75, 0.25]), 2)
    array([0. , 0.5])
    """
    order = np.argsort(points)
    points, weights = points[order], weights[order] / weights.sum()
    ends = np.concatenate([[0.0], np.cumsum(weights)])
    area = np.concatenate([[0.0], np.cumsum(weights * points)])
    cuts = np.linspace(0, 1, n + 1)
    return n * np.diff(np.interp(cuts, ends, area))


def _on_pairs(vector: Float[np.ndarray, " edges"], n_nodes: int) -> OnPairs:
    return np.asarray(Complete(n_nodes).to_matrix(vector.astype(float)))
