"""What can be wrong with a fit, as data.

A verdict holds figures (what was measured, always) and findings (what is wrong, if anything). It
is stored with the posterior, printed with it, and warned about when made.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..data.dataset import GraphDataset
from .flatness import Flatness, best_rescaling, flatness, prior_flatness
from .model import EdgeModel

# Thresholds. R-hat, effective draws, E-BFMI and Pareto k: Vehtari et al. (2021, 2024), Betancourt
# (2016), as ArviZ and Stan use them.
RHAT, EFFECTIVE_DRAWS, EBFMI, PARETO_K = 1.01, 400, 0.3, 0.7
# A parameter's posterior is the prior's when its spread is over 90 % of it; the two are in conflict
# when the posterior mean is where the prior has less than 1 in 1000 beyond.
DOMINATED, CONFLICT = 0.9, 3.29
# A share of the prior (or the posterior) that is flat beyond this is a finding.
FLAT = 0.5


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


def verdict_of(
    model: EdgeModel,
    data: GraphDataset,
    params: Mapping[str, np.ndarray],
    weights: Float[np.ndarray, " draws"] | None = None,
    *,
    figures: Mapping[str, float] | None = None,
    findings: Iterable[Finding] = (),
    posterior_flatness: Flatness | None = None,
    prior_share: Flatness | None = None,
    prior_counts: bool = True,
) -> Verdict:
    """Add the figures and findings of every posterior to those of an engine.

    Parameters
    ----------
    model, data
        What was fitted.
    params, weights
        The posterior, as weighted draws (one draw for a point).
    figures, findings
        Those of the engine.
    posterior_flatness, prior_share : Flatness, optional
        Where the engine knows them; otherwise computed here.
    prior_counts : bool
        Whether the prior is part of the posterior; if not, the two are not compared.
    """
    prior = prior_flatness(model, data) if prior_share is None else prior_share
    after = (
        flatness(model, params, data, weights) if posterior_flatness is None else posterior_flatness
    )
    all_figures = {
        **(figures or {}),
        "prior mass dead": prior.dead,
        "prior mass constant": prior.constant,
        "posterior mass dead": after.dead,
        "posterior mass constant": after.constant,
    }
    all_findings = list(findings)
    cure = ""
    if max(prior.share, after.share) > FLAT:
        rescaling = best_rescaling(model, data)
        if rescaling.flatness.share < min(prior.share, FLAT):
            cure = (
                f" Multiply the distances by {rescaling.factor:g}: then the network is flat in "
                f"{rescaling.flatness.share:.1%} of the prior."
            )
            all_figures["rescaling"] = rescaling.factor
    if prior.share > FLAT:
        all_findings.append(
            Finding(
                "flat prior network",
                prior.share,
                f"the network is dead (all outputs zero) in {prior.dead:.1%} of the prior mass and "
                f"constant in {prior.constant:.1%}: the distances are not on the scale that the "
                f"prior expects.{cure}",
            )
        )
    if after.share > FLAT:
        kind = "dead (all outputs zero)" if after.dead >= after.constant else "constant"
        all_findings.append(
            Finding(
                "dead network",
                after.share,
                f"the network is {kind} in {after.share:.1%} of this posterior: the labels said "
                f"nothing about {', '.join(model.network.params_type._fields)}, and the result is "
                f"no more than the prior.{cure}",
            )
        )
    if prior_counts:
        all_findings += _against_prior(model, params, weights, all_figures)
    return Verdict(all_figures, tuple(all_findings))


def _against_prior(
    model: EdgeModel,
    params: Mapping[str, np.ndarray],
    weights: Float[np.ndarray, " draws"] | None,
    figures: dict[str, float],
) -> list[Finding]:
    """Compare each parameter with its prior, in the coordinate z where that is standard normal.

    Not the coefficients of curves: those that the labels do not need keep their prior.
    """
    findings = []
    for name, (parameter, k) in model.scalar_names.items():
        marginal = model.prior[parameter]
        if marginal.fixed:
            continue
        values = np.asarray(params[parameter], float)
        z = np.atleast_1d(marginal.to_z(values if k is None else values[..., k]))
        z = np.clip(z, -40, 40)
        share = np.full(z.size, 1 / z.size) if weights is None else weights
        mean = float(share @ z)
        spread = float(np.sqrt(share @ (z - mean) ** 2))
        figures[f"{name}: place in prior"] = mean
        if z.size > 1:
            figures[f"{name}: spread / prior's"] = spread
            if spread > DOMINATED:
                findings.append(
                    Finding(
                        "prior dominates",
                        spread,
                        f"the spread of {name} is {spread:.0%} of the prior's: the labels said "
                        f"next to nothing about it. More labels, or a prior you mean.",
                    )
                )
        if abs(mean) > CONFLICT:
            findings.append(
                Finding(
                    "prior conflict",
                    mean,
                    f"{name} is {abs(mean):.1f} standard deviations "
                    f"{'above' if mean > 0 else 'below'} the prior's median: data and prior "
                    f"disagree. Rescale the distances or restate the prior.",
                )
            )
    return findings
