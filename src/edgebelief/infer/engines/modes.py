"""Modes: a posterior with many peaks, as a mixture of what is around each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from ...data.dataset import GraphDataset
from ...data.randomness import Key, generator, split
from ...errors import InputError, SettingError
from ..diagnostics import PARETO_K, Finding
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import climb_from_many
from ..loo import psis_loo, stacking_weights
from ..model import EdgeModel
from ..posterior import Fit
from ..prepare import Problem
from ..priors import fixed
from .base import Engine
from .exact import Exact, applies

Weights = Literal["stacking", "evidence", "equal"]

# Draws of a mode that are weighted to forget a graph.
DRAWS = 1000
# Fewer graphs say too little about which mode predicts best.
ENOUGH = 5
# Modes nearer to each other than this, in standard deviations of the prior, are one.
SAME = 0.02
# Up to so many channels all orders of them are tried when modes are compared.
MOST_CHANNELS = 6


@dataclass(frozen=True)
class Modes(Engine):
    """An ensemble of modes: several maxima, and at each the readout's posterior.

    The posterior of a network with many parameters, such as `MIMO`, has many peaks, none of which a
    chain leaves. Here the network's parameters are taken at the peaks that climbs from several
    starts end on; at each the readout is still in doubt, and that is a regression, integrated by
    `Exact` (a *stochastic readout*). The peaks are then mixed.

    Parameters
    ----------
    starts : int
        Climbs. One is a stochastic readout at a single mode.
    rounds : int
        Most rounds of a climb (L-BFGS; a round is about one gradient). Many climbs that are
        stopped predict better than few that are not: on 1,000 graphs like the paper's, after
        training on its 50, 16 climbs of 300 rounds have a mean NLL of 7.33 and an ECE of 0.0011,
        8 that went to their ends (about as many gradients) 7.40 and 0.0019 (means of five seeds).
    weights : {"stacking", "evidence", "equal"}
        How modes are mixed. "stacking": so that graphs are predicted best that were left out (Yao,
        Vehtari and Gelman 2022, for posteriors that do not mix). "evidence": by the probability
        of the labels at the mode, integrated over the readout alone, times the prior there (the
        width of a mode does not count: with as many kinks as a network has, no curvature tells
        it). "equal". With fewer than 5 labelled graphs, "stacking" is "evidence".
    n_draws : int
        Of all modes together.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel, Modes
    >>> from edgebelief.networks import MIMO
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> model = EdgeModel(MIMO(channels=2, depth=10))
    >>> Modes(starts=2).run(0, model, data).engine  # doctest: +SKIP
    'Modes'
    """

    starts: int = 16
    rounds: int = 300
    weights: Weights = "stacking"
    n_draws: int = 4000

    def __post_init__(self) -> None:
        if self.weights not in ("stacking", "evidence", "equal"):
            raise SettingError(
                f"must be stacking, evidence or equal; got {self.weights!r}.", argument="weights"
            )
        if self.rounds < 1:
            raise SettingError(f"must be at least 1; got {self.rounds}.", argument="rounds")
        if self.starts < 1 or self.n_draws < 25 * self.starts:
            raise SettingError(
                f"must be at least 1, and n_draws 25 for each of them; got {self.starts} "
                f"and {self.n_draws}.",
                argument="starts",
            )

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model, data, counts = problem.model, problem.data, problem.counts
        density = LogDensity.of(model, data, counts)
        ends, values = climb_from_many(key, density, "standard", self.starts, self.rounds)
        fit = self.around(key, model, ends, values, data, counts)
        return replace(fit, figures={"log density": float(values.max()), **fit.figures})

    def around(
        self,
        key: Key,
        model: EdgeModel,
        ends: Sequence[Float[np.ndarray, " numbers"]],
        values: Float[np.ndarray, " ends"],
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
    ) -> Fit:
        """The mixture of what is around each end of a climb.

        Parameters
        ----------
        key : JAX key
        model : EdgeModel
        ends : sequence of array
            Where climbs ended, in the coordinates z; of the readout nothing is used.
        values : array
            The higher, the earlier an end is taken of two that are the same.
        data, weights
            What the model is fitted to.
        """
        n_network = sum(model.free_sizes[name] for name in model.network.params_type._fields)
        order = _distinct(model, ends, values, n_network)
        keys = split(key, len(order))
        modes = [_at(model, ends[k]) for k in order]
        if not applies(modes[0]):
            raise InputError(
                f"Modes integrates the readout as Exact does, which cannot do "
                f"{type(model.readout).__name__} with this prior. Use NUTS."
            )
        engine = Exact(n_draws=self.n_draws // len(modes))
        fits = [
            engine._fit(k, Problem(mode, data, weights))
            for k, mode in zip(keys, modes, strict=True)
        ]
        own = np.array([ends[k][:n_network] for k in order])
        evidence = np.array([fit.log_evidence for fit in fits]) - (own**2).sum(1) / 2
        shares, hardest = self._shares(key, modes, fits, evidence, data, weights)
        names = model.parameters
        findings = [finding for fit in fits for finding in fit.findings][:1]
        if hardest > PARETO_K and self.weights == "stacking":
            findings.append(
                Finding(
                    "Pareto k of left-out graphs",
                    hardest,
                    f"how well modes predict left-out graphs is uncertain (Pareto k {hardest:.2f}, "
                    f"above {PARETO_K}). Compare with weights='equal'.",
                )
            )
        return Fit(
            {name: np.concatenate([fit.params[name] for fit in fits]) for name in names},
            np.concatenate([share * fit.weights for share, fit in zip(shares, fits, strict=True)]),
            {
                "modes": float(len(modes)),
                "effective modes": float(1 / (shares @ shares)),
                "Pareto k": max(fit.figures["Pareto k"] for fit in fits),
            },
            findings,
        )

    def _shares(
        self,
        key: Key,
        modes: list[EdgeModel],
        fits: list[Fit],
        evidence: Float[np.ndarray, " modes"],
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
    ) -> tuple[Float[np.ndarray, " modes"], float]:
        """What each mode counts, and the hardest graph to forget."""
        counts = weights * [record.known.any() for record in data]
        if self.weights == "equal":
            return np.full(len(modes), 1 / len(modes)), 0.0
        if self.weights == "evidence" or (counts > 0).sum() < ENOUGH:
            return softmax(evidence), 0.0
        rng = generator(key)
        scores, k = [], []
        for mode, fit in zip(modes, fits, strict=True):
            places = rng.choice(len(fit.weights), DRAWS, p=fit.weights / fit.weights.sum())
            draws = {name: values[places] for name, values in fit.params.items()}
            found = psis_loo(mode, draws, data, counts)
            scores.append(found[0])
            k.append(found[1].max())
        return stacking_weights(np.stack(scores), counts), float(max(k))


def _at(model: EdgeModel, z: np.ndarray) -> EdgeModel:
    """The model with its network's parameters fixed at a mode."""
    values = values_of(model, z[None])
    still = {name: fixed(values[name][0]) for name in model.network.params_type._fields}
    return model.replace(prior=model.prior.replace(**still))


def _distinct(
    model: EdgeModel, ends: Sequence[np.ndarray], values: np.ndarray, n_network: int
) -> list[int]:
    """The places of the modes, each once, the highest first.

    Channels that are numbered otherwise make the same mode.
    """
    found: list[int] = []
    for k in np.argsort(-values):
        same = [
            np.abs(other - ends[k][:n_network]).max() < SAME
            for j in found
            for other in _renumbered(model, ends[j][:n_network])
        ]
        if not any(same):
            found.append(int(k))
    return found


def _renumbered(model: EdgeModel, z: np.ndarray) -> list[np.ndarray]:
    """The network's parameters with channels in every order."""
    channels = model.network.n_channels
    if channels is None or channels > MOST_CHANNELS or z.size != channels**2:
        return [z]
    matrix = z.reshape(channels, channels)
    orders = map(list, itertools.permutations(range(channels)))
    return [matrix[np.ix_(order, order)].ravel() for order in orders]
