"""The posterior at chosen values of the one parameter in doubt: rows of labels, a regression."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from ...cores import n_cores
from ...data.dataset import GraphDataset
from ...errors import InputError
from ..batch import Batch, ForwardModel
from ..flatness import is_dead, is_flat
from ..model import EdgeModel
from ..priors import Marginal
from .conditional import Conditional, Sketch
from .laplace import ROUGH, Place, Places, Shrinkage
from .quadrature import integrate, sketch
from .regression import FEW, Labels, LogisticPosterior
from .theta import ThetaPoint
from .weights import WeightPosterior, WeightPrior

# Of many coefficients: a node so far below the best is not looked at with all labels.
FAR = 100.0


def free_network_parameters(model: EdgeModel) -> list[str]:
    """The network's parameters that are not fixed."""
    return [name for name in model.network.params_type._fields if not model.prior[name].fixed]


class Slices:
    """The posterior at chosen values of theta, on all cores."""

    def __init__(
        self,
        model: EdgeModel,
        data: GraphDataset,
        weights: np.ndarray,
        marginals: tuple[Marginal, ...],
        sds: Float[np.ndarray, " others"] = np.zeros(0),
    ):
        self.model, self.marginals, self.sds = model, marginals, sds
        own = model.network.params_type._fields
        self._moving = free_network_parameters(model)
        self._still = {n: model.prior[n].median for n in own if n not in self._moving}
        self.weighted = model.likelihood.weighted
        self.marginal = model.prior[self._moving[0] if self._moving else own[0]]
        with jax.enable_x64(True):
            stacks = [model.forward.batch(s, weights[s.places]) for s in data.stacks()]
            self._stacks = [(batch.without_labels().as_jax(), batch.labels) for batch in stacks]
        self.posteriors: dict[float, LogisticPosterior] = {}
        self._best = -np.inf

    def __enter__(self) -> Slices:
        self._pool = ThreadPoolExecutor(n_cores())
        # A thread per node, and none within: they would wait for each other.
        self._calm = threadpool_limits(1)
        return self

    def __exit__(self, *_: Any) -> None:
        self._calm.restore_original_limits()
        self._pool.shutdown()

    def nodes(self, z: Any, known: list[ThetaPoint], rough: bool) -> list[ThetaPoint]:
        """New nodes at `z`, each started from the nearest known one; sketches if `rough`."""
        starts = [
            min(known, key=lambda node: abs(node.z - at)).conditional.mode if known else None
            for at in z
        ]
        return list(self._pool.map(self._node, z, starts, [rough] * len(z)))

    def integrated(self, nodes: list[ThetaPoint], places: list[int]) -> list[ThetaPoint]:
        """The same nodes, those at `places` no longer sketches."""

        def again(k: int) -> ThetaPoint:
            found = integrate(self.posteriors.pop(nodes[k].z), nodes[k].conditional.mode)
            return replace(nodes[k], conditional=found)

        better = dict(zip(places, self._pool.map(again, places), strict=True))
        return [better.get(k, node) for k, node in enumerate(nodes)]

    def at(self, z: float) -> Slice:
        """The labels as rows of the readout's columns, and what else there is to know."""
        model, labels, dead, alike = self.model, [], True, True
        params, edges = self.network_at(z), []
        with jax.enable_x64(True):
            network = tuple(jnp.asarray(x, jnp.float64) for x in params)
            for batch, observed in self._stacks:
                columns, a, for_weights = jax.tree.map(
                    np.asarray, _columns(model.forward, network, batch)
                )
                dead &= bool(is_dead(a).all())
                alike &= bool(is_flat(a).all())
                weights = (observed.known * observed.counts[:, None]).reshape(-1)
                columns = columns.reshape(-1, len(self.marginals) + len(self.sds))
                if not np.isfinite(columns).all():
                    raise InputError(
                        f"the network's output is not finite at "
                        f"{model.network.params_type(*params)}."
                    )
                labels.append(Labels.collapse(columns, observed.a.reshape(-1), weights))
                if self.weighted and observed.log_w is not None:
                    log_w = observed.log_w.reshape(-1)
                    there = ~np.isnan(log_w) & (weights > 0)
                    edges.append((for_weights.reshape(-1)[there], log_w[there], weights[there]))
        return Slice(Labels.join(labels).compress(), dead, alike, self._weights(edges))

    def _weights(self, edges: Sequence[tuple[np.ndarray, ...]]) -> WeightPosterior | None:
        if not self.weighted:
            return None
        columns = (np.concatenate(column) for column in zip(*edges, strict=True))
        return WeightPosterior.of(WeightPrior.of(self.model), *columns)

    def network_at(self, z: float) -> tuple[Any, ...]:
        """The network's parameters: the one in doubt at `z`, the others where they are fixed."""
        moving = {name: float(self.marginal.from_z(z)) for name in self._moving}
        everything = {**self._still, **moving}
        return tuple(everything[name] for name in self.model.network.params_type._fields)

    def _node(self, z: float, start: np.ndarray | None, rough: bool) -> ThetaPoint:
        at = self.at(z)
        posterior = LogisticPosterior(at.labels, self.marginals, self.sds)
        many = posterior.n_params > FEW
        if many or rough or start is None:
            self.posteriors[z] = posterior
        conditional: Conditional
        if many:
            conditional = self._sketch(posterior, start, at.weights)
        elif rough or start is None:
            conditional = sketch(posterior, start)
        else:
            conditional = integrate(posterior, start)
        return ThetaPoint(z, conditional, at.dead, at.alike, at.weights)

    def place(self, point: ThetaPoint, shrinkage: Shrinkage, log_share: float) -> Place:
        """What is known at a point whose coefficients have a Laplace approximation."""
        assert isinstance(point.conditional, Sketch)
        network, posterior = self.network_at(point.z), self.posteriors[point.z]
        mode = point.conditional.at
        return Place(network, log_share, posterior, shrinkage, mode, point.weights)

    def learn(self, shrinkage: Shrinkage, rng: np.random.Generator, z: float) -> Shrinkage:
        """Learn scales at `z`, and use them from now on."""
        posterior = LogisticPosterior(self.at(z).labels, self.marginals, self.sds)
        mode = posterior.climb(posterior.starts()[0])
        place = Place(self.network_at(z), 0.0, posterior, shrinkage, mode)
        found = replace(shrinkage, scales=Places([place]).law(rng, ROUGH).typical)
        self.sds = found.sds
        return found

    def _sketch(
        self,
        posterior: LogisticPosterior,
        start: np.ndarray | None,
        weights: WeightPosterior | None,
    ) -> Sketch:
        """Of many coefficients: from a sample of the labels where it cannot matter."""
        simple, beside = posterior.simplified(), 0.0 if weights is None else weights.log_evidence
        near = simple.climb(simple.starts()[0] if start is None else start)
        if near.log_mass + beside < self._best - FAR:
            return Sketch(simple, near)
        mode = posterior.climb(near.z)
        self._best = max(self._best, mode.log_mass + beside)
        return Sketch(posterior, mode)


class Slice(NamedTuple):
    """What is known at one value of theta."""

    labels: Labels
    dead: bool
    alike: bool
    weights: WeightPosterior | None


@eqx.filter_jit
def _columns(
    forward: ForwardModel, network: tuple[Array, ...], batch: Batch
) -> tuple[Array, Array, Array | None]:
    """The design matrix, the network's weights, and what the likelihood needs of its output."""
    output = forward.output(forward.network.params_type(*network), batch)
    reduced = forward.reduce(output, batch)
    return forward.columns(reduced), output.a, reduced.likelihood
