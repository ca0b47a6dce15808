"""The trained network that ships with the package: read once, when it is first needed.

New weights are installed, in a checkout of the repository, by

    python -m edgebelief.amortise --ship FILE

which copies the file here and writes its checksum into this file.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import jax
import numpy as np

from ..atomic import replacing
from ..errors import InputError
from ..networks.pair import PairNetwork
from .inputs import CHANNELS, FACTS
from .networkfile import load_network

FILE = Path(__file__).with_name("pretrained.safetensors")
# Of the file, so that a network is never a damaged one, or one of another version.
SHA256 = "cf3963eaa7ef0be42a6b1ea772983fbd28cc6e37ea67cc07bf5a970ff1387b25"
# What a wheel, and a repository that keeps every version, can bear.
MOST_BYTES = 2_500_000


@cache
def pretrained() -> PairNetwork:
    """Return the network that ships with the package.

    Returns
    -------
    PairNetwork
        In single precision. It is read once and then kept.

    Examples
    --------
    >>> from edgebelief.amortise import pretrained
    >>> network = pretrained()
    >>> network is pretrained(), network.shape.depth
    (True, 6)
    """
    return checked(FILE, SHA256)


def checked(path: Path, sha256: str) -> PairNetwork:
    """Read a network from a file that must have this checksum."""
    remedy = "Install edgebelief again"
    try:
        digest = _digest(path)
    except OSError as error:
        problem = f"the weights of the network cannot be read ({error.strerror})"
        raise InputError(problem, where=path, remedy=remedy) from None
    if digest != sha256:
        problem = (
            f"the weights of the network are damaged, or of another version: their SHA-256 is "
            f"{digest[:12]}..., not {sha256[:12]}..."
        )
        raise InputError(problem, where=path, remedy=remedy)
    return load_network(path)


def ship(path: Path, target: Path = FILE, module: Path = Path(__file__)) -> str:
    """Make a trained network the one that ships with the package.

    Parameters
    ----------
    path : Path
        What `python -m edgebelief.amortise --out` wrote.
    target, module : Path
        Where the weights go, and the source file with the constant `SHA256`.

    Returns
    -------
    str
        The checksum.
    """
    network = load_network(path)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise InputError(f"has {size:,} bytes; at most {MOST_BYTES:,} are shipped.", where=path)
    shape = network.shape
    if (shape.channels, shape.facts) != (len(CHANNELS), len(FACTS)):
        problem = (
            f"is for {shape.channels} channels and {shape.facts} facts; this version of the "
            f"package has {len(CHANNELS)} and {len(FACTS)}"
        )
        raise InputError(problem, where=path, remedy="Train it with this version")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(network)):
        raise InputError("has weights that are not finite.", where=path)
    content, digest = path.read_bytes(), _digest(path)
    with replacing(target) as temporary:
        temporary.write_bytes(content)
    source = re.sub(r'(?m)^SHA256 = ".*"', f'SHA256 = "{digest}"', module.read_text("utf-8"))
    with replacing(module) as temporary:
        temporary.write_text(source, "utf-8")
    return digest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
