"""The log posterior density with its gradient, and where it is largest.

Every engine that follows gradients works in the coordinates z in which each prior is a standard
normal (`Marginal.value_at`): a scaled logarithm for lognormal priors, a shift and scale for normal
ones, a sigmoid of the logarithm for log-uniform ones. There

    log p(z | labels) = sum_t w_t log p(labels_t | values(z)) - |z|^2 / 2 + const,

every number may be tried, and a unit is a standard deviation of belief.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.optimize import minimize as bfgs
from jaxtyping import Array, Float
from scipy.optimize import minimize
from scipy.stats import qmc

from ..convex.iterations import State
from ..data.dataset import GraphDataset
from ..data.randomness import Key, generator
from ..edges import Support
from ..networks import Network
from ..readouts import Readout
from .likelihoods import BernoulliEdges
from .model import EdgeModel
from .posterior import Fingerprint, Posterior
from .priors import LogNormal, LogUniform, Marginal, Normal
from .verdict import Finding, verdict_of

Space = Literal["constrained", "unconstrained"]
Measure = Literal["constrained", "unconstrained", "standard", "likelihood"]
Start = Literal["map", "prior"]
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

# Starts are looked for along theta's prior out to eight of its standard deviations: distances may
# be off by a factor 1e6 (seven), and beyond the first few the network is often flat, so that no
# gradient would lead there. Half a standard deviation is a factor e under the paper's priors.
REACH = np.arange(-8, 8.01, 0.5)
# Besides, quasi-random draws of the prior (a power of two), for what does not lie on that line.
PRIOR_DRAWS = 16
# Starts are compared on the few graphs with the most labels, each with its best readout (found in
# some steps): enough to tell a live network from a flat one.
SCREEN_GRAPHS, SCREEN_STEPS = 4, 25
# Beyond forty standard deviations of the prior (exp(80) for theta) a maximum has run away.
FARTHEST = 40.0
# Maximum likelihood: a curvature below this says that the parameter could move by thirty standard
# deviations of the prior at no loss.
NO_CURVATURE = 1e-3
# That of a normal twice as wide as the prior.
LEAST_CURVATURE = 0.25
# A step that would still be taken, in standard deviations of the posterior, that is no longer small
# beside the posterior itself.
STEP_LEFT = 0.1


class Block(NamedTuple):
    """The graphs of one size, as arrays, with how often each counts."""

    e: Float[Any, "graphs edges"]
    a: Float[Any, "graphs edges"]
    known: Any
    weights: Float[Any, " graphs"]
    support: Support


class LogDensity(eqx.Module):
    """The log posterior density of z, with a gradient by forward mode through the network.

    Only the network's own parameters enter the deep recursion: one tangent for each runs along
    with it, at a memory independent of depth, and the rest of the gradient is that of the readout
    and the likelihood at the last state. `jax.grad` of a call uses it.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.map import LogDensity
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=6)
    >>> density = LogDensity.of(EdgeModel(), data)
    >>> jax.grad(density)(jnp.zeros(3)).shape
    (3,)
    """

    network: Network
    readout: Readout
    likelihood: BernoulliEdges
    marginals: tuple[Marginal, ...] = eqx.field(static=True)
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, model: EdgeModel, data: GraphDataset, weights: Any = None) -> LogDensity:
        """Of a model, given the graphs that have labels and a weight above zero."""
        each = _check_weights(data, weights)
        used = np.array([record.known.any() for record in data]) & (each > 0)
        if not used.any():
            raise ValueError(
                f"there is nothing to learn from: none of the {len(data)} graphs has a known label"
                f"{'' if weights is None else ' and a weight above zero'}. Pass labels (0 or 1, NaN"
                f" where unknown) as the second argument of GraphDataset."
            )
        kept, each = data[used], each[used]
        blocks = tuple(
            Block(stack.e, stack.a, stack.known, each[stack.places], stack.support)
            for stack in kept.stacks()
        )
        marginals = tuple(model.prior[name] for name in model.parameters)
        return cls(model.network, model.readout, model.likelihood, marginals, blocks)

    def __call__(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Log p(z, labels): the standard normal prior is normalised, so this is too."""
        prior = -(z @ z) / 2 - z.size * np.log(2 * np.pi) / 2
        return prior + self.log_likelihood(z)

    def values(self, z: Float[Array, " parameters"]) -> Float[Array, " parameters"]:
        """The parameters, each in its own units."""
        each = [value_at(marginal, z[k]) for k, marginal in enumerate(self.marginals)]
        return jnp.stack(each)

    def log_likelihood(self, z: Float[Array, " parameters"]) -> Float[Array, ""]:
        """Log p(labels | values(z)), over all graphs."""

        @jax.custom_vjp
        def value(z: Array) -> Array:
            return self._log_likelihood(self.values(z))

        def forward(z: Array) -> tuple[Array, Array]:
            values, slopes = jax.jvp(self.values, (z,), (jnp.ones_like(z),))  # elementwise
            total, gradient = self._with_gradient(values)
            return total, slopes * gradient

        value.defvjp(forward, lambda gradient, out: (out * gradient,))
        return value(z)

    def _log_likelihood(self, values: Array) -> Array:
        network, readout = self._split(values)
        return jnp.stack(
            [
                self._given_state(readout, self.network(network, block.e, block.support), block)
                for block in map(_as_jax, self.blocks)
            ]
        ).sum()

    def _with_gradient(self, values: Array) -> tuple[Array, Array]:
        network, readout = self._split(values)
        total, gradient = jnp.zeros(()), jnp.zeros(values.size)
        for block in map(_as_jax, self.blocks):
            state, tangents = self.network.with_tangents(network, block.e, block.support)
            here, (by_readout, by_state) = jax.value_and_grad(self._given_state, (0, 1))(
                readout, state, block
            )
            by_network = [
                jnp.vdot(by_state.a, tangent.a) + jnp.vdot(by_state.lam, tangent.lam)
                for tangent in tangents
            ]
            total, gradient = total + here, gradient + jnp.stack([*by_network, *by_readout])
        return total, gradient

    def _given_state(self, readout: Any, state: State, block: Block) -> Array:
        logits = self.readout(readout, state, block.e)
        return block.weights @ self.likelihood.log_likelihood(logits, block.a, block.known)

    def _split(self, values: Array) -> tuple[Any, Any]:
        of_network, of_readout = self.network.params_type, self.readout.params_type
        n = len(of_network._fields)
        return of_network(*values[:n]), of_readout(*values[n:])


def value_at(marginal: Marginal, z: Float[Array, ""]) -> Float[Array, ""]:
    """`Marginal.value_at` for JAX arrays, traced ones included."""
    match marginal:
        case LogNormal():
            return marginal.median * jnp.exp(marginal.log_sd * z)
        case LogUniform():
            width = np.log(marginal.high / marginal.low)
            return marginal.low * jnp.exp(width * jax.scipy.special.ndtr(z))
        case Normal():
            return marginal.mean + marginal.sd * z
    raise TypeError(f"no gradient is known for the prior {marginal!r}; add its value_at here.")


def values_of(model: EdgeModel, z: Float[np.ndarray, "draws parameters"]) -> dict[str, np.ndarray]:
    """Draws of z as parameters by name, in float64."""
    z = np.asarray(z, float)
    return {
        name: np.asarray(model.prior[name].value_at(z[:, k]))
        for k, name in enumerate(model.parameters)
    }


def _as_jax(block: Block) -> Block:
    e, a, known, weights = map(jnp.asarray, block[:4])
    return Block(e, a, known, weights, block.support)


def _check_weights(data: GraphDataset, weights: Any) -> Float[np.ndarray, " graphs"]:
    each = np.ones(len(data)) if weights is None else np.asarray(weights, float)
    if each.shape != (len(data),) or not (np.isfinite(each) & (each >= 0)).all():
        raise ValueError(f"weights must be {len(data)} numbers >= 0, one per graph; got {weights}.")
    return each


@dataclass(frozen=True)
class MAP:
    """The most plausible parameters, as a posterior of one point.

    Maximises log p(labels | params) + log p(params) from several starts: the prior's median, and
    the best of a line of network parameters far out on both sides and of draws of the prior. So a
    live network is found even where most of the prior says nothing (distances on another scale).

    A point has no spread: predictions from it are more certain than they should be. Use it as a
    quick look, or where a plug-in is what is asked for.

    Parameters
    ----------
    space : "constrained" or "unconstrained"
        Whose density is maximised: of the parameters in their own units (the paper's choice), or
        of the logarithm of those that are positive. The two differ by the Jacobian, sum of logs.
    starts : int
        How many maximisations.
    prior : "model" or None
        None leaves the prior's density out: maximum likelihood, started as above. Where labels are
        separable it has no maximum, and the verdict says so.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.map import MAP
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=8, n_signals=20)
    >>> MAP().run(0, EdgeModel(DPG(depth=20)), data).n_draws
    1
    """

    space: Space = "constrained"
    starts: int = 8
    prior: Literal["model"] | None = "model"

    def __post_init__(self) -> None:
        if self.space not in ("constrained", "unconstrained"):
            raise ValueError(f"space must be constrained or unconstrained; got {self.space!r}.")
        if self.prior not in ("model", None):
            raise ValueError(
                f'prior must be "model", or None for maximum likelihood; got {self.prior!r}. '
                f"Another prior is an argument of EdgeModel."
            )
        if self.starts < 1:
            raise ValueError(f"starts must be at least 1; got {self.starts}.")

    def run(
        self, key: Key | int, model: EdgeModel, data: GraphDataset, weights: Any = None
    ) -> Posterior:
        """Maximise.

        Parameters
        ----------
        key : JAX key or int
            For the quasi-random starts.
        model : EdgeModel
        data : GraphDataset
        weights : array, shape (n_graphs,), optional
            How often each graph counts; once by default.

        Returns
        -------
        Posterior
            Of one draw.
        """
        measure: Measure = "likelihood" if self.prior is None else self.space
        peak = highest_peak(key, LogDensity.of(model, data, weights), measure, self.starts)
        params = values_of(model, peak.z[None])
        figures = {
            "log density": peak.value,
            "step left": peak.step_left,
            "starts that agree": float(peak.agreeing),
        }
        findings = list(_runaway(model, peak) if self.prior is None else ())
        if not findings and not peak.step_left < STEP_LEFT:
            findings.append(
                Finding(
                    "not converged",
                    peak.step_left,
                    f"the maximum is still {peak.step_left:.2g} standard deviations of the "
                    f"posterior away. Use more starts, or an engine that does not need a maximum.",
                )
            )
        verdict = verdict_of(model, data, params, figures=figures, findings=findings)
        verdict.warn()
        return Posterior(
            model=model,
            params=params,
            weights=np.ones(1),
            engine="MAP",
            settings=asdict(self),
            fingerprint=Fingerprint.of(data),
            verdict=verdict,
        )


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
    >>> from edgebelief.infer.map import laplace
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
                n = len(model.parameters)
                return cls(np.zeros(n), np.eye(n))
        raise ValueError(f"init must be map or prior; got {init!r}.")

    def z(self, w: Any) -> Any:
        """From w, (..., parameters)."""
        return self.center + w @ self.scale.T


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


def highest_peak(key: Key | int, density: LogDensity, measure: Measure, starts: int) -> Peak:
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
    """
    with jax.enable_x64(True):
        objective = _objective(density, measure)
        chosen = _starts(key, density, starts)
        climbed = [_climb(objective, z) for z in chosen]
        values = np.array([objective(z)[0] for z in climbed])
        peak = _polish(objective, climbed[int(values.argmax())])
    # Two log densities within 0.01 of each other are the same to any use of them.
    return peak._replace(agreeing=int((values > peak.value - 0.01).sum()))


def _starts(key: Key | int, density: LogDensity, n: int) -> list[np.ndarray]:
    """The prior's median, then the best of many candidates, no two of them close."""
    of_network = len(density.network.params_type._fields)
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
    blocks = tuple(map(_as_jax, few.blocks))
    n_readout = len(few.readout.params_type._fields)

    def best_readout(z_network: Array) -> tuple[Array, Array]:
        def at(z_readout: Array) -> Array:
            return jnp.concatenate([z_network, z_readout])

        network, _ = few._split(few.values(at(jnp.zeros(n_readout))))
        states = [few.network(network, block.e, block.support) for block in blocks]

        def minus(z_readout: Array) -> Array:
            _, readout = few._split(few.values(at(z_readout)))
            pairs = zip(states, blocks, strict=True)
            likelihood = sum(few._given_state(readout, state, block) for state, block in pairs)
            return z_readout @ z_readout / 2 - likelihood

        found = bfgs(minus, jnp.zeros(n_readout), method="BFGS", options={"maxiter": SCREEN_STEPS})
        return at(found.x), -found.fun

    return jax.lax.map(best_readout, networks)


def _few(density: LogDensity) -> LogDensity:
    """The same of the graphs with the most labels, each counted so that the total is alike."""
    counts = [block.weights * block.known.sum(1) for block in density.blocks]
    enough = np.sort(np.concatenate(counts))[::-1][:SCREEN_GRAPHS][-1]
    kept: list[Block] = []
    room = SCREEN_GRAPHS
    for block, count in zip(density.blocks, counts, strict=True):
        places = np.flatnonzero(count >= enough)[:room]
        room -= places.size
        if places.size:
            e, a, known, weights = (part[places] for part in block[:4])
            kept.append(Block(e, a, known, weights, block.support))
    share = sum((b.weights * b.known.sum(1)).sum() for b in kept) / np.concatenate(counts).sum()
    blocks = tuple(block._replace(weights=block.weights / share) for block in kept)
    return eqx.tree_at(lambda d: d.blocks, density, blocks)


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
    for marginal, value in zip(density.marginals, density.values(z), strict=True):
        total += jnp.asarray(marginal.distribution.log_prob(value))
        if measure == "unconstrained" and marginal.positive:
            total += jnp.log(value)
    return total


def _climb(objective: Objective, z: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
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
        options={"maxiter": 200, "ftol": tolerance, "gtol": 1e-7},
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

    with draws in opposite pairs, and the curvature that shapes them found by repetition.
    """
    half = max(8, 2 * z.size)  # four draws a parameter at least, for a matrix of full rank
    law = qmc.MultivariateNormalQMC(np.zeros(z.size), rng=np.random.default_rng(0))
    draws = law.random(half)
    draws = np.concatenate([draws, -draws])
    for _ in range(3):
        steps = draws @ _scale(_within_reach(curvature)).T
        gradients = np.stack([objective(z + step)[1] for step in steps])
        second = -np.linalg.solve(steps.T @ steps, steps.T @ gradients)
        curvature, *_ = _made_positive(second)
    return curvature


def _runaway(model: EdgeModel, peak: Peak) -> list[Finding]:
    """Where the likelihood has no maximum: it ran to the end of the world, or lost all slope."""
    away = np.abs(peak.z) > 0.99 * FARTHEST
    if not away.any() and peak.least > NO_CURVATURE:
        return []
    share = np.maximum(away, abs(peak.flattest))
    names = [name for name, s in zip(model.parameters, share, strict=True) if s > 0.3]
    return [
        Finding(
            "no maximum",
            peak.least,
            f"the likelihood does not fall along {', '.join(names)}: the labels are separable, or "
            f"say nothing about it, and the values returned are where the search ended. Use the "
            f"prior (MAP()), or more labels.",
        )
    ]
