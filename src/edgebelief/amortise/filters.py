"""From a graph to a matrix F, so that signals are x = F z with white z: covariance F F'.

No eigendecomposition: the pseudo-inverse of a Laplacian is L+ = (L + Pi)^-1 - Pi, where Pi projects
on its null space, which the connected components span; and signals whose covariance is L+ are

    x = (I - Pi) R^-T z,    R R' = L + Pi    (Cholesky)

One Cholesky factorisation serves all filters that need one. Laplacians are divided by a number that
is their largest eigenvalue or a little more.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from .graphs import Adjacency, Key, Scalar, reach

Matrix = Float[Array, "nodes nodes"]
OnNodes = Float[Array, " nodes"]

FILTERS = (
    "inverse root",  # covariance L+: the paper's
    "inverse",  # x = L+ z
    "killed",  # covariance (L + kappa I)^-1: a Gaussian Markov random field
    "tikhonov",  # x = (I + weight L)^-1 z
    "heat",  # x = exp(-t L) z
    "polynomial",  # x = (I + alpha S)^3 z, with S = D^-1/2 W D^-1/2
    "autoregressive",  # x(t) = rho S x(t - 1) + z(t): covariance (I - rho^2 S^2)^-1
    "structural",  # x_j = sum of b_ij x_i over edges i -> j in an acyclic order, + noise
)
HALVINGS = 6  # exp(-t L) = exp(-t L / 64)^64


class Strengths(NamedTuple):
    """The numbers of all filters, drawn for one graph."""

    kappa: Scalar
    weight: Scalar
    t: Scalar
    alpha: Scalar
    rho: Scalar

    @classmethod
    def random(cls, key: Key) -> Strengths:
        """Draw them."""
        u = jax.random.uniform(key, (5,))
        return cls(
            1e-3 * 1e3 ** u[0],  # 0.001 to 1
            3.0 * 30 ** u[1],  # 3 to 90; `data.Tikhonov` has 10
            2.0 * 15 ** u[2],  # 2 to 30; `data.Heat` has 10
            0.3 + 0.7 * u[3],
            0.5 + 0.45 * u[4],
        )


def filter_matrix(
    key: Key, weights: Adjacency, mask: OnNodes, kind: Array, normalised: Array
) -> Matrix:
    """Return F for a graph.

    Parameters
    ----------
    key : JAX key
        For the strengths of the filter, and the signs and variances of structural equations.
    weights : array, shape (N, N)
        Weights of edges; 0 where there is none.
    mask : array, shape (N,)
        1 for nodes, 0 for rows that fill up the array; there F is 0.
    kind : 0-d array of int
        The position of the filter in `FILTERS`.
    normalised : 0-d array
        1 for the Laplacian I - D^-1/2 W D^-1/2, 0 for D - W.

    Returns
    -------
    array, shape (N, N)
    """
    strengths, equations = jax.random.split(key)
    s = Strengths.random(strengths)
    itself, beyond = jnp.diag(mask), jnp.diag(1 - mask)
    degrees = weights.sum(0)
    root = jnp.where(degrees > 0, jnp.sqrt(degrees), 1.0)
    adjacency = weights / (root[:, None] * root)  # S
    plain, walk = jnp.diag(degrees) - weights, jnp.diag(mask * (degrees > 0)) - adjacency
    laplacian = jnp.where(normalised > 0, walk, plain)
    laplacian = laplacian / _positive(_largest(laplacian))
    null = _null_space(weights, mask, jnp.where(normalised > 0, root, 1.0))

    factored = jnp.select(
        [kind == FILTERS.index(name) for name in ("killed", "tikhonov", "autoregressive")],
        [
            laplacian + s.kappa * itself,
            itself + s.weight * laplacian,
            itself - s.rho**2 * (adjacency @ adjacency),
        ],
        laplacian + null,
    )
    r = jnp.linalg.cholesky(factored + beyond)
    inverse_root = solve_triangular(r, jnp.eye(len(mask)), lower=True).T  # R^-T
    inverse = inverse_root @ inverse_root.T
    seen = itself - null
    each = {
        "inverse root": seen @ inverse_root,
        "inverse": seen @ inverse,
        "killed": inverse_root,
        "tikhonov": inverse,
        "heat": _heat(s.t * laplacian, itself),
        "polynomial": _cubed(itself + s.alpha * adjacency),
        "autoregressive": inverse_root,
        "structural": _structural(equations, weights),
    }
    chosen = jnp.select([kind == k for k in range(len(FILTERS))], [each[n] for n in FILTERS])
    return chosen * mask[:, None] * mask


def _largest(matrix: Matrix) -> Scalar:
    """Return the largest eigenvalue of a positive semidefinite matrix, or a little more."""
    square = matrix @ matrix
    return jnp.sqrt(jnp.sqrt(jnp.sqrt(((square @ square) ** 2).sum())))


def _null_space(weights: Adjacency, mask: OnNodes, root: OnNodes) -> Matrix:
    """Return Pi: for each component, the projection on the vector with entries `root` in it."""
    joined = reach((weights > 0).astype(jnp.float32), mask)
    return joined * root[:, None] * root / _positive(joined @ root**2)


def _heat(exponent: Matrix, itself: Matrix) -> Matrix:
    """Return exp(-exponent), by a Taylor polynomial of a fraction and repeated squares."""
    x = exponent / 2**HALVINGS
    power = itself - x @ (itself - x @ (itself / 2 - x @ (itself / 6 - x / 24)))
    for _ in range(HALVINGS):
        power = power @ power
    return power


def _cubed(matrix: Matrix) -> Matrix:
    return matrix @ matrix @ matrix


def _structural(key: Key, weights: Adjacency) -> Matrix:
    """Return (I - B)^-1 D: linear structural equations on the graph, acyclic in a random order.

    Effects have random signs, and lie between 0.3 and 1 times a strength of the whole graph, over
    the root of the number of causes, so that variances stay in bounds.
    """
    order, signs, sizes, strength, noise = jax.random.split(key, 5)
    n = len(weights)
    position = jax.random.uniform(order, (n,))
    causes = (weights > 0) & (position[:, None] > position)  # row j: the nodes i with i -> j
    size = jax.random.uniform(sizes, (n, n), minval=0.3, maxval=1.0)
    share_negative = 0.5 * jax.random.bernoulli(strength)  # half of the graphs have no repression
    sign = jnp.where(jax.random.uniform(signs, (n, n)) < share_negative, -1.0, 1.0)
    total = jax.random.uniform(strength, minval=0.7, maxval=1.6)
    b = causes * sign * size * total * lax.rsqrt(jnp.maximum(causes.sum(1), 1.0))[:, None]
    # B is nilpotent: (I - B)^-1 = (I + B)(I + B^2)(I + B^4)...
    inverse, power = jnp.eye(n) + b, b
    for _ in range(max(n - 1, 1).bit_length() - 1):
        power = power @ power
        inverse = inverse + inverse @ power
    sd = jnp.exp(0.3 * jax.random.normal(noise, (n,)))
    return inverse * sd


def _positive(x: Array) -> Array:
    return jnp.where(x > 0, x, 1.0)
