"""What the pair network is given: channels of all pairs, and facts about the whole input.

One function for training and for prediction. It takes one graph; rows of its arrays beyond the
nodes of the graph (`mask` 0) may hold anything finite and change nothing.

    channels    the distance, relative to the mean, and its logarithm; the double-centred distances
                G; partial correlations by ridge inverses of |G| at several ridges (as in
                `evidence.Precision`); where there are signals, correlations with their signs, and
                partial ones
    facts       how many signals, how many nodes, which distance, whether signals were given

Multiplying all distances by a constant changes nothing. Single precision suffices: the smallest
ridge keeps condition numbers below 1e5. There is no eigendecomposition, which is slow for many
small matrices on a GPU: |G| is G sign(G), with the matrix sign by polynomials, and inverses are by
Cholesky factors.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

Scalar = Float[Array, ""]
OnNodes = Float[Array, " nodes"]
OnPairs = Float[Array, "nodes nodes"]

# Ridges over the (nearly) largest eigenvalue of G. From expected distances the smallest one
# separates edges from the rest; from few signals the largest one is best. Those of correlations
# begin higher, because correlations are only given with finitely many signals.
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
SIGNED_RIDGES = (1e-3, 1e-2, 1e-1)

CHANNELS = (
    "itself",
    "distance",
    "log distance",
    "covariance",
    "scaled covariance",
    *(f"precision {r:g}" for r in RIDGES),
    *(f"scaled precision {r:g}" for r in RIDGES),
    "correlation",
    "squared correlation",
    *(f"signed precision {r:g}" for r in SIGNED_RIDGES),
)
FACTS = (
    "log signals",
    "log signals per node",
    "infinitely many signals",
    "unknown number of signals",
    "log nodes",
    "correlation distance",
    "signals given",
)

# Odd polynomials a x + b x^3 + c x^5, one after the other, that take [1e-3, 1] to 1 and [-1, -1e-3]
# to -1 faster than any others of this degree (Amsel et al. 2025, "The Polar Express"); what is
# smaller grows by 7,000 in all. The last, repeated, is the Newton-Schulz iteration of order 5.
SIGN_STEPS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
    (1.891301407787398, -1.2679958271945868, 0.37680408948524835),
    (1.875, -1.25, 0.375),
    (1.875, -1.25, 0.375),
)
# Dividing by this keeps eigenvalues below 1, where the first polynomial is safe from rounding.
SAFETY = 1.01

# A logarithm of a relative distance of 0 would be -inf; so small ones are all alike.
SMALLEST = 1e-4
# Channels beyond this are no longer told apart: a few outlying pairs must not drown the others.
LARGEST = 8.0
# What a number of signals of 150 and one of 10 or 2,000 differ by, in the logarithm, is 1.
TYPICAL_LOG, SPREAD_LOG = 5.0, 2.6


class Known(NamedTuple):
    """What is known of an input besides its numbers, each a 0-d array."""

    n_signals: Scalar
    """How many signals the distances average; infinity for expected distances, NaN if unknown."""
    is_correlation: Scalar
    """1 if distances are 1 - |correlation|, 0 if squared Euclidean."""
    has_signals: Scalar
    """1 if correlations with their signs are given too."""


class Inputs(NamedTuple):
    """What the network is given for one graph."""

    pairs: Float[Array, "nodes nodes channels"]
    facts: Float[Array, " facts"]
    mask: OnNodes


def inputs_of(e: OnPairs, correlation: OnPairs, known: Known, mask: OnNodes) -> Inputs:
    """Compute the channels and facts of one graph.

    Parameters
    ----------
    e : array, shape (N, N)
        Distances, symmetric; the diagonal is ignored.
    correlation : array, shape (N, N)
        Correlations of the nodes over the signals; ignored where `known.has_signals` is 0.
    known : Known
    mask : array, shape (N,)
        1 for nodes, 0 for rows that fill up the array.

    Returns
    -------
    Inputs
        Finite, whatever finite numbers were given.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from edgebelief.amortise.inputs import CHANNELS, Known, inputs_of
    >>> path = jnp.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])  # resistances
    >>> known = Known(jnp.inf, 0.0, 0.0)
    >>> pairs = inputs_of(path, jnp.eye(3), known, jnp.ones(3)).pairs
    >>> precision = pairs[..., CHANNELS.index("precision 0.0001")]
    >>> [abs(round(float(precision[i, j]), 2)) for i, j in ((0, 1), (0, 2), (1, 2))]
    [0.71, 0.0, 0.71]
    """
    with jax.default_matmul_precision("highest"):
        on_pairs = mask[:, None] * mask
        off_diagonal = on_pairs * (1 - jnp.eye(len(mask)))
        n = mask.sum()
        e = _to_order_one(jnp.where(off_diagonal > 0, e, 0.0))
        g = _double_centred(e, on_pairs, n)
        c = _correlations(correlation, on_pairs, known.has_signals)
        precisions, signed, variance = _precisions(g, c, on_pairs, n)
        channels = [
            jnp.eye(len(mask)),
            *_of_distances(e, off_diagonal),
            *_of_covariance(g, variance, n),
            *(_partial(k) for k in precisions),
            *(_relative_precision(k, n) for k in precisions),
            c,
            c**2,
            *(_partial(k) * known.has_signals for k in signed),
        ]
        pairs = jnp.stack(channels, -1) * on_pairs[..., None]
    return Inputs(_finite(pairs), _facts(known, n), mask)


def _facts(known: Known, n: Scalar) -> Float[Array, " facts"]:
    unknown, infinite = jnp.isnan(known.n_signals), jnp.isinf(known.n_signals)
    counted = ~(unknown | infinite)
    log_signals = jnp.log(jnp.where(counted, jnp.maximum(known.n_signals, 1.0), 1.0))
    facts = (
        jnp.where(counted, (log_signals - TYPICAL_LOG) / SPREAD_LOG, 0.0),
        jnp.where(counted, (log_signals - jnp.log(n)) / SPREAD_LOG, 0.0),
        infinite,
        unknown,
        (jnp.log(n) - 3.0) / 1.5,  # about 0 for 20 nodes, and between -1 and 2
        known.is_correlation,
        known.has_signals,
    )
    return jnp.stack([jnp.asarray(fact, jnp.float32) for fact in facts])


def _to_order_one(e: OnPairs) -> OnPairs:
    """Divide by the largest modulus, so that no power of distances over- or underflows."""
    largest = jnp.abs(e).max()
    return e / jnp.where(largest > 0, largest, 1.0)


def _of_distances(e: OnPairs, off_diagonal: OnPairs) -> tuple[OnPairs, OnPairs]:
    mean = (jnp.abs(e) * off_diagonal).sum() / jnp.maximum(off_diagonal.sum(), 1.0)
    relative = e / jnp.where(mean > 0, mean, 1.0)
    logarithm = jnp.log(jnp.maximum(relative, SMALLEST)) * off_diagonal
    return jnp.clip(relative, -LARGEST, LARGEST), logarithm


def _double_centred(e: OnPairs, on_pairs: OnPairs, n: Scalar) -> OnPairs:
    """Return G = -1/2 J E J, the covariance that has these squared distances."""
    means = e.sum(0) / n
    return -0.5 * (e - means - means[:, None] + means.sum() / n) * on_pairs


def _correlations(correlation: OnPairs, on_pairs: OnPairs, given: Scalar) -> OnPairs:
    """Return the correlations of different nodes, 0 where none are given."""
    different = on_pairs * (1 - jnp.eye(len(on_pairs)))
    return _finite(jnp.clip(jnp.where(given > 0, correlation, 0.0), -1.0, 1.0)) * different


def _of_covariance(g: OnPairs, variance: OnNodes, n: Scalar) -> tuple[OnPairs, OnPairs]:
    """Return G over the mean variance, and over the roots of two variances."""
    relative = g / _positive(variance.sum() / n)
    return _compressed(relative), _over_roots(g, variance)


def _precisions(
    g: OnPairs, c: OnPairs, on_pairs: OnPairs, n: Scalar
) -> tuple[list[OnPairs], list[OnPairs], OnNodes]:
    """Return ridge inverses of |G| and of the correlations, and the diagonal of |G|.

    The constant vector is in the null space of G. It is given the eigenvalue s for the inverse, and
    then removed, so that it does not drown the rest. Gaps, filled pair by pair, give correlations
    some negative eigenvalues; so their modulus is taken too.
    """
    constant = on_pairs / n
    size, scale = absolute(g)
    correlations, scale_c = absolute(c + jnp.diag(jnp.diagonal(on_pairs)))
    matrices = [size + scale * (constant + r * jnp.eye(len(g))) for r in RIDGES]
    matrices += [correlations + r * scale_c * jnp.eye(len(g)) for r in SIGNED_RIDGES]
    # One call for all: several at the same time wait for each other for ever on a CPU of two cores.
    inverses = jax.vmap(lambda matrix: inverse_of(matrix, on_pairs))(jnp.stack(matrices))
    first = [
        k - constant / _positive(scale * (1 + r)) for k, r in zip(inverses, RIDGES, strict=False)
    ]
    return first, list(inverses[len(RIDGES) :]), jnp.diagonal(size)


def absolute(matrix: OnPairs) -> tuple[OnPairs, Scalar]:
    """Return |M| of a symmetric matrix, and a scale s, its largest |eigenvalue| or a little more.

    s = (sum of the eighth powers of the eigenvalues)^(1/8) is at most n^(1/8) of the largest. |M| =
    M sign(M) has the absolute values of the eigenvalues; those below 1e-4 s become smaller than
    they were, but not negative.
    """
    square = matrix @ matrix
    fourth = square @ square
    scale = jnp.sqrt(jnp.sqrt(jnp.sqrt((fourth**2).sum())))
    sign = matrix / _positive(SAFETY * scale)
    for a, b, c in SIGN_STEPS:
        square = sign @ sign
        sign = a * sign + (b * square + c * (square @ square)) @ sign
        sign = 0.5 * (sign + sign.T)  # rounding errors that are not symmetric would grow
    size = matrix @ sign
    return 0.5 * (size + size.T), scale


def inverse_of(positive: OnPairs, on_pairs: OnPairs) -> OnPairs:
    """Return the inverse of a positive definite matrix on the nodes, and 0 beyond them."""
    beyond = jnp.diag(1 - jnp.diagonal(on_pairs))
    own = jnp.diagonal(positive)
    # A graph without any variance: the inverse of the identity does no harm.
    nothing = jnp.diag((own <= 0).astype(own.dtype))
    itself = jnp.eye(len(positive))
    factor = jnp.linalg.cholesky(positive * on_pairs + beyond + nothing)
    root = solve_triangular(factor, itself, lower=True)
    return (root.T @ root) * on_pairs


def _partial(k: OnPairs) -> OnPairs:
    """Return partial correlations -K_ij / sqrt(K_ii K_jj), and log(K_ii / mean) on the diagonal."""
    own = jnp.diagonal(k)
    there = own > 0
    mean = own.sum() / jnp.maximum(there.sum(), 1)
    level = jnp.log(jnp.where(there, own, 1.0) / _positive(mean)) * there
    return -_over_roots(k, own) * (1 - jnp.eye(len(k))) + jnp.diag(level)


def _relative_precision(k: OnPairs, n: Scalar) -> OnPairs:
    """Return -K_ij over the mean of K_ii, and K_ii over it on the diagonal."""
    mean = jnp.trace(k) / n
    return _compressed(k * (2 * jnp.eye(len(k)) - 1) / _positive(mean))


def _over_roots(matrix: OnPairs, own: OnNodes) -> OnPairs:
    """Return M_ij / sqrt(own_i own_j), at most 1 in modulus; 0 where that is not defined."""
    root = jnp.where(own > 0, lax.rsqrt(jnp.where(own > 0, own, 1.0)), 0.0)
    return jnp.clip(matrix * root[:, None] * root, -1.0, 1.0)


def _compressed(x: OnPairs) -> OnPairs:
    return jnp.clip(jnp.arcsinh(x), -LARGEST, LARGEST)


def _positive(x: Scalar) -> Scalar:
    return jnp.where(x > 0, x, 1.0)


def _finite(x: Array) -> Array:
    return jnp.where(jnp.isfinite(x), x, 0.0)
