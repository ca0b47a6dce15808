"""The posterior of the additive readout: `Exact` against the same model written anew in NumPyro.

The network, the readout and the prior are written here from their formulas, in plain JAX, and share
no code with the package but the features of distances and the places of the knots. NUTS draws
everything together: theta, delta, b, the coefficients and their scales.

    python benchmarks/additive_numpyro.py --data FOLDER [--only rg032|sp500] [--chains 4]
                                          [--warmup 300] [--draws 300] [--predictive]

It prints how far the mean probabilities of the test graphs' edges are apart (root mean square), and
both NLLs: of a graph (the mixture over draws, which for the one large graph of S&P 500 depends on
how many there are) and of the mean probabilities. On two cores S&P 500 takes half an hour with the
defaults, rg032 some hours; with a GPU (chains side by side) six minutes.

`--predictive` asks for log p(test labels | train labels) itself, which no number of draws from the
posterior gives when the test labels are many and say much: by Exact a difference of two evidences,
by NUTS an integral over powers of the test likelihood (15 chains; an hour on S&P 500).
"""

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import lax
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, init_to_value

from edgebelief import metrics
from edgebelief.belief import predict
from edgebelief.data import GraphDataset, sp500
from edgebelief.infer import EdgeModel, Exact
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG
from edgebelief.readouts import OF_NETWORK, Additive

LAYERS = 200
POWERS = (0, 0.004, 0.015, 0.035, 0.062, 0.1, 0.145, 0.2, 0.27, 0.36, 0.47, 0.6, 0.75, 0.87, 1)


def of_authors(folder):
    with np.load(folder / "rg032.npz") as file:
        return [
            GraphDataset(list(file[f"{part}_distances"]), list(file[f"{part}_adjacency"]))
            for part in ("train", "test")
        ]


def network(theta, E):
    """The paper's Algorithm 1 on matrices: weights and duals after the last layer."""
    n = E.shape[-1]
    off = 1 - jnp.eye(n)

    def layer(state, _):
        A, lam = state
        u = A.sum(-1) - (n - 1) * lam
        lam = (jnp.sqrt(u**2 + 4 * (n - 1)) - u) / (2 * (n - 1))
        A = jnp.maximum(0, (lam[:, :, None] + lam[:, None, :]) / 2 - theta * E) * off
        return (A, lam), None

    start = 0.5 * off * jnp.ones((len(E), 1, 1)), 17.0 * jnp.ones((len(E), n))
    return lax.scan(layer, start, None, length=LAYERS)[0]


def columns(curve, x):
    """Line and wiggles of a feature: cubic pieces, straight beyond the knots."""
    knots, pieces = jnp.asarray(curve.knots), jnp.asarray(curve.pieces)
    inside = jnp.clip(x, knots[0], knots[-1])
    k = jnp.clip(jnp.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    u = (inside - knots[k])[..., None]
    c3, c2, c1, c0 = pieces[:, k]
    value, slope = ((c3 * u + c2) * u + c1) * u + c0, (3 * c3 * u + 2 * c2) * u + c1
    line = ((x - curve.centre) / curve.spread)[..., None]
    return jnp.concatenate([line, value + slope * (x - inside)[..., None]], -1)


def likelihood(model, data):
    """The function of parameters that gives the log probability of all labels of the data."""
    (stack,) = data.stacks()
    readout = model.readout
    e, a = jnp.asarray(stack.e), jnp.asarray(stack.a)
    E = jnp.stack([jnp.asarray(stack.support.to_matrix(one)) for one in stack.e])
    rows, cols = np.triu_indices(stack.support.n_nodes, 1)
    given = np.asarray(readout.pairs(stack))
    names = [name for name in readout.features if name not in OF_NETWORK]
    fixed = [t for t in readout.terms if t.name in names]
    moving = [t for t in readout.terms if t.name in OF_NETWORK]
    assert [t.name for t in readout.terms] == [t.name for t in moving + fixed]
    static = jnp.concatenate(
        [columns(t.curve, jnp.asarray(given[..., names.index(t.name)])) for t in fixed], -1
    )

    def log_likelihood(theta, delta, b, coefficients):
        A, lam = network(theta, E)
        i, j = lam[:, rows], lam[:, cols]
        known = {"z": (i + j) / 2 - theta * e, "lam sum": i + j, "lam gap": jnp.abs(i - j)}
        own = [columns(t.curve, known[t.name]) for t in moving]
        design = jnp.concatenate([*own, static], -1)
        logit = delta * A[:, rows, cols] - b + design @ coefficients
        return (a * logit - jax.nn.softplus(logit)).sum()

    return log_likelihood


def reference(model, train, test, start, chains, warmup, draws, power=0.0, depth=8):
    """Draws of all parameters, (chains * draws, ...), given train and, to a power, test."""
    readout, prior = model.readout, model.prior
    of_train, of_test = likelihood(model, train), likelihood(model, test)

    def program():
        size = {
            name: numpyro.sample(
                name, dist.LogNormal(np.log(prior[name].median), prior[name].log_sd)
            )
            for name in ("theta", "delta", "b")
        }
        w = numpyro.sample("curves", dist.Normal(0, 1).expand([readout.groups.size]).to_event(1))
        tau = numpyro.sample(
            "scales",
            dist.HalfNormal(prior["scales"].scale).expand([readout.groups.max() + 1]).to_event(1),
        )
        given = (size["theta"], size["delta"], size["b"], tau[readout.groups] * w)
        found = numpyro.deterministic("test", of_test(*given))
        numpyro.factor("labels", of_train(*given) + power * found)

    method = "parallel" if jax.default_backend() == "cpu" else "vectorized"
    kernel = NUTS(
        program, init_strategy=init_to_value(values=start), max_tree_depth=depth,
        dense_mass=[("theta", "delta", "b")],
    )  # fmt: skip
    run = MCMC(kernel, num_warmup=warmup, num_samples=draws, num_chains=chains,
               chain_method=method if chains > 1 else "sequential")  # fmt: skip
    run.run(jax.random.key(int(1000 * power)))
    return {name: np.asarray(x, float) for name, x in run.get_samples().items()}


def predictive(given, powers=POWERS):
    """Log p(test labels | train labels), and its standard error, from draws at each power.

    The integral over powers of the mean log likelihood of the test labels (thermodynamic
    integration), by trapezoids with their end corrections: the slope is the variance.
    """
    found = [reference(*given, power=power, depth=7)["test"] for power in powers]
    mean, variance = np.array([x.mean() for x in found]), np.array([x.var() for x in found])
    error = np.array([x.std() / effective_sample_size(x[None]) ** 0.5 for x in found])
    h = np.diff(powers)
    each = (np.r_[h, 0] + np.r_[0, h]) / 2
    value = each @ mean - (h**2 * np.diff(variance)).sum() / 12
    return float(value), float(np.sqrt(((each * error) ** 2).sum()))


def scores(posterior, test):
    found = predict(posterior, test)
    p, a = (np.concatenate(x) for x in ([b.mean for b in found], [r.a for r in test]))
    of_mean = -np.log(np.where(a > 0, p, 1 - p)).sum() / len(test)
    return p, float(metrics.nll(found)), float(of_mean)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=("rg032", "sp500"))
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--predictive", action="store_true")
    given = parser.parse_args()
    for name, load in (("rg032", of_authors), ("sp500", sp500)):
        if given.only not in (None, name):
            continue
        train, test = load(given.data)
        model = prepare(0, EdgeModel(DPG(), Additive()), train).model
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = Exact().run(0, model, train)
        between = time.perf_counter()
        start = {k: jnp.asarray(np.tensordot(exact.weights, x, 1)) for k, x in exact.params.items()}
        if given.predictive:
            gained = Exact().run(0, model, train + test).log_evidence - exact.log_evidence
            value, error = predictive((model, train, test, start, 1, given.warmup, given.draws))
            print(f"{name}: log p(test | train) {gained:.2f} and {value:.2f} +- {error:.2f}")
            continue
        params = reference(model, train, test, start, given.chains, given.warmup, given.draws)
        del params["test"]
        end = time.perf_counter()
        n = len(params["theta"])
        nuts = replace(exact, params=params, weights=np.full(n, 1 / n), continuum=None)
        (p, ours, ours_of_mean), (q, theirs, theirs_of_mean) = (
            scores(posterior, test) for posterior in (exact, nuts)
        )
        print(
            f"{name}: Exact {between - begin:.1f} s, NUTS {end - between:.1f} s ({n} draws)\n"
            f"  probabilities differ by {np.sqrt(np.mean((p - q) ** 2)):.4f} (root mean square)\n"
            f"  NLL of a graph {ours:.3f} and {theirs:.3f}; of the mean probabilities "
            f"{ours_of_mean:.3f} and {theirs_of_mean:.3f}; Pareto k "
            f"{exact.verdict.figures['Pareto k']:.2f}"
        )


if __name__ == "__main__":
    main()
