"""A training run in a file, so that it can be done in pieces; and networks in files.

Safetensors files: arrays by their place in the tree ("network.layers.mix"), settings as JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from ..atomic import replacing
from ..errors import InputError
from ..networks.pair import PairNetwork, PairShape
from .train import Plan, State, Trainer

Tree = TypeVar("Tree")

# What a run may change when it continues; all else must be as it was.
FREE = ("steps", "half", "unroll")


def save_state(path: Path, plan: Plan, state: State) -> None:
    """Write everything that the next step needs."""
    _write(path, {"plan": json.dumps(_as_json(plan))}, state)


def load_state(path: Path, trainer: Trainer) -> State:
    """Read what `save_state` wrote, for a run with the same plan (its number of steps apart)."""
    with safe_open(path, framework="numpy") as file:
        before = json.loads((file.metadata() or {}).get("plan", "{}"))
        now = json.loads(json.dumps(_as_json(trainer.plan)))
        differing = [key for key in now if key not in FREE and before.get(key) != now[key]]
        if differing:
            raise InputError(
                f"this run had another {differing[0]}: {before.get(differing[0])!r}, not "
                f"{now[differing[0]]!r}.",
                argument=str(path),
            )
        return _filled(jax.eval_shape(trainer.start), file.get_tensor)


def save_network(path: Path, network: PairNetwork, about: dict[str, Any]) -> None:
    """Write a network in half precision, with what is to be said about it."""
    half = jax.tree.map(lambda x: np.asarray(x).astype(np.float16), network)
    shape = json.dumps(network.shape._asdict())
    _write(path, {"shape": shape, "about": json.dumps(about)}, half)


def load_network(path: Path) -> PairNetwork:
    """Read what `save_network` wrote, in single precision."""
    with safe_open(path, framework="numpy") as file:
        shape = PairShape(**json.loads(file.metadata()["shape"]))
        template = jax.eval_shape(lambda: PairNetwork.random(jax.random.key(0), shape))
        return _filled(template, lambda name: file.get_tensor(name).astype(np.float32))


def _as_json(plan: Plan) -> dict[str, Any]:
    return {**asdict(plan), "shape": plan.shape._asdict()}


def _names(tree: Any) -> list[str]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [jax.tree_util.keystr(path).strip(".") for path, _ in paths]


def _write(path: Path, metadata: dict[str, str], tree: Any) -> None:
    leaves = [np.asarray(leaf, order="C") for leaf in jax.tree.leaves(tree)]
    arrays = dict(zip(_names(tree), leaves, strict=True))
    content = save(arrays, metadata)
    with replacing(path) as temporary:
        Path(temporary).write_bytes(content)


def _filled(template: Tree, get: Any) -> Tree:
    """Return the tree with the arrays of a file, of the shapes of the template."""
    leaves = []
    for name, leaf in zip(_names(template), jax.tree.leaves(template), strict=True):
        array = get(name)
        if array.shape != leaf.shape:
            raise InputError(f"{name} has shape {array.shape}, not {leaf.shape}.")
        leaves.append(jax.numpy.asarray(array))
    return jax.tree.unflatten(jax.tree.structure(template), leaves)
