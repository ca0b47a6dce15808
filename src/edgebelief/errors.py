"""Errors as data: what is wrong, with which argument, in which graph, where, and what to do.

`str(error)` is the library's sentence, which speaks of Python arguments. The command line makes its
own sentence, which speaks of options, from the same parts.

    ValueError
      InputError            the data are wrong; an InputTypeError is a TypeError too
        SettingError        a setting is wrong; a SettingTypeError is a TypeError too
          DoesNotApply      an engine that cannot fit a model
    MemoryError
      NoRoom                what was asked needs more memory than there is

An `InputError` is for the user to mend, and a `NoRoom` for another machine. Any other exception is
a bug of ours, save what the operating system reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

# A sentence is read in a terminal, and quotes names and cells of files, which may have any length.
LONGEST_SENTENCE = 480  # six lines of 80 characters
LONGEST_WORD = 160  # most paths; two of them leave room for what is wrong


def shortened(text: str, most: int) -> str:
    """Cut a text in the middle where it is longer than `most`, and say how long it was.

    Examples
    --------
    >>> from edgebelief.errors import shortened
    >>> shortened("x" * 5000, 32)
    'xxxxxx...(5,000 characters)...xx'
    """
    if len(text) <= most:
        return text
    cut = f"...({len(text):,} characters)..."
    room = max(most - len(cut), 0)
    end = room // 4  # the beginning tells more
    return f"{text[: room - end]}{cut}{text[len(text) - end :]}"


def legible(sentence: str) -> str:
    """Cut a sentence that a value from a file has made too long: first words, then the whole."""
    long = rf"[^\s'\",:;]{{{LONGEST_WORD + 1},}}"  # without quotes around it, which do not count
    words = re.sub(long, lambda match: shortened(match[0], LONGEST_WORD), sentence)
    return shortened(words, LONGEST_SENTENCE)


class Setting(NamedTuple):
    """A setting that a sentence names; as text, what to write in Python."""

    name: str
    value: object = None
    """None for the name alone; ``...`` for a value of the user's own."""
    python: str | None = None
    """What to write in Python, where that is not ``name=value``; "" for nothing at all."""

    def __str__(self) -> str:
        if self.python is not None:
            return self.python
        value = "..." if self.value is ... else repr(self.value)
        return self.name if self.value is None else f"{self.name}={value}"


class Remedy(NamedTuple):
    """One thing that a user may do, and the setting that does it.

    Where there is no such setting (in a shell, say), the remedy is left out.
    """

    words: str
    """With {} for the setting; else it follows in brackets."""
    setting: Setting

    def sentence(self, write: Callable[[Setting], str | None]) -> str | None:
        """Return the remedy in words, or None where `write` knows no such setting."""
        written = write(self.setting)
        if not written or "{}" in self.words:
            return None if written is None else self.words.replace("{}", written)
        return f"{self.words} ({written})"


class Message(Exception):
    """A sentence in its parts, for errors and warnings.

    Parameters
    ----------
    problem : str
        What is wrong: a sentence, or its predicate where `argument` or `where` is the subject.
    argument : str, optional
        The name of the argument that the problem is with.
    graph : int or str, optional
        The graph that the problem is in: its index in the data set, or its name.
    where : str, path or tuple, optional
        A file or a place in it; or an entry of the argument: a pair of nodes, a row and a node.
    remedy : str, Remedy or several of them, optional
        What to do; of several, any will do.

    Examples
    --------
    >>> from edgebelief.errors import InputError, Remedy, Setting
    >>> by_pairs = Remedy("use for each pair what there is", Setting("missing", "pairwise"))
    >>> parts = {"argument": "signals", "graph": 2, "where": (5, "ada")}
    >>> error = InputError("is nan", **parts, remedy=["fill the gap", by_pairs])
    >>> print(error)
    graph 2: signals[5, 'ada'] is nan; fill the gap, or use for each pair what there is
    (missing='pairwise').
    >>> error.argument, error.where
    ('signals', (5, 'ada'))
    """

    def __init__(
        self,
        problem: str = "",
        *,
        argument: str | None = None,
        graph: int | str | None = None,
        where: str | Path | tuple[object, ...] | None = None,
        remedy: str | Remedy | Sequence[str | Remedy] = (),
    ):
        super().__init__(problem)
        self.problem, self.argument, self.graph, self.where = problem, argument, graph, where
        self.remedy = remedy

    def sentence(self, write: Callable[[Setting], str | None] = str) -> str:
        """Return the whole, with settings as `write` writes them (None for one there is not).

        What is too long to be read is cut in the middle; the parts keep the whole.
        """
        return legible(self._whole(write))

    def _whole(self, write: Callable[[Setting], str | None]) -> str:
        text = f"{self._subject(write)} {self.problem}".lstrip()
        if isinstance(self.where, str | Path):
            text = f"{self.where}: {text}"
        if self.graph is not None:
            name = self.graph if isinstance(self.graph, str) else f"graph {self.graph}"
            text = f"{name}: {text}"
        if not self.remedy:
            return text
        remedies = [self.remedy] if isinstance(self.remedy, str | Remedy) else self.remedy
        said = [r if isinstance(r, str) else r.sentence(write) for r in remedies]
        *others, last = [words for words in said if words] or [""]
        cure = f"{', '.join(others)}, or {last}" if others else last
        if text.endswith("?"):
            return f"{text} {cure[:1].upper()}{cure[1:]}."
        text = text.removesuffix(".")
        joint = ". " if cure[:1].isupper() else "; " if cure else ""
        return f"{text}{joint}{cure}."

    def _subject(self, write: Callable[[Setting], str | None]) -> str:
        entry = f"[{', '.join(map(repr, self.where))}]" if isinstance(self.where, tuple) else ""
        return f"{self.argument or ''}{entry}"

    def but(self, **parts: object) -> Self:
        """Return the same message with other parts, for those who know more of them."""
        # Not copy.copy, which libraries change for exceptions (tblib, that of Dask).
        new = type(self).__new__(type(self), *self.args)
        vars(new).update(vars(self) | parts)
        return new

    def __str__(self) -> str:
        return self.sentence()


class InputError(Message, ValueError):
    """What was passed is wrong; see `Message` for its parts."""


class InputTypeError(InputError, TypeError):
    """What was passed is of the wrong type."""


class InputIndexError(InputError, IndexError):
    """A place that is not there."""


class SettingError(InputError):
    """A setting is wrong, or two of them do not go together."""

    def _subject(self, write: Callable[[Setting], str | None]) -> str:
        name = self.argument and (write(Setting(self.argument)) or self.argument)
        return name or ""


class SettingTypeError(SettingError, TypeError):
    """A setting of the wrong type."""


class DoesNotApply(SettingError):
    """An engine cannot fit this model; the message says what else can."""


class NoRoom(Message, MemoryError):
    """The machine is too small for what was asked; see `Message` for its parts."""


class InputWarning(Message, UserWarning):
    """What was passed is odd, and was used as it is; see `Message` for its parts."""
