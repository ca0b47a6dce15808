"""What the pretrained network believes of each pair, as evidence: terms of readouts with labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from jaxtyping import Float

from ..data.signals import Metric
from ..edges import Complete
from ..errors import SettingTypeError
from ..evidence.base import Evidence, OnPairs, Values
from ..validate import check_choice
from .predict import beliefs

# The name of the channel, and of the term that it becomes.
CHANNEL = "pretrained"


@dataclass(frozen=True)
class Pretrained(Evidence):
    """The log odds of an edge by the pretrained network, which has seen no label of yours.

    With labels it is a feature like others: a curve of it is learned, so that it is recalibrated
    where it is wrong, and left alone where it is right. See docs/pretrained.md.

    Parameters
    ----------
    metric : {"sqeuclidean", "log-euclidean", "correlation"}, optional
        Which distances there are, or are to be computed from signals. None leaves it to the
        learner, which knows; else "sqeuclidean".
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
        if self.metric is not None:
            check_choice(self.metric, "metric", get_args(Metric))
        if not isinstance(self.needs_signals, bool):
            problem = f"must be True or False; got {self.needs_signals!r}."
            raise SettingTypeError(problem, argument="needs_signals")

    @property
    def channels(self) -> tuple[str, ...]:
        return (CHANNEL,)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        return self.of_graph(values, None)

    def of_graph(self, values: Values, n_signals: float | None) -> tuple[OnPairs, ...]:
        metric = self.metric or "sqeuclidean"
        if self.needs_signals:
            believed = beliefs(signals=values, metric=metric)
        else:
            believed = beliefs(values, n_signals=n_signals, metric=metric)
        return (_on_pairs(believed.logit, values.shape[1]),)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 4.0 * (n_nodes / 500) ** 2.5  # measured from 20 to 500 nodes


def _on_pairs(vector: Float[np.ndarray, " edges"], n_nodes: int) -> OnPairs:
    return np.asarray(Complete(n_nodes).to_matrix(vector.astype(float)))
