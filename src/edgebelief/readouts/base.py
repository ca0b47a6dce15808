"""What a readout is."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from ..data.dataset import Stack
from ..edges import Support
from ..errors import InputTypeError
from ..networks import Output
from .curves import Term


class Readout(eqx.Module):
    """From what a network knows, and what is known of the pairs, to the logit of each edge.

    In two steps, so that the first is done once for all parameters of the readout: `reduce` keeps
    of the network's output what the logits need, `logits` turns it into them. Elementwise in the
    leading axes: one graph or a stack, whatever the network was given.
    """

    params_type: ClassVar[Any]
    """The named tuple of its parameters; the field names are the sampling-site names."""
    linear: ClassVar[bool] = True
    """Whether the logits are linear in coefficients: `columns`."""
    unlisted: ClassVar[tuple[str, ...]] = ()
    """Vectors of parameters that no table lists."""
    scale: ClassVar[Any] = None
    """The scale of distances that it is made for ("median", "relative"); None for their own."""

    @abc.abstractmethod
    def reduce(
        self, output: Output, support: Support, pairs: Float[Array, "... edges features"] | None
    ) -> Any:
        """What the logits need, whatever the readout's parameters."""

    @abc.abstractmethod
    def logits(self, params: Any, reduced: Any) -> Float[Array, "... edges"]:
        """The logits."""

    def __call__(
        self,
        params: Any,
        output: Output,
        support: Support,
        pairs: Float[Array, "... edges features"] | None = None,
    ) -> Float[Array, "... edges"]:
        """Both steps."""
        return self.logits(params, self.reduce(output, support, pairs))

    @property
    def is_prepared(self) -> bool:
        """Whether it has seen what it needs to see of the data."""
        return True

    @property
    def n_channels(self) -> int | None:
        """How many channels it reads; None for a network without an axis of them."""
        return None

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each parameter that is a vector."""
        return {}

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms that are curves of a feature; none by default."""
        return ()

    @property
    def possible_terms(self) -> dict[str, tuple[str, ...]]:
        """The features that may have a term, each with its levels (none for a number)."""
        return {}

    def with_terms(self, terms: tuple[Term, ...]) -> Readout:
        """The readout with these terms, made for features in `possible_terms`."""
        return self

    @property
    def covariates(self) -> tuple[str, ...] | None:
        """The pair covariates that it uses; None for all that the data have, none by default."""
        return ()

    @property
    def groups(self) -> Int[np.ndarray, " curves"]:
        """The index of the scale that each coefficient in `terms` is a multiple of."""
        return np.zeros(0, int)

    @property
    @abc.abstractmethod
    def part_names(self) -> tuple[str, ...]:
        """The names of what the logits are the sum of, in the order of tables."""

    def inputs(
        self, output: Output, support: Support, pairs: Float[Array, "... edges features"] | None
    ) -> dict[str, Float[Array, "... edges"]]:
        """The features that `terms` are curves of, by name."""
        return {}

    def pairs(self, stack: Stack) -> Float[np.ndarray, "graphs edges features"] | None:
        """What is known of each pair before the network runs; None if only the network counts."""
        return None

    def prepared(self, stacks: Sequence[Stack], outputs: Sequence[Output]) -> Readout:
        """Make the readout for the data it will be fitted to, and the network's outputs there."""
        return self

    @abc.abstractmethod
    def parts(self, params: Any, reduced: Any) -> dict[str, Float[Array, "... edges"]]:
        """The summands of the logits, by the names of `part_names`."""

    def columns(self, reduced: Any) -> Float[Array, "... edges columns"]:
        """What the logits are linear in, with a coefficient for each, if they are (`linear`)."""
        raise InputTypeError(f"{type(self).__name__} has no coefficient for each column.")
