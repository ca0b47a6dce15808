"""Given the network, the weights of edges are a linear regression:

    y = log w = level + slope f + Normal(0, s)

With normal priors of level and slope, t the two in the coordinates in which these are standard
normal, T the columns (1, f) in their units and r what is left of y at the priors' means,

    t | s ~ Normal(M^-1 T'r, s^2 M^-1),    M = T'T + s^2 I,

and the evidence given s has a closed form too. s is added up in the coordinate u in which its prior
is standard normal. All of it is independent of the labels' regression, given the network.
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
from .theta import QUANTILES, QUASI, Interpolant, ThetaPosterior, density_of

# s is looked for so far in its prior, and added up at so many points where its density is not below
# exp(-DEPTH) of the largest.
REACH, POINTS, DEPTH = 40.0, 201, 40.0
# Its quantiles are kept at these places of a standard normal; beyond is one draw in 10^9.
SCORES = np.linspace(-6, 6, 121)
# A column that is the other one but for this share of it is not told from it.
SAME = 1e-13
# Numbers with squares.
TINY_HUGE = 1e-150, 1e150


class WeightPrior(NamedTuple):
    """Of the parameters of weights."""

    level: Marginal
    slope: Marginal
    weight_sd: Marginal

    @classmethod
    def of(cls, model: EdgeModel) -> WeightPrior:
        """Of a model, if it can be added up."""
        prior = cls(*(model.prior[name] for name in cls._fields))
        for name in ("level", "slope"):
            if not isinstance(getattr(prior, name), Normal | Fixed):
                raise DoesNotApply(
                    f"Exact needs a normal prior of {name}, or a fixed value; it is "
                    f"{getattr(prior, name)}. Use NUTS."
                )
        sd = prior.weight_sd
        if not (sd.positive or (sd.fixed and np.all(np.asarray(sd.median) > 0))):
            raise DoesNotApply(f"weight_sd must be positive; its prior is {sd}.")
        return prior

    @property
    def centre(self) -> Float[np.ndarray, " 2"]:
        return np.array([self.level.median, self.slope.median])

    @property
    def spread(self) -> Float[np.ndarray, " 2"]:
        """Zero of what is fixed."""
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
    """Of u, at `SCORES`."""
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
        """Of edges with log weights `y`, each counted so often."""
        columns = np.stack([np.ones_like(f), f], 1)
        scaled, rest = columns * prior.spread, y - columns @ prior.centre
        gram, pull = (scaled.T * counts) @ scaled, (scaled.T * counts) @ rest
        size, axes = np.linalg.eigh(gram)
        told = size > SAME * size.max()
        along = np.where(told, axes.T @ pull, 0.0)
        size = np.where(told, size, 0.0)
        best = np.divide(along, size, out=np.zeros(2), where=told)
        # Squares that no line explains: from the rows themselves, for the sums would cancel.
        left = counts @ (rest - scaled @ axes @ best) ** 2
        total = counts.sum()

        def log_density(u: np.ndarray) -> np.ndarray:
            s = np.clip(prior.weight_sd.from_z(u), *TINY_HUGE)[:, None]
            missed = (along * best / (size + s**2)).sum(1)  # of what the line explains
            occam = np.log1p(size / s**2).sum(1)
            fit = -total * np.log(s[:, 0]) - left / (2 * s[:, 0] ** 2) - (missed + occam) / 2
            return fit - u**2 / 2 - np.log(2 * np.pi) / 2

        u, log_mass = _where_it_matters(prior.weight_sd, log_density)
        share = np.exp(log_mass - log_mass.max())
        constant = -counts @ y - total * np.log(2 * np.pi) / 2
        evidence = float(constant + log_mass.max() + np.log(share.sum()))
        share /= share.sum()
        s = prior.weight_sd.from_z(u)
        middle = np.cumsum(share) - share / 2
        return cls(
            prior,
            gram,
            pull,
            evidence,
            np.interp(ndtr(SCORES), middle, u),
            _moments(prior, gram, pull, s, share),
        )

    def draws(self, rng: np.random.Generator, n: int) -> WeightParams:
        """Independent ones."""
        scores = rng.standard_normal((n, 3))
        u = np.interp(scores[:, 0], SCORES, self.quantiles)
        return drawn(self.prior, self.gram, self.pull, u, scores[:, 1:])


def _where_it_matters(
    marginal: Marginal, log_density: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Points, and the log of the mass around each: ever closer to where the mass is."""
    if marginal.fixed:
        at = np.zeros(1)
        return at, log_density(at) + np.log(2 * np.pi) / 2  # which is of a prior
    low, high = -REACH, REACH
    while True:
        u = np.linspace(low, high, POINTS)
        found = log_density(u)
        near = np.flatnonzero(found > found.max() - DEPTH)
        if near[-1] - near[0] >= POINTS // 2:
            return u, found + np.log(u[1] - u[0])
        low, high = u[max(near[0] - 1, 0)], u[min(near[-1] + 1, POINTS - 1)]


def _given_sd(
    gram: Float[np.ndarray, "... 2 2"], pull: Float[np.ndarray, "... 2"], s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of t, and a square root of its covariance, for each s."""
    size, axes = np.linalg.eigh(gram)
    size = np.maximum(size, 0.0) + s[:, None] ** 2
    mean = np.einsum("...ij,...j->...i", axes, np.einsum("...ji,...j->...i", axes, pull) / size)
    return mean, axes * (s[:, None] / np.sqrt(size))[:, None, :]


def _moments(
    prior: WeightPrior, gram: np.ndarray, pull: np.ndarray, s: np.ndarray, share: np.ndarray
) -> Float[np.ndarray, "2 3"]:
    t, root = _given_sd(gram, pull, s)
    mean = prior.centre + prior.spread * t
    variance = prior.spread**2 * (root**2).sum(-1)
    first = np.concatenate([share @ mean, [share @ s]])
    return np.stack([first, np.concatenate([share @ (mean**2 + variance), [share @ s**2]])])


def drawn(
    prior: WeightPrior,
    gram: Float[np.ndarray, "... 2 2"],
    pull: Float[np.ndarray, "... 2"],
    u: Float[np.ndarray, " draws"],
    unit: Float[np.ndarray, "draws 2"],
) -> WeightParams:
    """Level and slope from standard normal numbers, given the place u of weight_sd."""
    s = np.broadcast_to(prior.weight_sd.from_z(u), u.shape)
    mean, root = _given_sd(gram, pull, s)
    t = mean + np.einsum("nij,nj->ni", root, unit)
    level, slope = (prior.centre + prior.spread * t).T
    return WeightParams(level, slope, s)


@dataclass(frozen=True)
class WeightedThetaPosterior:
    """A `ThetaPosterior`, and the parameters of weights along it."""

    presence: ThetaPosterior
    prior: WeightPrior
    mean: Float[np.ndarray, " 3"]
    sd: Float[np.ndarray, " 3"]
    gram: Float[np.ndarray, "nodes 2 2"]
    """At the nodes of `presence`, as are the others."""
    pull: Float[np.ndarray, "nodes 2"]
    quantiles: Float[np.ndarray, "nodes scores"]

    n_uniforms: ClassVar[int] = ThetaPosterior.n_uniforms + 3

    @classmethod
    def of(cls, presence: ThetaPosterior, interpolant: Interpolant) -> WeightedThetaPosterior:
        """What an interpolant says, whose nodes know of weights."""
        found = [node.weights for node in interpolant.nodes]
        moments = np.einsum("k,kij->ij", interpolant.weights(), [w.moments for w in found])
        inside = np.isin(interpolant.z, presence.nodes)
        used = [w for w, kept in zip(found, inside, strict=True) if kept]
        return cls(
            presence,
            found[0].prior,
            moments[0],
            np.sqrt(np.maximum(moments[1] - moments[0] ** 2, 0.0)),
            *(np.stack([getattr(w, n) for w in used]) for n in ("gram", "pull", "quantiles")),
        )

    def draws(self, uniforms: Float[np.ndarray, "draws 8"]) -> dict[str, np.ndarray]:
        """Uniform points of the unit cube to parameters: those of logits, then those of weights.

        What the latter depend on is interpolated between nodes.
        """
        first = uniforms[:, : ThetaPosterior.n_uniforms]
        left, share = self.presence.beside(self.presence.place(first[:, 0]))
        scores = ndtri(np.clip(uniforms[:, ThetaPosterior.n_uniforms :], 1e-9, 1 - 1e-9))
        at = np.clip(np.searchsorted(SCORES, scores[:, 0]) - 1, 0, len(SCORES) - 2)
        part = (scores[:, 0] - SCORES[at]) / (SCORES[1] - SCORES[0])

        def between(x: np.ndarray, y: np.ndarray, share: np.ndarray) -> np.ndarray:
            share = share.reshape(-1, *[1] * (x.ndim - 1))
            return (1 - share) * x + share * y

        before, after = (
            between(self.quantiles[k, at], self.quantiles[k, at + 1], part)
            for k in (left, left + 1)
        )
        gram, pull = (between(x[left], x[left + 1], share) for x in (self.gram, self.pull))
        found = drawn(self.prior, gram, pull, between(before, after, share), scores[:, 1:])
        return self.presence.draws(first) | found._asdict()

    @cached_property
    def _quasi(self) -> dict[str, np.ndarray]:
        return self.draws(qmc.Sobol(self.n_uniforms, seed=0).random(QUASI))

    def summary(self) -> pd.DataFrame:
        """A row per parameter: mean and sd by the rule; quantiles by quasi-random draws."""
        rows = {
            name: [self.mean[k], self.sd[k], *np.quantile(self._quasi[name], list(QUANTILES))]
            for k, name in enumerate(self.prior._fields)
        }
        presence = self.presence.summary()
        more = pd.DataFrame.from_dict(rows, orient="index", columns=presence.columns)
        return pd.concat([presence, more])

    def density(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Points, and the marginal density there."""
        if name in self.presence.names:
            return self.presence.density(name)
        return density_of(self._quasi[name])
