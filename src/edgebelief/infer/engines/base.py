"""The abstract engine: checks before a fit, the verdict after it."""

from __future__ import annotations

import abc
from dataclasses import asdict

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ...data.dataset import GraphDataset
from ...data.randomness import Key, as_key, split
from ...errors import InputError, Remedy, Setting
from ..diagnostics import verdict_of
from ..model import EdgeModel, check_weights
from ..posterior import Fingerprint, Fit, Posterior
from ..prepare import Problem, prepare


class Engine(abc.ABC):
    """An abstract way to compute a posterior from a model and data.

    An engine is a frozen dataclass of settings that writes `_fit`.
    """

    @abc.abstractmethod
    def _fit(self, key: Key, problem: Problem) -> Fit:
        """Compute the posterior of a problem whose labels and weights have been checked."""

    def run(
        self,
        key: Key | int,
        model: EdgeModel,
        data: GraphDataset,
        weights: ArrayLike | None = None,
    ) -> Posterior:
        """Compute the posterior.

        Parameters
        ----------
        key : JAX key or int
            The source of an engine's randomness.
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
        # A model that has seen its data needs no preparation, and the key is the fit's alone.
        prepare_key, fit_key = (as_key(key),) * 2 if model.is_prepared else split(key, 2)
        problem = prepare(prepare_key, model, data, counts)
        model, fit = problem.model, self._fit(fit_key, problem)
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
    known = np.concatenate([np.zeros(0), *(w[w > 0] for w in used)])
    if known.size == 0:
        raise InputError(
            "the model is one of weighted edges, and no weight is known",
            remedy=Remedy(
                "Pass weights (0 for no edge, NaN for unknown) as labels with {}",
                Setting("weighted", True),
            ),
        )
    if np.ptp(known) == 0:
        raise InputError(
            f"every edge has the weight {known[0]:g}: there is nothing to learn about weights",
            remedy=Remedy("Leave {} out", Setting("weighted")),
        )
