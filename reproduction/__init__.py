"""The paper, item by item: our figures beside the published ones."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

from .item import Answer, Item, MissingData, Outcome, Row, Table, Work, save_outcome, write_json
from .page import write_page

# In the order of the page; each is a module of this package.
ITEMS = (
    "sweep",
    "checks",
    "iid",
    "uncertainty",
    "shift",
    "mismatch",
    "sizes",
    "ablations",
    "stocks",
    "images",
    "steps",
    "posteriors",
    "worth",
    "depth",
    "readouts",
)

# Items that use the same stored pieces or the same compiled chains, and so run in one process.
SHARING = (
    ("iid", "uncertainty", "shift", "mismatch", "readouts"),
    ("ablations", "steps", "posteriors"),
)

__all__ = ["ITEMS", "SHARING", "MissingData", "Outcome", "Row", "Table", "Work", "reproduce"]


def reproduce(name: str, work: Work) -> Answer:
    """Run one item, write its results, and return them.

    Parameters
    ----------
    name : str
        One of `ITEMS`.
    work : Work

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from reproduction import Work, reproduce
    >>> results = reproduce("sweep", Work(Path(mkdtemp()), small=True))
    >>> sorted(results)
    ['figures', 'numbers', 'rows', 'says', 'seconds', 'small', 'tables']
    """
    if name not in ITEMS:
        raise ValueError(f"no item is called {name!r}; the items are {', '.join(ITEMS)}.")
    try:
        outcome = item_module(name).run(work)
    except MissingData as missing:
        results = {"missing": str(missing), "small": work.small}
        write_json(work.out / f"{name}.json", results)
        return results
    return save_outcome(name, outcome, work)


def page(work: Work) -> Path:
    """Write the page of all items that have been run."""
    return write_page(work.out, modules())


def modules() -> dict[str, Item]:
    """Import the module of every item, which takes seconds."""
    return {name: item_module(name) for name in ITEMS}


def item_module(name: str) -> Item:
    """Import the module of one item."""
    return cast(Item, importlib.import_module(f"{__name__}.{name}"))
