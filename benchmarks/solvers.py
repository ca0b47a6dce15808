"""Newton on the dual against the first-order methods of the field, in one run, to residual 1e-9.

The rivals are ours, compiled, in float64, on the same distances: DPG (the paper's Algorithm 1), DPG
with momentum and restarts, and PDS (Algorithm 2) at the best of a range of step sizes, found
precompute at no charge. Compile time is left out. A rival that takes longer than the limit is
stopped there, and its time is a lower bound (">").

    python benchmarks/solvers.py [--nodes 20 200 1000] [--limit 30] [--json FILE]
"""

import argparse
import json
import time
import warnings

import numpy as np

from edgebelief import solve
from edgebelief.convex import DPG, PDS, AcceleratedDPG, ConvergenceWarning
from edgebelief.data import RandomGeometric, expected_distances

TOLERANCE = 1e-9
THETAS = (0.1, 1.0, 10.0)
RADIUS = {20: 0.32, 200: 0.15, 1000: 0.08}  # mean degree 5 to 20
# The largest step at which PDS is known to converge is 1/(2 beta + sqrt(2L)); it may stand more.
STEPS = (0.25, 0.5, 0.75, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0)


def seconds(run, repeats):
    """Median wall time, and the last result."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), result


def time_rival(method, e, theta, limit):
    """Seconds to the tolerance or to the limit, and where that got to."""
    method.solve(e, theta, max_iter=10)  # compiles
    trial, _ = seconds(lambda: method.solve(e, theta, max_iter=210), 1)
    base, _ = seconds(lambda: method.solve(e, theta, max_iter=10), 1)
    per_step = max(trial - base, 1e-9) / 200
    max_iter = int(limit / per_step)
    once, result = seconds(lambda: method.solve(e, theta, max_iter=max_iter), 1)
    if once < 1:
        once, result = seconds(lambda: method.solve(e, theta, max_iter=max_iter), 5)
    return once, result


def best_pds(e, theta, n_nodes):
    """The step size whose residual is smallest after a trial run."""
    largest = 1 / (2 / theta + np.sqrt(2 * (n_nodes - 1)))
    trial = 3000 if n_nodes <= 200 else 600
    residuals = {}
    for step in STEPS:
        method = PDS(gamma=step * largest)
        solution = method.solve(e, theta, max_iter=trial, tol=TOLERANCE)
        reached = solution.iterations if solution.converged else np.inf
        residuals[method] = (reached, np.nan_to_num(solution.residual, nan=np.inf))
    return min(residuals, key=residuals.get)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[20, 200, 1000])
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for a rival")
    parser.add_argument("--json", help="also write the rows here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    header = f"{'N':>5} {'theta':>6} {'method':<16} {'steps':>8} {'seconds':>10} {'residual':>9}"
    print(header + f" {'ratio':>8}")
    for n_nodes in arguments.nodes:
        graph = RandomGeometric(RADIUS.get(n_nodes, 0.2)).sample(key=0, n_nodes=n_nodes)
        e = expected_distances(graph)
        for theta in THETAS:
            solve(e, theta)
            newton, solution = seconds(lambda e=e, t=theta: solve(e, t), 7)
            entries = [("Newton", newton, solution)]
            rivals = {
                "DPG": DPG(),
                "accelerated DPG": AcceleratedDPG(),
                "PDS, best step": best_pds(e, theta, n_nodes),
            }
            for name, method in rivals.items():
                entries.append((name, *time_rival(method, e, theta, arguments.limit)))
            for name, taken, result in entries:
                mark = " " if result.converged else ">"
                print(
                    f"{n_nodes:5d} {theta:6g} {name:<16} {result.iterations:8d} {mark}{taken:9.4f} "
                    f"{result.residual:9.1e} {mark}{taken / newton:7.1f}",
                    flush=True,
                )
                rows.append(
                    {"nodes": n_nodes, "theta": theta, "method": name, "seconds": taken,
                     "steps": int(result.iterations), "residual": float(result.residual),
                     "converged": bool(result.converged), "ratio": taken / newton}
                )  # fmt: skip
            best = min(row["ratio"] for row in rows[-3:])
            print(f"{'':12} Newton is {best:.1f} times faster than the best of them", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
