"""Answers from elsewhere: closed forms, dense matrices, a conic solver, many digits.

Nothing here imports the package: an oracle shares no code with what it checks.
"""

import warnings

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
