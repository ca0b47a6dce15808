"""The cost of chains in gradients: numbers that do not depend on the load of the machine."""

from __future__ import annotations

import time
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from edgebelief.data import GraphDataset
from edgebelief.infer import NUTS, EdgeModel, Posterior
from edgebelief.infer.gradient.density import LogDensity

from .item import Answer
from .models import quietly

# Figures of the verdict on chains.
FIGURES = ("R-hat", "divergences", "steps a draw", "effective draws (bulk)")


@eqx.filter_jit
def _gradient(density: LogDensity, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.value_and_grad(density)(z)


def gradient_seconds(
    model: EdgeModel, data: GraphDataset, values: Mapping[str, float], repeats: int = 20
) -> float:
    """Return the processor seconds of one gradient of the log density, after compilation."""
    density = LogDensity.of(model, data)
    z = jnp.asarray([model.prior[name].to_z(values[name]) for name in model.parameters])
    jax.block_until_ready(_gradient(density, z))
    begin = time.process_time()
    for _ in range(repeats):
        jax.block_until_ready(_gradient(density, z))
    return (time.process_time() - begin) / repeats


def chained(
    engine: NUTS, model: EdgeModel, data: GraphDataset, seed: int = 0
) -> tuple[Posterior, Answer]:
    """Run chains; return the posterior, effective draws of each parameter, and gradients."""
    from arviz_stats.base import array_stats  # slow to import

    with quietly():
        posterior = engine.run(seed, model, data)
    draws = {
        name: model.prior[name].to_z(values).reshape(posterior.n_chains, -1)
        for name, values in posterior.params.items()
    }
    effective = {
        name: float(np.ravel(array_stats.ess(z[None], method="bulk"))[0])
        for name, z in draws.items()
    }
    figures = posterior.verdict.figures
    return posterior, {
        "effective draws": effective,
        "gradients": int(np.sum(posterior.sample_stats["n_steps"])),
        "findings": list(posterior.verdict.names),
        **{name: figures[name] for name in FIGURES},
    }
