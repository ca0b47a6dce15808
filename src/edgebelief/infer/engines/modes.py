"""Modes: a posterior with many peaks, as a mixture of the posteriors around them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from ...data.dataset import GraphDataset
from ...data.randomness import Key, generator, split
from ...errors import InputError
from ...validate import check_choice, check_least
from ..diagnostics import PARETO_K, Finding
from ..exact.applies import applies
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import climb_from_many
from ..loo import psis_loo, stacking_weights
from ..model import EdgeModel
from ..posterior import Fit
from ..prepare import Problem
from ..priors import fixed
from .base import Engine
from .exact import Exact

Weights = Literal["stacking", "evidence", "equal"]

# Draws from each mode from which the leave-one-out scores are computed.
DRAWS = 1000
# With fewer labelled graphs, leaving one out says too little about which mode predicts best.
ENOUGH = 5
# Modes nearer to each other than this, in standard deviations of the prior, count as one.
SAME = 0.02
# Up to this many channels, all orders of them are tried when modes are compared.
MOST_CHANNELS = 6


@dataclass(frozen=True)
class Modes(Engine):
    """An ensemble of modes: several maxima, and at each the readout's posterior.

    The posterior of a network with many parameters, such as `MIMO`, has many peaks, and a Markov
    chain does not leave the one it starts at. Here the network's parameters are fixed at the peaks
    where climbs from several starts end; given these, the readout is a regression, whose posterior
    `Exact` computes (a *stochastic readout*). The peaks are then mixed.

    Parameters
    ----------
    starts : int
        How many climbs. One gives a stochastic readout at a single mode.
    rounds : int
        Most rounds of a climb (L-BFGS; a round is about one gradient). Many climbs that are
        stopped early predict better than few that converge: on 1,000 graphs like the paper's, after
        training on its 50, 16 climbs of 300 rounds have a mean NLL of 7.33 and an ECE of 0.0011,
        8 that converged (about as many gradients) 7.40 and 0.0019 (means of five seeds).
    weights : {"stacking", "evidence", "equal"}
        How modes are mixed. "stacking": so that left-out graphs are predicted best (Yao, Vehtari
        and Gelman 2022, for posteriors whose chains do not mix). "evidence": by the probability of
        the labels at the mode, integrated over the readout alone, times the prior density there
        (the width of a mode does not count, since a density with so many kinks has no useful
        curvature). "equal": all alike. With fewer than 5 labelled graphs, "stacking" is "evidence".
    n_draws : int
        How many draws, of all modes together.

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
        check_choice(self.weights, "weights", get_args(Weights))
        check_least(self, rounds=1, starts=1)
        check_least(self, n_draws=25 * self.starts)  # what Exact needs at each mode

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model, data, counts = problem.model, problem.data, problem.counts
        density = LogDensity.of(model, data, counts)
        climbs = climb_from_many(key, density, "standard", self.starts, self.rounds)
        fit = self.around(key, model, climbs.ends, climbs.values, data, counts)
        return replace(fit, figures={"log density": float(climbs.values.max()), **fit.figures})

    def around(
        self,
        key: Key,
        model: EdgeModel,
        ends: Sequence[Float[np.ndarray, " numbers"]],
        values: Float[np.ndarray, " ends"],
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
    ) -> Fit:
        """Mix the posteriors around the ends of climbs, in the coordinates z.

        Of ends that are the same mode, the one with the highest of the `values` is used. `weights`
        says how often each graph counts.
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
        each = zip(keys, modes, strict=True)
        fits = [engine._fit(k, Problem(mode, data, weights)) for k, mode in each]
        network_z = np.array([ends[k][:n_network] for k in order])
        evidence = np.array([fit.log_evidence for fit in fits]) - (network_z**2).sum(1) / 2
        shares, pareto_k = self._shares(key, modes, fits, evidence, data, weights)
        names = model.parameters
        findings = [finding for fit in fits for finding in fit.findings][:1]
        if pareto_k > PARETO_K and self.weights == "stacking":
            message = (
                f"how well modes predict left-out graphs is uncertain (Pareto k {pareto_k:.2f}, "
                f"above {PARETO_K}). Compare with weights='equal'."
            )
            findings.append(Finding("Pareto k of left-out graphs", pareto_k, message))
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
        """Compute the share of each mode, and the largest Pareto k; 0 if no graph was left out."""
        counts = weights * [record.known.any() for record in data]
        if self.weights == "equal":
            return np.full(len(modes), 1 / len(modes)), 0.0
        if self.weights == "evidence" or (counts > 0).sum() < ENOUGH:
            return softmax(evidence), 0.0
        rng = generator(key)
        scores, largest_k = [], []
        for mode, fit in zip(modes, fits, strict=True):
            indices = rng.choice(len(fit.weights), DRAWS, p=fit.weights / fit.weights.sum())
            draws = {name: values[indices] for name, values in fit.params.items()}
            mode_scores, mode_k = psis_loo(mode, draws, data, counts)
            scores.append(mode_scores)
            largest_k.append(mode_k.max())
        return stacking_weights(np.stack(scores), counts), float(max(largest_k))


def _at(model: EdgeModel, z: Float[np.ndarray, " numbers"]) -> EdgeModel:
    """Return the model with its network's parameters fixed at a mode."""
    values = values_of(model, z[None])
    at_mode = {name: fixed(values[name][0]) for name in model.network.params_type._fields}
    return model.replace(prior=model.prior.replace(**at_mode))


def _distinct(
    model: EdgeModel,
    ends: Sequence[Float[np.ndarray, " numbers"]],
    values: Float[np.ndarray, " ends"],
    n_network: int,
) -> list[int]:
    """Return the indices of modes that differ in more than the order of channels, highest first."""
    distinct: list[int] = []
    for k in np.argsort(-values):
        same = [
            np.abs(other - ends[k][:n_network]).max() < SAME
            for j in distinct
            for other in _renumbered(model, ends[j][:n_network])
        ]
        if not any(same):
            distinct.append(int(k))
    return distinct


def _renumbered(
    model: EdgeModel, z: Float[np.ndarray, " numbers"]
) -> list[Float[np.ndarray, " numbers"]]:
    """Return the network's parameters with channels in every order."""
    channels = model.network.n_channels
    if channels is None or channels > MOST_CHANNELS or z.size != channels**2:
        return [z]
    matrix = z.reshape(channels, channels)
    orders = map(list, itertools.permutations(range(channels)))
    return [matrix[np.ix_(order, order)].ravel() for order in orders]
