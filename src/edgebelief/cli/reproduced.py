"""The paper's tables and figures from the shell."""

from __future__ import annotations

from pathlib import Path

from ..paper import ITEMS, Work, page, reproduce
from .session import Misused, Session


def reproduced(this: Session, names: list[str], data: Path | None, out: Path, small: bool) -> None:
    """Run items, say what each found, and write the page."""
    unknown = [name for name in names if name not in ITEMS]
    if unknown:
        raise Misused(f"no item is called {unknown[0]!r}; there are {', '.join(ITEMS)}.")
    if data is not None and not data.is_dir():
        raise ValueError(f"{data}: is no folder; --data is one with the authors' data.")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out}: is a file; --out is the name of a folder.")
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    chosen = names or list(ITEMS)
    for k, name in enumerate(chosen, 1):
        this.say(f"{k}/{len(chosen)}  {name}", "bold")
        work = Work(out, data, small, say=lambda text: this.note(f"     {text}"))
        with this.working(name):
            found[name] = reproduce(name, work)
        if "missing" in found[name]:
            this.say(f"     needs {found[name]['missing']}: give its folder as --data")
            continue
        for sentence in found[name]["says"]:
            this.say(f"     {sentence}")
        this.say(f"     {found[name]['seconds']:.0f} s, what was there already included", "dim")
    path = page(Work(out, data, small))
    this.say(f"\nAll of it, with figures: {path}")
    this.answer = {"page": str(path), "items": found}
