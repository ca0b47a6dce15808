"""Public names of a folder that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : str
        Its `__name__`.
    homes : mapping
        The public names that each of its modules defines.
    modules : iterable of str
        Its modules that are public names themselves.

    Examples
    --------
    >>> from edgebelief.lazy import lazily
    >>> get, _ = lazily("edgebelief", {"edges": ["Complete"]}, ["edges"])
    >>> get("Complete") is get("edges").Complete
    True
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    public = [*home_of, *modules]

    def get(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{home_of.get(name, name)}", package)
        return getattr(module, name) if name in home_of else module

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return get, listed
