"""The abstract engine: checks before a fit, the verdict after it."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ...data.dataset import GraphDataset
from ...data.randomness import Key, as_key, split
from ...devices import choose, chosen, updates
from ...errors import InputError, Remedy, Setting
from ...threads import apart
from ..diagnostics import Finding, Verdict
from ..flatness import Flatness, best_rescaling, flatness, prior_flatness
from ..model import EdgeModel, check_weights
from ..posterior import Fingerprint, Fit, Posterior
from ..prepare import Problem, prepare

# A parameter's posterior is the prior's when its spread is over 90 % of it. The two are in conflict
# when the prior gives values as far out as the posterior mean, on either side, a probability below
# 1 %: where the prior is right, there is such a finding for one parameter in a hundred. The entries
# of a vector share the 1 %.
DOMINATED, CONFLICT = 0.9, 0.01
# A share of the prior (or the posterior) that is flat beyond this is a finding.
FLAT = 0.5


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
        precise = jnp.result_type(float) == jnp.float64
        choice = choose(updates(model.network.depth, sum(record.e.size for record in data)))
        with chosen(choice):
            (device,) = jnp.zeros(()).devices()

        def fitted() -> tuple[EdgeModel, Fit, Verdict]:
            with jax.enable_x64(precise), jax.default_device(device):  # settings of each thread
                problem = prepare(prepare_key, model, data, counts)
                fit = self._fit(fit_key, problem)
                return problem.model, fit, _verdict(problem.model, data, fit)

        # Compiling takes seconds in which the main thread would not hear Ctrl-C; and an interrupt
        # that comes up just after it makes JAX crash when Python ends.
        model, fit, verdict = apart(fitted)
        verdict.warn()
        stated = {} if choice.device is None else {"device": str(choice)}
        return Posterior(
            model=model,
            params=fit.params,
            weights=fit.weights,
            engine=type(self).__name__,
            settings={**asdict(self), **fit.settings, **stated},  # type: ignore[call-overload]
            fingerprint=Fingerprint.of(data, counts),
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


def _verdict(model: EdgeModel, data: GraphDataset, fit: Fit) -> Verdict:
    """Add the figures and findings of every posterior to those of the engine."""
    prior = prior_flatness(model, data)
    after = fit.flatness or _flatness_where_used(model, data, fit)
    figures = {
        **fit.figures,
        "prior mass dead": prior.dead,
        "prior mass constant": prior.constant,
        "posterior mass dead": after.dead,
        "posterior mass constant": after.constant,
    }
    cure = ""
    if max(prior.share, after.share) > FLAT:
        rescaling = best_rescaling(model, data)
        if rescaling.flatness.share < min(prior.share, FLAT):
            cure = (
                f" Multiply the distances by {rescaling.factor:g}: then the network is flat in "
                f"{rescaling.flatness.share:.1%} of the prior."
            )
            figures["rescaling"] = rescaling.factor
    kind = "dead (all outputs zero)" if after.dead >= after.constant else "constant"
    flat_prior = Finding(
        "flat prior network",
        prior.share,
        f"the network is dead (all outputs zero) in {prior.dead:.1%} of the prior mass and "
        f"constant in {prior.constant:.1%}: the distances are not on the scale that the prior "
        f"expects.{cure}",
    )
    dead_network = Finding(
        "dead network",
        after.share,
        f"the network is {kind} in {after.share:.1%} of this posterior: the labels said nothing "
        f"about {', '.join(model.network.params_type._fields)}, and the result is no more than the "
        f"prior.{cure}",
    )
    flat = (finding for finding in (flat_prior, dead_network) if finding.value > FLAT)
    against = _against_prior(model, fit, figures) if fit.prior_counts else ()
    return Verdict(figures, (*fit.findings, *flat, *against))


def _flatness_where_used(model: EdgeModel, data: GraphDataset, fit: Fit) -> Flatness:
    """Return how flat the network is in the posterior; draws that do not use it do not count."""
    used = np.asarray(fit.params["delta"]) != 0 if "delta" in fit.params else np.ones(1, bool)
    if used.all() or used.ndim > 1:
        return flatness(model, fit.params, data, fit.weights)
    if not used.any():
        return Flatness(0.0, 0.0)
    params = {name: values[used] for name, values in fit.params.items()}
    return flatness(model, params, data, fit.weights[used] / fit.weights[used].sum())


def _against_prior(model: EdgeModel, fit: Fit, figures: dict[str, float]) -> Iterator[Finding]:
    """Compare each parameter with its prior, in the coordinate z where that is standard normal.

    The comparison is added to the `figures`. Coefficients of curves are left out: those that the
    labels do not need keep their prior. So may theta, delta and b where other terms say more; with
    terms, no prior is said to dominate. Draws outside a prior's support are of parts of a mixture
    that do not have the parameter, and are left out.
    """
    for name, (parameter, k) in model.scalar_names.items():
        marginal = model.prior[parameter]
        if marginal.fixed:
            continue
        values = np.asarray(fit.params[parameter], float)
        values = np.atleast_1d(values if k is None else values[..., k])
        inside = values > 0 if marginal.positive else np.ones(values.shape, bool)
        if not inside.any():
            continue
        z = np.clip(marginal.to_z(values[inside]), -40, 40)
        weights = fit.weights[inside] / fit.weights[inside].sum()
        mean = float(weights @ z)
        spread = float(np.sqrt(weights @ (z - mean) ** 2))
        figures[f"{name}: place in prior"] = mean
        if z.size > 1:
            figures[f"{name}: spread / prior's"] = spread
            if spread > DOMINATED and not model.readout.terms:
                yield Finding(
                    "prior dominates",
                    spread,
                    f"the spread of {name} is {spread:.0%} of the prior's: the labels said next to "
                    f"nothing about it. More labels, or a prior you mean.",
                )
        tail = 2 * float(ndtr(-abs(mean)))
        if tail * model.free_sizes[parameter] < CONFLICT:
            side = "above" if mean > 0 else "below"
            yield Finding(
                "prior conflict",
                mean,
                f"{name} is {abs(mean):.1f} standard deviations {side} the prior's median, which "
                f"gives values as far out a probability of {tail:.1g}: data and prior disagree. "
                f"Rescale the distances or restate the prior.",
            )
