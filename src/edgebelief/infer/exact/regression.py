"""Given the network, a readout that is linear in its parameters is a logistic regression.

    log p(labels | beta) = - sum_r w_r softplus(-r beta)

with one row r per label: the readout's columns at that edge, with the sign of the label. Equal rows
are stored once with their count as weight, since most outputs of a network are exactly zero.

The parameters are expressed in the coordinate z in which every prior is standard normal
(`Marginal.from_z`), so that

    f(z) = log p(labels | beta(z)) - |z|^2/2

is the log posterior given the network, up to a constant, and f(z) <= -|z|^2/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from ..priors import Marginal

# Rows and points that are computed at a time, so that the block stays in the processor's cache.
ROWS, POINTS = 256, 512
# When many rows are compressed, this many at each end stay as they are, and the rest goes into this
# many bins; fewer of both for a first search for the modes.
ENDS, BINS = 384, 512
FEW_ENDS, FEW_BINS = 32, 96
# Up to this many distinct values of the last column each have their own bins.
KINDS = 64
# If there are many columns, this many sampled rows per column are enough for a first search.
ROWS_EACH = 12
# Up to this many columns, a loop over them is faster than a matrix product.
FEW = 4
# A label with p(1 - p) below this adds nothing to the curvature.
CERTAIN = 1e-8
# With many parameters a climb ends when a step gains less: draws around the mode get importance
# weights anyway.
NEAR = 1e-3


Vector = Float[np.ndarray, " params"]
Matrix = Float[np.ndarray, "params params"]
# Parameters at some points, and a number for each of them.
Points = Float[np.ndarray, "points params"]
PerPoint = Float[np.ndarray, " points"]


class Labels(NamedTuple):
    """Labels as signed rows of the design matrix, with weights."""

    rows: Float[np.ndarray, "rows params"]
    weights: Float[np.ndarray, " rows"]

    @classmethod
    def of(
        cls,
        columns: Float[np.ndarray, "edges params"],
        a: Float[np.ndarray, " edges"],
        weights: Float[np.ndarray, " edges"],
    ) -> Labels:
        """Make a row of each label `a` of edges with the given readout columns."""
        used = weights > 0
        return cls(columns[used] * np.where(a[used] == 1, 1.0, -1.0)[:, None], weights[used])

    @classmethod
    def collapse(
        cls,
        columns: Float[np.ndarray, "edges params"],
        a: Float[np.ndarray, " edges"],
        weights: Float[np.ndarray, " edges"],
    ) -> Labels:
        """Make rows of the labels `a` of edges with the given readout columns.

        Rows that equal the lowest one, where the network is zero, are stored once for each label.
        """
        columns, a, weights = (x[weights > 0] for x in (columns, a, weights))
        if not len(a):
            return cls(columns, weights)
        common = columns[np.argmin(columns[:, 0])]
        same = (columns == common).all(1)
        ones, zeros = (weights[same & (a == label)].sum() for label in (1, 0))
        sign = np.where(a == 1, 1.0, -1.0)[~same, None]
        rows = np.concatenate([sign * columns[~same], [common, -common]])
        counts = np.concatenate([weights[~same], [ones, zeros]])
        return cls(rows[counts > 0], counts[counts > 0])

    def compress(self, ends: int = ENDS, bins: int = BINS) -> Labels:
        """Return fewer rows with nearly the same likelihood.

        Applies to rows that differ in one column only; else to groups of rows that do: those with
        zeros in the same columns (on one side of the threshold of a network, say), and those with
        the same value of the last column if that has few (one for each size of graphs). Other rows
        are returned as they are. For each label, the rows at either end, which decide where a
        boundary may lie, are kept. The others are binned, and each bin becomes two rows with its
        count, mean and spread. The error is of fourth order in the width of a bin: see the test.
        """
        if len(self.rows) <= 4 * (ends + bins):
            return self
        size = np.abs(self.rows)
        varying = np.flatnonzero(np.ptp(size, axis=0) > 0)
        if len(varying) != 1:
            groups = _groups(size, varying)
            parts = [Labels(self.rows[mask], self.weights[mask]) for mask in groups]
            return Labels.join([part.compress(ends, bins) for part in parts]) if parts else self
        column = int(varying[0])
        fixed = np.delete(self.rows, column, axis=1)
        signed = np.flatnonzero((fixed != 0).all(0))  # a column of zeros has no sign
        sign = np.sign(fixed[:, signed[0]] if signed.size else self.rows[:, column])
        masks = (mask for mask in (sign > 0, sign <= 0) if mask.any())
        parts = [Labels(self.rows[mask], self.weights[mask]) for mask in masks]
        return Labels.join([_binned(part, column, ends, bins) for part in parts])

    def sample(self, n: int) -> Labels:
        """Return a random sample of `n` rows, with weights scaled up to the same total."""
        if len(self.rows) <= 2 * n:
            return self
        chosen = np.random.default_rng(0).permutation(len(self.rows))[:n]
        factor = self.weights.sum() / self.weights[chosen].sum()
        return Labels(self.rows[chosen], self.weights[chosen] * factor)

    @classmethod
    def join(cls, parts: Sequence[Labels]) -> Labels:
        """Concatenate the rows of several sets of labels."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def log_likelihood(self, beta: Points) -> PerPoint:
        """Return - sum_r w_r softplus(-r beta) at each point.

        softplus(-x) = max(-x, 0) + log(1 + exp(-|x|)). For rows of weight 1, the terms
        1 + exp(-|x|) are multiplied before the logarithm is taken: one logarithm for 256 rows,
        whose product is at most 2^256, which does not overflow.
        """
        total = np.zeros(len(beta))
        single = self.weights == 1
        for start in range(0, len(beta), POINTS):
            points = slice(start, start + POINTS)
            others = self.rows[~single], self.weights[~single]
            for rows, weights in ((self.rows[single], None), others):
                for first in range(0, len(rows), ROWS):
                    part = slice(first, first + ROWS)
                    x = _product(rows[part], beta[points])
                    low = np.minimum(x, 0)
                    np.abs(x, out=x)
                    np.negative(x, out=x)
                    np.exp(x, out=x)
                    x += 1
                    if weights is None:
                        total[points] += low.sum(0) - np.log(np.multiply.reduce(x, axis=0))
                    else:
                        total[points] += weights[part] @ (low - np.log(x))
        return total


class Mode(NamedTuple):
    """A maximum of f."""

    z: Vector
    f: float
    factor: Matrix
    """A square root F of the covariance F F' that the curvature implies, which is at most the
    prior's."""
    log_det: float
    """The logarithm of the determinant of F."""

    @property
    def covariance(self) -> Matrix:
        return self.factor @ self.factor.T

    @property
    def log_mass(self) -> float:
        """Laplace's approximation to the log integral of likelihood times prior around the mode."""
        return self.f + self.log_det


class LogisticPosterior(NamedTuple):
    """The posterior of the readout's parameters given the network."""

    labels: Labels
    marginals: tuple[Marginal, ...]
    """The priors of the first parameters."""
    sds: Float[np.ndarray, " others"] = np.zeros(0)
    """The standard deviations of the other parameters, whose priors are normal with mean zero."""

    @property
    def n_params(self) -> int:
        return len(self.marginals) + len(self.sds)

    def from_z(self, z: Float[np.ndarray, "*points params"]) -> Float[np.ndarray, "*points params"]:
        """Return the parameters beta(z)."""
        first = [m.from_z(z[..., k])[..., None] for k, m in enumerate(self.marginals)]
        return np.concatenate([*first, z[..., len(first) :] * self.sds], -1)

    def log_density(self, z: Points) -> PerPoint:
        """Return f(z)."""
        return self.labels.log_likelihood(self.from_z(z)) - (z**2).sum(-1) / 2

    def derivatives(self, z: Vector) -> tuple[float, Vector, Matrix]:
        """Return f, its gradient and its Hessian at one point."""
        rows, weights = self.labels
        slopes = [m.from_z_derivatives(z[k]) for k, m in enumerate(self.marginals)]
        first, second = (np.array([float(s[i]) for s in slopes]) for i in (0, 1))
        first = np.concatenate([first, self.sds])
        second = np.concatenate([second, np.zeros(len(self.sds))])
        beta = self.from_z(z)
        x = _product(rows, beta[None])[:, 0]
        miss = expit(-x)
        value = -(weights * np.logaddexp(0, -x)).sum() - (z**2).sum() / 2
        score, variance = (weights * miss) @ rows, weights * miss * (1 - miss)
        if z.size > FEW:
            uncertain = rows[variance > CERTAIN]
            by_beta = -(uncertain.T * variance[variance > CERTAIN]) @ uncertain
        else:
            by_beta = -np.einsum("ri,r,rj->ij", rows, variance, rows)
        hessian = first[:, None] * by_beta * first + np.diag(score * second) - np.eye(z.size)
        return value, score * first - z, hessian

    def climb(self, start: Vector) -> Mode:
        """Find the maximum of f uphill from `start`, by damped Newton steps.

        The Hessian's eigenvalues are made negative, and a step is halved until f rises. In
        directions in which the maximum is flat the variance is that of the prior.
        """
        z = np.array(start, float)
        value, gradient, hessian = self.derivatives(z)
        for _ in range(100):
            step = _newton_step(gradient, hessian)
            step *= min(1.0, 3.0 / max(np.abs(step).max(), 1e-300))  # no further than 3 prior sd
            for _ in range(40):
                new = self.derivatives(z + step)
                if new[0] >= value:
                    break
                step /= 2
            else:
                break
            z, rise = z + step, new[0] - value
            value, gradient, hessian = new
            if rise < (NEAR if z.size > FEW else 1e-7):
                break
        curvature, axes = np.linalg.eigh(-hessian)
        curvature = np.maximum(curvature, 1.0)
        return Mode(z, value, axes / np.sqrt(curvature), -float(np.log(curvature).sum()) / 2)

    def conditional_mode(self, start: Vector) -> tuple[float, float]:
        """Find the mode of the last coordinate given the others, and its sd there.

        By Newton steps from `start`, halved until f rises, as in `climb`.
        """
        z = np.array(start, float)
        value, gradient, hessian = self.derivatives(z)
        for _ in range(50):
            step = gradient[-1] / max(abs(hessian[-1, -1]), 1.0)
            step = float(np.clip(step, -3, 3))
            for _ in range(40):
                moved = np.append(z[:-1], z[-1] + step)
                new = self.derivatives(moved)
                if new[0] >= value:
                    break
                step /= 2
            else:
                break
            z, rise = moved, new[0] - value
            value, gradient, hessian = new
            if rise < 1e-6:
                break
        return float(z[-1]), float(1 / np.sqrt(max(-hessian[-1, -1], 1.0)))

    def simplified(self) -> LogisticPosterior:
        """Return nearly the same posterior with fewer rows, for a first search for the modes."""
        if self.n_params > FEW:
            return self._replace(labels=self.labels.sample(ROWS_EACH * self.n_params))
        return self._replace(labels=self.labels.compress(FEW_ENDS, FEW_BINS))

    def starts(self) -> Points:
        """Return where modes may be: the peaks of f on a grid over the prior, the highest first.

        With many parameters it is the prior's median alone, since f is then nearly concave.
        """
        n_params = self.n_params
        if n_params > FEW:
            return np.zeros((1, n_params))
        line = np.linspace(-6, 6, 9)
        mesh = np.stack(np.meshgrid(*[line] * n_params, indexing="ij"), -1)
        f = self.log_density(mesh.reshape(-1, n_params)).reshape(mesh.shape[:-1])
        padded = np.pad(f, 1, constant_values=-np.inf)
        around = np.lib.stride_tricks.sliding_window_view(padded, (3,) * n_params)
        peaks = f >= around.max(axis=tuple(range(n_params, 2 * n_params)))
        return mesh[peaks][np.argsort(-f[peaks])]

    def modes(self, starts: Sequence[Vector]) -> list[Mode]:
        """Find the maxima of f uphill from `starts`, each once, the one with most mass first."""
        distinct: list[Mode] = []
        for start in starts:
            mode = self.climb(start)
            apart = (
                (np.abs(mode.z - other.z) > 0.1 * np.sqrt(np.diag(other.covariance))).any()
                for other in distinct
            )
            if all(apart):
                distinct.append(mode)
        return sorted(distinct, key=lambda mode: -mode.log_mass)


def _newton_step(gradient: Vector, hessian: Matrix) -> Vector:
    """Return a Newton step uphill; the Hessian's eigenvalues are made negative if they are not."""
    try:
        return cho_solve(cho_factor(-hessian), gradient)
    except np.linalg.LinAlgError:
        curvature, axes = np.linalg.eigh(-hessian)
        return axes @ (axes.T @ gradient / np.maximum(np.abs(curvature), 1e-3))


def _groups(
    size: Float[np.ndarray, "rows params"], varying: Int[np.ndarray, " varying"]
) -> list[Bool[np.ndarray, " rows"]]:
    """Return groups of rows in which fewer columns vary; none if there is no such grouping."""
    if len(varying) > FEW:
        return []
    zeros = (size[:, varying] == 0) @ 2 ** np.arange(len(varying))
    kinds = np.unique(zeros)
    if len(kinds) > 1:
        return [zeros == kind for kind in kinds]
    if len(varying) == 2 and varying[-1] == size.shape[1] - 1:
        kinds = np.unique(size[:, -1])
        if len(kinds) <= KINDS:
            return [size[:, -1] == kind for kind in kinds]
    return []


def _binned(labels: Labels, column: int, n_ends: int, bins: int) -> Labels:
    """Bin rows that differ in one column, except `n_ends` rows at either end."""
    order = np.argsort(labels.rows[:, column])
    rows, weights = labels.rows[order], labels.weights[order]
    if len(rows) <= 2 * n_ends + bins:
        return labels
    inside = slice(n_ends, len(rows) - n_ends)
    x, w = rows[inside, column], weights[inside]
    edges = np.linspace(x[0], x[-1], bins + 1)
    index = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    total = np.bincount(index, w, bins)
    used = total > 0
    mean = np.bincount(index, w * x, bins)[used] / total[used]
    spread = np.bincount(index, w * (x - mean[np.cumsum(used)[index] - 1]) ** 2, bins)[used]
    spread = np.sqrt(spread / total[used])
    pair = np.repeat(rows[:1], 2 * len(mean), axis=0)
    pair[:, column] = np.concatenate([mean - spread, mean + spread])
    ends = np.r_[0:n_ends, len(rows) - n_ends : len(rows)]
    return Labels(
        np.concatenate([rows[ends], pair]),
        np.concatenate([weights[ends], np.tile(total[used] / 2, 2)]),
    )


def _product(
    rows: Float[np.ndarray, "rows params"], beta: Points
) -> Float[np.ndarray, "rows points"]:
    """Return rows @ beta.T; with few columns, without the overhead and threads of a library."""
    if rows.shape[1] > FEW:
        return rows @ beta.T
    x = np.multiply.outer(rows[:, 0], beta[:, 0])
    for k in range(1, rows.shape[1]):
        x += np.multiply.outer(rows[:, k], beta[:, k])
    return x
