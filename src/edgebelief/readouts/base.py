"""What a readout is."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..convex.iterations import State


class Readout(eqx.Module):
    """From a network's last state, and the distances, to the logit of each edge. Abstract.

    Elementwise in the leading axes: one graph or a stack, whatever the network was given.
    """

    @abc.abstractmethod
    def __call__(
        self, params: Any, state: State, e: Float[Array, "... edges"]
    ) -> Float[Array, "... edges"]:
        """The logits, linear in `params`."""
