"""Distances to write into folders, and what has become of such a folder."""

from collections import Counter
from pathlib import Path

import numpy as np

from edgebelief.fleet import results


def distances(key: int, n_nodes: int) -> np.ndarray:
    """Squared distances of points in the unit square, on the scale of smooth signals."""
    points = np.random.default_rng(key).uniform(size=(n_nodes, 2))
    return 20 * np.square(points[:, None] - points).sum(-1)


def make(folder: Path, n_graphs: int) -> Path:
    """Write so many graphs of 6 or 7 nodes."""
    folder.mkdir()
    for k in range(n_graphs):
        np.save(folder / f"subject-{k:04d}.npy", distances(k, 6 + k % 2))
    return folder


def check_complete(folder: Path, out: Path) -> None:
    """No graph is lost, and none is there twice; no order is left over."""
    assert Counter(r.file for r in results(out)) == {path.name: 1 for path in folder.iterdir()}
    assert all(result.error is None for result in results(out))
    assert list((out / "orders").iterdir()) == []


def check_equal(out: Path, other: Path) -> None:
    """The same numbers, to the last bit."""
    tables = {result.file: result.table for result in results(other)}
    compared = 0
    for result in results(out):
        assert result.table.equals(tables[result.file]), result.file
        compared += 1
    assert compared == len(tables) > 0
