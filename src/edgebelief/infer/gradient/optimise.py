"""Maxima of a posterior density, and the normal approximation around the highest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.optimize import minimize as bfgs
from jaxtyping import Array, Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.stats import qmc

from ...data.dataset import GraphDataset
from ...data.randomness import Key, generator
from ...devices import current
from ...threads import Workers, check
from ..batch import Batch
from ..diagnostics import Finding
from ..model import EdgeModel
from .density import LogDensity, values_of

Measure = Literal["constrained", "unconstrained", "standard", "likelihood"]
Start = Literal["map", "prior"]
Vector = Float[np.ndarray, " parameters"]
Matrix = Float[np.ndarray, "parameters parameters"]
# From z to the value and its gradient.
Objective = Callable[[Vector], tuple[float, Vector]]
NumPyOrJax = TypeVar("NumPyOrJax", np.ndarray, Array)

# Starts are searched for along theta's prior, out to eight of its standard deviations. Distances
# may be off by a factor 1e6 (seven of them), and beyond the first few the network is often flat, so
# that no gradient would lead there. Half a standard deviation is a factor e for the paper's priors.
REACH = np.arange(-8, 8.01, 0.5)
# Quasi-random draws of the prior (a power of two) are added, for modes that are not near that line.
PRIOR_DRAWS = 16
# Channels that start alike stay alike, so each entry of theta starts at a random distance from the
# others: this many standard deviations of the prior (a factor of 1.6 under the paper's).
APART = 0.25
# Starts are compared on this many graphs, those with the most labels, each start with its best
# readout after this many steps: enough to tell a live network from a flat one.
SCREEN_GRAPHS, SCREEN_STEPS = 4, 25
# A maximum beyond forty standard deviations of the prior (exp(80) for theta) has run away.
FARTHEST = 40.0
# The posterior's spread where no curvature is known, in standard deviations of the prior.
TYPICAL_SD = 0.05
# Most rounds of a climb; more for a network with channels, whose density has many kinks.
ROUNDS, MANY_ROUNDS = 200, 1200
# Steps that L-BFGS remembers: with a dozen parameters and many kinks, more than usual help.
MEMORY = 40
# Maximum likelihood: a curvature below this says that the parameter could move by thirty standard
# deviations of the prior at no loss.
NO_CURVATURE = 1e-3
# The curvature of a normal twice as wide as the prior.
LEAST_CURVATURE = 0.25
# On average, a draw from a normal posterior is half a unit of log density per parameter below the
# mode; one that is this many below per parameter is not in the posterior at all.
FALLEN = 20.0
# A climb has converged if the Newton step that remains is shorter, in standard deviations of the
# posterior.
STEP_LEFT = 0.1


class Laplace(NamedTuple):
    """A normal approximation of the posterior, in the coordinates z."""

    names: tuple[str, ...]
    mode: Vector
    covariance: Matrix


def laplace(model: EdgeModel, data: GraphDataset, weights: ArrayLike | None = None) -> Laplace:
    """Find the mode of the posterior density of z, and the inverse of the mean curvature around it.

    The density is piecewise smooth (an output that becomes zero is a kink), and the piece that
    contains the mode says little about the whole: on the paper's data its curvature gives theta a
    standard deviation of 0.0029 instead of 0.0045. So the curvature is averaged over the normal
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
        curvature = _mean_curvature(_objective(density, "standard"), peak.z, peak.curvature.matrix)
    covariance = np.linalg.inv(_bounded(curvature))
    return Laplace(model.parameters, peak.z, covariance)


def most_plausible(
    model: EdgeModel, data: GraphDataset, weights: ArrayLike | None = None
) -> dict[str, float]:
    """Return the parameters at the mode of the posterior density of z."""
    peak = highest_peak(0, LogDensity.of(model, data, weights), "standard", starts=2)
    return {name: float(value[0]) for name, value in values_of(model, peak.z[None]).items()}


class Frame(NamedTuple):
    """Coordinates w in which a posterior is about standard normal: z = center + scale w."""

    center: Vector
    scale: Matrix

    @classmethod
    def started_from(
        cls, init: Start, model: EdgeModel, data: GraphDataset, weights: ArrayLike | None
    ) -> Frame:
        """Make coordinates around the mode, by `laplace`; or take z itself, for the prior."""
        if init == "prior":
            return cls(np.zeros(model.n_free), np.eye(model.n_free))
        _, mode, covariance = laplace(model, data, weights)
        return cls(mode, np.linalg.cholesky(covariance))

    def z(self, w: NumPyOrJax) -> NumPyOrJax:
        """Convert w, (..., parameters), to z."""
        return w @ self.scale.T + self.center

    def brought_back(
        self, w: Float[np.ndarray, "chains parameters"], density: LogDensity
    ) -> Float[np.ndarray, "chains parameters"]:
        """Move starts that are not in the posterior towards the mode, by halves, until they are.

        Labels may bound a parameter on one side only, where the normal extends to both.
        """
        with jax.enable_x64(True):
            objective = _objective(density, "standard")
            lowest = objective(self.center)[0] - FALLEN * self.center.size

            def back(start: Vector) -> Vector:
                for _ in range(20):
                    if objective(self.z(start))[0] >= lowest:
                        break
                    start = start / 2
                return start

            return np.stack([back(start) for start in np.asarray(w, float)])


class Curvature(NamedTuple):
    """Minus the second derivative of a density."""

    matrix: Matrix
    """The derivative, with no eigenvalue below `NO_CURVATURE`."""
    flattest: Vector
    """The direction of least curvature."""
    least: float
    """The curvature in that direction."""

    @classmethod
    def of(cls, second: Matrix) -> Curvature:
        """Bound the eigenvalues of a matrix from below, and make it symmetric."""
        eigenvalues, vectors = np.linalg.eigh((second + second.T) / 2)
        positive = (vectors * np.maximum(eigenvalues, NO_CURVATURE)) @ vectors.T
        return cls(positive, vectors[:, 0], float(eigenvalues[0]))


class Peak(NamedTuple):
    """A maximum of a density."""

    z: Vector
    value: float
    curvature: Curvature
    step_left: float
    """The length of the Newton step that remains, in standard deviations of the posterior."""
    agreeing: int = 1
    """How many starts ended at this maximum."""


def highest_peak(
    key: Key | int, density: LogDensity, measure: Measure, starts: int, rounds: int | None = None
) -> Peak:
    """Maximise over z, from the best of many starts; in float64, whatever JAX is set to.

    `measure` says what is added to the log-likelihood: log p(params) in their own units
    ("constrained"), with the logarithm of positive ones as coordinate ("unconstrained"), with z as
    coordinate ("standard"), or nothing ("likelihood"). A climb has at most `rounds` rounds; by
    default as many as such networks need.
    """
    climbs = climb_from_many(key, density, measure, starts, rounds)
    best = climbs.ends[int(climbs.values.argmax())]
    with jax.enable_x64(True):
        objective = _objective(density, measure)
        if density.model.network.forward_mode:
            peak = _polish(objective, best)
        else:
            peak = _climb_again(objective, best, rounds or MANY_ROUNDS)
    # Two log densities within 0.01 of each other are the same to any use of them.
    return peak._replace(agreeing=int((climbs.values > peak.value - 0.01).sum()))


def not_converged(peak: Peak) -> tuple[Finding, ...]:
    """Return the finding that a climb ended before its maximum, if it did."""
    if peak.step_left < STEP_LEFT:
        return ()
    message = (
        f"the maximum is still {peak.step_left:.2g} standard deviations of the posterior away. Use "
        f"more starts, or an engine that does not need a maximum."
    )
    return (Finding("not converged", peak.step_left, message),)


class Climbs(NamedTuple):
    """Where climbs ended, and the values there."""

    ends: list[Vector]
    values: Float[np.ndarray, " starts"]


def climb_from_many(
    key: Key | int, density: LogDensity, measure: Measure, starts: int, rounds: int | None = None
) -> Climbs:
    """Climb from each of several starts, on all cores."""
    most = rounds or (ROUNDS if density.model.network.forward_mode else MANY_ROUNDS)
    with jax.enable_x64(True):
        chosen = _starts(key, density, starts)
    device = current()

    def climbed(z: Vector) -> tuple[Vector, float]:
        with jax.enable_x64(True), jax.default_device(device):  # settings of each thread
            objective = _objective(density, measure)
            end = _climb(objective, z, rounds=most)
            return end, objective(end)[0]

    # Programs that use several devices are started one after the other, in the same order on each.
    with Workers(1 if density.mesh else None) as workers:
        ends, values = zip(*workers.map(climbed, chosen), strict=True)
    return Climbs(list(ends), np.array(values))


def _starts(key: Key | int, density: LogDensity, n: int) -> list[Vector]:
    """Choose where climbs start."""
    channels = density.model.network.n_channels
    if channels is None or density.n_network < 2:
        return _distinct_starts(key, density, n)
    # The best value that all channels may share, and from there random steps for each.
    alike, values = _screen(density, _prior_line(density.n_network))
    middle = alike[int(np.nan_to_num(values, nan=-np.inf).argmax())][: density.n_network]
    networks = middle + APART * generator(key).standard_normal((n, density.n_network))
    return list(_screen(density, networks)[0])


def _prior_line(n: int) -> Float[np.ndarray, "candidates n"]:
    """Return candidates along the prior at which all `n` coordinates are equal."""
    return np.repeat(REACH[:, None], n, axis=1)


def _distinct_starts(key: Key | int, density: LogDensity, n: int) -> list[Vector]:
    """Return the prior's median, then the best of many candidates, no two of them close."""
    n_network = density.n_network
    if n_network == 0:
        return [np.zeros(density.n_readout)]
    sampler = qmc.MultivariateNormalQMC(np.zeros(n_network), rng=generator(key))
    line, draws = _prior_line(n_network), sampler.random(PRIOR_DRAWS)
    candidates, values = _screen(density, np.concatenate([np.zeros((1, n_network)), line, draws]))
    chosen = [candidates[0]]
    for k in np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable"):
        apart = [abs(candidates[k] - z)[:n_network].max() >= 1 for z in chosen]
        if all(apart) and np.isfinite(candidates[k]).all():
            chosen.append(candidates[k])
    return chosen[:n]


def _screen(
    density: LogDensity, networks: Float[np.ndarray, "candidates n_network"]
) -> tuple[Float[np.ndarray, "candidates parameters"], Float[np.ndarray, " candidates"]]:
    """Complete each value of the network's coordinates by its best readout on a few graphs.

    Returns the candidates in the coordinates z, and the log density at each.
    """
    z, values = _best_readouts(_few(density), jnp.asarray(networks))
    return np.asarray(z), np.asarray(values)


@eqx.filter_jit
def _best_readouts(
    few: LogDensity, networks: Float[Array, "candidates n_network"]
) -> tuple[Float[Array, "candidates parameters"], Float[Array, " candidates"]]:
    """Run the network once for each candidate, and search over the readout's coordinates."""
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

        best = bfgs(minus, jnp.zeros(n_readout), method="BFGS", options={"maxiter": SCREEN_STEPS})
        return at(best.x), -best.fun

    return jax.lax.map(best_readout, networks)


def _few(density: LogDensity) -> LogDensity:
    """Restrict a density to the graphs with the most labels, scaled to the total of all labels."""
    counts = [batch.labels.n_labels for batch in density.batches]
    enough = np.sort(np.concatenate(counts))[::-1][:SCREEN_GRAPHS][-1]
    kept: list[Batch] = []
    room = SCREEN_GRAPHS
    for batch, count in zip(density.batches, counts, strict=True):
        indices = np.flatnonzero(count >= enough)[:room]
        room -= indices.size
        if indices.size:
            kept.append(batch.part(indices))
    share = sum(batch.labels.n_labels.sum() for batch in kept) / np.concatenate(counts).sum()
    return replace(density, batches=tuple(batch.counted(1 / share) for batch in kept))


def _objective(density: LogDensity, measure: Measure) -> Objective:
    """Return a function from z to value and gradient; not finite ones become a very low value."""

    def value_and_gradient(z: Vector) -> tuple[float, Vector]:
        check()
        value, gradient = _value_and_gradient(density, jnp.asarray(z), measure)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return -1e30, np.zeros_like(z)
        return float(value), np.asarray(gradient, float)

    return value_and_gradient


@eqx.filter_jit
def _value_and_gradient(
    density: LogDensity, z: Float[Array, " parameters"], measure: Measure
) -> tuple[Float[Array, ""], Float[Array, " parameters"]]:
    def value(z: Array) -> Array:
        return density.log_likelihood(z) + _log_prior(density, z, measure)

    return jax.value_and_grad(value)(z)


def _log_prior(
    density: LogDensity, z: Float[Array, " parameters"], measure: Measure
) -> Float[Array, ""]:
    """Return what is added to the log-likelihood: see `highest_peak`."""
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
    objective: Objective, z: Vector, tolerance: float = 1e-9, rounds: int = ROUNDS
) -> Vector:
    """Run L-BFGS until the value changes by less than `tolerance` of itself."""

    def minus(z: Vector) -> tuple[float, Vector]:
        value, gradient = objective(z)
        return -value, -gradient

    result = minimize(
        minus,
        z,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-FARTHEST, FARTHEST)] * z.size,
        options={"maxiter": rounds, "maxcor": MEMORY, "ftol": tolerance, "gtol": 1e-7},
    )
    return np.asarray(result.x)


def _polish(objective: Objective, z: Vector) -> Peak:
    """Climb twice more in whitened coordinates, and compute the curvature at the maximum."""
    for _ in range(2):
        z = _whitened_climb(objective, z, _scale(_curvature(objective, z).matrix))
    curvature = _curvature(objective, z)
    value, gradient = objective(z)
    step_left = float(np.sqrt(gradient @ np.linalg.solve(curvature.matrix, gradient)))
    return Peak(z, value, curvature, step_left)


def _climb_again(objective: Objective, z: Vector, rounds: int) -> Peak:
    """Climb once more from scratch, where kinks are so many that second derivatives say nothing.

    A Newton step gains half of its squared length (in posterior standard deviations), so the step
    that was left is estimated from the gain.
    """
    before = objective(z)[0]
    z = _climb(objective, z, tolerance=1e-11, rounds=rounds)
    value, _ = objective(z)
    typical = Curvature(np.eye(z.size) / TYPICAL_SD**2, np.zeros(z.size), np.inf)
    return Peak(z, value, typical, float(np.sqrt(2 * (value - before))))


def _scale(curvature: Matrix) -> Matrix:
    """Return L with L L' the covariance, the inverse of the curvature."""
    return np.linalg.inv(np.linalg.cholesky(curvature)).T


def _whitened_climb(objective: Objective, z: Vector, scale: Matrix) -> Vector:
    """Climb in coordinates w with z + scale w, in which the curvature is the identity."""

    def whitened(w: Vector) -> tuple[float, Vector]:
        value, gradient = objective(np.clip(z + scale @ w, -FARTHEST, FARTHEST))
        return value, scale.T @ gradient

    w = _climb(whitened, np.zeros(z.size), tolerance=1e-14)
    return np.clip(z + scale @ w, -FARTHEST, FARTHEST)


def _curvature(objective: Objective, z: Vector) -> Curvature:
    """Compute the curvature by differences of gradients."""
    h = 1e-5  # the cube root of float64's precision: rounding and truncation balance
    steps = h * np.eye(z.size)
    differences = [objective(z - step)[1] - objective(z + step)[1] for step in steps]
    return Curvature.of(np.stack(differences) / (2 * h))


def _bounded(curvature: Matrix) -> Matrix:
    """Bound the eigenvalues, to a normal at most twice as wide as the prior and condition 1e10."""
    eigenvalues, vectors = np.linalg.eigh(curvature)
    bounded = np.clip(eigenvalues, LEAST_CURVATURE, 1e10 * LEAST_CURVATURE)
    return (vectors * bounded) @ vectors.T


def _mean_curvature(objective: Objective, z: Vector, curvature: Matrix) -> Matrix:
    """Return the mean of minus the second derivative over normal draws x around z (Stein's lemma).

        -E[second derivative] = -Cov(x)^-1 E[(x - z) gradient(x)']

    Draws are in antithetic pairs. The curvature that shapes them is iterated, as long as most of
    the draws are in the posterior.
    """
    # Four draws a parameter at least, for a matrix of full rank; Sobol' points: a power of two.
    half = max(8, 2 ** int(np.ceil(np.log2(2 * z.size))))
    sampler = qmc.MultivariateNormalQMC(np.zeros(z.size), rng=np.random.default_rng(0))
    draws = sampler.random(half)
    draws = np.concatenate([draws, -draws])
    lowest = objective(z)[0] - FALLEN * z.size
    last_good = curvature
    for _ in range(3):
        steps = draws @ _scale(_bounded(curvature)).T
        evaluations = [objective(z + step) for step in steps]
        values, gradients = map(np.array, zip(*evaluations, strict=True))
        if np.median(values) < lowest:
            return last_good
        last_good = curvature
        second = -np.linalg.solve(steps.T @ steps, steps.T @ gradients)
        curvature = Curvature.of(second).matrix
    return curvature
