import os
import shutil
import signal
from pathlib import Path

import jax
import numpy as np
import pytest
from jaxtyping import install_import_hook

if os.environ.get("CHECK_SHAPES"):  # before the package is imported
    install_import_hook("edgebelief", "shapes.check")

from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG
from edgebelief.readouts import Additive

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


# What XLA has compiled is kept from one test, process and run to the next: more than half of the
# time is compilation, and both workers and all commands in processes of their own compile the same
# networks. An entry is found by the program, the compiler and its options. `make clean` deletes it.
COMPILED = Path(__file__).parents[1] / "build" / "compiled"
MOST_COMPILED = 2**30  # bytes; then we begin anew
CACHE = {
    "jax_compilation_cache_dir": str(COMPILED),
    "jax_persistent_cache_min_compile_time_secs": 0.05,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def pytest_configure():
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:  # someone's own, or that of a worker's parent
        return
    if sum(entry.stat().st_size for entry in COMPILED.glob("*")) > MOST_COMPILED:
        shutil.rmtree(COMPILED)
    for name, value in CACHE.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # for workers, and processes that tests start


@pytest.fixture(autouse=True, scope="session")
def _interrupts_are_heard():
    """Shells start what runs in the background with Ctrl-C ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def x64():
    """JAX in double precision for one test; the package itself never asks for that."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def shared_data():
    """The authors' data, which is not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the authors' data are not beside the project")
    return SHARED_DATA


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def additive():
    """An additive posterior and its data, with a category that tells a good deal."""
    drawn = GraphDataset.sample(0, RandomGeometric(0.4), n_graphs=14, n_nodes=8, n_signals=100)
    rng = np.random.default_rng(0)
    roads = []
    for record in drawn:
        there = np.where(rng.uniform(size=record.a.size) < 0.1, 1 - record.a, record.a) > 0
        kind = np.where(there, rng.integers(0, 2, record.a.size), 2)
        roads.append({"road": np.array(["lane", "motorway", "none"])[kind]})
    data = GraphDataset(
        [record.e for record in drawn], [record.a for record in drawn], n_signals=100,
        covariates=roads,
    )  # fmt: skip
    model = EdgeModel(DPG(depth=20), Additive(features=("z", "rank sum", "distance")))
    return Exact(n_draws=1000).run(0, model, data), data
