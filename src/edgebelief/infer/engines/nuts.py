"""NUTS: Hamiltonian Monte Carlo with the gradient of the log density, for every network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Shaped

from ...cores import n_cores
from ...data.randomness import Key
from ...progress import progress_bar
from ...threads import Workers, paced
from ...validate import check_choice, check_least
from ..diagnostics import EBFMI, EFFECTIVE_DRAWS, RHAT, Finding
from ..gradient.density import LogDensity, values_of
from ..gradient.optimise import Frame, Start
from ..posterior import Fit
from ..prepare import Problem
from .base import Engine

if TYPE_CHECKING:
    from numpyro.infer.hmc import HMCState

ChainMethod = Literal["parallel", "vectorized"]
ChainIn = TypeVar("ChainIn")
ChainOut = TypeVar("ChainOut")

# A draw that stops at the greatest tree depth is only slow; more than this share of them means that
# the mass matrix is wrong.
AT_MAX_DEPTH = 0.01
# The target acceptance: first the one with most effective draws per gradient (on the paper's data
# 2.6 times those of 0.8); if that leaves a finding, a careful one, with a warm-up long enough to
# learn the mass matrix.
QUICK, CAREFUL, CAREFUL_WARMUP = 0.6, 0.95, 500
# From this many steps on, warm-up learns a mass matrix too; before, only a step size.
LEARNS = 300
# The largest number of draws in a compiled call: between two calls a progress bar moves, and Ctrl-C
# is heard.
MOST = 50
# What NumPyro records per draw, and ArviZ's name for it.
RECORDED = {
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
    "accept_prob": "acceptance_rate",
    "potential_energy": "lp",
}


@dataclass(frozen=True)
class NUTS(Engine):
    """The no-U-turn sampler of NumPyro, started where the posterior is.

    Chains start around the mode, in coordinates where the Laplace approximation is a standard
    normal (which is the same as its covariance as a dense mass matrix): then a draw takes few
    steps, and warm-up has only a step size to find. It runs in JAX's default precision.

    For `DPG`, `Exact` is faster and has no Monte Carlo error; this engine is for all other
    networks, and to check `Exact`.

    Parameters
    ----------
    n_warmup, n_draws, n_chains : int
        Draws are per chain, after warm-up. From 300 steps of warm-up on, the dense mass matrix is
        learned too; before, it stays that of the Laplace approximation.
    target_accept : float, optional
        A higher one makes smaller steps; the remedy for divergences. By default 0.6, which is the
        most efficient where chains start as well as here; and if that leaves a finding, a second
        run at 0.95 with at least 500 steps of warm-up. The posterior's settings say which it was.
    chain_method : {"parallel", "vectorized"}, optional
        "vectorized": all chains in one computation, the default on an accelerator. "parallel":
        spread over JAX's devices or over the CPU's cores, the default there. The posterior's
        settings say how many chains each of them ran.
    init : {"map", "prior"}
        "prior" starts each chain at a draw of the prior, and learns a dense mass matrix in warm-up
        (give it 500 steps). It finds nothing if the likelihood is flat there; "map" does.
    progress : bool, optional
        Whether to show a progress bar; by default if stderr is a terminal.
    max_tree_depth : int
        A draw takes at most 2 to this power steps; a well-scaled problem needs 3 to 7 of them.
        Draws that stop there are counted, and reported if there are many.

    Examples
    --------
    >>> from edgebelief.data import GraphDataset, RandomGeometric
    >>> from edgebelief.infer import EdgeModel
    >>> from edgebelief.infer.engines.nuts import NUTS
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(3, RandomGeometric(0.5), 8, n_nodes=8, n_signals=30)
    >>> NUTS().run(2, EdgeModel(DPG(depth=10)), data).n_draws
    4000
    """

    n_warmup: int = 150
    n_draws: int = 1000
    n_chains: int = 4
    target_accept: float | None = None
    chain_method: ChainMethod | None = None
    init: Start = "map"
    progress: bool | None = None
    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        check_choice(self.init, "init", get_args(Start))
        check_choice(self.chain_method, "chain_method", (*get_args(ChainMethod), None))
        check_least(self, n_warmup=0, n_draws=4, n_chains=1, max_tree_depth=1)

    def _fit(self, key: Key, problem: Problem) -> Fit:
        model, data, counts = problem.model, problem.data, problem.counts
        density = LogDensity.of(model, data, counts)
        frame = Frame.started_from(self.init, model, data, counts)
        # Where graphs are spread over devices, all chains are one program on all of them.
        method = self.chain_method if density.mesh is None else "vectorized"
        groups = chain_groups(self.n_chains, method)
        for engine in self._attempts():
            sampled = engine._sample(key, density, frame, groups)
            figures = _figures(sampled, self.max_tree_depth)
            findings = _findings(figures, self)
            if not findings:
                break
        total = self.n_chains * self.n_draws
        return Fit(
            values_of(model, sampled.z.reshape(total, -1)),
            np.full(total, 1 / total),
            figures,
            findings,
            settings={**asdict(engine), "chains per device": [group.size for group in groups]},
            n_chains=self.n_chains,
            sample_stats=sampled.stats,
        )

    def _attempts(self) -> list[NUTS]:
        """Return the settings that are tried in turn, until one leaves no finding."""
        if self.target_accept is not None:
            return [self]
        n_warmup = max(self.n_warmup, CAREFUL_WARMUP)
        careful = replace(self, target_accept=CAREFUL, n_warmup=n_warmup)
        return [replace(self, target_accept=QUICK), careful]

    def _sample(
        self, key: Key, density: LogDensity, frame: Frame, groups: list[ChainGroup]
    ) -> Sampled:
        """Run all chains."""
        start_key, run_key = jax.random.split(key)
        starts = jax.random.normal(start_key, (self.n_chains, frame.center.size))
        if self.init == "map":
            starts = jnp.asarray(frame.brought_back(np.asarray(starts), density), starts.dtype)
        keys = jax.random.split(run_key, self.n_chains)
        precise = starts.dtype == jnp.float64
        total = (self.n_warmup + self.n_draws) * len(groups)
        # The frame is an argument, not a constant: one compilation for all data of a shape.
        frame = Frame(*(np.asarray(x, starts.dtype) for x in frame))

        with progress_bar(self.progress, total=total, desc="NUTS") as bar:

            def run(group: ChainGroup) -> Recorded:
                with jax.enable_x64(precise), jax.default_device(group.device):
                    chains = slice(group.first, group.first + group.size)
                    setup, parts = (self, density, frame, group.vectorized), []
                    states = _begin(*setup, starts[chains], keys[chains])
                    for total, kept in ((self.n_warmup, False), (self.n_draws, True)):
                        for n in paced(total, MOST):
                            states, drawn = _advance(*setup, states, np.int32(n))
                            if kept:
                                parts.append(
                                    jax.tree.map(lambda x, n=n: np.asarray(x)[:, :n], drawn)
                                )
                            jax.block_until_ready(states)
                            bar.update(n)
                    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)

            with Workers(len(groups)) as workers:
                by_group = list(workers.map(run, groups))
        w, fields = jax.tree.map(lambda *x: np.concatenate(x), *by_group)
        stats = {name: fields[field] for field, name in RECORDED.items()}
        stats["lp"] = -stats["lp"]
        stats["tree_depth"] = np.ceil(np.log2(stats["n_steps"] + 1)).astype(int)
        return Sampled(frame.z(np.asarray(w, float)), stats)


class Sampled(NamedTuple):
    """The draws of all chains, in the coordinates z, and what was recorded about each."""

    z: Float[np.ndarray, "chains draws parameters"]
    stats: dict[str, Shaped[np.ndarray, "chains draws"]]


class Recorded(NamedTuple):
    """Draws in the coordinates w, and the fields of NumPyro's state that are recorded."""

    w: Float[Array, "..."]
    fields: dict[str, Shaped[Array, "..."]]


class ChainGroup(NamedTuple):
    """Chains on one device, side by side or one after another."""

    first: int
    size: int
    device: jax.Device
    vectorized: bool


def chain_groups(n_chains: int, method: ChainMethod | None) -> list[ChainGroup]:
    """Spread chains over JAX's devices or, on a CPU, over its cores."""
    (chosen,) = jnp.zeros(()).devices()
    devices = jax.local_devices(backend=chosen.platform)
    on_cpu = devices[0].platform == "cpu"
    if method is None:
        method = "parallel" if on_cpu or len(devices) > 1 else "vectorized"
    n_groups = 1 if method == "vectorized" else max(len(devices), n_cores() if on_cpu else 1)
    size = -(-n_chains // n_groups)
    vectorized = not on_cpu or n_groups == 1
    return [
        ChainGroup(first, min(size, n_chains - first), devices[k % len(devices)], vectorized)
        for k, first in enumerate(range(0, n_chains, size))
    ]


def _kernel(
    engine: NUTS, density: LogDensity, frame: Frame, w: Float[Array, " parameters"], key: Key
) -> tuple[HMCState, Callable[[HMCState], HMCState]]:
    """Set up NumPyro's sampler at `w`: the state, and the function from a state to the next."""
    from numpyro.infer.hmc import hmc  # here: it takes a while, and other engines need none of it

    def potential(w: Array) -> Array:
        return -density(frame.z(w))

    begin, advance = hmc(potential_fn=potential, algo="NUTS")
    learns = engine.init == "prior" or engine.n_warmup >= LEARNS
    state = begin(
        w,
        num_warmup=engine.n_warmup,
        adapt_mass_matrix=learns,
        dense_mass=learns,
        target_accept_prob=engine.target_accept,
        max_tree_depth=engine.max_tree_depth,
        rng_key=key,
    )
    return state, advance


@eqx.filter_jit
def _begin(
    engine: NUTS,
    density: LogDensity,
    frame: Frame,
    vectorized: bool,
    starts: Float[Array, "chains parameters"],
    keys: Key,
) -> HMCState:
    """Return the first state of each chain."""

    def begin(start: tuple[Array, Key]) -> HMCState:
        return _kernel(engine, density, frame, *start)[0]

    return _each(begin, (starts, keys), vectorized)


@eqx.filter_jit
def _advance(
    engine: NUTS,
    density: LogDensity,
    frame: Frame,
    vectorized: bool,
    states: HMCState,
    n: Int[ArrayLike, ""],
) -> tuple[HMCState, Recorded]:
    """Make `n` more draws of each chain; return the last states, and room for `MOST` draws.

    The number is an argument of the compiled function, so that it is compiled once.
    """

    def advance_chain(state: HMCState) -> tuple[HMCState, Recorded]:
        # The kernel's state is not used: the compiler drops it.
        _, advance = _kernel(engine, density, frame, state.z, state.rng_key)

        def record(state: HMCState) -> Recorded:
            return Recorded(state.z, {field: getattr(state, field) for field in RECORDED})

        def draw(k: Array, done: tuple[HMCState, Recorded]) -> tuple[HMCState, Recorded]:
            new = advance(done[0])
            return new, jax.tree.map(lambda all, x: all.at[k].set(x), done[1], record(new))

        room = jax.tree.map(lambda x: jnp.zeros((MOST, *x.shape), x.dtype), record(state))
        return jax.lax.fori_loop(0, n, draw, (state, room))

    return _each(advance_chain, states, vectorized)


def _each(function: Callable[[ChainIn], ChainOut], chains: ChainIn, vectorized: bool) -> ChainOut:
    """Apply a function to each chain. Vectorized chains all wait for the slowest one."""
    return jax.vmap(function)(chains) if vectorized else jax.lax.map(function, chains)


def _figures(sampled: Sampled, deepest: int) -> dict[str, float]:
    """Compute the convergence diagnostics, the worst over parameters and chains."""
    from arviz_stats.base import array_stats  # slow to import

    by_parameter, stats = np.moveaxis(sampled.z, -1, 0), sampled.stats
    # A chain that never moved has no spread: the figure is then infinite or NaN, and a finding.
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = array_stats.ess(by_parameter, method="tail", prob=(0.05, 0.95))
        return {
            "R-hat": float(np.max(array_stats.rhat(by_parameter))),
            "effective draws (bulk)": float(np.min(array_stats.ess(by_parameter, method="bulk"))),
            "effective draws (tail)": float(np.min(tail)),
            "divergences": float(stats["diverging"].sum()),
            "E-BFMI": float(np.min(array_stats.bfmi(stats["energy"]))),
            "draws at max tree depth": float((stats["tree_depth"] >= deepest).mean()),
            "steps a draw": float(stats["n_steps"].mean()),
        }


def _findings(figures: Mapping[str, float], engine: NUTS) -> list[Finding]:
    """Return a finding for each figure beyond its threshold; NaN is beyond."""
    effective = min(figures["effective draws (bulk)"], figures["effective draws (tail)"])
    rhat, ebfmi, at_max = (figures[x] for x in ("R-hat", "E-BFMI", "draws at max tree depth"))
    checks = [
        (
            rhat <= RHAT,
            "R-hat",
            rhat,
            f"the chains disagree (R-hat {rhat:.3f}, above {RHAT}). Run a longer warm-up "
            f"(n_warmup), or look for several modes.",
        ),
        (
            effective >= EFFECTIVE_DRAWS,
            "effective draws",
            effective,
            f"the draws are worth {effective:.0f} independent ones, fewer than {EFFECTIVE_DRAWS}: "
            f"means and quantiles are rough. Raise n_draws (now {engine.n_draws} a chain).",
        ),
        (
            figures["divergences"] == 0,
            "divergences",
            figures["divergences"],
            f"{figures['divergences']:.0f} transitions diverged: parts of the posterior may be "
            f"missing. Raise target_accept towards 1.",
        ),
        (
            ebfmi >= EBFMI,
            "E-BFMI",
            ebfmi,
            f"energy moves slowly (E-BFMI {ebfmi:.2f}, below {EBFMI}): the tails are hard to "
            f"reach. Run longer, or restate the prior.",
        ),
        (
            at_max <= AT_MAX_DEPTH,
            "tree depth",
            at_max,
            f"{at_max:.0%} of draws stopped at 2^{engine.max_tree_depth} steps: the scale of the "
            f"problem is not known. Run a longer warm-up (n_warmup).",
        ),
    ]
    return [Finding(name, value, message) for passed, name, value, message in checks if not passed]
