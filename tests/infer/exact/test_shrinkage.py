"""Typical scales of groups of coefficients."""

import numpy as np
from scipy.special import expit

from edgebelief.infer import half_normal, lognormal
from edgebelief.infer.exact.regression import Labels, LogisticPosterior
from edgebelief.infer.exact.shrinkage import Shrinkage


def test_terms_that_are_noise_keep_small_scales_and_true_ones_grow(rng):
    """Logistic labels of one column out of three groups."""
    x = rng.normal(size=(4000, 3))
    labels = np.where(rng.random(4000) < expit(2 * x[:, 0]), 1.0, -1.0)
    rows = labels[:, None] * np.column_stack([np.zeros(4000), -np.ones(4000), x])
    marginals = (lognormal(1.0, 1.0), lognormal(1.0, 1.0))
    start = Shrinkage(marginals, (None, None), np.arange(3), np.full(3, 0.2), half_normal(0.5))
    posterior = LogisticPosterior(Labels(rows, np.ones(4000)), marginals, start.sds)
    scales = start.typical(posterior).scales
    assert scales[0] > 0.5
    assert (scales[1:] < 0.2).all()
