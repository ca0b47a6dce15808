"""Runs in pieces, and networks in files."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from edgebelief.amortise.checkpoint import load_state, save_state
from edgebelief.amortise.networkfile import load_network, save_network
from edgebelief.amortise.train import Trainer
from edgebelief.errors import InputError

STEPS = 6


def go_on(trainer, state, first):
    for number in range(first, STEPS):
        state, _ = trainer.step(state, number)
    return state


def equal(one, two):
    return all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (one, two)), strict=True))


def test_a_run_that_was_interrupted_continues_bit_by_bit(trainer, tmp_path):
    """In the middle of a pool, which is drawn again."""
    file = tmp_path / "run.safetensors"
    state = trainer.start()
    for number in range(3):
        state, _ = trainer.step(state, number)
    save_state(file, trainer.plan, state)
    straight = go_on(trainer, state, 3)
    trainer._pools.clear()  # as in a new process
    loaded = load_state(file, trainer)
    assert int(loaded.step) == 3
    assert equal(straight, go_on(trainer, loaded, 3))


def test_another_plan_is_refused_but_for_its_number_of_steps(trainer, tmp_path):
    file = tmp_path / "run.safetensors"
    save_state(file, trainer.plan, trainer.start())
    load_state(file, Trainer(replace(trainer.plan, steps=9)))
    with pytest.raises(InputError, match=r"another rate: 0\.001, not 0\.5"):
        load_state(file, Trainer(replace(trainer.plan, rate=0.5)))


def test_networks_are_the_same_in_a_file_to_half_precision(network, tmp_path):
    file = tmp_path / "network.safetensors"
    save_network(file, network, {"world": "tiny"})
    loaded = load_network(file)
    assert loaded.shape == network.shape
    for saved, original in zip(*map(jax.tree.leaves, (loaded, network)), strict=True):
        assert saved.dtype == np.float32
        np.testing.assert_array_equal(saved, np.asarray(original, np.float16).astype(np.float32))


def test_files_are_the_same_bytes_for_the_same_network(network, tmp_path):
    """The library writes metadata in an order of its own, another each time."""
    contents = set()
    for _ in range(8):
        save_network(tmp_path / "n", network, {"world": "tïny", "other": 'a"\\b'})
        contents.add((tmp_path / "n").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("content", [b"", b"text that is no file of arrays", bytes(1000)])
def test_a_file_that_is_no_network_is_refused(content, tmp_path):
    file = tmp_path / "network.safetensors"
    file.write_bytes(content)
    with pytest.raises(InputError, match="no file of a pair network") as error:
        load_network(file)
    assert error.value.where == file


def test_a_training_run_is_no_network(trainer, tmp_path):
    file = tmp_path / "run.safetensors"
    save_state(file, trainer.plan, trainer.start())
    with pytest.raises(InputError, match="no file of a pair network"):
        load_network(file)
