"""What labels say, given logits and, where edges have weights, what the network knows."""

import abc
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.nn import softplus
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from ..edges import Support
from ..networks import Output

# Pairs so far below the threshold, or nearer to it than that, are where the logarithm of the
# network's weight is smoothed: a tenth of 1/sqrt(N - 1), which is the size of its weights.
SMOOTHED = 0.1


class Likelihood(eqx.Module):
    """What labels say. Abstract.

    As for readouts, in two steps: `reduce` keeps of the network's output what is needed beside the
    logits, whatever the parameters.
    """

    params_type: ClassVar[Any]
    """The named tuple of its parameters; the field names are the sampling-site names."""
    weighted: ClassVar[bool]
    """Whether edges have weights."""

    @abc.abstractmethod
    def reduce(self, output: Output, support: Support) -> Any:
        """What is needed of the network's output; None if nothing."""

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
        """Log p(labels) of each graph.

        `log_w` are the logarithms of the weights that are known, NaN for others; None if none is.
        """

    def weight_at(self, params: Any, reduced: Any) -> tuple[Array, Array]:
        """Mean and sd of the logarithm of each pair's weight, if it is an edge (`weighted`)."""
        raise TypeError(f"{type(self).__name__} has no weights.")


class NoParams(NamedTuple):
    """None."""


class BernoulliEdges(Likelihood):
    """Each edge is there with probability sigmoid(logit), independently."""

    params_type = NoParams
    weighted = False

    def reduce(self, output, support):
        return None

    def log_likelihood(self, logits, a, known, log_w=None, params=(), reduced=None):
        """Log p(a | logits) of each graph, over its known labels: -softplus(-(2a - 1) logit).

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
    """level, slope: of the logarithm of a weight. weight_sd: its spread around that."""

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

    def reduce(self, output, support):
        k = SMOOTHED / math.sqrt(support.n_nodes - 1)
        return math.log(k) + jnp.arcsinh(output.z / (2 * k))  # the same f, with all its digits

    def log_likelihood(self, logits, a, known, log_w=None, params=(), reduced=None):
        presence = BernoulliEdges().log_likelihood(logits, a, known)
        if log_w is None:
            return presence
        there = ~jnp.isnan(log_w)
        y = jnp.where(there, log_w, 0.0)
        centre, spread = self.weight_at(params, reduced)
        return presence + jnp.where(there, norm.logpdf(y, centre, spread) - y, 0.0).sum(-1)

    def weight_at(self, params: Any, reduced: Float[Array, "... edges"]) -> tuple[Array, Array]:
        """Mean and sd of the logarithm of each pair's weight, if it is an edge."""
        return params.level + params.slope * reduced, params.weight_sd
