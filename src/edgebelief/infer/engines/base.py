"""What every engine does around its own work: the door before, the verdict after."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from ...data.dataset import GraphDataset
from ...data.randomness import Key, as_key
from ...errors import InputError, Remedy, Setting
from ..diagnostics import Finding, verdict_of
from ..flatness import Flatness
from ..model import EdgeModel, check_weights
from ..posterior import Continuum, Fingerprint, Posterior
from ..prepare import prepared


@dataclass(frozen=True)
class Fit:
    """What an engine found: the part of a `Posterior` that is its own."""

    params: Mapping[str, Float[np.ndarray, " draws"]]
    weights: Float[np.ndarray, " draws"]
    figures: Mapping[str, float]
    findings: Iterable[Finding] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that were chosen while running."""
    flatness: Flatness | None = None
    """Of the posterior, where the engine knows it."""
    log_evidence: float | None = None
    n_chains: int = 1
    continuum: Continuum | None = None
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)
    prior_counts: bool = True
    """Whether the prior had a say."""


class Engine(abc.ABC):
    """From a model and data to a posterior. Abstract: `Exact`, `NUTS`, `MAP`, `VI`.

    An engine is a frozen dataclass of settings that writes `_fit`.
    """

    @abc.abstractmethod
    def _fit(
        self,
        key: Key,
        model: EdgeModel,
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
    ) -> Fit:
        """The work; labels and weights have been checked."""

    def run(
        self, key: Key | int, model: EdgeModel, data: GraphDataset, weights: Any = None
    ) -> Posterior:
        """Fit.

        Parameters
        ----------
        key : JAX key or int
            Of an engine's chance; `Exact` has none, and takes it like the others.
        model : EdgeModel
        data : GraphDataset
        weights : array, shape (n_graphs,), optional
            How often each graph counts; once by default.

        Returns
        -------
        Posterior
            Findings of its verdict are warned about as well (`InferenceWarning`).
        """
        counts = check_weights(weights, len(data))
        known = np.array([record.known.any() for record in data])
        if not (known & (counts > 0)).any():
            raise InputError(
                f"there is nothing to learn from: none of the {len(data)} graphs has a known label"
                f"{'' if weights is None else ' and a weight above zero'}. Pass labels (0 or 1, NaN"
                f" where unknown) as the second argument of GraphDataset."
            )
        if model.likelihood.weighted:
            _check_edge_weights(data, counts)
        model = prepared(model, data, counts, key)
        fit = self._fit(as_key(key), model, data, counts)
        verdict = verdict_of(
            model,
            data,
            fit.params,
            fit.weights,
            figures=fit.figures,
            findings=fit.findings,
            posterior_flatness=fit.flatness,
            prior_counts=fit.prior_counts,
        )
        verdict.warn()
        return Posterior(
            model=model,
            params=fit.params,
            weights=fit.weights,
            engine=type(self).__name__,
            settings={**asdict(self), **fit.settings},  # type: ignore[call-overload]
            fingerprint=Fingerprint.of(data),
            verdict=verdict,
            log_evidence=fit.log_evidence,
            n_chains=fit.n_chains,
            continuum=fit.continuum,
            sample_stats=fit.sample_stats,
        )


def _check_edge_weights(data: GraphDataset, counts: Float[np.ndarray, " graphs"]) -> None:
    """Refuse data without weights, or with none that differ."""
    used = [r.w for r, count in zip(data, counts, strict=True) if r.w is not None and count > 0]
    found = np.concatenate([np.zeros(0), *(w[w > 0] for w in used)])
    if found.size == 0:
        raise InputError(
            "the model is one of weighted edges, and no weight is known",
            remedy=Remedy(
                "Pass weights (0 for no edge, NaN for unknown) as labels with {}",
                Setting("weighted", True),
            ),
        )
    if np.ptp(found) == 0:
        raise InputError(
            f"every edge has the weight {found[0]:g}: there is nothing to learn about weights",
            remedy=Remedy("Leave {} out", Setting("weighted")),
        )
