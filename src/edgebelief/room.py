"""How much memory there is, and what must fit in it."""

from pathlib import Path

from .errors import NoRoom, Remedy, Setting, SettingError

# Arrays of (N, N) doubles alive at the worst moment of a fit, and those that each graph keeps.
SCRATCH, KEPT = 40, 2
# The largest simulation: so many pairs of nodes in all graphs together, and so many numbers in the
# signals on one, are 0.8 GB each; and so many graphs take minutes, however small.
MOST_NUMBERS, MOST_GRAPHS = 10**8, 10**5
# Draws of the parameters at once: 0.4 GB.
MOST_DRAWS = 10**7
# Bytes that a sampled graph takes for each pair at the worst moment (1 in the end).
SAMPLED = 8
# Bytes that the pair network takes for each entry of an (N, N) matrix at the worst moment: some ten
# states of 96 numbers in single precision.
STATES = 4_000


def check_room(n_nodes: int, n_graphs: int = 1) -> None:
    """Refuse dense work on graphs that cannot fit, before the machine starts to swap.

    Examples
    --------
    >>> from edgebelief.room import check_room
    >>> check_room(n_nodes=10)
    """
    needed = 8.0 * n_nodes**2 * (SCRATCH + KEPT * n_graphs)
    what = (
        f"{n_graphs} graph{'' if n_graphs == 1 else 's'} of {n_nodes} nodes "
        f"({n_nodes * (n_nodes - 1) // 2:,} pairs) need"
    )
    _check(needed, what, Remedy("Use fewer nodes", Setting("nodes", python="")))


def check_samples(n: int, n_pairs: int) -> None:
    """Refuse to sample more graphs than fit, `n` of so many pairs in all.

    Examples
    --------
    >>> from edgebelief.room import check_samples
    >>> check_samples(n=100, n_pairs=45)
    """
    _check(SAMPLED * n * n_pairs, f"{n:,} samples of {n_pairs:,} pairs need", "Ask for fewer")


def check_pair_states(n_nodes: int) -> None:
    """Refuse to run the pair network on a graph where its states would not fit.

    Examples
    --------
    >>> from edgebelief.room import check_pair_states
    >>> check_pair_states(n_nodes=10)
    """
    what = f"the pair network on {n_nodes} nodes needs"
    _check(float(STATES) * n_nodes**2, what, "Use fewer nodes")


def _check(needed: float, what: str, remedy: str | Remedy) -> None:
    free = available_memory()
    if free is not None and needed > 0.9 * free:  # a tenth for all else
        problem = (
            f"{what} about {needed / 2**30:,.1f} GB of memory, and {free / 2**30:.1f} GB are free"
        )
        raise NoRoom(problem, remedy=[remedy, "a larger machine"])


def check_simulation(n_nodes: int, n_signals: int = 0, n_graphs: int = 1) -> None:
    """Refuse what is too large to simulate, before anything is allocated.

    Examples
    --------
    >>> from edgebelief.room import check_simulation
    >>> check_simulation(n_nodes=20, n_signals=1000, n_graphs=50)
    """
    if n_graphs > MOST_GRAPHS:
        raise SettingError(f"at most {MOST_GRAPHS:,} graphs are simulated; got {n_graphs:.4g}.")
    graphs = f"{n_graphs:.4g} graph{'' if n_graphs == 1 else 's'}"
    sizes = {
        f"{graphs} of {n_nodes:.4g} nodes": n_graphs * n_nodes * (n_nodes - 1) // 2,
        f"{n_signals:.4g} signals on {n_nodes:.4g} nodes": n_signals * n_nodes,
    }
    for what, numbers in sizes.items():
        if numbers > MOST_NUMBERS:
            raise SettingError(
                f"{what} are {numbers:.2g} numbers; at most {MOST_NUMBERS:.0e} are simulated",
                remedy="Ask for fewer",
            )


def available_memory() -> float | None:
    """Return how many bytes are free, or None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None  # not Linux: then it is found out the hard way
