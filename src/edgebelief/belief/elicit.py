"""Turn beliefs about graphs into a prior over parameters.

The belief is a statement about graphs: with probability `mass` the share of pairs that are joined
lies in an interval. The prior is one under which graphs drawn from the model do what is stated:

    parameters ~ prior,  logits = readout(network(e; theta); parameters),  edges ~ Bernoulli.

So everything that moves the density of a graph counts: theta, the readout's parameters, the curves
of an additive readout, the chance in each edge, and the differences between the inputs.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import logit

from ..data.dataset import Stack
from ..edges import Support, pairs_of
from ..errors import InputError, SettingError, SettingTypeError
from ..infer.batch import Batch
from ..infer.model import EdgeModel
from ..infer.priors import Prior, lognormal
from ..networks import DPG, Network, Output
from ..readouts import Readout, papers_readout
from ..validate import check_number, check_whole
from .checks import components_of
from .predict import DataLike, as_dataset
from .sweep import ThetaSweep, default_thetas, inputs_of, sweep_of

# Graphs that are drawn for the belief. The standard error of a share near 95 % is 0.7 points of
# 1000 draws, and less where draws are averaged over theta. Large graphs, whose density hardly
# varies by chance, get fewer draws: about `EDGES` edges in all, and at least `FEWEST` graphs.
# Components take longer to count.
DRAWS, DRAWS_OF_COMPONENTS, FEWEST, EDGES = 1024, 256, 128, 2_000_000
# Inputs that are used, evenly spaced among those given: densities vary little beyond these.
INPUTS = 16
# Of the pairs without a weight, so many are edges for each edge that is believed in: 1 in 20. On
# graphs of a density of 0.15 to 0.5 (random, images, stocks) b is then 3.7 to 4.9; fits find 2.9 to
# 6.4 there.
FALSE_EDGES = 1 / 20
# A typical edge has the logit 2 b: delta times its weight is 3 b. Fits find 2 to 3 there on random
# geometric graphs.
STEEP = 3.0
# The widest prior of log theta, the paper's; log delta and log b are at most half and a quarter as
# wide. The tightest is narrower than any that labels leave room for.
WIDEST, TIGHTEST = 2.0, 0.05
# Medians of theta that are tried, for each theta of the sweep.
PLACES = 8
# Quadrature over a standard normal: its probability beyond 5 is 1e-6.
NODES = np.linspace(-5, 5, 401)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
# Entries of the largest array of logits: 16 MB in float32.
NUMBERS = 4_000_000


class ThetaInterval(NamedTuple):
    """An interval of theta."""

    low: float
    high: float


class Beliefs(NamedTuple):
    """The beliefs that were stated to `elicit_prior`."""

    density: tuple[float, float]
    max_components: int | None
    mass: float
    """The probability with which a graph drawn from the model meets the other two."""

    def hold(
        self, density: Float[np.ndarray, "..."], components: Float[np.ndarray, "..."] | None
    ) -> Bool[np.ndarray, "..."]:
        """Whether graphs of these densities, and numbers of components, meet the beliefs."""
        inside = (density >= self.density[0]) & (density <= self.density[1])
        if self.max_components is None or components is None:
            return inside
        return inside & (components <= self.max_components)

    def __str__(self) -> str:
        text = f"a density between {self.density[0]:g} and {self.density[1]:g}"
        if self.max_components is not None:
            text += f" and at most {self.max_components} components"
        return text


class Elicited(Prior):
    """A `Prior` with the beliefs that it was made from. Use it as any other: EdgeModel(prior=...).

    Attributes
    ----------
    beliefs : Beliefs
        The beliefs that were stated.
    share : float
        The share of the graphs drawn from the model that meet them: `beliefs.mass`, or more where
        nearly all graphs that the model can draw do.
    sweep : ThetaSweep
        The learned graphs along theta, which `edgebelief.plots.SweepDisplay` shows.
    drawn : array, shape (n_thetas, 3)
        The quantiles 5 %, 50 % and 95 % of the density of graphs drawn from the model, at each
        theta of the sweep.
    """

    def __init__(
        self,
        prior: Prior,
        beliefs: Beliefs,
        share: float,
        sweep: ThetaSweep,
        drawn: Float[np.ndarray, "thetas 3"],
    ) -> None:
        super().__init__(**prior)
        self.beliefs, self.share, self.sweep, self.drawn = beliefs, share, sweep, drawn

    @property
    def interval(self) -> ThetaInterval:
        """The central interval of theta that has the stated probability."""
        tail = (1 - self.beliefs.mass) / 2
        return ThetaInterval(*(float(q) for q in self["theta"].quantile([tail, 1 - tail])))


def elicit_prior(
    e: DataLike,
    density: tuple[float, float],
    max_components: int | None = None,
    mass: float = 0.95,
    support: Support | None = None,
    *,
    network: Network | None = None,
    readout: Readout | None = None,
) -> Elicited:
    """Make a prior for theta, delta and b from beliefs about the graphs.

    A graph drawn from the model, for one of the inputs, has a density within `density` (and at most
    `max_components` components) with probability `mass`. Among the lognormal priors

        log theta ~ Normal(log m, s),  log delta ~ Normal(log d, s),  log b ~ Normal(log b0, s/2)

    it is the one with the largest s. Where s would exceed 1, theta alone becomes wider, up to 2.

    - m is where, for this s, most graphs meet the beliefs. Where there is only one bound (a density
      from 0, or up to 1), s is at most 1, and m is as far towards that bound as the beliefs allow.
    - b0 makes pairs without a weight add a twentieth to a density in the middle of `density`.
    - d gives the logit 2 b0 to an edge of the median weight, at the theta whose network has a
      density in the middle.

    Shares are found by simulation, always with the same random numbers, so that the same beliefs
    about the same inputs give the same prior. Parameters of the readout beyond delta and b keep the
    prior that `edgebelief.infer.EdgeModel` gives them. They move the density too: a prior that was
    elicited for one readout is wrong for another.

    Parameters
    ----------
    e, support
        As for `theta_sweep`; the distances are on the scale that will be fitted. Of many graphs 16
        are used.
    density : (float, float)
        The density of a graph, edges as a share of pairs, is believed to lie between these.
    max_components : int, optional
        A graph is believed to have at most so many connected components.
    mass : float
        The probability of these beliefs.
    network : Network, optional
        A network with one parameter, theta; by default `DPG`.
    readout : Readout, optional
        By default the paper's.

    Returns
    -------
    Elicited
        A `Prior`, with the beliefs, and the learned graphs along theta.

    Raises
    ------
    ValueError
        If no such prior meets the beliefs; the message says what can be reached.

    Examples
    --------
    >>> from edgebelief import belief, data, infer
    >>> graphs = data.GraphDataset.sample(0, data.RandomGeometric(0.4), n_graphs=3, n_nodes=15)
    >>> prior = belief.elicit_prior(graphs, density=(0.2, 0.5), mass=0.9)
    >>> check = belief.prior_predictive(1, infer.EdgeModel(prior=prior), graphs, n=1000)
    >>> 0.85 < check.share(0.2, 0.5) < 0.98
    True
    """
    beliefs = _check_beliefs(density, max_components, mass)
    network = _check_network(DPG() if network is None else network)
    readout = papers_readout(network) if readout is None else readout
    checked = inputs_of(e, support)
    kept = np.unique(np.linspace(0, len(checked) - 1, min(len(checked), INPUTS)).astype(int))
    checked = [checked[t] for t in kept]
    sweep = sweep_of(checked, default_thetas(checked))
    stacks, inputs = _run_along(e, support, kept, network, sweep.thetas)
    start = _start(inputs, sweep.thetas, beliefs)
    readout = _prepared(readout, stacks, [x.outputs[start.row] for x in inputs])
    if stacks:
        of_pairs = [Batch.of(readout, stack).without_labels().as_jax() for stack in stacks]
        inputs = [x._replace(batch=batch) for x, batch in zip(inputs, of_pairs, strict=True)]
    simulation = _Simulation(network, readout, start, inputs, sweep.thetas, beliefs)
    chosen = _weakest(simulation, beliefs)
    median = float(np.exp(chosen.log_median))
    prior = start.prior(chosen.spread, median)
    drawn = np.quantile(chosen.graphs.density, (0.05, 0.5, 0.95), axis=1).T
    return Elicited(prior, beliefs, chosen.share, sweep, drawn)


class _Start(NamedTuple):
    """The centre of the prior: where a sharp readout gives the believed density."""

    row: int
    """Which theta of the sweep it is at."""
    theta: float
    delta: float
    b: float
    log_medians: Float[np.ndarray, " places"]
    """Medians of log theta to choose from: where no graph's weights are all zero."""

    def prior(self, spread: float, theta: float | None = None) -> Prior:
        """Make the prior of this spread, with another median of theta if one is given."""
        of_readout = min(spread, 1.0)
        return Prior(
            theta=lognormal(self.theta if theta is None else theta, spread),
            delta=lognormal(self.delta, of_readout),
            b=lognormal(self.b, of_readout / 2),
        )


class _Inputs(NamedTuple):
    """Inputs of one size, and what the network computes from them at each theta."""

    batch: Batch
    outputs: list[Output]


def _run_along(
    e: DataLike,
    support: Support | None,
    kept: Int[np.ndarray, " kept"],
    network: Network,
    thetas: Float[np.ndarray, " thetas"],
) -> tuple[list[Stack], list[_Inputs]]:
    """Run the network on the graphs to keep, at each theta; all pairs come as stacks too."""
    if support is None:
        stacks = [stack.part(np.isin(stack.places, kept)) for stack in as_dataset(e).stacks()]
        stacks = [stack for stack in stacks if len(stack.places)]
        batches = [Batch(stack.e, stack.support).as_jax() for stack in stacks]
    else:
        inputs = inputs_of(e, support)
        stacks = []
        batches = [Batch(inputs[t][0][None], inputs[t][1]).as_jax() for t in kept]
    along = jnp.asarray(thetas)
    return stacks, [_Inputs(x, [_output(network, theta, x) for theta in along]) for x in batches]


def _start(inputs: list[_Inputs], thetas: Float[np.ndarray, " thetas"], beliefs: Beliefs) -> _Start:
    """Find where the network has the believed density, and how large its weights are there."""
    density, typical = np.zeros(thetas.size), np.zeros(thetas.size)
    for k in range(thetas.size):
        weights = [a for x in inputs for a in np.asarray(x.outputs[k].a, float)]
        pairs = [pairs_of(x.batch.support.n_nodes) for x in inputs for _ in x.batch.e]
        present = [a[a > 0] for a in weights]
        density[k] = np.mean([a.size / n for a, n in zip(present, pairs, strict=True)])
        typical[k] = np.mean([np.median(a) if a.size else np.nan for a in present])
    alive = np.isfinite(typical)
    middle = sum(beliefs.density) / 2
    k = int(np.argmin(np.where(alive, abs(density - middle), np.inf)))
    b = -float(logit(FALSE_EDGES * middle))
    first, *_, last = np.log(thetas[alive])
    places = np.linspace(first, last, PLACES * int(alive.sum()))
    return _Start(k, float(thetas[k]), STEEP * b / float(typical[k]), b, places)


class _Graphs(NamedTuple):
    """Graphs drawn from the model at each theta, the other parameters from their prior."""

    density: Float[np.ndarray, "thetas draws"]
    inside: Float[np.ndarray, " thetas"]
    """The share that meets the beliefs."""


class _Simulation(NamedTuple):
    """What it takes to draw graphs along theta; the same random numbers serve every prior."""

    network: Network
    readout: Readout
    start: _Start
    inputs: list[_Inputs]
    thetas: Float[np.ndarray, " thetas"]
    beliefs: Beliefs

    def graphs(self, spread: float) -> _Graphs:
        """Draw graphs at each theta, with the other parameters from the prior of this spread."""
        model = EdgeModel(self.network, self.readout, self.start.prior(spread))
        most = DRAWS if self.beliefs.max_components is None else DRAWS_OF_COMPONENTS
        n_inputs = sum(len(batch.e) for batch, _ in self.inputs)
        rng, density, meets = np.random.default_rng(0), [], []
        for batch, outputs in self.inputs:
            n_graphs, n_edges = batch.e.shape
            n = -(-int(np.clip(EDGES // n_edges, FEWEST, most)) // n_inputs)
            values = model.from_z(rng.standard_normal((n_graphs, n, model.n_free)))
            names = self.readout.params_type._fields
            draws = {name: jnp.asarray(values[name], batch.e.dtype) for name in names}
            chance = jnp.asarray(rng.random((n_graphs, n, n_edges)), batch.e.dtype)
            edges = (_edges(self.readout, output, draws, chance, batch) for output in outputs)
            measured = [self._measure(np.asarray(drawn), batch.support) for drawn in edges]
            density.append([shares.ravel() for shares, _ in measured])
            meets.append([hold.ravel() for _, hold in measured])
        return _Graphs(np.concatenate(density, 1), np.concatenate(meets, 1).mean(1))

    def _measure(
        self, edges: Bool[np.ndarray, "graphs draws edges"], support: Support
    ) -> tuple[Float[np.ndarray, "graphs draws"], Bool[np.ndarray, "graphs draws"]]:
        """The densities of graphs, and whether they meet the beliefs."""
        density = edges.sum(-1) / pairs_of(support.n_nodes)
        wanted = self.beliefs.max_components is not None
        components = components_of(edges, support) if wanted else None
        return density, self.beliefs.hold(density, components)


class _Chosen(NamedTuple):
    """A prior of theta, and the share of graphs that meets the beliefs under it."""

    spread: float
    log_median: float
    share: float
    graphs: _Graphs


def _weakest(simulation: _Simulation, beliefs: Beliefs) -> _Chosen:
    """Find the widest prior under which enough graphs meet the beliefs."""
    low, high = beliefs.density
    bounded = low > 0 or beliefs.max_components is not None, high < 1

    def best(spread: float) -> _Chosen:
        graphs = simulation.graphs(spread)
        places = simulation.start.log_medians
        theta = places[:, None] + spread * NODES
        share = np.interp(theta, np.log(simulation.thetas), graphs.inside) @ WEIGHTS
        most = np.flatnonzero(share >= share.max() - 1e-3)
        k = most[len(most) // 2]
        enough = np.flatnonzero(share >= beliefs.mass)
        if enough.size and bounded == (False, True):
            k = enough[0]
        elif enough.size and bounded == (True, False):
            k = enough[-1]
        return _Chosen(spread, float(places[k]), float(share[k]), graphs)

    wide, tight = best(WIDEST if all(bounded) else WIDEST / 2), best(TIGHTEST)
    if wide.share >= beliefs.mass:
        return wide
    if tight.share < beliefs.mass:
        raise _out_of_reach(tight, simulation, beliefs)
    # To 3 % in the spread, which moves the share by far less than chance does.
    while wide.spread > 1.03 * tight.spread:
        between = best(float(np.sqrt(wide.spread * tight.spread)))
        if between.share >= beliefs.mass:
            tight = between
        else:
            wide = between
    return tight


@eqx.filter_jit
def _output(network: Network, theta: Float[Array, ""], batch: Batch) -> Output:
    return network(network.params_type(theta), batch.e, batch.support)


@eqx.filter_jit
def _edges(
    readout: Readout,
    output: Output,
    draws: dict[str, Array],
    chance: Float[Array, "graphs draws edges"],
    batch: Batch,
) -> Bool[Array, "graphs draws edges"]:
    """Draw graphs, given what the network computes from each input."""
    reduced = readout.reduce(output, batch.support, batch.pairs)

    def of_input(reduced: Array, draws: dict[str, Array], chance: Array) -> Array:
        def draw(one: tuple[dict[str, Array], Array]) -> Array:
            values, uniforms = one
            logits = readout.logits(readout.params_type(**values), reduced)
            return uniforms < jax.nn.sigmoid(logits)

        return jax.lax.map(draw, (draws, chance), batch_size=max(1, NUMBERS // batch.e.size))

    return jax.vmap(of_input)(reduced, draws, chance)


def _prepared(readout: Readout, stacks: list[Stack], outputs: list[Output]) -> Readout:
    """Show the inputs to the readout, where it needs to see them."""
    if readout.is_prepared:
        return readout
    if not stacks:
        problem = f"{type(readout).__name__} is for graphs all of whose pairs may be edges."
        raise SettingError(problem, argument="readout")
    return readout.prepared(stacks, outputs)


def _check_network(network: Network) -> Network:
    if network.kind != "dpg":
        raise InputError(
            f"{type(network).__name__} has no theta that alone decides how many edges there are: "
            f"beliefs about graphs make a prior for DPG. Give it a Prior, or its name.",
        )
    return network


def _check_beliefs(
    density: tuple[float, float], max_components: int | None, mass: float
) -> Beliefs:
    try:
        low, high = (check_number(value, "density") for value in density)
    except (TypeError, ValueError):
        raise SettingTypeError(
            f"must be two numbers, such as (0.1, 0.3); got {density!r}.", argument="density"
        ) from None
    if not 0 <= low < high <= 1:
        problem = f"must be two shares of all pairs, 0 <= low < high <= 1; got {density!r}."
        raise SettingError(problem, argument="density")
    if max_components is not None:
        max_components = check_whole(max_components, "max_components", 1)
    mass = check_number(mass, "mass")
    if not 0.5 < mass < 1:
        raise SettingError(f"must be above 0.5 and below 1; got {mass:g}.", argument="mass")
    return Beliefs((low, high), max_components, mass)


def _out_of_reach(tight: _Chosen, simulation: _Simulation, beliefs: Beliefs) -> InputError:
    """Make the error for beliefs that not even the tightest prior meets, with what it reaches."""
    median = np.median(tight.graphs.density, axis=1)
    nearest = int(np.argmin(abs(median - sum(beliefs.density) / 2)))
    tail = (1 - beliefs.mass) / 2
    low, high = np.quantile(tight.graphs.density[nearest], [tail, 1 - tail])
    return InputError(
        f"no prior gives {beliefs.mass:.0%} of the graphs drawn from the model {beliefs}: at most "
        f"{max(tight.share, 0):.0%}. Under the nearest, {beliefs.mass:.0%} have a density between "
        f"{low:.3g} and {high:.3g}. State a wider range, or a smaller mass."
    )
