"""Belief in one graph by the shipped network."""

import threading

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from edgebelief.amortise import beliefs, predict
from edgebelief.data import ErdosRenyi, adjacency_of, distances, smooth_signals
from edgebelief.edges import Complete
from edgebelief.errors import InputError, NoRoom, SettingError

N_NODES = 10

# Some inputs are hostile; `test_alarm.py` is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.amortise.predict.LostWarning")


@pytest.fixture(scope="module")
def graph():
    return ErdosRenyi(0.3).sample(0, N_NODES)


@pytest.fixture(scope="module")
def signals(graph):
    return smooth_signals(1, graph, 400)


def test_edges_are_believed_in(graph, signals):
    belief = beliefs(signals=signals)
    a = Complete(N_NODES).to_vector(adjacency_of(graph))
    assert belief.probability[a == 1].mean() > belief.probability[a == 0].mean() + 0.3


def test_probability_and_doubt_are_those_of_the_heads(signals):
    belief = beliefs(distances(signals), n_signals=400, temper=False)
    p = expit(belief.logits.astype(float))
    np.testing.assert_allclose(belief.probability, p.mean(1))
    np.testing.assert_allclose(belief.epistemic_sd, p.std(1))
    yes, no = belief.log_probabilities
    np.testing.assert_allclose(np.exp(yes), p.mean(1))
    np.testing.assert_allclose(np.exp(no), 1 - p.mean(1), rtol=1e-6)
    np.testing.assert_allclose(belief.logit, np.log(p.mean(1) / (1 - p.mean(1))), rtol=1e-4)


def test_logits_of_tiny_probabilities_are_not_rounded(signals):
    belief = beliefs(distances(signals), temper=False)
    sure = belief._replace(logits=np.full_like(belief.logits, 80.0))
    np.testing.assert_allclose(sure.logit, 80.0)


def test_the_network_reads_what_it_was_trained_on(signals):
    """The logits of prediction are those of the training's own input function."""
    from edgebelief.amortise import pretrained
    from edgebelief.amortise.inputs import Known, inputs_of

    e = Complete(N_NODES).to_matrix(distances(signals)).astype(np.float32)
    known = Known(*(np.float32(x) for x in (400, 0, 1)))
    inputs = jax.jit(inputs_of)(e, np.corrcoef(signals.T), known, np.ones(N_NODES, np.float32))
    logits = jax.jit(pretrained().__call__)(*inputs).logits
    i, j = np.triu_indices(N_NODES, 1)
    np.testing.assert_allclose(beliefs(signals=signals).logits, logits[i, j], atol=0.02)


def test_signals_alone_are_signals_and_their_distances(signals):
    both = beliefs(distances(signals), signals, 400)
    np.testing.assert_array_equal(beliefs(signals=signals).logits, both.logits)
    np.testing.assert_array_equal(beliefs(signals=pd.DataFrame(signals)).logits, both.logits)
    e = Complete(N_NODES).to_matrix(distances(signals))
    np.testing.assert_array_equal(beliefs(e, signals).logits, both.logits)


def test_relabelling_the_nodes_relabels_beliefs(signals, rng):
    order = rng.permutation(N_NODES)
    _, positions = Complete(N_NODES).relabel(order)
    one, two = beliefs(signals=signals), beliefs(signals=signals[:, order])
    np.testing.assert_allclose(one.probability[positions], two.probability, atol=2e-3)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_unit_of_distances_changes_nothing(signals, scale):
    e = distances(signals)
    one, two = beliefs(e, n_signals=400), beliefs(scale * e, n_signals=400)
    np.testing.assert_allclose(one.logits, two.logits, atol=0.01)


def test_log_distances_are_taken_back_whatever_was_added(signals):
    plain = beliefs(distances(signals), n_signals=400)
    logarithms = distances(signals, "log-euclidean") - 3
    other = beliefs(logarithms, n_signals=400, metric="log-euclidean")
    np.testing.assert_allclose(plain.logits, other.logits, atol=0.01)


@pytest.mark.parametrize("n", [12, 20])
def test_filling_up_changes_nothing(signals, n, monkeypatch):
    expected = beliefs(signals=signals).logits
    monkeypatch.setattr(predict, "SIZES", (n,))
    np.testing.assert_allclose(beliefs(signals=signals).logits, expected, atol=0.02)


def test_there_are_few_compilations():
    sizes = {predict.padded(n) for n in range(2, 501)}
    assert len(sizes) == 11
    assert all(n <= predict.padded(n) <= max(1.7 * n, 12) for n in range(2, 2000))


def test_gaps_are_left_out_pair_by_pair(graph, signals, rng):
    gappy = np.where(rng.uniform(size=signals.shape) < 0.1, np.nan, signals)
    a = Complete(N_NODES).to_vector(adjacency_of(graph))
    for metric in ("sqeuclidean", "correlation"):
        p = beliefs(signals=gappy, metric=metric).probability
        assert p[a == 1].mean() > p[a == 0].mean()


def numbers(belief):
    """The fields of a belief, and the surprise in place of the typicality."""
    fields = belief._asdict()
    typicality = fields.pop("typicality")
    return [*fields.values(), 0.0 if typicality is None else typicality.surprise]


def hostile(n):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, n))
    pairs = n * (n - 1) // 2
    wild = np.exp(300 * rng.normal(size=pairs))
    return {
        "zero": np.zeros(pairs),
        "constant": np.full(pairs, 7.0),
        "one outlier": np.r_[1e300, np.ones(pairs - 1)],
        "one zero": np.r_[0.0, np.ones(pairs - 1)],
        "wild": wild,
        "subnormal": np.full(pairs, 5e-324),
        "few signals": distances(x),
        "rounding": np.r_[1.0, np.full(pairs - 1, -1e-17)],
        "indefinite": distances(rng.normal(size=(4, n)), "correlation"),
    }


@pytest.mark.parametrize("n", [2, 3, N_NODES])
@pytest.mark.parametrize("name", hostile(3))
def test_hostile_distances_give_probabilities(name, n):
    e = hostile(n)[name]
    for number in (None, 1, np.inf):
        for metric in ("sqeuclidean", "correlation", "log-euclidean"):
            with np.errstate(over="ignore"):
                belief = beliefs(e, n_signals=number, metric=metric)
            assert all(np.isfinite(part).all() for part in numbers(belief))
            assert ((belief.probability >= 0) & (belief.probability <= 1)).all()


@pytest.mark.parametrize("n", [2, 3, N_NODES])
def test_hostile_signals_give_probabilities(n, rng):
    x = rng.normal(size=(5, n))
    constant, twins = x.copy(), x.copy()
    constant[:, 0] = 3.0
    twins[:, 1] = -twins[:, 0]
    for signals in (x[:1], x[:2], constant, twins, 1e140 * x, 1e-150 * x, 1e12 + x):
        belief = beliefs(signals=signals)
        assert all(np.isfinite(part).all() for part in numbers(belief))
    assert np.isfinite(beliefs(signals=twins, metric="correlation").logits).all()


def test_the_callers_precision_changes_nothing(signals):
    expected = beliefs(signals=signals).logits
    with jax.enable_x64(True):
        np.testing.assert_array_equal(beliefs(signals=signals).logits, expected)


def test_calls_from_threads_do_not_wait_for_each_other_for_ever(signals):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(beliefs(signals=signals).logits))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({}, InputError, "neither distances nor signals"),
        ({"distances": [-1.0, 1.0, 2.0]}, InputError, "metric='log-euclidean'"),
        ({"distances": [1.0, np.nan, 2.0]}, InputError, "nan"),
        ({"distances": [1.0, np.inf, 2.0]}, InputError, "inf"),
        ({"distances": [1.0, 1.0]}, InputError, "3, 6, 10"),
        ({"distances": [1.0, 1.0, 2.0], "n_signals": 0}, SettingError, "at least 1"),
        ({"distances": [1.0, 1.0, 2.0], "n_signals": np.nan}, SettingError, "at least 1"),
        ({"distances": [1.0, 1.0, 2.0], "metric": "cosine"}, SettingError, "cosine"),
        ({"distances": [1.0, 1.0, 2.0], "signals": np.ones((4, 2))}, InputError, "2 columns"),
        ({"signals": np.ones((4, 3)), "metric": "correlation"}, InputError, "constant"),
    ],
)
def test_bad_input_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        beliefs(**arguments)


def test_a_graph_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("edgebelief.room.available_memory", lambda: 1e6)
    with pytest.raises(NoRoom, match="the pair network on 20 nodes"):
        beliefs(np.ones(190))
