"""How time and memory grow with the number of nodes; each size in a process of its own.

    python benchmarks/scaling.py smooth [--nodes 10000 100000 1000000] [--degree 8]
    python benchmarks/scaling.py belief [--nodes 2000] [--new 10000]

smooth: `SmoothGraph(support="knn")` without labels, on points near a surface of four dimensions in
20 signals, and beside it what else there is in Python, at the sizes that it can do: scikit-learn's
neighbours alone (no graph is learned), the same problem by accelerated DPG (our own first-order
method, compiled), and by Clarabel through CVXPY.

belief: `GraphLearner(support="knn")`, all else by default, fitted to five graphs and asked about a
larger one (`large_belief.py`, which also compares candidates with all pairs).
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import parser

# Seconds after which a rival is given up.
PATIENCE = 600
COORDINATES, DIMENSIONS, NOISE, NEIGHBOURS, TOL = 20, 4, 0.02, 15, 1e-4


def surface(n_nodes: int) -> np.ndarray:
    """Return signals (COORDINATES, n_nodes) of points near a curved surface."""
    rng = np.random.default_rng(0)
    at = rng.uniform(size=(n_nodes, DIMENSIONS))
    waves, phases = rng.normal(size=(DIMENSIONS, COORDINATES)), rng.uniform(0, 6.28, COORDINATES)
    return (np.sin(1.5 * at @ waves + phases) + NOISE * rng.normal(size=(n_nodes, COORDINATES))).T


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in kB


def smooth_stages(n_nodes: int, degree: float) -> dict[str, float]:
    """Return the seconds of each stage of a fit, and what came out."""
    from edgebelief import solve
    from edgebelief.data.neighbours import Points
    from edgebelief.estimators import SmoothGraph

    signals = surface(n_nodes)
    cpu = time.process_time()
    model = SmoothGraph(
        degree=degree, support="knn", n_neighbors=NEIGHBOURS, preprocess=None, tol=TOL
    ).fit(signals)
    row = {stage.name: stage.seconds for stage in model.stages_}
    row |= {"total": sum(row.values()), "cpu": time.process_time() - cpu, "peak GB": peak_gb()}
    # The solve by itself, without the duals of the search for theta.
    pairs = model.solution_.support
    e = Points(signals).distances(*pairs.endpoints)
    start = time.perf_counter()
    alone = solve(e, model.theta_, support=pairs, tol=TOL)
    row["solve alone"] = time.perf_counter() - start
    certificate = model.certificate_
    return row | {
        "candidates (pairs)": pairs.n_edges,
        "degree": model.degree_,
        "residual": max(model.solution_.residual, alone.residual),
        "missed share": certificate.share,
    }


def neighbours_alone(n_nodes: int, degree: float) -> dict[str, float]:
    from sklearn.neighbors import kneighbors_graph

    points = np.ascontiguousarray(surface(n_nodes).T)
    start = time.perf_counter()
    kneighbors_graph(points, NEIGHBOURS, mode="distance", n_jobs=-1)
    return {"seconds": time.perf_counter() - start, "peak GB": peak_gb()}


def first_order(n_nodes: int, degree: float) -> dict[str, float]:
    """Accelerated DPG on the same candidates at the theta that ours found."""
    from edgebelief import theta_for
    from edgebelief.convex import AcceleratedDPG
    from edgebelief.data import nearest_pairs

    support, e = nearest_pairs(surface(n_nodes), NEIGHBOURS)
    theta = theta_for(e, degree=degree, support=support, rtol=0.01, tol=TOL)
    method = AcceleratedDPG()
    method.solve(e * 1.0, theta, support=support, tol=1.0, max_iter=10)  # compiles
    start = time.perf_counter()
    solution = method.solve(e, theta, support=support, tol=TOL, max_iter=20_000)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "residual": float(solution.residual), "peak GB": peak_gb()}


def conic(n_nodes: int, degree: float) -> dict[str, float]:
    """Clarabel through CVXPY, on the same candidates at the theta that ours found."""
    import cvxpy as cp
    from scipy.sparse import coo_array

    from edgebelief import theta_for
    from edgebelief.data import nearest_pairs

    support, e = nearest_pairs(surface(n_nodes), NEIGHBOURS)
    theta = float(theta_for(e, degree=degree, support=support, rtol=0.01, tol=TOL))
    edges = np.arange(support.n_edges)
    ends = np.concatenate(support.endpoints), np.concatenate([edges, edges])
    incidence = coo_array((np.ones(2 * len(edges)), ends)).tocsr()
    a = cp.Variable(support.n_edges, nonneg=True)
    cost = 2 * theta * e @ a - cp.sum(cp.log(incidence @ a)) + cp.sum_squares(a)
    start = time.perf_counter()
    cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
    return {"seconds": time.perf_counter() - start, "peak GB": peak_gb()}


WORK = {
    "smooth": smooth_stages,
    "neighbours alone (scikit-learn)": neighbours_alone,
    "accelerated DPG (ours)": first_order,
    "Clarabel (CVXPY)": conic,
}


def in_a_process(name: str, n_nodes: int, degree: float) -> dict[str, float] | None:
    """Run one of `WORK` at one size in a process of its own; None if it takes too long."""
    command = [sys.executable, __file__, "one", name, str(n_nodes), str(degree)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=None if name == "smooth" else PATIENCE
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{name} at {n_nodes:,} nodes failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def exponents(nodes: list[int], values: list[float]) -> list[float]:
    """Return the slopes of log value against log N, from each size to the next."""
    return list(np.diff(np.log(values)) / np.diff(np.log(nodes)))


def smooth(nodes: list[int], degree: float, rivals: list[int]) -> None:
    rows = []
    for n_nodes in nodes:
        rows.append(in_a_process("smooth", n_nodes, degree))
        print(f"N = {n_nodes:,}", file=sys.stderr, flush=True)
    print(f"\n| | {' | '.join(f'{n:,}' for n in nodes)} | growth exponents |")
    print(f"|---|{'---:|' * len(nodes)}---:|")
    for name in rows[0]:
        values = [row[name] for row in rows]
        grows = name not in ("degree", "residual", "missed share") and all(v > 0 for v in values)
        slopes = ", ".join(f"{s:.2f}" for s in exponents(nodes, values)) if grows else ""
        print(f"| {name} | {' | '.join(f'{v:.3g}' for v in values)} | {slopes} |", flush=True)
    for name in list(WORK)[1:]:
        for n_nodes in rivals:
            row = in_a_process(name, n_nodes, degree)
            said = f"more than {PATIENCE} s, given up"
            if row is not None:
                said = ", ".join(f"{key} {value:.3g}" for key, value in row.items())
            print(f"{name} at {n_nodes:,}: {said}", flush=True)
            if row is None or row["seconds"] > PATIENCE / 30:  # the next size would be given up
                break


def belief(nodes: int, new: int) -> None:
    script = Path(__file__).with_name("large_belief.py")
    command = [sys.executable, str(script), "fit", "--nodes", str(nodes), "--new", str(new)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(f"five graphs of {nodes:,} nodes, one of {new:,}\n\n| | |\n|---|---:|")
    for name, value in json.loads(done.stdout).items():
        print(f"| {name} | {value if isinstance(value, str) else format(value, '.3g')} |")


def main() -> None:
    options = parser(__doc__)
    sections = options.add_subparsers(dest="section", required=True)
    section = sections.add_parser("smooth")
    section.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    section.add_argument("--rivals", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    section.add_argument("--degree", type=float, default=8)
    large = sections.add_parser("belief")
    large.add_argument("--nodes", type=int, default=2000)
    large.add_argument("--new", type=int, default=10_000)
    one = sections.add_parser("one", help=argparse.SUPPRESS)
    one.add_argument("work", choices=WORK)
    one.add_argument("nodes", type=int)
    one.add_argument("degree", type=float)
    given = options.parse_args()
    if given.section == "one":
        print(json.dumps(WORK[given.work](given.nodes, given.degree)))
        return
    if given.section == "belief":
        belief(given.nodes, given.new)
        return
    smooth(given.nodes, given.degree, given.rivals)


if __name__ == "__main__":
    main()
