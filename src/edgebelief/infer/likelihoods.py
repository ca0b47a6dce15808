"""What labels say, given logits."""

import equinox as eqx
import jax.numpy as jnp
from jax.nn import softplus
from jaxtyping import Array, Bool, Float


class BernoulliEdges(eqx.Module):
    """Each edge is there with probability sigmoid(logit), independently."""

    def log_likelihood(
        self,
        logits: Float[Array, "... edges"],
        a: Float[Array, "... edges"],
        known: Bool[Array, "... edges"],
    ) -> Float[Array, "..."]:
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
