"""Make the reference and the rule of `alarm.py` for the weights that ship.

    1. Draw cases of the training world, of all sizes, and of the strangers for fitting; run the
       network on them.
    2. On half of the training world: principal directions of the states, regressions of features
       on facts, the Mahalanobis distance; with the strangers, the trees of the discriminant.
    3. On the other half: what inputs are compared with.
    4. The rule: slope and doubt as monotone functions of the surprise that minimise the NLL over
       that of the base rate, averaged over strangers, without and with a stated density (which
       adds to the surprise if it contradicts), and leave the training world as it is. The surprise
       of a stranger is by a discriminant that has not seen its kind: of new ones it will not have
       either.

Everything follows from the seed and the weights; no number was chosen by looking at one network.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logit, xlogy

from .alarm import Alarm
from .cases import Case, world_cases
from .features import DIRECTIONS, READABLE, facts, features
from .predict import evaluate
from .strangers import FIT, draw_stranger
from .temper import Law, Rule, contradiction, nll, stated_law, temper
from .trees import Trees, grow
from .typical import (
    Reference,
    basis,
    columns_of,
    larger,
    nearest,
    residuals,
    scores,
    surprise,
)
from .weights import pretrained

# Draws of the training world, by numbers of nodes. Large graphs are slow and vary little.
SIZES = ((500, (5, 12)), (1100, (10, 20)), (700, (15, 40)), (160, (41, 90)), (40, (91, 200)))
# Draws of each stranger.
EACH = 90
# So many pairs of a graph are enough for the principal directions, and for the rule.
PAIRS_OF_STATES, PAIRS = 40, 150
# Draws of the training world that the rule is fitted to.
MOST_WORLD = 500
# Ridges: of the regressions on facts, in draws; of covariances, in squared spreads.
RIDGE, SHRINK = 1.0, 0.05
# Strangers weigh half as much as the training world in the discriminant: the alarm is to be rare.
STRANGERS_WEIGH = 0.5
# The rule: its knots in surprise, and the values it may have there.
KNOTS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0])
SLOPES = np.array([1.0, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1, 0.0])
DOUBTS = np.array([0.0, 0.3, 0.6, 1.0, 1.5, 2.5])
# Tempering may raise the NLL of the training world by this share, in sum and of a typical graph;
# the weight of the training world is doubled until it does not.
BEARABLE = 0.005
HEAVIEST = 2.0**20
# NLL of a pair that are as good as zero: below them, ratios mean nothing.
NEARLY_ZERO = 1e-3
# The density is stated as a range of this factor to both sides, as far as that is below the limit.
FACTOR, LIMIT = 1.5, 0.95
# Densities of 0 and 1 have no logit: half an edge more, and half a pair without one.
HALF_AN_EDGE = 0.5


class Run(NamedTuple):
    """Cases, and what the network made of them."""

    cases: list[Case]
    logits: list[np.ndarray]
    states: list[np.ndarray]

    @property
    def facts(self) -> Float[np.ndarray, "draws facts"]:
        """What is known from the start of each."""
        return np.array(
            [
                facts(len(c.e), c.n_signals, c.is_correlation, c.signals is not None)
                for c in self.cases
            ]
        )


def make(
    seed: int = 0,
    sizes: tuple[tuple[int, tuple[int, int]], ...] = SIZES,
    each: int = EACH,
    log: Callable[[str], None] = lambda text: None,
) -> Alarm:
    """Make the alarm of the weights that ship.

    Parameters
    ----------
    seed : int
        Same seed, same alarm, on the same machine.
    sizes : tuple of (int, (int, int))
        How many draws of the training world, with how many nodes.
    each : int
        How many draws of each stranger.
    log : callable
        Is told what has been done.

    Returns
    -------
    Alarm
    """
    world = Run([], [], [])
    for k, (count, nodes) in enumerate(sizes):
        _add(world, world_cases(1000 * seed + k, count, nodes))
        log(f"{len(world.cases)} graphs of the training world")
    strangers = Run([], [], [])
    for name in FIT:
        _add(strangers, [draw_stranger(name, 1000 * seed + k) for k in range(each)])
        log(f"{len(strangers.cases)} strangers: {name}")
    reference, surprises = _reference(np.random.default_rng(seed), world, strangers)
    log("reference")
    rule = _rule(reference, world, strangers, surprises, log)
    return Alarm(reference, rule)


def _add(run: Run, cases: list[Case]) -> None:
    for case in cases:
        logits, states = evaluate(
            pretrained(),
            case.e / max(case.e.max(), 1e-300),
            case.signals,
            case.n_signals,
            case.is_correlation,
        )
        run.cases.append(case)
        run.logits.append(logits)
        run.states.append(states.astype(np.float16))


def _reference(
    rng: np.random.Generator, world: Run, strangers: Run
) -> tuple[Reference, dict[str, np.ndarray]]:
    """Return the reference, and the surprise of held-out draws and of each stranger."""
    order = rng.permutation(len(world.cases))
    fitted, held = order[: len(order) // 2], order[len(order) // 2 :]
    pool = np.concatenate([_some(rng, world.states[k], PAIRS_OF_STATES) for k in fitted])
    middle = pool.mean(0)
    _, _, rotation = np.linalg.svd(pool - middle, full_matrices=False)
    directions = rotation[:DIRECTIONS].T
    (known, rows), (known_s, rows_s) = (
        (run.facts, _rows(run, middle, directions)) for run in (world, strangers)
    )
    nothing = np.zeros(0)
    no_trees = Trees(*(np.zeros((0, 1)) for _ in Trees._fields))
    reference = Reference(
        middle,
        directions,
        *_regressions(known[fitted], rows[fitted]),
        whitening=np.eye(rows.shape[1]),
        shift=np.zeros(rows.shape[1]),
        trees=no_trees,
        facts=known[held],
        readable=rows[held, :READABLE],
        distance=nothing,
        odds=nothing,
        unlike=nothing,
        density=_densities(world),
    )
    r, r_s = residuals(reference, known, rows), residuals(reference, known_s, rows_s)
    covariance = np.cov(r[fitted].T) + SHRINK * np.eye(r.shape[1])
    values, vectors = np.linalg.eigh(covariance)
    reference = reference._replace(whitening=vectors / np.sqrt(values), shift=r[fitted].mean(0))
    columns, columns_s = columns_of(r, known), columns_of(r_s, known_s)

    def finished(kept: np.ndarray) -> Reference:
        one = reference._replace(trees=_discriminant(columns[fitted], columns_s[kept]))
        distance, odds = scores(one, known[held], r[held])
        one = one._replace(distance=distance, odds=odds)
        return one._replace(unlike=_against_others(one))

    kinds = np.array([case.kind for case in strangers.cases])
    surprises = {}
    for kind in dict.fromkeys(kinds):
        one = finished(kinds != kind)
        surprises[kind] = _surprises(one, known_s[kinds == kind], r_s[kinds == kind])
    whole = finished(np.ones(len(kinds), bool))
    world_surprise = np.full(len(order), np.nan)
    world_surprise[held] = _surprises(whole, known[held], r[held])
    return whole, surprises | {"world": world_surprise}


def _some(rng: np.random.Generator, rows: np.ndarray, count: int) -> np.ndarray:
    return rows[rng.integers(0, len(rows), count)].astype(float)


def _rows(run: Run, middle: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return np.array(
        [
            features(case.e, case.signals, logits, (states.astype(float) - middle) @ directions)
            for case, logits, states in zip(*run, strict=True)
        ]
    )


def _regressions(known: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Regress features, and the logarithm of their spread, on the facts."""
    b = basis(known)
    gram = b.T @ b + RIDGE * np.eye(b.shape[1])
    expected = np.linalg.solve(gram, b.T @ rows)
    residual = rows - b @ expected
    floor = 0.01 * residual.std(0) + 1e-6
    log_spread = np.linalg.solve(gram, b.T @ np.log(np.abs(residual) + floor))
    # Of a normal distribution, exp(mean log |x|) is 0.53 standard deviations; so that they are 1:
    root = np.sqrt(np.mean((residual / np.exp(b @ log_spread)) ** 2, axis=0))
    log_spread[0] += np.log(np.where(root > 0, root, 1.0))
    return expected, log_spread


def _densities(world: Run) -> np.ndarray:
    n = np.array([len(case.e) for case in world.cases])
    edges = np.array([case.labels.sum() for case in world.cases]) + HALF_AN_EDGE
    y = logit(edges / (n * (n - 1) / 2 + 2 * HALF_AN_EDGE))
    mean = np.polyfit(np.log(n), y, 2)
    return np.array([*mean, (y - np.polyval(mean, np.log(n))).std()])


def _discriminant(world: np.ndarray, strangers: np.ndarray) -> Trees:
    """Grow trees that tell strangers from the training world."""
    columns = np.vstack([world, strangers])
    y = np.r_[np.zeros(len(world)), np.ones(len(strangers))]
    weight = np.where(y == 1, STRANGERS_WEIGH * len(world) / len(strangers), 1.0)
    return grow(0, columns, y, weight)


def _against_others(reference: Reference) -> np.ndarray:
    """Return how unlike each held-out draw is, compared with the others."""
    result = []
    for k, known in enumerate(reference.facts):
        near = nearest(reference.facts, known)
        near = near[near != k]
        result.append(larger(reference, near, reference.distance[k], reference.odds[k]))
    return np.array(result)


def _surprises(reference: Reference, known: np.ndarray, r: np.ndarray) -> np.ndarray:
    result = []
    for row, distance, odds in zip(known, *scores(reference, known, r), strict=True):
        near = nearest(reference.facts, row)
        unlike = larger(reference, near, distance, odds)
        result.append(surprise(reference.unlike[near], unlike))
    return np.array(result)


def _rule(
    reference: Reference,
    world: Run,
    strangers: Run,
    surprises: dict[str, np.ndarray],
    log: Callable[[str], None],
) -> Rule:
    """Fit slopes that fall and doubts that rise with the surprise."""
    rng = np.random.default_rng(0)
    held = np.flatnonzero(np.isfinite(surprises["world"]))
    some = np.sort(rng.permutation(len(held))[:MOST_WORLD])
    held = held[some]
    surprises = surprises | {"world": surprises["world"][held]}
    groups = {"world": [(world, int(k)) for k in held]}
    for k, case in enumerate(strangers.cases):
        groups.setdefault(case.kind, []).append((strangers, k))
    tables, plain = {}, {}
    ratios = np.zeros((len(KNOTS), len(SLOPES), len(DOUBTS)))
    for kind, members in groups.items():
        apart = [contradiction(run.logits[k], _stated(run.cases[k])) for run, k in members]
        s = np.maximum(surprises[kind], 0.0)
        hats = np.stack([_hats(s), _hats(s + apart)], 1) / 2
        losses = np.array([_losses(rng, reference, run, k) for run, k in members])
        base = np.mean([_base(run.cases[k].labels) for run, k in members])
        tables[kind] = np.einsum("ilk,iltd->ktd", hats, losses) / len(members) / base
        plain[kind] = losses[:, 0, 0, 0].mean() / base
        if kind == "world":
            logs = np.log(losses + NEARLY_ZERO)
            ratios = np.einsum("ilk,iltd->ktd", hats, logs - logs[..., :1, :1]) / len(members)
        log(f"losses: {kind}, NLL {plain[kind]:.3f} of the base rate's")
    strange = np.mean([table for kind, table in tables.items() if kind != "world"], axis=0)
    weight = 1.0
    while True:
        chosen = _monotone(strange + weight * (tables["world"] + ratios))
        rows = range(len(KNOTS))
        after = {kind: sum(tables[kind][k][chosen[k]] for k in rows) for kind in tables}
        ratio = sum(ratios[k][chosen[k]] for k in rows)
        is_bearable = after["world"] <= (1 + BEARABLE) * plain["world"] and ratio <= BEARABLE
        if is_bearable or weight > HEAVIEST:
            break
        weight *= 2
    rule = Rule(KNOTS, SLOPES[[t for t, _ in chosen]], DOUBTS[[d for _, d in chosen]])
    for kind in tables:
        log(f"rule: {kind}, NLL {plain[kind]:.3f} -> {after[kind]:.3f} of the base rate's")
    log(f"rule: slopes {rule.slope.tolist()}, doubts {rule.doubt.tolist()}")
    return rule


def _hats(s: np.ndarray) -> Float[np.ndarray, "cases knots"]:
    """Return how much each knot counts for each case: linear between knots."""
    return np.stack([np.interp(s, KNOTS, unit) for unit in np.eye(len(KNOTS))], 1)


def _losses(
    rng: np.random.Generator, reference: Reference, run: Run, k: int
) -> Float[np.ndarray, "laws slopes doubts"]:
    """Return the NLL of a pair of one case, without and with a stated density."""
    case, logits = run.cases[k], run.logits[k]
    laws: list[Law | None] = [None, _stated(case)]
    world = reference.world_law(len(case.e))
    if len(logits) > PAIRS:
        some = rng.choice(len(logits), PAIRS, replace=False)
        logits, labels = logits[some], case.labels[some]
    else:
        labels = case.labels
    result = np.empty((len(laws), len(SLOPES), len(DOUBTS)))
    for (i, t), (j, tau) in product(enumerate(SLOPES), enumerate(DOUBTS)):
        result[:, i, j] = [nll(logits, labels, temper(logits, t, tau, law, world)) for law in laws]
    return result


def _stated(case: Case) -> Law:
    """Return what somebody may say of the density of a case."""
    d = (case.labels.sum() + HALF_AN_EDGE) / (len(case.labels) + 2 * HALF_AN_EDGE)
    return stated_law(range_about(float(d)))


def range_about(density: float) -> tuple[float, float]:
    """Return what somebody may say of a graph with this density.

    Examples
    --------
    >>> from edgebelief.amortise.calibrate import range_about
    >>> range_about(0.3)
    (0.2, 0.45)
    """
    return round(density / FACTOR, 12), round(min(density * FACTOR, LIMIT), 12)


def _base(labels: np.ndarray) -> float:
    d = labels.mean()
    return float(-xlogy(d, d) - xlogy(1 - d, 1 - d))


def _monotone(table: Float[np.ndarray, "knots slopes doubts"]) -> list[tuple[int, int]]:
    """Choose a slope and a doubt for each knot: the least sum, slopes falling, doubts rising.

    Dynamic programming: the best choice up to a knot that ends no later in either list. Both lists
    are in the order in which belief becomes weaker.
    """
    best, origins = table[0], []
    for costs in table[1:]:
        before = np.empty(best.shape)
        origin = np.empty((*best.shape, 2), int)
        for i, j in product(*map(range, best.shape)):
            candidates = [(best[i, j], (i, j))]
            if i:
                candidates.append((before[i - 1, j], tuple(origin[i - 1, j])))
            if j:
                candidates.append((before[i, j - 1], tuple(origin[i, j - 1])))
            before[i, j], origin[i, j] = min(candidates, key=lambda c: c[0])
        origins.append(origin)
        best = before + costs
    at = np.unravel_index(np.argmin(best), best.shape)
    chosen = [(int(at[0]), int(at[1]))]
    for origin in reversed(origins):
        slope, doubt = origin[chosen[-1]]
        chosen.append((int(slope), int(doubt)))
    return chosen[::-1]
