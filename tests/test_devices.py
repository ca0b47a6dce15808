"""The rule, with lists of devices that this machine does not have."""

from typing import NamedTuple

import jax
import pytest

from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.devices import VARIABLE, WORTHWHILE, choose, chosen, current, updates, using
from edgebelief.errors import SettingError
from edgebelief.infer import EdgeModel, Exact
from edgebelief.infer.engines import base
from edgebelief.networks import DPG


class Fake(NamedTuple):
    platform: str
    id: int


GPU, SECOND, CPU = Fake("gpu", 0), Fake("gpu", 1), Fake("cpu", 0)
ALL = [GPU, SECOND, CPU]
SMALL, LARGE = WORTHWHILE / 2, WORTHWHILE * 2


def test_small_work_stays_on_the_processor():
    assert choose(SMALL, ALL).device is CPU
    assert choose(LARGE, ALL).device is GPU
    assert choose(WORTHWHILE, ALL).device is GPU
    assert "few" in str(choose(SMALL, ALL))
    assert "many" in str(choose(LARGE, ALL))


def test_what_was_measured_is_decided_as_it_was_measured():
    assert choose(updates(200, 100 * 190), ALL).device is CPU
    assert choose(updates(200, 10 * 19_900), ALL).device is GPU
    assert choose(updates(None, 10 * 19_900), ALL).device is GPU


def test_settings_come_before_sizes(monkeypatch):
    monkeypatch.setenv(VARIABLE, "processor")
    assert choose(LARGE, ALL).device is CPU
    with using("accelerator"):  # before the variable
        assert choose(SMALL, ALL).device is GPU
    with using("auto"):
        assert choose(LARGE, ALL).device is GPU
    assert choose(LARGE, ALL).device is CPU
    monkeypatch.setenv(VARIABLE, "tpu")
    with pytest.raises(SettingError, match=f"{VARIABLE} must be one of auto, processor, acc"):
        choose(LARGE, ALL)
    with pytest.raises(SettingError, match="kind"), using("gpu"):
        pass


def test_the_setting_of_jax_comes_before_all():
    (device,) = jax.devices("cpu")[:1]
    with jax.default_device(device), using("accelerator"):
        assert choose(LARGE, ALL).device is device


def test_without_an_accelerator_there_is_nothing_to_decide():
    for devices in ([CPU], None):
        choice = choose(LARGE, devices)
        assert choice.device is None
        with chosen(choice):
            assert current() is None


def test_a_fit_runs_where_it_was_decided_and_says_so(monkeypatch):
    data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=6, n_signals=50)
    (device, seen) = jax.devices("cpu")[0], []

    def fake(work):
        seen.append(work)
        return choose(work, [device, GPU])

    model = EdgeModel(DPG(depth=5))
    assert "device" not in Exact(tol=0.5).run(0, model, data).settings
    monkeypatch.setattr(base, "choose", fake)
    posterior = Exact(tol=0.5).run(0, model, data)
    assert seen == [4 * 15 * 5]
    assert posterior.settings["device"] == f"{device}: 3e+02 updates are few, below 1e+07"
