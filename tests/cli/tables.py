"""Little tables as text."""

from typing import Any

import numpy as np

NAMES = ("ada", "bob", "cy", "dee")
PATH = np.diag([1, 1, 1], 1) + np.diag([1, 1, 1], -1)


def table(rows: Any, names: Any = NAMES, separator: str = ",") -> str:
    lines = [separator.join(names), *(separator.join(str(x) for x in row) for row in rows)]
    return "\n".join(lines) + "\n"


def square(matrix: Any, names: Any = NAMES, rows: Any = None) -> str:
    body = [[name, *row] for name, row in zip(rows or names, np.asarray(matrix), strict=False)]
    return table(body, ["node", *names])
