"""Where a posterior density is largest, and the normal distribution around that."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.optimize import minimize as bfgs
from jaxtyping import Array, Float
from scipy.optimize import minimize
from scipy.stats import qmc

from ...cores import n_cores
from ...data.dataset import GraphDataset
from ...data.randomness import Key, generator
from ...errors import SettingError
from ..batch import Batch
from ..diagnostics import Finding
from ..model import EdgeModel
from .density import LogDensity, values_of

Measure = Literal["constrained", "unconstrained", "standard", "likelihood"]
Start = Literal["map", "prior"]
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

# Starts are looked for along theta's prior out to eight of its standard deviations: distances may
# be off by a factor 1e6 (seven), and beyond the first few the network is often flat, so that no
# gradient would lead there. Half a standard deviation is a factor e under the paper's priors.
REACH = np.arange(-8, 8.01, 0.5)
# Besides, quasi-random draws of the prior (a power of two), for what does not lie on that line.
PRIOR_DRAWS = 16
# Channels that begin alike stay alike, so each entry of theta begins at a place of its own: so many
# standard deviations of the prior apart (a factor of 1.6 under the paper's), by chance.
APART = 0.25
# Starts are compared on the few graphs with the most labels, each with its best readout (found in
# some steps): enough to tell a live network from a flat one.
SCREEN_GRAPHS, SCREEN_STEPS = 4, 25
# Beyond forty standard deviations of the prior (exp(80) for theta) a maximum has run away.
FARTHEST = 40.0
# Where no curvature is known: the spread of a posterior, in standard deviations of the prior.
TYPICAL_SD = 0.05
# Of a climb; of a network with many parameters, whose surface has a kink every few steps.
ROUNDS, MANY_ROUNDS = 200, 1200
# Steps that a climb remembers: of a dozen parameters and many kinks, more than usual help.
MEMORY = 40
# Maximum likelihood: a curvature below this says that the parameter could move by thirty standard
# deviations of the prior at no loss.
NO_CURVATURE = 1e-3
# That of a normal twice as wide as the prior.
LEAST_CURVATURE = 0.25
# A draw of a normal posterior is half a unit of log density a parameter below the mode on average;
# one that is so many below is not in the posterior at all.
FALLEN = 20.0
# A step that would still be taken, in standard deviations of the posterior, that is no longer small
# beside the posterior itself.
STEP_LEFT = 0.1


class Laplace(NamedTuple):
    """A normal approximation of the posterior, in the coordinates z."""

    names: tuple[str, ...]
    mode: Float[np.ndarray, " parameters"]
    covariance: Float[np.ndarray, "parameters parameters"]


def laplace(model: EdgeModel, data: GraphDataset, weights: Any = None) -> Laplace:
    """The mode of the posterior density of z, and the inverse of its mean curvature around it.

    The density is made of many pieces (an output that becomes zero is a kink), and the piece which
    holds the mode says little of the whole: on the paper's data its curvature makes theta's
    standard deviation 0.0029 where it is 0.0045. So the curvature is averaged over the normal
    distribution that it implies (which gives 0.0045).

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.gradient.optimise import laplace
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=8, n_signals=20)
    >>> laplace(EdgeModel(DPG(depth=20)), data).names
    ('theta', 'delta', 'b')
    """
    density = LogDensity.of(model, data, weights)
    peak = highest_peak(0, density, "standard", starts=4)
    with jax.enable_x64(True):
        curvature = _mean_curvature(_objective(density, "standard"), peak.z, peak.curvature)
    covariance = np.linalg.inv(_within_reach(curvature))
    return Laplace(model.parameters, peak.z, covariance)


def most_plausible(model: EdgeModel, data: GraphDataset, weights: Any = None) -> dict[str, float]:
    """The parameters at the mode of the posterior density of z."""
    peak = highest_peak(0, LogDensity.of(model, data, weights), "standard", starts=2)
    return {name: float(value[0]) for name, value in values_of(model, peak.z[None]).items()}


class Frame(NamedTuple):
    """Coordinates w in which a posterior is about standard normal: z = center + scale w."""

    center: Float[np.ndarray, " parameters"]
    scale: Float[np.ndarray, "parameters parameters"]

    @classmethod
    def started_from(cls, init: Start, model: EdgeModel, data: GraphDataset, weights: Any) -> Frame:
        """Around the mode, by `laplace`; or the coordinates z themselves, by the prior."""
        match init:
            case "map":
                _, mode, covariance = laplace(model, data, weights)
                return cls(mode, np.linalg.cholesky(covariance))
            case "prior":
                n = model.n_free
                return cls(np.zeros(n), np.eye(n))
        raise SettingError(f"must be map or prior; got {init!r}.", argument="init")

    def z(self, w: Any) -> Any:
        """From w, (..., parameters)."""
        return self.center + w @ self.scale.T

    def brought_back(
        self, w: Float[np.ndarray, "places parameters"], density: LogDensity
    ) -> Float[np.ndarray, "places parameters"]:
        """Places by the normal that are not in the posterior, halfway to the mode until they are.

        Labels may bound a parameter on one side alone, where a normal falls off the other.
        """
        with jax.enable_x64(True):
            objective = _objective(density, "standard")
            lowest = objective(self.center)[0] - FALLEN * self.center.size

            def back(place: np.ndarray) -> np.ndarray:
                for _ in range(20):
                    if objective(self.z(place))[0] >= lowest:
                        break
                    place = place / 2
                return place

            return np.stack([back(place) for place in np.asarray(w, float)])


class Peak(NamedTuple):
    """A maximum that was found."""

    z: Float[np.ndarray, " parameters"]
    value: float
    curvature: Float[np.ndarray, "parameters parameters"]
    """Minus the second derivative, no eigenvalue below `NO_CURVATURE`."""
    flattest: Float[np.ndarray, " parameters"]
    """The direction of least curvature."""
    least: float
    """The curvature there."""
    step_left: float
    """The length of the Newton step that remains, in standard deviations of the posterior."""
    agreeing: int = 1
    """How many starts ended here."""


def highest_peak(
    key: Key | int, density: LogDensity, measure: Measure, starts: int, rounds: int | None = None
) -> Peak:
    """Maximise over z, from the best of many starts; in float64, whatever JAX is set to.

    Parameters
    ----------
    key : JAX key or int
    density : LogDensity
    measure : str
        What to add to the log-likelihood: log p(params) in their own units ("constrained"), with
        the logarithm of positive ones as coordinate ("unconstrained"), with z as coordinate
        ("standard"), or nothing ("likelihood").
    starts : int
        How many starts, the prior's median among them, are followed to the end.
    rounds : int, optional
        Most rounds of a climb; else as many as such networks need.
    """
    climbed, values = climb_from_many(key, density, measure, starts, rounds)
    best = climbed[int(values.argmax())]
    with jax.enable_x64(True):
        objective = _objective(density, measure)
        if density.model.network.forward_mode:
            peak = _polish(objective, best)
        else:
            peak = _climb_again(objective, best, rounds or MANY_ROUNDS)
    # Two log densities within 0.01 of each other are the same to any use of them.
    return peak._replace(agreeing=int((values > peak.value - 0.01).sum()))


def not_converged(peak: Peak) -> tuple[Finding, ...]:
    """The finding that a climb ended before its maximum, if it did."""
    if peak.step_left < STEP_LEFT:
        return ()
    finding = Finding(
        "not converged",
        peak.step_left,
        f"the maximum is still {peak.step_left:.2g} standard deviations of the posterior away. Use "
        f"more starts, or an engine that does not need a maximum.",
    )
    return (finding,)


def climb_from_many(
    key: Key | int, density: LogDensity, measure: Measure, starts: int, rounds: int | None = None
) -> tuple[list[np.ndarray], Float[np.ndarray, " starts"]]:
    """Where a climb ends from each of several starts, and the value there; on all cores."""
    most = rounds or (ROUNDS if density.model.network.forward_mode else MANY_ROUNDS)
    with jax.enable_x64(True):
        chosen = _starts(key, density, starts)

    def climbed(z: np.ndarray) -> tuple[np.ndarray, float]:
        with jax.enable_x64(True):  # which other threads do not know
            objective = _objective(density, measure)
            end = _climb(objective, z, rounds=most)
            return end, objective(end)[0]

    with ThreadPoolExecutor(n_cores()) as pool:
        ends, values = zip(*pool.map(climbed, chosen), strict=True)
    return list(ends), np.array(values)


def _starts(key: Key | int, density: LogDensity, n: int) -> list[np.ndarray]:
    """Where climbs begin."""
    channels = density.model.network.n_channels
    if channels is None or density.n_network < 2:
        return _distinct_starts(key, density, n)
    # Where all channels are alike, and then apart from each other.
    candidates, values = _alike(density)
    middle = candidates[int(np.nan_to_num(values, nan=-np.inf).argmax())][: density.n_network]
    places = middle + APART * generator(key).standard_normal((n, density.n_network))
    found, _ = _screen(_few(density), jnp.asarray(places))
    return list(np.asarray(found))


def _alike(density: LogDensity) -> tuple[np.ndarray, np.ndarray]:
    """Candidates along the prior with all parameters of the network in the same place of it."""
    line = np.repeat(REACH[:, None], density.n_network, axis=1)
    candidates, values = _screen(_few(density), jnp.asarray(line))
    return np.asarray(candidates), np.asarray(values)


def _distinct_starts(key: Key | int, density: LogDensity, n: int) -> list[np.ndarray]:
    """The prior's median, then the best of many candidates, no two of them close."""
    of_network = density.n_network
    if of_network == 0:
        return [np.zeros(density.n_readout)]
    line = np.repeat(REACH[:, None], of_network, axis=1)
    law = qmc.MultivariateNormalQMC(np.zeros(of_network), rng=generator(key))
    networks = np.concatenate([np.zeros((1, of_network)), line, law.random(PRIOR_DRAWS)])
    candidates, values = map(np.asarray, _screen(_few(density), jnp.asarray(networks)))
    chosen = [candidates[0]]
    for k in np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable"):
        apart = [abs(candidates[k] - z)[:of_network].max() >= 1 for z in chosen]
        if all(apart) and np.isfinite(candidates[k]).all():
            chosen.append(candidates[k])
    return chosen[:n]


@eqx.filter_jit
def _screen(few: LogDensity, networks: Float[Array, "candidates k"]) -> tuple[Array, Array]:
    """For each place of the network's parameters the best readout, and the log density there.

    One pass through the network each, and a small search over the readout at its last states.
    """
    batches = tuple(batch.as_jax() for batch in few.batches)
    n_readout, forward = few.n_readout, few.model.forward

    def best_readout(z_network: Array) -> tuple[Array, Array]:
        def at(z_readout: Array) -> Array:
            return jnp.concatenate([z_network, z_readout])

        network = few.split(at(jnp.zeros(n_readout))).network
        outputs = [forward.output(network, batch) for batch in batches]

        def minus(z_readout: Array) -> Array:
            params = few.split(at(z_readout))
            each = zip(outputs, batches, strict=True)
            likelihood = sum(few.given_output(params, output, batch) for output, batch in each)
            return z_readout @ z_readout / 2 - likelihood

        found = bfgs(minus, jnp.zeros(n_readout), method="BFGS", options={"maxiter": SCREEN_STEPS})
        return at(found.x), -found.fun

    return jax.lax.map(best_readout, networks)


def _few(density: LogDensity) -> LogDensity:
    """The same of the graphs with the most labels, each counted so that the total is alike."""
    counts = [batch.labels.n_labels for batch in density.batches]
    enough = np.sort(np.concatenate(counts))[::-1][:SCREEN_GRAPHS][-1]
    kept: list[Batch] = []
    room = SCREEN_GRAPHS
    for batch, count in zip(density.batches, counts, strict=True):
        places = np.flatnonzero(count >= enough)[:room]
        room -= places.size
        if places.size:
            kept.append(batch.part(places))
    share = sum(batch.labels.n_labels.sum() for batch in kept) / np.concatenate(counts).sum()
    return replace(density, batches=tuple(batch.counted(1 / share) for batch in kept))


def _objective(density: LogDensity, measure: Measure) -> Objective:
    """Value and gradient; where they are not finite, a value worse than any."""

    def value_and_gradient(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _value_and_gradient(density, jnp.asarray(z), measure)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return -1e30, np.zeros_like(z)
        return float(value), np.asarray(gradient, float)

    return value_and_gradient


@eqx.filter_jit
def _value_and_gradient(density: LogDensity, z: Array, measure: Measure) -> tuple[Array, Array]:
    return jax.value_and_grad(lambda z: density.log_likelihood(z) + _added(density, z, measure))(z)


def _added(density: LogDensity, z: Array, measure: Measure) -> Array:
    match measure:
        case "likelihood":
            return jnp.zeros(())
        case "standard":
            return -(z @ z) / 2 - z.size * np.log(2 * np.pi) / 2
    total = jnp.zeros(())
    for name, value in density.model.from_z(z).items():
        marginal = density.model.prior[name]
        if marginal.fixed:
            continue
        total += jnp.asarray(marginal.distribution.log_prob(value)).sum()
        if measure == "unconstrained" and marginal.positive:
            total += jnp.log(value).sum()
    return total


def _climb(
    objective: Objective, z: np.ndarray, tolerance: float = 1e-9, rounds: int = ROUNDS
) -> np.ndarray:
    """L-BFGS until the value changes by less than `tolerance` of itself."""

    def minus(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(z)
        return -value, -gradient

    found = minimize(
        minus,
        z,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-FARTHEST, FARTHEST)] * z.size,
        options={
            "maxiter": rounds,
            "maxcor": MEMORY,
            "ftol": tolerance,
            "gtol": 1e-7,
        },
    )
    return np.asarray(found.x)


def _polish(objective: Objective, z: np.ndarray) -> Peak:
    """Climb once more where the curvature is the same in all directions, and look around."""
    for _ in range(2):
        curvature, flattest, least = _curvature(objective, z)
        z = _whitened_climb(objective, z, _scale(curvature))
    curvature, flattest, least = _curvature(objective, z)
    value, gradient = objective(z)
    step_left = float(np.sqrt(gradient @ np.linalg.solve(curvature, gradient)))
    return Peak(z, value, curvature, flattest, least, step_left)


def _climb_again(objective: Objective, z: np.ndarray, rounds: int) -> Peak:
    """Once more with nothing remembered; of a surface with so many kinks that second derivatives
    at a point say nothing.

    What is left is told by what it gained: half the square of a step is what a step gains.
    """
    before = objective(z)[0]
    z = _climb(objective, z, tolerance=1e-11, rounds=rounds)
    value, _ = objective(z)
    typical = np.eye(z.size) / TYPICAL_SD**2
    return Peak(z, value, typical, np.zeros(z.size), np.inf, float(np.sqrt(2 * (value - before))))


def _scale(curvature: np.ndarray) -> np.ndarray:
    """L with L L' the covariance, the inverse of the curvature."""
    return np.linalg.inv(np.linalg.cholesky(curvature)).T


def _whitened_climb(objective: Objective, z: np.ndarray, scale: np.ndarray) -> np.ndarray:
    def in_units(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(np.clip(z + scale @ w, -FARTHEST, FARTHEST))
        return value, scale.T @ gradient

    w = _climb(in_units, np.zeros(z.size), tolerance=1e-14)
    return np.clip(z + scale @ w, -FARTHEST, FARTHEST)


def _curvature(objective: Objective, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Minus the second derivative by differences of gradients; where it is least, and how much."""
    h = 1e-5  # the cube root of float64's precision: rounding and truncation balance
    second = np.stack(
        [objective(z - step)[1] - objective(z + step)[1] for step in h * np.eye(z.size)]
    ) / (2 * h)
    return _made_positive(second)


def _made_positive(second: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    eigenvalues, vectors = np.linalg.eigh((second + second.T) / 2)
    positive = (vectors * np.maximum(eigenvalues, NO_CURVATURE)) @ vectors.T
    return positive, vectors[:, 0], float(eigenvalues[0])


def _within_reach(curvature: np.ndarray) -> np.ndarray:
    """No wider than twice the prior, where the labels say nothing; and no condition beyond 1e10."""
    eigenvalues, vectors = np.linalg.eigh(curvature)
    bounded = np.clip(eigenvalues, LEAST_CURVATURE, 1e10 * LEAST_CURVATURE)
    return (vectors * bounded) @ vectors.T


def _mean_curvature(objective: Objective, z: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """The mean of minus the second derivative over normal draws x around z, by Stein's lemma:

    -E[second derivative] = -Cov(x)^-1 E[(x - z) gradient(x)'],

    with draws in opposite pairs, and the curvature that shapes them found by repetition, as long as
    most of its draws are in the posterior.
    """
    # Four draws a parameter at least, for a matrix of full rank; Sobol' points: a power of two.
    half = max(8, 2 ** int(np.ceil(np.log2(2 * z.size))))
    law = qmc.MultivariateNormalQMC(np.zeros(z.size), rng=np.random.default_rng(0))
    draws = law.random(half)
    draws = np.concatenate([draws, -draws])
    lowest = objective(z)[0] - FALLEN * z.size
    good = curvature
    for _ in range(3):
        steps = draws @ _scale(_within_reach(curvature)).T
        found = [objective(z + step) for step in steps]
        values, gradients = map(np.array, zip(*found, strict=True))
        if np.median(values) < lowest:
            return good
        good = curvature
        second = -np.linalg.solve(steps.T @ steps, steps.T @ gradients)
        curvature, *_ = _made_positive(second)
    return curvature
