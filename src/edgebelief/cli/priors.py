"""Priors as options and as JSON files, which people may write."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bounds import check_file
from ..errors import InputError
from ..registry import MARGINALS, PRIORS
from .session import Misused

if TYPE_CHECKING:
    from ..infer import Prior


def check_name(prior: str) -> None:
    """Refuse what is neither the name of a prior nor that of a file with one."""
    if prior not in PRIORS and not prior.endswith(".json"):
        raise Misused(
            f"--prior is {', '.join(PRIORS)}, or a .json file that `edgebelief elicit --out` wrote;"
            f" got {prior!r}."
        )


def prior_from(
    prior: str, density: tuple[float, float] | None
) -> str | Prior | dict[str, tuple[float, float]]:
    """Return the prior of a `GraphLearner`: a name, from a file, or a belief about the density."""
    if density is not None:
        if prior != "altered":  # the default
            raise Misused("give --prior or --density, not both.")
        return {"density": (density[0], density[1])}
    check_name(prior)
    return prior if prior in PRIORS else read_prior(Path(prior))


def read_prior(path: Path) -> Prior:
    """Read a prior from a JSON file, in the form that `prior_to_json` gives it."""
    cure = "`edgebelief elicit --out` writes priors"
    check_file(path, f"; {cure}")
    from .inputs import read_json  # loads JAX, as making a prior does

    content = read_json(path, cure)
    try:
        return prior_from_json(content)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: not a prior ({str(error).rstrip('.')}); {cure}.") from None


def prior_to_json(prior: Prior) -> dict[str, dict[str, Any]]:
    """Return a prior in JSON's types: {"theta": {"kind": "lognormal", "median": 1, ...}, ...}."""
    kinds = {entry.class_name: kind for kind, entry in MARGINALS.items()}
    return {
        name: {"kind": kinds[type(marginal).__name__], **asdict(marginal)}
        for name, marginal in prior.items()
    }


def prior_from_json(content: object) -> Prior:
    """Make a prior from what `prior_to_json` returns."""
    if not isinstance(content, dict) or not all(isinstance(x, dict) for x in content.values()):
        raise InputError('it is {"theta": {"kind": "lognormal", "median": 1, "log_sd": 1}, ...}')
    from ..infer import Prior  # loads JAX

    marginals = {}
    for name, fields in content.items():
        marginal = MARGINALS.get(fields.get("kind"))
        if marginal is None:
            raise InputError(
                f"{name} has kind {fields.get('kind')!r}, not one of {sorted(MARGINALS)}"
            )
        marginals[name] = marginal.make(**{k: v for k, v in fields.items() if k != "kind"})
    return Prior(**marginals)
