"""A verdict in the shell: said, as JSON, and as an exit code."""

from __future__ import annotations

from typing import Any

import typer

from ..infer import Verdict
from .session import VERDICT, Session
from .words import for_a_shell


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """All of it, for machines."""
    return {
        "ok": verdict.ok,
        "findings": [finding._asdict() for finding in verdict.findings],
        "assumptions": list(verdict.assumptions),
        "figures": dict(verdict.figures),
    }


def say_findings(this: Session, verdict: Verdict) -> None:
    """What a reader of results must know of the fit behind them."""
    for finding in verdict.findings:
        this.say(for_a_shell(f"verdict: {finding.name}: {finding.message}"), "yellow")
    for assumption in verdict.assumptions:
        this.say(f"assumed: {assumption}")


def end(verdict: Verdict) -> None:
    """Findings are results too: they are written, and the exit code tells."""
    if not verdict.ok:
        raise typer.Exit(VERDICT)
