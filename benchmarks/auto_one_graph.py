"""With one labelled graph, is readout="auto" as safe as the paper's readout?

    python benchmarks/auto_one_graph.py [--draws 20] [--tests 10] [--additive]

From each of four ensembles, 20 times: one training graph of 20 nodes with 200 signals, and fresh
test graphs of the same kind. The table has the per-edge NLL of a test graph (`metrics.edge_nll`),
mean over the draws, and the mean over draws of the ratio to the paper's readout. With --additive
also what "auto" could have picked instead (minutes).
"""

import argparse
import json
import warnings

import networkx as nx
import numpy as np

from edgebelief import GraphLearner, metrics
from edgebelief.belief import BeliefWarning
from edgebelief.data import BarabasiAlbert, ErdosRenyi, GraphDataset, RandomGeometric
from edgebelief.data.signals import adjacency_of, distances, smooth_signals
from edgebelief.infer import InferenceWarning

N_NODES, N_SIGNALS = 20, 200


class StochasticBlocks:
    """Two blocks of ten nodes, joined with probability 0.5 inside and 0.05 across; connected."""

    def sample(self, key: int, n_nodes: int) -> nx.Graph:
        rng = np.random.default_rng(key)
        while True:
            sizes, p = [n_nodes // 2, n_nodes - n_nodes // 2], [[0.5, 0.05], [0.05, 0.5]]
            graph = nx.stochastic_block_model(sizes, p, seed=int(rng.integers(2**31)))
            if nx.is_connected(graph):
                return nx.Graph(graph.edges)


ENSEMBLES = {
    "RG(0.32)": RandomGeometric(0.32),
    "ER(0.2)": ErdosRenyi(0.2),
    "BA(2)": BarabasiAlbert(2),
    "SBM": StochasticBlocks(),
}


def sampled(name: str, seed: int, n_graphs: int) -> GraphDataset:
    """Draw graphs with the distances of smooth signals on them."""
    e, a = [], []
    for key in np.random.default_rng([seed, len(name)]).integers(2**31, size=(n_graphs, 2)):
        graph = ENSEMBLES[name].sample(int(key[0]), N_NODES)
        graph = nx.relabel_nodes(graph, {node: int(node) for node in graph})
        e.append(distances(smooth_signals(int(key[1]), graph, N_SIGNALS)))
        a.append(adjacency_of(graph))
    return GraphDataset(e, a, n_signals=N_SIGNALS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--tests", type=int, default=10)
    parser.add_argument("--additive", action="store_true")
    options = parser.parse_args()
    readouts = ["affine", "auto", *(["two-slope", "additive"] if options.additive else [])]
    warnings.simplefilter("ignore", InferenceWarning)
    warnings.simplefilter("ignore", BeliefWarning)
    print(f"{'':10}" + "".join(f"{name:>12}{'ratio':>8}" for name in readouts), flush=True)
    for name in ENSEMBLES:
        scores: dict[str, list[float]] = {readout: [] for readout in readouts}
        for draw in range(options.draws):
            data = sampled(name, draw, 1 + options.tests)
            for readout in readouts:
                learner = GraphLearner(readout=readout).fit(data[:1])
                scores[readout].append(-metrics.edge_scorer(learner, data[1:]))
        means = {readout: float(np.mean(each)) for readout, each in scores.items()}
        ratios = {r: float(np.mean(np.divide(x, scores["affine"]))) for r, x in scores.items()}
        cells = "".join(f"{means[r]:12.2f}{ratios[r]:8.3f}" for r in readouts)
        print(f"{name:10}{cells}", flush=True)
        print(json.dumps({"ensemble": name, "nll": means, "ratio": ratios}))


if __name__ == "__main__":
    main()
