"""Trees of arrays, and networks, in files.

Safetensors files: arrays by their place in the tree ("layers.mix"), settings as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..atomic import replacing
from ..errors import InputError
from ..networks.pair import PairNetwork, PairShape

Tree = TypeVar("Tree")


def save_network(path: Path, network: PairNetwork, about: dict[str, Any]) -> None:
    """Write a network in half precision, with what is to be said about it.

    Parameters
    ----------
    path : Path
    network : PairNetwork
    about : dict
        Kept as JSON: how it was trained, say.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from edgebelief.amortise import load_network, pretrained, save_network
    >>> file = Path(tempfile.mkdtemp(), "copy.safetensors")
    >>> save_network(file, pretrained(), {"why": "an example"})
    >>> load_network(file).shape == pretrained().shape
    True
    """
    shape = json.dumps(network.shape._asdict())
    write_tree(path, {"shape": shape, "about": json.dumps(about)}, in_half(network))


def load_network(path: Path) -> PairNetwork:
    """Read what `save_network` wrote, in single precision.

    Nothing in the file is executed.

    Parameters
    ----------
    path : Path

    Returns
    -------
    PairNetwork

    Examples
    --------
    >>> from edgebelief.amortise import load_network
    >>> network = load_network("weights.safetensors")  # doctest: +SKIP
    """
    try:
        with safe_open(path, framework="numpy") as file:
            shape = json.loads((file.metadata() or {})["shape"])
            return network_of(shape, file.get_tensor)
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError):
        problem = "is damaged, or no file of a pair network"
        remedy = "Pass a file that `python -m edgebelief.amortise --out` wrote"
        raise InputError(problem, where=path, remedy=remedy) from None


def in_half(network: PairNetwork) -> PairNetwork:
    """Return the network with its weights as files keep them."""
    half: PairNetwork = jax.tree.map(lambda x: np.asarray(x).astype(np.float16), network)
    return half


def arrays_of(network: PairNetwork) -> dict[str, np.ndarray]:
    """Return the weights by name, in half precision.

    Examples
    --------
    >>> from edgebelief.amortise import pretrained
    >>> from edgebelief.amortise.networkfile import arrays_of, network_of
    >>> network = pretrained()
    >>> arrays = arrays_of(network)
    >>> network_of(network.shape._asdict(), arrays.__getitem__).shape == network.shape
    True
    """
    half = in_half(network)
    return dict(zip(_names(half), jax.tree.leaves(half), strict=True))


def network_of(shape: dict[str, int], get: Callable[[str], np.ndarray]) -> PairNetwork:
    """Return the network of that shape whose weights `get` gives by name."""
    sizes = PairShape(**shape)
    template = jax.eval_shape(lambda: PairNetwork.random(jax.random.key(0), sizes))
    network: PairNetwork = filled(template, lambda name: get(name).astype(np.float32))
    return network


def write_tree(path: Path, metadata: dict[str, str], tree: Any) -> None:
    """Write the arrays of a tree; the same bytes for the same tree."""
    leaves = [np.asarray(leaf, order="C") for leaf in jax.tree.leaves(tree)]
    arrays = dict(zip(_names(tree), leaves, strict=True))
    content = _in_order(save(arrays, metadata))
    with replacing(path) as temporary:
        Path(temporary).write_bytes(content)


def _in_order(content: bytes) -> bytes:
    """Return a safetensors file with its metadata sorted; the library writes them in any order."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    length = -(-len(text) // 8) * 8  # arrays are aligned
    return length.to_bytes(8, "little") + text.ljust(length) + content[start:]


def filled(template: Tree, get: Any) -> Tree:
    """Return the tree with the arrays of a file, of the shapes of the template."""
    leaves = []
    for name, leaf in zip(_names(template), jax.tree.leaves(template), strict=True):
        array = get(name)
        if array.shape != leaf.shape:
            raise InputError(f"{name} has shape {array.shape}, not {leaf.shape}.")
        leaves.append(jax.numpy.asarray(array))
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _names(tree: Any) -> list[str]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [jax.tree_util.keystr(path).strip(".") for path, _ in paths]
