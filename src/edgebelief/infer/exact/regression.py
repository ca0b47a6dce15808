"""Given the network, a readout that is linear in its parameters is a logistic regression.

    log p(labels | beta) = - sum_r w_r softplus(-r beta)

with one row r per label: the readout's columns at that edge, with the sign of the label. Rows that
are equal are counted, not repeated: most outputs of a network are exactly zero.

The parameters are looked at in the coordinate z in which every prior is standard normal
(`Marginal.from_z`), so that

    f(z) = log p(labels | beta(z)) - |z|^2/2

is the log posterior given the network, up to a constant, and f(z) <= -|z|^2/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from ..priors import Marginal

# Rows and points that are worked on at a time: the block stays in the processor's cache.
ROWS, POINTS = 256, 512
# Of many rows so many at each end stay as they are, the rest goes into so many bins; fewer of both
# for a first look at where the modes are.
ENDS, BINS = 384, 512
FEW_ENDS, FEW_BINS = 32, 96
# Up to so many values of the last column each have bins of their own.
KINDS = 64
# Of rows with many columns so many for each column are enough for a first look.
ROWS_EACH = 12
# Up to so many columns a loop over them is faster than a matrix product.
FEW = 4
# A label with p(1 - p) below this bends nothing.
CERTAIN = 1e-8
# A mode of many is found when a step gains less: around it are draws that get weights anyway.
NEAR = 1e-3


class Labels(NamedTuple):
    """Labels as weighted signed rows."""

    rows: Float[np.ndarray, "rows params"]
    weights: Float[np.ndarray, " rows"]

    @classmethod
    def collapse(
        cls,
        columns: Float[np.ndarray, "edges params"],
        a: Float[np.ndarray, " edges"],
        weights: Float[np.ndarray, " edges"],
    ) -> Labels:
        """The labels `a` of edges with the given readout columns; equal rows are added up.

        Equal to the lowest row, that is: where the network is zero.
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
        """Fewer rows with next to the same likelihood, where rows differ in one column only, or in
        the last too, which has few values: one for each size of graphs.

        Of each label the rows at either end, which decide where a boundary may lie, stay as they
        are; the rest is put in bins, and each bin is two rows with its count, mean and spread. The
        error is of fourth order in the width of a bin: see the test.
        """
        if len(self.rows) <= 4 * (ends + bins):
            return self
        size = np.abs(self.rows)
        varying = np.flatnonzero(np.ptp(size, axis=0) > 0)
        if len(varying) == 2 and varying[-1] == size.shape[1] - 1:
            kinds = np.unique(size[:, -1])
            if len(kinds) <= KINDS:
                each = (size[:, -1] == kind for kind in kinds)
                parts = [Labels(self.rows[here], self.weights[here]) for here in each]
                return Labels.join([part.compress(ends, bins) for part in parts])
        if len(varying) != 1:
            return self
        column = int(varying[0])
        fixed = np.delete(self.rows, column, axis=1)
        telling = np.flatnonzero((fixed != 0).all(0))  # a column of zeros has no sign
        sign = np.sign(fixed[:, telling[0]] if telling.size else self.rows[:, column])
        parts = [
            _binned(Labels(self.rows[which], self.weights[which]), column, ends, bins)
            for which in (sign > 0, sign <= 0)
            if which.any()
        ]
        return Labels.join(parts)

    def some(self, n: int) -> Labels:
        """A sample of `n` rows, each counted for those that are left out."""
        if len(self.rows) <= 2 * n:
            return self
        chosen = np.random.default_rng(0).permutation(len(self.rows))[:n]
        factor = self.weights.sum() / self.weights[chosen].sum()
        return Labels(self.rows[chosen], self.weights[chosen] * factor)

    @classmethod
    def join(cls, parts: Sequence[Labels]) -> Labels:
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )

    def log_likelihood(self, beta: Float[np.ndarray, "points params"]) -> np.ndarray:
        """- sum_r w_r softplus(-r beta) at each point.

        softplus(-x) = max(-x, 0) + log(1 + exp(-|x|)); of rows that count once the last terms are
        multiplied, not their logarithms added: one logarithm for 256 rows, and 2^256 is a number.
        """
        total = np.zeros(len(beta))
        single = self.weights == 1
        for start in range(0, len(beta), POINTS):
            here = slice(start, start + POINTS)
            for rows, weights in (
                (self.rows[single], None),
                (self.rows[~single], self.weights[~single]),
            ):
                for first in range(0, len(rows), ROWS):
                    part = slice(first, first + ROWS)
                    x = _product(rows[part], beta[here])
                    low = np.minimum(x, 0)
                    np.abs(x, out=x)
                    np.negative(x, out=x)
                    np.exp(x, out=x)
                    x += 1
                    if weights is None:
                        total[here] += low.sum(0) - np.log(np.multiply.reduce(x, axis=0))
                    else:
                        total[here] += weights[part] @ (low - np.log(x))
        return total


class Mode(NamedTuple):
    """A maximum of f."""

    z: Float[np.ndarray, " params"]
    f: float
    factor: Float[np.ndarray, "params params"]
    """A square root F of the covariance F F' that the curvature suggests, which is at most the
    prior's."""
    log_det: float
    """The logarithm of the determinant of F."""

    @property
    def covariance(self) -> Float[np.ndarray, "params params"]:
        return self.factor @ self.factor.T

    @property
    def log_mass(self) -> float:
        """Laplace's approximation to the integral of likelihood times prior around it."""
        return self.f + self.log_det


class LogisticPosterior(NamedTuple):
    """The posterior of the readout's parameters given the network."""

    labels: Labels
    marginals: tuple[Marginal, ...]
    """Priors of the first parameters."""
    sds: Float[np.ndarray, " others"] = np.zeros(0)
    """Of the others, which have normal priors with mean zero."""

    @property
    def n_params(self) -> int:
        return len(self.marginals) + len(self.sds)

    def from_z(self, z: Float[np.ndarray, "points params"]) -> np.ndarray:
        """beta(z)."""
        own = [m.from_z(z[..., k])[..., None] for k, m in enumerate(self.marginals)]
        return np.concatenate([*own, z[..., len(own) :] * self.sds], -1)

    def log_density(self, z: Float[np.ndarray, "points params"]) -> np.ndarray:
        """f(z)."""
        return self.labels.log_likelihood(self.from_z(z)) - (z**2).sum(-1) / 2

    def derivatives(
        self, z: Float[np.ndarray, " params"]
    ) -> tuple[float, Float[np.ndarray, " params"], Float[np.ndarray, "params params"]]:
        """f, its gradient and its Hessian at one point."""
        rows, weights = self.labels
        slopes = [m.from_z_derivatives(z[k]) for k, m in enumerate(self.marginals)]
        first, second = (np.array([float(s[i]) for s in slopes]) for i in (0, 1))
        first = np.concatenate([first, self.sds])
        second = np.concatenate([second, np.zeros(len(self.sds))])
        beta = self.from_z(z)
        x = _product(rows, beta[None])[:, 0]
        miss = expit(-x)
        value = -(weights * np.logaddexp(0, -x)).sum() - (z**2).sum() / 2
        pull, doubt = (weights * miss) @ rows, weights * miss * (1 - miss)
        if z.size > FEW:
            some = rows[doubt > CERTAIN]
            curve = -(some.T * doubt[doubt > CERTAIN]) @ some
        else:
            curve = -np.einsum("ri,r,rj->ij", rows, doubt, rows)
        hessian = first[:, None] * curve * first + np.diag(pull * second) - np.eye(z.size)
        return value, pull * first - z, hessian

    def climb(self, start: Float[np.ndarray, " params"]) -> Mode:
        """The maximum of f uphill from `start`.

        Damped Newton: the Hessian's eigenvalues are made negative, the step is halved until f
        rises. At a maximum that is not curved everywhere the covariance is at most the prior's.
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
            z = z + step
            rise = new[0] - value
            value, gradient, hessian = new
            if rise < (NEAR if z.size > FEW else 1e-7):
                break
        curvature, axes = np.linalg.eigh(-hessian)
        curvature = np.maximum(curvature, 1.0)
        return Mode(z, value, axes / np.sqrt(curvature), -float(np.log(curvature).sum()) / 2)

    def simplified(self) -> LogisticPosterior:
        """Nearly the same with fewer rows: for a first look at where the modes are."""
        if self.n_params > FEW:
            return self._replace(labels=self.labels.some(ROWS_EACH * self.n_params))
        return self._replace(labels=self.labels.compress(FEW_ENDS, FEW_BINS))

    def starts(self) -> Float[np.ndarray, "starts params"]:
        """Where modes may be: the peaks of f on a grid over the prior, the highest first.

        Of many parameters just the prior's median: f is then as good as concave.
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

    def modes(self, starts: Sequence[np.ndarray]) -> list[Mode]:
        """The maxima of f uphill from `starts`, each once, the one with most mass first."""
        found: list[Mode] = []
        for start in starts:
            mode = self.climb(start)
            apart = (
                (np.abs(mode.z - other.z) > 0.1 * np.sqrt(np.diag(other.covariance))).any()
                for other in found
            )
            if all(apart):
                found.append(mode)
        return sorted(found, key=lambda mode: -mode.log_mass)


def _newton_step(gradient: np.ndarray, hessian: np.ndarray) -> np.ndarray:
    """Uphill: the Hessian's eigenvalues are made negative where they are not."""
    try:
        return cho_solve(cho_factor(-hessian), gradient)
    except np.linalg.LinAlgError:
        curvature, axes = np.linalg.eigh(-hessian)
        return axes @ (axes.T @ gradient / np.maximum(np.abs(curvature), 1e-3))


def _binned(labels: Labels, column: int, n_ends: int, bins: int) -> Labels:
    order = np.argsort(labels.rows[:, column])
    rows, weights = labels.rows[order], labels.weights[order]
    if len(rows) <= 2 * n_ends + bins:
        return labels
    inside = slice(n_ends, len(rows) - n_ends)
    x, w = rows[inside, column], weights[inside]
    edges = np.linspace(x[0], x[-1], bins + 1)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    total = np.bincount(place, w, bins)
    used = total > 0
    mean = np.bincount(place, w * x, bins)[used] / total[used]
    spread = np.bincount(place, w * (x - mean[np.cumsum(used)[place] - 1]) ** 2, bins)[used]
    spread = np.sqrt(spread / total[used])
    pair = np.repeat(rows[:1], 2 * len(mean), axis=0)
    pair[:, column] = np.concatenate([mean - spread, mean + spread])
    ends = np.r_[0:n_ends, len(rows) - n_ends : len(rows)]
    return Labels(
        np.concatenate([rows[ends], pair]),
        np.concatenate([weights[ends], np.tile(total[used] / 2, 2)]),
    )


def _product(rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Rows @ beta.T; of few columns without the overhead, and the threads, of a matrix library."""
    if rows.shape[1] > FEW:
        return rows @ beta.T
    x = np.multiply.outer(rows[:, 0], beta[:, 0])
    for k in range(1, rows.shape[1]):
        x += np.multiply.outer(rows[:, k], beta[:, k])
    return x
