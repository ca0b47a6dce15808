"""How many processor cores this process may use."""

import os


def n_cores() -> int:
    """The cores that the system lets this process run on (on Linux), else all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
