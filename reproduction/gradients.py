"""What chains cost, in gradients: figures that do not depend on what else the machine does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from edgebelief.data import GraphDataset
from edgebelief.infer import NUTS, EdgeModel, Posterior
from edgebelief.infer.gradient.density import LogDensity

from .models import quietly

# Of the verdict of chains.
FIGURES = ("R-hat", "divergences", "steps a draw", "effective draws (bulk)")


@eqx.filter_jit
def _gradient(density: LogDensity, z: Any) -> Any:
    return jax.value_and_grad(density)(z)


def gradient_seconds(
    model: EdgeModel, data: GraphDataset, values: Mapping[str, float], repeats: int = 20
) -> float:
    """Processor seconds of one gradient of the log density, after compilation."""
    density = LogDensity.of(model, data)
    z = jnp.asarray([model.prior[name].to_z(values[name]) for name in model.parameters])
    jax.block_until_ready(_gradient(density, z))
    begin = time.process_time()
    for _ in range(repeats):
        jax.block_until_ready(_gradient(density, z))
    return (time.process_time() - begin) / repeats


def chained(
    engine: NUTS, model: EdgeModel, data: GraphDataset, seed: int = 0
) -> tuple[Posterior, dict[str, Any]]:
    """Chains, and what they took: per parameter its effective draws and those of a gradient."""
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
