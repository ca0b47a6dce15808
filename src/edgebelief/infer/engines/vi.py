"""VI: the normal distribution nearest to the posterior, from a few graphs at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from jaxtyping import Array, Float
from numpyro.infer import SVI, Trace_ELBO, init_to_value
from numpyro.infer.autoguide import AutoMultivariateNormal
from numpyro.optim import optax_to_numpyro
from scipy.special import logsumexp

from ...data.randomness import Key, split
from ...errors import SettingError
from ..diagnostics import PARETO_K, Finding
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import Frame, Start
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine

# What is added to log p where it overflows: e^-100 of the least plausible draw is nothing.
IMPOSSIBLE = 100.0


@dataclass(frozen=True)
class VI(Engine):
    """Variational inference: maximise the evidence lower bound (ELBO) over normal distributions,

        E_q[log p(z, labels) - log q(z)],    q = Normal(m, C),

    by NumPyro's SVI, each step from a random batch of graphs; then draw from q, and weight the
    draws by p/q on all graphs (Pareto-smoothed importance sampling, Vehtari et al. 2024). Pareto's
    k says whether the weights can be trusted: whether q is near enough. Where they cannot, that is
    a finding, and the draws are q's, unweighted.

    For more graphs than `NUTS` can pass through at every step. On small data it is no faster, and
    `Exact` or `NUTS` are right without a k to look at.

    Parameters
    ----------
    steps : int
        Of Adam.
    batch_graphs : int
        Graphs a step, drawn from each size of graph in proportion, at least one of each.
    step_size : float
        In standard deviations of the Laplace approximation; falls to a twentieth of it.
    n_draws : int
        From q, each a pass over all graphs.
    init : {"map", "prior"}
        Start from the Laplace approximation, or from the prior. "prior" finds nothing where the
        prior is flat, and needs more steps where it is not.
    progress : bool, optional
        A progress bar; by default when stderr is a terminal.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.engines.vi import VI
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 24, n_nodes=8, n_signals=30)
    >>> VI(steps=100, batch_graphs=8).run(0, EdgeModel(DPG(depth=10)), data).n_draws
    1000
    """

    steps: int = 1000
    batch_graphs: int = 16
    step_size: float = 0.02
    n_draws: int = 1000
    init: Start = "map"
    progress: bool | None = None

    def __post_init__(self) -> None:
        # 25 draws are the fewest in whose tail a Pareto distribution is fitted (five of them).
        if self.steps < 0 or self.batch_graphs < 1 or self.n_draws < 25:
            raise SettingError(
                f"must be at least 0, batch_graphs 1 and n_draws 25; got {self.steps}, "
                f"{self.batch_graphs} and {self.n_draws}.",
                argument="steps",
            )

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model, data, counts = problem.model, problem.data, problem.counts
        from arviz_stats.base import array_stats  # slow to import

        fit_key, draw_key = split(key, 2)
        density = LogDensity.of(model, data, counts)
        frame = Frame.started_from(self.init, model, data, counts)
        q = self._nearest(fit_key, density, frame)
        w = q.sample(draw_key, (self.n_draws,))
        log_q = np.asarray(q.log_prob(w), float) - np.linalg.slogdet(frame.scale)[1]
        z = frame.z(np.asarray(w, float))
        log_ratio = _log_densities(density, z) - log_q
        log_weights, k = array_stats.psislw(-log_ratio)  # ArviZ takes minus the log ratio
        trusted = float(k) <= PARETO_K
        share = _shares(log_weights if trusted else np.zeros(self.n_draws))
        params = values_of(model, z)
        figures = {
            "Pareto k": float(k),
            "ELBO": float(log_ratio.mean()),
            "effective draws": float(1 / (share @ share)),
        }
        return Fit(
            params,
            share,
            figures,
            () if trusted else [_far(k)],
            log_evidence=_log_mean_exp(log_ratio) if trusted else None,
        )

    def _nearest(self, key: Key, density: LogDensity, frame: Frame) -> dist.MultivariateNormal:
        """The normal distribution of w, from a standard one."""
        n = frame.center.size

        def joint() -> None:
            w = numpyro.sample("w", dist.ImproperUniform(dist.constraints.real_vector, (), (n,)))
            some = _batch(numpyro.prng_key(), density, self.batch_graphs)
            numpyro.factor("joint", some(jnp.asarray(frame.z(w))))

        guide = AutoMultivariateNormal(
            joint, init_loc_fn=init_to_value(values={"w": jnp.zeros(n)}), init_scale=1.0
        )
        fall = optax.exponential_decay(self.step_size, max(self.steps, 1), 1 / 20)
        svi = SVI(joint, guide, optax_to_numpyro(optax.adam(fall)), Trace_ELBO())
        if self.steps == 0:
            return dist.MultivariateNormal(jnp.zeros(n), scale_tril=jnp.eye(n))
        progress = sys.stderr.isatty() if self.progress is None else self.progress
        # A step whose ELBO is not finite is left out.
        result = svi.run(key, self.steps, progress_bar=progress, stable_update=True)
        return guide.get_posterior(result.params)


def _batch(key: Array, density: LogDensity, n_graphs: int) -> LogDensity:
    """Estimate the density from random graphs, each counted so that the mean is unchanged."""
    total = sum(len(batch.e) for batch in density.batches)
    parts = []
    keys = jax.random.split(key, len(density.batches))
    for batch, batch_key in zip(density.batches, keys, strict=True):
        size = len(batch.e)
        n = min(size, max(1, round(n_graphs * size / total)))
        places = jax.random.permutation(batch_key, size)[:n]
        parts.append(batch.part(places).counted(size / n))
    return replace(density, batches=tuple(parts))


def _log_densities(
    density: LogDensity, z: Float[np.ndarray, "draws parameters"]
) -> Float[np.ndarray, " draws"]:
    """Log p(z, labels) of each draw; where it is not a number, less than of any other."""
    found = np.asarray(_mapped(density, jnp.asarray(z)), float)
    usable = np.isfinite(found)
    return np.where(usable, found, np.min(found[usable], initial=0.0) - IMPOSSIBLE)


@eqx.filter_jit
def _mapped(density: LogDensity, z: Float[Array, "draws parameters"]) -> Float[Array, " draws"]:
    return jax.lax.map(density, z)


def _log_mean_exp(x: np.ndarray) -> float:
    return float(logsumexp(x) - np.log(x.size))


def _shares(log_weights: np.ndarray) -> np.ndarray:
    share = np.exp(log_weights - log_weights.max())
    return share / share.sum()


def _far(k: float) -> Finding:
    return Finding(
        "Pareto k",
        float(k),
        f"the posterior is not near the normal distribution that was found (Pareto k {k:.2f}, "
        f"above {PARETO_K}): its draws are returned as they are. Run more steps, or NUTS.",
    )
