"""A mixture is the weighted mean of its parts, each as if it had been fitted alone."""

from dataclasses import replace

import numpy as np
import pytest

from edgebelief.belief import predict, term_importance
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.errors import SettingError
from edgebelief.infer import EdgeModel, Exact, Laplace, Mixture
from edgebelief.infer.engines import mixture
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG
from edgebelief.readouts import Additive

pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")
PARTS, SHARES = ((), ("z",), ("rank sum", "interactions")), (0.2, 0.3, 0.5)


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=6, n_nodes=8, n_signals=30)


@pytest.fixture(scope="module")
def model(data):
    readout = Additive(features=("z", "rank sum", "distance"), interactions=True)
    return prepare(0, EdgeModel(DPG(depth=10), readout), data).model


def test_its_belief_is_the_mean_of_the_beliefs_of_its_parts(model, data):
    posterior = Mixture(PARTS, SHARES, Laplace(n_draws=400)).run(0, model, data)
    expected = [0.0] * len(data)
    parts = np.cumsum([0, *(max(round(s * 400), 400) for s in SHARES)])
    for k, (names, share) in enumerate(zip(PARTS, SHARES, strict=True)):
        part = model.with_terms(names)
        rows = slice(parts[k], parts[k + 1])
        assert posterior.weights[rows].sum() == pytest.approx(share)
        draws = {name: posterior.params[name][rows] for name in part.parameters}
        for name, slices in (
            ("curves", mixture.coefficient_slices),
            ("scales", mixture.scale_slices),
        ):
            where = slices(model.readout.terms)
            kept = [posterior.params[name][rows, where[t.name]] for t in part.readout.terms]
            if kept:
                draws[name] = np.concatenate(kept, 1)
        alone = Laplace(n_draws=400).run(0, part, data)
        alone = predict(replace(alone, params=draws), data)
        expected = [old + share * each.mean for old, each in zip(expected, alone, strict=True)]
    for mine, other in zip(predict(posterior, data), expected, strict=True):
        np.testing.assert_allclose(mine.mean, other, atol=1e-5)


def test_terms_that_a_part_does_not_have_are_zero(model, data):
    posterior = Mixture(PARTS, SHARES, Laplace()).run(0, model, data)
    where = mixture.coefficient_slices(model.readout.terms)
    without = (posterior.params["curves"][:, where["interactions"]] == 0).all(1)
    assert posterior.weights[without].sum() == pytest.approx(0.5)
    assert (posterior.params["curves"][:, where["distance"]] == 0).all()


def test_its_figures_are_the_worst_of_its_parts(model, data):
    posterior = Mixture(PARTS, SHARES, Exact(n_draws=200)).run(0, model, data)
    alone = [Exact(n_draws=400).run(0, model.with_terms(part), data) for part in PARTS[1:]]
    figures = posterior.verdict.figures
    assert figures["parts"] == 3
    assert "effective draws" in figures
    assert {"R-hat", "acceptance"} <= set(alone[0].verdict.figures) & set(figures)


def test_importance_leaves_a_term_out_of_every_part(model, data):
    posterior = Mixture(PARTS, SHARES, Laplace()).run(0, model, data)
    table = term_importance(0, posterior, data, cv="graphs", n_folds=2)
    assert set(table["term"]) == {term.name for term in model.readout.terms}
    losses = dict(zip(table["term"], table["loss"], strict=True))
    assert losses["distance"] == pytest.approx(0, abs=0.5)  # no part has it: noise of draws alone


@pytest.mark.parametrize(
    ("shares", "word"), [((0.5,), "parts"), ((0.5, 0.6), "add up"), ((1.0, 0.0), "above 0")]
)
def test_shares_are_shares(shares, word):
    with pytest.raises(SettingError, match=word):
        Mixture(((), ("z",)), shares)
