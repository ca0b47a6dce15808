"""What a readout is."""

import abc
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from ..convex.iterations import State


class Readout(eqx.Module):
    """From a network's last state, and the distances, to the logit of each edge. Abstract.

    Elementwise in the leading axes: one graph or a stack, whatever the network was given.
    """

    params_type: ClassVar[Any]
    """The named tuple of its parameters; the field names are the sampling-site names."""

    @abc.abstractmethod
    def __call__(
        self, params: Any, state: State, e: Float[Array, "... edges"]
    ) -> Float[Array, "... edges"]:
        """The logits, linear in `params`."""
