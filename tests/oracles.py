"""Answers from elsewhere: closed forms, dense matrices, a conic solver, many digits.

Nothing here imports the package: an oracle shares no code with what it checks.
"""

import warnings
from typing import NamedTuple

import cvxpy as cp
import mpmath
import numpy as np


def incidence_matrix(n_nodes, pairs=None):
    """The dense S (n_nodes, n_edges) that the package never builds."""
    pairs = list(zip(*np.triu_indices(n_nodes, k=1), strict=True)) if pairs is None else pairs
    matrix = np.zeros((n_nodes, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        matrix[i, k] = matrix[j, k] = 1
    return matrix


def constant_distance_weight(theta, c, n_nodes):
    """Every weight when every distance is c: the positive root of a^2 + theta c a - 1/(N-1).

    Written for the sign of theta c that does not cancel.
    """
    half = theta * c / 2
    root = np.sqrt(half**2 + 1 / (n_nodes - 1))
    return root - half if half <= 0 else 1 / ((n_nodes - 1) * (root + half))


def conic_solution(e, theta, incidence):
    """The convex problem by CVXPY and Clarabel, to tolerance 1e-12; raises unless optimal.

    At that tolerance Clarabel stalls on about one problem in ten ("optimal_inaccurate"); shorter
    steps, which keep it nearer the central path, cure most. The first way that ends "optimal"
    counts.
    """
    n_nodes, n_edges = incidence.shape
    statuses = []
    for step in (0.5, 0.7, 0.8, 0.9, 0.6, 0.95):
        a, d = cp.Variable(n_edges, nonneg=True), cp.Variable(n_nodes)
        loss = 2 * theta * (e @ a) - cp.sum(cp.log(d)) + cp.sum_squares(a)
        problem = cp.Problem(cp.Minimize(loss), [d == incidence @ a])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            problem.solve(
                solver=cp.CLARABEL,
                tol_gap_abs=1e-12,
                tol_gap_rel=1e-12,
                tol_feas=1e-12,
                max_iter=500,
                max_step_fraction=step,
            )
        if problem.status == cp.OPTIMAL:
            return a.value
        statuses.append(problem.status)
    raise RuntimeError(f"Clarabel found no optimum at 1e-12: {statuses}")


def positive_root(u, c):
    """The positive root of c x^2 + u x - 1, to fifty digits."""
    with mpmath.workdps(50):
        u, c = mpmath.mpf(float(u)), mpmath.mpf(float(c))
        return (mpmath.sqrt(u**2 + 4 * c) - u) / (2 * c)


def many_digit_weights(e, theta, incidence, lam, steps=8):
    """The convex problem in sixty digits, by Newton on lam_i (S a)_i = 1 from nearby duals."""
    n_nodes, n_edges = incidence.shape
    ends = [np.flatnonzero(incidence[:, k]) for k in range(n_edges)]
    with mpmath.workdps(60):
        cost = [mpmath.mpf(float(theta)) * mpmath.mpf(float(x)) for x in e]
        lam = mpmath.matrix([mpmath.mpf(float(x)) for x in lam])
        for _ in range(steps):
            a = [(lam[int(i)] + lam[int(j)]) / 2 - c for (i, j), c in zip(ends, cost, strict=True)]
            a = [max(x, mpmath.mpf(0)) for x in a]
            rest, slope = mpmath.matrix(n_nodes, 1), mpmath.matrix(n_nodes, n_nodes)
            for i in range(n_nodes):
                rest[i], slope[i, i] = 1 / lam[i], 1 / lam[i] ** 2
            for (i, j), x in zip(ends, a, strict=True):
                i, j = int(i), int(j)
                rest[i] -= x
                rest[j] -= x
                for row, col in ((i, i), (i, j), (j, i), (j, j)):
                    slope[row, col] += mpmath.mpf(x > 0) / 2
            lam += mpmath.lu_solve(slope, rest)
        assert max(abs(x) for x in rest) < mpmath.mpf(10) ** -40, "Newton did not converge"
        return np.array([float(x) for x in a])


# The posterior of (theta, delta, b) by brute force. A graph is (e, a), with labels 0, 1 or NaN; a
# prior is a dict of theta, delta and b, each ("lognormal", median, log_sd), ("loguniform", low,
# high) or ("normal", mean, sd).


def dpg_weights(e, theta, depth):
    """The unrolled recursion with a dense S, for a vector of theta: (thetas, edges), float64.

    With depth None the convex problem itself, by Newton on its dual.
    """
    e, theta = np.asarray(e, float), np.asarray(theta, float)
    n_nodes = round((1 + np.sqrt(1 + 8 * e.size)) / 2)
    incidence, cost = incidence_matrix(n_nodes), theta[:, None] * e
    if depth is None:
        # Beyond costs of 1e5 rounding spoils lam - cost, and weights fall as 1/theta (for e > 0).
        beyond = np.maximum(cost.max(1, keepdims=True) / 1e5, 1)
        return _dual_newton(cost / beyond, incidence) / beyond
    a, lam = np.full(cost.shape, 0.5), np.full((theta.size, n_nodes), 17.0)
    for _ in range(depth):
        u = a @ incidence.T - (n_nodes - 1) * lam
        root = np.sqrt(u**2 + 4 * (n_nodes - 1))
        lam = np.where(u > 0, 2 / (root + abs(u)), (root - u) / (2 * (n_nodes - 1)))
        a = np.maximum(0, lam @ incidence / 2 - cost)
    return a


def _dual_newton(cost, incidence):
    """argmax over lam > 0 of sum log lam - |max(0, S'lam/2 - cost)|^2, a row per theta."""
    n_nodes, eps = len(incidence), np.finfo(float).eps

    def weights(lam):
        return np.maximum(0, lam @ incidence / 2 - cost)

    def value(lam):
        return np.log(lam).sum(1) - (weights(lam) ** 2).sum(1)

    lam = np.maximum(cost.max(1, keepdims=True), 0) + np.full((1, n_nodes), (n_nodes - 1) ** -0.5)
    for _ in range(300):
        a = weights(lam)
        slope = 1 / lam - a @ incidence.T
        # lam - cost cancels where costs are huge: lam_i d_i - 1 cannot go below this.
        rest, floor = abs(lam * slope).max(1), 1e-10 + 100 * eps * lam.max(1) ** 2
        if (rest < floor).all():
            return a
        curvature = np.einsum("ik,tk,jk->tij", incidence, (a > 0) / 2, incidence, optimize=True)
        curvature[:, np.arange(n_nodes), np.arange(n_nodes)] += 1 / lam**2
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        shrink = np.where(step < 0, -step / lam, 0).max(1)
        length = np.minimum(1, 0.95 / np.maximum(shrink, 0.1))
        gain, now = (slope * step).sum(1), value(lam)
        for _ in range(30):
            enough = now + 1e-4 * length * gain - 1e-12 * (1 + abs(now))
            short = value(lam + length[:, None] * step) < enough
            length = np.where(short, length / 2, length)
            if not short.any():
                break
        lam = lam + length[:, None] * step
    raise AssertionError(f"Newton did not converge: {(rest / floor).max():.1e} times the floor")


class GridPosterior(NamedTuple):
    """What `grid_posterior` finds, and by how much its two resolutions differ."""

    table: dict
    """Of each parameter the mean, the sd, and the 5, 50 and 95 % quantiles."""
    log_evidence: float
    cdf: dict
    """Of each parameter: values, and the share of the posterior below them."""
    theta_density: tuple
    """Theta, and the log density of log theta there."""
    dead_share: float
    """Posterior mass where every output is zero."""
    constant_share: float
    """Posterior mass where the outputs of every graph are within 0.1 %, and not zero."""
    error: float = np.nan
    """Largest difference in the table, in posterior sds."""
    evidence_error: float = np.nan
    """In nats."""


def grid_posterior(graphs, prior, depth, resolution=1.5):
    """The posterior by three nested sums: theta, in it delta, in it b.

    Each runs over the whole range of its prior, in its natural coordinate (the log, unless the
    prior is normal). No mode is searched for and none is assumed: a range is cut into panels
    narrow enough to see anything, those more than 25 nats below the highest are dropped, and the
    others are halved until a 7-point Kronrod rule agrees with the 3-point Gauss rule inside it.
    They must agree for the density, and for the density times the square of each parameter:
    where the labels say little the moments of a lognormal lie many sds out.

    Everything is done at two resolutions, the second with first panels of half the width and a
    quarter of the tolerance. It is the one returned.
    """
    coarse, fine = (
        _NestedSum(graphs, prior, depth, level).result() for level in (resolution, 2 * resolution)
    )
    error = max(
        np.max(np.abs(fine.table[name] - coarse.table[name])) / fine.table[name][1]
        for name in fine.table
    )
    return fine._replace(error=error, evidence_error=abs(fine.log_evidence - coarse.log_evidence))


_HALF = [0.9604912687080202834, 0.7745966692414833770, 0.4342437493468025580]
_NODES = np.array([-_HALF[0], -_HALF[1], -_HALF[2], 0, _HALF[2], _HALF[1], _HALF[0]])
_HALF = [0.1046562260264672652, 0.2684880898683334407, 0.4013974147759622229]
_WEIGHTS = np.array([*_HALF, 0.4509165386584741423, *_HALF[::-1]])
_GAUSS = np.array([0, 5 / 9, 0, 8 / 9, 0, 5 / 9, 0])
_REACH = 25.0  # nats
_FIRST = 1.8  # width of the first panels at resolution 1, in log units


class _Panels(NamedTuple):
    """Parts of many integrals: whose, from where to where, and the mass at each node."""

    owner: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log_mass: np.ndarray
    """(panels, 7): log of density times weight."""
    ids: np.ndarray
    """(panels, 7): which integral further in gave the density."""

    @property
    def x(self):
        return _points(self.low, self.high, _NODES)


def _points(low, high, nodes):
    return (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * nodes


def _joined(panels):
    return _Panels(*(np.concatenate(parts) for parts in zip(*panels, strict=True)))


def _integrate(f, owner, low, high, n_owners, tolerance):
    """Many integrals at once, from their first panels (in order).

    f(owner, x, last) gives the logs of the density and of its other weightings, (points, k), and
    ids, (points,). `last` is false for a first look. Returns panels, and log integrals
    (owners, k).
    """

    def look(nodes, last):
        x = _points(low, high, nodes)
        logs, ids = f(np.repeat(owner, nodes.size), x.ravel(), last)
        logs = logs.reshape(*x.shape, -1) + np.log((high - low) / 2)[:, None, None]
        return logs, ids.reshape(x.shape)

    top = look(_NODES[_GAUSS > 0], False)[0].max(1)
    best = np.full((n_owners, top.shape[1]), -np.inf)
    np.maximum.at(best, owner, top)
    near = (top > best[owner] - _REACH).any(1)
    next_to = owner[1:] == owner[:-1]
    kept = near.copy()
    kept[1:] |= near[:-1] & next_to
    kept[:-1] |= near[1:] & next_to
    owner, low, high = owner[kept], low[kept], high[kept]

    accepted, total = [], np.full(best.shape, -np.inf)
    while owner.size:
        logs, ids = look(_NODES, True)
        top = total.copy()
        np.maximum.at(top, owner, logs.max(1))
        scaled, before = np.exp(logs - top[owner][:, None]), np.exp(total - top)
        mass = np.einsum("j,pjk->pk", _WEIGHTS, scaled)
        error = abs(mass - np.einsum("j,pjk->pk", _GAUSS, scaled))
        bad = (error > tolerance * (before + _sums(owner, mass, n_owners))[owner]).any(1)
        assert (high - low > 1e-12 * (abs(low) + abs(high))).all(), "a panel was halved away"
        good = ~bad
        log_mass = logs[good, :, 0] + np.log(_WEIGHTS)
        accepted.append(_Panels(owner[good], low[good], high[good], log_mass, ids[good]))
        with np.errstate(divide="ignore"):
            total = top + np.log(before + _sums(owner[good], mass[good], n_owners))
        middle = (low[bad] + high[bad]) / 2
        low, high = np.stack([low[bad], middle], 1), np.stack([middle, high[bad]], 1)
        owner, low, high = np.repeat(owner[bad], 2), low.ravel(), high.ravel()
    return _joined(accepted), total


def _sums(owner, values, n_owners):
    return np.stack([np.bincount(owner, column, n_owners) for column in values.T], 1)


class _Coordinate:
    """A prior, in the coordinate in which it has no long tail."""

    def __init__(self, kind, first, second):
        self.log, self.uniform = kind != "normal", kind == "loguniform"
        self.centre, self.spread = (np.log(first) if self.log else first), second
        # Nine sds either way; the square of a lognormal has its mass 2 sd^2 further up.
        self.low = self.centre - 9 * second
        self.high = self.centre + 9 * second + (2 * second**2 if self.log else 0)
        if self.uniform:
            self.low, self.high = np.log(first), np.log(second)

    def log_density(self, x):
        if self.uniform:
            return np.full_like(x, -np.log(self.high - self.low))
        z = (x - self.centre) / self.spread
        return -(z**2) / 2 - np.log(self.spread * np.sqrt(2 * np.pi))

    def value(self, x):
        return np.exp(x) if self.log else x

    def log_square(self, x):
        return 2 * x if self.log else 2 * np.log(abs(x) + 1e-6 * self.spread)

    def edges(self, scale, level):
        """Edges of first panels, for each of `scale`: (len(scale), edges).

        A wide normal prior knows nothing of the scale that the parameter has in the likelihood;
        there panels grow away from zero, from 0.01 of that scale.
        """
        if self.log:
            n = int(np.ceil((self.high - self.low) / _FIRST * level)) + 1
            return np.tile(np.linspace(self.low, self.high, n), (scale.size, 1))
        assert self.centre == 0
        grown = np.geomspace(0.01 * scale, np.full_like(scale, self.high), int(11 * level), axis=1)
        return np.concatenate([-grown[:, ::-1], np.zeros((scale.size, 1)), grown], 1)


class _NestedSum:
    def __init__(self, graphs, prior, depth, level):
        self.e = [np.asarray(e, float) for e, _ in graphs]
        self.labels = np.concatenate([np.asarray(a, float) for _, a in graphs])
        self.known = ~np.isnan(self.labels)
        self.theta, self.delta, self.b = (_Coordinate(*prior[n]) for n in ("theta", "delta", "b"))
        self.depth, self.level = depth, level
        self.tolerance = 0.03 / level**2
        self.n_thetas = self.n_slices = 0
        self.deltas, self.bs, self.dead, self.constant = [], [], [], []

    def result(self):
        edges = self.theta.edges(np.ones(1), self.level)[0]
        # The network has kinks in theta, where both rules may be wrong alike.
        thetas, total = _integrate(
            self.of_theta,
            np.zeros(edges.size - 1, int),
            edges[:-1],
            edges[1:],
            1,
            self.tolerance / 10,
        )
        log_evidence = total[0, 0]
        mass = np.exp(thetas.log_mass - log_evidence)
        of_theta = np.bincount(thetas.ids.ravel(), mass.ravel(), self.n_thetas)
        deltas = _joined(self.deltas)
        deltas_mass = np.exp(deltas.log_mass) * of_theta[deltas.owner][:, None]
        of_slice = np.bincount(deltas.ids.ravel(), deltas_mass.ravel(), self.n_slices)
        bs = _joined(self.bs)
        bs_mass = np.exp(bs.log_mass) * of_slice[bs.owner][:, None]
        drift = np.stack(_drift(deltas, bs, self.n_slices))[:, bs.owner]
        table, cdf = {}, {}
        for name, coordinate, panels, weight in (
            ("theta", self.theta, thetas, mass),
            ("delta", self.delta, deltas, deltas_mass),
            ("b", self.b, bs, bs_mass),
        ):
            value = coordinate.value(panels.x)
            assert abs(weight.sum() - 1) < 1e-6
            mean = (weight * value).sum()
            sd = np.sqrt((weight * (value - mean) ** 2).sum())
            moved = drift if name == "b" else np.zeros((2, panels.low.size))
            x, below = _distribution_function(panels, weight, *moved)
            quantiles = coordinate.value(np.interp([0.05, 0.5, 0.95], below, x))
            table[name] = np.array([mean, sd, *quantiles])
            cdf[name] = coordinate.value(x), below
        order = np.argsort(thetas.x.ravel())
        density = thetas.log_mass - np.log(_WEIGHTS * (thetas.high - thetas.low)[:, None] / 2)
        return GridPosterior(
            table,
            log_evidence,
            cdf,
            (np.exp(thetas.x.ravel()[order]), (density - log_evidence).ravel()[order]),
            float(of_theta @ np.concatenate(self.dead)),
            float(of_theta @ np.concatenate(self.constant)),
        )

    def of_theta(self, owner, x, last):
        """Integrals over delta and b: the density, x theta^2, x delta^2, x b^2."""
        outputs = [dpg_weights(e, self.theta.value(x), self.depth) for e in self.e]
        dead = np.all([(a == 0).all(1) for a in outputs], 0)
        alike = np.all([np.ptp(a, 1) <= 1e-3 * a.max(1) for a in outputs], 0)
        # Where the network is dead the integrals are the same.
        chosen = np.flatnonzero(~dead | (np.cumsum(dead) == 1) & dead)
        place = np.zeros(x.size, int)
        place[chosen] = np.arange(chosen.size)
        place[dead] = place[chosen[dead[chosen]]]
        logs, ids = self.given_theta(np.concatenate(outputs, 1)[chosen], last)
        if last:
            self.dead.append(dead[chosen])
            self.constant.append((alike & ~dead)[chosen])
        logs, ids = logs[place] + self.theta.log_density(x)[:, None], ids[place]
        return np.insert(logs, 1, logs[:, 0] + self.theta.log_square(x), 1), ids

    def given_theta(self, a, last):
        a, labels = a[:, self.known], self.labels[self.known]
        n = len(a)
        rows = _Rows(a, labels)
        edges = self.delta.edges(1 / np.maximum(a.max(1), 1e-2), self.level)
        # Only the integrals that are asked for last are part of the result.
        panels, logs = _integrate(
            lambda owner, x, last_: self.of_delta(rows, owner, x, last and last_),
            np.repeat(np.arange(n), edges.shape[1] - 1),
            edges[:, :-1].ravel(),
            edges[:, 1:].ravel(),
            n,
            self.tolerance,
        )
        if not last:
            return logs, np.zeros(n, int)
        ids = self.n_thetas + np.arange(n)
        self.n_thetas += n
        log_mass = panels.log_mass - logs[panels.owner, :1]
        self.deltas.append(panels._replace(owner=ids[panels.owner], log_mass=log_mass))
        return logs, ids

    def of_delta(self, rows, owner, x, last):
        """Integrals over b: the density, x delta^2, x b^2."""
        panels, logs = self.given_delta(rows, owner, self.delta.value(x))
        if last:
            ids = self.n_slices + np.arange(x.size)
            self.n_slices += x.size
            log_mass = panels.log_mass - logs[panels.owner, :1]
            heavy = log_mass.max(1) > -_REACH
            panels = panels._replace(owner=ids[panels.owner], log_mass=log_mass)
            self.bs.append(_Panels(*(part[heavy] for part in panels)))
        else:
            ids = np.zeros(x.size, int)
        logs = logs + self.delta.log_density(x)[:, None]
        return np.insert(logs, 1, logs[:, 0] + self.delta.log_square(x), 1), ids

    def given_delta(self, rows, owner, delta):
        """Each slice: b at one (theta, delta). The likelihood changes around b = delta a, over a
        length of about 1, so there are edges there too.
        """
        edges = self.b.edges(
            np.full(delta.size, 10.0), self.level / 2 if self.b.log else self.level
        )
        around = delta[:, None] * rows.landmarks[owner]
        around = np.concatenate([around - 3, around + 3], 1)
        if self.b.log:
            around = np.log(np.maximum(around, np.exp(self.b.low)))
        around = np.clip(around, self.b.low, self.b.high)
        edges = np.sort(np.concatenate([edges, around], 1), 1)
        slices = np.repeat(np.arange(delta.size), edges.shape[1] - 1)
        low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        wide = high - low > 1e-9 * (1 + abs(low))

        def of_b(slices, x, last):
            b = self.b.value(x)
            logs = rows.log_likelihood(owner[slices], delta[slices], b) + self.b.log_density(x)
            return np.stack([logs, logs + self.b.log_square(x)], 1), np.zeros(x.size, int)

        tolerance = self.tolerance
        return _integrate(of_b, slices[wide], low[wide], high[wide], delta.size, tolerance)


def _drift(deltas, bs, n_slices):
    """How b moves between the nodes of delta: where a slice belongs, and how far it reaches.

    At large delta b is close to delta a, and the nodes alone would make a comb of its marginal.
    """
    mean = np.bincount(bs.owner, (np.exp(bs.log_mass) * bs.x).sum(1), n_slices)
    powers = np.arange(7)
    slope = (powers * _NODES[:, None] ** np.maximum(powers - 1, 0)) @ np.linalg.inv(
        _NODES[:, None] ** powers
    )
    ends = np.concatenate([[0], np.cumsum(_WEIGHTS)]) - 1
    middle, width = (ends[1:] + ends[:-1]) / 2 - _NODES, _WEIGHTS
    slope = mean[deltas.ids] @ slope.T  # for half a panel
    shift, smear = np.zeros(n_slices), np.zeros(n_slices)
    shift[deltas.ids], smear[deltas.ids] = slope * middle, abs(slope) * width
    square = np.bincount(
        bs.owner, (np.exp(bs.log_mass) * (bs.x - mean[bs.owner][:, None]) ** 2).sum(1), n_slices
    )
    narrow = smear > np.sqrt(square)
    shift, smear = np.where(narrow, shift, 0), np.where(narrow, smear, 0)
    return shift, smear


class _Rows:
    """The weights of known labels at each theta; those that are zero only as counts."""

    def __init__(self, a, labels):
        sign = np.where(a > 0, 2 * labels - 1, 0)
        order = np.argsort(sign == 0, 1, kind="stable")
        self.sign = np.take_along_axis(sign, order, 1).T.copy()
        self.signed_a = np.take_along_axis(sign * a, order, 1).T.copy()
        self.used = (sign != 0).sum(1)
        self.zeros = [((a == 0) & (labels == label)).sum(1) for label in (0, 1)]
        # Least, greatest and some between; the highest of label 0, the lowest of label 1.
        between = np.quantile(a, [0, 0.25, 0.5, 0.75, 1], axis=1)
        highest = np.where(labels == 0, a, a.min(1, keepdims=True)).max(1)
        lowest = np.where(labels == 1, a, a.max(1, keepdims=True)).min(1)
        self.landmarks = np.stack([*between, highest, lowest], 1)

    def log_likelihood(self, theta, delta, b):
        """Sum of log sigmoid(+-(delta a - b)), point by point."""
        zeros, ones = (count[theta] for count in self.zeros)
        found = -zeros * np.logaddexp(0, -b) - ones * np.logaddexp(0, b)
        for part in np.array_split(np.argsort(self.used[theta]), -(-theta.size // 8192)):
            k, delta_part, b_part = theta[part], delta[part], b[part]
            n = self.used[k[-1]]
            # log sigmoid(u) = min(u, 0) - log(1 + exp(-|u|)); u = 0 in rows that are not used.
            product, linear = np.ones(part.size), np.zeros(part.size)
            for row in range(n):
                u = self.signed_a[row][k] * delta_part - self.sign[row][k] * b_part
                linear += np.minimum(u, 0)
                product *= 1 + np.exp(-np.abs(u))  # at most 2^n, n below a thousand
            found[part] += linear - np.log(product) + (n - self.used[k]) * np.log(2)
        return np.maximum(found, -1e7)  # nothing counts there, and rounding would look like detail


def _distribution_function(panels, mass, shift, smear, n_cells=8):
    """Points and the share below them: in each panel the interpolated density, in equal cells.

    Each panel is moved by `shift`, and its cells made wider by `smear`.
    """
    edges = np.linspace(-1, 1, n_cells + 1)
    powers = np.arange(7)
    integral = (edges[1:, None] ** (powers + 1) - edges[:-1, None] ** (powers + 1)) / (powers + 1)
    cells = integral @ np.linalg.inv(_NODES[:, None] ** powers)  # from densities to cells
    heavy = mass.sum(1) > 1e-12
    low, high, mass = (
        panels.low[heavy] + shift[heavy],
        panels.high[heavy] + shift[heavy],
        mass[heavy],
    )
    share = np.maximum(mass / _WEIGHTS @ cells.T, 0)
    share *= (mass.sum(1) / share.sum(1))[:, None]
    ends = _points(low, high, edges)
    begin, end = (
        x + c * smear[heavy][:, None] / 2 for x, c in ((ends[:, :-1], -1), (ends[:, 1:], 1))
    )
    density = share / (end - begin)
    # Cells overlap, those of one slice with those of another: add up densities as they begin and
    # end.
    places = np.concatenate([begin.ravel(), end.ravel()])
    change = np.concatenate([density.ravel(), -density.ravel()])
    order = np.argsort(places)
    places, density = places[order], np.cumsum(change[order])
    below = np.concatenate([[0], np.cumsum(density[:-1] * np.diff(places))])
    thin = np.unique(np.searchsorted(below, np.linspace(0, below[-1], 4001)[:-1], "right") - 1)
    thin = np.append(thin, below.size - 1)
    return places[thin], np.maximum.accumulate(below[thin]) / below[-1]
