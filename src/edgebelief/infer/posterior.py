"""Posterior: what every engine returns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..data.dataset import GraphDataset
from ..data.randomness import Key, as_key, generator
from ..data.reference import OF_FIT, Reference, affordable, has_size
from ..errors import InputError
from ..room import MOST_DRAWS
from ..validate import check_whole
from .arviz import Kind, to_arviz
from .diagnostics import Finding, Verdict
from .flatness import Flatness
from .model import EdgeModel

# Hexadecimal digits of the hash of a graph: 64 bits, so that no two graphs have the same.
SHORT = 16
# In place of an engine's name: the belief of a network that was trained before; nothing was fitted.
PRETRAINED = "Pretrained"
QUANTILES = {"q5": 0.05, "q50": 0.5, "q95": 0.95}


@dataclass(frozen=True)
class Fingerprint:
    """A summary of the data behind a posterior, to notice new inputs that differ from them."""

    n_graphs: int
    n_nodes: tuple[int, ...]
    n_labels: int
    scale: float
    """The median size of a distance."""
    n_signals: float | None
    """The median number of signals behind the distances; None if not known."""
    digest: str
    """A hash of distances and labels."""
    digests: tuple[str, ...] = ()
    """A short hash of the distances and labels of each graph that counts; none in older files."""
    reference: Reference = field(default_factory=Reference)
    """Summaries of graphs that count and have labels, to compare new ones with; of at most 200, and
    of fewer that are large. None in older files."""

    @classmethod
    def of(
        cls, data: GraphDataset, counts: Float[np.ndarray, " graphs"] | None = None
    ) -> Fingerprint:
        """Summarise data; `counts` says how often each graph counts, once by default."""
        counted = np.ones(len(data)) if counts is None else np.asarray(counts)
        labelled = np.array([bool(record.known.any()) for record in data])
        whole = np.array([record.candidates is None for record in data])
        fitted = np.flatnonzero((counted > 0) & labelled & whole & has_size(data.n_nodes))
        reference = Reference.of(data, affordable(fitted, data.n_nodes, OF_FIT))
        return replace(cls.without_reference(data, counts), reference=reference)

    @classmethod
    def without_reference(
        cls, data: GraphDataset, counts: Float[np.ndarray, " graphs"] | None = None
    ) -> Fingerprint:
        """Summarise data as `of` does, but for the summaries of single graphs, which take time."""
        digest, digests = hashlib.sha256(), []
        for t, record in enumerate(data):
            of_graph = hashlib.sha256()
            for array in (record.e, record.a, record.known, record.w):
                part = b"" if array is None else np.ascontiguousarray(array).tobytes()
                digest.update(part)
                of_graph.update(part)
            if counts is None or counts[t] > 0:
                digests.append(of_graph.hexdigest()[:SHORT])
        n_signals = [record.n_signals for record in data if record.n_signals is not None]
        return cls(
            n_graphs=len(data),
            n_nodes=data.n_nodes,
            n_labels=data.n_labels,
            scale=float(np.median(np.abs(np.concatenate([record.e for record in data])))),
            n_signals=float(np.median(n_signals)) if n_signals else None,
            digest=digest.hexdigest(),
            digests=tuple(digests),
        )

    def seen(self, data: GraphDataset) -> list[int]:
        """Return the indices of the graphs with labels that are the same, labels and all, here."""
        other, known = Fingerprint.without_reference(data), [record.known.any() for record in data]
        if not self.digests:  # an older file, which knows only of all graphs together
            same = [other.digest == self.digest] * len(data)
        else:
            same = [digest in self.digests for digest in other.digests]
        return [t for t in range(len(data)) if same[t] and known[t]]


@runtime_checkable
class Continuum(Protocol):
    """A posterior known as a function, not only by draws."""

    n_uniforms: ClassVar[int]
    """The number of uniform numbers behind a draw."""

    def draws(
        self, uniforms: Float[np.ndarray, "draws n_uniforms"]
    ) -> dict[str, Float[np.ndarray, " draws"]]:
        """Map points of the unit cube to parameters, so that uniform points become draws."""

    def summary(self) -> pd.DataFrame:
        """Return moments and quantiles, a row per parameter."""

    def density(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return points and the marginal density of a parameter at them."""


@dataclass(frozen=True)
class Fit:
    """The part of a `Posterior` that an engine computes itself."""

    params: Mapping[str, Float[np.ndarray, "draws ..."]]
    weights: Float[np.ndarray, " draws"]
    figures: Mapping[str, float]
    findings: Iterable[Finding] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that were chosen while running."""
    flatness: Flatness | None = None
    """How flat the network is in the posterior, where the engine knows it."""
    log_evidence: float | None = None
    n_chains: int = 1
    continuum: Continuum | None = None
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)
    prior_counts: bool = True
    """Whether the prior's density is part of what was computed."""


@dataclass(frozen=True)
class Posterior:
    """The posterior of the parameters: weighted draws, and how good they are.

    Made by an engine's `run`; the same type for all engines.
    """

    model: EdgeModel
    params: Mapping[str, Float[np.ndarray, "draws ..."]]
    """Draws by name. For `NUTS` chain after chain; one for `MAP`. For `Exact` the points of its
    quadrature rule, some hundred to average probabilities over; `summary` and `draws` know more
    about the tails."""
    weights: Float[np.ndarray, " draws"]
    """They add up to one."""
    engine: str
    settings: Mapping[str, Any]
    fingerprint: Fingerprint
    verdict: Verdict
    log_evidence: float | None = None
    """Log p(labels): the whole model's score. None where the engine does not know it."""
    n_chains: int = 1
    continuum: Continuum | None = field(default=None, repr=False)
    """Where the engine knows the posterior as a function (`Exact`)."""
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    """What the engine recorded per draw, (chains, draws): diverging, energy, ..."""

    def __post_init__(self) -> None:
        if set(self.params) != set(self.model.parameters):
            raise InputError(
                f"has draws of {sorted(self.params)}; the model has {self.model.parameters}.",
                argument="params",
            )
        if any(np.shape(draws)[:1] != self.weights.shape for draws in self.params.values()):
            raise InputError("must have a draw for each of the weights.", argument="params")
        if not np.isclose(self.weights.sum(), 1, atol=1e-6):
            raise InputError(f"must add up to 1; got {self.weights.sum():g}.", argument="weights")

    @property
    def n_draws(self) -> int:
        return self.weights.size

    def numbers(self) -> dict[str, Float[np.ndarray, " draws"]]:
        """Return the draws of each scalar that tables list; a vector has one per entry."""
        return {
            name: self.params[of] if k is None else self.params[of][:, k]
            for name, (of, k) in self.model.scalar_names.items()
        }

    def summary(self) -> pd.DataFrame:
        """Return mean, sd, q5, q50, q95 of each scalar, those of curves left out."""
        if self.continuum is not None:
            return self.continuum.summary()
        rows = {}
        for name, values in self.numbers().items():
            mean = self.weights @ values
            sd = np.sqrt(self.weights @ (values - mean) ** 2)
            rows[name] = [mean, sd, *weighted_quantile(values, self.weights, QUANTILES.values())]
        return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "sd", *QUANTILES])

    def draws(self, key: Key | int, n: int = 1000) -> dict[str, Float[np.ndarray, "draws ..."]]:
        """Draw `n` equally weighted samples.

        Independent and continuous where the engine knows the posterior as a function (`Exact`);
        else a resampling of the draws by weight (without repetition while there are enough).
        """
        n = check_whole(n, "n", 1, MOST_DRAWS)
        rng = generator(as_key(key))
        if self.continuum is not None:
            return self.continuum.draws(rng.random((n, self.continuum.n_uniforms)))
        if np.ptp(self.weights) < 1e-12 and n <= self.n_draws:
            places = rng.permutation(self.n_draws)[:n]
        else:
            places = rng.choice(self.n_draws, n, p=self.weights / self.weights.sum())
        return {name: values[places] for name, values in self.params.items()}

    def density(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return points and the marginal density of a parameter at them."""
        if self.continuum is not None:
            return self.continuum.density(name)
        from scipy.stats import gaussian_kde

        values = self.numbers()[name]
        if np.ptp(values) == 0:
            raise InputError(f"{self.engine} gives one point, which has no density.")
        x = np.linspace(values.min(), values.max(), 400)
        return x, gaussian_kde(values, weights=self.weights)(x)

    def to_arviz(
        self,
        data: GraphDataset,
        key: Key | int = 0,
        n_draws: int = 1000,
        kind: Kind | None = None,
    ) -> Any:
        """Convert to what ArviZ takes: see `edgebelief.infer.arviz.to_arviz`."""
        return to_arviz(self, data, as_key(key), n_draws, kind)

    def __str__(self) -> str:
        lines = [f"{self.engine} posterior of {self.fingerprint.n_labels} labels"]
        lines.append(self.summary().to_string(float_format=lambda x: f"{x:.4g}"))
        if self.log_evidence is not None:
            lines.append(f"log evidence {self.log_evidence:.2f}")
        lines.append(f"verdict: {self.verdict}")
        return "\n".join(lines)


def weighted_quantile(values: np.ndarray, weights: np.ndarray, q: Iterable[float]) -> np.ndarray:
    """Compute quantiles of weighted values, each in the middle of its own weight."""
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    middle = (share - weights[order] / 2) / share[-1]
    return np.interp(list(q), middle, values[order])
