"""A checker for jaxtyping's import hook: shapes in annotations, at every call while tests run.

Only annotations that have a shape are checked. The others are left to mypy, for tests pass what is
wrong on purpose, to see the package's own error.
"""

from typing import get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float, as for mypy


def check(function):
    """Check the arguments and the result whose annotation has a shape."""
    hints = function.__annotations__
    function.__annotations__ = {name: hint for name, hint in hints.items() if has_shape(hint)}
    return checked(function) if function.__annotations__ else function


def has_shape(hint) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(has_shape(part) for part in get_args(hint))
