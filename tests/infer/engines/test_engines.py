"""What is true of every engine. A new one joins the list."""

import numpy as np
import pytest

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import MAP, NUTS, VI, EdgeModel, Exact, Fingerprint, Laplace, Modes, Posterior
from edgebelief.networks import DPG

ENGINES = [
    Exact(),
    Laplace(),
    MAP(),
    Modes(),
    pytest.param(NUTS(n_warmup=200, n_draws=500, target_accept=0.9), marks=pytest.mark.slow),
    pytest.param(VI(), marks=[pytest.mark.slow, pytest.mark.long]),
]
MODEL = EdgeModel(DPG(depth=10))

# Small data leave findings for some engines; what is tested here is the contract.
pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=8, n_nodes=8, n_signals=30)


@pytest.fixture(scope="module", params=ENGINES, ids=lambda engine: type(engine).__name__)
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def found(engine, data):
    return engine.run(0, MODEL, data)


@pytest.fixture(scope="module")
def exact(data):
    return Exact().run(0, MODEL, data)


def test_it_returns_a_posterior_that_says_where_it_comes_from(found, engine, data):
    assert isinstance(found, Posterior)
    assert found.engine == type(engine).__name__
    assert found.model is MODEL
    assert found.fingerprint == Fingerprint.of(data)
    assert found.weights.sum() == pytest.approx(1)
    assert "prior mass dead" in found.verdict.figures
    assert "posterior mass dead" in found.verdict.figures


def test_the_summary_has_the_agreed_rows_and_columns(found):
    summary = found.summary()
    assert list(summary.index) == ["theta", "delta", "b"]
    assert list(summary.columns) == ["mean", "sd", "q5", "q50", "q95"]
    assert np.isfinite(summary.to_numpy()).all()
    assert (summary["q5"] <= summary["q50"]).all()
    assert (summary["q50"] <= summary["q95"]).all()
    assert "verdict" in str(found)


def test_it_finds_the_posterior_that_exact_adds_up(found, exact):
    """Within half a posterior sd, point or not: the engines' own tests say how near."""
    centre = found.summary()["q50"]  # by the draws' weights
    for name, row in exact.summary().iterrows():
        low, high = row["q5"] - row["sd"], row["q95"]
        assert low < centre[name] < high


def test_draws_are_equally_weighted_and_follow_the_key(found):
    draws = found.draws(1, 200)
    assert set(draws) == set(MODEL.parameters)
    assert all(np.shape(values) == (200,) for values in draws.values())
    again = found.draws(1, 200)
    np.testing.assert_array_equal(draws["theta"], again["theta"])


def test_a_graph_of_no_weight_does_not_count(engine, data):
    """MAP and Exact exactly; the others draw, so to their noise."""
    weights = np.array([1.0] * 6 + [0.0] * 2)
    some = engine.run(0, MODEL, data, weights=weights).summary()["mean"]
    subset = engine.run(0, MODEL, data[:6]).summary()
    spread = Exact().run(0, MODEL, data[:6]).summary()["sd"]
    allowed = {"Exact": 0.02, "MAP": 0.02}.get(type(engine).__name__, 0.5)
    assert (np.abs(some - subset["mean"]) < allowed * spread).all()


def test_labels_are_needed(engine, data):
    with pytest.raises(ValueError, match="label"):
        engine.run(0, MODEL, GraphDataset([record.e for record in data]))
