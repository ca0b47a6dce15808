"""Log-likelihoods whose graphs are spread over devices, in processes with several of them."""

import json
import os
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

from edgebelief.infer.sharding import current_mesh, spread_over

# Prints log densities with their gradients, and what engines find: on all devices, then
# (unless there are several processes) on one. Seven graphs of two sizes, no multiple of four.
PROGRAM = """
import json, sys
import jax
port, n_processes, process, engines = map(int, sys.argv[1:])
if n_processes > 1:
    jax.distributed.initialize(f"localhost:{port}", n_processes, process)
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from contextlib import nullcontext
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import MAP, NUTS, VI, EdgeModel
from edgebelief.infer.gradient.density import LogDensity
from edgebelief.infer.sharding import spread_over
from edgebelief.networks import DPG, MIMO

small = GraphDataset.sample(0, ErdosRenyi(0.4), 5, 6, n_signals=20)
large = GraphDataset.sample(1, ErdosRenyi(0.4), 2, 7, n_signals=20)
records = [*small, *large]
data = GraphDataset([r.e for r in records], [r.a for r in records])
weights = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 3.0])
value_and_grad = eqx.filter_jit(lambda density, z: jax.value_and_grad(density)(z))

def numbers():
    result = {}
    for network in (DPG(depth=3), MIMO(depth=2)):
        density = LogDensity.of(EdgeModel(network), data, weights)
        z = jnp.linspace(-0.5, 0.5, density.model.n_free)
        value, gradient = value_and_grad(density, z)
        result[type(network).__name__] = [float(value), *np.asarray(gradient).tolist()]
    if engines:
        result["MAP"] = drawn(MAP(starts=2, rounds=8))
    return result

def drawn(engine):
    posterior = engine.run(0, EdgeModel(DPG(depth=3)), data, weights)
    return [float(values[0]) for values in posterior.params.values()]

import warnings
warnings.simplefilter("ignore")  # so short a climb does not converge
with spread_over(jax.devices()) as mesh:
    results = [numbers()]
    if engines and n_processes == 1:
        vi = VI(steps=2, batch_graphs=3, n_draws=25, init="prior", progress=False)
        nuts = NUTS(n_warmup=1, n_draws=4, n_chains=2, init="prior", progress=False)
        results[0]["finite"] = bool(np.isfinite(drawn(vi) + drawn(nuts)).all())
if n_processes == 1:
    results.append(numbers())
print(json.dumps([mesh.size, results]))
"""


def started(n_devices, *arguments):
    flags = f"--xla_force_host_platform_device_count={n_devices}"
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process):
    out, err = process.communicate()
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.splitlines()[-1])


def close(first, second):
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_allclose(values, second[name], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("engines", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_several_devices_give_the_same_numbers_as_one(engines):
    size, (spread, alone) = ended(started(4, 0, 1, 0, int(engines)))
    assert size == 4
    assert spread.pop("finite", None) is (True if engines else None)
    close(spread, alone)


@pytest.mark.slow
def test_two_processes_give_the_same_numbers_as_one():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    (_, (_, alone)), both = (
        ended(started(1, 0, 1, 0, 1)),
        [started(2, port, 2, k, 1) for k in range(2)],
    )
    for process in both:
        size, (spread,) = ended(process)
        assert size == 4
        close(spread, alone)


def test_a_mesh_ends_with_its_block():
    assert current_mesh() is None
    with spread_over(jax.devices()[:1]) as mesh:
        assert current_mesh() is mesh
    assert current_mesh() is None
