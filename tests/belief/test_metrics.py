import numpy as np
import pytest
from sklearn.metrics import log_loss

from edgebelief import metrics
from edgebelief.belief import EdgeBelief, Predictions
from edgebelief.data import GraphDataset
from edgebelief.infer import EdgeModel, Exact


def belief_of(mean, epistemic=0.0):
    mean = np.asarray(mean, float)
    return EdgeBelief.of(mean, epistemic)


@pytest.fixture
def predictions(rng):
    """Three graphs of two sizes, some labels unknown, one graph without any."""
    sizes = (10, 6, 10)
    labels = [rng.integers(0, 2, n).astype(float) for n in sizes]
    labels[0][::3] = np.nan
    labels[2] = None
    beliefs = [belief_of(rng.uniform(0.02, 0.98, n), 0.05) for n in sizes]
    data = GraphDataset([rng.uniform(1, 2, n) for n in sizes], labels)
    independent = [
        np.log(np.where(r.a == 1, b.mean, 1 - b.mean))[r.known].sum()
        for r, b in zip(data, beliefs, strict=True)
    ]
    return Predictions(data, beliefs, np.array(independent))


def pooled(predictions):
    known = [record.known for record in predictions.data]
    a = np.concatenate([r.a[k] for r, k in zip(predictions.data, known, strict=True)])
    p = np.concatenate([b.mean[k] for b, k in zip(predictions, known, strict=True)])
    return a, p


def test_nll_of_a_point_belief_is_the_log_loss(predictions):
    score = metrics.nll(predictions)
    a, p = pooled(predictions)
    assert np.isnan(score.per_graph[2])
    assert np.nansum(score.per_graph) == pytest.approx(log_loss(a, p, normalize=False))
    assert float(score) == pytest.approx(np.nanmean(score.per_graph))


def test_brier_scores_differ_by_the_epistemic_variance(predictions):
    a, p = pooled(predictions)
    assert float(metrics.brier_of_mean(predictions)) == pytest.approx(np.mean((p - a) ** 2))
    difference = metrics.brier(predictions) - metrics.brier_of_mean(predictions)
    assert difference == pytest.approx(0.05**2)


def test_error_is_pooled_over_edges_and_known_per_graph(predictions):
    a, p = pooled(predictions)
    score = metrics.error(predictions)
    assert float(score) == pytest.approx(np.mean((p > 0.5) != (a == 1)))
    n = [record.known.sum() for record in predictions.data]
    assert np.nansum(score.per_graph * n) == pytest.approx(float(score) * sum(n))


def test_calibration_bins_are_those_of_the_definition(predictions):
    a, p = pooled(predictions)
    confidence, right = np.maximum(p, 1 - p), (p > 0.5) == (a == 1)
    curve = metrics.calibration_curve(predictions)
    total = 0.0
    for k in range(10):
        low, high = 0.5 + 0.05 * k, 0.5 + 0.05 * (k + 1)
        inside = (confidence > low) & (confidence <= high)
        assert curve.count[k] == inside.sum()
        if inside.any():
            assert curve.accuracy[k] == pytest.approx(right[inside].mean())
            assert curve.confidence[k] == pytest.approx(confidence[inside].mean())
            total += abs(right[inside].mean() - confidence[inside].mean()) * inside.mean()
        else:
            assert np.isnan(curve.accuracy[k])
    assert float(metrics.ece(predictions)) == pytest.approx(total)


def test_edges_of_bins_belong_below_and_one_half_to_the_first():
    data = GraphDataset([np.ones(6)], [[1, 0, 1, 1, 0, 1]])
    mean = np.array([0.5, 0.5, 0.55, 0.75, 0.25, 1.0])
    curve = metrics.calibration_curve(Predictions(data, [belief_of(mean)], np.zeros(1)), n_bins=2)
    np.testing.assert_array_equal(curve.count, [5, 1])


def test_correlations_are_over_all_present_and_absent_edges(predictions):
    a, p = pooled(predictions)
    off, sd = np.abs(p - a), np.sqrt(p * (1 - p))
    found = metrics.uncertainty_error_correlation(predictions)
    for value, which in ((found.all, a >= 0), (found.present, a == 1), (found.absent, a == 0)):
        assert value == pytest.approx(np.corrcoef(off[which], sd[which])[0, 1])


def test_constant_belief_has_no_correlation():
    data = GraphDataset([np.ones(3)], [[1, 0, 1]])
    found = metrics.uncertainty_error_correlation(
        Predictions(data, [belief_of([0.5] * 3)], np.zeros(1))
    )
    assert np.isnan(found.all)


def test_what_cannot_be_scored_is_refused():
    data = GraphDataset([np.ones(3)])
    blank = Predictions(data, [belief_of([0.5] * 3)], np.zeros(1))
    with pytest.raises(ValueError, match="nothing to score"):
        metrics.nll(blank)
    with pytest.raises(TypeError, match="what `predict` returns"):
        metrics.error(np.ones(3))


def test_published_test_scores(shared_data):
    """The answer key of the authors' RG(0.32) data: altered prior, D = 200."""
    file = np.load(shared_data / "rg032.npz")
    train, test = (
        GraphDataset(file[f"{part}_distances"], file[f"{part}_adjacency"])
        for part in ("train", "test")
    )
    posterior = Exact().run(0, EdgeModel(), train)
    assert float(metrics.nll(posterior, test)) == pytest.approx(10.334, abs=0.005)
    assert metrics.nll(posterior, test).std == pytest.approx(5.376, abs=0.01)
    assert float(metrics.brier(posterior, test)) == pytest.approx(0.01286, abs=2e-5)
    assert float(metrics.error(posterior, test)) == pytest.approx(0.01574, abs=5e-6)
    assert float(metrics.ece(posterior, test)) == pytest.approx(0.0034, abs=2e-4)


def test_a_spread_over_graphs_is_said_where_there_are_several():
    from edgebelief.belief import CalibrationReport, EdgeBelief, Predictions
    from edgebelief.data import GraphDataset

    def text(*labels):
        data = GraphDataset([[1.0, 2.0, 3.0]] * len(labels), labels)
        beliefs = [EdgeBelief.of([0.8, 0.1, 0.1])] * len(labels)
        scores = [-0.4 - t for t in range(len(labels))]
        return str(CalibrationReport.of(Predictions(data, beliefs, scores)))

    assert text([1, 0, 0]).startswith("NLL 0.4 a graph\n")
    assert text([1, 0, 0], [1, 0, 0]).startswith("NLL 0.9 a graph (sd 0.5)\n")
