"""Small posteriors by brute force, with the package's own density."""

import jax
import jax.numpy as jnp
import numpy as np

from edgebelief.data import GraphDataset
from edgebelief.infer.gradient.density import values_of
from edgebelief.infer.gradient.optimise import laplace


def rescaled(data, factor):
    return GraphDataset([factor * record.e for record in data], [record.a for record in data])


def grid_posterior(model, data, points=25):
    """Brute force: params, their posterior weights, log p(graph | params), log evidence.

    A box of six posterior standard deviations on each side of the mode, in float64.
    """
    _, mode, covariance = laplace(model, data)
    scale = np.linalg.cholesky(covariance)
    axis = np.linspace(-6, 6, points)
    z = mode + np.stack(np.meshgrid(axis, axis, axis), -1).reshape(-1, 3) @ scale.T
    params = values_of(model, z)
    with jax.enable_x64(True):
        each = np.asarray(
            jax.jit(lambda p: jax.lax.map(lambda q: model.log_likelihood(q, data), p))(
                {name: jnp.asarray(values) for name, values in params.items()}
            )
        )
    log_p = each.sum(1) - (z**2).sum(1) / 2 - 1.5 * np.log(2 * np.pi)
    cell = (axis[1] - axis[0]) ** 3 * np.linalg.det(scale)
    p = np.exp(log_p - log_p.max())
    return params, p / p.sum(), each, log_p.max() + np.log(p.sum() * cell)
