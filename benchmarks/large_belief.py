"""Belief in large graphs, of which near neighbours alone are candidates.

    python benchmarks/large_belief.py fit [--nodes 2000] [--new 10000] [--graphs 5]
    python benchmarks/large_belief.py dense [--nodes 500] [--graphs 3]

fit: `GraphLearner(support="knn")`, all else by default, fitted to some graphs and asked about a
larger one. dense: the NLL of candidate pairs of a graph, by models of all pairs and by models of
candidates, with the same readout and evidence. Graphs join near points of a square (six neighbours
on average); signals are Gaussian, with the inverse of the Laplacian for covariance.
"""

import json
import resource
import time

import numpy as np
from common import parser
from scipy.sparse import coo_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from edgebelief import GraphLearner, evidence, metrics
from edgebelief.data import nearest_pairs

SIGNALS, DEGREE, NEIGHBOURS = 200, 6.0, 20
# Joins components: a little of the identity in the Laplacian.
GROUND = 0.02


def near_points(seed: int, n_nodes: int) -> tuple[np.ndarray, csr_array]:
    """Return signals (SIGNALS, n_nodes) and the adjacency, in memory O(n_nodes)."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n_nodes, 2))
    pairs = cKDTree(points).query_pairs(np.sqrt(DEGREE / (np.pi * n_nodes)), output_type="ndarray")
    rows, cols = pairs.T
    n_edges, shape = len(pairs), (n_nodes, n_nodes)
    above = coo_array((np.ones(n_edges), (rows, cols)), shape=shape).tocsr()
    adjacency = (above + above.T).tocsr()
    laplacian = diags_array(adjacency.sum(1)) - adjacency + GROUND * eye_array(n_nodes)
    # With L = B B' + g I and white w, L^-1 (B w + sqrt(g) w') has covariance L^-1.
    ends = np.concatenate([rows, cols]), np.tile(np.arange(n_edges), 2)
    signs = np.repeat([1.0, -1.0], n_edges)
    incidence = coo_array((signs, ends), shape=(n_nodes, n_edges)).tocsr()
    noise = incidence @ rng.normal(size=(n_edges, SIGNALS))
    noise += np.sqrt(GROUND) * rng.normal(size=(n_nodes, SIGNALS))
    return splu(laplacian.tocsc()).solve(noise).T, adjacency


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in kB


def fit_and_predict(n_nodes: int, n_new: int, n_graphs: int) -> dict[str, float | str]:
    """Return seconds, memory and scores of a default fit and of a prediction."""
    x, a = zip(*(near_points(seed, n_nodes) for seed in range(n_graphs)), strict=True)
    new, adjacency = near_points(n_graphs, n_new)
    learner = GraphLearner(
        metric="sqeuclidean", support="knn", n_neighbors=NEIGHBOURS, scale="median"
    )
    start, cpu = time.perf_counter(), time.process_time()
    learner.fit(list(x), list(a))
    fitted = time.perf_counter()
    beliefs = learner.predictions(new, adjacency)
    done = time.perf_counter()
    (record,) = beliefs.data
    share = record.a.mean()
    base = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    return {
        "fit, s": fitted - start,
        "prediction, s": done - fitted,
        "processor, s": time.process_time() - cpu,
        "peak GB": peak_gb(),
        "candidates": len(record.e),
        "missed edges": learner.missed_,
        "NLL of a pair": float(metrics.edge_nll(beliefs)) / len(record.e),
        "base rate's": base,
        "parts": ", ".join(learner.comparison_.query("share > 0").index),
    }


def against_dense(n_nodes: int, n_graphs: int, readout: str) -> dict[str, float]:
    """Return the NLL of a candidate pair of a new graph, by candidates and by all pairs."""
    x, a = zip(*(near_points(seed, n_nodes) for seed in range(n_graphs + 1)), strict=True)
    support, _ = nearest_pairs(x[-1], NEIGHBOURS)
    labels = support.to_vector(a[-1].toarray())
    kinds = evidence.applicable([n_nodes], [SIGNALS], restricted=True) if readout == "auto" else []
    settings = {"metric": "sqeuclidean", "scale": "median", "readout": readout}
    settings["evidence"] = list(kinds) if kinds else "auto"
    row = {}
    for name, more in {
        "candidates": {"support": "knn", "n_neighbors": NEIGHBOURS},
        "all pairs": {},
    }.items():
        start = time.perf_counter()
        learner = GraphLearner(**settings, **more).fit(
            list(x[:-1]), [each.toarray() for each in a[:-1]]
        )
        p = learner.predict_proba(x[-1])
        row[f"{name}, s"] = time.perf_counter() - start
        p = p.toarray() if hasattr(p, "toarray") else p
        q = np.clip(support.to_vector(p), 1e-12, 1 - 1e-12)
        row[f"{name}, NLL"] = float(-np.log(np.where(labels > 0, q, 1 - q)).mean())
    return row | {"ratio": row["candidates, NLL"] / row["all pairs, NLL"]}


def main() -> None:
    options = parser(__doc__)
    sections = options.add_subparsers(dest="section", required=True)
    fit, dense = sections.add_parser("fit"), sections.add_parser("dense")
    for section, n_nodes, n_graphs in ((fit, 2000, 5), (dense, 500, 3)):
        section.add_argument("--nodes", type=int, default=n_nodes)
        section.add_argument("--graphs", type=int, default=n_graphs)
    fit.add_argument("--new", type=int, default=10_000)
    dense.add_argument("--readout", nargs="+", default=["affine", "two-slope", "auto"])
    given = options.parse_args()
    if given.section == "fit":
        print(json.dumps(fit_and_predict(given.nodes, given.new, given.graphs), indent=2))
        return
    for readout in given.readout:
        print(readout, json.dumps(against_dense(given.nodes, given.graphs, readout)), flush=True)


if __name__ == "__main__":
    main()
