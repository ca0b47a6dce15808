"""A training run in a file, so that it can be done in pieces."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from safetensors import safe_open

from ..errors import InputError
from .networkfile import filled, write_tree
from .train import Plan, State, Trainer

# What a run may change when it continues; all else must be as it was.
FREE = ("steps", "half", "unroll")


def save_state(path: Path, plan: Plan, state: State) -> None:
    """Write everything that the next step needs."""
    write_tree(path, {"plan": json.dumps(_as_json(plan))}, state)


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
        return filled(jax.eval_shape(trainer.start), file.get_tensor)


def _as_json(plan: Plan) -> dict[str, Any]:
    return {**asdict(plan), "shape": plan.shape._asdict()}
