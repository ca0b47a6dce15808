"""What can be wrong with a fit, as data.

A verdict holds figures (what was measured, always) and findings (what is wrong, if anything). It
is stored with the posterior, printed with it, and warned about when made.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# Thresholds. R-hat, effective draws, E-BFMI and Pareto k: Vehtari et al. (2021, 2024), Betancourt
# (2016), as ArviZ and Stan use them.
RHAT, EFFECTIVE_DRAWS, EBFMI, PARETO_K = 1.01, 400, 0.3, 0.7


class InferenceWarning(UserWarning):
    """A finding of a verdict."""


class Finding(NamedTuple):
    """One thing that is wrong."""

    name: str
    """What, in words that do not change: "dead network", "prior conflict", "R-hat", ..."""
    value: float
    """The figure that shows it."""
    message: str
    """What was found, and what to do."""


@dataclass(frozen=True)
class Verdict:
    """Figures and findings of a fit.

    Examples
    --------
    >>> from edgebelief.infer import Finding, Verdict
    >>> print(Verdict({"R-hat": 1.3}, (Finding("R-hat", 1.3, "Chains disagree."),)))
    1 finding
      R-hat: Chains disagree.
    R-hat 1.3
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What the fit takes for granted and cannot check, such as that simulated graphs are like
    yours."""

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the findings."""
        return tuple(finding.name for finding in self.findings)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __str__(self) -> str:
        n = len(self.findings)
        head = "no finding" if n == 0 else f"{n} finding{'s' if n > 1 else ''}"
        lines = [head, *(f"  {finding.name}: {finding.message}" for finding in self.findings)]
        lines += [f"  assumed: {assumption}" for assumption in self.assumptions]
        if self.figures:
            lines.append(", ".join(f"{name} {value:.3g}" for name, value in self.figures.items()))
        return "\n".join(lines)

    def warn(self) -> None:
        """Issue an `InferenceWarning` for each finding."""
        for finding in self.findings:
            warnings.warn(f"{finding.name}: {finding.message}", InferenceWarning, stacklevel=3)
