"""Random graphs, connected by rejection. NetworkX draws them; these say which, from what key."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, SettingError
from ..room import check_simulation
from ..validate import check_number, check_whole
from .randomness import Key, generator

if TYPE_CHECKING:
    import networkx as nx

# Draws at most, by default: graphs on 100 nodes take some seconds for so many, and larger ones are
# drawn as often as that many pairs allow, but ten times at least.
MOST_TRIES, MOST_PAIRS, FEWEST_TRIES = 10_000, 10**8, 10


@dataclass(frozen=True)
class Ensemble(abc.ABC):
    """A distribution over graphs of any size. Abstract."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, n_nodes: int) -> nx.Graph:
        """Draw one graph, connected or not."""

    def sample(self, key: Key | int, n_nodes: int, *, max_tries: int | None = None) -> nx.Graph:
        """Draw graphs until one is connected, and return it.

        Parameters
        ----------
        key : JAX key or int
            Same key, same graph.
        n_nodes : int
        max_tries : int, optional
            Draws at most; then a `ValueError` that says how many there were. By default 10,000,
            and fewer on more than 100 nodes.

        Returns
        -------
        networkx.Graph
            Nodes 0 to N-1; with positions or blocks as node attributes where the ensemble has them.
        """
        import networkx as nx  # here and below: not needed by those who bring graphs

        n_nodes = check_whole(n_nodes, "n_nodes", 2)
        check_simulation(n_nodes)
        if max_tries is None:
            max_tries = int(np.clip(MOST_PAIRS // n_nodes**2, FEWEST_TRIES, MOST_TRIES))
        max_tries = check_whole(max_tries, "max_tries", 1)
        rng = generator(key)
        for _ in range(max_tries):
            try:
                graph = self.draw(rng, n_nodes)
            except nx.NetworkXException as error:  # such as more neighbours than there are nodes
                reason = str(error).rstrip(".")
                raise SettingError(f"{self} on {n_nodes} nodes: {reason}.") from None
            if nx.is_connected(graph):
                return graph
        raise InputError(
            f"none of {max_tries} graphs from {self} on {n_nodes} nodes was connected (acceptance "
            f"rate below {1 / max_tries:.0e}); ask for a denser ensemble or more tries."
        )


def _check_probability(name: str, value: float) -> None:
    if not 0 <= check_number(value, name) <= 1:
        raise SettingError(f"is a probability, between 0 and 1; got {value}.", argument=name)


@dataclass(frozen=True)
class RandomGeometric(Ensemble):
    """Points uniform in the unit square, joined when within `radius`.

    The paper's RG(1/3) is radius 0.32. Positions are the node attribute "pos".

    Examples
    --------
    >>> from edgebelief.data import RandomGeometric
    >>> graph = RandomGeometric(radius=0.32).sample(key=0, n_nodes=20)
    >>> graph.number_of_nodes(), len(graph.nodes[0]["pos"])
    (20, 2)
    """

    radius: float

    def __post_init__(self) -> None:
        if not 0 < check_number(self.radius, "radius") < np.inf:
            problem = f"must be positive and finite; got {self.radius}."
            raise SettingError(problem, argument="radius")

    def draw(self, rng: np.random.Generator, n_nodes: int) -> nx.Graph:
        import networkx as nx

        return nx.random_geometric_graph(n_nodes, self.radius, seed=rng)


@dataclass(frozen=True)
class ErdosRenyi(Ensemble):
    """Every pair is an edge with probability `p`, independently.

    Examples
    --------
    >>> from edgebelief.data import ErdosRenyi
    >>> ErdosRenyi(p=1.0).sample(key=0, n_nodes=4).number_of_edges()
    6
    """

    p: float

    def __post_init__(self) -> None:
        _check_probability("p", self.p)

    def draw(self, rng: np.random.Generator, n_nodes: int) -> nx.Graph:
        import networkx as nx

        return nx.gnp_random_graph(n_nodes, self.p, seed=rng)


@dataclass(frozen=True)
class BarabasiAlbert(Ensemble):
    """Nodes arrive one by one and join `m` others, the well-connected ones more often.

    ``m=1`` gives trees.

    Examples
    --------
    >>> from edgebelief.data import BarabasiAlbert
    >>> BarabasiAlbert(m=1).sample(key=0, n_nodes=20).number_of_edges()
    19
    """

    m: int

    def __post_init__(self) -> None:
        check_whole(self.m, "m", 1)

    def draw(self, rng: np.random.Generator, n_nodes: int) -> nx.Graph:
        import networkx as nx

        return nx.barabasi_albert_graph(n_nodes, self.m, seed=rng)


@dataclass(frozen=True)
class StochasticBlock(Ensemble):
    """`n_blocks` groups of near-equal size; edges with `p_in` inside a group, `p_out` across.

    The group is the node attribute "block".

    Examples
    --------
    >>> from edgebelief.data import StochasticBlock
    >>> graph = StochasticBlock(n_blocks=2, p_in=1.0, p_out=0.2).sample(key=0, n_nodes=6)
    >>> [graph.nodes[i]["block"] for i in range(6)]
    [0, 0, 0, 1, 1, 1]
    """

    n_blocks: int
    p_in: float
    p_out: float

    def __post_init__(self) -> None:
        _check_probability("p_in", self.p_in)
        _check_probability("p_out", self.p_out)
        check_whole(self.n_blocks, "n_blocks", 1)

    def draw(self, rng: np.random.Generator, n_nodes: int) -> nx.Graph:
        import networkx as nx

        sizes = [len(part) for part in np.array_split(np.arange(n_nodes), self.n_blocks)]
        same = np.eye(self.n_blocks, dtype=bool)
        return nx.stochastic_block_model(sizes, np.where(same, self.p_in, self.p_out), seed=rng)


@dataclass(frozen=True)
class WattsStrogatz(Ensemble):
    """A ring where each node knows its `k` (even) nearest; edges rewired with probability `p`.

    Examples
    --------
    >>> from edgebelief.data import WattsStrogatz
    >>> WattsStrogatz(k=4, p=0.1).sample(key=0, n_nodes=20).number_of_edges()
    40
    """

    k: int
    p: float

    def __post_init__(self) -> None:
        if check_whole(self.k, "k", 2) % 2:
            raise SettingError(f"must be even, half on each side; got {self.k}.", argument="k")
        _check_probability("p", self.p)

    def draw(self, rng: np.random.Generator, n_nodes: int) -> nx.Graph:
        import networkx as nx

        return nx.watts_strogatz_graph(n_nodes, self.k, self.p, seed=rng)
