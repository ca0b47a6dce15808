"""Typicality: what is compared, and the file that it is compared with."""

import warnings

import numpy as np
import pytest

from edgebelief.amortise import LostWarning, beliefs, load_alarm, save_alarm
from edgebelief.amortise.alarm import FILE, MOST_BYTES, shipped
from edgebelief.amortise.calibrate import _monotone
from edgebelief.amortise.cases import Case, world_cases
from edgebelief.amortise.predict import evaluate
from edgebelief.amortise.strangers import FIT, TEST, draw_stranger
from edgebelief.amortise.typical import nearest
from edgebelief.amortise.weights import SHA256, pretrained
from edgebelief.amortise.world import WORLDS
from edgebelief.data import ErdosRenyi, smooth_signals
from edgebelief.errors import InputError, SettingError


def judged(case: Case):
    e = case.e / case.e.max()
    arguments = e, case.signals, case.n_signals, case.is_correlation
    return shipped().judge(*arguments, *evaluate(pretrained(), *arguments))


@pytest.fixture(scope="module")
def signals():
    return smooth_signals(1, ErdosRenyi(0.3).sample(0, 12), 200)


def lost_signals():
    """Squared distances far from any graph's: two heaps of nodes, and one node far away."""
    x = np.zeros((40, 12))
    x[:, 6:] = 1.0
    x[:, 0] = 1e3
    return x + 1e-3 * np.random.default_rng(0).normal(size=x.shape)


@pytest.mark.slow
def test_false_alarms_are_few():
    """Fresh draws of a part of the world: of 60, at most 9 (p = 0.002 if the rate is 5 %)."""
    cases = world_cases(987654, 60, (12, 12), WORLDS["everything"])
    found = [judged(case) for case in cases]
    assert sum(t.is_lost for t in found) <= 9
    p = np.array([t.p_value for t in found])
    assert 0.3 < p.mean() < 0.7
    assert (np.array([t.surprise for t in found])[p > 0.1] < 1).all()


def test_relabelling_the_nodes_changes_nothing(signals, rng):
    order = rng.permutation(12)
    one, two = (beliefs(signals=x).typicality for x in (signals, signals[:, order]))
    np.testing.assert_allclose(one.surprise, two.surprise, atol=0.02)
    assert [entry.name for entry in one.unusual] == [entry.name for entry in two.unusual]


def test_another_unit_changes_nothing(signals):
    one, two = (beliefs(signals=x).typicality for x in (signals, 1000 * signals))
    np.testing.assert_allclose(one.surprise, two.surprise, atol=0.02)


def test_who_is_lost_is_told_why_and_believes_less():
    x = lost_signals()
    with pytest.warns(LostWarning, match="unlike the world"):
        belief = beliefs(signals=x)
    assert belief.typicality.is_lost
    assert belief.typicality.p_value < 0.05
    first = belief.typicality.unusual[0]
    assert not first.low <= first.value <= first.high
    assert belief.slope < 1
    with pytest.warns(LostWarning, match="not tempered"):
        raw = beliefs(signals=x, temper=False)
    assert raw.slope == 1
    assert np.ptp(belief.logit) < np.ptp(raw.logit)


def test_a_stated_density_that_contradicts_is_not_obeyed_silently(signals):
    """The network is sure of a share of 0.3 or so, and the data are of its world."""
    sure = beliefs(signals=signals, density=(0.2, 0.45))
    assert sure.contradiction == 0
    assert not sure.is_lost
    with pytest.warns(LostWarning, match="far from what the network finds in the data, 0.") as told:
        other = beliefs(signals=signals, density=(0.01, 0.02))
    assert "Say what share" not in str(told[0].message)
    assert other.is_lost
    assert not other.typicality.is_lost
    assert other.slope < sure.slope
    assert other.probability.mean() < 0.7 * sure.probability.mean()


def test_edges_are_independent_given_head_and_level():
    """The fields of a belief are enough to draw graphs with its probabilities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWarning)
        belief = beliefs(signals=lost_signals(), density=(0.05, 0.2))
    x = belief.centre + belief.slope * (belief.logits.astype(float) - belief.centre)
    p = 1 / (1 + np.exp(-x[..., None] - belief.levels))
    np.testing.assert_allclose(p.mean(1) @ belief.level_weights, belief.probability)


def test_a_density_is_refused_where_nothing_is_tempered(signals):
    with pytest.raises(SettingError, match="density"):
        beliefs(signals=signals, density=0.2, temper=False)
    other = pretrained()
    with pytest.raises(SettingError, match="density"):
        beliefs(signals=signals, density=0.2, network=other)
    assert beliefs(signals=signals, network=other).typicality is None


def test_the_file_is_small_and_of_these_weights():
    assert FILE.stat().st_size <= MOST_BYTES
    assert load_alarm(FILE, SHA256).rule.slope[0] == 1
    with pytest.raises(InputError, match="other weights"):
        load_alarm(FILE, "0" * 64)


def test_a_damaged_file_is_refused(tmp_path):
    content = bytearray(FILE.read_bytes())
    content[-1000] ^= 1
    for name, wrong in (("flipped", bytes(content)), ("short", bytes(content[:5000])), ("no", b"")):
        path = tmp_path / name
        path.write_bytes(wrong)
        with pytest.raises(InputError, match="damaged"):
            load_alarm(path, SHA256)
    with pytest.raises(InputError, match="missing"):
        load_alarm(tmp_path / "nowhere", SHA256)


def test_what_is_saved_is_loaded(tmp_path):
    path = tmp_path / "copy"
    save_alarm(path, shipped(), SHA256)
    assert path.read_bytes() == FILE.read_bytes()


def test_strangers_are_apart_and_the_same_for_the_same_seed():
    assert len(FIT) >= 4
    assert len(TEST) >= 4
    assert not set(FIT) & set(TEST)
    for name in FIT | TEST:
        one, two = (draw_stranger(name, 5) for _ in range(2))
        np.testing.assert_array_equal(one.e, two.e)
        n = len(one.e)
        assert one.labels.shape == (n * (n - 1) // 2,)
        assert np.isfinite(one.e).all()
        assert set(np.unique(one.labels)) <= {0.0, 1.0}


def test_the_nearest_draws_are_of_the_same_kind():
    known = np.array([[3.0, 5, 0, 0, 0, 1], [3.0, 5, 0, 0, 1, 1], [3.4, 5, 0, 0, 0, 1]])
    assert nearest(known, known[0], 2).tolist() == [0, 2]


def test_the_rule_is_the_best_monotone_one(rng):
    """Against all monotone choices of three knots, three slopes and two doubts."""
    table = rng.normal(size=(3, 3, 2))
    values = [(i, j) for i in range(3) for j in range(2)]
    best = min(
        sum(table[k][at] for k, at in enumerate((a, b, c)))
        for a in values
        for b in values
        for c in values
        if a[0] <= b[0] <= c[0] and a[1] <= b[1] <= c[1]
    )
    chosen = _monotone(table)
    np.testing.assert_allclose(sum(table[k][at] for k, at in enumerate(chosen)), best)
