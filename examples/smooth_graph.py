"""Learn a graph from signals, without labels, and draw it.

Samples a random geometric graph and smooth signals on it, learns the graph from the signals alone,
with the true number of edges, and writes a figure that compares the two.

    python examples/smooth_graph.py [folder]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from edgebelief import Solution, theta_for
from edgebelief.data import RandomGeometric, adjacency_of, distances, smooth_signals
from edgebelief.edges import Complete

N_NODES, N_SIGNALS = 40, 2000
INK, RIGHT, MISSED, EXTRA = "#22303c", "#2a7f9e", "#b9c2c9", "#d1495b"


def main(folder: Path) -> None:
    graph = RandomGeometric(radius=0.26).sample(key=1, n_nodes=N_NODES)
    truth = Complete(N_NODES).to_vector(adjacency_of(graph)) > 0
    print(f"a random geometric graph: {N_NODES} nodes, {truth.sum()} edges")

    signals = smooth_signals(key=2, graph=graph, n_signals=N_SIGNALS)
    e = distances(signals)
    print(f"{N_SIGNALS} smooth signals on it; from here on only their distances are used")

    theta = theta_for(e, degree=2 * truth.sum() / N_NODES)
    solution = theta.solution
    print(f"learned at mean degree {theta.degree:g}: theta = {theta:.4f}, {theta.n_edges} edges")
    print(f"solved to a residual of {solution.residual:.0e}")

    learned = solution.support.is_edge(solution.weights)
    hits = (learned & truth).sum()
    precision, recall = hits / learned.sum(), hits / truth.sum()
    f1 = 2 * hits / (learned.sum() + truth.sum())
    print(f"F1 = {f1:.3f} (precision {precision:.3f}, recall {recall:.3f})")

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "smooth-graph.png"
    positions = np.array([graph.nodes[i]["pos"] for i in range(N_NODES)])
    draw(path, positions, signals[0], solution, truth, learned, f1)
    print(f"figure: {path}")


def draw(
    path: Path,
    positions: np.ndarray,
    signal: np.ndarray,
    solution: Solution,
    truth: np.ndarray,
    learned: np.ndarray,
    f1: float,
) -> None:
    """Draw the graph with a signal, the learned weights, and the learned against the true edges."""
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13.5, 4.6), layout="constrained", width_ratios=[1, 1.12, 1]
    )
    rows, cols = solution.support.endpoints

    def edges(axis: Axes, mask: np.ndarray, color: str, widths: np.ndarray, zorder: int) -> None:
        for i, j, width in zip(rows[mask], cols[mask], widths, strict=True):
            axis.plot(*positions[[i, j]].T, color=color, lw=width, zorder=zorder,
                      solid_capstyle="round")  # fmt: skip

    edges(left, truth, MISSED, np.full(truth.sum(), 1.4), 1)
    top = np.abs(signal).max()
    left.scatter(*positions.T, c=signal, cmap="coolwarm", vmin=-top, vmax=top, s=75,
                 edgecolors=INK, linewidths=0.6, zorder=3)  # fmt: skip
    left.set_title("a graph, and one of the signals on it")

    matrix = solution.adjacency()
    order = np.lexsort((positions[:, 1], np.round(positions[:, 0] * 3)))
    shown = np.where(matrix > 0, matrix, np.nan)[np.ix_(order, order)]
    picture = middle.imshow(shown, cmap="YlGnBu", vmin=0)
    middle.set_title("learned weights (nodes left to right)")
    middle.set_xlabel("node")
    middle.set_ylabel("node")
    figure.colorbar(picture, ax=middle, shrink=0.85, label="weight")

    weight = solution.weights / solution.weights.max()
    missed, extra, correct = truth & ~learned, learned & ~truth, learned & truth
    edges(right, missed, MISSED, np.full(missed.sum(), 1.2), 1)
    edges(right, correct, RIGHT, 0.7 + 2.8 * weight[correct], 2)
    edges(right, extra, EXTRA, 0.7 + 2.8 * weight[extra], 2)
    right.scatter(*positions.T, color="white", s=45, edgecolors=INK, linewidths=1.0, zorder=3)
    right.set_title(f"learned from the signals alone: F1 = {f1:.2f}")
    for color, mask, name in (
        (RIGHT, correct, "learned, true"),
        (EXTRA, extra, "learned, not true"),
        (MISSED, missed, "missed"),
    ):
        right.plot([], [], color=color, lw=2.5, label=f"{name} ({mask.sum()})")
    figure.legend(loc="outside lower right", ncols=3, frameon=False)
    for axis in (left, right):
        axis.set_aspect("equal")
        axis.set_axis_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "smooth-graph-output"))
