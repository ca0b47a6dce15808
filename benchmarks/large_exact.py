"""`Exact` on large dense graphs whose pairs all have labels: seconds, peak memory, and accuracy.

Ten graphs of 1000 nodes have five million labels, and a network of 200 layers runs on all of them
at each value of theta. Each fit is a process of its own. The second one of each readout has twice
the resolution, at least: a quarter of the tolerance, and half of the largest share of the posterior
that an interval of theta may have. The last column is the largest difference of a posterior mean
between the two, in posterior standard deviations.

    python benchmarks/large_exact.py [--nodes 1000] [--graphs 10] [--depth 200] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import parser

TOLERANCE = 0.01
READOUTS = ("affine", "two-slope")


def measure(n_nodes: int, n_graphs: int, depth: int, readout: str, finer: bool) -> dict[str, Any]:
    """Fit once, and return what it took and what it gave."""
    import warnings

    from memory import peak_bytes

    from edgebelief.data import GraphDataset, RandomGeometric
    from edgebelief.infer import EdgeModel, Exact
    from edgebelief.infer.exact import scan
    from edgebelief.networks import DPG
    from edgebelief.registry import READOUTS as TABLE

    radius = (13 / (3.14 * n_nodes)) ** 0.5  # some twelve neighbours: connected more often than not
    data = GraphDataset.sample(0, RandomGeometric(radius), n_graphs, n_nodes, n_signals=200)
    model = EdgeModel(DPG(depth=depth), TABLE[readout].make())
    before = peak_bytes()
    if finer:
        scan.LARGEST_SHARE /= 2
    begin, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = Exact(tol=TOLERANCE / 4 if finer else TOLERANCE).run(0, model, data)
    table = posterior.summary()
    return {
        "seconds": time.perf_counter() - begin,
        "processor seconds": time.process_time() - cpu,
        "peak bytes": peak_bytes(),
        "peak bytes before the fit": before,
        "theta nodes": posterior.verdict.figures["theta nodes"],
        "mean": table["mean"].to_dict(),
        "sd": table["sd"].to_dict(),
        "warnings": [str(warning.message) for warning in caught],
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--graphs", type=int, default=10)
    options.add_argument("--depth", type=int, default=200)
    options.add_argument("--readouts", nargs="+", choices=READOUTS, default=READOUTS)
    options.add_argument("--json", type=Path, help="where to write everything that was measured")
    options.add_argument("--coarse-only", action="store_true", help="without the finer fits")
    options.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    size = given.nodes, given.graphs, given.depth
    if given.child:
        readout, finer = given.child
        print(json.dumps(measure(*size, readout, finer == "finer")))
        return

    def run(readout: str, finer: str) -> dict[str, Any]:
        command = [sys.executable, __file__, "--child", readout, finer, "--nodes", str(size[0])]
        command += ["--graphs", str(size[1]), "--depth", str(size[2])]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(ran.stdout)

    results: dict[str, Any] = {}
    print("| readout | seconds | processor seconds | peak GB | theta nodes | finer | apart, sd |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for readout in given.readouts:
        fit = results[readout] = run(readout, "")
        row = [readout, f"{fit['seconds']:.0f}", f"{fit['processor seconds']:.0f}"]
        row += [f"{fit['peak bytes'] / 2**30:.2f}", f"{fit['theta nodes']:.0f}"]
        if given.coarse_only:
            row += ["", ""]
        else:
            finer = results[f"{readout}, finer"] = run(readout, "finer")
            means, sd = (fit["mean"], finer["mean"]), finer["sd"]
            apart = max(abs(means[0][name] - means[1][name]) / sd[name] for name in sd)
            row += [f"{finer['theta nodes']:.0f}", f"{apart:.4f}"]
        print(f"| {' | '.join(row)} |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
