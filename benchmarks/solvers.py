"""Newton on the dual against the first-order methods of the field, in one run, to residual 1e-9.

The rivals are ours, compiled, in float64, on the same distances: DPG (the paper's Algorithm 1), DPG
with momentum and restarts, and PDS (Algorithm 2) at the best of a range of step sizes, whose search
is not timed. Compile time is left out. A rival that takes longer than the limit is stopped there,
and its time is a lower bound (">").

    python benchmarks/solvers.py [--nodes 20 200 1000] [--limit 30] [--json FILE]
"""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from common import parser
from reproduction.item import write_json
from reproduction.models import timed

from edgebelief import Solution, solve
from edgebelief.convex import DPG, PDS, AcceleratedDPG, ConvergenceWarning, FirstOrder
from edgebelief.data import RandomGeometric, expected_distances

TOLERANCE = 1e-9
THETAS = (0.1, 1.0, 10.0)
RADIUS = {20: 0.32, 200: 0.15, 1000: 0.08}  # mean degree 5 to 20
# Step sizes in units of 1/(2 beta + sqrt(2L)), below which PDS is known to converge.
STEPS = (0.25, 0.5, 0.75, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0)


def median_seconds(run: Callable[[], Solution], repeats: int) -> tuple[float, Solution]:
    """Return the median wall time and the last result."""
    runs = [timed(run) for _ in range(repeats)]
    return float(np.median([seconds for _, seconds in runs])), runs[-1][0]


def time_rival(
    method: FirstOrder, e: np.ndarray, theta: float, limit: float
) -> tuple[float, Solution]:
    """Return the seconds to the tolerance or to the limit, and the solution then."""

    def run(max_iter: int, repeats: int = 1) -> tuple[float, Solution]:
        return median_seconds(lambda: method.solve(e, theta, max_iter=max_iter), repeats)

    run(10)  # compiles
    per_step = max(run(210)[0] - run(10)[0], 1e-9) / 200
    max_iter = int(limit / per_step)
    seconds, result = run(max_iter)
    return run(max_iter, 5) if seconds < 1 else (seconds, result)


def best_pds(e: np.ndarray, theta: float, n_nodes: int) -> PDS:
    """Return PDS at the step size whose residual is smallest after a trial run."""
    largest = 1 / (2 / theta + np.sqrt(2 * (n_nodes - 1)))
    trial = 3000 if n_nodes <= 200 else 600
    residuals = {}
    for step in STEPS:
        method = PDS(gamma=step * largest)
        solution = method.solve(e, theta, max_iter=trial, tol=TOLERANCE)
        reached = solution.iterations if solution.converged else np.inf
        residuals[method] = (reached, np.nan_to_num(solution.residual, nan=np.inf))
    return min(residuals, key=lambda method: residuals[method])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, nargs="+", default=[20, 200, 1000])
    options.add_argument("--limit", type=float, default=30.0, help="seconds for a rival")
    options.add_argument("--json", type=Path, help="also write the rows here")
    arguments = options.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    header = f"{'N':>5} {'theta':>6} {'method':<16} {'steps':>8} {'seconds':>10} {'residual':>9}"
    print(header + f" {'ratio':>8}")
    for n_nodes in arguments.nodes:
        graph = RandomGeometric(RADIUS.get(n_nodes, 0.2)).sample(key=0, n_nodes=n_nodes)
        e = expected_distances(graph)
        for theta in THETAS:
            solve(e, theta)
            newton, solution = median_seconds(partial(solve, e, theta), 7)
            entries = [("Newton", newton, solution)]
            rivals: dict[str, FirstOrder] = {
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
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
