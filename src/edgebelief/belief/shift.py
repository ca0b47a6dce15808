"""Whether new inputs are like those that were fitted."""

from __future__ import annotations

import warnings

import numpy as np

from ..data.dataset import GraphDataset
from ..infer.posterior import Fingerprint

# Distances larger or smaller than the fitted ones by this factor are warned about; so is a
# difference in their relative noise sqrt(2/P) of this size.
SCALE, NOISE = 5.0, 0.1


class BeliefWarning(UserWarning):
    """The inputs of a prediction are not like those of the fit."""


def warn_if_unlike(fitted: Fingerprint, data: GraphDataset) -> None:
    """Warn if the distances are of another kind than those that were fitted."""
    new = Fingerprint.of(data)
    if new.scale == fitted.scale:  # both may be zero
        ratio = 1.0
    else:
        ratio = new.scale / fitted.scale if fitted.scale else np.inf
    if not 1 / SCALE < ratio < SCALE:
        warnings.warn(
            f"the distances are {ratio:.3g} times those that were fitted (medians {new.scale:.3g} "
            f"and {fitted.scale:.3g}). A network reads them on the fitted scale: use the same "
            f"definition (mean or sum over signals?), or divide by {ratio:.3g}.",
            BeliefWarning,
            stacklevel=3,
        )
    if new.n_signals is not None and fitted.n_signals is not None:
        noise = [float(np.sqrt(2 / n)) for n in (new.n_signals, fitted.n_signals)]
        if abs(noise[0] - noise[1]) > NOISE:
            warnings.warn(
                f"these distances come from {new.n_signals:g} signals a graph, the fitted from "
                f"{fitted.n_signals:g}: their noise is {noise[0]:.0%} against {noise[1]:.0%}, and "
                f"the belief is calibrated for the latter. Fit on distances from as many signals.",
                BeliefWarning,
                stacklevel=3,
            )
