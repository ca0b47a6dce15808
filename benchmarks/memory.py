"""Peak memory of a forward pass with its tangent, above that of the imports.

N = 1000 nodes, T = 4 graphs, at several depths, each in a process of its own. A dense incidence
matrix S alone would take 2 GB.

    python benchmarks/memory.py [--nodes 1000] [--graphs 4] [--depths 50 200 400]
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from common import parser


def peak_bytes() -> int:
    """Return the largest resident size of this process so far (Linux).

    Not `ru_maxrss`: that starts from the size of the process which started this one.
    """
    status = Path("/proc/self/status").read_text()
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert kilobytes is not None
    return int(kilobytes.group(1)) * 1024


def measure(n_nodes: int, n_graphs: int, depth: int) -> tuple[int, float]:
    """Return the peak bytes above import and the seconds after compilation, of this process."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from edgebelief.networks import DPG, DPGParams

    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.ones(3)))
    before = peak_bytes()
    n_edges = n_nodes * (n_nodes - 1) // 2
    e = np.random.default_rng(0).uniform(size=(n_graphs, n_edges)).astype(np.float32)
    network = DPG(depth=depth)
    run = jax.jit(lambda theta, e: network.with_tangents(DPGParams(theta), e))
    jax.block_until_ready(run(jnp.float32(0.1), e))
    begin = time.perf_counter()
    jax.block_until_ready(run(jnp.float32(0.2), e))
    return peak_bytes() - before, time.perf_counter() - begin


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--graphs", type=int, default=4)
    options.add_argument("--depths", type=int, nargs="+", default=[50, 200, 400])
    options.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child is not None:
        print(*measure(arguments.nodes, arguments.graphs, arguments.child))
        return
    print(f"{'depth':>6} {'peak MB':>8} {'seconds':>8}")
    for depth in arguments.depths:
        command = [sys.executable, __file__, "--child", str(depth)]
        command += ["--nodes", str(arguments.nodes), "--graphs", str(arguments.graphs)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peak, seconds = map(float, out.split())
        print(f"{depth:6d} {peak / 1e6:8.0f} {seconds:8.2f}", flush=True)


if __name__ == "__main__":
    main()
