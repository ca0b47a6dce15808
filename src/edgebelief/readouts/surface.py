"""A smooth function of several features together, so that what one says may depend on another.

A Gaussian process with the kernel k(x, y) = exp(-|x - y|^2 / 2 l^2) on standardized features is
approximated by the functions r_k that k(., c) span for some landmarks c among the pairs in the data
(Nystroem's method). The landmarks are those at which the residual variance of the process, given
the landmarks before, is largest: the pivots of the incomplete Cholesky factorization of the
kernel matrix.

    f(x) = sum_k w_k r_k(x),    r(x) = L^-1 (k(x, c_1), ..., k(x, c_m)),    L L' = k(c, c)

With standard normal w, f is the process but for its residual variance. Features are clipped three
standard deviations from their mean, so that no pair is far from all landmarks.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from .curves import AnyArray

# The number of landmarks at most, and the residual variance below which there are no more. With
# twice as many, the log score of held-out pairs was the same within 1 % on the data sets of
# docs/race.md.
LANDMARKS, RESIDUAL = 100, 0.01
# Features beyond this many standard deviations from their mean count as that many.
FAR = 3.0
# The standard deviation of f over the pairs in the data, where its scale is one. A scale is of
# order one by its prior, and a logit of four is a probability of 0.98: so f alone may decide.
SPREAD = 4.0


class Surface(eqx.Module):
    """The functions r_k, in units in which f with standard normal w has standard deviation 4."""

    centre: Float[np.ndarray, " features"]
    rates: Float[np.ndarray, " features"]
    """One over the standard deviations; zero for a feature that is the same for all pairs."""
    landmarks: Float[np.ndarray, "landmarks features"]
    """Standardized."""
    mix: Float[np.ndarray, "landmarks columns"]
    """From kernels at the landmarks to the r_k."""
    means: Float[np.ndarray, " columns"]
    """The means of the r_k over the pairs in the data, which are subtracted."""
    gram: Float[np.ndarray, "columns columns"]
    """Mean products of the r_k over the pairs in the data."""
    names: ClassVar[tuple[str, ...]] = ()
    """The names of levels: none."""

    @property
    def scales(self) -> tuple[int, ...]:
        """The index of the scale that multiplies each column: all have the same."""
        return (0,) * self.mix.shape[1]

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(str(k) for k in range(self.mix.shape[1]))

    @property
    def scale_names(self) -> tuple[str, ...]:
        return ("",)

    @property
    def points(self) -> Float[np.ndarray, "landmarks features"]:
        """Values of the features at which to evaluate it: the landmarks."""
        rates = np.where(self.rates > 0, self.rates, np.inf)
        return self.centre + self.landmarks / rates

    def columns(self, x: Float[AnyArray, "... features"]) -> Float[AnyArray, "... columns"]:
        """Evaluate the r_k."""
        kernel = _kernel(_standardized(x, self.centre, self.rates), self.landmarks)
        return kernel @ self.mix.astype(x.dtype) - self.means.astype(x.dtype)


def surface_of(x: Float[np.ndarray, "pairs features"]) -> Surface | None:
    """Make the basis of a surface for the features `x` of pairs; None if all pairs are alike.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.readouts.surface import surface_of
    >>> x = np.random.default_rng(0).standard_normal((200, 2))
    >>> surface = surface_of(x)
    >>> columns = np.asarray(surface.columns(x))
    >>> round(float((columns**2).mean(0).sum()), 2)
    16.0
    """
    centre, spread = x.mean(0), x.std(0)
    varies = spread > 1e-12 * np.maximum(np.abs(centre), 1e-300)
    if not varies.any():
        return None
    rates = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
    standard = np.asarray(_standardized(x, centre, rates))
    pivots = _pivots(standard)
    landmarks = standard[pivots]
    lower = np.linalg.cholesky(np.asarray(_kernel(landmarks, landmarks)))
    inverse = solve_triangular(lower, np.eye(len(pivots)), lower=True).T
    columns = np.asarray(_kernel(standard, landmarks)) @ inverse
    means = columns.mean(0)
    centred = columns - means
    factor = SPREAD / np.sqrt((centred**2).mean(0).sum())
    gram = factor**2 * centred.T @ centred / len(x)
    return Surface(centre, rates, landmarks, factor * inverse, factor * means, gram)


def _standardized(
    x: Float[AnyArray, "... features"],
    centre: Float[np.ndarray, " features"],
    rates: Float[np.ndarray, " features"],
) -> Float[AnyArray, "... features"]:
    return ((x - centre.astype(x.dtype)) * rates.astype(x.dtype)).clip(-FAR, FAR)


def _kernel(
    x: Float[AnyArray, "... features"], landmarks: Float[np.ndarray, "landmarks features"]
) -> Float[AnyArray, "... landmarks"]:
    """Return exp(-|x - c|^2 / 2d): the length l is the root of the number d of features.

    So two pairs that differ by one standard deviation in each feature have a kernel of exp(-1/2).
    """
    c = landmarks.astype(x.dtype)
    squares = (x**2).sum(-1)[..., None] + (c**2).sum(-1) - 2 * (x @ c.T)
    xp = np if isinstance(x, np.ndarray) else jnp
    return xp.exp(-squares.clip(0) / (2 * c.shape[1]))


def _pivots(x: Float[np.ndarray, "pairs features"]) -> list[int]:
    """Choose landmarks greedily: each has the largest residual variance given those before."""
    residual, factors = np.ones(len(x)), np.zeros((len(x), 0))
    pivots: list[int] = []
    while len(pivots) < min(LANDMARKS, len(x)) and residual.max() > RESIDUAL:
        pivot = int(residual.argmax())
        row = _kernel(x, x[pivot : pivot + 1])[:, 0] - factors @ factors[pivot]
        column = row / np.sqrt(residual[pivot])
        factors = np.column_stack([factors, column])
        residual = np.maximum(residual - column**2, 0.0)
        pivots.append(pivot)
    return pivots
