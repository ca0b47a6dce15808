"""The posterior at chosen values of the one network parameter that is not fixed: regressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from ...data.dataset import GraphDataset, Stack
from ...devices import current
from ...errors import InputError
from ...networks import Output
from ...progress import progress_bar
from ...threads import Workers, check
from ..batch import Batch, ForwardModel, run_network
from ..flatness import is_dead, is_flat
from ..model import EdgeModel
from ..priors import Marginal
from .conditional import Conditional, Sketch
from .laplace import NetworkValues, ThetaMode
from .quadrature import MOST_TERMS, integrate, sketch
from .regression import FEW, Labels, LogisticPosterior, Vector
from .shrinkage import Shrinkage
from .theta import ThetaPoint
from .weights import WeightPosterior, WeightPrior

# Graphs are evaluated together while they have at most so many pairs: then the arrays of one
# evaluation take some 20 MB, and what is kept of them is a few thousand rows.
PAIRS = 2**19
# With many coefficients, a point whose log evidence is this far below the best keeps its first
# approximation, from a sample of the labels.
FAR = 100.0
# The budget of all inner integrals of a fit, in terms of the likelihood (points times labels); once
# it is spent, each further integral has the smaller one.
TOTAL_TERMS, FEW_TERMS = 2e10, 2e7


def free_network_parameters(model: EdgeModel) -> list[str]:
    """Return the names of the network's parameters that are not fixed."""
    return [name for name in model.network.params_type._fields if not model.prior[name].fixed]


class Slices:
    """Compute the posterior at chosen values of theta, on all cores.

    Theta stands for the network parameter that is not fixed. `weights` says how often each graph
    counts. `marginals` are the priors of the readout's first coefficients; the others have normal
    priors with mean zero and standard deviations `sds`. A context manager holds the threads.
    """

    def __init__(
        self,
        model: EdgeModel,
        data: GraphDataset,
        weights: Float[np.ndarray, " graphs"],
        marginals: tuple[Marginal, ...],
        sds: Float[np.ndarray, " others"] = np.zeros(0),
    ) -> None:
        self.model, self.marginals, self.sds = model, marginals, sds
        names = model.network.params_type._fields
        self._free = free_network_parameters(model)
        self._fixed = {n: model.prior[n].median for n in names if n not in self._free}
        self.weighted = model.likelihood.weighted
        self.marginal = model.prior[self._free[0] if self._free else names[0]]
        self._device = current()
        with jax.enable_x64(True):
            parts = list(chain.from_iterable(map(_parts, data.stacks())))
            batches = [model.forward.batch(part, weights[part.places]) for part in parts]
            self._parts = [(batch.without_labels().as_jax(), batch.labels) for batch in batches]
        self._places = [part.places for part in parts]
        self.posteriors: dict[float, LogisticPosterior] = {}
        self._best_log_mass = -np.inf
        self._n_terms = 0

    def __enter__(self) -> Slices:
        # Shown on a terminal, and only where it takes more than a moment.
        self._bar = progress_bar(desc="Exact", unit=" points", delay=3)
        self._workers = Workers().__enter__()
        # One thread per point and none within its linear algebra: they would wait for each other.
        # To be entered, not only made: threadpoolctl lets one thread at a time set limits.
        self._thread_limits = threadpool_limits(1).__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._thread_limits.__exit__(*error)
        self._workers.__exit__(*error)
        self._bar.close()

    def points(
        self, z: Sequence[float] | Float[np.ndarray, " z"], known: list[ThetaPoint], rough: bool
    ) -> list[ThetaPoint]:
        """Compute new points at `z`, each started from the nearest known one; sketch if `rough`."""
        starts = [
            min(known, key=lambda point: abs(point.z - new_z)).conditional.mode_z if known else None
            for new_z in z
        ]
        budgets = [self._budget(len(z))] * len(z)
        return self._collected(self._workers.map(self._point, z, starts, [rough] * len(z), budgets))

    def integrated(self, points: list[ThetaPoint], indices: list[int]) -> list[ThetaPoint]:
        """Return the points with the sketches at `indices` replaced by integrals."""
        budget = self._budget(len(indices))

        def integrate_point(k: int) -> ThetaPoint:
            posterior, start = self.posteriors.pop(points[k].z), points[k].conditional.mode_z
            return replace(points[k], conditional=integrate(posterior, start, budget))

        integrals = self._collected(self._workers.map(integrate_point, indices))
        replaced = dict(zip(indices, integrals, strict=True))
        return [replaced.get(k, point) for k, point in enumerate(points)]

    def _budget(self, n: int) -> float:
        """Return the budget of each of the next `n` integrals.

        It depends on what earlier calls have spent, not on which thread is first.
        """
        return float(np.clip((TOTAL_TERMS - self._n_terms) / max(n, 1), FEW_TERMS, MOST_TERMS))

    def _collected(self, points: Iterable[ThetaPoint]) -> list[ThetaPoint]:
        """Collect points as they are computed: count what they cost, and show progress."""
        collected = []
        for point in points:
            collected.append(point)
            self._n_terms += point.conditional.n_terms
            self._bar.update()
        return collected

    def slice_at(self, z: float, collapse: bool = True) -> Slice:
        """Run the network at `z`, a few graphs at a time, and collect what the regressions need.

        Without `collapse` there is a row for each label, in an order that does not depend on z.
        """
        model, labels, dead, flat = self.model, [], True, True
        params, edges = self.network_at(z), []
        with jax.enable_x64(True), jax.default_device(self._device):  # settings of each thread
            for batch, observed in self._parts:
                check()
                design = self._design(params, batch)
                dead &= bool(is_dead(design.a).all())
                flat &= bool(is_flat(design.a).all())
                weights = (observed.known * observed.counts[:, None]).reshape(-1)
                columns = design.columns.reshape(-1, len(self.marginals) + len(self.sds))
                if not np.isfinite(columns).all():
                    at = model.network.params_type(*params)
                    raise InputError(f"the network's output is not finite at {at}.")
                make = Labels.collapse if collapse else Labels.of
                of_part = make(columns, observed.a.reshape(-1), weights)
                labels.append(of_part.compress() if collapse else of_part)
                if self.weighted and observed.log_w is not None:
                    log_w = observed.log_w.reshape(-1)
                    has_weight = ~np.isnan(log_w) & (weights > 0)
                    strength = design.strength.reshape(-1)
                    edges.append([x[has_weight] for x in (strength, log_w, weights)])
        of_weights = None
        if self.weighted:
            of_edges = (np.concatenate(column) for column in zip(*edges, strict=True))
            of_weights = WeightPosterior.of(WeightPrior.of(model), *of_edges)
        joined = Labels.join(labels)
        return Slice(joined.compress() if collapse else joined, dead, flat, of_weights)

    def columns_at(self, z: float) -> list[Float[np.ndarray, "edges columns"]]:
        """Return the design matrix of the logits of each graph, labelled or not."""
        with jax.enable_x64(True), jax.default_device(self._device):
            params = self.network_at(z)
            each = [self._design(params, batch).columns for batch, _ in self._parts]
        by_graph = {
            int(t): columns[k]
            for places, columns in zip(self._places, each, strict=True)
            for k, t in enumerate(places)
        }
        return [by_graph[t] for t in range(len(by_graph))]

    def _design(self, params: NetworkValues, batch: Batch) -> _Design:
        """Run network and readout on some graphs, in double precision."""
        forward = self.model.forward
        at = forward.network.params_type(*(jnp.asarray(x, jnp.float64) for x in params))
        output = run_network(forward.network, at, batch.e, batch.support, batch.precomputed)
        columns, strength = jax.tree.map(np.asarray, _columns(forward, output, batch))
        return _Design(columns, np.asarray(output.a), strength)

    def network_at(self, z: float) -> NetworkValues:
        """Return the network's parameters: the free one at `z`, the others as they are fixed."""
        values = self._fixed | {name: float(self.marginal.from_z(z)) for name in self._free}
        return tuple(values[name] for name in self.model.network.params_type._fields)

    def _point(self, z: float, start: Vector | None, rough: bool, budget: float) -> ThetaPoint:
        at_z = self.slice_at(z)
        posterior = LogisticPosterior(at_z.labels, self.marginals, self.sds)
        many = posterior.n_params > FEW
        if not many and (rough or start is None):
            self.posteriors[z] = posterior
        conditional: Conditional
        if many:
            conditional = self._sketch_many(posterior, start, at_z.weights)
        elif rough or start is None:
            conditional = sketch(posterior, start)
        else:
            conditional = integrate(posterior, start, budget)
        return ThetaPoint(z, conditional, at_z.dead, at_z.flat, at_z.weights)

    def theta_mode(self, point: ThetaPoint, log_share: float) -> ThetaMode:
        """Return the mode of the coefficients at a point where they have been sketched."""
        assert isinstance(point.conditional, Sketch)
        network = self.network_at(point.z)
        return ThetaMode(network, point.z, log_share, point.conditional.mode, point.weights)

    def posterior_at(self, z: float) -> LogisticPosterior:
        """Return the posterior of the coefficients at `z`."""
        return LogisticPosterior(self.slice_at(z).labels, self.marginals, self.sds)

    def learn_scales(self, shrinkage: Shrinkage, z: float) -> Shrinkage:
        """Learn typical scales at `z`; points computed from now on use them too."""
        shrinkage = shrinkage.typical(self.posterior_at(z))
        self.sds = shrinkage.sds
        return shrinkage

    def _sketch_many(
        self, posterior: LogisticPosterior, start: Vector | None, weights: WeightPosterior | None
    ) -> Sketch:
        """Sketch many coefficients, from a sample of the labels where the point cannot matter."""
        simple = posterior.simplified()
        of_weights = 0.0 if weights is None else weights.log_evidence
        near = simple.climb(simple.starts()[0] if start is None else start)
        if near.log_mass + of_weights < self._best_log_mass - FAR:
            return Sketch(simple, near)
        mode = posterior.climb(near.z)
        self._best_log_mass = max(self._best_log_mass, mode.log_mass + of_weights)
        return Sketch(posterior, mode)


class Slice(NamedTuple):
    """What the regressions need at one value of theta."""

    labels: Labels
    dead: bool
    """Whether every output of the network is zero."""
    flat: bool
    """Whether all outputs are alike within each graph."""
    weights: WeightPosterior | None
    """The posterior of the parameters of edge weights, where edges have weights."""


class _Design(NamedTuple):
    """What the regressions need of the network's output, for a stack of graphs."""

    columns: Float[np.ndarray, "*graphs edges columns"]
    a: Float[np.ndarray, "..."]
    """The output itself, which may have channels."""
    strength: Any
    """The regressor of log weights, where edges have weights."""


@eqx.filter_jit
def _columns(forward: ForwardModel, output: Output, batch: Batch) -> tuple[Array, Array | None]:
    reduced = forward.reduce(output, batch)
    return forward.columns(reduced), reduced.likelihood


def _parts(stack: Stack) -> list[Stack]:
    """Split a stack into parts of about equal numbers of graphs, of at most `PAIRS` pairs."""
    n_graphs, n_pairs = stack.e.shape
    n_parts = -(-n_graphs // max(PAIRS // n_pairs, 1))
    return [stack.part(graphs) for graphs in np.array_split(np.arange(n_graphs), n_parts)]
