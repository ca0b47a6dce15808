"""How good the additive readout is: every promise of the documentation, measured."""

import json

import numpy as np
import pytest
from reproduction.item import AUTHORS_GRAPHS
from reproduction.models import authors_graphs

from edgebelief import GraphLearner, metrics
from edgebelief.belief import predict, term_curves
from edgebelief.data import GraphDataset, RandomGeometric, mnist, sp500
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.readouts import OF_NETWORK, Additive, Affine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:Pareto k",
        "ignore:R-hat",
        "ignore:effective draws",
        "ignore:prior dominates",
        "ignore:quadrature",
    ),
]


def predicted(readout, train, test, key=0):
    return predict(Exact().run(key, EdgeModel(DPG(), readout), train), test)


def authors_split(folder):
    graphs = authors_graphs(folder / AUTHORS_GRAPHS)
    return graphs["train"], graphs["test"]


def test_published_split_of_the_papers_graphs(shared_data):
    predictions = predicted(Additive(), *authors_split(shared_data))
    assert metrics.nll(predictions) < 6.0
    assert metrics.error(predictions) < 0.0105


@pytest.mark.long
def test_published_split_with_relative_features(shared_data):
    train, test = authors_split(shared_data)
    learner = GraphLearner(readout=Additive(relative=True)).fit(train)
    assert learner.scale_ == "relative"
    assert -learner.score(test) < 6.7


def test_published_split_of_the_stocks(shared_data):
    assert metrics.nll(predicted(Additive(), *sp500(shared_data))) < 150


@pytest.mark.long
def test_halves_of_each_sector(shared_data):
    """20 random splits, of the same kind as the published one."""
    stored = json.loads((shared_data / "sp500_split.json").read_text())
    rows = (shared_data / "sp500_sectors.csv").read_text().splitlines()[1:]
    sector = dict(row.split(",")[:2] for row in rows)
    tickers = sorted(stored["tickers_train"] + stored["tickers_test"])
    assert set(tickers) <= set(sector)
    scores = []
    for draw in range(20):
        rng, train = np.random.default_rng(draw), []
        for group in sorted({sector[t] for t in tickers}):
            members = [t for t in tickers if sector[t] == group]
            train += list(rng.permutation(members)[: (len(members) + rng.integers(2)) // 2])
        parts = sp500(shared_data, (train, [t for t in tickers if t not in train]))
        scores.append([metrics.nll(predicted(r, *parts)) for r in (Affine(), Additive())])
    affine, additive = np.mean(scores, 0)
    assert additive < 0.92 * affine


@pytest.mark.long
def test_images_of_digits(shared_data):
    scores = []
    for draw in range(5):
        parts = mnist(draw, 10, 10, folder=shared_data)
        scores.append([metrics.nll(predicted(r, *parts)) for r in (Affine(), Additive())])
    affine, additive = np.mean(scores, 0)
    assert additive < 0.45 * affine


@pytest.mark.long
@pytest.mark.parametrize("n_graphs", [1, 2, 5])
def test_with_few_graphs_it_is_no_worse_than_the_papers(shared_data, n_graphs):
    train, test = authors_split(shared_data)
    gaps = []
    for draw in range(20):
        chosen = train[np.random.default_rng(draw).permutation(len(train))[:n_graphs]]
        scores = [metrics.nll(predicted(r, chosen, test, draw)) for r in (Affine(), Additive())]
        gaps.append(scores[1] - scores[0])
    assert np.mean(gaps) < np.std(gaps, ddof=1) / np.sqrt(20)


@pytest.mark.long
def test_relative_features_carry_over_to_larger_graphs():
    """Fitted at 20 nodes; at 40 and 80 the error is at most 1.5 times that of a refit."""
    ensemble, readout = RandomGeometric(0.32), Additive(features=OF_NETWORK, relative=True)

    def sample(key, n_graphs, n_nodes):
        return GraphDataset.sample(key, ensemble, n_graphs, n_nodes)

    small = GraphLearner(readout=readout).fit(sample(0, 30, 20))
    for n_nodes, n_train in ((40, 10), (80, 4)):
        test = sample(1, 10, n_nodes)
        again = GraphLearner(readout=readout).fit(sample(2, n_train, n_nodes))
        errors = [float(x.calibration_report(test).error) for x in (small, again)]
        assert errors[0] < 1.5 * errors[1]


def test_units_do_not_matter_to_relative_features():
    data = GraphDataset.sample(0, RandomGeometric(0.4), 12, 10, n_signals=100)
    probabilities = []
    for unit in (1.0, 1000.0):
        scaled = GraphDataset([unit * r.e for r in data], [r.a for r in data])
        learner = GraphLearner(readout=Additive(relative=True), depth=50).fit(scaled[:8])
        probabilities.append(learner.predict_proba(scaled[8:]))
    np.testing.assert_allclose(*probabilities, atol=1e-3)


@pytest.fixture(scope="module")
def noisy():
    """Distances from few signals, which leave many edges uncertain."""
    return GraphDataset.sample(5, RandomGeometric(0.4), 52, 15, n_signals=15)


def informed(data, covariate):
    covariates = [
        {"known": covariate(record, np.random.default_rng(t))} for t, record in enumerate(data)
    ]
    return GraphDataset(
        [r.e for r in data], [r.a for r in data], n_signals=15, covariates=covariates
    )


def scores_with(data):
    posterior = Exact().run(0, EdgeModel(DPG(depth=50), Additive()), data[:12])
    (curve,) = [c for c in term_curves(posterior) if c.name == "known"] or [None]
    return metrics.nll(predict(posterior, data[12:])).per_graph, curve


@pytest.fixture(scope="module")
def without(noisy):
    posterior = Exact().run(0, EdgeModel(DPG(depth=50), Additive()), noisy[:12])
    return metrics.nll(predict(posterior, noisy[12:])).per_graph


def test_a_covariate_that_matters_is_detected(noisy, without):
    def mostly_right(record, rng):
        return np.where(rng.random(record.a.size) < 0.2, 1 - record.a, record.a)

    scores, curve = scores_with(informed(noisy, mostly_right))
    assert curve.matters
    assert curve.low[-1] > 0 > curve.high[0]
    gain = without - scores
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_a_covariate_that_is_noise_vanishes(noisy, without):
    scores, curve = scores_with(informed(noisy, lambda record, rng: rng.normal(size=record.a.size)))
    assert not curve.matters
    loss = scores - without
    assert loss.mean() < loss.std(ddof=1) / np.sqrt(len(loss))
