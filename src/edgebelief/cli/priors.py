"""Priors as options and as JSON files, which people may write."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..infer import Prior, lognormal, loguniform, normal
from .session import Misused

NAMED = ("altered", "original", "flat")
MARGINALS: dict[str, Any] = {"lognormal": lognormal, "loguniform": loguniform, "normal": normal}


def prior_from(prior: str, density: tuple[float, float] | None) -> Any:
    """A prior by name, from a file, or from a belief about the density."""
    if density is not None:
        if prior != "altered":
            raise Misused("give --prior or --density, not both.")
        return {"density": tuple(density)}
    if prior in NAMED:
        return prior
    if not prior.endswith(".json"):
        raise Misused(
            f"--prior is {', '.join(NAMED)}, or a .json file that `edgebelief elicit --out` wrote; "
            f"got {prior!r}."
        )
    return read_prior(Path(prior))


def read_prior(path: Path) -> Prior:
    """What `prior_to_json` made, from a file."""
    cure = "`edgebelief elicit --out` writes priors."
    if not path.is_file():
        where = "is a folder" if path.is_dir() else "no such file"
        raise FileNotFoundError(f"{path}: {where}; {cure}")
    try:
        return prior_from_json(json.loads(path.read_text(encoding="utf-8-sig")))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON ({error}); {cure}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: not a prior ({str(error).rstrip('.')}); {cure}") from None


def prior_to_json(prior: Prior) -> dict[str, Any]:
    """A prior as people may write it: {"theta": {"kind": "lognormal", "median": 1, ...}, ...}."""
    return {
        name: {"kind": type(marginal).__name__.lower(), **asdict(marginal)}
        for name, marginal in prior.items()
    }


def prior_from_json(found: Any) -> Prior:
    """Read what `prior_to_json` made."""
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise InputError('it is {"theta": {"kind": "lognormal", "median": 1, "log_sd": 1}, ...}')
    marginals = {}
    for name, fields in found.items():
        kind = MARGINALS.get(fields.get("kind"))
        if kind is None:
            raise InputError(
                f"{name} has kind {fields.get('kind')!r}, not one of {sorted(MARGINALS)}"
            )
        marginals[name] = kind(**{k: v for k, v in fields.items() if k != "kind"})
    return Prior(**marginals)
