"""The probability of labels, and of edge weights where there are some, given the logits."""

import abc
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.nn import softplus
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from ..edges import Support
from ..errors import InputTypeError
from ..networks import Output

# Pairs so far below the threshold, or nearer to it than that, are where the logarithm of the
# network's weight is smoothed: a tenth of 1/sqrt(N - 1), which is the size of its weights.
SMOOTHED = 0.1


class Likelihood(eqx.Module):
    """The probability of labels given logits; abstract.

    In two steps, like a readout: `reduce` keeps what is needed of the network's output beside the
    logits, whatever the parameters.
    """

    params_type: ClassVar[Any]
    """The named tuple of its parameters; the field names are the sampling-site names."""
    weighted: ClassVar[bool]
    """Whether edges have weights."""

    @abc.abstractmethod
    def reduce(self, output: Output, support: Support) -> Any:
        """Keep what is needed of the network's output; None if nothing is."""

    @abc.abstractmethod
    def log_likelihood(
        self,
        logits: Float[Array, "... edges"],
        a: Float[Array, "... edges"],
        known: Bool[Array, "... edges"],
        log_w: Float[Array, "... edges"] | None = None,
        params: Any = (),
        reduced: Any = None,
    ) -> Float[Array, "..."]:
        """Compute log p(labels) of each graph.

        `log_w` are the logarithms of the weights that are known, NaN for others; None if none is.
        """

    def weight_at(self, params: Any, reduced: Any) -> tuple[Array, Array]:
        """Return mean and sd of the log weight of each pair, if it is an edge (`weighted`)."""
        raise InputTypeError(f"{type(self).__name__} has no weights.")


class NoParams(NamedTuple):
    """No parameters."""


class BernoulliEdges(Likelihood):
    """Each edge is there with probability sigmoid(logit), independently."""

    params_type = NoParams
    weighted = False

    def reduce(self, output: Output, support: Support) -> None:
        return None

    def log_likelihood(
        self,
        logits: Float[Array, "... edges"],
        a: Float[Array, "... edges"],
        known: Bool[Array, "... edges"],
        log_w: Float[Array, "... edges"] | None = None,
        params: Any = (),
        reduced: Any = None,
    ) -> Float[Array, "..."]:
        """Add up log p(a | logits) = -softplus(-(2a - 1) logit) over the known labels of a graph.

        Examples
        --------
        >>> import jax.numpy as jnp
        >>> from edgebelief.infer import BernoulliEdges
        >>> a, known = jnp.array([1.0, 0.0, 1.0]), jnp.array([True, True, False])
        >>> BernoulliEdges().log_likelihood(jnp.zeros(3), a, known)  # two times log(1/2)
        Array(-1.3862944, dtype=float32)
        """
        each = -softplus(-(2 * a - 1) * logits)
        return jnp.where(known, each, 0.0).sum(-1)


class WeightParams(NamedTuple):
    """Level and slope of the mean of log weights, and their standard deviation."""

    level: Any
    slope: Any
    weight_sd: Any


class WeightedEdges(Likelihood):
    """A hurdle: an edge is there with probability sigmoid(logit), and then has a weight w,

        log w ~ Normal(level + slope f, weight_sd),    f = log((z + sqrt(z^2 + 4 k^2))/2).

    f is the logarithm of what the network gives to the pair: of `a` for pairs well above the
    threshold (z > k), and smooth for those below, which may be edges too. k = 0.1/sqrt(N - 1). A
    slope of 1 says that weights are proportional to the network's, by a factor exp(level).

    Networks of one channel. Weights that are known exactly zero are no edges.

    Examples
    --------
    >>> from edgebelief.infer import EdgeModel, WeightedEdges
    >>> EdgeModel(likelihood=WeightedEdges()).parameters
    ('theta', 'delta', 'b', 'level', 'slope', 'weight_sd')
    """

    params_type = WeightParams
    weighted = True

    def reduce(self, output: Output, support: Support) -> Float[Array, "... edges"]:
        k = SMOOTHED / math.sqrt(support.n_nodes - 1)
        return math.log(k) + jnp.arcsinh(output.z / (2 * k))  # the same f, with all its digits

    def log_likelihood(
        self,
        logits: Float[Array, "... edges"],
        a: Float[Array, "... edges"],
        known: Bool[Array, "... edges"],
        log_w: Float[Array, "... edges"] | None = None,
        params: Any = (),
        reduced: Any = None,
    ) -> Float[Array, "..."]:
        presence = BernoulliEdges().log_likelihood(logits, a, known)
        if log_w is None:
            return presence
        there = ~jnp.isnan(log_w)
        y = jnp.where(there, log_w, 0.0)
        centre, spread = self.weight_at(params, reduced)
        return presence + jnp.where(there, norm.logpdf(y, centre, spread) - y, 0.0).sum(-1)

    def weight_at(self, params: Any, reduced: Float[Array, "... edges"]) -> tuple[Array, Array]:
        """Return mean and sd of the logarithm of each pair's weight, if it is an edge."""
        return params.level + params.slope * reduced, params.weight_sd
