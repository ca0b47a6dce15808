"""VI: the normal distribution nearest to the posterior, fitted to a few graphs at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from scipy.special import logsumexp

from ...data.randomness import Key, split
from ...progress import progress_bar
from ...threads import apart, paced
from ...validate import check_choice, check_least
from ..diagnostics import PARETO_K, Finding
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import Frame, Start
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine

if TYPE_CHECKING:
    import numpyro.distributions as dist
    from numpyro.infer.svi import SVIState

# A draw whose log p overflows is put this far below the least plausible one: e^-100 is nothing.
IMPOSSIBLE = 100.0
# The largest number of steps in a compiled call.
MOST = 100


@dataclass(frozen=True)
class VI(Engine):
    """Variational inference: maximise the evidence lower bound (ELBO) over normal distributions,

        E_q[log p(z, labels) - log q(z)],    q = Normal(m, C),

    by NumPyro's SVI, each step from a random batch of graphs; then draw from q, and weight the
    draws by p/q on all graphs (Pareto-smoothed importance sampling, Vehtari et al. 2024). Pareto's
    k says whether the weights can be trusted: whether q is near enough. Where they cannot, that is
    a finding, and the draws are q's, unweighted.

    It is for more graphs than `NUTS` can evaluate at every step. On small data it is no faster,
    and `Exact` or `NUTS` are right without a k to check.

    Parameters
    ----------
    steps : int
        How many steps of Adam.
    batch_graphs : int
        Graphs per step, drawn from each size of graph in proportion, at least one of each.
    step_size : float
        In standard deviations of the Laplace approximation; it falls to a twentieth of this.
    n_draws : int
        How many draws from q; each takes a pass over all graphs.
    init : {"map", "prior"}
        Start from the Laplace approximation, or from the prior. "prior" finds nothing where the
        likelihood is flat, and needs more steps where it is not.
    progress : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.

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
        check_least(self, steps=0, batch_graphs=1, n_draws=25)
        check_choice(self.init, "init", get_args(Start))

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
        share = np.exp(log_weights - log_weights.max() if trusted else np.zeros(self.n_draws))
        share /= share.sum()
        figures = {
            "Pareto k": float(k),
            "ELBO": float(log_ratio.mean()),
            "effective draws": float(1 / (share @ share)),
        }
        findings = () if trusted else [_far(k)]
        evidence = float(logsumexp(log_ratio) - np.log(self.n_draws)) if trusted else None
        return Fit(values_of(model, z), share, figures, findings, log_evidence=evidence)

    def _nearest(self, key: Key, density: LogDensity, frame: Frame) -> dist.MultivariateNormal:
        """Fit the normal distribution of w, starting from a standard one."""
        # Here: it takes a while, and other engines need none of it.
        import numpyro
        import numpyro.distributions as dist
        from numpyro.infer import SVI, Trace_ELBO, init_to_value
        from numpyro.infer.autoguide import AutoMultivariateNormal
        from numpyro.optim import optax_to_numpyro

        n = frame.center.size

        def joint() -> None:
            w = numpyro.sample("w", dist.ImproperUniform(dist.constraints.real_vector, (), (n,)))
            estimate = _batch(numpyro.prng_key(), density, self.batch_graphs)
            numpyro.factor("joint", estimate(jnp.asarray(frame.z(w))))

        guide = AutoMultivariateNormal(
            joint, init_loc_fn=init_to_value(values={"w": jnp.zeros(n)}), init_scale=1.0
        )
        step_size = optax.exponential_decay(self.step_size, max(self.steps, 1), 1 / 20)
        svi = SVI(joint, guide, optax_to_numpyro(optax.adam(step_size)), Trace_ELBO())
        if self.steps == 0:
            return dist.MultivariateNormal(jnp.zeros(n), scale_tril=jnp.eye(n))
        precise = jnp.result_type(float) == jnp.float64
        (device,) = jnp.zeros(()).devices()

        @jax.jit
        def advance(state: SVIState, n: Array) -> SVIState:
            # A step whose ELBO is not finite is left out.
            return jax.lax.fori_loop(0, n, lambda _, state: svi.stable_update(state)[0], state)

        def fit() -> SVIState:
            with jax.enable_x64(precise), jax.default_device(device):  # settings of each thread
                state = svi.init(key)
                for n in paced(self.steps, MOST):
                    state = jax.block_until_ready(advance(state, np.int32(n)))
                    bar.update(n)
                return state

        with progress_bar(self.progress, total=self.steps, desc="VI") as bar:
            return guide.get_posterior(svi.get_params(apart(fit)))


def _batch(key: Key, density: LogDensity, n_graphs: int) -> LogDensity:
    """Return an unbiased estimate of the density from random graphs."""
    total = sum(len(batch.e) for batch in density.batches)
    parts = []
    keys = jax.random.split(key, len(density.batches))
    for batch, batch_key in zip(density.batches, keys, strict=True):
        size = len(batch.e)
        n = min(size, max(1, round(n_graphs * size / total)))
        indices = jax.random.permutation(batch_key, size)[:n]
        parts.append(batch.part(indices).counted(size / n))
    return replace(density, batches=tuple(parts))


def _log_densities(
    density: LogDensity, z: Float[np.ndarray, "draws parameters"]
) -> Float[np.ndarray, " draws"]:
    """Return log p(z, labels) of each draw; one that is not finite is below all others."""
    values = np.asarray(_mapped(density, jnp.asarray(z)), float)
    finite = np.isfinite(values)
    return np.where(finite, values, np.min(values[finite], initial=0.0) - IMPOSSIBLE)


@eqx.filter_jit
def _mapped(density: LogDensity, z: Float[Array, "draws parameters"]) -> Float[Array, " draws"]:
    return jax.lax.map(density, z)


def _far(k: float) -> Finding:
    """Return the finding that the posterior is far from normal."""
    return Finding(
        "Pareto k",
        float(k),
        f"the posterior is not near the normal distribution that was found (Pareto k {k:.2f}, "
        f"above {PARETO_K}): its draws are returned as they are. Run more steps, or NUTS.",
    )
