"""NUTS: draws by following the gradient of the log density, for every network."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base import array_stats
from jaxtyping import Float
from numpyro.infer import MCMC
from numpyro.infer import NUTS as Kernel

from ..data.dataset import GraphDataset
from ..data.randomness import Key, as_key
from .map import Frame, LogDensity, Start, values_of
from .model import EdgeModel
from .posterior import Fingerprint, Posterior
from .verdict import EBFMI, EFFECTIVE_DRAWS, RHAT, Finding, verdict_of

ChainMethod = Literal["parallel", "vectorized", "sequential"]

# NumPyro's: 1023 steps a draw. A well-scaled problem needs 3 to 7.
MAX_TREE_DEPTH = 10
# A draw that stops at that depth is only slow; one in a hundred says that the scale is wrong.
AT_MAX_DEPTH = 0.01
# What NumPyro records per draw, and what ArviZ calls it.
RECORDED = {
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
    "accept_prob": "acceptance_rate",
    "potential_energy": "lp",
}


@dataclass(frozen=True)
class NUTS:
    """The no-U-turn sampler of NumPyro, started where the posterior is.

    Chains start around the mode, in coordinates where the Laplace approximation is a standard
    normal (the same as its covariance for a dense mass matrix): then a few steps make a draw, and
    warm-up has only a step size to find. Runs in JAX's default precision.

    For `DPG`, `Exact` is faster and has no Monte Carlo error; this is for every other network, and
    a check on it.

    Parameters
    ----------
    n_warmup, n_draws, n_chains : int
        Draws are per chain, after warm-up.
    target_accept : float
        Higher makes smaller steps; the remedy for divergences.
    chain_method : {"parallel", "vectorized", "sequential"}, optional
        By default "parallel" if JAX has a device for each chain (``numpyro.set_host_device_count``
        makes some of a CPU's cores); else "sequential" on a CPU, "vectorized" elsewhere.
    init : {"map", "prior"}
        "prior" starts each chain at a draw of the prior, and learns a dense mass matrix in warm-up
        (give it 500). It finds nothing if the prior is flat there; "map" does.
    progress : bool, optional
        A progress bar; by default when stderr is a terminal.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.nuts import NUTS
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> NUTS().run(0, EdgeModel(DPG(depth=10)), data).n_draws
    4000
    """

    n_warmup: int = 150
    n_draws: int = 1000
    n_chains: int = 4
    target_accept: float = 0.8
    chain_method: ChainMethod | None = None
    init: Start = "map"
    progress: bool | None = None

    def __post_init__(self) -> None:
        if self.init not in ("map", "prior"):
            raise ValueError(f"init must be map or prior; got {self.init!r}.")
        if self.n_warmup < 0 or self.n_draws < 4 or self.n_chains < 1:
            raise ValueError(
                f"n_warmup must be at least 0, n_draws 4 and n_chains 1; got {self.n_warmup}, "
                f"{self.n_draws} and {self.n_chains}."
            )

    def run(
        self, key: Key | int, model: EdgeModel, data: GraphDataset, weights: Any = None
    ) -> Posterior:
        """Sample.

        Parameters
        ----------
        key : JAX key or int
        model : EdgeModel
        data : GraphDataset
        weights : array, shape (n_graphs,), optional
            How often each graph counts; once by default.

        Returns
        -------
        Posterior
            Equally weighted draws, chain after chain.
        """
        density = LogDensity.of(model, data, weights)
        frame = Frame.started_from(self.init, model, data, weights)
        method = self.chain_method or default_chain_method(self.n_chains)
        z, stats = self._sample(as_key(key), density, frame, method)
        params = values_of(model, z.reshape(-1, z.shape[-1]))
        figures = _figures(model, z, stats)
        verdict = verdict_of(
            model, data, params, figures=figures, findings=_findings(figures, self.n_draws)
        )
        verdict.warn()
        total = self.n_chains * self.n_draws
        return Posterior(
            model=model,
            params=params,
            weights=np.full(total, 1 / total),
            engine="NUTS",
            settings={**asdict(self), "chain_method": method},
            fingerprint=Fingerprint.of(data),
            verdict=verdict,
            n_chains=self.n_chains,
            sample_stats=stats,
        )

    def _sample(
        self, key: Key, density: LogDensity, frame: Frame, method: ChainMethod
    ) -> tuple[Float[np.ndarray, "chains draws parameters"], dict[str, np.ndarray]]:
        start_key, run_key = jax.random.split(key)
        start = jax.random.normal(start_key, (self.n_chains, frame.center.size))
        started_at_mode = self.init == "map"
        sampler = MCMC(
            Kernel(
                potential_fn=lambda w: -density(jnp.asarray(frame.z(w))),
                adapt_mass_matrix=not started_at_mode,
                dense_mass=not started_at_mode,
                target_accept_prob=self.target_accept,
                max_tree_depth=MAX_TREE_DEPTH,
            ),
            num_warmup=self.n_warmup,
            num_samples=self.n_draws,
            num_chains=self.n_chains,
            chain_method=method,
            progress_bar=sys.stderr.isatty() if self.progress is None else self.progress,
        )
        sampler.run(
            run_key,
            init_params=start if self.n_chains > 1 else start[0],
            extra_fields=(*RECORDED, "adapt_state.step_size"),
        )
        recorded = sampler.get_extra_fields(group_by_chain=True)
        stats = {name: np.asarray(recorded[field]) for field, name in RECORDED.items()}
        stats["lp"] = -stats["lp"]
        stats["step_size"] = np.asarray(recorded["adapt_state.step_size"])
        stats["tree_depth"] = np.ceil(np.log2(stats["n_steps"] + 1)).astype(int)
        w = np.asarray(sampler.get_samples(group_by_chain=True), float)
        return frame.z(w), stats


def default_chain_method(n_chains: int) -> ChainMethod:
    """All chains at once where JAX has a device for each; else as a batch, or in turn on a CPU.

    A batch of chains takes as many steps a draw as the chain that needs most, and leaves the CPU's
    caches: on the paper's data it costs twice the time of one chain after the other.
    """
    if jax.local_device_count() >= n_chains:
        return "parallel"
    return "sequential" if jax.default_backend() == "cpu" else "vectorized"


def _figures(
    model: EdgeModel, z: Float[np.ndarray, "chains draws parameters"], stats: Mapping[str, Any]
) -> dict[str, float]:
    """The worst over parameters (and over chains)."""
    by_parameter = np.moveaxis(z, -1, 0)
    return {
        "R-hat": float(np.max(array_stats.rhat(by_parameter))),
        "effective draws (bulk)": float(np.min(array_stats.ess(by_parameter, method="bulk"))),
        "effective draws (tail)": float(
            np.min(array_stats.ess(by_parameter, method="tail", prob=(0.05, 0.95)))
        ),
        "divergences": float(stats["diverging"].sum()),
        "E-BFMI": float(np.min(array_stats.bfmi(stats["energy"]))),
        "draws at max tree depth": float((stats["tree_depth"] >= MAX_TREE_DEPTH).mean()),
        "steps a draw": float(stats["n_steps"].mean()),
    }


def _findings(figures: Mapping[str, float], n_draws: int) -> list[Finding]:
    """Figures beyond their thresholds; a figure that is NaN is beyond."""
    effective = min(figures["effective draws (bulk)"], figures["effective draws (tail)"])
    checks = [
        (
            figures["R-hat"] <= RHAT,
            "R-hat",
            figures["R-hat"],
            f"the chains disagree (R-hat {figures['R-hat']:.3f}, above {RHAT}). Run a longer "
            f"warm-up (n_warmup), or look for several modes.",
        ),
        (
            effective >= EFFECTIVE_DRAWS,
            "effective draws",
            effective,
            f"the draws are worth {effective:.0f} independent ones, fewer than {EFFECTIVE_DRAWS}: "
            f"means and quantiles are rough. Raise n_draws (now {n_draws} a chain).",
        ),
        (
            figures["divergences"] == 0,
            "divergences",
            figures["divergences"],
            f"{figures['divergences']:.0f} transitions diverged: parts of the posterior may be "
            f"missing. Raise target_accept towards 1.",
        ),
        (
            figures["E-BFMI"] >= EBFMI,
            "E-BFMI",
            figures["E-BFMI"],
            f"energy moves slowly (E-BFMI {figures['E-BFMI']:.2f}, below {EBFMI}): the tails are "
            f"hard to reach. Run longer, or restate the prior.",
        ),
        (
            figures["draws at max tree depth"] <= AT_MAX_DEPTH,
            "tree depth",
            figures["draws at max tree depth"],
            f"{figures['draws at max tree depth']:.0%} of draws stopped at 2^{MAX_TREE_DEPTH} "
            f"steps: the scale of the problem is not known. Run a longer warm-up (n_warmup).",
        ),
    ]
    return [Finding(name, value, message) for passed, name, value, message in checks if not passed]
