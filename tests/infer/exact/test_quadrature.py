"""Integrals over two coefficients, against a dense nested sum."""

import numpy as np

from edgebelief.infer.exact.cells import integrate_by_cells
from edgebelief.infer.exact.grid import GridConditional
from edgebelief.infer.exact.quadrature import integrate
from edgebelief.infer.exact.regression import Labels, LogisticPosterior
from edgebelief.infer.priors import LogNormal


def ridge():
    """Labels that hardly depend on a column with a small spread: delta and b are nearly collinear.

    In the logarithms of the two the posterior is a narrow, curved ridge.
    """
    rng = np.random.default_rng(0)
    n = 1500
    columns = np.column_stack([0.1 + 0.01 * rng.standard_normal(n), -np.ones(n)])
    a = (rng.random(n) < 0.2).astype(float)
    labels = Labels.collapse(columns, a, np.ones(n))
    return LogisticPosterior(labels, (LogNormal(100.0, 2**0.5), LogNormal(1.0, 2**0.5)))


def nested_sum(posterior, step=0.05, n=201):
    """Sum over z_1; at each, over a dense grid of z_2 around all that matters there."""
    logs, moments = [], []
    for first in np.arange(-8, 8, step):
        low, high = -12.0, 12.0
        for _ in range(5):
            z = np.column_stack([np.full(n, first), np.linspace(low, high, n)])
            f = posterior.log_density(z)
            near = np.flatnonzero(f > f.max() - 35)
            low, high = z[max(near[0] - 1, 0), 1], z[min(near[-1] + 1, n - 1), 1]
        mass = np.exp(f - f.max())
        beta = posterior.from_z(z)
        logs.append(f.max() + np.log(mass.sum() * (z[1, 1] - z[0, 1])))
        moments.append(np.concatenate([mass @ beta, mass @ beta**2]) / mass.sum())
    mass = np.exp(np.array(logs) - max(logs))
    log_evidence = max(logs) + np.log(mass.sum() * step) - np.log(2 * np.pi)
    return log_evidence, mass @ np.array(moments) / mass.sum()


def test_grid_along_a_narrow_curved_ridge_matches_nested_sum():
    posterior = ridge()
    log_evidence, moments = nested_sum(posterior)
    sd = np.sqrt(moments[2:] - moments[:2] ** 2)
    result = integrate(posterior, np.zeros(2))
    assert isinstance(result, GridConditional)
    assert abs(result.log_evidence - log_evidence) < 3e-3
    assert (np.abs(result.moments[:2] - moments[:2]) < 5e-3 * sd).all()
    np.testing.assert_allclose(np.sqrt(result.moments[2:] - result.moments[:2] ** 2), sd, rtol=5e-3)
    uniforms = np.random.default_rng(1).random((100_000, 3))
    draws = posterior.from_z(result.cells().at(uniforms))
    assert (np.abs(draws.mean(0) - moments[:2]) < 0.02 * sd).all()
    np.testing.assert_allclose(draws.std(0), sd, rtol=0.03)


def test_cells_without_budget_stop_and_say_so():
    posterior = ridge()
    modes = posterior.modes(posterior.starts()[:1])
    result = integrate_by_cells(posterior, modes, most_terms=1.0)
    assert result.out_of_budget
    assert result.n_terms > 1
