"""A learner that has seen no label: the belief of the pretrained network, as a posterior.

The network's heads, and levels common to all pairs of a graph, are draws of the parameters of a
readout (`readouts.Given`); so everything that is done with a posterior is done with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..amortise.evidence import HEADS, LEVELS, PretrainedBelief
from ..infer import EdgeModel, Fingerprint, Posterior, Prior, Verdict, fixed
from ..networks import DPG
from ..readouts import Given
from ..readouts.given import one_of_each

# What no label is behind.
NOTHING = Fingerprint(0, (), 0, 0.0, None, "")


def believing(metric: Any, n_signals: float | None, density: Any) -> PretrainedBelief:
    """Return the evidence of a learner for data of this kind."""
    named = None if metric == "precomputed" or not isinstance(metric, str) else metric
    density = tuple(density) if np.ndim(density) else density
    return PretrainedBelief(named, metric != "precomputed", n_signals, density)


def posterior_of(kind: PretrainedBelief) -> Posterior:
    """Return the posterior whose draws are the heads at each level."""
    params = one_of_each(len(HEADS), len(LEVELS))
    n = len(params.heads)
    prior = Prior(theta=fixed(1.0), heads=fixed(1 / len(HEADS)), levels=fixed(1 / len(LEVELS)))
    model = EdgeModel(DPG(1), Given(HEADS, LEVELS), prior)
    stated = "nothing was stated about the share of joined pairs"
    if kind.density is not None:
        ends = " to ".join(f"{x:.3g}" for x in np.atleast_1d(np.asarray(kind.density, float)))
        stated = f"the share of joined pairs was stated as {ends}"
    assumption = (
        f"No known edges were given. The belief is that of a network trained on simulated graphs; "
        f"it holds for data like those. {stated[0].upper()}{stated[1:]}."
    )
    return Posterior(
        model=model,
        params={"theta": np.ones(n), "heads": params.heads, "levels": params.levels},
        weights=np.full(n, 1 / n),
        engine="Pretrained",
        settings={},
        fingerprint=NOTHING,
        verdict=Verdict(assumptions=(assumption,)),
    )
