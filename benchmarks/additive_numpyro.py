"""The posterior of the additive readout: `Exact` against the same model written anew in NumPyro.

The network, the readout and the prior are written from their formulas in plain JAX; only the
features of distances and the positions of the knots come from the package. NUTS draws all
parameters together: theta, delta, b, the coefficients and their scales.

    python benchmarks/additive_numpyro.py --data FOLDER [--only rg032|sp500] [--chains 4]
                                          [--warmup 300] [--draws 300] [--predictive]

It prints the root mean square difference of the mean probabilities of the test graphs' edges, and
two NLLs of each: of a graph (the mixture over draws, which for the one large graph of S&P 500
depends on their number) and of the mean probabilities. On two cores S&P 500 takes half an hour with
the defaults, rg032 some hours; with a GPU (chains in parallel) six minutes.

`--predictive` estimates log p(test labels | train labels) itself, which draws from the posterior
cannot give when the test labels are many and informative: as an integral over powers of the test
likelihood (15 chains of NUTS; an hour on S&P 500), beside the mixture over the draws of Exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import parser
from jax import lax
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, init_to_value
from reproduction.item import AUTHORS_GRAPHS
from reproduction.models import authors_graphs, labels_and_means, log_score, quietly, timed

from edgebelief import metrics
from edgebelief.belief import predict
from edgebelief.data import GraphDataset, Split, sp500
from edgebelief.infer import EdgeModel, Exact, HalfNormal, LogNormal, Marginal, Posterior
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG
from edgebelief.readouts import OF_NETWORK, Additive

LAYERS = 200
# Powers of the test likelihood in `--predictive`: denser near 0, where the mean changes fastest.
POWERS = (0, 0.004, 0.015, 0.035, 0.062, 0.1, 0.145, 0.2, 0.27, 0.36, 0.47, 0.6, 0.75, 0.87, 1)


LogLikelihood = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]


def authors_split(folder: Path) -> Split:
    graphs = authors_graphs(folder / AUTHORS_GRAPHS)
    return Split(graphs["train"], graphs["test"])


def network(theta: jax.Array, E: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Run the paper's Algorithm 1 on matrices; return weights and duals after the last layer."""
    n = E.shape[-1]
    off_diagonal = 1 - jnp.eye(n)

    def layer(state: tuple[jax.Array, jax.Array], _: None) -> tuple[Any, None]:
        A, lam = state
        u = A.sum(-1) - (n - 1) * lam
        lam = (jnp.sqrt(u**2 + 4 * (n - 1)) - u) / (2 * (n - 1))
        A = jnp.maximum(0, (lam[:, :, None] + lam[:, None, :]) / 2 - theta * E) * off_diagonal
        return (A, lam), None

    start = 0.5 * off_diagonal * jnp.ones((len(E), 1, 1)), 17.0 * jnp.ones((len(E), n))
    return lax.scan(layer, start, None, length=LAYERS)[0]


def columns(curve: Any, x: jax.Array) -> jax.Array:
    """Return the linear and the spline columns of a feature; splines are linear outside."""
    knots, pieces = jnp.asarray(curve.knots), jnp.asarray(curve.pieces)
    inside = jnp.clip(x, knots[0], knots[-1])
    k = jnp.clip(jnp.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    u = (inside - knots[k])[..., None]
    c3, c2, c1, c0 = pieces[:, k]
    value, slope = ((c3 * u + c2) * u + c1) * u + c0, (3 * c3 * u + 2 * c2) * u + c1
    line = ((x - curve.centre) / curve.spread)[..., None]
    return jnp.concatenate([line, value + slope * (x - inside)[..., None]], -1)


def likelihood(model: EdgeModel, data: GraphDataset) -> LogLikelihood:
    """Return the log probability of all labels of the data as a function of the parameters."""
    (stack,) = data.stacks()
    readout = model.readout
    assert isinstance(readout, Additive)
    e, a = jnp.asarray(stack.e), jnp.asarray(stack.a)
    E = jnp.stack([jnp.asarray(stack.support.to_matrix(distances)) for distances in stack.e])
    rows, cols = np.triu_indices(stack.support.n_nodes, 1)
    features = np.asarray(readout.pairs(stack))
    names = [name for name in readout.features if name not in OF_NETWORK]
    fixed = [t for t in readout.terms if t.name in names]
    moving = [t for t in readout.terms if t.name in OF_NETWORK]
    assert [t.name for t in readout.terms] == [t.name for t in moving + fixed]
    static = jnp.concatenate(
        [columns(t.curve, jnp.asarray(features[..., names.index(t.name)])) for t in fixed], -1
    )

    def log_likelihood(
        theta: jax.Array, delta: jax.Array, b: jax.Array, coefficients: jax.Array
    ) -> jax.Array:
        A, lam = network(theta, E)
        i, j = lam[:, rows], lam[:, cols]
        known = {"z": (i + j) / 2 - theta * e, "lam sum": i + j, "lam gap": jnp.abs(i - j)}
        changing = [columns(t.curve, known[t.name]) for t in moving]
        design = jnp.concatenate([*changing, static], -1)
        logit = delta * A[:, rows, cols] - b + design @ (readout.unit * coefficients)
        return (a * logit - jax.nn.softplus(logit)).sum()

    return log_likelihood


class Reference(NamedTuple):
    """The model in NumPyro, and how to run NUTS on it."""

    model: EdgeModel
    train: GraphDataset
    test: GraphDataset
    start: dict[str, jax.Array]
    chains: int
    warmup: int
    draws: int

    def run(self, power: float = 0.0, depth: int = 8) -> dict[str, np.ndarray]:
        """Draw all parameters, (chains * draws, ...), given train and, to a power, test."""
        method = "parallel" if jax.default_backend() == "cpu" else "vectorized"
        kernel = NUTS(
            program(self.model, self.train, self.test, power),
            init_strategy=init_to_value(values=self.start), max_tree_depth=depth,
            dense_mass=[("theta", "delta", "b")],
        )  # fmt: skip
        run = MCMC(kernel, num_warmup=self.warmup, num_samples=self.draws, num_chains=self.chains,
                   chain_method=method if self.chains > 1 else "sequential")  # fmt: skip
        run.run(jax.random.key(int(1000 * power)))
        return {name: np.asarray(x, float) for name, x in run.get_samples().items()}


def program(
    model: EdgeModel, train: GraphDataset, test: GraphDataset, power: float
) -> Callable[[], None]:
    """Write the model as a NumPyro program."""
    readout, prior = model.readout, model.prior
    assert isinstance(readout, Additive)
    groups = readout.groups
    of_train, of_test = likelihood(model, train), likelihood(model, test)

    of_scales = prior["scales"]
    assert isinstance(of_scales, HalfNormal)
    scales = dist.HalfNormal(of_scales.scale)

    def lognormal(name: str, marginal: Marginal) -> jax.Array:
        assert isinstance(marginal, LogNormal)
        return numpyro.sample(name, dist.LogNormal(np.log(marginal.median), marginal.log_sd))

    def sampled() -> None:
        theta, delta, b = (lognormal(name, prior[name]) for name in ("theta", "delta", "b"))
        w = numpyro.sample("curves", dist.Normal(0, 1).expand([groups.size]).to_event(1))
        tau = numpyro.sample("scales", scales.expand([groups.max() + 1]).to_event(1))
        params = (theta, delta, b, tau[groups] * w)
        test_score = numpyro.deterministic("test", of_test(*params))
        numpyro.factor("labels", of_train(*params) + power * test_score)

    return sampled


def predictive(reference: Reference, powers: Sequence[float] = POWERS) -> tuple[float, float]:
    """Return log p(test labels | train labels) and its standard error, from draws at each power.

    It is the integral over powers of the mean log likelihood of the test labels (thermodynamic
    integration), by trapezoids with their end corrections, where the slope is the variance.
    """
    draws = [reference.run(power, depth=7)["test"] for power in powers]
    mean, variance = np.array([x.mean() for x in draws]), np.array([x.var() for x in draws])
    error = np.array([x.std() / effective_sample_size(x[None]) ** 0.5 for x in draws])
    h = np.diff(powers)
    weights = (np.r_[h, 0] + np.r_[0, h]) / 2
    value = weights @ mean - (h**2 * np.diff(variance)).sum() / 12
    return float(value), float(np.sqrt(((weights * error) ** 2).sum()))


def scores(posterior: Posterior, test: GraphDataset) -> tuple[np.ndarray, float, float]:
    """Return the mean probabilities, the NLL of a graph, and that of the mean probabilities."""
    predictions = predict(posterior, test)
    a, p = labels_and_means(predictions)
    return p, float(metrics.nll(predictions)), -log_score(a, p) / len(test)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--only", choices=("rg032", "sp500"))
    options.add_argument("--chains", type=int, default=4)
    options.add_argument("--warmup", type=int, default=300)
    options.add_argument("--draws", type=int, default=300)
    options.add_argument("--predictive", action="store_true")
    arguments = options.parse_args()
    for name, load in (("rg032", authors_split), ("sp500", sp500)):
        if arguments.only not in (None, name):
            continue
        train, test = load(arguments.data)
        model = prepare(0, EdgeModel(DPG(), Additive()), train).model
        with quietly():
            exact, exact_seconds = timed(Exact().run, 0, model, train)
        start = {k: jnp.asarray(np.tensordot(exact.weights, x, 1)) for k, x in exact.params.items()}
        chains = 1 if arguments.predictive else arguments.chains
        reference = Reference(model, train, test, start, chains, arguments.warmup, arguments.draws)
        if arguments.predictive:
            value, error = predictive(reference)
            mixture = -scores(exact, test)[1] * len(test)
            print(f"{name}: log p(test | train) {mixture:.2f} by draws, {value:.2f} +- {error:.2f}")
            continue
        params, seconds = timed(reference.run)
        del params["test"]
        n = len(params["theta"])
        nuts = replace(exact, params=params, weights=np.full(n, 1 / n), continuum=None)
        (p, ours, ours_of_mean), (q, theirs, theirs_of_mean) = (
            scores(posterior, test) for posterior in (exact, nuts)
        )
        print(
            f"{name}: Exact {exact_seconds:.1f} s, NUTS {seconds:.1f} s ({n} draws)\n"
            f"  probabilities differ by {np.sqrt(np.mean((p - q) ** 2)):.4f} (root mean square)\n"
            f"  NLL of a graph {ours:.3f} and {theirs:.3f}; of the mean probabilities "
            f"{ours_of_mean:.3f} and {theirs_of_mean:.3f}; effective draws "
            f"{exact.verdict.figures['effective draws']:.0f}"
        )


if __name__ == "__main__":
    main()
