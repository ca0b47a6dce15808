"""What tells the network that it is lost, in a file beside its weights.

A `Reference` that inputs are compared with, and the `Rule` by which belief is tempered. Both are
for certain weights, whose SHA-256 is in the file. `python -m edgebelief.amortise --alarm` makes it
again for new ones (`calibrate.py`).
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from safetensors import SafetensorError, safe_open

from ..errors import InputError
from .features import facts, features
from .networkfile import write_tree
from .temper import Rule
from .trees import Trees
from .typical import Reference, Typicality, typicality
from .weights import SHA256

FILE = Path(__file__).with_name("typical.safetensors")
# What a wheel can bear beside the weights.
MOST_BYTES = 300_000
# Columns of draws, of which there are many, are in half precision.
HALF = ("facts", "readable", "distance", "odds", "unlike")


class Alarm(NamedTuple):
    """What inputs are compared with, and what follows for belief."""

    reference: Reference
    rule: Rule

    def judge(
        self,
        e: np.ndarray,
        signals: np.ndarray | None,
        n_signals: float,
        is_correlation: bool,
        logits: np.ndarray,
        embedding: np.ndarray,
    ) -> Typicality:
        """Compare an input, and what the network made of it, with the training world."""
        known = facts(len(e), n_signals, is_correlation, signals is not None)
        states = (embedding - self.reference.middle) @ self.reference.directions
        return typicality(self.reference, known, features(e, signals, logits, states))


@cache
def shipped() -> Alarm:
    """Return the alarm of the network that ships with the package; read once and then kept.

    Examples
    --------
    >>> from edgebelief.amortise.alarm import shipped
    >>> bool(shipped().rule.slope[0] > 0.9)
    True
    """
    return load_alarm(FILE, SHA256)


def save_alarm(path: Path, alarm: Alarm, weights: str) -> None:
    """Write an alarm, with the SHA-256 of the weights that it is for.

    Parameters
    ----------
    path : Path
    alarm : Alarm
    weights : str

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from edgebelief.amortise import load_alarm, save_alarm
    >>> from edgebelief.amortise.alarm import shipped
    >>> file = Path(mkdtemp(), "copy.safetensors")
    >>> save_alarm(file, shipped(), "1f")
    >>> bool(load_alarm(file, "1f").rule.slope[0] == shipped().rule.slope[0])
    True
    """
    reference = {
        name: np.asarray(value, np.float16 if name in HALF else np.float32)
        for name, value in alarm.reference._asdict().items()
        if name != "trees"
    }
    rule = Rule(*(np.asarray(x, np.float32) for x in alarm.rule))
    stored = Alarm(Reference(**reference, trees=_small(alarm.reference.trees)), rule)
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(stored)):
        raise InputError("has numbers that are not finite.", argument="alarm")
    size = sum(x.nbytes for x in jax.tree.leaves(stored))
    if size > MOST_BYTES - 5000:  # names and shapes take less than this
        raise InputError(f"has {size:,} bytes; at most {MOST_BYTES:,} are shipped.", where=path)
    write_tree(path, {"weights": weights, "arrays": _digest(stored)}, stored)


def load_alarm(path: Path, weights: str) -> Alarm:
    """Read what `save_alarm` wrote, for the weights with this SHA-256.

    Nothing in the file is executed. A damaged file, or one for other weights, is refused.

    Parameters
    ----------
    path : Path
    weights : str

    Returns
    -------
    Alarm

    Examples
    --------
    >>> from edgebelief.amortise import load_alarm
    >>> alarm = load_alarm("typical.safetensors", weights="1f")  # doctest: +SKIP
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}

            def read(kind: Any, at: str, **parts: Any) -> Any:
                names = [name for name in kind._fields if name not in parts]
                return kind(**{name: file.get_tensor(f"{at}.{name}") for name in names}, **parts)

            trees = read(Trees, "reference.trees")
            alarm = Alarm(read(Reference, "reference", trees=trees), read(Rule, "rule"))
            is_whole = about["arrays"] == _digest(alarm)
    except (OSError, SafetensorError, KeyError):
        is_whole = False
    if not is_whole:
        problem = "the reference of the network's world is missing or damaged"
        raise InputError(problem, where=path, remedy="Install edgebelief again")
    if about["weights"] != weights:
        problem = (
            f"the reference of the network's world is for other weights: their SHA-256 is "
            f"{about['weights'][:12]}..., not {weights[:12]}..."
        )
        remedy = "Run `python -m edgebelief.amortise --alarm`"
        raise InputError(problem, where=path, remedy=remedy)
    return alarm


def _small(trees: Trees) -> Trees:
    """Return trees whose columns and nodes are numbered in bytes: there are fewer than 128."""
    return trees._replace(
        feature=np.asarray(trees.feature, np.int8),
        left=np.asarray(trees.left, np.int8),
        right=np.asarray(trees.right, np.int8),
        value=np.asarray(trees.value, np.float16),
    )


def _digest(alarm: Alarm) -> str:
    content = b"".join(np.ascontiguousarray(x).tobytes() for x in jax.tree.leaves(alarm))
    return hashlib.sha256(content).hexdigest()
