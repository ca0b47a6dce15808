"""When a posterior and its prior are said to be in conflict."""

from types import SimpleNamespace

import numpy as np
import pytest

from edgebelief.infer import EdgeModel
from edgebelief.infer.engines.base import _against_prior
from edgebelief.networks import DPG, MIMO


def names_of(model, parameter, z):
    """Return the findings on draws that all lie at the prior's median, but for one scalar at z."""
    place = np.zeros((1, model.n_free))
    place[0, list(model.scalar_names).index(parameter)] = z
    fit = SimpleNamespace(params=model.from_z(place), weights=np.ones(1))
    figures = {}
    findings = list(_against_prior(model, fit, figures))
    assert figures[f"{parameter}: place in prior"] == pytest.approx(z, rel=1e-5)
    return [finding.name for finding in findings]


@pytest.mark.parametrize("parameter", ["theta", "b"])
@pytest.mark.parametrize(("z", "conflict"), [(-2.5, []), (-2.65, ["prior conflict"])])
def test_beyond_a_tail_of_one_percent_prior_and_data_are_in_conflict(parameter, z, conflict):
    """2.576 standard deviations: half a percent on each side."""
    model = EdgeModel(DPG(depth=2))
    assert names_of(model, parameter, z) == conflict
    assert names_of(model, parameter, -z) == conflict


def test_the_entries_of_a_vector_share_the_one_percent():
    """Of four: a quarter of a percent each, 3.02 standard deviations."""
    model = EdgeModel(MIMO(channels=2, depth=2))
    assert names_of(model, "theta[1]", 2.9) == []
    assert names_of(model, "theta[1]", 3.1) == ["prior conflict"]
