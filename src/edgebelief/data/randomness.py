"""From a key to a NumPy generator, for the libraries that want one."""

import jax
import numpy as np
from jaxtyping import Array

Key = Array


def generator(key: Key | int) -> np.random.Generator:
    """The NumPy generator of a JAX key (or of a plain integer): same key, same numbers.

    The same stream on every JAX version and device, and no JAX computation per draw.
    """
    return np.random.default_rng(_words(key))


def split(key: Key | int, n: int) -> list[Key]:
    """`n` independent keys."""
    key = jax.random.key(key) if isinstance(key, int) else key
    return list(jax.random.split(key, n))


def _words(key: Key | int) -> np.ndarray:
    if isinstance(key, int | np.integer):
        key = jax.random.key(int(key))
    if not isinstance(key, jax.Array):
        raise TypeError(f"key must be a JAX key, jax.random.key(0), or an integer; got {key!r}.")
    typed = jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
    if key.shape != (() if typed else (2,)):
        raise TypeError(f"key must be a single JAX key; got shape {key.shape}.")
    return np.asarray(jax.random.key_data(key) if typed else key)
