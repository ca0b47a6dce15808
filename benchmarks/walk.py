"""The files and functions of the package that a fit passes through, in the order they are entered.

    python benchmarks/walk.py                 a plain fit, an additive fit, and `edgebelief fit`
    python benchmarks/walk.py --files         and each file with the number of its functions

Two files that call each other are listed at the end: a reader of one has to know the other.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import edgebelief
from edgebelief import GraphLearner
from edgebelief.cli import main
from edgebelief.data import GraphDataset, RandomGeometric

PACKAGE = Path(edgebelief.__file__).parent
# Not functions that somebody wrote to be called: bodies of modules, classes and comprehensions.
NO_FUNCTIONS = ("<module>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>")


class Walk:
    """Records the functions of the package that are entered while it is on."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], None] = {}
        self.calls: set[tuple[str, str]] = set()

    def __enter__(self) -> Walk:
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _enter(self, frame: FrameType, event: str, _: Any) -> None:
        file = event == "call" and _file(frame.f_code)
        if not file or _is_body(frame.f_code):
            return
        self.functions.setdefault((file, frame.f_code.co_qualname))
        caller = frame.f_back
        while caller is not None and not _file(caller.f_code):
            caller = caller.f_back
        if caller is not None and not _is_body(caller.f_code) and _file(caller.f_code) != file:
            self.calls.add((_file(caller.f_code), file))

    @property
    def files(self) -> dict[str, int]:
        """How many functions of each file were entered, in the order of the first of them."""
        counts: dict[str, int] = {}
        for file, _ in self.functions:
            counts[file] = counts.get(file, 0) + 1
        return counts

    @property
    def both_ways(self) -> list[tuple[str, str]]:
        """Files that call each other."""
        return sorted((a, b) for a, b in self.calls if a < b and (b, a) in self.calls)


def _file(code: CodeType) -> str:
    """The path inside the package; empty for code of others."""
    path = Path(code.co_filename)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else ""


def _is_body(code: CodeType) -> bool:
    # A class body is called too, by the module that defines it.
    return code.co_name in NO_FUNCTIONS or not code.co_flags & 0x2  # CO_NEWLOCALS


def walk(function: Callable[[], object]) -> Walk:
    """Run a function and record what it enters."""
    with Walk() as record:
        function()
    return record


def walks(folder: Path) -> dict[str, Callable[[], object]]:
    """The walks that are drawn in the documentation."""
    data = GraphDataset.sample(0, RandomGeometric(0.4), n_graphs=6, n_nodes=10, n_signals=100)
    distances = [graph.distance_matrix() for graph in data]
    labels = [graph.label_matrix() for graph in data]
    file = folder / "data.npz"
    main(["simulate", "--out", str(file), "--graphs", "6", "--nodes", "10", "--json"])
    return {
        "GraphLearner().fit": lambda: GraphLearner().fit(distances, labels),
        "GraphLearner(readout='additive').fit": lambda: GraphLearner(readout="additive").fit(
            distances, labels
        ),
        "edgebelief fit": lambda: main(
            ["fit", str(file), "--out", str(folder / "model.eb"), "--json"]
        ),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="list the files of each walk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, function in walks(Path(folder)).items():
            record = walk(function)
            print(f"{name}: {len(record.files)} files, {len(record.functions)} functions")
            for a, b in record.both_ways:
                print(f"    both ways: {a} and {b}")
            if options.files:
                for file, n in record.files.items():
                    print(f"    {n:4d} {file}")
