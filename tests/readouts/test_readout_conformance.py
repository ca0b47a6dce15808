"""What must be true of every readout. A new one joins READOUTS and is tested."""

import jax.numpy as jnp
import numpy as np
import pytest

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.edges import Complete
from edgebelief.infer import EdgeModel, Prior, lognormal, normal
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG, MIMO, PDS
from edgebelief.readouts import Additive, Affine, Channels, Given, Shift, Sized, TwoSlope

N_NODES = 8
# Covariates of the pairs.
NAMES = ("first", "second", "level")
# Each with a network that it reads.
READOUTS = {
    "Affine": (Affine(), DPG(depth=10)),
    "TwoSlope": (TwoSlope(), DPG(depth=10)),
    "Additive": (Additive(), DPG(depth=10)),
    "Sized": (Sized(growth=0.5), DPG(depth=10)),
    "Shift": (Shift(), PDS(depth=10)),
    "Given": (Given(("first", "second"), ("level",)), DPG(depth=10)),
    "Channels": (Channels(2), MIMO(channels=2, depth=5)),
}


@pytest.fixture(scope="module")
def data():
    drawn = GraphDataset.sample(0, RandomGeometric(0.5), n_graphs=3, n_nodes=N_NODES, n_signals=50)
    rng = np.random.default_rng(0)
    known = [{name: rng.normal(size=r.e.size) for name in NAMES} for r in drawn]
    return GraphDataset([r.e for r in drawn], [r.a for r in drawn], covariates=known)


@pytest.fixture(scope="module", params=READOUTS.values(), ids=READOUTS)
def model(request, data):
    readout, network = request.param
    # Belief from elsewhere has none of the paper's parameters.
    own = Prior(theta=lognormal(1.0, 1.0), heads=normal(0.0, 1.0), levels=normal(0.0, 1.0))
    prior = own if isinstance(readout, Given) else "altered"
    return prepare(0, EdgeModel(network, readout, prior), data).model


@pytest.fixture
def params(model, rng):
    """Of the network and of the readout."""

    def some(kind, sizes):
        return kind(*(jnp.asarray(rng.uniform(0.2, 2.0, sizes.get(k, ()))) for k in kind._fields))

    network, readout = model.network, model.readout
    return some(network.params_type, network.sizes), some(readout.params_type, readout.sizes)


def reduced(model, params, stack, order=None):
    """What the readout keeps of a stack whose nodes are in that order."""
    support, e, pairs = stack.support, stack.e, model.pairs(stack)
    if order is not None:
        _, positions = support.relabel(order)
        e, pairs = e[:, positions], None if pairs is None else pairs[:, positions]
    return model.readout.reduce(model.network(params[0], e), support, pairs)


def test_the_logits_are_the_sum_of_their_parts(model, params, data, x64):
    (stack,) = data.stacks()
    kept = reduced(model, params, stack)
    logits = model.readout.logits(params[1], kept)
    parts = model.readout.parts(params[1], kept)
    assert set(parts) == set(model.readout.part_names)
    assert logits.shape == stack.e.shape
    np.testing.assert_allclose(sum(parts.values()), logits, rtol=1e-6, atol=1e-6)


def test_a_stack_is_its_graphs_one_by_one(model, params, data, x64):
    (stack,) = data.stacks()
    together = model.readout.logits(params[1], reduced(model, params, stack))
    for t, record in enumerate(data):
        (alone,) = data[t : t + 1].stacks()
        output = model.network(params[0], record.e)
        pairs = model.pairs(alone)
        one = model.readout(
            params[1], output, Complete(N_NODES), None if pairs is None else pairs[0]
        )
        np.testing.assert_allclose(together[t], one, rtol=1e-6, atol=1e-6)


def test_relabelling_nodes_relabels_the_logits(model, params, data, x64, rng):
    (stack,) = data.stacks()
    order = rng.permutation(N_NODES)
    _, positions = stack.support.relabel(order)
    logits = model.readout.logits(params[1], reduced(model, params, stack))
    found = model.readout.logits(params[1], reduced(model, params, stack, order))
    np.testing.assert_allclose(found, logits[:, positions], rtol=1e-6, atol=1e-6)
