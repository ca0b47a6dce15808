"""Custom: a user's own function as evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, SettingTypeError
from ..validate import as_floats
from .base import Evidence, OnPairs, Values


@dataclass(frozen=True)
class Custom(Evidence):
    """What a function of your own says about each pair.

    Parameters
    ----------
    name : str
        The name of the channel.
    function : callable
        Takes the distances (N, N), or the signals (P, N) with NaN where missing, and returns a
        matrix (N, N) without NaN off the diagonal; of [i, j] and [j, i] the mean is used. It
        should not depend on the order of the nodes, nor on anything random.
    needs_signals : bool
        Whether the function takes the signals instead of the distances.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.evidence import Custom
    >>> nearness = Custom("nearness", lambda e: np.exp(-e))
    >>> nearness.of(np.array([[0.0, 2.0], [2.0, 0.0]]))[0].round(3)
    array([[0.   , 0.135],
           [0.135, 0.   ]])
    """

    name: str
    function: Callable[[Values], object]
    needs_signals: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SettingTypeError(f"must be text; got {self.name!r}.", argument="name")
        if not callable(self.function):
            raise SettingTypeError(f"cannot be called: {self.function!r}.", argument="function")

    @property
    def channels(self) -> tuple[str, ...]:
        return (self.name,)

    def of(self, values: Values) -> tuple[OnPairs, ...]:
        what, n_nodes = f"the result of the evidence {self.name!r}", values.shape[1]
        matrix = as_floats(self.function(values.copy()), what).copy()
        if matrix.shape != (n_nodes, n_nodes):
            problem = f"must be a matrix ({n_nodes}, {n_nodes}); got shape {matrix.shape}."
            raise InputError(problem, argument=what)
        np.fill_diagonal(matrix, 0.0)
        if not np.isfinite(matrix).all():
            i, j = np.argwhere(~np.isfinite(matrix))[0]
            problem = f"is {matrix[i, j]}; every pair needs a number."
            raise InputError(problem, argument=what, where=(int(i), int(j)))
        return (matrix / 2 + matrix.T / 2,)

    def seconds(self, n_nodes: int, n_signals: float) -> float:
        return 0.0  # not known: what a user asks for is computed
