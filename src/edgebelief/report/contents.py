"""`Contents`: everything that the page shows, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..belief.checks import PredictiveCheck
from ..belief.explain import TermCurve
from ..belief.predict import Predictions
from ..data.dataset import GraphDataset
from ..infer.posterior import Posterior
from .reasons import Reasons


@dataclass(frozen=True)
class Contents:
    """What a page shows of a posterior and its predictions for some graphs."""

    posterior: Posterior
    predictions: Predictions
    title: str = "What was learned, and how sure it is"
    assumptions: tuple[str, ...] = ()
    """The assumptions that the results depend on; one sentence each."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Further rows of the table of settings: the seed of the fit, the files read, ..."""
    recipe: str = ""
    """Code or commands that reproduce the result."""
    checks: tuple[PredictiveCheck, ...] = ()
    """Predictive checks of the density: from the prior and from the posterior, or none."""
    cautions: tuple[str, ...] = ()
    """In what way these inputs differ from those of the fit."""
    terms: tuple[TermCurve, ...] = ()
    """The curves of an additive readout."""
    reasons: Mapping[tuple[int, int], Reasons] = field(default_factory=dict)
    """What raises and lowers the listed edges, by graph and index of the pair in it."""
    weights: Mapping[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict)
    """The mean and the 90 % interval of the weights of the listed edges, if edges have weights."""

    @property
    def data(self) -> GraphDataset:
        """The graphs that the page is about."""
        return self.predictions.data
