"""How many processor cores this process may use."""

from joblib import cpu_count


def n_cores() -> int:
    """Return the number of cores that this process may use.

    Processor affinity, the quota of a container and the variable `LOKY_MAX_CPU_COUNT` can each make
    it smaller than the number that the machine has.
    """
    return cpu_count()
