"""Given the network, the weights of edges are a linear regression:

    y = log w = level + slope f + Normal(0, s)

Level and slope have normal priors. Let t be the two in the coordinates in which these are standard
normal, T the columns (1, f) in their units, and r the residuals of y at the priors' means. Then

    t | s ~ Normal(M^-1 T'r, s^2 M^-1),    M = T'T + s^2 I,

and the evidence given s has a closed form too. s is integrated out on a grid, in the coordinate u
in which its prior is standard normal. Given the network, all of this is independent of the labels'
regression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from ...errors import DoesNotApply
from ..likelihoods import WeightParams
from ..model import EdgeModel
from ..priors import Fixed, Marginal, Normal
from .theta import QUASI, Density, Interpolant, PerDraw, ThetaPosterior, density_of, summary_of

# The density of u is searched for between -REACH and REACH, and integrated with POINTS points over
# the range in which it is not below exp(-DEPTH) of its maximum.
REACH, POINTS, DEPTH = 40.0, 201, 40.0
# The quantiles of u that are kept, as those of a standard normal; beyond is one draw in 10^9.
SCORES = np.linspace(-6, 6, 121)
# An eigenvalue of T'T below this share of the largest counts as zero: the columns are collinear.
SAME = 1e-13
# Numbers whose squares neither underflow nor overflow.
TINY_HUGE = 1e-150, 1e150

# T'T and T'r, at one value of the network's parameter or at many.
Grams = Float[np.ndarray, "*values 2 2"]
Pulls = Float[np.ndarray, "*values 2"]


class WeightPrior(NamedTuple):
    """The priors of the parameters of edge weights."""

    level: Marginal
    slope: Marginal
    weight_sd: Marginal

    @classmethod
    def of(cls, model: EdgeModel) -> WeightPrior:
        """Return the priors of a model; refuse those that have no closed form."""
        prior = cls(*(model.prior[name] for name in cls._fields))
        for name, marginal in (("level", prior.level), ("slope", prior.slope)):
            if not isinstance(marginal, Normal | Fixed):
                raise DoesNotApply(
                    f"Exact needs a normal prior of {name}, or a fixed value; it is {marginal}. "
                    f"Use NUTS."
                )
        sd = prior.weight_sd
        if not (sd.positive or (sd.fixed and np.all(np.asarray(sd.median) > 0))):
            raise DoesNotApply(f"weight_sd must be positive; its prior is {sd}.")
        return prior

    @property
    def centre(self) -> Float[np.ndarray, " 2"]:
        """The prior means of level and slope."""
        return np.array([self.level.median, self.slope.median])

    @property
    def spread(self) -> Float[np.ndarray, " 2"]:
        """The prior standard deviations of level and slope; zero for one that is fixed."""
        return np.array([getattr(m, "sd", 0.0) for m in (self.level, self.slope)])


@dataclass(frozen=True)
class WeightPosterior:
    """The posterior of level, slope and weight_sd at one value of the network's parameter."""

    prior: WeightPrior
    gram: Float[np.ndarray, "2 2"]
    """T'T."""
    pull: Float[np.ndarray, " 2"]
    """T'r."""
    log_evidence: float
    quantiles: Float[np.ndarray, " scores"]
    """The quantiles of u that correspond to `SCORES`."""
    moments: Float[np.ndarray, "2 3"]
    """E[x] and E[x^2] of level, slope and weight_sd."""

    @classmethod
    def of(
        cls,
        prior: WeightPrior,
        f: Float[np.ndarray, " edges"],
        y: Float[np.ndarray, " edges"],
        counts: Float[np.ndarray, " edges"],
    ) -> WeightPosterior:
        """Compute the posterior from edges with regressors `f` and log weights `y`.

        `counts` says how often each edge counts.
        """
        columns = np.stack([np.ones_like(f), f], 1)
        scaled, residuals = columns * prior.spread, y - columns @ prior.centre
        gram, pull = (scaled.T * counts) @ scaled, (scaled.T * counts) @ residuals
        size, axes = np.linalg.eigh(gram)
        positive = size > SAME * size.max()
        along = np.where(positive, axes.T @ pull, 0.0)
        size = np.where(positive, size, 0.0)
        best = np.divide(along, size, out=np.zeros(2), where=positive)
        # Squares that no line explains: from the rows themselves, for the sums would cancel.
        unexplained = counts @ (residuals - scaled @ axes @ best) ** 2
        total = counts.sum()

        def log_density(u: Float[np.ndarray, " u"]) -> Float[np.ndarray, " u"]:
            s = np.clip(prior.weight_sd.from_z(u), *TINY_HUGE)[:, None]
            shrunk = (along * best / (size + s**2)).sum(1)  # the part of the fit lost to the prior
            occam = np.log1p(size / s**2).sum(1)
            fit = -total * np.log(s[:, 0]) - unexplained / (2 * s[:, 0] ** 2) - (shrunk + occam) / 2
            return fit - u**2 / 2 - np.log(2 * np.pi) / 2

        u, log_mass = _grid_where_it_matters(prior.weight_sd, log_density)
        share = np.exp(log_mass - log_mass.max())
        constant = -counts @ y - total * np.log(2 * np.pi) / 2
        evidence = float(constant + log_mass.max() + np.log(share.sum()))
        share /= share.sum()
        quantiles = np.interp(ndtr(SCORES), np.cumsum(share) - share / 2, u)
        s = prior.weight_sd.from_z(u)
        t, root = _given_sd(gram, pull, s)
        mean = prior.centre + prior.spread * t
        square = mean**2 + prior.spread**2 * (root**2).sum(-1)
        moments = np.array([[*(share @ mean), share @ s], [*(share @ square), share @ s**2]])
        return cls(prior, gram, pull, evidence, quantiles, moments)

    def draws(self, rng: np.random.Generator, n: int) -> WeightParams:
        """Draw `n` independent samples."""
        scores = rng.standard_normal((n, 3))
        u = np.interp(scores[:, 0], SCORES, self.quantiles)
        return drawn(self.prior, self.gram, self.pull, u, scores[:, 1:])


def _grid_where_it_matters(
    marginal: Marginal, log_density: Callable[[np.ndarray], np.ndarray]
) -> tuple[Float[np.ndarray, " u"], Float[np.ndarray, " u"]]:
    """Return a uniform grid over the range in which the mass is, and the log mass at each point."""
    if marginal.fixed:
        zero = np.zeros(1)
        # log_density has the normal prior of u as a factor, which a fixed value has not.
        return zero, log_density(zero) + np.log(2 * np.pi) / 2
    low, high = -REACH, REACH
    while True:
        u = np.linspace(low, high, POINTS)
        values = log_density(u)
        near = np.flatnonzero(values > values.max() - DEPTH)
        if near[-1] - near[0] >= POINTS // 2:
            return u, values + np.log(u[1] - u[0])
        low, high = u[max(near[0] - 1, 0)], u[min(near[-1] + 1, POINTS - 1)]


def _given_sd(
    gram: Grams, pull: Pulls, s: Float[np.ndarray, " sds"]
) -> tuple[Float[np.ndarray, "sds 2"], Float[np.ndarray, "sds 2 2"]]:
    """Return mean and a root of the covariance of t given each s, at one value of theta or many."""
    size, axes = np.linalg.eigh(gram)
    size = np.maximum(size, 0.0) + s[:, None] ** 2
    mean = np.einsum("...ij,...j->...i", axes, np.einsum("...ji,...j->...i", axes, pull) / size)
    return mean, axes * (s[:, None] / np.sqrt(size))[:, None, :]


def drawn(
    prior: WeightPrior, gram: Grams, pull: Pulls, u: PerDraw, unit: Float[np.ndarray, "draws 2"]
) -> WeightParams:
    """Turn standard normal numbers into level and slope, given the coordinate u of weight_sd."""
    s = np.broadcast_to(prior.weight_sd.from_z(u), u.shape)
    mean, root = _given_sd(gram, pull, s)
    t = mean + np.einsum("nij,nj->ni", root, unit)
    level, slope = (prior.centre + prior.spread * t).T
    return WeightParams(level, slope, s)


@dataclass(frozen=True)
class WeightedThetaPosterior:
    """A `ThetaPosterior`, and the posterior of the parameters of weights along theta."""

    presence: ThetaPosterior
    prior: WeightPrior
    mean: Float[np.ndarray, " 3"]
    sd: Float[np.ndarray, " 3"]
    gram: Float[np.ndarray, "points 2 2"]
    """As in `WeightPosterior`, at each quadrature point of `presence`."""
    pull: Float[np.ndarray, "points 2"]
    quantiles: Float[np.ndarray, "points scores"]

    n_uniforms: ClassVar[int] = ThetaPosterior.n_uniforms + 3

    @classmethod
    def of(cls, presence: ThetaPosterior, interpolant: Interpolant) -> WeightedThetaPosterior:
        """Evaluate an interpolant whose points have posteriors of weights."""
        posteriors = [point.weights for point in interpolant.points]
        moments = np.einsum("k,kij->ij", interpolant.weights(), [w.moments for w in posteriors])
        inside = np.isin(interpolant.z, presence.nodes)
        used = [w for w, kept in zip(posteriors, inside, strict=True) if kept]
        return cls(
            presence,
            posteriors[0].prior,
            moments[0],
            np.sqrt(np.maximum(moments[1] - moments[0] ** 2, 0.0)),
            *(np.stack([getattr(w, n) for w in used]) for n in ("gram", "pull", "quantiles")),
        )

    def draws(self, uniforms: Float[np.ndarray, "draws 8"]) -> dict[str, PerDraw]:
        """Map uniform points of the unit cube to parameters: those of logits, then of weights.

        What the latter depend on is interpolated between the quadrature points.
        """
        of_logits = uniforms[:, : ThetaPosterior.n_uniforms]
        left, fraction = self.presence.bracket(self.presence.quantile(of_logits[:, 0]))
        scores = ndtri(np.clip(uniforms[:, ThetaPosterior.n_uniforms :], 1e-9, 1 - 1e-9))
        below = np.clip(np.searchsorted(SCORES, scores[:, 0]) - 1, 0, len(SCORES) - 2)
        part = (scores[:, 0] - SCORES[below]) / (SCORES[1] - SCORES[0])

        def between(x: np.ndarray, y: np.ndarray, share: PerDraw) -> np.ndarray:
            share = share.reshape(-1, *[1] * (x.ndim - 1))
            return (1 - share) * x + share * y

        u_left, u_right = (
            between(self.quantiles[k, below], self.quantiles[k, below + 1], part)
            for k in (left, left + 1)
        )
        gram, pull = (between(x[left], x[left + 1], fraction) for x in (self.gram, self.pull))
        u = between(u_left, u_right, fraction)
        of_weights = drawn(self.prior, gram, pull, u, scores[:, 1:])
        return self.presence.draws(of_logits) | of_weights._asdict()

    @cached_property
    def _quasi(self) -> dict[str, PerDraw]:
        return self.draws(qmc.Sobol(self.n_uniforms, seed=0).random(QUASI))

    def summary(self) -> pd.DataFrame:
        """Return a row per parameter: mean, sd by quadrature; quantiles by quasi-random draws."""
        of_weights = summary_of(self.prior._fields, self.mean, self.sd, self._quasi)
        return pd.concat([self.presence.summary(), of_weights])

    def density(self, name: str) -> Density:
        """Return points, and the marginal density of a parameter at them."""
        if name in self.presence.names:
            return self.presence.density(name)
        return density_of(self._quasi[name])
