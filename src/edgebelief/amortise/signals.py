"""From a filter matrix to what a user has: distances, and correlations with their signs.

Gaussian signals need not be drawn one by one. With covariance S = F F' and P of them, the mean is
N(0, S/P), and the scatter about it is F A A' F' with Bartlett's triangular A (chi-distributed on
the diagonal, normal below it): exact for any P, also below N. `Plain` responses are drawn so.
Everything else (heavy tails, nonlinear or correlated responses, gaps) is drawn signal by signal, at
most `most_signals` of them: `Distorted`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .filters import Matrix, OnNodes
from .graphs import Key, Scalar

Rows = Float[Array, "signals nodes"]

# Below this share of the mean variance of a graph, a node is constant: it has no correlations.
CONSTANT = 1e-10


class Seen(NamedTuple):
    """What the signals show."""

    e: Matrix
    """Distances."""
    correlation: Matrix
    """Correlations over the signals, 1 on the diagonal; 0 where they are not defined."""


class Distortion(NamedTuple):
    """How signals differ from Gaussian ones without gaps; each a number of one graph."""

    tails: Scalar
    """Degrees of freedom of Student's t; infinity for the normal distribution."""
    together: Scalar
    """1 if a whole signal is large together, 0 if each white number is large on its own."""
    memory: Scalar
    """The correlation of a signal with the next one."""
    nonlinearity: Scalar
    """0 none, 1 tanh, 2 exp, 3 ranks (the normal distribution function), 4 cubic root."""
    slope: Scalar
    """How far the nonlinearity bends: the standard deviation of its argument."""
    gaps: Scalar
    """The share of missing values."""
    filled: Scalar
    """1 if gaps are filled with 0, 0 if each pair uses the signals that have both."""


class Reading(NamedTuple):
    """How distances are computed from signals; each 0 or 1."""

    centred: Scalar
    """Subtract each node's mean first."""
    standardised: Scalar
    """Subtract the mean and divide by the standard deviation first."""
    correlation_distance: Scalar
    """1 - |correlation| instead of the mean squared difference."""


# How far below the signals the noise is where there is only common variation: covariances stay
# positive definite in single precision.
LEAST_NOISE = 1e-4


def with_noise(f: Matrix, mask: OnNodes, noise: Scalar, common: Matrix) -> Matrix:
    """Return F with F F' + (mean variance) (noise I + common common') as its covariance."""
    covariance = f @ f.T
    level = jnp.trace(covariance) / mask.sum()
    common = common * mask[:, None]
    noise = jnp.where((common != 0).any(), jnp.maximum(noise, LEAST_NOISE), noise)
    itself = jnp.diag(jnp.where(mask > 0, noise * level, 1.0))
    factor = jnp.linalg.cholesky(covariance + level * (common @ common.T) + itself)
    return jnp.where(noise * level > 0, factor * mask[:, None] * mask, f)


def gaussian(
    key: Key, f: Matrix, offsets: OnNodes, n_signals: Scalar, mask: OnNodes, reading: Reading
) -> Seen:
    """Draw what `n_signals` Gaussian signals show; infinitely many show the covariance.

    Parameters
    ----------
    key : JAX key
    f : array, shape (N, N)
    offsets : array, shape (N,)
        The expectation of the signals.
    n_signals : 0-d array
        Infinity is allowed.
    mask : array, shape (N,)
    reading : Reading

    Returns
    -------
    Seen
    """
    diagonal, below, middle = jax.random.split(key, 3)
    n = len(mask)
    finite = jnp.isfinite(n_signals)
    p = jnp.where(finite, n_signals, 2.0)
    degrees = p - 1 - jnp.arange(n)
    chi = jnp.sqrt(2 * jax.random.gamma(diagonal, jnp.maximum(degrees, 1.0) / 2))
    a = jnp.tril(jax.random.normal(below, (n, n)), -1) + jnp.diag(chi)
    a = f @ (a * (degrees > 0))  # column j of A is zero where no degree of freedom is left
    scatter = jnp.where(finite, a @ a.T / p, f @ f.T)
    mean = offsets + jnp.where(finite, f @ jax.random.normal(middle, (n,)) / jnp.sqrt(p), 0.0)
    correlation = _over_roots(scatter, mask)
    second = scatter + jnp.where(reading.centred > 0, 0.0, jnp.outer(mean, mean))
    second = jnp.where(reading.standardised > 0, correlation, second)
    return Seen(_distances(second, correlation, reading), correlation)


def distorted(
    key: Key,
    f: Matrix,
    offsets: OnNodes,
    n_signals: Scalar,
    mask: OnNodes,
    reading: Reading,
    distortion: Distortion,
    most_signals: int,
) -> Seen:
    """Draw signals one by one, and what they show; see `gaussian` for the parameters."""
    x, holes = distorted_rows(key, f, offsets, n_signals, distortion, most_signals)
    rows = (jnp.arange(most_signals) < n_signals).astype(jnp.float32)
    # Gaps that are filled are zeros that count.
    there = jnp.where(distortion.filled > 0, 1.0, ~holes) * rows[:, None] * mask
    x = jnp.where(holes, 0.0, x) * there
    counts = jnp.maximum(there.sum(0), 1.0)
    mean = x.sum(0) / counts
    sd = jnp.sqrt((((x - mean) * there) ** 2).sum(0) / counts)
    shift = jnp.where((reading.centred > 0) | (reading.standardised > 0), mean, 0.0)
    scale = jnp.where((reading.standardised > 0) & (sd > 0), sd, 1.0)
    x = (x - shift) / scale * there
    e, correlation = _pairwise(x, there, mask)
    return Seen(_chosen(e, correlation, reading), correlation)


def distorted_rows(
    key: Key,
    f: Matrix,
    offsets: OnNodes,
    n_signals: Scalar,
    distortion: Distortion,
    most_signals: int,
) -> tuple[Rows, Rows]:
    """Draw signals one by one, and where they have gaps; the first `n_signals` rows count."""
    white, gaps = jax.random.split(key)
    rows = (jnp.arange(most_signals) < n_signals).astype(jnp.float32)
    x = _white(white, distortion, most_signals, len(f)) @ f.T
    x = _bent(x, distortion, rows) + offsets
    return x, jax.random.uniform(gaps, x.shape) < distortion.gaps


def _white(key: Key, distortion: Distortion, rows: int, n: int) -> Rows:
    """Draw white noise, perhaps with heavy tails, perhaps correlated from row to row."""
    normal, tails = jax.random.split(key)
    z = jax.random.normal(normal, (rows, n))
    # A chi-squared number with few degrees of freedom, by the Wilson-Hilferty cube, which is
    # accurate to a percent from 3 on: gamma draws are slow.
    nu = jnp.where(jnp.isfinite(distortion.tails), distortion.tails, 1e6)
    u = jax.random.normal(tails, (rows, n))
    u = jnp.where(distortion.together > 0, u[:, :1], u)
    share = 2 / (9 * nu)
    z = z * jnp.maximum(1 - share + u * jnp.sqrt(share), 0.1) ** -1.5
    rho = distortion.memory
    lag = jnp.arange(rows)[:, None] - jnp.arange(rows)
    memory = jnp.where(lag >= 0, rho ** jnp.maximum(lag, 0), 0.0)
    memory = memory * jnp.where(jnp.arange(rows) > 0, jnp.sqrt(1 - rho**2), 1.0)  # stationary
    return jnp.where(rho > 0, memory @ z, z)


def _bent(x: Rows, distortion: Distortion, rows: Float[Array, " signals"]) -> Rows:
    """Apply the nonlinearity to each node's values, over their standard deviation."""
    variance = (x**2 * rows[:, None]).sum(0) / jnp.maximum(rows.sum(), 1.0)
    level = jnp.sqrt(variance.sum() / jnp.maximum((variance > 0).sum(), 1))
    sd = jnp.where(variance > CONSTANT * level**2, jnp.sqrt(variance), level + (level == 0))
    y = x / sd
    bent = [
        y,
        jnp.tanh(distortion.slope * y),
        jnp.exp(jnp.clip(distortion.slope * y, -8.0, 8.0)),
        jax.scipy.stats.norm.cdf(y) - 0.5,
        jnp.cbrt(y),
    ]
    which = [distortion.nonlinearity == k for k in range(len(bent))]
    return jnp.where(which[0], x, jnp.select(which, bent) * sd)


def _pairwise(x: Rows, there: Rows, mask: OnNodes) -> tuple[Matrix, Matrix]:
    """Return mean squared differences and correlations, over the rows that have both nodes."""
    counts = jnp.maximum(there.T @ there, 1.0)
    sums, squares, cross = x.T @ there, (x**2).T @ there, x.T @ x
    e = (squares + squares.T - 2 * cross) / counts
    covariance = cross / counts - sums * sums.T / counts**2
    variance = jnp.maximum(squares / counts - (sums / counts) ** 2, 0.0)
    floor = CONSTANT * jnp.diagonal(variance).sum() / mask.sum()
    both = jnp.minimum(variance, variance.T)
    defined = both > floor
    product = jnp.where(defined, variance * variance.T, 1.0)
    correlation = jnp.where(defined, covariance / jnp.sqrt(product), 0.0)
    itself = jnp.eye(len(mask))
    return e, jnp.clip(correlation, -1.0, 1.0) * (1 - itself) + jnp.diag(mask)


def _over_roots(covariance: Matrix, mask: OnNodes) -> Matrix:
    own = jnp.diagonal(covariance)
    alive = own > CONSTANT * own.sum() / mask.sum()
    root = jnp.where(alive, jnp.sqrt(jnp.where(alive, own, 1.0)), jnp.inf)
    correlation = jnp.clip(covariance / root[:, None] / root, -1.0, 1.0)
    return correlation * (1 - jnp.eye(len(mask))) + jnp.diag(mask)


def _distances(second: Matrix, correlation: Matrix, reading: Reading) -> Matrix:
    own = jnp.diagonal(second)
    return _chosen(own[:, None] + own - 2 * second, correlation, reading)


def _chosen(e: Matrix, correlation: Matrix, reading: Reading) -> Matrix:
    chosen = jnp.where(reading.correlation_distance > 0, 1 - jnp.abs(correlation), e)
    return jnp.maximum(chosen, 0.0) * (1 - jnp.eye(len(e)))
