"""A tiny plan, compiled once for the tests of training."""

import jax
import pytest

from edgebelief.amortise.graphs import Choice, ErdosRenyi
from edgebelief.amortise.inputs import CHANNELS, FACTS
from edgebelief.amortise.train import Bucket, Plan, Trainer
from edgebelief.amortise.world import WORLDS, Cell
from edgebelief.networks import PairNetwork, PairShape

SHAPE = PairShape(len(CHANNELS), len(FACTS), width=4, depth=1, heads=2)
TINY = Plan(
    world="tiny", buckets=(Bucket((4, 5), batch=4, pool=2),), shape=SHAPE, steps=6, warm_up=2
)


@pytest.fixture(scope="session", autouse=True)
def _tiny_world():
    WORLDS["tiny"] = (Cell("ER", 1.0, ErdosRenyi(Choice(0.2, 0.5)), fewest_nodes=4),)
    yield
    del WORLDS["tiny"]


@pytest.fixture(scope="session")
def trainer(_tiny_world):
    return Trainer(TINY)


@pytest.fixture
def network():
    """A network whose logits are not all the same."""
    return scrambled(PairNetwork.random(jax.random.key(0), SHAPE))


def scrambled(network):
    """Move every weight, so that none has an effect by chance only."""
    leaves, tree = jax.tree.flatten(network)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [w + 0.3 * jax.random.normal(k, w.shape) for w, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, moved)
