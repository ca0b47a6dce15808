"""The quick fit: its mode by optimality conditions, its belief against Exact."""

import numpy as np
import pytest
from scipy.special import expit

from edgebelief.belief import predict
from edgebelief.belief.choose import compared, cross_fitted
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import EdgeModel, Exact, Laplace
from edgebelief.infer.exact.plugin import PlugIn, coefficients
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, TwoSlope

pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=10, n_signals=60)


@pytest.fixture(scope="module")
def additive(data):
    model = EdgeModel(DPG(depth=10), Additive(features=("z", "distance")))
    return prepare(0, model, data)


def test_belief_is_nearly_that_of_exact(data):
    model = EdgeModel(DPG(depth=10), TwoSlope())
    quick, exact = (engine.run(0, model, data) for engine in (Laplace(n_draws=2000), Exact()))
    beliefs = [predict(posterior, data) for posterior in (quick, exact)]
    p, q = (np.concatenate([belief.mean for belief in each]) for each in beliefs)
    assert np.sqrt(np.mean((p - q) ** 2)) < 0.04
    spread = [np.concatenate([belief.epistemic_sd for belief in each]).mean() for each in beliefs]
    assert spread[0] < spread[1]  # theta's doubt is left out


def test_the_mode_meets_the_conditions_of_a_penalised_regression(additive):
    """In the coordinates in which the prior is standard normal, the score of the labels is z."""
    quick = PlugIn(additive.model, additive.data, additive.counts, additive.network_z)
    fitted = quick.fit([record.known for record in additive.data])
    shrinkage, z = fitted.shrinkage, fitted.mode.z
    assert z.size == len(shrinkage.marginals) + shrinkage.groups.size
    columns, labels = np.concatenate(quick.columns), [record.a for record in additive.data]
    beta = coefficients(shrinkage, z[None])[0]
    score = columns.T @ (np.concatenate(labels) - expit(columns @ beta))
    slopes = [m.from_z_derivatives(x)[0] for m, x in zip(shrinkage.marginals, z, strict=False)]
    np.testing.assert_allclose(score * np.concatenate([slopes, shrinkage.sds]), z, atol=2e-3)


def test_labels_that_are_held_out_are_not_seen(additive):
    """Other values of the held-out labels change nothing."""
    data, known = additive.data, [np.zeros_like(r.known) if t == 2 else r.known
                                  for t, r in enumerate(additive.data)]  # fmt: skip
    turned = GraphDataset._of([r._replace(a=1 - r.a) if t == 2 else r for t, r in enumerate(data)])
    modes = [
        PlugIn(additive.model, each, additive.counts, additive.network_z).fit(known).mode.z
        for each in (data, turned)
    ]
    np.testing.assert_array_equal(*modes)


def test_probabilities_are_the_mean_over_draws(additive, rng):
    quick = PlugIn(additive.model, additive.data, additive.counts, additive.network_z)
    fitted = quick.fit([record.known for record in additive.data])
    many, few = (np.concatenate(quick.probabilities(fitted, rng, n)) for n in (4000, 200))
    assert np.abs(many - few).max() < 0.05
    beta = coefficients(fitted.shrinkage, fitted.draws(rng, 4000))
    expected = expit(np.concatenate(quick.columns) @ beta.T).mean(1)
    np.testing.assert_allclose(many, expected, atol=0.02)


def test_candidates_are_ranked_by_the_log_scores_of_held_out_labels(data, additive):
    problems = {"ten": additive, "one": prepare(0, EdgeModel(DPG(1)), data)}
    predictions = {name: cross_fitted(0, each, "graphs") for name, each in problems.items()}
    choice = compared(predictions, np.ones(len(data)))
    for name, found in choice.predictions.items():
        each = [
            np.log(np.where(r.a == 1, b.mean, 1 - b.mean)) for r, b in zip(data, found, strict=True)
        ]
        assert choice.table.loc[name, "elpd"] == pytest.approx(np.concatenate(each).sum())
    assert choice.best == choice.table["elpd"].idxmax()


def test_labels_that_follow_nothing_are_predicted_by_their_density(data, additive):
    rng = np.random.default_rng(0)
    noise = GraphDataset._of([r._replace(a=rng.permutation(r.a)) for r in data])
    found = cross_fitted(0, prepare(0, additive.model, noise), "graphs")
    p = np.concatenate([belief.mean for belief in found])
    a = np.concatenate([record.a for record in noise])
    density = np.full(a.size, a.mean())
    loss, of_density = (-np.log(np.where(a == 1, q, 1 - q)).mean() for q in (p, density))
    assert loss < 1.1 * of_density
    assert p.std() < 0.12
