"""From a key to a NumPy generator, for the libraries that want one."""

import jax
import numpy as np
from jaxtyping import Array

from ..errors import SettingError, SettingTypeError

Key = Array


def generator(key: Key | int) -> np.random.Generator:
    """Return the NumPy generator of a JAX key (or of a plain integer): same key, same numbers.

    The same stream on every JAX version and device, and no JAX computation per draw.
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(as_key(key))))


def split(key: Key | int, n: int) -> list[Key]:
    """Split a key into `n` independent ones."""
    return list(jax.random.split(as_key(key), n))


def as_key(key: Key | int) -> Key:
    """Return a JAX key, from one (of the new or the old kind) or from an integer."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not 0 <= key < 2**32:
            raise SettingError(f"must lie in 0 to 2**32 - 1; got {key}.", argument="an integer key")
        return jax.random.key(int(key))
    if isinstance(key, jax.Array):
        if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ():
            return key
        if key.dtype == np.uint32 and key.shape == (2,):  # jax.random.PRNGKey
            return jax.random.wrap_key_data(key)
    problem = f"must be one JAX key, jax.random.key(0), or an integer; got {key!r}."
    raise SettingTypeError(problem, argument="key")
