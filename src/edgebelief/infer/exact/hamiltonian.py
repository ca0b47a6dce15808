"""Hamiltonian Monte Carlo with many chains side by side.

All chains take the same number of leapfrog steps, so that each evaluation of the density is one
matrix product for all of them: sixteen chains cost little more than one (as in ChEES-HMC, Hoffman,
Radul and Sountsov 2021). Each chain has a step size of its own, since chains have different
densities. It is written in NumPy, since these products dominate and nothing has to be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

# The coordinates of all chains, and a number for each chain.
States = Float[np.ndarray, "dimensions chains"]
PerChain = Float[np.ndarray, " chains"]
# A function that returns the log density of each chain, and its gradient.
LogDensity = Callable[[States], tuple[PerChain, States]]

# The acceptance that the step size aims at, and how fast it learns. In many dimensions 0.65 is best
# (Beskos et al. 2013); posteriors of scales are less smooth, and longer steps diverge.
ACCEPT, RATE = 0.9, 2.0
# The longest trajectory in units of the coordinates. In a direction with standard deviation 1, pi/2
# would make a draw independent of the one before; a few directions have one of 2 to 4. Lengths are
# drawn between SHORTEST of it and all, so that no direction returns to where it was.
LONGEST, SHORTEST, MOST_STEPS = 3.0, 0.2, 64
# An energy error beyond this is a divergence, as in Stan.
DIVERGENT = 1000.0


class Chains(NamedTuple):
    """Where all chains are."""

    x: States
    value: PerChain
    """The log density."""
    gradient: States

    def where(self, taken: Bool[np.ndarray, " chains"], other: Chains) -> Chains:
        """Return the chains with those that are `taken` from `other`."""
        return Chains(*(np.where(taken, y, x) for x, y in zip(self, other, strict=True)))


class Moved(NamedTuple):
    """The chains after a trajectory."""

    chains: Chains
    acceptance: PerChain
    """The probability that the end of the trajectory was accepted with."""
    divergent: Bool[np.ndarray, " chains"]


@dataclass
class StepSize:
    """The step size of each chain, which follows its acceptance (Robbins and Monro 1951)."""

    size: PerChain
    n: int = 1

    def update(self, acceptance: PerChain) -> None:
        """Learn from the acceptance at the present size."""
        self.size = self.size * np.exp(RATE * (acceptance - ACCEPT) / np.sqrt(self.n))
        self.n += 1


def evaluated(x: States, density: LogDensity) -> Chains:
    """Return chains at `x`; where the density overflows, its value is not finite."""
    with np.errstate(all="ignore"):
        return Chains(x, *density(x))


def move(
    rng: np.random.Generator,
    density: LogDensity,
    chains: Chains,
    step: PerChain,
    short: float = 1.0,
) -> Moved:
    """Move all chains along a trajectory, and accept or reject its end (Neal 2011).

    It has as many steps as fit the median of the sizes `step`; they are these sizes times `short`.

    Examples
    --------
    >>> import numpy as np
    >>> from edgebelief.infer.exact.hamiltonian import evaluated, move
    >>> def standard_normal(x):
    ...     return -(x**2).sum(0) / 2, -x
    >>> rng = np.random.default_rng(0)
    >>> chains = evaluated(np.zeros((3, 1000)), standard_normal)
    >>> for _ in range(10):
    ...     chains = move(rng, standard_normal, chains, step=np.full(1000, 0.3)).chains
    >>> chains.x.std(1).round(1)
    array([1., 1., 1.])
    """
    length = LONGEST * rng.uniform(SHORTEST, 1.0)
    n_steps = int(np.clip(np.ceil(length / np.median(step)), 1, MOST_STEPS))
    p, end = rng.standard_normal(chains.x.shape), chains
    energy = (p**2).sum(0) / 2 - chains.value
    step = step * short
    with np.errstate(all="ignore"):  # of trajectories that diverge
        for _ in range(n_steps):
            p = p + step / 2 * end.gradient
            end = evaluated(end.x + step * p, density)
            p = p + step / 2 * end.gradient
        gain = energy - ((p**2).sum(0) / 2 - end.value)
    gain = np.where(np.isfinite(gain), gain, -np.inf)
    acceptance = np.exp(np.minimum(gain, 0.0))
    taken = rng.random(acceptance.size) < acceptance
    return Moved(chains.where(taken, end), acceptance, gain < -DIVERGENT)
