"""A verdict in the shell: said, as JSON, and as an exit code."""

from __future__ import annotations

from typing import Any

import typer

from ..infer import Verdict
from .session import VERDICT, Session


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the whole verdict, for machines."""
    return {
        "ok": verdict.ok,
        "findings": [finding._asdict() for finding in verdict.findings],
        "assumptions": list(verdict.assumptions),
        "figures": dict(verdict.figures),
    }


def conclude(this: Session, verdict: Verdict) -> None:
    """Say what a reader of results must know of the fit behind them, and end with its exit code."""
    for finding in verdict.findings:
        this.say(f"verdict: {finding.name}: {' '.join(finding.message.split())}", "yellow")
    if "rescaling" in verdict.figures:
        factor = f"{verdict.figures['rescaling']:g}"
        this.say(f"remedy: fit to the distances times {factor} (--scale {factor})", "yellow")
    for assumption in verdict.assumptions:
        this.say(f"assumed: {assumption}")
    end(this, verdict)


def end(this: Session, verdict: Verdict) -> None:
    """End with the exit code of the findings, which are results too, and are written by now."""
    this.answer["verdict"] = verdict_to_json(verdict)
    if not verdict.ok:
        raise typer.Exit(VERDICT)
