"""Fine-tuning of the pair network on graphs of one kind."""

from functools import partial

import jax
import numpy as np
import pytest

from edgebelief import GraphLearner, load
from edgebelief.amortise.cases import Case, distances_between
from edgebelief.amortise.inputs import CHANNELS, FACTS
from edgebelief.amortise.networkfile import arrays_of
from edgebelief.amortise.tune import tune
from edgebelief.data import ErdosRenyi, adjacency_of, smooth_signals
from edgebelief.errors import InputError, SettingError
from edgebelief.estimators import pretrained
from edgebelief.networks import PairNetwork, PairShape

N = 8
SHAPE = PairShape(len(CHANNELS), len(FACTS), width=8, depth=1, heads=4)
ENSEMBLE = ErdosRenyi(0.4)
UPPER = np.triu_indices(N, 1)


@pytest.fixture(scope="module")
def small():
    return PairNetwork.random(jax.random.key(0), SHAPE)


def draw(step, n_graphs):
    """Draw Gaussian signals whose correlation is 0.9 on edges of a random matching."""
    rng = np.random.default_rng([5, step])
    cases = []
    for _ in range(n_graphs):
        order, x = rng.permutation(N), rng.normal(size=(50, N))
        labels = np.zeros((N, N))
        for i, j in order.reshape(-1, 2):
            x[:, j] = 0.9 * x[:, i] + 0.4 * x[:, j]
            labels[i, j] = labels[j, i] = 1
        cases.append(Case(distances_between(x, False), x, 50.0, False, labels[UPPER], "matching"))
    return cases


HELD_OUT = draw(10**6, 40)
# One edge of seven pairs at each node.
BASE = -N / 2 * np.log(1 / 7) - (N * (N - 1) / 2 - N / 2) * np.log(6 / 7)


def test_a_network_learns_what_graphs_of_a_kind_are_like(small):
    tuned = tune(draw, HELD_OUT, steps=60, start=small, rate=3e-2)
    assert tuned.is_better
    assert tuned.after < BASE / 3 < tuned.before
    assert tuned.n_graphs == 60 * 64


def test_the_same_draws_give_the_same_network(small):
    one, two = (tune(draw, HELD_OUT[:4], steps=2, start=small, rate=1e-2) for _ in range(2))
    for x, y in zip(*map(jax.tree.leaves, (one.network, two.network)), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_weights_are_those_that_a_file_keeps(small):
    tuned = tune(draw, HELD_OUT[:4], steps=3, start=small, rate=1e-2)
    kept = arrays_of(tuned.network).values()
    for x, y in zip(jax.tree.leaves(tuned.network), kept, strict=True):
        np.testing.assert_array_equal(x, y.astype(np.float32))


def test_a_network_that_is_no_better_is_not_kept(small):
    def wrong(step, n_graphs):
        return [case._replace(labels=1 - case.labels) for case in draw(step, n_graphs)]

    tuned = tune(wrong, HELD_OUT, steps=5, start=small, rate=1e-2)
    assert not tuned.is_better
    assert tuned.network is small


def test_a_simulation_that_is_not_finite_is_refused(small):
    def infinite(step, n_graphs):
        return [case._replace(e=case.e * np.nan) for case in draw(step, n_graphs)]

    with pytest.raises(InputError, match="not finite"):
        tune(infinite, HELD_OUT[:2], steps=1, start=small)


@pytest.fixture(scope="module")
def learner(small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained, "tune", partial(tune, start=small, rate=3e-2))
        return GraphLearner.simulated(
            ENSEMBLE, n_nodes=N, n_signals=100, n_graphs=30, network="pair", steps=40
        )


def test_a_simulated_learner_has_the_tuned_network(learner, tmp_path):
    graph = ENSEMBLE.sample(2, N)
    signals = smooth_signals(3, graph, 100)
    p = learner.predict_proba(1000 * signals)  # on another scale than those simulated
    a = adjacency_of(graph)[UPPER] > 0
    assert p[UPPER][a].mean() > p[UPPER][~a].mean() + 0.1
    figures = learner.posterior_.verdict.figures
    assert figures["NLL after tuning"] < figures["NLL before tuning"]
    (assumption,) = learner.posterior_.verdict.assumptions
    assert "lowered the NLL" in assumption
    assert str(ENSEMBLE) in assumption
    learner.save(tmp_path / "tuned.eb")
    again = load(tmp_path / "tuned.eb")
    np.testing.assert_array_equal(again.predict_proba(1000 * signals), p)
    assert learner.report(tmp_path / "tuned.html", signals).exists()


def test_it_compares_data_with_those_simulated(learner):
    same = smooth_signals(3, ENSEMBLE.sample(2, N), 100)
    other = same[:, :1] * np.arange(1, N + 1)  # copies of one signal
    p = [learner.typicality(x)["p"][0] for x in (same, other)]
    assert p[0] > 0.05 > p[1]


def test_tuning_that_does_not_help_leaves_the_network_that_ships():
    """No step: no better."""
    learner = GraphLearner.simulated(
        ENSEMBLE, n_nodes=N, n_signals=100, n_graphs=4, network="pair", steps=0
    )
    assert "undone" in learner.posterior_.verdict.assumptions[0]
    signals = smooth_signals(3, ENSEMBLE.sample(2, N), 100)
    shipped = GraphLearner.pretrained()
    np.testing.assert_array_equal(learner.predict_proba(signals), shipped.predict_proba(signals))
    assert "surprise" in learner.typicality(signals)  # its alarm


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(SettingError, match="number of signals"):
        GraphLearner.simulated(ENSEMBLE, n_nodes=N, network="pair")
    with pytest.raises(SettingError, match="steps"):
        GraphLearner.simulated(ENSEMBLE, n_nodes=N, n_signals=9, steps=3)
