from pathlib import Path

import jax
import numpy as np
import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


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
