"""The `edgebelief` command: the walk from a table to belief in edges, in a shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    0 fine, 2 usage, 3 bad input, 4 the verdict failed (results are written), 5 resources,
    130 interrupted (129 SIGHUP, 143 SIGTERM).

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the program, whose signals are then handled too.

    Examples
    --------
    >>> from edgebelief.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    edgebelief ...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        from .interrupt import end_on_signals

        end_on_signals("--json" in given)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no error
            stream.reconfigure(errors="backslashreplace")

    from .app import app
    from .session import USAGE, called_with, complain

    called_with.set(given)
    try:
        code = app(args=given or ["--help"], prog_name="edgebelief", standalone_mode=False)
    except SystemExit as stop:
        code = stop.code
    except Exception as error:
        if not hasattr(error, "format_message"):  # how Typer's errors of usage are known
            raise
        context = getattr(error, "ctx", None)
        about = f" See `{context.command_path} --help`." if context is not None else ""
        text = error.format_message().replace("Value error, ", "").rstrip(".")
        text = f"{text}{'' if text.endswith('?') else '.'}{about}"
        code = complain(text, USAGE, json_wanted="--json" in given)
    return code if isinstance(code, int) else int(code is not None)
