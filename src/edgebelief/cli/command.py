"""A function as a command: its parameters become options, and it runs in a session."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any

from .options import Json
from .session import session


def in_session(run: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function whose first argument is the session in which it runs.

    A parameter whose type is a dataclass of `options` becomes its options; --json comes last.
    """
    _, *declared = inspect.signature(run, eval_str=True).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in declared if is_dataclass(p.annotation)}

    @wraps(run)
    def command(json: bool, **values: Any) -> None:
        with session(json) as this:
            for name, group in groups.items():
                chosen = {field.name: values.pop(field.name) for field in fields(group)}
                values[name] = group(**chosen)
            run(this, **values)

    options: list[inspect.Parameter] = []
    for p in declared:
        group = groups.get(p.name)
        options += [p] if group is None else inspect.signature(group).parameters.values()
    # Typer reads the signature. Nothing is positional, for required options may follow others.
    options = [p.replace(kind=p.KEYWORD_ONLY) for p in options]
    json = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    vars(command)["__signature__"] = inspect.Signature([*options, json])
    return command
