"""How long evidence takes: each kind on one core, and all that is wanted on all cores.

Smooth signals (200) on Erdos-Renyi graphs. The estimate is what "auto" goes by; forests are left
out above 100 nodes.

    OMP_NUM_THREADS=1 python benchmarks/evidence.py [--nodes 20 100 500]
"""

from common import parser
from reproduction.models import timed

from edgebelief.cores import n_cores
from edgebelief.data import ErdosRenyi, distances, smooth_signals
from edgebelief.edges import Complete
from edgebelief.evidence import compute
from edgebelief.evidence.choose import ALL

N_SIGNALS = 200
# Up to this many nodes forests are wanted.
FORESTS = 100


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, nargs="+", default=[20, 100, 500])
    print(f"{'N':>4} {'evidence':20} {'seconds':>8} {'estimate':>9}")
    for n_nodes in options.parse_args().nodes:
        # Four neighbours at least, so that a draw is connected.
        x = smooth_signals(0, ErdosRenyi(max(0.05, 4 / n_nodes)).sample(0, n_nodes), N_SIGNALS)
        e = distances(x)
        matrix = Complete(n_nodes).to_matrix(e)
        kinds = [kind for kind in ALL if kind.name != "forest" or n_nodes <= FORESTS]
        for kind in kinds:
            _, seconds = timed(kind.of, x if kind.needs_signals else matrix)
            estimate = kind.seconds(n_nodes, N_SIGNALS)
            print(f"{n_nodes:4d} {kind.name:20} {seconds:8.3f} {estimate:9.3f}", flush=True)
        _, seconds = timed(compute, kinds, e, x)
        print(f"{n_nodes:4d} {f'all, on {n_cores()} cores':20} {seconds:8.3f}", flush=True)


if __name__ == "__main__":
    main()
