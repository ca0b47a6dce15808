"""Graphs drawn to resemble the user's, to learn from where no labels are at hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from .. import registry
from ..data.coerce import Graphs
from ..data.dataset import GraphDataset
from ..data.ensembles import BarabasiAlbert, Ensemble, ErdosRenyi, RandomGeometric, WattsStrogatz
from ..data.randomness import Key, split
from ..data.signals import Filter, adjacency_of, distances, expected_distances, smooth_signals
from ..errors import Remedy, Setting, SettingError, SettingTypeError
from ..room import check_simulation
from ..validate import check_number, check_whole

ENSEMBLES = tuple(registry.ENSEMBLES)
METRICS = ("sqeuclidean", "correlation")


@dataclass(frozen=True)
class Simulation:
    """What is simulated; as text, the assumption that is made by it."""

    ensemble: Ensemble
    n_nodes: int
    n_signals: int | None
    n_graphs: int
    filter: Filter
    metric: str

    @classmethod
    def of(
        cls,
        ensemble: Ensemble | str,
        n_nodes: int,
        n_signals: int | None,
        density: float | None,
        n_graphs: int,
        filter: Filter,
        metric: object,
    ) -> Simulation:
        """Make a simulation of what a user says."""
        if metric not in METRICS:
            raise SettingError(f"graphs are simulated with a metric of {METRICS}; got {metric!r}.")
        if n_signals is None and metric != "sqeuclidean":
            problem = f"{metric!r} needs n_signals, as many as you have."
            raise SettingError(problem, argument="metric")
        n_nodes = check_whole(n_nodes, "n_nodes", least=2)
        n_graphs = check_whole(n_graphs, "n_graphs", least=1)
        n_signals = None if n_signals is None else check_whole(n_signals, "n_signals", least=1)
        check_simulation(n_nodes, n_signals or 0, n_graphs)
        if isinstance(ensemble, str):
            ensemble = ensemble_of(ensemble, n_nodes, density)
        elif density is not None:
            problem = "goes with the name of an ensemble; this one has its own."
            raise SettingError(problem, argument="density")
        if not isinstance(ensemble, Ensemble) or not isinstance(filter, Filter):
            raise SettingTypeError(
                f"ensemble and filter are objects of edgebelief.data, such as RandomGeometric(0.3) "
                f"and Heat(10); got {ensemble!r} and {filter!r}."
            )
        return cls(ensemble, n_nodes, n_signals, n_graphs, filter, metric)

    def sample(self, key: Key | int) -> GraphDataset:
        """Draw the graphs, with the distances of smooth signals on them, and edges for labels."""
        return self.drawn(key, keep_signals=False).data

    def drawn(self, key: Key | int, keep_signals: bool) -> Graphs:
        """Draw the same graphs as `sample`; keep their signals if wanted, and if there are any."""
        e, a, kept = [], [], []
        for graph_key, signal_key in (split(k, 2) for k in split(key, self.n_graphs)):
            graph = self.ensemble.sample(graph_key, self.n_nodes)
            a.append(adjacency_of(graph))
            if self.n_signals is None:
                e.append(expected_distances(graph, self.filter))
            else:
                signals = smooth_signals(signal_key, graph, self.n_signals, self.filter)
                e.append(distances(signals, self.metric))  # type: ignore[arg-type]
                kept += [signals] if keep_signals else []
        n_signals = np.inf if self.n_signals is None else self.n_signals
        return Graphs(GraphDataset(e, a, n_signals=n_signals), False, tuple(kept) or None)

    def described(self) -> str:
        """Say which graphs and signals are drawn."""
        signals = "infinitely many" if self.n_signals is None else f"{self.n_signals}"
        return (
            f"{self.ensemble} on {self.n_nodes} nodes, with {signals} signals smooth on them "
            f"({self.filter})"
        )

    def __str__(self) -> str:
        return (
            f"no known edges were given. The model was trained on {self.n_graphs} simulated "
            f"graphs, {self.described()}; its belief holds for graphs and signals of that kind."
        )


def ensemble_of(name: str, n_nodes: int, density: float | None) -> Ensemble:
    """Return the ensemble of a name whose graphs have about that share of the pairs joined."""
    if name not in ENSEMBLES:
        raise SettingError(f"no ensemble is called {name!r}; there are {ENSEMBLES}, or pass one.")
    if density is None:
        remedy = Remedy("say how dense: {}, say", Setting("density", 0.2))
        raise SettingError(f"the ensemble {name!r} can be of any density", remedy=remedy)
    density = check_number(density, "density")
    if not 0 < density <= 1:
        problem = f"is a share of all pairs, above 0, at most 1; got {density:g}."
        raise SettingError(problem, argument="density")
    # A connected graph has a density of 2/N or more; half of that still brings one now and then.
    if density < (least := 1 / n_nodes) * (1 - 1e-9):
        raise SettingError(
            f"must be at least {least:.4g}: graphs are drawn until one is connected, and a "
            f"connected graph on {n_nodes} nodes has {n_nodes - 1} edges; got {density:g}.",
            argument="density",
        )
    if name == "erdos-renyi":
        return ErdosRenyi(density)
    if name == "barabasi-albert":
        m = np.arange(1, n_nodes // 2 + 1)
        shares = 2 * m * (n_nodes - m) / (n_nodes * (n_nodes - 1))  # the first m bring no edges
        if density > shares[-1]:
            raise SettingError(
                f"Barabasi-Albert graphs on {n_nodes} nodes have a density of {shares[-1]:.2f} at "
                f"most; got {density:g}. Try another ensemble."
            )
        return BarabasiAlbert(int(m[np.argmin(np.abs(shares - density))]))
    if name == "watts-strogatz":
        most = n_nodes - 1 - (n_nodes - 1) % 2
        neighbours = 2 * round(density * (n_nodes - 1) / 2)
        return WattsStrogatz(int(np.clip(neighbours, 2, most)), 0.1)
    return RandomGeometric(_radius(density))


def _radius(density: float) -> float:
    """Return the radius within which so large a share of the pairs of a unit square's points lies.

    The share is pi r^2 - 8 r^3/3 + r^4/2 for r up to 1: the distribution of the distance between
    two uniform points of a unit square (Philip 2007).
    """
    if density >= np.pi - 8 / 3 + 1 / 2:  # 0.975, at r = 1
        return float(np.sqrt(2))
    return float(brentq(lambda r: np.pi * r**2 - 8 * r**3 / 3 + r**4 / 2 - density, 1e-9, 1.0))
