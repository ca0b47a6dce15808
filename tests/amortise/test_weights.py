"""The weights that ship: checked, read once, replaced by one command."""

import hashlib
import json

import jax
import numpy as np
import pytest
from safetensors import safe_open

from edgebelief.amortise import weights
from edgebelief.amortise.inputs import CHANNELS, FACTS
from edgebelief.amortise.networkfile import load_network, save_network
from edgebelief.amortise.train import SHAPE
from edgebelief.errors import InputError
from edgebelief.networks import PairNetwork, PairShape


def test_the_shipped_file_is_the_one_of_the_checksum():
    content = weights.FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == weights.SHA256
    assert len(content) <= 2_500_000


def test_the_shipped_network_is_a_trained_one_of_the_full_size():
    network = weights.pretrained()
    assert network is weights.pretrained()
    assert network.shape == SHAPE
    with safe_open(weights.FILE, framework="numpy") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {np.dtype("float16")}  # noqa: SIM118
        assert json.loads(file.metadata()["about"])["steps"] > 0


@pytest.fixture
def places(tmp_path):
    """A copy of what `ship` writes to."""
    target, module = tmp_path / "pretrained.safetensors", tmp_path / "weights.py"
    module.write_text(f'"""Weights."""\n\nSHA256 = "{weights.SHA256}"\nMOST = 1\n')
    target.write_bytes(weights.FILE.read_bytes())
    return target, module


def test_damaged_weights_are_refused(places):
    target, _ = places
    content = bytearray(target.read_bytes())
    content[-1] ^= 1
    target.write_bytes(content)
    with pytest.raises(InputError, match="damaged, or of another version") as error:
        weights.checked(target, weights.SHA256)
    assert "Install edgebelief again" in str(error.value)
    assert error.value.where == target


def test_missing_weights_are_an_error_that_says_so(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        weights.checked(tmp_path / "none", weights.SHA256)


def test_shipping_copies_the_file_and_notes_its_checksum(places, tmp_path):
    target, module = places
    network = PairNetwork.random(jax.random.key(1), PairShape(len(CHANNELS), len(FACTS), 4, 1))
    new = tmp_path / "new.safetensors"
    save_network(new, network, {})
    digest = weights.ship(new, target, module)
    assert target.read_bytes() == new.read_bytes()
    assert module.read_text() == f'"""Weights."""\n\nSHA256 = "{digest}"\nMOST = 1\n'
    assert weights.checked(target, digest).shape == network.shape


@pytest.mark.parametrize(
    ("shape", "damage", "problem"),
    [
        (PairShape(3, len(FACTS), 4, 1), None, "is for 3 channels"),
        (PairShape(len(CHANNELS), len(FACTS), 160, 6), None, "bytes; at most 2,500,000"),
        (PairShape(len(CHANNELS), len(FACTS), 4, 1), np.nan, "not finite"),
    ],
)
def test_what_cannot_ship_is_refused_and_changes_nothing(shape, damage, problem, places, tmp_path):
    target, module = places
    before = target.read_bytes(), module.read_text()
    template = jax.eval_shape(lambda: PairNetwork.random(jax.random.key(0), shape))
    network = jax.tree.map(lambda x: np.full(x.shape, damage or 0.0, np.float32), template)
    file = tmp_path / "new.safetensors"
    save_network(file, network, {})
    assert load_network(file).shape == shape
    with pytest.raises(InputError, match=problem):
        weights.ship(file, target, module)
    assert (target.read_bytes(), module.read_text()) == before
