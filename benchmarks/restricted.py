"""Large graphs on restricted supports: Newton against accelerated DPG, in one run.

The candidate edges join points in three dimensions to their ten nearest neighbours. Both solve to
residual 1e-9. The rival is compiled, and its compile time left out.

    python benchmarks/restricted.py [--nodes 1000 5000 20000]
"""

import warnings

import numpy as np
from common import parser
from reproduction.models import timed
from sklearn.neighbors import kneighbors_graph

from edgebelief import solve
from edgebelief.convex import AcceleratedDPG, ConvergenceWarning
from edgebelief.edges import Restricted


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000, 20_000])
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'N':>6} {'edges':>7} {'theta':>6} {'Newton':>9} {'accelerated DPG':>16} {'ratio':>7}")
    for n_nodes in options.parse_args().nodes:
        points = np.random.default_rng(0).normal(size=(n_nodes, 3))
        near = kneighbors_graph(points, 10).tocoo()
        pairs = np.unique(np.sort(np.stack([near.row, near.col], axis=1), axis=1), axis=0)
        support = Restricted.from_pairs(pairs, n_nodes)
        e = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(1)
        for theta in (0.1, 1.0, 10.0):
            ours, newton = timed(solve, e, theta, support=support)
            method = AcceleratedDPG()
            method.solve(e, theta, support=support, max_iter=10)  # compiles
            rival, other = timed(method.solve, e, theta, support=support, max_iter=20_000)
            assert ours.converged
            mark = " " if rival.converged else ">"
            print(
                f"{n_nodes:6d} {support.n_edges:7d} {theta:6g} {newton:8.3f}s {mark}{other:14.3f}s "
                f"{mark}{other / newton:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
