"""The paper, item by item: our figures beside the published ones."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from .item import MissingData, Outcome, Row, Table, Work, kept, write_json
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

# Those that use the same pieces, or the same compiled chains: what one has serves the others.
SHARING = (
    ("iid", "uncertainty", "shift", "mismatch", "readouts"),
    ("ablations", "steps", "posteriors"),
)

__all__ = ["ITEMS", "SHARING", "MissingData", "Outcome", "Row", "Table", "Work", "reproduce"]


def reproduce(name: str, work: Work) -> dict[str, Any]:
    """Run one item, write what it found, and return that.

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
    >>> found = reproduce("sweep", Work(Path(mkdtemp()), small=True))
    >>> sorted(found)
    ['figures', 'numbers', 'rows', 'says', 'seconds', 'small', 'tables']
    """
    if name not in ITEMS:
        raise ValueError(f"no item is called {name!r}; there are {', '.join(ITEMS)}.")
    module = importlib.import_module(f"{__name__}.{name}")
    try:
        outcome = module.run(work)
    except MissingData as missing:
        found = {"missing": str(missing), "small": work.small}
        write_json(Path(work.out) / f"{name}.json", found)
        return found
    return kept(name, outcome, work)


def page(work: Work) -> Path:
    """Write the page of all items that have been run."""
    return write_page(work.out, modules())


def modules() -> dict[str, ModuleType]:
    """Those of all items, which take seconds to import."""
    return {name: importlib.import_module(f"{__name__}.{name}") for name in ITEMS}
