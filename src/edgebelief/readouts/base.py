"""Readout: the interface from a network's output to the logit of each edge."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..data.dataset import Stack
from ..edges import Support
from ..errors import InputTypeError
from ..networks import Output
from .curves import AnyArray, Term

# Features of pairs that do not depend on the network, in the order of `Readout.pairs`.
Pairs = Float[AnyArray, "... edges features"]
# Numbers for each edge, and a design matrix with a row for each edge; of one graph or of a stack.
PerEdge = Float[Array, "... edges"]
Columns = Float[Array, "... edges columns"]


class Readout(eqx.Module):
    """Turn a network's output, and features of the pairs, into the logit of each edge. Abstract.

    There are two steps. `reduce` keeps the part of the network's output that the logits depend on;
    it runs once for all parameters of the readout. `logits` computes the logits from that part. All
    arrays may have leading axes: the output may be of one graph or of a stack of graphs.
    """

    params_type: ClassVar[Any]
    """The named tuple of the parameters; its field names are the names of the sampling sites."""
    linear: ClassVar[bool] = True
    """Whether the logits are `columns` times a vector of coefficients."""
    unlisted: ClassVar[tuple[str, ...]] = ()
    """The names of vector parameters that tables of parameters leave out."""

    @abc.abstractmethod
    def reduce(self, output: Output, support: Support, pairs: Pairs | None) -> Array:
        """Compute what the logits depend on besides the readout's parameters."""

    @abc.abstractmethod
    def logits(self, params: Any, reduced: Array) -> PerEdge:
        """Compute the logit of each edge from what `reduce` returned."""

    def __call__(
        self, params: Any, output: Output, support: Support, pairs: Pairs | None = None
    ) -> PerEdge:
        """Compute the logit of each edge: `reduce`, then `logits`."""
        return self.logits(params, self.reduce(output, support, pairs))

    @property
    def is_prepared(self) -> bool:
        """Whether everything that must be set from the data is set."""
        return True

    @property
    def scale(self) -> str | None:
        """The scale of distances that it expects, "median" or "relative"; None for any scale."""
        return None

    @property
    def n_channels(self) -> int | None:
        """The number of channels that it reads; None for networks without an axis of channels."""
        return None

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each parameter that is a vector."""
        return {}

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms that are curves of one feature each; by default there are none."""
        return ()

    @property
    def possible_terms(self) -> dict[str, tuple[str, ...]]:
        """The features that may have a term, each with its levels (none for numbers)."""
        return {}

    def with_terms(self, terms: tuple[Term, ...]) -> Readout:
        """Return the readout with these terms, of features in `possible_terms`."""
        return self

    @property
    def covariates(self) -> tuple[str, ...] | None:
        """The pair covariates that it uses, by default none; None for all that the data have."""
        return ()

    @property
    def groups(self) -> Int[np.ndarray, " curves"]:
        """The index of the scale that each coefficient in `terms` is a multiple of."""
        return np.zeros(0, int)

    @property
    @abc.abstractmethod
    def part_names(self) -> tuple[str, ...]:
        """The names of the summands of the logits, in the order in which tables list them."""

    def coefficients(
        self, scales: Float[AnyArray, "... scales"], curves: Float[AnyArray, "... curves"]
    ) -> Float[AnyArray, "... curves"]:
        """Return the factors of the curves in `terms`, given the parameters of those names."""
        return curves

    def inputs(self, output: Output, support: Support, pairs: Pairs | None) -> dict[str, PerEdge]:
        """Return the features that `terms` are curves of, by name."""
        return {}

    def pairs(self, stack: Stack) -> Float[np.ndarray, "graphs edges features"] | None:
        """Compute the features of pairs that do not depend on the network; None if none is used."""
        return None

    def prepared(self, stacks: Sequence[Stack], outputs: Sequence[Output]) -> Readout:
        """Return the readout with everything set that depends on the data to be fitted.

        `outputs` are the network's outputs for `stacks`.
        """
        return self

    def parts(self, params: Any, reduced: Array) -> dict[str, PerEdge]:
        """Return the summands of the logits, by the names in `part_names`.

        By default they are the `columns`, each times its coefficient in the order of `params`.
        """
        columns = self.columns(reduced)
        coefficients = jnp.concatenate([jnp.atleast_1d(value) for value in params])
        return {name: columns[..., k] * coefficients[k] for k, name in enumerate(self.part_names)}

    def columns(self, reduced: Array) -> Columns:
        """Return the design matrix of the logits, for readouts that are `linear`."""
        raise InputTypeError(f"{type(self).__name__} has no coefficient for each column.")
