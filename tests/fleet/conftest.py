from pathlib import Path

import numpy as np
import pytest

from edgebelief import GraphLearner
from edgebelief.data import GraphDataset, RandomGeometric, write_matrix
from graph_folders import distances


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """A fitted learner in a file, of graphs of 7 nodes."""
    path = tmp_path_factory.mktemp("model") / "model.eb"
    graphs = GraphDataset.sample(0, RandomGeometric(0.5), n_graphs=8, n_nodes=7, n_signals=100)
    GraphLearner(readout="affine", depth=20, inference="laplace").fit(graphs).save(path)
    return path


@pytest.fixture
def folder(tmp_path) -> Path:
    """Eight graphs of 6 or 7 nodes, as arrays and as tables."""
    path = tmp_path / "graphs"
    path.mkdir()
    for k in range(8):
        matrix = distances(k, 6 + k % 2)
        if k > 3:
            np.save(path / f"subject-{k}.npy", matrix)
        else:
            names = [f"n{i}" for i in range(len(matrix))]
            write_matrix(path / f"subject-{k}.csv", matrix, names)
    return path
